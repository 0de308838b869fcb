"""What the scripts that run real agents share: settings for a scripted model, the installation, and a namespace that
has nothing but loopback. Python's standard library only."""

import json
import os
import subprocess
import sys

from model_server import MODEL

NODE = "node@22"


class Failure(Exception):
    """Something is not as it must be."""


def claude_settings(address):
    """Environment and files for a model at `address`; so are those that follow."""
    return {"ANTHROPIC_BASE_URL": address, "ANTHROPIC_API_KEY": "x", "DISABLE_AUTOUPDATER": "1",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"}, {}


def codex_settings(address):
    settings = f"""model = "{MODEL}"
model_provider = "scripted"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.scripted]
name = "scripted"
base_url = "{address}/v1"
env_key = "SCRIPTED_KEY"
wire_api = "responses"
"""
    return {"SCRIPTED_KEY": "x"}, {".codex/config.toml": settings}


def gemini_settings(address):
    settings = {"security": {"auth": {"selectedType": "gemini-api-key"}},
                "privacy": {"usageStatisticsEnabled": False}, "general": {"disableAutoUpdate": True}}
    environment = {"GEMINI_API_KEY": "x", "GOOGLE_GEMINI_BASE_URL": address, "GEMINI_TELEMETRY_ENABLED": "false"}
    return environment, {".gemini/settings.json": json.dumps(settings)}


def opencode_settings(address):
    settings = {"model": f"scripted/{MODEL}", "small_model": f"scripted/{MODEL}", "autoupdate": False,
                "share": "disabled", "provider": {"scripted": {
                    "npm": "@ai-sdk/openai-compatible", "options": {"baseURL": f"{address}/v1", "apiKey": "x"},
                    "models": {MODEL: {"limit": {"context": 100000, "output": 8000}}}}}}
    environment = {"OPENCODE_DISABLE_AUTOUPDATE": "1", "OPENCODE_DISABLE_MODELS_FETCH": "1"}
    return environment, {".config/opencode/opencode.json": json.dumps(settings)}


def qwen_settings(address):
    settings = {"security": {"auth": {"selectedType": "openai"}}, "privacy": {"usageStatisticsEnabled": False}}
    environment = {"OPENAI_API_KEY": "x", "OPENAI_BASE_URL": f"{address}/v1", "OPENAI_MODEL": MODEL}
    return environment, {".qwen/settings.json": json.dumps(settings)}


def closed_doors():
    """Whatever would reach out of the machine meets a closed door."""
    closed = {name: "http://127.0.0.1:9" for name in ("HTTP_PROXY", "HTTPS_PROXY")}
    return {"NO_PROXY": "127.0.0.1,localhost", **closed}


def said(entries, role, text):
    """How often somebody said it."""
    spoken = [entry for entry in entries if entry["kind"] == "text" and entry["role"] == role]
    return sum(text in entry["content"] for entry in spoken)


def count(entries, kind, text):
    """How many entries of a kind have the text."""
    return sum(entry["kind"] == kind and text in json.dumps(entry, ensure_ascii=False) for entry in entries)


def install(work, packages):
    """Installs Node and the agents that are not there yet. The agents need a newer Node than many machines have."""
    flags = ["--no-audit", "--no-fund", "--loglevel=error"]
    environment = dict(os.environ)
    node = work / "node"
    if not node.exists():
        subprocess.run(["npm", "install", *flags, "--prefix", node, NODE], check=True, stdout=sys.stderr)
    environment["PATH"] = f"{node}/node_modules/node/bin:{environment['PATH']}"
    newest = [f"{package}@latest" for package in packages]
    subprocess.run(["npm", "install", *flags, "--prefix", work / "agents", *newest], check=True, env=environment,
                   stdout=sys.stderr)


def isolate():
    """Goes on in a namespace without a network, where the system allows it."""
    inner = ["unshare", "--net", "--map-root-user", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    if subprocess.run([*inner, "true"], check=False, capture_output=True).returncode:
        print("no namespace: only proxies keep the agents on this machine", file=sys.stderr)
        return
    os.execvp(inner[0], [*inner, sys.executable, *sys.argv, "--isolated"])


def print_table(rows):
    """Prints rows in columns."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())
