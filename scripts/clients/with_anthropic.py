"""The `anthropic` library: plain and streamed, with tools and thinking."""

from anthropic import Anthropic

from talk import OUTPUT, PROMPT, SYSTEM, TOOL, Report

client = Anthropic(api_key="sk-real-client-key-1")


def messages(stream, thinks):
    report = Report(f"messages, {'streamed' if stream else 'plain'}{', thinking' if thinks else ''}")
    history = [{"role": "user", "content": PROMPT}]
    tool = {"name": TOOL["name"], "description": TOOL["description"], "input_schema": TOOL["parameters"]}
    more = {"thinking": {"type": "enabled", "budget_tokens": 1024}} if thinks else {}
    while True:
        asked = {"model": "scripted-1", "max_tokens": 2000, "system": SYSTEM, "messages": history, "tools": [tool], **more}
        if stream:
            with client.messages.stream(**asked) as events:
                for _ in events:
                    pass
                answer = events.get_final_message()
        else:
            answer = client.messages.create(**asked)
        said = "".join(block.text for block in answer.content if block.type == "text")
        thought = "".join(block.thinking for block in answer.content if block.type == "thinking")
        calls = [block for block in answer.content if block.type == "tool_use"]
        report.answer(thought + said, [call.input for call in calls], answer.usage.input_tokens,
                      answer.usage.output_tokens)
        history.append({"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in answer.content]})
        if not calls:
            return report.print()
        results = [{"type": "tool_result", "tool_use_id": call.id, "content": OUTPUT} for call in calls]
        history.append({"role": "user", "content": results})


messages(False, False)
messages(True, False)
messages(True, True)
