"""boto3 with Bedrock's Converse, plain and streamed, with tools."""

import json

import boto3

from talk import OUTPUT, PARAMETERS, PROMPT, SYSTEM, TOOL, Report

client = boto3.client("bedrock-runtime", region_name="us-east-1", aws_access_key_id="AKIDREALCLIENT",
                      aws_secret_access_key="real-client-key-1")
TOOLS = {"tools": [{"toolSpec": {"name": TOOL["name"], "description": TOOL["description"],
                                 "inputSchema": {"json": PARAMETERS}}}]}


def converse(messages):
    answer = client.converse(modelId="scripted-1", messages=messages, system=[{"text": SYSTEM}], toolConfig=TOOLS)
    return answer["output"]["message"], answer["usage"]


def converse_stream(messages):
    answer = client.converse_stream(modelId="scripted-1", messages=messages, system=[{"text": SYSTEM}], toolConfig=TOOLS)
    said, call, usage = "", None, None
    for event in answer["stream"]:
        if "contentBlockStart" in event:
            call = {**event["contentBlockStart"]["start"]["toolUse"], "input": ""}
        elif "contentBlockDelta" in event:
            delta = event["contentBlockDelta"]["delta"]
            said += delta.get("text", "")
            if "toolUse" in delta:
                call["input"] += delta["toolUse"]["input"]
        elif "metadata" in event:
            usage = event["metadata"]["usage"]
    content = [{"text": said}]
    if call:
        content.append({"toolUse": {**call, "input": json.loads(call["input"])}})
    return {"role": "assistant", "content": content}, usage


def chat(case, ask):
    report = Report(f"converse, {case}")
    messages = [{"role": "user", "content": [{"text": PROMPT}]}]
    while True:
        message, usage = ask(messages)
        calls = [block["toolUse"] for block in message["content"] if "toolUse" in block]
        said = "".join(block.get("text", "") for block in message["content"])
        report.answer(said, [call["input"] for call in calls], usage["inputTokens"], usage["outputTokens"])
        messages.append(message)
        if not calls:
            return report.print()
        results = [{"toolResult": {"toolUseId": call["toolUseId"], "content": [{"text": OUTPUT}]}} for call in calls]
        messages.append({"role": "user", "content": results})


chat("plain", converse)
chat("streamed", converse_stream)
