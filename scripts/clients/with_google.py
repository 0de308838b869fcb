"""The `google-genai` library: plain and streamed, with tools."""

from google import genai
from google.genai import types

from talk import OUTPUT, PROMPT, SYSTEM, TOOL, Report

client = genai.Client(api_key="real-client-key-1")
function = types.FunctionDeclaration(name=TOOL["name"], description=TOOL["description"],
                                     parameters_json_schema=TOOL["parameters"])
config = types.GenerateContentConfig(
    system_instruction=SYSTEM, tools=[types.Tool(function_declarations=[function])],
    automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True))


def chat(stream):
    report = Report(f"chat, {'streamed' if stream else 'plain'}")
    conversation = client.chats.create(model="scripted-1", config=config)
    given = PROMPT
    while True:
        chunks = list(conversation.send_message_stream(given)) if stream else [conversation.send_message(given)]
        calls = [call for chunk in chunks for call in chunk.function_calls or []]
        parts = [part for chunk in chunks for part in chunk.candidates[0].content.parts]
        usage = chunks[-1].usage_metadata
        report.answer("".join(part.text or "" for part in parts), [call.args for call in calls],
                      usage.prompt_token_count, usage.candidates_token_count)
        if not calls:
            return report.print()
        given = [types.Part.from_function_response(name=call.name, response={"output": OUTPUT}) for call in calls]


chat(False)
chat(True)
