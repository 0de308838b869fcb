"""Ollama's own library, plain and streamed, with tools."""

import os

from ollama import Client

from talk import OUTPUT, PROMPT, SYSTEM, TOOL, Report

client = Client(host=os.environ["OLLAMA_HOST"], headers={"Authorization": "Bearer real-client-key-1"})


def chat(stream):
    report = Report(f"chat, {'streamed' if stream else 'plain'}")
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": PROMPT}]
    while True:
        answer = client.chat("scripted-1", messages, tools=[{"type": "function", "function": TOOL}], stream=stream)
        chunks = list(answer) if stream else [answer]
        said = "".join(chunk.message.content or "" for chunk in chunks)
        calls = [call for chunk in chunks for call in chunk.message.tool_calls or []]
        last = chunks[-1]
        report.answer(said, [dict(call.function.arguments) for call in calls], last.prompt_eval_count, last.eval_count)
        messages.append({"role": "assistant", "content": said, "tool_calls": calls})
        if not calls:
            return report.print()
        for call in calls:
            messages.append({"role": "tool", "tool_name": call.function.name, "content": OUTPUT})


for streamed in (False, True):
    chat(streamed)
