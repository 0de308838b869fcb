//! Lines of agents' own files that were recorded are read as their files are.
//!
//! The small samples of the readers are always compared; real files where `STENO_FIXTURES` names their folder.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[path = "readers/samples.rs"]
mod samples;

use std::fs;
use std::path::{Path, PathBuf};

use samples::SAMPLES;
use serde_json::Value;
use steno_model::{Clock, Entry, SessionStatus, Transcript, Usage};
use steno_store::format;
use steno_store::index::Index;
use steno_store::index::pending_sessions::PendingSessions;
use steno_store::transcript::ReadTranscript;
use steno_store::transcript::record_reader::RECORD_DECODER;
use steno_vault::record::{RecordingClosing, RecordingOpening};
use steno_vault::recorder::Recorder;
use steno_vault::{SessionDir, Vault};
use tempfile::TempDir;

fn session(store: &TempDir) -> SessionDir {
    let vault = Vault::new(store.path());
    vault.session_dir(&"test".parse().unwrap(), &"recorded".parse().unwrap())
}

/// Records lines, as one call of `steno record` does.
fn record<'a>(dir: &SessionDir, lines: impl IntoIterator<Item = &'a str>) {
    let opening = RecordingOpening { agent: "test".to_owned(), ..RecordingOpening::default() };
    let recorder = Recorder::open(dir.clone(), &opening, Clock::system(), RECORD_DECODER).unwrap();
    for line in lines {
        recorder.record_line(line.as_bytes()).unwrap();
    }
    recorder.close(&RecordingClosing { status: SessionStatus::Completed, reason: None }).unwrap();
}

/// The records of a file: its lines, or the one document that it is.
fn records(text: &str) -> Vec<String> {
    let filled: Vec<_> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let is_json = |line: &&&str| serde_json::from_str::<Value>(line).is_ok();
    match serde_json::from_str::<Value>(text) {
        Ok(document) if filled.len() > 1 => vec![document.to_string()],
        _ => filled.iter().filter(is_json).map(|line| (*line).to_owned()).collect(),
    }
}

/// What a file of these records is read as, all sessions in it one after the other; nothing if no agent wrote it.
fn read_file(name: &str, records: &[String]) -> Option<(Vec<Entry>, Usage)> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::write(&path, records.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    let (mut entries, mut usage) = (Vec::new(), Usage::default());
    let found = format::find_sessions(&path).unwrap();
    if found.iter().all(|found| found.reader.agent == format::native::AGENT_NAME) {
        return None;
    }
    for found in found {
        let transcript = found.read_transcript().unwrap();
        entries.extend(transcript.entries);
        usage.add(&transcript.session.totals.usage);
    }
    Some((entries, usage))
}

/// What both must have in common: all but the ids, which may be made of the file's name, and the numbers.
fn essence(entry: &Entry) -> Entry {
    let mut entry = entry.clone();
    entry.entry_id = uuid::Uuid::nil();
    entry.sequence = 0;
    entry
}

fn compare(place: &str, name: &str, text: &str) -> Option<String> {
    let records = records(text);
    let (wanted, usage) = read_file(name, &records)?;
    let lines = || records.iter().map(String::as_str);
    let (together, apart) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    record(&session(&together), lines());
    if records.len() <= 100 {
        lines().for_each(|line| record(&session(&apart), [line]));
    } else {
        let middle = records.len() / 2;
        record(&session(&apart), lines().take(middle));
        record(&session(&apart), lines().skip(middle));
    }
    for (how, store) in [("together", &together), ("apart", &apart)] {
        let transcript = session(store).read_transcript().unwrap();
        if wanted.is_empty() {
            // Records without entries of their reader stay visible.
            assert_eq!(transcript.entries.len(), records.len(), "{place}, recorded {how}");
            continue;
        }
        if let Some(difference) = difference(&wanted, usage, &transcript) {
            return Some(format!("{place}, recorded {how}: {difference}"));
        }
    }
    None
}

fn difference(wanted: &[Entry], usage: Usage, got: &Transcript) -> Option<String> {
    let wanted: Vec<_> = wanted.iter().map(essence).collect();
    let entries: Vec<_> = got.entries.iter().map(essence).collect();
    let at = wanted.iter().zip(&entries).position(|(wanted, got)| wanted != got);
    if let Some(at) = at {
        return Some(format!("entry {at}\n  wanted {:?}\n  got {:?}", wanted[at], entries[at]));
    }
    if wanted.len() != entries.len() {
        let (got, wanted, problems) = (entries.len(), wanted.len(), &got.problems);
        return Some(format!("{got} entries instead of {wanted}, problems: {problems:?}"));
    }
    let counted = got.session.totals.usage;
    (counted != usage).then(|| format!("{counted:?} instead of {usage:?}"))
}

#[test]
fn recorded_samples_are_read_as_their_files_are() {
    let mut compared = 0;
    for (name, text) in SAMPLES.iter().filter(|(name, _)| is_recordable(Path::new(name))) {
        // By its content alone, a log of Vibe is a list of chat messages.
        let file = if *name == "messages.jsonl" { "lines.jsonl" } else { name };
        let difference = compare(name, file, text);
        assert!(difference.is_none(), "{}", difference.unwrap_or_default());
        compared += 1;
    }
    assert!(compared > 15, "{compared}");
}

fn is_recordable(path: &Path) -> bool {
    let name = path.file_name().unwrap().to_string_lossy();
    // The name of the file is part of these formats, or several files make up a session.
    let is_named = ["ui_messages.json", "log.json"].contains(&&*name);
    let extension = path.extension().and_then(|extension| extension.to_str());
    matches!(extension, Some("json" | "jsonl" | "traj")) && !is_named
}

/// Whether a file is made up: no agent writes untyped messages among records of Codex.
/// Recorded, they are the messages that they look like; the reader of Codex shows them as records that it does not
/// know.
fn is_disputed(file: &Path) -> bool {
    let made_up = [
        "session_branch.jsonl",
        "session_simple.jsonl",
        "session_toolcall.jsonl",
        "codex/schema_drift.jsonl",
    ];
    made_up.iter().any(|name| file.ends_with(name))
}

#[test]
fn recorded_fixtures_are_read_as_their_files_are() {
    let Some(fixtures) = std::env::var_os("STENO_FIXTURES") else {
        eprintln!("STENO_FIXTURES is not set: no real file is compared");
        return;
    };
    let files = format::list_file_paths(&PathBuf::from(fixtures)).unwrap();
    let lines = files.iter().filter(|file| file.extension().is_some_and(|end| end == "jsonl"));
    let (mut compared, mut differences) = (0, Vec::new());
    for file in lines.filter(|file| !is_disputed(file)) {
        let text = String::from_utf8_lossy(&fs::read(file).unwrap()).into_owned();
        if records(&text).is_empty() {
            continue;
        }
        differences.extend(compare(&file.display().to_string(), "lines.jsonl", &text));
        compared += 1;
    }
    assert!(compared > 150, "{compared} files");
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// The samples that have one record a line.
fn line_samples() -> impl Iterator<Item = (&'static str, Vec<String>)> {
    let lines = SAMPLES.iter().filter(|(name, _)| name.ends_with(".jsonl"));
    lines.map(|(name, text)| (*name, records(text)))
}

#[test]
fn records_of_other_systems_amid_an_agents_own_stay_in_view() {
    for (name, records) in line_samples() {
        let store = tempfile::tempdir().unwrap();
        let dir = session(&store);
        let lines = || records.iter().map(String::as_str);
        record(&dir, lines());
        let before = dir.read_transcript().unwrap().entries.len();
        record(&dir, [r#"{"role":"user","content":"A note","kind":"text"}"#]);
        record(&dir, lines());
        let entries = dir.read_transcript().unwrap().entries;
        let note = entries.iter().position(|entry| entry.content == "A note");
        assert_eq!(note, Some(before), "{name}");
        assert!(entries.len() >= 2 * before, "{name}: {} entries", entries.len());
        let numbers: Vec<_> = entries.iter().map(|entry| (&entry.source, entry.sequence)).collect();
        let distinct: std::collections::HashSet<_> = numbers.iter().collect();
        assert_eq!(distinct.len(), numbers.len(), "{name}: numbers repeat");
    }
}

#[test]
fn two_agents_in_one_recording_are_both_read() {
    let store = tempfile::tempdir().unwrap();
    let dir = session(&store);
    let mut wanted = Vec::new();
    for (name, records) in line_samples().filter(|(name, _)| *name != "messages.jsonl") {
        record(&dir, records.iter().map(String::as_str));
        wanted.extend(read_file(name, &records).unwrap().0);
    }
    let entries = dir.read_transcript().unwrap().entries;
    let kinds = |entries: &[Entry]| -> Vec<_> {
        entries.iter().map(|entry| (entry.kind, entry.content.clone())).collect()
    };
    assert_eq!(kinds(&entries), kinds(&wanted));
}

/// Marks a session as about to change, as recorders do.
fn mark(store: &Path, dir: &SessionDir) {
    drop(PendingSessions::new(store).mark_session(dir).unwrap());
}

/// Tokens of all messages in the index, each kind.
fn billed(store: &Path) -> (Vec<i64>, i64) {
    let index = Index::open(store).unwrap();
    index.refresh(&Vault::new(store.join("vault")), &mut |_, _| {}).unwrap();
    let columns = ["input", "cache_read", "cache_write", "output", "reasoning"];
    let sum = |column: &str| {
        let sql = format!("SELECT coalesce(sum({column}), 0) FROM usage");
        index.connection().query_row(&sql, [], |row| row.get(0)).unwrap()
    };
    let entries = "SELECT coalesce(sum(entries), 0) FROM session";
    let entries = index.connection().query_row(entries, [], |row| row.get(0)).unwrap();
    (columns.iter().map(|column| sum(column)).collect(), entries)
}

#[test]
fn a_recording_and_the_agents_own_file_count_once() {
    for (name, records) in line_samples().filter(|(name, _)| *name != "messages.jsonl") {
        let (store, files) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let vault = Vault::new(store.path().join("vault"));
        let path = files.path().join(name);
        fs::write(&path, records.iter().map(|line| format!("{line}\n")).collect::<String>())
            .unwrap();
        for found in format::find_sessions(&path).unwrap() {
            let read = found.read_transcript().unwrap().session;
            vault
                .session_dir(&read.agent.parse().unwrap(), &read.id)
                .keep_session(&found.bundle)
                .unwrap();
        }
        let (alone, _) = billed(store.path());
        let dir = vault.session_dir(&"test".parse().unwrap(), &"recorded".parse().unwrap());
        let middle = records.len() / 2;
        record(&dir, records.iter().take(middle).map(String::as_str));
        billed(store.path());
        mark(store.path(), &dir);
        record(&dir, records.iter().skip(middle).map(String::as_str));
        let grown = billed(store.path());
        assert_eq!(grown.0, alone, "{name}: tokens count twice");
        for file in ["index.db", "index.db-wal", "index.db-shm"] {
            let _ = fs::remove_file(store.path().join(file));
        }
        assert_eq!(billed(store.path()), grown, "{name}: a new index differs");
    }
}

#[test]
fn the_index_has_the_entries_of_a_recording() {
    for (name, records) in line_samples() {
        let store = tempfile::tempdir().unwrap();
        let vault = Vault::new(store.path().join("vault"));
        let dir = vault.session_dir(&"test".parse().unwrap(), &"recorded".parse().unwrap());
        for line in &records {
            mark(store.path(), &dir);
            record(&dir, [line.as_str()]);
            let index = Index::open(store.path()).unwrap();
            index.refresh(&vault, &mut |_, _| {}).unwrap();
            let mut read = dir.read_transcript().unwrap().session;
            read.extra.clear();
            assert_eq!(index.list_sessions(None, None).unwrap()[0].session, read, "{name}");
        }
    }
}
