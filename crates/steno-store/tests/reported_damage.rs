//! Damage that costs readers nothing, or more than its own line, is reported all the same.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use steno_agents::protocols::traffic::piece::TrafficPieceKind;
use steno_agents::protocols::traffic::{TrafficPiece, append_traffic};
use steno_model::{Clock, Problem, SessionStatus};
use steno_store::transcript::record_reader::RECORD_DECODER;
use steno_store::transcript::{ReadTranscript, for_each_exchange, read_exchanges};
use steno_vault::record::{RecordingClosing, RecordingOpening};
use steno_vault::recorder::Recorder;
use steno_vault::{SessionBundle, SessionDir, SessionFile, Vault};
use tempfile::TempDir;

fn vault(folder: &TempDir) -> Vault {
    Vault::new(folder.path().join("vault"))
}

/// A handle without anything cached.
fn session(folder: &TempDir) -> SessionDir {
    vault(folder).session_dir(&"test".parse().unwrap(), &"s".parse().unwrap())
}

/// Records lines, without an end.
fn record(folder: &TempDir, contents: &[&str]) -> Recorder {
    let opening = RecordingOpening { agent: "test".to_owned(), ..RecordingOpening::default() };
    let recorder =
        Recorder::open(session(folder), &opening, Clock::system(), RECORD_DECODER).unwrap();
    for content in contents {
        let line = format!("{{\"role\":\"user\",\"content\":\"{content}\"}}");
        recorder.record_line(line.as_bytes()).unwrap();
    }
    recorder
}

fn live_log(folder: &TempDir) -> PathBuf {
    session(folder).path().join("record.jsonl.live.0")
}

/// The contents of the session's entries, and whether damage is reported.
fn read(folder: &TempDir) -> (Vec<String>, bool) {
    let transcript = session(folder).read_transcript().unwrap();
    let is_damaged = transcript.problems.iter().any(Problem::is_damage);
    (transcript.entries.into_iter().map(|entry| entry.content).collect(), is_damaged)
}

fn has_damage(folder: &TempDir) -> bool {
    !vault(folder).verify(&mut |_| {}).unwrap().damage.is_empty()
}

fn flip_bit(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 1;
    fs::write(path, bytes).unwrap();
}

/// Two joined lines, and the next one, cannot be verified. Each newline of the log is flipped in turn.
#[test]
fn a_flipped_newline_of_a_live_log_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    drop(record(&folder, &["one", "two", "three", "four"]));
    let path = live_log(&folder);
    let whole = fs::read(&path).unwrap();
    assert_eq!(read(&folder), (["one", "two", "three", "four"].map(str::to_owned).to_vec(), false));
    for (at, _) in whole.iter().enumerate().filter(|(_, byte)| **byte == b'\n') {
        flip_bit(&path, at);
        let (contents, is_damaged) = read(&folder);
        assert!(contents.len() < 4 && is_damaged, "newline at {at}: {contents:?}");
        assert!(has_damage(&folder), "newline at {at}");
        fs::write(&path, &whole).unwrap();
    }
}

/// Zeros at the end may be unwritten pages, but not in a part that was known to be on disk.
#[test]
fn zeros_in_acknowledged_records_cost_only_their_line_and_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    drop(record(&folder, &["one", "two", "three"]));
    let path = live_log(&folder);
    let mut bytes = fs::read(&path).unwrap();
    let at = bytes.windows(5).position(|window| window == b"\"two\"").unwrap();
    bytes[at..at + 5].fill(0);
    fs::write(&path, &bytes).unwrap();
    assert_eq!(read(&folder), (vec!["one".to_owned(), "three".to_owned()], true));
    // What follows the acknowledged part is the remainder of a write that failed.
    bytes.extend([0; 100]);
    bytes.push(b'\n');
    fs::write(&path, &bytes).unwrap();
    let problems = session(&folder).read_transcript().unwrap().problems;
    assert_eq!(problems.len(), 1, "{problems:?}");
}

/// What a copy for a team has of the recording.
fn copy_recording(folder: &TempDir) -> io::Result<String> {
    let files = session(folder).transfer_files().unwrap().unwrap();
    io::read_to_string(files[0].open().unwrap())
}

/// The copy of a changed line would get a valid hash.
#[test]
fn a_damaged_recording_is_not_copied() {
    let folder = tempfile::tempdir().unwrap();
    let recorder = record(&folder, &["one", "two"]);
    let log = live_log(&folder);
    let whole = fs::read_to_string(&log).unwrap();
    assert_eq!(copy_recording(&folder).unwrap(), whole);
    // Without its last newline, the last line is an unfinished one.
    for at in 0..whole.len() - 1 {
        flip_bit(&log, at);
        copy_recording(&folder).expect_err(&format!("byte {at}"));
        flip_bit(&log, at);
    }
    recorder.close(&RecordingClosing { status: SessionStatus::Completed, reason: None }).unwrap();
    assert!(copy_recording(&folder).unwrap().starts_with(&whole));
    let sealed = session(&folder).path().join("record.jsonl.zst");
    let frame_magic = [0x28, 0xb5, 0x2f, 0xfd];
    let bytes = fs::read(&sealed).unwrap();
    let frame = bytes.windows(4).position(|bytes| bytes == frame_magic).unwrap();
    flip_bit(&sealed, frame + 20);
    copy_recording(&folder).unwrap_err();
}

#[test]
fn zeros_in_acknowledged_notes_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    drop(record(&folder, &["one"]));
    for note in ["first", "second", "third"] {
        session(&folder).add_note(None, note, &Clock::system()).unwrap();
    }
    let path = session(&folder).path().join("notes.jsonl");
    let mut bytes = fs::read(&path).unwrap();
    let at = bytes.windows(6).position(|window| window == b"second").unwrap();
    bytes[at..at + 6].fill(0);
    fs::write(&path, &bytes).unwrap();
    let notes = session(&folder).read_notes().unwrap();
    let texts: Vec<&str> = notes.all.iter().map(|note| note.text.as_str()).collect();
    assert_eq!((texts, notes.problems.len()), (vec!["first", "third"], 1));
}

#[test]
fn a_recording_that_is_read_alone_reports_its_faults() {
    let folder = tempfile::tempdir().unwrap();
    drop(record(&folder, &["one", "two"]));
    let dir = session(&folder);
    assert_eq!(dir.read_recording().unwrap().problems, []);
    let whole = fs::read(live_log(&folder)).unwrap();
    let end = whole[..whole.len() - 1].iter().rposition(|byte| *byte == b'\n').unwrap() + 1;
    fs::write(live_log(&folder), &whole[..end]).unwrap();
    let read = session(&folder).read_recording().unwrap();
    assert_eq!((read.entries.len(), read.problems.len()), (1, 1));
    assert!(read.problems[0].reason.contains("bytes are missing"), "{:?}", read.problems);
}

#[test]
fn a_damaged_or_missing_head_of_the_journal_is_reported() {
    let folder = tempfile::tempdir().unwrap();
    drop(record(&folder, &["one"]));
    let head = folder.path().join("vault/journal.jsonl.head");
    let whole = fs::read(&head).unwrap();
    flip_bit(&head, 20);
    assert_eq!(read(&folder), (vec!["one".to_owned()], true));
    assert!(has_damage(&folder));
    fs::remove_file(&head).unwrap();
    assert_eq!(read(&folder), (vec!["one".to_owned()], true));
    fs::write(&head, whole).unwrap();
    assert_eq!(read(&folder), (vec!["one".to_owned()], false));
    assert!(!has_damage(&folder));
}

/// A journal that was rolled back with its head does not list a log with acknowledged records.
#[test]
fn a_live_log_that_the_journal_lost_is_damage_and_not_an_interrupted_write() {
    let folder = tempfile::tempdir().unwrap();
    record(&folder, &["one"])
        .close(&RecordingClosing { status: SessionStatus::Completed, reason: None })
        .unwrap();
    let files =
        ["journal.jsonl", "journal.jsonl.head"].map(|name| vault(&folder).root().join(name));
    let older = files.each_ref().map(|path| fs::read(path).unwrap());
    drop(record(&folder, &["two"]));
    assert!(!has_damage(&folder));
    for (path, bytes) in files.iter().zip(older) {
        fs::write(path, bytes).unwrap();
    }
    assert_eq!(read(&folder), (vec!["one".to_owned(), "two".to_owned()], true));
    let report = vault(&folder).verify(&mut |_| {}).unwrap();
    assert!(report.damage[0].reason.contains("the journal does not list this log"), "{report:?}");
}

/// A log that was sealed and is still there is what a crash leaves.
#[test]
fn a_sealed_log_that_is_not_listed_is_an_interrupted_write() {
    let folder = tempfile::tempdir().unwrap();
    let recorder = record(&folder, &["one"]);
    let path = live_log(&folder);
    let files = [path.clone(), path.with_extension("0.head")];
    let files = files.map(|path| (fs::read(&path), path));
    recorder.close(&RecordingClosing { status: SessionStatus::Completed, reason: None }).unwrap();
    for (bytes, path) in &files {
        fs::write(path, bytes.as_ref().unwrap()).unwrap();
    }
    assert_eq!(read(&folder), (vec!["one".to_owned()], false));
    assert!(!has_damage(&folder));
}

/// Adds two frames, and changes a salt in the second one's header: its bytes are as they were, but not proven.
#[test]
fn a_changed_salt_of_a_later_frame_is_reported_and_not_restored() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.jsonl");
    for text in ["one\n", "one\ntwo\n"] {
        fs::write(&path, text).unwrap();
        let file = SessionFile::on_disk("a.jsonl", &path);
        session(&folder).keep_file(&file, folder.path()).unwrap();
    }
    let target = folder.path().join("target");
    session(&folder).restore(Some(&target), false, &[]).unwrap();
    fs::remove_dir_all(&target).unwrap();
    let sealed = session(&folder).path().join("a.jsonl.zst");
    let mut bytes = fs::read(&sealed).unwrap();
    let salt = bytes.windows(8).rposition(|window| window == b"\"salt\":\"").unwrap() + 8;
    bytes[salt] = if bytes[salt] == b'0' { b'1' } else { b'0' };
    fs::write(&sealed, bytes).unwrap();
    assert!(has_damage(&folder));
    let error = session(&folder).restore(Some(&target), false, &[]).unwrap_err();
    assert!(error.is_damage() && !target.join("a.jsonl").exists(), "{error}");
}

/// A changed answer in the recorded traffic is left out and reported, not shown as genuine.
#[test]
fn damaged_exchanges_are_reported() {
    let folder = tempfile::tempdir().unwrap();
    let recorder = record(&folder, &[]);
    let request = TrafficPiece {
        method: Some("POST".into()),
        path: Some("/v1/messages".into()),
        ..TrafficPiece::new(TrafficPieceKind::Request, "x")
    };
    let answer = TrafficPiece::new_chunk("x", 1, b"{\"answer\":\"yes\"}");
    append_traffic(&recorder, &[request, answer, TrafficPiece::new_end("x", 2, None)]).unwrap();
    drop(recorder);
    let exchanges = || read_exchanges(&session(&folder)).unwrap();
    assert!(exchanges().problems.is_empty());
    assert_eq!(exchanges().exchanges[0].chunks.len(), 1);
    let path = live_log(&folder);
    let at = memmem_find(&fs::read(&path).unwrap(), b"answer");
    flip_bit(&path, at);
    let read = exchanges();
    assert!(read.problems.iter().all(Problem::is_damage) && !read.problems.is_empty());
    assert!(read.exchanges[0].chunks.is_empty(), "{:?}", read.exchanges[0].chunks);
    let mut count = 0;
    let problems = for_each_exchange(&session(&folder), &mut |_| count += 1).unwrap();
    assert_eq!((count, problems), (1, read.problems));
}

fn memmem_find(bytes: &[u8], needle: &[u8]) -> usize {
    bytes.windows(needle.len()).position(|window| window == needle).unwrap()
}

/// An interrupted write must not make the next one look indexed: both may leave a file of the same size.
#[test]
fn the_stored_size_leaves_out_what_an_interrupted_write_left() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.jsonl");
    fs::write(&file, "{}\n").unwrap();
    let bundle = SessionBundle::from_file(&file);
    session(&folder).keep_session(&bundle).unwrap();
    let size = session(&folder).stored_size().unwrap();
    let sealed = session(&folder).path().join("s.jsonl.zst");
    let kept = fs::read(&sealed).unwrap();
    assert_eq!(size, kept.len() as u64);
    fs::write(&sealed, [kept.as_slice(), b"an unfinished frame"].concat()).unwrap();
    assert_eq!(session(&folder).stored_size().unwrap(), size);
    fs::write(&sealed, &kept[..kept.len() - 1]).unwrap();
    assert_eq!(session(&folder).stored_size().unwrap(), size - 1);
}

/// Without its line in the journal, a session looks like one that was recorded live.
#[test]
fn a_session_that_the_journal_lost_is_damage_to_restore() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.jsonl");
    fs::write(&file, "{}\n").unwrap();
    session(&folder).keep_session(&SessionBundle::from_file(&file)).unwrap();
    let journal = folder.path().join("vault/journal.jsonl");
    let at = memmem_find(&fs::read(&journal).unwrap(), b"s.jsonl.zst");
    flip_bit(&journal, at);
    let error = session(&folder).restore(None, true, &[]).unwrap_err();
    assert!(error.is_damage(), "{error}");
}
