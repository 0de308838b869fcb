//! A gateway that records beside a connection of the Agent Client Protocol, into the same session.

use serde_json::{Value, json};
use steno_model::{Clock, SessionStatus};
use steno_store::transcript::ReadTranscript;
use steno_store::transcript::record_reader::RECORD_DECODER;
use steno_vault::Vault;
use steno_vault::record::{API_PROTOCOL, RecordingClosing, RecordingOpening};
use steno_vault::recorder::Recorder;

fn opening(protocol: &str) -> RecordingOpening {
    let protocol = Some(protocol.to_owned());
    RecordingOpening { agent: "toy".to_owned(), protocol, ..RecordingOpening::default() }
}

fn line(side: &str, message: &Value) -> Vec<u8> {
    format!("{{\"acp\":\"{side}\",\"message\":{message}}}").into_bytes()
}

#[test]
fn a_turn_goes_on_when_a_gateway_begins_to_record() {
    let folder = tempfile::tempdir().unwrap();
    let dir = Vault::new(folder.path()).session_dir(&"toy".parse().unwrap(), &"s".parse().unwrap());
    let wire =
        Recorder::open(dir.clone(), &opening("acp"), Clock::system(), RECORD_DECODER).unwrap();
    let prompt = json!({"jsonrpc": "2.0", "id": 1, "method": "session/prompt",
        "params": {"sessionId": "s", "prompt": [{"type": "text", "text": "Count"}]}});
    wire.append_line(&line("client", &prompt)).unwrap();
    let traffic =
        Recorder::open(dir.clone(), &opening(API_PROTOCOL), Clock::system(), RECORD_DECODER)
            .unwrap();
    let message = json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s",
        "update": {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "Three."}}}});
    let end = json!({"jsonrpc": "2.0", "id": 1, "result": {"stopReason": "end_turn"}});
    wire.append_line(&line("agent", &message)).unwrap();
    wire.append_line(&line("agent", &end)).unwrap();
    let closing = RecordingClosing { status: SessionStatus::Completed, reason: None };
    wire.close(&closing).unwrap();
    traffic.close(&closing).unwrap();
    let actual: Vec<_> =
        dir.read_transcript().unwrap().entries.into_iter().map(|entry| entry.content).collect();
    assert_eq!(actual, ["Count", "Three."]);
}
