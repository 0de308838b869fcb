"""LangChain's chat model for OpenAI, plain and streamed, with tools."""

from langchain_core.messages import HumanMessage, SystemMessage, ToolMessage
from langchain_openai import ChatOpenAI

from talk import OUTPUT, PROMPT, SYSTEM, TOOL, Report


def chat(stream):
    report = Report(f"chat, {'streamed' if stream else 'plain'}")
    model = ChatOpenAI(model="scripted-1", api_key="sk-real-client-key-1", stream_usage=True)
    model = model.bind_tools([{"type": "function", "function": TOOL}])
    messages = [SystemMessage(SYSTEM), HumanMessage(PROMPT)]
    while True:
        if stream:
            answer = None
            for chunk in model.stream(messages):
                answer = chunk if answer is None else answer + chunk
        else:
            answer = model.invoke(messages)
        usage = answer.usage_metadata
        report.answer(answer.content, [call["args"] for call in answer.tool_calls], usage["input_tokens"],
                      usage["output_tokens"])
        messages.append(answer)
        if not answer.tool_calls:
            return report.print()
        messages += [ToolMessage(OUTPUT, tool_call_id=call["id"]) for call in answer.tool_calls]


for streamed in (False, True):
    chat(streamed)
