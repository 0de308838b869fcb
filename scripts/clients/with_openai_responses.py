"""The `openai` library: Responses, plain and streamed, with tools, with and without the server's state."""

import json

from openai import OpenAI

from talk import OUTPUT, PROMPT, SYSTEM, TOOL, Report

MODEL = "scripted-1"
client = OpenAI(api_key="sk-real-client-key-1")


def responses(stream, stateful):
    how = "streamed" if stream else "plain"
    report = Report(f"responses, {how}, {'with' if stateful else 'without'} state")
    given, history, before = [{"role": "user", "content": PROMPT}], [], None
    while True:
        history += given
        asked = {"model": MODEL, "instructions": SYSTEM, "tools": [{"type": "function", **TOOL}],
                 "input": given if stateful else history, "previous_response_id": before if stateful else None}
        if stream:
            with client.responses.stream(**asked) as events:
                for _ in events:
                    pass
                answer = events.get_final_response()
        else:
            answer = client.responses.create(**asked)
        calls = [item for item in answer.output if item.type == "function_call"]
        report.answer(answer.output_text, [json.loads(call.arguments) for call in calls],
                      answer.usage.input_tokens, answer.usage.output_tokens)
        history += [item.model_dump(exclude_none=True, exclude={"parsed_arguments"}) for item in answer.output]
        if not calls:
            return report.print()
        before = answer.id
        given = [{"type": "function_call_output", "call_id": call.call_id, "output": OUTPUT} for call in calls]


for streamed in (False, True):
    responses(streamed, False)
responses(False, True)
