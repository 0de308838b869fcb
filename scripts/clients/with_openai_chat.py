"""The `openai` library: chat completions, plain and streamed, with tools."""

import json

from openai import OpenAI

from talk import OUTPUT, PROMPT, SYSTEM, TOOL, Report

client = OpenAI(api_key="sk-real-client-key-1")


def chat(stream):
    report = Report(f"chat, {'streamed' if stream else 'plain'}")
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": PROMPT}]
    tools = [{"type": "function", "function": TOOL}]
    while True:
        if stream:
            with client.chat.completions.stream(model="scripted-1", messages=messages, tools=tools,
                                                stream_options={"include_usage": True}) as events:
                for _ in events:
                    pass
                answer = events.get_final_completion()
        else:
            answer = client.chat.completions.create(model="scripted-1", messages=messages, tools=tools)
        message = answer.choices[0].message
        calls = message.tool_calls or []
        report.answer(message.content, [json.loads(call.function.arguments) for call in calls],
                      answer.usage.prompt_tokens, answer.usage.completion_tokens)
        messages.append(message.model_dump(exclude_none=True, exclude={"parsed"}))
        if not calls:
            return report.print()
        for call in calls:
            messages.append({"role": "tool", "tool_call_id": call.id, "content": OUTPUT})


for streamed in (False, True):
    chat(streamed)
