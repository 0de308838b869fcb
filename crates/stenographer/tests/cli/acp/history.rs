//! Tests of `steno acp --history`, with the rehearsal, an agent that has no history of its own.

use serde_json::{Value, json};

use super::Editor;
use crate::harness::Home;

const SESSION: &str = r#"{"type":"user","uuid":"1","parentUuid":null,"isSidechain":false,"cwd":"/w","sessionId":"old-1","version":"2.1.0","timestamp":"2026-01-05T09:15:31.000Z","message":{"role":"user","content":"Count the herons"}}
{"type":"assistant","uuid":"2","parentUuid":"1","isSidechain":false,"cwd":"/w","sessionId":"old-1","version":"2.1.0","timestamp":"2026-01-05T09:15:32.000Z","message":{"id":"m1","role":"assistant","model":"x","content":[{"type":"text","text":"There are three."}]}}
"#;

fn start(home: &Home, flags: &[&str]) -> Editor {
    let program = home.command(&[]).get_program().to_string_lossy().into_owned();
    let agent = ["--", &program, "replay", "rehearsal", "--as-agent"];
    Editor::start(home.command(&[&["acp"], flags, &agent].concat()))
}

fn ask(editor: &mut Editor, id: u64, method: &str, params: Value) -> Value {
    let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
    serde_json::from_str(&editor.ask(&request.to_string())).unwrap()
}

#[test]
fn an_editor_loads_a_session_that_the_agent_does_not_have() {
    let home = Home::new();
    home.file(".claude/projects/w/old-1.jsonl", SESSION);
    home.steno(&["import", ".claude"]).ok();
    let mut editor = start(&home, &["--history"]);
    let answer = ask(&mut editor, 0, "initialize", json!({ "protocolVersion": 1 }));
    assert_eq!(answer["result"]["agentCapabilities"]["loadSession"], true, "{answer}");
    let listed = ask(&mut editor, 1, "session/list", json!({ "cwd": "/w" }));
    let session = &listed["result"]["sessions"][0];
    assert_eq!(
        (&session["sessionId"], &session["title"]),
        (&json!("old-1"), &json!("Count the herons"))
    );
    assert_eq!(
        ask(&mut editor, 2, "session/list", json!({ "cwd": "/x" }))["result"]["sessions"],
        json!([])
    );
    let params = json!({ "sessionId": "old-1", "cwd": "/w", "mcpServers": [] });
    let mut replayed = vec![ask(&mut editor, 3, "session/load", params)];
    while replayed.last().unwrap().get("id").is_none() {
        replayed.push(serde_json::from_str(&editor.heard()).unwrap());
    }
    let texts: Vec<_> = replayed
        .iter()
        .filter_map(|line| line["params"]["update"]["content"]["text"].as_str())
        .collect();
    assert_eq!(texts, ["Count the herons", "There are three."]);
    let prompt =
        json!({ "sessionId": "old-1", "prompt": [{ "type": "text", "text": "And the ospreys?" }] });
    let mut line = ask(&mut editor, 4, "session/prompt", prompt);
    while line["id"] != 4 {
        assert_eq!(line["params"]["sessionId"], "old-1", "{line}");
        if line["method"] == "session/request_permission" {
            let outcome = json!({ "outcome": "cancelled" });
            let answer =
                json!({ "jsonrpc": "2.0", "id": line["id"], "result": { "outcome": outcome } });
            line = serde_json::from_str(&editor.ask(&answer.to_string())).unwrap();
            continue;
        }
        line = serde_json::from_str(&editor.heard()).unwrap();
    }
    assert!(line["result"]["stopReason"].is_string(), "{line}");
    editor.leave();
    let rows = home.steno(&["list", "--json", "--no-sync"]).ok();
    let rows: Vec<Value> = rows.lines().map(|row| serde_json::from_str(row).unwrap()).collect();
    let new = rows.iter().find(|row| row["parent"] == "old-1").expect("the new session is linked");
    let shown = home.steno(&["show", new["id"].as_str().unwrap(), "--json"]).ok();
    let first: Value = serde_json::from_str(shown.lines().next().unwrap()).unwrap();
    assert!(first["content"].as_str().unwrap().contains("There are three."), "{first}");
}

#[test]
fn without_the_flag_nothing_is_offered() {
    let home = Home::new();
    let mut editor = start(&home, &[]);
    let answer = ask(&mut editor, 0, "initialize", json!({ "protocolVersion": 1 }));
    assert_eq!(answer["result"]["agentCapabilities"]["loadSession"], false, "{answer}");
    editor.leave();
}
