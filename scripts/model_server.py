"""A scripted model on loopback that speaks the agents' four protocols (Anthropic Messages, OpenAI Responses and
chat completions, Gemini), and those of Ollama, Cohere and Bedrock. It answers a prompt by the turn of the script with the word that comes last in it, and keeps every
request. Python's standard library only."""

import base64
import gzip
import hashlib
import json
import struct
import sys
import threading
import zlib
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

MODEL = "scripted-1"
# What each answer says that it took in.
INPUT_TOKENS = 30

# The tools that run a command, by the names that agents give them, and how they take it.
SHELLS = {
    "Bash": lambda command: {"command": command, "description": "Count"},
    "bash": lambda command: {"command": command, "description": "Count"},
    "exec_command": lambda command: {"cmd": command},
    "shell_command": lambda command: {"command": command},
    "shell": lambda command: {"command": ["bash", "-c", command]},
    "run_shell_command": lambda command: {"command": command, "description": "Count"},
}


@dataclass
class Turn:
    """What the model does when a prompt has the word: it runs the command, if there is one, then answers."""

    word: str
    command: str | None
    answer: str


class ModelServer(ThreadingHTTPServer):
    """The server; `requests` has the body of every request that came, `answers` counts those that a model answered.
    With `tls`, a context of Python's ssl module, it speaks HTTPS."""

    daemon_threads = True

    def __init__(self, script, tls=None):
        super().__init__(("127.0.0.1", 0), Handler)
        if tls:
            self.socket = tls.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        self.scheme = "https" if tls else "http"
        self.script = script
        self.requests = []
        self.answers = 0
        # What was said up to the end of each response that somebody may go on after.
        self.responses = {}
        self.lock = threading.Lock()

    @property
    def address(self):
        # Certificates name hosts.
        host = "localhost" if self.scheme == "https" else "127.0.0.1"
        return f"{self.scheme}://{host}:{self.server_port}"

    def start(self):
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, client_address):
        """That a client goes away is no error of ours."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    def take(self, body):
        """Keeps a request and gives its number."""
        with self.lock:
            self.requests.append(body)
            return len(self.requests)

    def next_step(self, prompt, has_output, tools):
        """What comes next: (text, name of a tool or None, its input)."""
        turn = max(self.script, key=lambda turn: prompt.rfind(turn.word))
        if turn.word not in prompt or not tools:
            return "ok", None, None
        name = next((name for name in SHELLS if name in tools), None)
        if turn.command and not has_output and name:
            return "I will count.", name, SHELLS[name](turn.command)
        return turn.answer, None, None


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.reply({})

    def do_GET(self):
        if self.headers.get("upgrade", "").lower() == "websocket":
            return self.converse()
        entry = {"id": MODEL, "object": "model", "type": "model", "display_name": MODEL}
        self.reply({"object": "list", "data": [entry], "models": [], "has_more": False})

    def do_POST(self):
        body = self.body()
        number = self.server.take(body)
        path = self.path.split("?")[0]
        if path.endswith("/messages"):
            self.answer_messages(body, number)
        elif path.endswith("/responses"):
            self.answer_responses(body, number)
        elif path.endswith("/chat/completions"):
            self.answer_chat(body, number)
        elif path.lower().endswith("generatecontent"):
            self.answer_gemini(body, number)
        elif path.endswith("/api/chat"):
            self.answer_ollama(body)
        elif path.endswith("/v2/chat"):
            self.answer_cohere(body, number)
        elif path.endswith(("/converse", "/converse-stream")):
            self.answer_converse(body, number)
        else:
            self.reply({"input_tokens": 40, "totalTokens": 40})
            return
        # A client that has gone did not get this one.
        with self.server.lock:
            self.server.answers += 1

    def body(self):
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        if self.headers.get("content-encoding") == "gzip":
            raw = gzip.decompress(raw)
        try:
            return json.loads(raw or b"{}")
        except ValueError:
            return {}

    def reply(self, value):
        data = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def stream(self, events, last=None):
        self.close_connection = True
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for event in events:
            if "type" in event:
                self.wfile.write(f"event: {event['type']}\n".encode())
            self.wfile.write(f"data: {json.dumps(event)}\n\n".encode())
        if last:
            self.wfile.write(f"data: {last}\n\n".encode())

    def answer_messages(self, body, number):
        """Anthropic Messages."""
        prompt, has_output = "", False
        for message in body.get("messages", []):
            if message["role"] != "user":
                continue
            for block in blocks(message["content"]):
                has_output |= block.get("type") == "tool_result"
                if is_prompt(block.get("text")):
                    prompt, has_output = block["text"], False
        tools = {tool.get("name") for tool in body.get("tools") or []}
        text, name, given = self.server.next_step(prompt, has_output, tools)
        content = [{"type": "text", "text": text}]
        if body.get("thinking", {}).get("type") == "enabled":
            content.insert(0, {"type": "thinking", "thinking": "Birds, then.", "signature": "c2ln"})
        if name:
            content.append({"type": "tool_use", "id": f"toolu_{number:04}", "name": name, "input": given})
        usage = {"input_tokens": INPUT_TOKENS, "output_tokens": 5}
        message = {"id": f"msg_{number:04}", "type": "message", "role": "assistant", "model": body.get("model"),
                   "content": content, "stop_reason": "tool_use" if name else "end_turn", "stop_sequence": None,
                   "usage": usage}
        if not body.get("stream"):
            return self.reply(message)
        events = [{"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}]
        for index, block in enumerate(content):
            if block["type"] in ("text", "thinking"):
                kind = block["type"]
                start, delta = {**block, kind: ""}, {"type": f"{kind}_delta", kind: block[kind]}
            else:
                start = {**block, "input": {}}
                delta = {"type": "input_json_delta", "partial_json": json.dumps(given)}
            events += [{"type": "content_block_start", "index": index, "content_block": start},
                       {"type": "content_block_delta", "index": index, "delta": delta},
                       {"type": "content_block_stop", "index": index}]
        end = {"stop_reason": message["stop_reason"], "stop_sequence": None}
        events += [{"type": "message_delta", "delta": end, "usage": usage}, {"type": "message_stop"}]
        self.stream(events)

    def converse(self):
        """OpenAI Responses over WebSocket, compressed where the client can."""
        self.close_connection = True
        offered = self.headers.get("sec-websocket-extensions", "")
        key = self.headers["sec-websocket-key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        self.send_response(101)
        self.send_header("upgrade", "websocket")
        self.send_header("connection", "Upgrade")
        self.send_header("sec-websocket-accept", base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())
        if "permessage-deflate" in offered:
            self.send_header("sec-websocket-extensions", "permessage-deflate")
        self.end_headers()
        socket = WebSocket(self.rfile, self.wfile, "permessage-deflate" in offered)
        for message in socket.messages():
            asked = json.loads(message)
            if asked.get("type") == "response.create":
                number = self.server.take(asked)
                for event in self.response_events(asked, number):
                    socket.send(json.dumps(event))

    def answer_responses(self, body, number):
        """OpenAI Responses."""
        events = self.response_events(body, number)
        if not body.get("stream"):
            whole = events[-1]["response"]
            return self.reply({**whole, "tools": [], "tool_choice": "auto", "parallel_tool_calls": True})
        self.stream(events)

    def response_events(self, body, number):
        """The events of a response."""
        prompt, has_output = "", False
        given = body.get("input") or []
        given = [{"role": "user", "content": given}] if isinstance(given, str) else given
        given = self.server.responses.get(body.get("previous_response_id"), []) + given
        for item in given:
            has_output |= item.get("type", "").endswith("_output")
            for block in blocks(item.get("content")) if item.get("role") == "user" else []:
                if is_prompt(block.get("text")):
                    prompt, has_output = block["text"], False
        offered = body.get("tools") or []
        # Codex offers the tools of a server in a namespace.
        homes = {tool["name"]: group["name"] for group in offered for tool in group.get("tools") or []}
        tools = {tool.get("name") for tool in offered} | homes.keys()
        text, name, command = self.server.next_step(prompt, has_output, tools)
        output = [{"type": "message", "id": f"msg_{number:04}", "role": "assistant", "status": "completed",
                   "content": [{"type": "output_text", "text": text, "annotations": []}]}]
        if name:
            output.append({"type": "function_call", "id": f"fc_{number:04}", "call_id": f"call_{number:04}",
                           "name": name, "arguments": json.dumps(command), "status": "completed"})
            output[-1].update({"namespace": homes[name]} if name in homes else {})
        usage = {"input_tokens": INPUT_TOKENS, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 5,
                 "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 35}
        begun = {"id": f"resp_{number:04}", "object": "response", "created_at": 1, "model": body.get("model"),
                 "output": []}
        if body.get("generate") is False:
            output = []
        self.server.responses[begun["id"]] = given + output
        done = {**begun, "status": "completed", "output": output, "usage": usage}
        events = [{"type": "response.created", "response": {**begun, "status": "in_progress"}}]
        for index, item in enumerate(output):
            place = {"output_index": index, "item_id": item["id"]}
            empty = {"content": []} if item["type"] == "message" else {"arguments": ""}
            events.append({"type": "response.output_item.added", **place, "item": {**item, **empty}})
            if item["type"] == "message":
                part = {"type": "output_text", "text": "", "annotations": []}
                place["content_index"] = 0
                events += [{"type": "response.content_part.added", **place, "part": part},
                           {"type": "response.output_text.delta", **place, "delta": text, "logprobs": []},
                           {"type": "response.output_text.done", **place, "text": text, "logprobs": []},
                           {"type": "response.content_part.done", **place, "part": item["content"][0]}]
            else:
                asked = item["arguments"]
                events += [{"type": "response.function_call_arguments.delta", **place, "delta": asked},
                           {"type": "response.function_call_arguments.done", **place, "arguments": asked}]
            events.append({"type": "response.output_item.done", **place, "item": item})
        return events + [{"type": "response.completed", "response": done}]

    def send_pieces(self, content_type, pieces):
        """Answers with bytes that end with the connection."""
        self.close_connection = True
        self.send_response(200)
        self.send_header("content-type", content_type)
        self.send_header("connection", "close")
        self.end_headers()
        for piece in pieces:
            self.wfile.write(piece)

    def next_of_chat(self, body):
        """The next step of messages in the form of chat completions."""
        prompt, has_output = "", False
        for message in body.get("messages", []):
            has_output |= message["role"] == "tool"
            for block in blocks(message.get("content")) if message["role"] == "user" else []:
                if is_prompt(block.get("text")):
                    prompt, has_output = block["text"], False
        tools = {tool.get("function", {}).get("name") for tool in body.get("tools") or []}
        return self.server.next_step(prompt, has_output, tools)

    def answer_ollama(self, body):
        """Ollama's chat: lines of JSON, unless somebody asks for one answer."""
        text, name, given = self.next_of_chat(body)
        calls = [{"function": {"name": name, "arguments": given}}] if name else []
        base = {"model": body.get("model"), "created_at": "2026-01-05T09:15:30Z"}
        done = {**base, "done": True, "done_reason": "stop", "prompt_eval_count": INPUT_TOKENS, "eval_count": 5}
        if body.get("stream") is False:
            message = {"role": "assistant", "content": text, **({"tool_calls": calls} if calls else {})}
            return self.reply({**done, "message": message})
        said = [{"content": text[:4]}, {"content": text[4:]}] + [{"content": "", "tool_calls": calls}] * bool(calls)
        lines = [{**base, "done": False, "message": {"role": "assistant", **piece}} for piece in said]
        lines.append({**done, "message": {"role": "assistant", "content": ""}})
        self.send_pieces("application/x-ndjson", [json.dumps(line).encode() + b"\n" for line in lines])

    def answer_cohere(self, body, number):
        """Cohere's chat, the second version."""
        text, name, given = self.next_of_chat(body)
        function = {"name": name, "arguments": json.dumps(given)}
        call = {"id": f"call_{number:04}", "type": "function", "function": function}
        reason = "TOOL_CALL" if name else "COMPLETE"
        counts = {"input_tokens": INPUT_TOKENS, "output_tokens": 5}
        usage = {"billed_units": counts, "tokens": counts}
        message = {"role": "assistant", "content": [{"type": "text", "text": text}]}
        if name:
            message["tool_calls"] = [call]
        if not body.get("stream"):
            return self.reply({"id": f"c-{number:04}", "finish_reason": reason, "message": message, "usage": usage})
        piece = lambda kind, message: {"type": kind, "index": 0, "delta": {"message": message}}
        events = [{"type": "message-start", "id": f"c-{number:04}", "delta": {"message": {"role": "assistant"}}},
                  piece("content-start", {"content": {"type": "text", "text": ""}}),
                  piece("content-delta", {"content": {"text": text}}), {"type": "content-end", "index": 0}]
        if name:
            events += [piece("tool-call-start", {"tool_calls": {**call, "function": {"name": name, "arguments": ""}}}),
                       piece("tool-call-delta", {"tool_calls": {"function": {"arguments": function["arguments"]}}}),
                       {"type": "tool-call-end", "index": 0}]
        self.stream(events + [{"type": "message-end", "delta": {"finish_reason": reason, "usage": usage}}])

    def answer_converse(self, body, number):
        """Bedrock's Converse, with binary streams."""
        prompt, has_output = "", False
        for message in body.get("messages", []):
            for block in message["content"] if message["role"] == "user" else []:
                has_output |= "toolResult" in block
                if is_prompt(block.get("text")):
                    prompt, has_output = block["text"], False
        offered = body.get("toolConfig", {}).get("tools", [])
        tools = {tool["toolSpec"]["name"] for tool in offered}
        text, name, given = self.server.next_step(prompt, has_output, tools)
        reason = "tool_use" if name else "end_turn"
        usage = {"inputTokens": INPUT_TOKENS, "outputTokens": 5, "totalTokens": INPUT_TOKENS + 5}
        call = {"toolUseId": f"tooluse_{number:04}", "name": name}
        if self.path.endswith("/converse"):
            content = [{"text": text}] + [{"toolUse": {**call, "input": given}}] * bool(name)
            message = {"role": "assistant", "content": content}
            return self.reply({"output": {"message": message}, "stopReason": reason, "usage": usage,
                               "metrics": {"latencyMs": 1}})
        events = [("messageStart", {"role": "assistant"})]
        events += [("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": part}}) for part in (text[:4], text[4:])]
        events.append(("contentBlockStop", {"contentBlockIndex": 0}))
        if name:
            events += [("contentBlockStart", {"contentBlockIndex": 1, "start": {"toolUse": call}}),
                       ("contentBlockDelta", {"contentBlockIndex": 1, "delta": {"toolUse": {"input": json.dumps(given)}}}),
                       ("contentBlockStop", {"contentBlockIndex": 1})]
        events += [("messageStop", {"stopReason": reason}), ("metadata", {"usage": usage, "metrics": {"latencyMs": 1}})]
        self.send_pieces("application/vnd.amazon.eventstream", [amazon_event(*event) for event in events])

    def answer_chat(self, body, number):
        """OpenAI chat completions."""
        text, name, given = self.next_of_chat(body)
        delta = {"role": "assistant", "content": text}
        if name:
            call = {"name": name, "arguments": json.dumps(given)}
            delta["tool_calls"] = [{"index": 0, "id": f"call_{number:04}", "type": "function", "function": call}]
        end = "tool_calls" if name else "stop"
        base = {"id": f"chatcmpl-{number:04}", "created": 1, "model": body.get("model")}
        usage = {"prompt_tokens": INPUT_TOKENS, "completion_tokens": 5, "total_tokens": 35}
        if not body.get("stream"):
            choice = {"index": 0, "message": delta, "finish_reason": end}
            return self.reply({**base, "object": "chat.completion", "choices": [choice], "usage": usage})
        base["object"] = "chat.completion.chunk"
        choices = [{"index": 0, "delta": delta, "finish_reason": None}, {"index": 0, "delta": {}, "finish_reason": end}]
        events = [{**base, "choices": [choice]} for choice in choices]
        self.stream(events + [{**base, "choices": [], "usage": usage}], last="[DONE]")

    def answer_gemini(self, body, number):
        """Gemini's generateContent, streamed or not."""
        prompt, has_output = "", False
        for content in body.get("contents", []):
            for part in content.get("parts", []) if content.get("role") != "model" else []:
                has_output |= "functionResponse" in part or "function_response" in part
                if is_prompt(part.get("text")):
                    prompt, has_output = part["text"], False
        groups = [group.get("functionDeclarations") or group.get("function_declarations") or []
                  for group in body.get("tools") or []]
        offered = [tool for group in groups for tool in group]
        text, name, given = self.server.next_step(prompt, has_output, {tool["name"] for tool in offered})
        wanted = body.get("generationConfig", {})
        schema = wanted.get("responseJsonSchema") or wanted.get("responseSchema")
        parts = [{"text": json.dumps(smallest(schema)) if schema else text}]
        if name:
            parts.append({"functionCall": {"name": name, "args": given}})
        usage = {"promptTokenCount": INPUT_TOKENS, "candidatesTokenCount": 5, "totalTokenCount": 35}
        candidate = {"index": 0, "content": {"role": "model", "parts": parts}, "finishReason": "STOP"}
        answer = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": MODEL,
                  "responseId": f"resp-{number:04}"}
        return self.stream([answer]) if "stream" in self.path else self.reply(answer)


def amazon_event(name, payload):
    """A message of Amazon's binary event streams."""
    headers = b""
    fields = {":event-type": name, ":content-type": "application/json", ":message-type": "event"}
    for field, value in fields.items():
        headers += struct.pack("!B", len(field)) + field.encode() + struct.pack("!BH", 7, len(value)) + value.encode()
    payload = json.dumps(payload).encode()
    message = struct.pack("!II", len(headers) + len(payload) + 16, len(headers))
    message += struct.pack("!I", zlib.crc32(message)) + headers + payload
    return message + struct.pack("!I", zlib.crc32(message))


class WebSocket:
    """The server's side of a WebSocket."""

    def __init__(self, source, out, is_compressed):
        self.source, self.out = source, out
        self.inflater = zlib.decompressobj(-15) if is_compressed else None
        self.deflater = zlib.compressobj(wbits=-15) if is_compressed else None

    def messages(self):
        """Every message of the client, until it closes."""
        message = b""
        while True:
            head = self.source.read(2)
            if len(head) < 2:
                return
            length = head[1] & 0x7F
            if length > 125:
                length = int.from_bytes(self.source.read(2 if length == 126 else 8), "big")
            mask = self.source.read(4)
            payload = self.source.read(length)
            payload = bytes(byte ^ mask[at % 4] for at, byte in enumerate(payload))
            opcode = head[0] & 0x0F
            if opcode == 8:
                self.frame(0x88, payload)
                return
            if opcode == 9:
                self.frame(0x8A, payload)
            if opcode > 2:
                continue
            if opcode:
                message, is_deflated = b"", bool(head[0] & 0x40)
            message += payload
            if head[0] & 0x80:
                whole = self.inflater.decompress(message + b"\0\0\xff\xff") if is_deflated else message
                yield whole.decode()

    def send(self, text):
        data = text.encode()
        if self.deflater:
            data = self.deflater.compress(data) + self.deflater.flush(zlib.Z_SYNC_FLUSH)
            return self.frame(0xC1, data[:-4])
        return self.frame(0x81, data)

    def frame(self, first, payload):
        length = len(payload)
        if length < 126:
            head = struct.pack("!BB", first, length)
        elif length < 65536:
            head = struct.pack("!BBH", first, 126, length)
        else:
            head = struct.pack("!BBQ", first, 127, length)
        self.out.write(head + payload)


def blocks(content):
    """The blocks of a message. Its content may be plain text."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else content or []


def is_prompt(text):
    """Whether a user wrote it: text that agents add is in angle brackets, and so is the description of a thread."""
    return bool(text) and (not text.lstrip().startswith("<") or text.lstrip().startswith("<thread_context "))


def smallest(schema):
    """The smallest value that a JSON schema allows."""
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type", "object").lower()
    if kind == "object":
        return {name: smallest(field) for name, field in schema.get("properties", {}).items()}
    return {"array": [], "string": "", "number": 1, "integer": 1, "boolean": False}.get(kind)
