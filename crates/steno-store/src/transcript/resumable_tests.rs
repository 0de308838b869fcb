//! A file in place of a folder makes the store unusable, even for root.

use std::fs;
use std::path::Path;

use std::io;

use super::record_reader::RECORD_DECODER;
use super::*;
use steno_agents::protocols::acp::wire::{self, AcpSide};
use steno_model::entry::EntryKind;
use steno_model::timestamp::Clock;
use steno_vault::Vault;
use steno_vault::record::{RecordingClosing, RecordingOpening};
use steno_vault::record_batch::RecordBatch;
use steno_vault::recorder::Recorder;
use steno_vault::resumable::{NotRecordedError, RecordedSession, ResumableRecorder};

fn session(root: &Path, protocol: Option<&str>) -> RecordedSession {
    let dir = Vault::new(root).session_dir(&"test".parse().unwrap(), &"s".parse().unwrap());
    let protocol = protocol.map(str::to_owned);
    let opening =
        RecordingOpening { agent: "test".to_owned(), protocol, ..RecordingOpening::default() };
    RecordedSession {
        dir,
        opening,
        clock: Clock::system(),
        decoder: RECORD_DECODER,
        unit: "message",
    }
}

fn say(recorder: &ResumableRecorder, text: &str) -> Result<(), NotRecordedError> {
    let line = format!("{{\"role\":\"user\",\"content\":\"{text}\"}}");
    recorder.append_with(1, |recorder| recorder.record_line(line.as_bytes()).map(drop))
}

fn failing(_: &Recorder) -> Result<(), FileError> {
    let source = io::Error::from(io::ErrorKind::StorageFull);
    Err(FileError { action: "write", path: "log".into(), source })
}

fn contents(dir: &SessionDir) -> Vec<String> {
    dir.read_transcript().unwrap().entries.into_iter().map(|entry| entry.content).collect()
}

#[test]
fn marks_lost_records_between_others() {
    let root = tempfile::tempdir().unwrap();
    let (recorder, failure) = ResumableRecorder::open(session(root.path(), None));
    assert!(failure.is_none());
    say(&recorder, "before").unwrap();
    assert!(matches!(recorder.append_with(1, failing), Err(NotRecordedError::Failed(_))));
    assert!(matches!(say(&recorder, "lost"), Err(NotRecordedError::Paused)));
    assert_eq!(recorder.try_resume().unwrap().unwrap().lost, 2);
    assert!(recorder.try_resume().unwrap().is_none());
    say(&recorder, "after").unwrap();
    let dir = recorder.dir().clone();
    recorder.close(&RecordingClosing { status: SessionStatus::Completed, reason: None }).unwrap();
    let transcript = dir.read_transcript().unwrap();
    assert!(transcript.problems.is_empty(), "{:?}", transcript.problems);
    let numbers: Vec<_> = transcript.entries.iter().map(|entry| entry.sequence).collect();
    assert_eq!(numbers, [0, 1, 2]);
    let texts = contents(&dir);
    assert_eq!((texts[0].as_str(), texts[2].as_str()), ("before", "after"));
    assert!(texts[1].starts_with("recording paused from "), "{}", texts[1]);
    assert!(texts[1].ends_with("; 2 messages not recorded"), "{}", texts[1]);
    assert_eq!(transcript.entries[1].kind, EntryKind::Notice);
    assert_eq!(transcript.session.status, SessionStatus::Completed);
    // A later recorder continues the numbering after the gap.
    let (next, _) = ResumableRecorder::open(session(root.path(), None));
    let recorded =
        next.append_with(1, |next| next.record_line(b"{\"role\":\"user\",\"content\":\"x\"}"));
    assert_eq!(recorded.unwrap().entries.unwrap()[0].sequence, 3);
}

#[test]
fn the_gap_has_the_cause_that_the_system_gave() {
    let root = tempfile::tempdir().unwrap();
    let (recorder, _) = ResumableRecorder::open(session(root.path(), None));
    let recorder = &recorder;
    std::thread::scope(|scope| {
        let appended = recorder.append_with(1, |_| -> Result<(), FileError> {
            let (sender, other_failed) = std::sync::mpsc::channel();
            scope.spawn(move || {
                let appended = recorder.append_with(1, |recorder| {
                    let _ = sender.send(());
                    failing(recorder)
                });
                assert!(appended.is_err());
            });
            other_failed.recv().unwrap();
            let source = io::Error::from_raw_os_error(28);
            Err(FileError { action: "write", path: "log".into(), source })
        });
        assert!(appended.is_err());
    });
    let gap = recorder.try_resume().unwrap().unwrap();
    assert_eq!((gap.reason.as_str(), gap.lost), ("No space left on device", 2));
}

#[test]
fn a_store_that_appears_later_is_recorded_into_from_then_on() {
    let root = tempfile::tempdir().unwrap();
    let vault = root.path().join("vault");
    fs::write(&vault, "a file where a folder should be").unwrap();
    let (recorder, failure) = ResumableRecorder::open(session(&vault, None));
    assert!(failure.is_some() && recorder.is_paused());
    assert!(matches!(say(&recorder, "lost"), Err(NotRecordedError::Paused)));
    assert!(recorder.try_resume().is_err());
    fs::remove_file(&vault).unwrap();
    assert_eq!(recorder.try_resume().unwrap().unwrap().lost, 1);
    say(&recorder, "after").unwrap();
    let dir = recorder.dir().clone();
    recorder.close(&RecordingClosing { status: SessionStatus::Completed, reason: None }).unwrap();
    assert_eq!(contents(&dir).len(), 2);
    assert_eq!(contents(&dir)[1], "after");
}

#[test]
fn a_recorder_that_never_worked_counts_lost_records() {
    let root = tempfile::tempdir().unwrap();
    let vault = root.path().join("vault");
    fs::write(&vault, "a file where a folder should be").unwrap();
    let (recorder, _) = ResumableRecorder::open(session(&vault, None));
    let _ = say(&recorder, "lost");
    let unclosed =
        recorder.close(&RecordingClosing { status: SessionStatus::Completed, reason: None });
    assert_eq!(unclosed.unwrap_err().lost, 1);
}

#[test]
fn an_answer_after_the_gap_belongs_to_its_question_before_it() {
    let root = tempfile::tempdir().unwrap();
    let (recorder, _) = ResumableRecorder::open(session(root.path(), Some("acp")));
    let say = |side: AcpSide, line: &str| {
        let mut lines = RecordBatch::default();
        let line = format!("{line}\n");
        lines.push_with(Clock::system().now(), |out| {
            wire::write_wire_record(out, side, line.as_bytes(), false);
        });
        recorder.append_with(1, |recorder| recorder.append_batch(&lines)).unwrap();
    };
    let chunk = |text: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{{"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"{text}"}}}}}}}}"#
        )
    };
    say(
        AcpSide::Client,
        r#"{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"Hi"}]}}"#,
    );
    say(AcpSide::Agent, &chunk("Good "));
    assert!(recorder.append_with(3, failing).is_err());
    recorder.try_resume().unwrap();
    say(AcpSide::Agent, &chunk("day"));
    say(
        AcpSide::Agent,
        r#"{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn","usage":{"inputTokens":5,"outputTokens":2,"totalTokens":7}}}"#,
    );
    let dir = recorder.dir().clone();
    recorder.close(&RecordingClosing { status: SessionStatus::Completed, reason: None }).unwrap();
    let texts = contents(&dir);
    assert_eq!((texts[0].as_str(), texts[1].as_str(), texts[3].as_str()), ("Hi", "Good ", "day"));
    assert!(texts[2].ends_with("; 3 messages not recorded"), "{texts:?}");
    let transcript = dir.read_transcript().unwrap();
    assert_eq!(transcript.entries[3].usage.map(|usage| usage.output), Some(2));
    assert_eq!(transcript.session.totals.usage.output, 2);
}
