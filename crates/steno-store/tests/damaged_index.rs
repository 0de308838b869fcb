//! The index knows which sessions the vault has only in part, whichever frame or line is damaged, and forgets it after
//! a repair. Records that an agent wrote badly are not damage.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::{Path, PathBuf};

use steno_model::{Clock, SessionStatus};
use steno_store::index::Index;
use steno_store::transcript::ReadTranscript;
use steno_store::transcript::record_reader::RECORD_DECODER;
use steno_vault::record::{RecordingClosing, RecordingOpening};
use steno_vault::recorder::Recorder;
use steno_vault::{SessionDir, SessionFile, Vault};
use tempfile::TempDir;

const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

struct DamagedStore {
    folder: TempDir,
}

impl DamagedStore {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn session(&self, agent: &str, id: &str) -> SessionDir {
        let vault = Vault::new(self.folder.path().join("vault"));
        vault.session_dir(&agent.parse().unwrap(), &id.parse().unwrap())
    }

    /// Keeps a session file as it grows by one line after the other. Each growth is a frame, until they are merged.
    fn keep_lines(&self, id: &str, lines: &[String]) -> SessionDir {
        let dir = self.session("claude-code", id);
        let path = self.folder.path().join("main.jsonl");
        for end in 1..=lines.len() {
            fs::write(&path, lines[..end].concat()).unwrap();
            dir.keep_file(&SessionFile::on_disk("main.jsonl", &path), &path).unwrap();
        }
        dir
    }

    fn record_lines(&self, id: &str, contents: &[&str]) -> (SessionDir, Recorder) {
        let dir = self.session("test", id);
        let opening = RecordingOpening { agent: "test".to_owned(), ..RecordingOpening::default() };
        let recorder =
            Recorder::open(dir.clone(), &opening, Clock::system(), RECORD_DECODER).unwrap();
        for content in contents {
            let line = format!("{{\"role\":\"user\",\"content\":\"{content}\"}}");
            recorder.record_line(line.as_bytes()).unwrap();
        }
        (dir, recorder)
    }

    /// Builds the index anew. Returns the number of its entries, and the reasons of damaged sessions.
    fn reindex(&self) -> (i64, Vec<String>) {
        drop(Index::rebuild(self.folder.path(), None).unwrap());
        self.refresh()
    }

    /// Updates the index, as every query does.
    fn refresh(&self) -> (i64, Vec<String>) {
        let index = Index::open(self.folder.path()).unwrap();
        let vault = Vault::new(self.folder.path().join("vault"));
        index.refresh(&vault, &mut |_, _| {}).unwrap();
        let count = "SELECT count(*) FROM entry";
        let entries = index.connection().query_row(count, [], |row| row.get(0)).unwrap();
        let damaged = index.damaged_sessions(9).unwrap();
        (entries, damaged.into_iter().map(|one| one.reason).collect())
    }
}

fn prompt(text: &str) -> String {
    format!(
        "{{\"type\":\"user\",\"uuid\":\"u\",\"parentUuid\":null,\"cwd\":\"/p\",\"sessionId\":\"s\",\
         \"version\":\"2.1.0\",\"timestamp\":\"2026-01-05T09:15:30.000Z\",\
         \"message\":{{\"role\":\"user\",\"content\":\"{text}\"}}}}\n"
    )
}

/// Flips a bit in the compressed data of a frame. Returns the bytes before.
fn damage_frame(path: &Path, number: usize) -> Vec<u8> {
    let whole = fs::read(path).unwrap();
    let mut starts = whole.windows(4).enumerate().filter(|(_, window)| *window == ZSTD_MAGIC);
    let (start, _) = starts.nth(number).unwrap();
    flip_bit(path, start + 20);
    whole
}

fn flip_bit(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 4;
    fs::write(path, bytes).unwrap();
}

/// The path of a live log, and the offset of each of its lines.
fn live_log_lines(dir: &SessionDir) -> (PathBuf, Vec<usize>) {
    let path = dir.path().join("record.jsonl.live.0");
    let bytes = fs::read(&path).unwrap();
    let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    (path, std::iter::once(0).chain(ends.map(|(at, _)| at + 1)).collect())
}

#[test]
fn a_damaged_middle_frame_is_indexed_as_damage_until_it_is_repaired() {
    let store = DamagedStore::new();
    let lines: Vec<String> = ["one", "two", "three"].map(prompt).to_vec();
    let path = store.keep_lines("s", &lines).path().join("main.jsonl.zst");
    assert_eq!(store.reindex(), (3, Vec::new()));
    let whole = damage_frame(&path, 1);
    let (entries, reasons) = store.reindex();
    assert_eq!(entries, 2);
    assert!(reasons[0].contains("main.jsonl.zst: damaged frame at byte"), "{reasons:?}");
    assert_eq!(store.refresh(), (2, reasons), "a query does not change it");
    fs::write(&path, whole).unwrap();
    assert_eq!(store.refresh(), (3, Vec::new()));
}

/// Only the salt of its hash is changed, so its bytes cannot be proven, but they can be read.
#[test]
fn a_frame_with_a_changed_hash_is_read_and_reported() {
    let store = DamagedStore::new();
    let lines: Vec<String> = ["one", "two", "three"].map(prompt).to_vec();
    let path = store.keep_lines("s", &lines).path().join("main.jsonl.zst");
    let bytes = fs::read(&path).unwrap();
    let mut salts = bytes.windows(8).enumerate().filter(|(_, window)| *window == b"\"salt\":\"");
    let digit = salts.nth(1).unwrap().0 + 8;
    let mut changed = bytes.clone();
    changed[digit] = if changed[digit] == b'0' { b'1' } else { b'0' };
    fs::write(&path, changed).unwrap();
    let (entries, reasons) = store.reindex();
    assert_eq!((entries, reasons.len()), (3, 1));
    assert!(reasons[0].contains("differ from the kept ones"), "{reasons:?}");
}

#[test]
fn a_damaged_frame_of_a_sealed_recording_is_indexed_as_damage() {
    let store = DamagedStore::new();
    let (dir, recorder) = store.record_lines("s", &["one", "two"]);
    let closing = RecordingClosing { status: SessionStatus::Completed, reason: None };
    recorder.close(&closing).unwrap();
    let (_, recorder) = store.record_lines("s", &["three"]);
    recorder.close(&closing).unwrap();
    assert_eq!(store.reindex(), (3, Vec::new()));
    damage_frame(&dir.path().join("record.jsonl.zst"), 0);
    let (entries, reasons) = store.reindex();
    assert_eq!(entries, 1);
    assert!(reasons[0].contains("damaged"), "{reasons:?}");
}

#[test]
fn a_damaged_line_of_a_live_log_is_indexed_as_damage() {
    let store = DamagedStore::new();
    let (dir, recorder) = store.record_lines("s", &["one", "two", "three"]);
    assert_eq!(store.reindex(), (3, Vec::new()));
    let (path, lines) = live_log_lines(&dir);
    flip_bit(&path, lines[3] - 5);
    let (entries, reasons) = store.reindex();
    assert_eq!(entries, 2);
    assert!(reasons[0].ends_with("record.jsonl.live.0:3: damaged line"), "{reasons:?}");
    drop(recorder);
}

/// The line that lists the session is damaged, so that its file is not read.
#[test]
fn a_session_that_a_damaged_journal_does_not_list_is_indexed_after_the_repair() {
    let store = DamagedStore::new();
    store.keep_lines("s", &[prompt("one")]);
    let journal = store.folder.path().join("vault/journal.jsonl");
    let whole = fs::read(&journal).unwrap();
    flip_bit(&journal, whole.len() - 5);
    let (entries, reasons) = store.reindex();
    assert_eq!((entries, reasons.len()), (0, 1));
    assert!(reasons[0].contains("journal.jsonl: 1 of its lines are damaged"), "{reasons:?}");
    fs::write(&journal, whole).unwrap();
    assert_eq!(store.refresh(), (1, Vec::new()));
}

/// Neither a bad line of a session file nor bytes that were recorded and are no record are damage.
#[test]
fn records_that_cannot_be_read_are_not_damage() {
    let store = DamagedStore::new();
    store.keep_lines("s", &[prompt("one"), "not JSON\n".to_owned(), prompt("two")]);
    let (dir, recorder) = store.record_lines("r", &["one"]);
    recorder.record_line(b"not JSON").unwrap();
    assert_eq!(dir.read_transcript().unwrap().problems.len(), 1);
    assert_eq!(store.session("claude-code", "s").read_transcript().unwrap().problems.len(), 1);
    assert_eq!(store.reindex(), (3, Vec::new()));
}
