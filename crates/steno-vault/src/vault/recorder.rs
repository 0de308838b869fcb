//! Records a running session: appends each record as it arrives. A crash loses nothing committed.
//!
//! Any number of threads and processes may record one session at the same time. The last one seals the log. The next
//! recorder seals what a killed one left.

use std::fs::File;
use std::io::{self, BufRead};
use std::path::Path;
use std::time::Duration;

use super::SessionDir;
use super::append_queue::{AppendQueue, IncomingRecord};
use super::gap::RecordingGap;
use super::journal::{FileState, JournalLine};
use super::live_log::{LiveLog, LiveLogPaths, open_lock_file};
use super::record::{self, RecordDecoder, RecordError, RecordingClosing, RecordingOpening};
use super::record_batch::RecordBatch;
use super::record_cursor::RecordCursor;
use super::sealed::SharedProblems;
use super::sealing::{remove_sealed_logs, seal_all_logs, seal_interrupted_logs};
use steno_cipher::store_fs;
use steno_model::durable::{FileError, OnPath};
use steno_model::entry::Entry;
use steno_model::timestamp::Clock;
use steno_model::unique_id::new_unique_id;

/// The file name of recordings, inside a session.
pub(crate) const RECORD_FILE: &str = "record.jsonl";

/// Records one session.
#[derive(Debug)]
pub struct Recorder {
    dir: SessionDir,
    append_queue: AppendQueue,
    recording_lock: File,
    clock: Clock,
    decoder: RecordDecoder,
    cut_bytes: u64,
}

/// A kept record.
#[derive(Debug)]
pub struct KeptRecord {
    /// Its numbered entries, or why it has none. Its bytes are kept in both cases.
    pub entries: Result<Vec<Entry>, RecordError>,
}

impl Recorder {
    /// Starts a session, or continues an existing one.
    pub fn open(
        dir: SessionDir,
        opening: &RecordingOpening,
        clock: Clock,
        decoder: RecordDecoder,
    ) -> Result<Self, FileError> {
        let mut recorder = Self::attach(dir, opening, clock, decoder)?;
        recorder.write_opening(Some(opening))?;
        Ok(recorder)
    }

    /// Continues a recording of this process after its recorder failed. The caller must append a gap with
    /// [`Recorder::append_gap`].
    pub fn reopen(
        dir: SessionDir,
        opening: &RecordingOpening,
        clock: Clock,
        decoder: RecordDecoder,
    ) -> Result<Self, FileError> {
        let mut recorder = Self::attach(dir, opening, clock, decoder)?;
        recorder.write_opening(None)?;
        Ok(recorder)
    }

    /// Opens the log and reads the recording, without writing.
    fn attach(
        dir: SessionDir,
        opening: &RecordingOpening,
        clock: Clock,
        decoder: RecordDecoder,
    ) -> Result<Self, FileError> {
        dir.check_not_forgotten()?;
        store_fs::create_private_dir(dir.path())?;
        let users_path = dir.recording_lock_path();
        let users = open_lock_file(&users_path)?;
        users.lock_shared().on("lock", &users_path)?;
        store_fs::remove_leftovers(dir.path());
        // A wire may be recorded beside the agent's own files.
        if opening.protocol.is_none() && dir.is_imported()? {
            let error = io::Error::other("the session was imported from files");
            return Err(error).on("record into", dir.path());
        }
        let (base, cursor) = read_sealed_record(&dir, decoder)?;
        let (log_path, head_path) = dir.live_log_paths(base);
        if !store_fs::exists(&log_path) {
            sync_session_key(&dir)?;
        }
        let paths = LiveLogPaths { log: &log_path, head: &head_path, lock: &dir.write_lock_path() };
        let log = LiveLog::open(&paths, cursor.line_hash())?;
        list_log_in_journal(&dir, &log_path)?;
        Ok(Self {
            dir,
            append_queue: AppendQueue::new(log, cursor, decoder),
            recording_lock: users,
            clock,
            decoder,
            cut_bytes: 0,
        })
    }

    /// The session's folder.
    pub fn dir(&self) -> &SessionDir {
        &self.dir
    }

    /// Number of bytes cut off from the torn record of a killed recorder.
    pub fn bytes_cut(&self) -> u64 {
        self.cut_bytes
    }

    /// Appends one line of JSON in any known shape. It is in the file when this returns, and on disk after the next
    /// [`Recorder::commit`].
    pub fn append_line(&self, line: &[u8]) -> Result<KeptRecord, FileError> {
        self.append_queue.append_record(self.prepare_line(line))
    }

    /// Appends records of a wire protocol. They are in the file when this returns, and on disk after the next
    /// [`Recorder::commit`].
    pub fn append_batch(&self, batch: &RecordBatch) -> Result<(), FileError> {
        let (mut tail, mut cursor) = self.append_queue.lock_log()?;
        batch.bodies().for_each(|body| cursor.note_written_line(tail.append(body)));
        tail.write().map(|_| ())
    }

    /// Like [`Recorder::append_batch`], with the current time for each record: one line of valid JSON without a newline.
    pub fn append_wire_records(
        &self,
        records: impl IntoIterator<Item = Vec<u8>>,
    ) -> Result<(), FileError> {
        // Records are encoded before taking the lock.
        let mut batch = RecordBatch::default();
        for record in records {
            batch.push_with(self.clock.now(), |out| out.extend_from_slice(&record));
        }
        self.append_batch(&batch)
    }

    /// Appends a gap that ends now. It is in the file when this returns, and on disk after the next
    /// [`Recorder::commit`].
    pub fn append_gap(&self, gap: &RecordingGap) -> Result<(), FileError> {
        let at = self.clock.now();
        let (mut tail, mut cursor) = self.append_queue.lock_log()?;
        cursor.note_written_line(tail.append(&record::gap_body(at, gap)));
        cursor.follow_gap(at, gap);
        drop(cursor);
        tail.write().map(|_| ())
    }

    /// Appends bytes that are not a record, with the reason.
    pub fn append_bad_bytes(&self, bytes: &[u8], reason: &str) -> Result<KeptRecord, FileError> {
        let bad = Err(RecordError::Bad(reason.to_owned()));
        let at = self.clock.now();
        let incoming = IncomingRecord::encode(at, new_unique_id(at), bytes, bad);
        self.append_queue.append_record(incoming)
    }

    /// Syncs everything appended so far. Concurrent commits share one sync.
    pub fn commit(&self) -> Result<(), FileError> {
        self.append_queue.commit()
    }

    /// Appends one line of JSON and syncs it. Concurrent calls share one write and one sync.
    pub fn record_line(&self, line: &[u8]) -> Result<KeptRecord, FileError> {
        self.append_queue.append_and_sync(self.prepare_line(line))
    }

    /// Appends an entry and syncs it.
    pub fn record_entry(&self, entry: &Entry) -> Result<KeptRecord, FileError> {
        self.record_line(&serde_json::to_vec(entry).expect("an entry has string keys"))
    }

    /// Ends the recording. Seals the log unless another process still records.
    pub fn close(self, closing: &RecordingClosing) -> Result<(), FileError> {
        let (mut tail, cursor) = self.append_queue.lock_log()?;
        drop(cursor);
        tail.append(&record::close_body(self.clock.now(), closing));
        tail.write()?;
        self.detach()
    }

    /// Stops recording without closing the session. Seals the log unless another process still records.
    pub fn detach(self) -> Result<(), FileError> {
        self.append_queue.sync()?;
        let users_path = self.dir.recording_lock_path();
        self.recording_lock.unlock().on("unlock", &users_path)?;
        for _ in 0..5 {
            if self.recording_lock.try_lock().is_ok() {
                return seal_all_logs(&self.dir);
            }
            // A reader that checks for recorders holds the lock for a moment.
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    /// Decodes and encodes a line before taking the lock: that costs more than writing.
    fn prepare_line(&self, line: &[u8]) -> IncomingRecord {
        let at = self.clock.now();
        let id = new_unique_id(at);
        IncomingRecord::encode(at, id, line, (self.decoder.decode)(line, id))
    }

    /// Writes the opening line and syncs it.
    fn write_opening(&mut self, opening: Option<&RecordingOpening>) -> Result<(), FileError> {
        let (mut tail, mut cursor) = self.append_queue.lock_log()?;
        let at = self.clock.now();
        if tail.bytes_lost() > 0 {
            let reason = format!("{} kept bytes are missing here", tail.bytes_lost());
            cursor.note_written_line(tail.append(&record::bad_body(at, b"", &reason)));
        }
        if let Some(opening) = opening {
            cursor.note_written_line(tail.append(&record::open_body(at, opening)));
            cursor.apply_opening(at, opening.clone());
        }
        let cut = tail.bytes_cut();
        drop(cursor);
        tail.write()?;
        self.cut_bytes = cut;
        self.append_queue.sync()
    }
}

/// In an encrypted store, syncs the session's key. A log that is on disk without its key would look damaged.
fn sync_session_key(dir: &SessionDir) -> Result<(), FileError> {
    store_fs::session_key_path(dir.path()).map_or(Ok(()), |key| store_fs::sync_session_key(&key))
}

/// Lists a live log in the journal, unless it is listed. Records in an unlisted log are not acknowledged.
fn list_log_in_journal(dir: &SessionDir, path: &Path) -> Result<(), FileError> {
    let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let is_listed = dir.listed_files()?.is_some_and(|listed| listed.contains_key(&file));
    if is_listed {
        return Ok(());
    }
    dir.journal.append_lines(&[JournalLine { file, ..dir.new_journal_line(FileState::Open) }])
}

/// Finishes an interrupted sealing, then reads the sealed part.
///
/// Returns the start offset of the live log too.
fn read_sealed_record(
    dir: &SessionDir,
    decoder: RecordDecoder,
) -> Result<(u64, RecordCursor), FileError> {
    let mut cursor = RecordCursor::new(dir.id(), dir.agent());
    let mut commit = dir.begin_commit();
    commit.lock_session(dir)?;
    let mut base = 0;
    if dir.has_sealed_record()? {
        remove_sealed_logs(dir)?;
        seal_interrupted_logs(dir, &mut commit)?;
        let sealed = dir.open_sealed(RECORD_FILE, 0)?;
        base = sealed.length();
        let path = sealed.path().to_owned();
        // Recording continues after damage. Readers and `verify` report it.
        for line in sealed.lenient_reader(SharedProblems::default()).split(b'\n') {
            cursor.follow_line(&line.on("read", &path)?, decoder);
        }
    }
    let newest = dir.live_logs()?.into_iter().map(|(base, _)| base).max();
    Ok((newest.unwrap_or(0).max(base), cursor))
}
