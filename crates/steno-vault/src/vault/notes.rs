//! Notes of users about a session or one of its entries. They are stored beside the kept files, never in them.
//!
//! The notes of a session have their own log, with the format of live logs. It is never sealed or rewritten: removing
//! a note appends a line.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::SessionDir;
use super::journal::{FileState, JournalLine};
use super::live_log::{LiveLog, LiveLogPaths, open_lock_file};
use super::log_head::LogHead;
use super::log_scan::has_zero_bytes;
use super::text_mask::ForgottenTexts;
use crate::line_hash::{FIRST_LINE_HASH, LineHash, LineHashChain};
use steno_cipher::store_fs;
use steno_model::durable::{FileError, OnPath};
pub use steno_model::note::Note;
use steno_model::problem::{Problem, json_error_reason};
use steno_model::timestamp::{Clock, Timestamp};

/// The file name of the log, inside a session.
pub(super) const NOTES_FILE: &str = "notes.jsonl";

/// Why a line is not read whose hash is wrong.
const CHANGED_NOTE: &str = "the note was changed, or one is missing before it";

/// A line of the log. Without a text, it removes the note of this id.
#[derive(Serialize, Deserialize)]
struct NoteLine {
    at: Timestamp,
    id: Uuid,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    entry: Option<Uuid>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    text: Option<String>,
}

/// The notes of a session, and the unreadable lines of their log.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionNotes {
    /// The notes, in the order they were written.
    pub all: Vec<Note>,
    /// The ids of those that were removed.
    pub removed: Vec<Uuid>,
    /// Lines that could not be read.
    pub problems: Vec<Problem>,
}

impl SessionDir {
    /// Reads the notes of the session.
    pub fn read_notes(&self) -> Result<SessionNotes, FileError> {
        let path = self.notes_paths().0;
        let mut notes = SessionNotes::default();
        notes.problems.extend(self.find_notes_fault()?);
        let text = match store_fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(notes),
            other => other.on("read", &path)?,
        };
        let (mut all, mut chain, mut end) = (NoteCollector::default(), LineHashChain::START, 0);
        for (at, line) in text.split_inclusive(|byte| *byte == b'\n').enumerate() {
            // A line without a newline is still being written. Unwritten pages contain no note.
            let is_unwritten = has_zero_bytes(line) && self.durable_log_length(&path)? <= end;
            end += line.len() as u64;
            let line = line.strip_suffix(b"\n");
            let Some(line) = line.filter(|_| !is_unwritten) else { break };
            let number = at as u64 + 1;
            if !chain.check(line) {
                notes.problems.push(Problem::damage_at_line(&path, number, CHANGED_NOTE));
                continue;
            }
            match parse_note_line(line) {
                Ok(line) => all.apply_line(line),
                Err(reason) => notes.problems.push(Problem::at_line(&path, number, reason)),
            }
        }
        notes.all = all.notes.into_iter().flatten().collect();
        notes.removed = all.removed;
        Ok(notes)
    }

    /// Size of the log of notes in bytes. It grows with each note.
    pub fn notes_size(&self) -> u64 {
        store_fs::file_length(&self.notes_paths().0).unwrap_or(0)
    }

    /// Adds a note about the session or one of its entries. It is on disk when this returns.
    pub fn add_note(
        &self,
        entry: Option<Uuid>,
        text: &str,
        clock: &Clock,
    ) -> Result<Note, FileError> {
        let note = Note { id: Uuid::new_v4(), at: clock.now(), entry, text: text.to_owned() };
        let text = Some(note.text.clone());
        self.append_note(&NoteLine { at: note.at, id: note.id, entry, text })?;
        Ok(note)
    }

    /// Removes a note. Returns whether it existed. Its line stays in the log.
    pub fn remove_note(&self, id: Uuid, clock: &Clock) -> Result<bool, FileError> {
        let is_there = self.read_notes()?.all.iter().any(|note| note.id == id);
        if is_there {
            self.append_note(&NoteLine { at: clock.now(), id, entry: None, text: None })?;
        }
        Ok(is_there)
    }

    fn append_note(&self, line: &NoteLine) -> Result<(), FileError> {
        let (log, head) = self.notes_paths();
        let paths = LiveLogPaths { log: &log, head: &head, lock: &self.write_lock_path() };
        let body = serde_json::to_vec(line).expect("a note has string keys");
        self.check_not_forgotten()?;
        self.journal.create_if_absent()?;
        let log = LiveLog::open(&paths, FIRST_LINE_HASH)?;
        log.skip_to_head()?;
        let mut tail = log.lock_tail(&mut |_| ())?;
        tail.append(&body[1..]);
        let end = tail.write()?;
        log.sync()?;
        self.list_notes(end)
    }

    /// Calls `take` with each complete line of the log, without its newline.
    pub(super) fn for_each_note_line(&self, take: &mut dyn FnMut(&[u8])) -> Result<(), FileError> {
        let path = self.notes_paths().0;
        let text = match store_fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            other => other.on("read", &path)?,
        };
        let lines = text.split_inclusive(|byte| *byte == b'\n');
        lines.filter_map(|line| line.strip_suffix(b"\n")).for_each(take);
        Ok(())
    }

    /// Masks forgotten texts in the notes. The log is written again, because each line has a hash over those before.
    pub(super) fn mask_notes(&self, texts: &ForgottenTexts) -> Result<(), FileError> {
        let (mut bytes, mut hash, mut is_masked) = (Vec::new(), FIRST_LINE_HASH, false);
        self.for_each_note_line(&mut |line| {
            let mut line = line.to_vec();
            is_masked |= texts.mask_line(&self.journal_key(), &mut line);
            match LineHash::split_line(&line).filter(|_| is_masked) {
                Some((_, body)) => hash = hash.append_line(body, &mut bytes),
                None => {
                    hash = LineHash::split_line(&line).map_or(hash, |(stated, _)| stated);
                    bytes.extend_from_slice(&line);
                    bytes.push(b'\n');
                }
            }
        })?;
        let end = LogHead { length: bytes.len() as u64, line_hash: hash };
        // An interrupted process may have written the log, but not its head.
        self.replace_notes(is_masked.then_some(&bytes), end)
    }

    /// Makes the notes of a copied session those of the original. Nothing stays of removed ones.
    pub fn receive_notes(&self, notes: &[Note]) -> Result<(), FileError> {
        let present = self.read_notes()?;
        if present.all == notes && present.removed.is_empty() {
            return Ok(());
        }
        let (mut bytes, mut hash) = (Vec::new(), FIRST_LINE_HASH);
        for Note { id, at, entry, text } in notes {
            let line = NoteLine { at: *at, id: *id, entry: *entry, text: Some(text.clone()) };
            let body = serde_json::to_vec(&line).expect("a note has string keys");
            hash = hash.append_line(&body[1..], &mut bytes);
        }
        self.check_not_forgotten()?;
        self.journal.create_if_absent()?;
        let end = LogHead { length: bytes.len() as u64, line_hash: hash };
        self.replace_notes(Some(&bytes), end)
    }

    /// Writes another log, if there is one, and its end.
    fn replace_notes(&self, log: Option<&Vec<u8>>, end: LogHead) -> Result<(), FileError> {
        let (path, head_path) = self.notes_paths();
        let lock_path = self.write_lock_path();
        let lock = open_lock_file(&lock_path)?;
        lock.lock().on("lock", &lock_path)?;
        if let Some(log) = log {
            store_fs::write_atomic(&path, log)?;
        }
        let head = LogHead::open_file(&head_path)?;
        LogHead::clear_file(&head).on("write", &head_path)?;
        end.append_to(&head).on("write", &head_path)?;
        self.list_notes(end)
    }

    /// Lists the end of the log in the journal.
    fn list_notes(&self, end: LogHead) -> Result<(), FileError> {
        let (file, link) = (NOTES_FILE.to_owned(), Some(end.line_hash.as_str().to_owned()));
        let line = self.new_journal_line(FileState::Open);
        self.journal.append_lines(&[JournalLine { file, length: end.length, link, ..line }])
    }

    /// Paths of the log of notes and of its head file.
    pub(super) fn notes_paths(&self) -> (PathBuf, PathBuf) {
        (self.path.join(NOTES_FILE), self.path.join(format!("{NOTES_FILE}.head")))
    }
}

/// Collects notes while their log is read. A removed note leaves `None`.
#[derive(Default)]
struct NoteCollector {
    notes: Vec<Option<Note>>,
    /// Indexes into `notes` by id.
    indexes: HashMap<Uuid, Vec<usize>>,
    removed: Vec<Uuid>,
}

impl NoteCollector {
    fn apply_line(&mut self, line: NoteLine) {
        match line.text {
            Some(text) => {
                self.indexes.entry(line.id).or_default().push(self.notes.len());
                let note = Note { id: line.id, at: line.at, entry: line.entry, text };
                self.notes.push(Some(note));
            }
            None => {
                for index in self.indexes.remove(&line.id).unwrap_or_default() {
                    self.notes[index] = None;
                }
                self.removed.push(line.id);
            }
        }
    }
}

fn parse_note_line(line: &[u8]) -> Result<NoteLine, String> {
    let (_, body) = LineHash::split_line(line).ok_or_else(|| "not a note".to_owned())?;
    let object = [b"{", body].concat();
    serde_json::from_slice(&object).map_err(|error| json_error_reason(&error))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::vault::Vault;
    use steno_model::entry::{Entry, EntryKind, Role};

    fn session(root: &std::path::Path) -> SessionDir {
        let dir = Vault::new(root).session_dir(&"demo".parse().unwrap(), &"one".parse().unwrap());
        steno_model::durable::create_private_dir(dir.path()).unwrap();
        dir
    }

    #[test]
    fn notes_are_kept_and_taken_back() {
        let root = tempfile::tempdir().unwrap();
        let dir = session(root.path());
        assert_eq!(dir.read_notes().unwrap(), SessionNotes::default());
        let clock = Clock::fixed("2026-01-05T09:00:00Z".parse().unwrap());
        let entry = Entry::new(Role::User, EntryKind::Text, "x");
        let of_session = dir.add_note(None, "ask again #later", &clock).unwrap();
        let of_entry = dir.add_note(Some(entry.entry_id), "here it <goes> wrong", &clock).unwrap();
        let notes = dir.read_notes().unwrap();
        assert_eq!(notes.all, [of_session.clone(), of_entry.clone()]);
        let found: Vec<_> = Note::for_entry(&notes.all, &entry).collect();
        assert_eq!(found, [&of_entry]);
        assert_eq!(Note::for_session(&notes.all, std::slice::from_ref(&entry)), [&of_session]);
        assert_eq!(Note::for_session(&notes.all, &[]).len(), 2);
        assert!(dir.remove_note(of_session.id, &clock).unwrap());
        assert!(!dir.remove_note(of_session.id, &clock).unwrap());
        assert_eq!(dir.read_notes().unwrap().all, [of_entry]);
        assert_eq!(dir.verify().unwrap().damage, []);
    }

    #[test]
    fn received_notes_replace_those_before() {
        let root = tempfile::tempdir().unwrap();
        let dir = session(root.path());
        let note = |n: u128, text: &str| Note {
            id: Uuid::from_u128(n),
            at: "2026-01-05T09:00:00Z".parse().unwrap(),
            entry: (n == 2).then_some(Uuid::from_u128(7)),
            text: text.to_owned(),
        };
        dir.receive_notes(&[]).unwrap();
        assert!(!dir.notes_paths().0.exists(), "no notes, no log");
        for notes in [
            vec![note(1, "one"), note(2, "two")],
            vec![note(1, "one")],
            vec![note(1, "changed"), note(3, "three")],
            vec![],
            vec![note(2, "two again")],
        ] {
            dir.receive_notes(&notes).unwrap();
            assert_eq!(
                dir.read_notes().unwrap(),
                SessionNotes { all: notes, ..Default::default() }
            );
            assert_eq!(dir.verify().unwrap().damage, []);
        }
        let log = fs::read_to_string(dir.notes_paths().0).unwrap();
        assert!(!log.contains("one") && log.contains("two again"), "{log}");
        dir.remove_note(Uuid::from_u128(2), &Clock::system()).unwrap();
        assert_eq!(dir.read_notes().unwrap().removed, [Uuid::from_u128(2)]);
    }

    #[test]
    fn sessions_with_notes_are_found_with_and_without_a_journal() {
        let root = tempfile::tempdir().unwrap();
        let dir = session(root.path());
        let vault = Vault::new(root.path());
        let other = vault.session_dir(&"demo".parse().unwrap(), &"two".parse().unwrap());
        steno_model::durable::create_private_dir(other.path()).unwrap();
        assert_eq!(vault.sessions_with_notes().unwrap(), []);
        dir.add_note(None, "one", &Clock::system()).unwrap();
        assert_eq!(vault.sessions_with_notes().unwrap(), std::slice::from_ref(&dir));
        fs::remove_file(root.path().join("journal.jsonl")).unwrap();
        assert_eq!(Vault::new(root.path()).sessions_with_notes().unwrap(), [dir]);
    }

    #[test]
    fn a_bad_line_costs_only_itself_and_is_found() {
        let root = tempfile::tempdir().unwrap();
        let dir = session(root.path());
        let clock = Clock::fixed("2026-01-05T09:00:00Z".parse().unwrap());
        for text in ["one", "two", "three"] {
            dir.add_note(None, text, &clock).unwrap();
        }
        let path = dir.notes_paths().0;
        let log = fs::read_to_string(&path).unwrap();
        fs::write(&path, log.replace("\"two\"", "\"t\\o\"")).unwrap();
        let notes = dir.read_notes().unwrap();
        let texts: Vec<_> = notes.all.iter().map(|note| note.text.as_str()).collect();
        assert_eq!((texts, notes.problems.len()), (vec!["one", "three"], 1));
        assert_eq!(notes.problems[0].line, Some(2));
        assert_eq!(dir.verify().unwrap().damage.len(), 1);
        fs::remove_file(&path).unwrap();
        assert_eq!(dir.verify().unwrap().damage[0].reason, "the file is missing");
    }

    #[test]
    fn a_changed_note_is_reported_and_not_shown() {
        let root = tempfile::tempdir().unwrap();
        let dir = session(root.path());
        let clock = Clock::fixed("2026-01-05T09:00:00Z".parse().unwrap());
        for text in ["one", "two", "three"] {
            dir.add_note(None, text, &clock).unwrap();
        }
        let path = dir.notes_paths().0;
        let log = fs::read_to_string(&path).unwrap();
        fs::write(&path, log.replace("\"two\"", "\"twp\"")).unwrap();
        let notes = dir.read_notes().unwrap();
        let texts: Vec<_> = notes.all.iter().map(|note| note.text.as_str()).collect();
        assert_eq!(texts, ["one", "three"]);
        assert_eq!(notes.problems.len(), 1);
        assert_eq!((notes.problems[0].line, &*notes.problems[0].reason), (Some(2), CHANGED_NOTE));
    }

    #[test]
    fn tags_are_words_of_the_text() {
        let note = |text: &str| Note {
            id: Uuid::nil(),
            at: "2026-01-05T09:00:00Z".parse().unwrap(),
            entry: None,
            text: text.to_owned(),
        };
        let tagged = note("#star: see #to-do, # and issue#7 #");
        assert_eq!(tagged.tags().collect::<Vec<_>>(), ["star", "to-do"]);
        assert_eq!(note("plain").tags().count(), 0);
    }
}
