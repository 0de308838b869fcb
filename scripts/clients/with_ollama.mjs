// Ollama's own library for JavaScript, plain and streamed, with tools.

import { Ollama } from "ollama";

const client = new Ollama({
  host: process.env.OLLAMA_HOST,
  headers: { Authorization: "Bearer real-client-key-1" },
});
const bash = {
  type: "function",
  function: {
    name: "bash",
    description: "Runs a command.",
    parameters: {
      type: "object",
      properties: { command: { type: "string" }, description: { type: "string" } },
      required: ["command"],
    },
  },
};

for (const stream of [false, true]) {
  const report = { calls: [], case: `chat, ${stream ? "streamed" : "plain"}`, said: [], tokens: [0, 0] };
  const messages = [
    { role: "system", content: "You count birds." },
    { role: "user", content: "Please count every heron for me." },
  ];
  for (;;) {
    const answer = await client.chat({ model: "scripted-1", messages, tools: [bash], stream });
    const chunks = [];
    if (stream) for await (const chunk of answer) chunks.push(chunk);
    else chunks.push(answer);
    const content = chunks.map((chunk) => chunk.message.content ?? "").join("");
    const calls = chunks.flatMap((chunk) => chunk.message.tool_calls ?? []);
    const last = chunks.at(-1);
    report.said.push(content);
    report.calls.push(...calls.map((call) => call.function.arguments));
    report.tokens[0] += last.prompt_eval_count;
    report.tokens[1] += last.eval_count;
    messages.push({ role: "assistant", content, tool_calls: calls });
    if (calls.length === 0) break;
    for (const call of calls) {
      messages.push({ role: "tool", tool_name: call.function.name, content: "3-4-5-6-7" });
    }
  }
  console.log(JSON.stringify(report));
}
