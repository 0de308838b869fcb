"""Cohere's library, the second version of its API, plain and streamed, with tools."""

import json
import os

import cohere

from talk import OUTPUT, PROMPT, SYSTEM, TOOL, Report

client = cohere.ClientV2(api_key="real-client-key-1", base_url=os.environ["CO_API_URL"])


def plain(asked):
    answer = client.chat(**asked)
    said = "".join(part.text for part in answer.message.content or [])
    calls = [(call.id, call.function.name, call.function.arguments) for call in answer.message.tool_calls or []]
    return said, calls, answer.usage.billed_units


def streamed(asked):
    said, calls, units = "", [], None
    for event in client.chat_stream(**asked):
        if event.type == "content-delta":
            said += event.delta.message.content.text
        elif event.type == "tool-call-start":
            call = event.delta.message.tool_calls
            calls.append((call.id, call.function.name, ""))
        elif event.type == "tool-call-delta":
            name = calls.pop()
            calls.append((*name[:2], name[2] + event.delta.message.tool_calls.function.arguments))
        elif event.type == "message-end":
            units = event.delta.usage.billed_units
    return said, calls, units


def chat(case, ask):
    report = Report(f"chat, {case}")
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": PROMPT}]
    while True:
        tools = [{"type": "function", "function": TOOL}]
        said, calls, units = ask({"model": "scripted-1", "messages": messages, "tools": tools})
        report.answer(said, [json.loads(call[2]) for call in calls], int(units.input_tokens), int(units.output_tokens))
        if not calls:
            return report.print()
        made = [{"id": id, "type": "function", "function": {"name": name, "arguments": given}} for id, name, given in calls]
        messages.append({"role": "assistant", "content": said, "tool_calls": made})
        messages += [{"role": "tool", "tool_call_id": call[0], "content": OUTPUT} for call in calls]


chat("plain", plain)
chat("streamed", streamed)
