//! Traffic of an agent with session ids joins the session files of that agent.

use serde_json::{Value, json};

use crate::harness::Home;
use crate::model::{Model, ModelRequest, Reply, body, post};

const SESSION: &str = "47285798-90b0-4dfa-9151-58a1950ad6ca";

/// An agent like Claude Code: it requests a response and a title, and writes the response to its file. Other tests
/// run it as a program.
#[test]
#[ignore = "is run by other tests, as an agent"]
fn agent() {
    let base = std::env::var("ANTHROPIC_BASE_URL").unwrap();
    let ask = |system: &str, prompt: &str| {
        let request = json!({"model": "claude-opus-4-5", "max_tokens": 100, "system": system,
            "messages": [{"role": "user", "content": [
                {"type": "text", "text": "<system-reminder>be nice</system-reminder>"},
                {"type": "text", "text": prompt}]}]});
        let headers = [("X-Claude-Code-Session-Id", SESSION), ("Connection", "close")];
        body(&post(&format!("{base}/v1/messages"), &headers, &request).whole())
    };
    ask("Write a title.", "Title for: Count the herons");
    let answer = ask("You are an agent.", "Count the herons");
    let line = |kind: &str, id: &str, message: Value| {
        json!({"type": kind, "uuid": id, "sessionId": SESSION, "cwd": "/birds",
            "timestamp": "2026-11-16T07:00:00.000Z", "message": message})
        .to_string()
    };
    let own = [
        line("user", "u1", json!({"role": "user", "content": "Count the herons"})),
        line("assistant", "u2", answer),
    ];
    let folder =
        std::path::Path::new(&std::env::var("HOME").unwrap()).join(".claude/projects/-birds");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join(format!("{SESSION}.jsonl")), own.join("\n") + "\n").unwrap();
}

/// Answers each request with its own message.
fn answering(asked: &ModelRequest, reply: &mut Reply<'_>) {
    let is_title = asked.json()["system"] == "Write a title.";
    let (id, text, output) = if is_title {
        ("msg_01Title000000000000000", "Herons", 2)
    } else {
        ("msg_01Answer00000000000000", "There are three.", 7)
    };
    reply.json(
        "200 OK",
        &json!({"id": id, "type": "message", "role": "assistant", "model": "claude-opus-4-5",
            "content": [{"type": "text", "text": text}], "stop_reason": "end_turn",
            "usage": {"input_tokens": 10, "output_tokens": output}}),
    );
}

fn exec(home: &Home) {
    let model = Model::start(answering);
    let program = std::env::current_exe().unwrap().to_string_lossy().into_owned();
    let args =
        ["exec", "--", &program, "--exact", "exec_joined::agent", "--ignored", "--nocapture"];
    let mut command = home.command(&args);
    command.env("ANTHROPIC_BASE_URL", model.url());
    let output = home.finish(command, b"");
    assert_eq!(output.code, 0, "{output}");
    assert!(output.stderr.contains(&format!("recorded as {SESSION}")), "{output}");
}

/// Returns the listed sessions, the shown entries, and the billed tokens.
fn account(home: &Home) -> (Vec<String>, Vec<String>, u64) {
    let lines = |args: &[&str]| -> Vec<Value> {
        let printed = home.steno(args).ok();
        printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    };
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let sessions = lines(&["list", "--json"]);
    let sessions =
        sessions.iter().map(|row| format!("{} {}", text(&row["agent"]), text(&row["title"])));
    let shown = lines(&["show", SESSION, "--json"]);
    let shown =
        shown.iter().map(|row| format!("{}: {}", text(&row["role"]), text(&row["content"])));
    let cost = lines(&["cost", "--json"]);
    let output = cost.last().and_then(|total| total["tokens"]["output"].as_u64()).unwrap();
    (sessions.collect(), shown.collect(), output)
}

#[test]
fn traffic_and_files_are_one_session_in_every_order() {
    let expected = (
        vec!["claude-code Count the herons".to_owned()],
        vec!["user: Count the herons".to_owned(), "assistant: There are three.".to_owned()],
        9,
    );
    let (exec_first, sync_first) = (Home::new(), Home::new());
    exec(&exec_first);
    exec_first.steno(&["sync"]).ok();
    assert_eq!(account(&exec_first), expected);
    exec_first.steno(&["reindex"]).ok();
    assert_eq!(account(&exec_first), expected);

    exec(&sync_first);
    // As if the files had been synced first: only the recording is removed with the store.
    std::fs::remove_dir_all(sync_first.path().join("store")).unwrap();
    sync_first.steno(&["sync"]).ok();
    exec(&sync_first);
    assert_eq!(account(&sync_first), expected);
    sync_first.steno(&["sync"]).ok();
    assert_eq!(account(&sync_first), expected);
}

#[test]
fn the_wire_is_shown_on_demand() {
    let home = Home::new();
    exec(&home);
    home.steno(&["sync"]).ok();
    let wire = home.steno(&["show", SESSION, "--wire"]).ok();
    for text in
        ["You are an agent.", "Write a title.", "<system-reminder>", "Herons", "There are three."]
    {
        assert!(wire.contains(text), "{text} in {wire}");
    }
    let shown = home.steno(&["show", SESSION]).ok();
    assert!(!shown.contains("You are an agent."), "{shown}");
    let missing = home.steno(&["show", "none", "--wire"]);
    assert_ne!(missing.code, 0);
}

#[test]
fn whoever_names_a_session_gets_all_of_it_there() {
    let home = Home::new();
    let model = Model::start(answering);
    let program = std::env::current_exe().unwrap().to_string_lossy().into_owned();
    let agent = ["--exact", "exec_joined::agent", "--ignored", "--nocapture"];
    let args = [&["exec", "--session", "s", "--", &program][..], &agent[..]].concat();
    let mut command = home.command(&args);
    command.env("ANTHROPIC_BASE_URL", model.url());
    assert_eq!(home.finish(command, b"").code, 0);
    let rows = home.steno(&["list", "--json"]).ok();
    let row: Value = serde_json::from_str(rows.trim_end()).unwrap();
    assert_eq!(row["id"], "s");
}
