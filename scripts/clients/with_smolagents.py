"""smolagents' model for servers that are compatible with OpenAI, plain and streamed, with a tool."""

import json

from smolagents import OpenAIServerModel, tool
from smolagents.models import ChatMessage, agglomerate_stream_deltas

from talk import OUTPUT, PROMPT, SYSTEM, Report


@tool
def bash(command: str, description: str = "") -> str:
    """Runs a command.

    Args:
        command: The command.
        description: What it is for.
    """
    return OUTPUT


def chat(stream):
    report = Report(f"chat, {'streamed' if stream else 'plain'}")
    roles = {"tool-response": "tool"}
    model = OpenAIServerModel("scripted-1", api_key="sk-real-client-key-1", custom_role_conversions=roles)
    text = lambda said: [{"type": "text", "text": said}]
    messages = [ChatMessage(role="system", content=text(SYSTEM)), ChatMessage(role="user", content=text(PROMPT))]
    while True:
        asked = {"tools_to_call_from": [bash]}
        if stream:
            answer = agglomerate_stream_deltas(list(model.generate_stream(messages, **asked)))
        else:
            answer = model.generate(messages, **asked)
        calls = answer.tool_calls or []
        inputs = [call.function.arguments for call in calls]
        inputs = [json.loads(given) if isinstance(given, str) else given for given in inputs]
        usage = answer.token_usage
        report.answer(answer.content, inputs, usage.input_tokens, usage.output_tokens)
        if len(report.said) == 2:
            return report.print()
        # It leaves out the calls of earlier answers.
        messages.append(ChatMessage(role="assistant", content=text(answer.content), tool_calls=calls))
        messages.append(ChatMessage(role="tool-response", content=text(OUTPUT)))


for streamed in (False, True):
    chat(streamed)
