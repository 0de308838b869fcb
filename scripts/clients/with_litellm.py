"""The `litellm` library, as a library: three vendors, plain and streamed, with tools."""

import json
import os

import litellm

from talk import OUTPUT, PROMPT, SYSTEM, TOOL, Report

litellm.telemetry = False
VENDORS = os.environ.get("LITELLM_VENDORS", "openai anthropic gemini").split()


def chat(vendor, stream):
    report = Report(f"{vendor}, {'streamed' if stream else 'plain'}")
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": PROMPT}]
    while True:
        asked = {"model": f"{vendor}/scripted-1", "messages": messages, "api_key": "sk-real-client-key-1",
                 "tools": [{"type": "function", "function": TOOL}]}
        if stream:
            chunks = list(litellm.completion(**asked, stream=True, stream_options={"include_usage": True}))
            answer = litellm.stream_chunk_builder(chunks, messages=messages)
        else:
            answer = litellm.completion(**asked)
        message = answer.choices[0].message
        calls = message.tool_calls or []
        report.answer(message.content, [json.loads(call.function.arguments) for call in calls],
                      answer.usage.prompt_tokens, answer.usage.completion_tokens)
        messages.append(message.model_dump(exclude_none=True))
        if not calls:
            return report.print()
        for call in calls:
            messages.append({"role": "tool", "tool_call_id": call.id, "name": call.function.name, "content": OUTPUT})


for name in VENDORS:
    chat(name, False)
    chat(name, True)
