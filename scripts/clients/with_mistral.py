"""Mistral's library, plain and streamed, with tools."""

import json
import os

try:
    from mistralai import Mistral
except ImportError:
    from mistralai.client import Mistral

from talk import OUTPUT, PROMPT, SYSTEM, TOOL, Report

client = Mistral(api_key="real-client-key-1", server_url=os.environ["OPENAI_BASE_URL"].removesuffix("/v1"))


def plain(asked):
    answer = client.chat.complete(**asked)
    message = answer.choices[0].message
    calls = [(call.id, call.function.arguments) for call in message.tool_calls or []]
    return message.content, calls, answer.usage


def streamed(asked):
    said, calls, usage = "", [], None
    for event in client.chat.stream(**asked):
        for choice in event.data.choices:
            said += choice.delta.content or ""
            calls += [(call.id, call.function.arguments) for call in choice.delta.tool_calls or []]
        usage = event.data.usage or usage
    return said, calls, usage


def chat(case, ask):
    report = Report(f"chat, {case}")
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": PROMPT}]
    while True:
        tools = [{"type": "function", "function": TOOL}]
        said, calls, usage = ask({"model": "scripted-1", "messages": messages, "tools": tools})
        report.answer(said, [json.loads(given) for _, given in calls], usage.prompt_tokens, usage.completion_tokens)
        if not calls:
            return report.print()
        made = [{"id": id, "function": {"name": TOOL["name"], "arguments": given}} for id, given in calls]
        messages.append({"role": "assistant", "content": said, "tool_calls": made})
        messages += [{"role": "tool", "tool_call_id": id, "content": OUTPUT} for id, _ in calls]


chat("plain", plain)
chat("streamed", streamed)
