"""Pydantic AI: an agent that runs its tool itself, plain and streamed."""

import asyncio

from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from talk import OUTPUT, PROMPT, SYSTEM, Report


def agent():
    model = OpenAIChatModel("scripted-1", provider=OpenAIProvider(api_key="sk-real-client-key-1"))
    made = Agent(model, system_prompt=SYSTEM)

    @made.tool_plain
    def bash(command: str, description: str = "") -> str:
        """Runs a command."""
        return OUTPUT

    return made


def report_case(case, messages):
    report = Report(case)
    for message in messages:
        if isinstance(message, ModelResponse):
            said = "".join(part.content for part in message.parts if isinstance(part, TextPart))
            calls = [part.args_as_dict() for part in message.parts if isinstance(part, ToolCallPart)]
            report.answer(said, calls, message.usage.input_tokens, message.usage.output_tokens)
    report.print()


async def chat():
    plain = await agent().run(PROMPT)
    report_case("agent, plain", plain.all_messages())
    async with agent().iter(PROMPT) as run:
        async for node in run:
            if Agent.is_model_request_node(node):
                async with node.stream(run.ctx) as events:
                    async for _ in events:
                        pass
    report_case("agent, streamed", run.result.all_messages())


asyncio.run(chat())
