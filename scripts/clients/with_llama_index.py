"""LlamaIndex's model for servers that are compatible with OpenAI, plain and streamed, with a tool."""

import json

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai import OpenAI

from talk import OUTPUT, PROMPT, SYSTEM, Report


def bash(command: str, description: str = "") -> str:
    """Runs a command."""
    return OUTPUT


def chat(stream):
    report = Report(f"chat, {'streamed' if stream else 'plain'}")
    usage = {"additional_kwargs": {"stream_options": {"include_usage": True}}} if stream else {}
    # It must know the model's size; the server does not mind its name.
    model = OpenAI(model="gpt-4o-mini", api_key="sk-real-client-key-1", **usage)
    tool = FunctionTool.from_defaults(bash)
    messages = [ChatMessage(role="system", content=SYSTEM), ChatMessage(role="user", content=PROMPT)]
    while True:
        if stream:
            usage = None
            for answer in model.stream_chat_with_tools([tool], chat_history=messages):
                usage = getattr(answer.raw, "usage", None) or usage
        else:
            answer = model.chat_with_tools([tool], chat_history=messages)
            usage = answer.raw.usage
        calls = model.get_tool_calls_from_response(answer, error_on_no_tool_call=False)
        report.answer(answer.message.content, [call.tool_kwargs for call in calls], usage.prompt_tokens,
                      usage.completion_tokens)
        messages.append(answer.message)
        if not calls:
            return report.print()
        for call in calls:
            messages.append(ChatMessage(role="tool", content=OUTPUT, additional_kwargs={"tool_call_id": call.tool_id}))


for streamed in (False, True):
    chat(streamed)
