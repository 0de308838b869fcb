//! Logs of the Agent Client Protocol: what one session may hold many times.

use serde_json::{Value, json};

use super::{GrowingInput, InputFiles};

/// A short session.
pub(crate) fn sample() -> InputFiles {
    let lines = [
        client(json!({"id": 0, "method": "initialize", "params": {"clientInfo": {"name": "e"}}})),
        agent(json!({"id": 0, "result": {"protocolVersion": 1, "agentInfo": {"name": "a"}}})),
        client(json!({"id": 1, "method": "session/new", "params": {"cwd": "/w"}})),
        agent(json!({"id": 1, "result": {"sessionId": "s"}})),
        prompt(2, "Fix it"),
        update(json!({"sessionUpdate": "user_message_chunk", "content": text("Fix it")})),
        update(json!({"sessionUpdate": "agent_thought_chunk", "content": text("Hm")})),
        update(
            json!({"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": text("Look")}),
        ),
        tool(
            json!({"toolCallId": "c", "title": "ls", "kind": "execute", "rawInput": {"command": "ls"}}),
        ),
        tool(json!({"toolCallId": "c", "status": "completed", "content": [
            {"type": "content", "content": text("a")},
            {"type": "diff", "path": "a", "oldText": "a\nb\n", "newText": "a\nc\n"},
        ]})),
        agent(json!({"id": 9, "method": "session/request_permission", "params": {
            "toolCall": {"toolCallId": "c"}, "options": [{"optionId": "y", "kind": "allow_once", "name": "Yes"}],
        }})),
        client(json!({"id": 9, "result": {"outcome": {"outcome": "selected", "optionId": "y"}}})),
        update(
            json!({"sessionUpdate": "plan", "entries": [{"content": "a", "status": "completed"}]}),
        ),
        agent(
            json!({"id": 2, "result": {"stopReason": "end_turn", "usage": {"inputTokens": 3, "outputTokens": 2}}}),
        ),
    ];
    vec![("wire.jsonl".into(), lines.concat().into_bytes())]
}

/// The name of a repeated event, and the lines for one.
type RepeatedLine = (&'static str, fn(usize) -> String);

/// Sessions that repeat one event many times.
pub(crate) fn inputs() -> Vec<GrowingInput> {
    let repeated: [RepeatedLine; 14] = [
        ("lines that are no messages", |_| {
            format!("{}\n", json!({"acp": "agent", "text": "stray"}))
        }),
        ("tool calls", |n| tool(json!({"toolCallId": n.to_string(), "title": "ls"}))),
        ("tool calls with results", |n| {
            tool(json!({"toolCallId": n.to_string(), "status": "completed", "rawOutput": "a"}))
        }),
        ("results of one tool", |n| {
            tool(
                json!({"toolCallId": "c", "status": "completed", "_meta": {"terminal_output": {"data": n.to_string()}}}),
            )
        }),
        ("pieces of one tool", |n| {
            let piece = json!({"type": "content", "content": text(&n.to_string())});
            update(
                json!({"sessionUpdate": "tool_call_content_chunk", "toolCallId": "c", "content": piece}),
            )
        }),
        ("chunks of one message", |n| {
            update(json!({"sessionUpdate": "agent_message_chunk", "content": text(&n.to_string())}))
        }),
        ("chunks with something beside them", |n| {
            let chunk = json!({"sessionUpdate": "agent_message_chunk", "content": text("a"), "_meta": {"n": n}});
            update(chunk)
        }),
        ("echoes of a prompt", |n| {
            let id = n.to_string();
            update(
                json!({"sessionUpdate": "user_message_chunk", "messageId": id, "content": text("Hm")}),
            )
        }),
        ("compactions", |n| {
            update(
                json!({"sessionUpdate": "compaction_update", "compactionId": n.to_string(), "summary": text("a")}),
            )
        }),
        ("turns", |n| {
            let result = json!({"id": n + 100, "result": {"stopReason": "end_turn", "usage": {"inputTokens": 3}}});
            prompt(n + 100, "More") + &agent(result)
        }),
        ("prompts without an answer", |n| prompt(n + 100, "More")),
        ("loads", |n| {
            let load =
                json!({"id": n + 100, "method": "session/load", "params": {"sessionId": "s"}});
            let message = json!({"sessionUpdate": "agent_message_chunk", "messageId": n.to_string(), "content": text("a")});
            client(load) + &update(message)
        }),
        ("calls that show one terminal", |n| {
            let data = json!({"sessionUpdate": "terminal_output_chunk", "terminalId": "t", "data": "YWFhYWFhYWFhYWFh"});
            let call = json!({"toolCallId": n.to_string(), "content": [{"type": "terminal", "terminalId": "t"}]});
            update(data) + &tool(call)
        }),
        ("updates of an unknown kind", |n| {
            update(json!({"sessionUpdate": "never-heard-of", "n": n}))
        }),
    ];
    let mut inputs: Vec<GrowingInput> = repeated
        .into_iter()
        .map(|(name, line)| {
            let make = move |count: usize| in_session((0..count).map(line).collect());
            GrowingInput { name: name.to_owned(), make: Box::new(make) }
        })
        .collect();
    inputs.push(GrowingInput {
        name: "a change of all lines".to_owned(),
        make: Box::new(changed_lines),
    });
    inputs
}

/// A tool that replaced every line of a file.
fn changed_lines(count: usize) -> InputFiles {
    let lines = |of: &str| (0..count).map(|number| format!("{of}{number}\n")).collect::<String>();
    let change = json!({"type": "diff", "path": "a", "oldText": lines("a"), "newText": lines("b")});
    in_session(tool(json!({"toolCallId": "d", "status": "completed", "content": [change]})))
}

/// Lines between the beginning of a session and its end.
fn in_session(lines: String) -> InputFiles {
    let (name, sample) = sample().remove(0);
    vec![(name, [sample, lines.into_bytes()].concat())]
}

fn line(side: &str, mut message: Value) -> String {
    message["jsonrpc"] = "2.0".into();
    format!("{{\"acp\":\"{side}\",\"message\":{message}}}\n")
}

fn client(message: Value) -> String {
    line("client", message)
}

fn agent(message: Value) -> String {
    line("agent", message)
}

fn prompt(id: usize, said: &str) -> String {
    client(
        json!({"id": id, "method": "session/prompt", "params": {"sessionId": "s", "prompt": [text(said)]}}),
    )
}

fn update(update: Value) -> String {
    agent(json!({"method": "session/update", "params": {"sessionId": "s", "update": update}}))
}

fn tool(mut call: Value) -> String {
    call["sessionUpdate"] = "tool_call_update".into();
    update(call)
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}
