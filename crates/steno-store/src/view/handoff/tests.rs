use serde_json::json;

use super::*;

fn text(role: Role, content: &str) -> Entry {
    Entry::new(role, EntryKind::Text, content)
}

fn call(id: &str, tool: &str, input: serde_json::Value) -> Entry {
    let mut entry = Entry::new(Role::Assistant, EntryKind::ToolCall, "");
    (entry.tool_name, entry.tool_call_id) = (Some(tool.to_owned()), Some(id.to_owned()));
    entry.tool_input = Some(input);
    entry
}

fn result(id: &str, content: &str, is_error: bool) -> Entry {
    let mut entry = Entry::new(Role::Tool, EntryKind::ToolResult, content);
    entry.tool_call_id = Some(id.to_owned());
    entry.metadata = is_error.then(|| [("is_error".to_owned(), json!(true))].into_iter().collect());
    entry
}

fn note(entries: Vec<Entry>) -> HandoffNote {
    let mut transcript = Transcript::new(Session::new("s1".parse().unwrap(), "codex"));
    entries.into_iter().for_each(|entry| transcript.push(entry));
    HandoffNote::from_transcript(&transcript)
}

fn texts(quotes: &[QuotedEntry]) -> Vec<(&str, &str)> {
    quotes.iter().map(|quote| (quote.id.as_str(), quote.text.as_str())).collect()
}

#[test]
fn everything_is_quoted_with_its_entry() {
    let edit = json!({"file_path": "src/a.rs", "old_string": "1", "new_string": "2"});
    let tasks = json!({"todos": [
        {"content": "Fix the parser", "status": "completed"}, {"content": "Test it", "status": "pending"}]});
    let note = note(vec![
        text(Role::User, "Fix the parser. Do not touch the lexer."),
        text(
            Role::Assistant,
            "I looked at both. I decided to rewrite `next` instead of patching it.",
        ),
        call("c1", "Edit", edit),
        result("c1", "ok", false),
        call("c2", "TodoWrite", tasks),
        result("c2", "ok", false),
        call("c3", "Bash", json!({"command": "make test"})),
        result("c3", "2 failed", true),
        call("c4", "Bash", json!({"command": "make"})),
        text(Role::Assistant, "Two tests fail. Shall I change them?"),
    ]);
    assert_eq!(texts(&note.task), [("s1:0", "Fix the parser. Do not touch the lexer.")]);
    assert_eq!(
        texts(&note.decisions),
        [
            ("s1:0", "Do not touch the lexer."),
            ("s1:1", "I decided to rewrite `next` instead of patching it.")
        ]
    );
    let file =
        HandedOffFile { path: "src/a.rs".to_owned(), edits: 1, last_edit: "s1:2".to_owned() };
    assert_eq!(note.files, [file]);
    let ends: Vec<_> = note
        .open_ends
        .iter()
        .map(|end| (end.kind, end.quote.id.as_str(), end.quote.text.as_str()))
        .collect();
    assert_eq!(
        ends,
        [
            ("call without result", "s1:8", r#"Bash {"command":"make"}"#),
            ("failed call", "s1:6", r#"Bash {"command":"make test"}: 2 failed"#),
            ("open task", "s1:4", "Test it"),
            ("question", "s1:9", "Shall I change them?"),
        ]
    );
    let markdown = note.to_markdown();
    for part in [
        "# Hand-off: Fix the parser.",
        "user (s1:0):\n> Fix the parser.",
        "- src/a.rs (1 edit, the last is s1:2)",
    ] {
        assert!(markdown.contains(part), "{part}\n{markdown}");
    }
}

#[test]
fn the_first_and_last_requests_stay() {
    let entries = (0..9).map(|number| text(Role::User, &format!("Request {number}"))).collect();
    let note = note(entries);
    let quoted: Vec<_> = note.task.iter().map(|quote| quote.text.as_str()).collect();
    assert_eq!(quoted, ["Request 0", "Request 6", "Request 7", "Request 8"]);
    assert_eq!(note.omitted_requests, 5);
    assert!(note.to_markdown().contains("(5 requests are not quoted)"));
    assert_eq!(note.open_ends[0].kind, "unanswered request");
}

#[test]
fn long_quotations_are_cut_and_empty_sessions_have_a_note() {
    let note = note(vec![text(Role::User, &"ä".repeat(5_000))]);
    assert_eq!(note.task[0].text.chars().count(), MAX_REQUEST_CHARS + 1);
    assert!(super::tests::note(Vec::new()).to_markdown().starts_with("# Hand-off: session\n"));
}
