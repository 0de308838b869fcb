"""The OpenAI Agents SDK, by chat completions and by Responses, plain and streamed."""

import asyncio

from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI

from talk import OUTPUT, PROMPT, SYSTEM, Report

set_tracing_disabled(True)


@function_tool(strict_mode=False)
def bash(command: str, description: str = "") -> str:
    """Runs a command."""
    return OUTPUT


def report_case(case, responses):
    report = Report(case)
    for response in responses:
        said = "".join(part.text for item in response.output if item.type == "message" for part in item.content)
        calls = [item.arguments for item in response.output if item.type == "function_call"]
        report.answer(said, calls, response.usage.input_tokens, response.usage.output_tokens)
    report.print()


async def chat(name, kind):
    client = AsyncOpenAI(api_key="sk-real-client-key-1")
    agent = Agent(name="Counter", instructions=SYSTEM, model=kind("scripted-1", client), tools=[bash])
    plain = await Runner.run(agent, PROMPT)
    report_case(f"{name}, plain", plain.raw_responses)
    streamed = Runner.run_streamed(agent, PROMPT)
    async for _ in streamed.stream_events():
        pass
    report_case(f"{name}, streamed", streamed.raw_responses)


asyncio.run(chat("chat", OpenAIChatCompletionsModel))
asyncio.run(chat("responses", OpenAIResponsesModel))
