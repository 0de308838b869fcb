//! Programs that call models in-process.

use serde_json::json;
use uuid::Uuid;

use super::*;
use crate::transcript::ReadTranscript;
use crate::transcript::record_reader::RECORD_DECODER;
use steno_seeds::weakincentives::SliceSession;
use steno_seeds::weakincentives::slice::SliceFactoryConfig;
use steno_vault::Vault;
use steno_vault::record::RecordingOpening;

const ALL: CaptureSettings =
    CaptureSettings { capture_transcript: true, capture_subagent_transcripts: true };

/// Records two conversations at the same time.
fn captured(settings: CaptureSettings) -> Transcript {
    let folder = tempfile::tempdir().unwrap();
    let dir = Vault::new(folder.path()).session_dir(&"app".parse().unwrap(), &"s".parse().unwrap());
    let recorder =
        Recorder::open(dir.clone(), &RecordingOpening::default(), Clock::system(), RECORD_DECODER)
            .unwrap();
    let capture = ModelCallCapture::new(&recorder, settings, Clock::system()).unwrap();
    let ask = |text: &str| {
        json!({"model": "m", "messages": [{"role": "user", "content": text}]}).to_string()
    };
    let mut first = capture.begin_call("/v1/messages", ask("One").as_bytes()).unwrap();
    let second = capture.begin_call("/v1/messages", ask("Two").as_bytes()).unwrap();
    let answer = json!({"id": "m1", "type": "message", "role": "assistant", "model": "m-1",
        "content": [{"type": "text", "text": "one"}], "usage": {"input_tokens": 3, "output_tokens": 1}});
    for part in answer.to_string().as_bytes().chunks(20) {
        first.append_chunk(200, part).unwrap();
    }
    first.finish(None).unwrap();
    second.finish(Some("connection refused")).unwrap();
    dir.read_transcript().unwrap()
}

#[test]
fn calls_are_captured_only_if_asked_for() {
    assert!(captured(CaptureSettings::default()).entries.is_empty());
    let transcript = captured(ALL);
    let describe = |entry: &Entry| {
        let Entry { source, role, kind, content, .. } = entry;
        format!("{source} {} {}: {content}", role.as_str(), kind.as_str())
    };
    let actual: Vec<_> = transcript.entries.iter().map(describe).collect();
    assert_eq!(
        actual,
        [
            "primary user text: One",
            "subagent:1 user text: Two",
            "primary assistant text: one",
            "subagent:1 system error: connection refused",
        ]
    );
    assert_eq!(transcript.session.totals.usage.input, 3);
    let one = CaptureSettings { capture_subagent_transcripts: false, ..ALL };
    assert!(captured(one).entries.iter().all(|entry| entry.source == "primary"));
}

#[test]
fn the_slice_has_captured_entries_once() {
    let mut session =
        SliceSession::new(Uuid::from_u128(7), Clock::system(), SliceFactoryConfig::default());
    let transcript = captured(ALL);
    assert_eq!(capture_traffic(&mut session, CaptureSettings::default(), &transcript).unwrap(), 0);
    assert_eq!(capture_traffic(&mut session, ALL, &transcript).unwrap(), 4);
    assert_eq!(capture_traffic(&mut session, ALL, &transcript).unwrap(), 0);
    let own = session.query::<Entry>().filter_items(|entry| entry.source == "primary").unwrap();
    assert_eq!(own.len(), 2);
    assert_eq!(session.query::<Entry>().latest().unwrap().unwrap().content, "connection refused");
}
