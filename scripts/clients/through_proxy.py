"""LiteLLM's own proxy server, asked by the `openai` library: only what the proxy asks is recorded."""

import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

CONFIG = """model_list:
  - model_name: scripted-1
    litellm_params:
      model: anthropic/scripted-1
      api_base: os.environ/ANTHROPIC_BASE_URL
      api_key: sk-real-client-key-1
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def main():
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "config.yaml"
        config.write_text(CONFIG)
        program = Path(sys.executable).with_name("litellm")
        words = [program, "--config", config, "--port", str(port), "--host", "127.0.0.1", "--telemetry", "False"]
        with open(Path(folder) / "log.txt", "w", encoding="utf-8") as log:
            proxy = subprocess.Popen(list(map(str, words)), stdout=log, stderr=log)
        try:
            await_ready(f"http://127.0.0.1:{port}/health/liveliness", proxy)
            here = Path(__file__).with_name("with_openai_chat.py")
            env = {**os.environ, "OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1"}
            return subprocess.run([sys.executable, here], env=env, check=False).returncode
        finally:
            proxy.terminate()
            proxy.wait()


def await_ready(url, proxy):
    for _ in range(600):
        if proxy.poll() is not None:
            sys.exit("the proxy has ended")
        try:
            with urllib.request.urlopen(url, timeout=1):
                return
        except OSError:
            time.sleep(0.2)
    sys.exit("the proxy does not answer")


if __name__ == "__main__":
    sys.exit(main())
