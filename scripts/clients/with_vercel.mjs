// The `ai` SDK by Vercel: three vendors, plain and streamed, with tools that it runs itself.

import { createAnthropic } from "@ai-sdk/anthropic";
import { createGoogleGenerativeAI } from "@ai-sdk/google";
import { createOpenAI } from "@ai-sdk/openai";
import { generateText, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

const apiKey = "sk-real-client-key-1";
const google = createGoogleGenerativeAI({ apiKey, baseURL: `${process.env.GOOGLE_GEMINI_BASE_URL}/v1beta` });
const openai = createOpenAI({ apiKey });
const models = {
  "openai chat": openai.chat("scripted-1"),
  "openai responses": openai.responses("scripted-1"),
  anthropic: createAnthropic({ apiKey })("scripted-1"),
  google: google("scripted-1"),
};
const bash = tool({
  description: "Runs a command.",
  inputSchema: z.object({ command: z.string(), description: z.string().optional() }),
  execute: async () => "3-4-5-6-7",
});

for (const [name, model] of Object.entries(models)) {
  for (const streamed of [false, true]) {
    const asked = {
      model,
      system: "You count birds.",
      prompt: "Please count every heron for me.",
      tools: { bash },
      stopWhen: stepCountIs(5),
    };
    const result = streamed ? streamText(asked) : await generateText(asked);
    const steps = await result.steps;
    const usage = await result.totalUsage;
    const report = {
      calls: steps.flatMap((step) => step.toolCalls.map((call) => call.input)),
      case: `${name}, ${streamed ? "streamed" : "plain"}`,
      said: steps.map((step) => step.text),
      tokens: [usage.inputTokens, usage.outputTokens],
    };
    console.log(JSON.stringify(report));
  }
}
