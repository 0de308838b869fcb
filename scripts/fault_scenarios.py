"""More scenarios for `scripts/faults`: commands that a power failure cannot harm in another way than those of
store_scenarios.py, or that pass somebody else's traffic on."""

import json, os, signal, subprocess, sys, threading
from pathlib import Path

from model_server import ModelServer, Turn
from store_scenarios import Keep, Record, Result, Scenario, Step, describe_loss

# A program that asks a model once, by the address that it was given, and prints the answer.
CLIENT = """
import json, os, socket, sys
address = os.environ["OPENAI_BASE_URL"].split("//")[1]
host, _, path = address.partition("/")
name, _, port = host.partition(":")
body = json.dumps({"model": "scripted-1", "messages": [{"role": "user", "content": "needle " + "x" * 9000}]}).encode()
head = f"POST /{path}/chat/completions HTTP/1.1\\r\\nhost: {host}\\r\\ncontent-type: application/json\\r\\n"
link = socket.create_connection((name, int(port)), timeout=20)
link.sendall(head.encode() + f"content-length: {len(body)}\\r\\nconnection: close\\r\\n\\r\\n".encode() + body)
answer = b""
while piece := link.recv(65536):
    answer += piece
    if b'"total_tokens": 35' in answer:
        break
print("answered" if b'"content": "ok"' in answer else answer)
sys.exit(7)
"""

# An agent that speaks the Agent Client Protocol: it answers each request, a prompt after some updates.
AGENT = """
import json, sys
def say(value):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **value}) + "\\n")
    sys.stdout.flush()
for line in sys.stdin:
    asked = json.loads(line)
    if asked["method"] == "initialize":
        result = {"protocolVersion": 1, "agentCapabilities": {}, "agentInfo": {"name": "scripted", "version": "1"}}
    elif asked["method"] == "session/new":
        result = {"sessionId": "acp-session"}
    else:
        for number in range(3):
            text = {"type": "text", "text": f"needle answer {number} " + "y" * 3000}
            update = {"sessionUpdate": "agent_message_chunk", "content": text}
            say({"method": "session/update", "params": {"sessionId": "acp-session", "update": update}})
        result = {"stopReason": "end_turn"}
    say({"id": asked["id"], "result": result})
sys.exit(5)
"""


def was_killed(result):
    return result.code in (-9, 137)


class Restore(Keep):
    """`steno restore`: ends with 0 only when the whole file is there."""

    def __init__(self):
        super().__init__("restore", "sync", [], prepared=[3, 2], size=2000)

    @property
    def top_level(self):
        return 1

    def steps(self):
        return [Step(lambda box: ["restore", "s0", "--to", str(box.home / "project")])]

    def finish(self, box):
        pass

    def observe(self, box):
        found = sorted((box.home / "project").rglob("*.jsonl"))
        return b"".join(path.read_bytes() for path in found)

    def judge(self, seen, level):
        whole = self.text("s0", 2)
        if seen == whole or (not seen and level == 0):
            return None
        return f"lost: {len(seen)} of {len(whole)} bytes were put back"

    def again(self, box):
        return box.run("restore", "s0", "--to", box.home / "project")

    def judge_again(self, before, after):
        return self.judge(after, 1)


class Reindex(Record):
    """`steno reindex`: ends with 0 only when `search` finds everything."""

    acknowledges_lines = False

    def __init__(self):
        super().__init__("reindex", [], prepared=5, is_indexed=True)

    @property
    def top_level(self):
        return 1

    def steps(self):
        return [Step(["reindex"])]

    def judge(self, seen, level):
        return None if seen == self.texts(0, 5) else describe_loss(self.texts(0, 5), seen)

    def needles(self, level):
        return 5


class Hook(Keep):
    """`steno hook`: acknowledges nothing; what went wrong is in `steno hooks status`."""

    def __init__(self):
        super().__init__("hook", "sync", [2], prepared=[2], size=1000)

    def attacked(self, box, number, prefix):
        self.write(box, 2)
        path = box.files / "projects/-w/s0.jsonl"
        message = {"session_id": "s0", "transcript_path": str(path), "cwd": "/w", "hook_event_name": "Stop"}
        result = box.run("hook", "claude-code", stdin=json.dumps(message).encode(), prefix=prefix)
        return result, 0

    def check_run(self, box, result, action):
        """A hook that failed says so, unless it was killed or nothing more can be written, as on a full disk."""
        wrong = [] if result.code in (0, -9, 137) else [("traffic", f"the hook ended with {result.code}")]
        rows = [json.loads(line) for line in box.run("hooks", "status", "--json").out.splitlines()]
        is_said = any(row.get("last_problem") for row in rows)
        is_kept = box.restored("s0") == self.text("s0", 2)
        is_full = action.endswith("+")
        if not (is_kept or is_said or is_full or action == "kill"):
            wrong.append(("silent", "the hook kept nothing, and `hooks status` does not say so"))
        return wrong


class Watch(Keep):
    """`steno watch`: acknowledges by an event `kept`."""

    def __init__(self):
        super().__init__("watch", "sync", [2], prepared=[2], size=1000)

    def attacked(self, box, number, prefix):
        command = [*prefix, box.steno, "watch", "--json", "--debounce", "20", str(box.files / "projects")]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=box.env, cwd=box.home)
        timer = threading.Timer(4, interrupt, (child, prefix))
        timer.start()
        level = 0
        for line in child.stdout:
            event = json.loads(line)
            if event["event"] == "ready":
                self.write(box, 2)
            elif event["event"] == "kept" and event.get("entries") == 4:
                level = 1
                interrupt(child, prefix)
        timer.cancel()
        return Result(child.wait(), b"", b""), level

    def succeeded(self, result, level):
        return level == 1


def interrupt(child, prefix):
    """Sends Ctrl-C to the command, which is the first child of its tracer."""
    try:
        pid = child.pid
        if prefix:
            pid = int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])
        os.kill(pid, signal.SIGINT)
    except (OSError, IndexError):
        pass


class Exec(Scenario):
    """`steno exec`: the program must run and get its answer, whatever happens to the store."""

    name = "exec"
    server = None

    def prepare(self, box):
        if not Exec.server:
            Exec.server = ModelServer([Turn("no such word", None, "")])
            Exec.server.start()
        box.files.mkdir(parents=True, exist_ok=True)
        (box.files / "client.py").write_text(CLIENT)
        box.more_env = {"OPENAI_BASE_URL": Exec.server.address + "/v1"}

    def steps(self):
        return [Step(self.args)]

    def args(self, box):
        return ["-q", "exec", "--session", "e", "--", sys.executable, "-I", "-S", str(box.files / "client.py")]

    def attacked(self, box, number, prefix):
        result = box.run(*self.args(box), prefix=prefix)
        return result, int(result.code == 7 and not result.err.strip())

    def succeeded(self, result, level):
        return level == 1

    def check_run(self, box, result, action):
        if was_killed(result) or (result.code == 7 and result.out == b"answered\n"):
            return []
        return [("traffic", f"the program ended with {result.code} and said {result.out[:80]}")]

    def observe(self, box):
        texts = ["asked" if text.startswith("needle ") else text for text in box.contents("e")]
        return [text for text in texts if text in ("asked", "ok")]

    def judge(self, seen, level):
        whole = ["asked", "ok"]
        if seen == whole or (level == 0 and seen == whole[:len(seen)]):
            return None
        return describe_loss(whole, seen)

    def again(self, box):
        result = box.run(*self.args(box))
        return Result(0, result.out, result.err) if result.code == 7 else result

    def judge_again(self, before, after):
        return None if after == before + ["asked", "ok"] else describe_loss(before + ["asked", "ok"], after)


class Acp(Scenario):
    """`steno acp`: every byte must pass in both directions, whatever happens to the store."""

    name = "acp"
    asked = [{"id": 1, "method": "initialize", "params": {"protocolVersion": 1, "clientCapabilities": {}}},
             {"id": 2, "method": "session/new", "params": {"cwd": "/w", "mcpServers": []}},
             {"id": 3, "method": "session/prompt", "params": {"sessionId": "acp-session", "prompt": [
                 {"type": "text", "text": "needle prompt " + "z" * 3000}]}}]

    @property
    def stdin(self):
        return "".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in self.asked).encode()

    def prepare(self, box):
        box.files.mkdir(parents=True, exist_ok=True)
        (box.files / "agent.py").write_text(AGENT)
        self.expected = subprocess.run(self.agent(box), input=self.stdin, capture_output=True).stdout

    def agent(self, box):
        return [sys.executable, "-I", "-S", str(box.files / "agent.py")]

    def steps(self):
        return [Step(lambda box: ["-q", "acp", "--", *self.agent(box)])]

    def attacked(self, box, number, prefix):
        result = box.run("-q", "acp", "--", *self.agent(box), stdin=self.stdin, prefix=prefix)
        return result, int(result.code == 5 and not result.err.strip())

    def succeeded(self, result, level):
        return level == 1

    def check_run(self, box, result, action):
        if was_killed(result) or (result.code == 5 and result.out == self.expected):
            return []
        passed = f"{len(result.out)} of {len(self.expected)} bytes passed"
        return [("traffic", f"the agent ended with {result.code}, {passed}")]

    def observe(self, box):
        sessions, _ = box.json_lines("list", "--json")
        texts = [box.contents(session["id"]) for session in sessions]
        return [text[:15].strip() for part in texts for text in part if text.startswith("needle")]

    def judge(self, seen, level):
        whole = ["needle prompt z", "needle answer 0"]
        if seen == whole or (level == 0 and seen == whole[:len(seen)]):
            return None
        return describe_loss(whole, seen)

    def again(self, box):
        result = box.run("-q", "acp", "--", *self.agent(box), stdin=self.stdin)
        return Result(0, result.out, result.err) if result.code == 5 else result

    def judge_again(self, before, after):
        is_right = len(after) == len(before) + 2
        return None if is_right else describe_loss(before + ["prompt", "answer"], after)
