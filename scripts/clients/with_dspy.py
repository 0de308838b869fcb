"""DSPy's language model, which asks through LiteLLM, with tools."""

import json

import dspy

from talk import OUTPUT, PROMPT, SYSTEM, TOOL, Report

model = dspy.LM("openai/scripted-1", api_key="sk-real-client-key-1", cache=False)


def chat():
    report = Report("chat, plain")
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": PROMPT}]
    while True:
        answer = model.forward(messages=messages, tools=[{"type": "function", "function": TOOL}])
        message = answer.choices[0].message
        calls = message.tool_calls or []
        report.answer(message.content, [json.loads(call.function.arguments) for call in calls],
                      answer.usage.prompt_tokens, answer.usage.completion_tokens)
        messages.append(message.model_dump(exclude_none=True))
        if not calls:
            return report.print()
        for call in calls:
            messages.append({"role": "tool", "tool_call_id": call.id, "content": OUTPUT})


chat()
