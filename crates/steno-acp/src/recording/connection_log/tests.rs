//! Tests of dropped lines and the gaps that mark them.

use steno_model::Clock;
use steno_store::transcript::ReadTranscript;

use super::*;

fn line(text: &str) -> Vec<u8> {
    format!("{{\"method\":\"x\",\"params\":{{\"sessionId\":\"s\",\"say\":\"{text}\"}}}}\n")
        .into_bytes()
}

#[test]
fn dropped_lines_are_marked_and_partial_lines_not_joined() {
    let root = tempfile::tempdir().unwrap();
    let settings = ConnectionSettings {
        store: root.path().to_owned(),
        clock: Clock::system(),
        project: root.path().to_owned(),
        command: vec!["agent".into()],
        variables: Vec::new(),
        agent: None,
        thread: None,
        launch: None,
        on_change: |_| {},
    };
    let (dropped, at) = (Arc::<AtomicU64>::default(), Clock::system().now());
    let mut log = ConnectionLog::new(settings, Arc::clone(&dropped));
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
