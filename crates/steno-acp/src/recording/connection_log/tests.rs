//! Tests of what becomes a session, and of dropped lines and the gaps that mark them.

use std::path::Path;

use steno_model::Clock;
use steno_store::transcript::ReadTranscript;

use super::*;

fn line(text: &str) -> Vec<u8> {
    format!("{{\"method\":\"x\",\"params\":{{\"sessionId\":\"s\",\"say\":\"{text}\"}}}}\n")
        .into_bytes()
}

fn settings(root: &Path) -> ConnectionSettings {
    ConnectionSettings {
        store: root.to_owned(),
        clock: Clock::system(),
        project: root.to_owned(),
        command: vec!["agent".into()],
        variables: Vec::new(),
        agent: None,
        thread: None,
        launch: None,
        on_change: |_| {},
    }
}

#[test]
fn only_an_agent_that_says_something_is_recorded_without_a_session() {
    let root = tempfile::tempdir().unwrap();
    let request = b"{\"id\":0,\"method\":\"initialize\"}\n";
    for (answer, sessions) in [(b"".as_slice(), 0), (b"not JSON", 1)] {
        let mut log = ConnectionLog::new(settings(root.path()), Arc::default());
        log.record(AcpSide::Client, Clock::system().now(), request);
        log.record(AcpSide::Agent, Clock::system().now(), answer);
        let kept = log.close_sessions(None);
        assert_eq!(kept.len(), sessions, "{answer:?}");
        assert_eq!(root.path().join("vault").exists(), sessions > 0);
    }
}

#[test]
fn dropped_lines_are_marked_and_partial_lines_not_joined() {
    let root = tempfile::tempdir().unwrap();
    let (dropped, at) = (Arc::<AtomicU64>::default(), Clock::system().now());
    let mut log = ConnectionLog::new(settings(root.path()), Arc::clone(&dropped));
    log.record(AcpSide::Client, at, &line("before"));
    log.record(AcpSide::Agent, at, b"{\"the beginning of");
    log.note_overflow(AcpSide::Agent, at);
    dropped.fetch_add(2, Ordering::AcqRel);
    log.record(AcpSide::Agent, at, &[b" its end\n".as_slice(), &line("after")].concat());
    let kept = log.close_sessions(None);
    let transcript = kept[0].dir.read_transcript().unwrap();
    let texts: Vec<_> = transcript.entries.iter().map(|entry| entry.content.as_str()).collect();
    assert_eq!(texts.len(), 3, "{texts:?}");
    assert!(texts[1].ends_with(": the store is too slow; 3 messages not recorded"), "{texts:?}");
    assert_eq!(transcript.problems, []);
    let wire = format!("{:?}", transcript.entries);
    assert!(wire.contains("before") && wire.contains("after"), "{wire}");
    assert!(!wire.contains("beginning of") && !wire.contains("its end"), "{wire}");
}
