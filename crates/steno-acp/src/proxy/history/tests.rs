use super::*;
use steno_model::entry::{Entry, EntryKind, Role};
use steno_model::session::Session;

struct OneSession;

impl SessionHistory for OneSession {
    fn list_sessions(&self, folder: Option<&str>) -> Vec<HistorySession> {
        let session = HistorySession {
            id: "old".to_owned(),
            folder: folder.unwrap_or("/w").to_owned(),
            title: Some("Count".to_owned()),
            updated_at: None,
        };
        vec![session]
    }

    fn load_session(&self, id: &str) -> Option<LoadedSession> {
        let mut transcript = Transcript::new(Session::new("old".parse().unwrap(), "codex"));
        transcript.push(Entry::new(Role::User, EntryKind::Text, "Count the herons"));
        transcript.push(Entry::new(Role::Assistant, EntryKind::Text, "Three."));
        (id == "old").then(|| LoadedSession { transcript, context: "So far".to_owned() })
    }
}

fn line(value: &Value) -> Vec<u8> {
    json_line(value)
}

fn values(lines: &[Vec<u8>]) -> Vec<Value> {
    lines.iter().map(|line| serde_json::from_slice(line).unwrap()).collect()
}

/// An answerer after `initialize`, with the response that the editor got.
fn initialized(abilities: &Value) -> (HistoryAnswerer, Value) {
    let answerer = HistoryAnswerer::new(Arc::new(OneSession));
    let request = line(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {} }));
    assert_eq!(answerer.route_editor_line(&request).to_agent, [request]);
    let response = json!({ "jsonrpc": "2.0", "id": 0, "result": { "protocolVersion": 1, "agentCapabilities": abilities } });
    let lines = answerer.route_agent_line(&line(&response)).to_editor;
    let answered = values(&lines).remove(0);
    (answerer, answered)
}

#[test]
fn an_agent_without_history_gets_that_of_the_store() {
    let (answerer, answered) = initialized(&json!({ "loadSession": false }));
    assert_eq!(answered["result"]["agentCapabilities"]["loadSession"], true);
    assert_eq!(answered["result"]["agentCapabilities"]["sessionCapabilities"]["list"], json!({}));
    let list =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "session/list", "params": { "cwd": "/p" } });
    let listed = answerer.route_editor_line(&line(&list));
    assert!(listed.to_agent.is_empty());
    let session = &values(&listed.to_editor)[0]["result"]["sessions"][0];
    assert_eq!((&session["sessionId"], &session["cwd"]), (&json!("old"), &json!("/p")));
}

#[test]
fn a_loaded_session_is_a_new_one_for_the_agent() {
    let (answerer, _) = initialized(&json!({}));
    let load = json!({ "jsonrpc": "2.0", "id": 2, "method": "session/load", "params": { "sessionId": "old", "cwd": "/p", "mcpServers": [] } });
    let asked = values(&answerer.route_editor_line(&line(&load)).to_agent).remove(0);
    assert_eq!(
        (&asked["method"], &asked["params"]),
        (&json!("session/new"), &json!({ "cwd": "/p", "mcpServers": [] }))
    );
    let created = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "sessionId": "new", "modes": null } });
    let replayed = values(&answerer.route_agent_line(&line(&created)).to_editor);
    let kinds: Vec<_> = replayed
        .iter()
        .map(|message| message["params"]["update"]["sessionUpdate"].as_str())
        .collect();
    assert_eq!(kinds, [Some("user_message_chunk"), Some("agent_message_chunk"), None]);
    assert_eq!(replayed[0]["params"]["sessionId"], "old");
    assert_eq!(replayed[2], json!({ "jsonrpc": "2.0", "id": 2, "result": { "modes": null } }));
    let prompt = |id: u64| json!({ "jsonrpc": "2.0", "id": id, "method": "session/prompt", "params": { "sessionId": "old", "prompt": [{ "type": "text", "text": "Go on" }] } });
    let first = values(&answerer.route_editor_line(&line(&prompt(3))).to_agent).remove(0);
    assert_eq!(first["params"]["sessionId"], "new");
    assert_eq!(first["params"]["prompt"][0]["text"], "So far");
    let second = values(&answerer.route_editor_line(&line(&prompt(4))).to_agent).remove(0);
    assert_eq!(second["params"]["prompt"].as_array().unwrap().len(), 1);
    let update = json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": "new", "update": {} } });
    let update = values(&answerer.route_agent_line(&line(&update)).to_editor).remove(0);
    assert_eq!(update["params"]["sessionId"], "old");
}

#[test]
fn an_agent_with_history_and_other_lines_stay_as_they_are() {
    let (answerer, answered) = initialized(&json!({ "loadSession": true }));
    assert_eq!(answered["result"]["agentCapabilities"], json!({ "loadSession": true }));
    let load = br#"{"id":1, "method":"session/load","params":{"sessionId":"x"}}"#.to_vec();
    assert_eq!(answerer.route_editor_line(&load).to_agent, std::slice::from_ref(&load));
    let (answerer, _) = initialized(&json!({}));
    for text in [
        "not JSON\n",
        "[1]\n",
        "{ \"method\" : \"session/cancel\",\"params\":{\"sessionId\":\"x\"}}\n",
        "{}",
    ] {
        let text = text.as_bytes().to_vec();
        assert_eq!(answerer.route_editor_line(&text).to_agent, std::slice::from_ref(&text));
        assert_eq!(answerer.route_agent_line(&text).to_editor, std::slice::from_ref(&text));
    }
}

#[test]
fn an_unknown_session_is_an_error() {
    let (answerer, _) = initialized(&json!({}));
    let load = json!({ "jsonrpc": "2.0", "id": 2, "method": "session/load", "params": { "sessionId": "gone" } });
    let answered = values(&answerer.route_editor_line(&line(&load)).to_editor).remove(0);
    assert_eq!(answered["error"]["code"], RESOURCE_NOT_FOUND);
}
