//! Tests of the conversation builder, with lines that real agents send.

use serde_json::{Value, json};

use super::wire::{AcpSide, WireLine};
use super::{
    AcpConversationBuilder, AcpSessionFacts, BrokenTurn, PROMPT_MODE_KEY, STOP_REASON_KEY,
    wire_metadata,
};
use crate::join::join_recorded;
use steno_model::entry::{Entry, EntryKind, Role};

/// Builds a conversation from wire lines.
#[derive(Default)]
struct Talk {
    fold: AcpConversationBuilder,
    second: i64,
}

impl Talk {
    fn line(&mut self, side: AcpSide, line: &str) -> &mut Self {
        self.second += 1;
        let at = steno_model::Timestamp::from_unix(1_770_000_000 + self.second);
        self.fold.add_line(at, &WireLine { side, bytes: line.as_bytes().to_vec() });
        self
    }

    fn client(&mut self, message: Value) -> &mut Self {
        self.line(AcpSide::Client, &message.to_string())
    }

    fn agent(&mut self, message: Value) -> &mut Self {
        self.line(AcpSide::Agent, &message.to_string())
    }

    fn update(&mut self, kind: &str, fields: Value) -> &mut Self {
        let mut update = json!({ "sessionUpdate": kind });
        update.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let params = json!({ "sessionId": "s", "update": update });
        self.agent(json!({ "method": "session/update", "params": params }))
    }

    fn chunk(&mut self, kind: &str, id: Option<&str>, text: &str) -> &mut Self {
        let content = json!({ "type": "text", "text": text });
        let mut fields = json!({ "content": content });
        if let Some(id) = id {
            fields["messageId"] = id.into();
        }
        self.update(kind, fields)
    }

    fn prompt(&mut self, id: u32, text: &str) -> &mut Self {
        let prompt = json!([{ "type": "text", "text": text }]);
        let params = json!({ "sessionId": "s", "prompt": prompt });
        self.client(json!({ "id": id, "method": "session/prompt", "params": params }))
    }

    fn stop(&mut self, id: u32) -> &mut Self {
        self.agent(json!({ "id": id, "result": { "stopReason": "end_turn" } }))
    }

    fn finish(&mut self) -> (AcpSessionFacts, Vec<Entry>) {
        std::mem::take(&mut self.fold).finish()
    }

    fn entry_texts(&mut self) -> Vec<(EntryKind, String)> {
        self.finish().1.into_iter().map(|entry| (entry.kind, entry.content)).collect()
    }
}

fn owned_texts(entries: &[(EntryKind, &str)]) -> Vec<(EntryKind, String)> {
    entries.iter().map(|(kind, text)| (*kind, (*text).to_owned())).collect()
}

const MESSAGE: &str = "agent_message_chunk";
const THOUGHT: &str = "agent_thought_chunk";

#[test]
fn a_thought_and_an_answer_may_share_an_id() {
    let mut talk = Talk::default();
    talk.prompt(1, "hi").chunk(THOUGHT, Some("m"), "a").chunk(MESSAGE, Some("m"), "b");
    talk.update("usage_update", json!({ "used": 5, "size": 9 }));
    talk.chunk(MESSAGE, Some("m"), "c").stop(1);
    let expected = [(EntryKind::Text, "hi"), (EntryKind::Thinking, "a"), (EntryKind::Text, "bc")];
    assert_eq!(talk.entry_texts(), owned_texts(&expected));
}

#[test]
fn a_named_message_goes_on_after_a_tool() {
    let mut talk = Talk::default();
    talk.chunk(MESSAGE, Some("m"), "a").update("tool_call", json!({ "toolCallId": "t" }));
    talk.chunk(MESSAGE, Some("m"), "b").chunk(MESSAGE, Some("n"), "c");
    let expected = [(EntryKind::Text, "ab"), (EntryKind::ToolCall, ""), (EntryKind::Text, "c")];
    assert_eq!(talk.entry_texts(), owned_texts(&expected));
}

#[test]
fn without_ids_turns_and_tools_part_messages() {
    let mut talk = Talk::default();
    talk.prompt(1, "p").chunk(MESSAGE, None, "a").stop(1);
    talk.prompt(2, "q").chunk(MESSAGE, None, "b");
    talk.update("tool_call", json!({ "toolCallId": "t" })).chunk(MESSAGE, None, "c");
    talk.chunk(MESSAGE, None, "").stop(2).chunk(MESSAGE, None, "d");
    let texts: Vec<String> = talk.entry_texts().into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts, ["p", "a", "q", "b", "", "c", "d"]);
}

#[test]
fn a_tool_is_called_by_its_name_and_only_without_one_by_its_kind() {
    let mut talk = Talk::default();
    let tools = [
        json!({ "name": "list_files" }),
        json!({ "_meta": { "toolName": "list_files" } }),
        json!({ "_meta": { "other": 1, "claudeCode": { "toolName": "list_files" } } }),
        json!({ "name": "", "_meta": null }),
    ];
    for (at, tool) in tools.iter().enumerate() {
        let id = format!("t{at}");
        let announced = json!({ "toolCallId": id, "title": "Look", "kind": "search" });
        talk.update("tool_call", announced);
        let mut done = json!({ "toolCallId": id, "title": "Looked", "status": "completed" });
        done.as_object_mut().unwrap().extend(tool.as_object().unwrap().clone());
        talk.update("tool_call_update", done);
    }
    let entries = talk.finish().1;
    let names: Vec<_> = entries.iter().map(|entry| entry.tool_name.as_deref().unwrap()).collect();
    let named = ["list_files"; 6].into_iter().chain(["search"; 2]);
    assert_eq!(names, named.collect::<Vec<_>>());
}

#[test]
fn every_turn_has_its_end_and_every_prompt_its_mode() {
    let mut talk = Talk::default();
    let mode = json!({ "sessionId": "s", "modeId": "plan" });
    talk.client(json!({ "id": 9, "method": "session/set_mode", "params": mode }));
    talk.prompt(1, "silent").stop(1);
    talk.prompt(2, "answered").chunk(MESSAGE, None, "a").stop(2);
    talk.prompt(3, "crash").chunk(MESSAGE, None, "b");
    talk.fold.interrupt_turn(None, BrokenTurn::Failed("gone"));
    talk.fold.begin_connection();
    talk.prompt(4, "away").fold.interrupt_turn(None, BrokenTurn::Cancelled);
    // After a completed turn there is nothing to interrupt.
    talk.prompt(5, "last").stop(5).fold.interrupt_turn(None, BrokenTurn::Failed("gone"));
    let entries = talk.finish().1;
    let about = |entry: &Entry| {
        let [end, mode] = [STOP_REASON_KEY, PROMPT_MODE_KEY].map(|name| wire_metadata(entry, name));
        format!("{}: {} {}", entry.content, end.unwrap_or("-"), mode.unwrap_or("-"))
    };
    let expected = [
        "silent: end_turn plan",
        "answered: - plan",
        "a: end_turn -",
        "crash: - plan",
        "b: - -",
        "gone: - -",
        "away: - -",
        "turn ended: cancelled: cancelled -",
        "last: end_turn -",
    ];
    assert_eq!(entries.iter().map(about).collect::<Vec<_>>(), expected);
    assert_eq!((entries[5].kind, &entries[5].role), (EntryKind::Error, &Role::System));
}

#[test]
fn a_tool_may_be_known_by_its_permission_alone() {
    let mut talk = Talk::default();
    let call = json!({ "toolCallId": "t", "title": "ls", "kind": "execute", "status": "pending" });
    let options = json!([{ "optionId": "no", "name": "Never", "kind": "reject_always" }]);
    let params = json!({ "sessionId": "s", "toolCall": call, "options": options });
    talk.agent(json!({ "id": 0, "method": "session/request_permission", "params": params }));
    // The editor's own request has the same id.
    talk.client(json!({ "id": 0, "method": "session/set_mode", "params": { "sessionId": "s" } }));
    talk.agent(json!({ "id": 0, "result": {} }));
    let outcome = json!({ "outcome": "selected", "optionId": "no" });
    talk.client(json!({ "id": 0, "result": { "outcome": outcome } }));
    talk.update(
        "tool_call_update",
        json!({ "toolCallId": "t", "status": "failed", "content": [] }),
    );
    let entries = talk.finish().1;
    let kinds: Vec<EntryKind> = entries.iter().map(|entry| entry.kind).collect();
    assert_eq!(kinds, [EntryKind::ToolCall, EntryKind::Notice, EntryKind::ToolResult]);
    assert_eq!(entries[0].tool_name.as_deref(), Some("execute"));
    assert_eq!(entries[1].content, "reject always: Never");
    let permission = &entries[1].metadata.as_ref().unwrap()["permission"];
    assert_eq!(permission["waited_ms"], 3000);
    assert!(entries[2].is_tool_error());
}

#[test]
fn updates_of_a_tool_become_one_call_and_one_result() {
    let mut talk = Talk::default();
    let meta = |name: &str| json!({ "claudeCode": { "toolName": name, "toolResponse": 1 } });
    let first = json!({ "toolCallId": "t", "title": "x", "rawInput": {}, "_meta": meta("Bash") });
    talk.update("tool_call", first.clone()).update("tool_call", first);
    talk.update("tool_call_update", json!({ "toolCallId": "t", "rawInput": { "command": "ls" } }));
    let done = json!({ "toolCallId": "t", "status": "completed", "rawOutput": "a\n", "_meta": {} });
    talk.update("tool_call_update", done);
    let entries = talk.finish().1;
    assert_eq!(entries.len(), 2);
    assert_eq!(entries[0].tool_name.as_deref(), Some("Bash"));
    assert_eq!(entries[0].tool_input, Some(json!({ "command": "ls" })));
    let about = entries[0].metadata.as_ref().unwrap();
    assert_eq!(about["_meta"], json!([meta("Bash"), {}]), "what was replaced is kept");
    assert_eq!(entries[1].content, "a\n");
}

#[test]
fn tools_that_never_ended_answer_in_the_order_of_their_calls() {
    let mut talk = Talk::default();
    let names: Vec<String> = (0..9).map(|at| format!("t{}", at * 7 % 9)).collect();
    for name in &names {
        let content = json!([{ "type": "content", "content": { "type": "text", "text": name } }]);
        talk.update("tool_call", json!({ "toolCallId": name, "content": content }));
    }
    let results = talk.entry_texts().into_iter().filter(|(kind, _)| *kind == EntryKind::ToolResult);
    assert_eq!(results.map(|(_, text)| text).collect::<Vec<_>>(), names);
}

#[test]
fn output_is_found_wherever_an_agent_puts_it() {
    let mut talk = Talk::default();
    let delta = |data: &str| json!({ "toolCallId": "t", "_meta": { "terminal_output_delta": { "data": data } } });
    let terminal = json!([{ "type": "terminal", "terminalId": "x" }]);
    talk.update("tool_call", json!({ "toolCallId": "t", "content": terminal }));
    talk.update("tool_call_update", delta("a")).update("tool_call_update", delta("b"));
    talk.update("tool_call_update", json!({ "toolCallId": "t", "status": "completed" }));
    let diff = json!([{ "type": "diff", "path": "/f", "oldText": "a\nb\n", "newText": "a\nc\n" }]);
    let edit = json!({ "toolCallId": "u", "status": "completed", "content": diff });
    talk.update("tool_call_update", edit);
    talk.agent(json!({ "id": 9, "method": "terminal/output", "params": { "terminalId": "y" } }));
    talk.client(json!({ "id": 9, "result": { "output": "from the editor" } }));
    let shown = json!([{ "type": "terminal", "terminalId": "y" }]);
    talk.update("tool_call", json!({ "toolCallId": "v", "status": "completed", "content": shown }));
    let results: Vec<String> = talk
        .entry_texts()
        .into_iter()
        .filter(|(kind, _)| *kind == EntryKind::ToolResult)
        .map(|(_, text)| text)
        .collect();
    assert_eq!(results, ["ab", "/f\n a\n-b\n+c\n", "from the editor"]);
}

#[test]
fn version_2_replaces_echoes_and_ends_turns_its_own_way() {
    let mut talk = Talk::default();
    talk.prompt(1, "hi").agent(json!({ "id": 1, "result": { "messageId": "u1" } }));
    let hi = json!([{ "type": "text", "text": "hi" }]);
    talk.update("user_message", json!({ "messageId": "u1", "content": hi }));
    talk.update("agent_message", json!({ "messageId": "m", "content": [] }));
    talk.chunk(MESSAGE, Some("m"), "a").chunk(MESSAGE, Some("m"), "b");
    let whole = json!([{ "type": "text", "text": "ab" }]);
    talk.update("agent_message", json!({ "messageId": "m", "content": whole }));
    let data = |text: &str| json!({ "terminalId": "x", "data": text });
    talk.update("terminal_output_chunk", data("YQ=="))
        .update("terminal_output_chunk", data("Yg=="));
    let shown = json!([{ "type": "terminal", "terminalId": "x" }]);
    talk.update(
        "tool_call_update",
        json!({ "toolCallId": "t", "status": "completed", "content": shown }),
    );
    let usage =
        json!({ "inputTokens": 10, "outputTokens": 4, "cachedReadTokens": 6, "totalTokens": 14 });
    talk.update(
        "state_update",
        json!({ "state": "idle", "stopReason": "max_tokens", "usage": usage }),
    );
    let (facts, entries) = talk.finish();
    assert_eq!(facts.stop_reason.as_deref(), Some("max_tokens"));
    let texts: Vec<_> = entries.iter().map(|entry| entry.content.as_str()).collect();
    assert_eq!(texts, ["hi", "ab", "", "ab", "turn ended: max_tokens"]);
    assert_eq!(entries[0].message_id.as_deref(), Some("u1"));
    let usage = entries[2].usage.unwrap();
    assert_eq!((usage.input, usage.cache_read, usage.output), (4, 6, 4));
}

/// A whole conversation in version 2.
fn talk_in_version_2() -> Talk {
    let mut talk = Talk::default();
    talk.client(json!({ "id": 0, "method": "initialize", "params": { "protocolVersion": 2 } }));
    let info = json!({ "protocolVersion": 2, "info": { "name": "x" }, "capabilities": {} });
    talk.agent(json!({ "id": 0, "result": info })).prompt(1, "hi");
    let tool = |fields: Value| {
        let mut update = json!({ "toolCallId": "t", "title": "Run", "kind": "execute" });
        update.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        update
    };
    talk.update(
        "tool_call_update",
        tool(json!({ "content": [{ "type": "terminal", "terminalId": "x" }] })),
    );
    talk.update("terminal_update", json!({ "terminalId": "x", "command": "ls", "cwd": "/w" }));
    // One character in two chunks.
    for data in ["w6Q=", "4oI=", "rA=="] {
        talk.update("terminal_output_chunk", json!({ "terminalId": "x", "data": data }));
    }
    let exit = json!({ "exitCode": 3 });
    talk.update("terminal_update", json!({ "terminalId": "x", "cwd": null, "exitStatus": exit }));
    talk.update("tool_call_update", tool(json!({ "status": "failed" })));
    let changes = json!([
        { "operation": "move", "oldPath": "/w/a", "path": "/w/b" },
        { "operation": "add", "path": "/w/c" },
    ]);
    let content = json!([{ "type": "diff", "changes": changes }]);
    talk.update(
        "tool_call_update",
        json!({ "toolCallId": "u", "rawOutput": "old", "content": content }),
    );
    talk.update("tool_call_update", json!({ "toolCallId": "u", "status": "completed" }));
    let message = json!([{ "type": "content", "content": { "type": "text", "text": "gone" } }]);
    talk.update(
        "tool_call_update",
        json!({ "toolCallId": "v", "rawOutput": "raw", "content": message }),
    );
    let emptied = json!({ "toolCallId": "v", "status": "completed", "content": null });
    talk.update("tool_call_update", emptied);
    let entries =
        json!([{ "content": "a", "status": "completed" }, { "content": "b", "status": "pending" }]);
    talk.update(
        "plan_update",
        json!({ "plan": { "type": "items", "planId": "p", "entries": entries } }),
    );
    talk.update(
        "plan_update",
        json!({ "plan": { "type": "markdown", "planId": "p", "content": "# P" } }),
    );
    talk.update("state_update", json!({ "state": "requires_action" }));
    let ask = json!({
        "sessionId": "s", "title": "May I?", "subject": { "type": "command", "command": "rm x" },
        "options": [{ "optionId": "n", "name": "No", "kind": "reject_once" }],
    });
    talk.agent(json!({ "id": 5, "method": "session/request_permission", "params": ask }));
    let no = json!({ "outcome": { "outcome": "selected", "optionId": "n" } });
    talk.client(json!({ "id": 5, "result": no }));
    talk.update("state_update", json!({ "state": "idle", "stopReason": "end_turn" }));
    talk
}

#[test]
fn version_2_has_terminals_plans_and_changes_of_its_own() {
    let (facts, entries) = talk_in_version_2().finish();
    assert_eq!(
        (&facts.details["version"], &facts.details["agent"]["name"]),
        (&2.into(), &"x".into())
    );
    let texts: Vec<_> = entries.iter().map(|entry| entry.content.as_str()).collect();
    let moved = "move /w/a -> /w/b\nadd /w/c\n";
    let plan = "[x] a\n[ ] b";
    assert_eq!(texts, ["hi", "", "ä€", "", moved, "", "raw", plan, "# P", "reject once: No"]);
    let terminal = &entries[2].metadata.as_ref().unwrap()["terminal"];
    assert_eq!(*terminal, json!({ "command": "ls", "exitStatus": { "exitCode": 3 } }));
    let asked = &entries[9].metadata.as_ref().unwrap()["permission"];
    assert_eq!((&asked["title"], &asked["subject"]["command"]), (&"May I?".into(), &"rm x".into()));
}

#[test]
fn emits_a_replay_once() {
    let mut talk = Talk::default();
    talk.prompt(1, "hi").chunk(THOUGHT, Some("m"), "\n\nhm").chunk(MESSAGE, None, "yes");
    talk.update("tool_call", json!({ "toolCallId": "t", "status": "completed", "rawOutput": "o" }));
    talk.stop(1);
    let load = json!({ "sessionId": "s", "cwd": "/w" });
    talk.client(json!({ "id": 2, "method": "session/load", "params": load }));
    talk.chunk("user_message_chunk", None, "before").chunk(MESSAGE, None, "known?");
    talk.chunk("user_message_chunk", None, "hi").chunk(THOUGHT, Some("m"), "hm");
    talk.chunk(MESSAGE, None, "y").chunk(MESSAGE, None, "es");
    talk.agent(json!({ "id": 2, "result": {} }));
    // Some agents continue after they have sent the response.
    talk.update("tool_call", json!({ "toolCallId": "t", "status": "completed", "rawOutput": "o" }));
    talk.prompt(3, "more");
    let (facts, entries) = talk.finish();
    let texts: Vec<_> = entries.iter().map(|entry| entry.content.as_str()).collect();
    assert_eq!(texts, ["hi", "\n\nhm", "yes", "", "o", "before", "known?", "more"]);
    assert_eq!(entries[5].metadata.as_ref().unwrap()["replayed"], true);
    assert_eq!(facts.project.as_deref(), Some("/w"));
}

#[test]
fn a_turn_has_tokens_model_and_end() {
    let mut talk = Talk::default();
    let quota = json!({ "token_count": { "input_tokens": 7, "output_tokens": 3 },
        "model_usage": [{ "model": "gemini-x" }] });
    talk.prompt(1, "a").chunk(MESSAGE, None, "b");
    talk.agent(
        json!({ "id": 1, "result": { "stopReason": "cancelled", "_meta": { "quota": quota } } }),
    );
    talk.prompt(2, "c").update("tool_call", json!({ "toolCallId": "t", "status": "pending" }));
    talk.update(
        MESSAGE,
        json!({ "content": { "type": "text", "text": "" },
        "_meta": { "usage": { "inputTokens": 2, "outputTokens": 1 } } }),
    );
    talk.stop(2).prompt(3, "d");
    talk.agent(json!({ "id": 3, "error": { "code": -32000, "message": "log in first" } }));
    let entries = talk.finish().1;
    let kinds: Vec<(EntryKind, &str)> =
        entries.iter().map(|e| (e.kind, e.content.as_str())).collect();
    let expected = [
        (EntryKind::Text, "a"),
        (EntryKind::Text, "b"),
        (EntryKind::Notice, "turn ended: cancelled"),
        (EntryKind::Text, "c"),
        (EntryKind::ToolCall, ""),
        (EntryKind::Text, ""),
        (EntryKind::Text, "d"),
        (EntryKind::Error, "log in first"),
    ];
    assert_eq!(kinds, expected);
    assert_eq!(entries[1].model.as_deref(), Some("gemini-x"));
    assert_eq!(entries[1].usage.unwrap().input, 7);
    assert_eq!(entries[5].usage.unwrap().output, 1);
    assert_eq!(entries[4].metadata.as_ref().unwrap()["status"], "unknown");
}

#[test]
fn unknown_updates_survive() {
    let mut talk = Talk::default();
    talk.line(AcpSide::Agent, "Warning: old node\r\n").line(AcpSide::Agent, "\n");
    talk.update("from_the_future", json!({ "deep": [1] }));
    talk.agent(json!({ "method": "_vendor/thing", "params": { "x": 1 } }));
    talk.line(AcpSide::Client, "[{\"method\":\"_a\"},{\"method\":\"_b\"}]")
        .line(AcpSide::Client, "7");
    talk.update("plan", json!({ "entries": [{ "content": "do", "status": "completed" }] }));
    let entries = talk.finish().1;
    let kinds: Vec<EntryKind> = entries.iter().map(|entry| entry.kind).collect();
    let other = EntryKind::Other;
    assert_eq!(kinds, [EntryKind::Notice, other, other, other, other, other, EntryKind::Notice]);
    assert_eq!(entries[0].content, "Warning: old node");
    assert_eq!(entries[1].metadata.as_ref().unwrap()["deep"], json!([1]));
    assert_eq!(entries[6].content, "[x] do");
}

#[test]
fn shows_pictures_by_their_hash() {
    let mut talk = Talk::default();
    let prompt = json!([{ "type": "text", "text": "see" },
        { "type": "image", "mimeType": "image/png", "data": "aGVsbG8=" },
        { "type": "resource_link", "uri": "file:///a", "name": "a" }]);
    talk.client(json!({ "id": 1, "method": "session/prompt", "params": { "prompt": prompt } }));
    let entries = talk.finish().1;
    let sum = blake3::hash(b"hello");
    let picture = format!("[image/png, 5 bytes, blake3 {sum}]");
    assert_eq!(entries[0].content, format!("see\n{picture}\nfile:///a\n"));
    let kept = &entries[0].metadata.as_ref().unwrap()["prompt"];
    assert_eq!(kept[1]["data"], picture.as_str());
}

#[test]
fn both_accounts_of_a_session_are_one() {
    let entry = |role: Role, kind, text: &str, id: Option<&str>| {
        let mut entry = Entry::new(role, kind, text);
        entry.message_id = id.map(str::to_owned);
        entry
    };
    let tool = |kind, text: &str| {
        let mut entry = Entry::new(Role::Assistant, kind, text);
        entry.tool_call_id = Some("t".to_owned());
        entry
    };
    let (user, assistant) = (|| Role::User, || Role::Assistant);
    let own = vec![
        entry(user(), EntryKind::Text, "go", None),
        tool(EntryKind::ToolCall, ""),
        tool(EntryKind::ToolResult, "all of it"),
        entry(assistant(), EntryKind::Text, "one", Some("m")),
        entry(assistant(), EntryKind::Text, "two", Some("m")),
        entry(user(), EntryKind::Text, "go", None),
    ];
    let wire = vec![
        entry(user(), EntryKind::Text, " go\n", None),
        entry(assistant(), EntryKind::Thinking, "hm", None),
        tool(EntryKind::ToolCall, ""),
        entry(user(), EntryKind::Notice, "allowed", None),
        tool(EntryKind::ToolResult, ""),
        entry(assistant(), EntryKind::Text, "one\n\ntwo", Some("m")),
        entry(user(), EntryKind::Text, "go", None),
        entry(assistant(), EntryKind::Text, "never written down", None),
    ];
    let texts: Vec<String> =
        join_recorded(own, wire).into_iter().map(|entry| entry.content).collect();
    assert_eq!(
        texts,
        ["go", "hm", "", "allowed", "all of it", "one", "two", "go", "never written down"]
    );
}

#[test]
fn a_prompt_was_given_when_the_wire_had_it() {
    let at = |text: &str| text.parse().ok();
    let message = |role: Role, time: &str| {
        let mut entry = Entry::new(role, EntryKind::Text, "same");
        entry.created_at = at(time);
        entry
    };
    let (own, wire) = ("2026-01-05T09:00:01.500Z", "2026-01-05T09:00:01.250Z");
    for (role, expected) in [(Role::User, wire), (Role::Assistant, own)] {
        let joined = join_recorded(vec![message(role.clone(), own)], vec![message(role, wire)]);
        assert_eq!(joined.len(), 1);
        assert_eq!(joined[0].created_at, at(expected));
    }
}
