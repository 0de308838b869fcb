//! Records a running session: appends each record as it arrives. A crash loses nothing committed.
//!
//! Any number of threads and processes may record one session at the same time. The last one seals the log. The next
//! recorder seals what a killed one left.

use std::fs::File;
use std::io::{self, BufRead};
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use uuid::Uuid;

use super::SessionDir;
use super::append_queue::{AppendQueue, AppendResult, IncomingRecord};
use super::combiner::BatchTicket;
use super::gap::RecordingGap;
use super::journal::{FileState, JournalLine};
use super::live_log::{LiveLog, LiveLogPaths, open_lock_file};
use super::record::{self, RecordError, RecordReader, RecordingClosing, RecordingOpening};
use super::sealed::SharedProblems;
use super::sealing::{remove_sealed_logs, seal_all_logs, seal_interrupted_logs};
use super::wire_lines::WireLines;
use crate::durable::{self, FileError, OnPath};
use crate::entry::Entry;
use crate::timestamp::Clock;
use crate::traffic::TrafficPiece;

/// The file name of recordings, inside a session.
pub(crate) const RECORD_FILE: &str = "record.jsonl";

/// Records one session.
#[derive(Debug)]
pub struct Recorder {
    dir: SessionDir,
    append_queue: Arc<AppendQueue>,
    recording_lock: File,
    clock: Clock,
    cut_bytes: u64,
}

/// A kept record.
#[derive(Debug)]
pub struct KeptRecord {
    /// Its numbered entries, or why it has none. Its bytes are kept in both cases.
    pub entries: Result<Vec<Entry>, RecordError>,
}

/// A queued record. It is on disk once [`PendingRecord::wait`] returns or the future completes.
#[derive(Debug)]
#[must_use = "a record is written when somebody waits for it, commits or closes"]
pub struct PendingRecord<'a> {
    recorder: &'a Recorder,
    ticket: BatchTicket<AppendResult>,
}

impl PendingRecord<'_> {
    /// Waits until the record is on disk. The first caller that waits writes and syncs for all.
    pub fn wait(self) -> Result<KeptRecord, FileError> {
        expect_record(self.recorder.append_queue.wait_for(self.ticket))
    }
}

/// For tasks: a thread of the recorder writes and syncs, so no task blocks.
impl Future for PendingRecord<'_> {
    type Output = Result<KeptRecord, FileError>;

    fn poll(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Self::Output> {
        self.recorder.append_queue.poll_ticket(&self.ticket, task).map(expect_record)
    }
}

fn expect_record(outcome: AppendResult) -> Result<KeptRecord, FileError> {
    outcome.map(|recorded| recorded.expect("a record was handed in"))
}

impl Recorder {
    /// Starts a session, or continues an existing one.
    pub fn open(
        dir: SessionDir,
        opening: &RecordingOpening,
        clock: Clock,
    ) -> Result<Self, FileError> {
        let mut recorder = Self::attach(dir, opening, clock)?;
        recorder.write_opening(Some(opening))?;
        Ok(recorder)
    }

    /// Continues a recording of this process after its recorder failed. The caller must append a gap with
    /// [`Recorder::append_gap`].
    pub(super) fn reopen(
        dir: SessionDir,
        opening: &RecordingOpening,
        clock: Clock,
    ) -> Result<Self, FileError> {
        let mut recorder = Self::attach(dir, opening, clock)?;
        recorder.write_opening(None)?;
        Ok(recorder)
    }

    /// Opens the log and reads the recording, without writing.
    fn attach(
        dir: SessionDir,
        opening: &RecordingOpening,
        clock: Clock,
    ) -> Result<Self, FileError> {
        durable::create_private_dir(dir.path())?;
        let users_path = dir.recording_lock_path();
        let users = open_lock_file(&users_path)?;
        users.lock_shared().on("lock", &users_path)?;
        durable::remove_leftovers(dir.path());
        // A wire may be recorded beside the agent's own files.
        if opening.protocol.is_none() && dir.is_imported()? {
            let error = io::Error::other("the session was imported from files");
            return Err(error).on("record into", dir.path());
        }
        let (base, reader) = read_sealed_record(&dir)?;
        let (log_path, head_path) = dir.live_log_paths(base);
        let paths = LiveLogPaths { log: &log_path, head: &head_path, lock: &dir.write_lock_path() };
        let log = LiveLog::open(&paths, reader.line_hash())?;
        list_log_in_journal(&dir, &log_path)?;
        Ok(Self {
            dir,
            append_queue: AppendQueue::new(log, reader),
            recording_lock: users,
            clock,
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
        let id = Uuid::now_v7();
        self.append_queue.append_record(self.prepare_record(
            line,
            id,
            record::parse_record(line, id),
        ))
    }

    /// Appends wire lines. They are in the file when this returns, and on disk after the next [`Recorder::commit`].
    pub fn append_wire_lines(&self, lines: &WireLines) -> Result<(), FileError> {
        self.append_bodies(lines.bodies())
    }

    /// Appends traffic pieces with one write. They are in the file when this returns, and on disk after the next
    /// [`Recorder::commit`].
    pub fn append_traffic(&self, pieces: &[TrafficPiece<'_>]) -> Result<(), FileError> {
        let lines = pieces.iter().map(TrafficPiece::to_line);
        // Lines are encoded before taking the lock.
        let bodies: Vec<_> =
            lines.map(|line| record::raw_body(self.clock.now(), Uuid::now_v7(), &line)).collect();
        self.append_bodies(bodies.iter().map(Vec::as_slice))
    }

    fn append_bodies<'a>(&self, bodies: impl Iterator<Item = &'a [u8]>) -> Result<(), FileError> {
        let (mut tail, mut reader) = self.append_queue.lock_log()?;
        bodies.for_each(|body| reader.note_written_line(tail.append(body)));
        tail.write().map(|_| ())
    }

    /// Appends a gap that ends now. It is in the file when this returns, and on disk after the next
    /// [`Recorder::commit`].
    pub fn append_gap(&self, gap: &RecordingGap) -> Result<(), FileError> {
        let at = self.clock.now();
        let (mut tail, mut reader) = self.append_queue.lock_log()?;
        reader.note_written_line(tail.append(&record::gap_body(at, gap)));
        reader.read_gap(at, gap);
        drop(reader);
        tail.write().map(|_| ())
    }

    /// Appends bytes that are not a record, with the reason.
    pub fn append_bad_bytes(&self, bytes: &[u8], reason: &str) -> Result<KeptRecord, FileError> {
        let bad = Err(RecordError::Bad(reason.to_owned()));
        self.append_queue.append_record(self.prepare_record(bytes, Uuid::now_v7(), bad))
    }

    /// Syncs everything appended so far. Concurrent commits share one sync.
    pub fn commit(&self) -> Result<(), FileError> {
        self.append_queue.wait_for(self.append_queue.submit(None)).map(|_| ())
    }

    /// Appends one line of JSON and syncs it. Concurrent calls share one write and one sync.
    pub fn record_line(&self, line: &[u8]) -> Result<KeptRecord, FileError> {
        self.submit_line(line).wait()
    }

    /// Queues one line of JSON without waiting, for tasks and for callers that submit many. They share one write and
    /// one sync.
    pub fn submit_line(&self, line: &[u8]) -> PendingRecord<'_> {
        let id = Uuid::now_v7();
        let incoming = self.prepare_record(line, id, record::parse_record(line, id));
        PendingRecord { recorder: self, ticket: self.append_queue.submit(Some(incoming)) }
    }

    /// Appends an entry and syncs it.
    pub fn record_entry(&self, entry: &Entry) -> Result<KeptRecord, FileError> {
        self.record_line(&serde_json::to_vec(entry).expect("an entry has string keys"))
    }

    /// Ends the recording. Seals the log unless another process still records.
    pub fn close(self, closing: &RecordingClosing) -> Result<(), FileError> {
        // A queued record may have no caller that waits for it.
        self.commit()?;
        let (mut tail, reader) = self.append_queue.lock_log()?;
        drop(reader);
        tail.append(&record::close_body(self.clock.now(), closing));
        tail.write()?;
        self.detach()
    }

    /// Stops recording without closing the session. Seals the log unless another process still records.
    pub(super) fn detach(self) -> Result<(), FileError> {
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

    /// Encodes a record before taking the lock: encoding costs more than writing.
    fn prepare_record(
        &self,
        bytes: &[u8],
        id: Uuid,
        entries: Result<Vec<Entry>, RecordError>,
    ) -> IncomingRecord {
        let at = self.clock.now();
        let body = match &entries {
            Ok(_) => record::raw_body(at, id, bytes),
            Err(error) => record::bad_body(at, bytes, &error.to_string()),
        };
        IncomingRecord { at, id, body, entries }
    }

    /// Writes the opening line and syncs it.
    fn write_opening(&mut self, opening: Option<&RecordingOpening>) -> Result<(), FileError> {
        let (mut tail, mut reader) = self.append_queue.lock_log()?;
        let at = self.clock.now();
        if tail.bytes_lost() > 0 {
            let reason = format!("{} kept bytes are missing here", tail.bytes_lost());
            reader.note_written_line(tail.append(&record::bad_body(at, b"", &reason)));
        }
        if let Some(opening) = opening {
            reader.note_written_line(tail.append(&record::open_body(at, opening)));
            reader.apply_opening(at, opening.clone());
        }
        let cut = tail.bytes_cut();
        drop(reader);
        tail.write()?;
        self.cut_bytes = cut;
        self.append_queue.sync()
    }
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
fn read_sealed_record(dir: &SessionDir) -> Result<(u64, RecordReader), FileError> {
    let mut reader = RecordReader::new(dir.id(), dir.agent());
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
            let _ = reader.decode_line(&line.on("read", &path)?);
        }
    }
    let newest = dir.live_logs()?.into_iter().map(|(base, _)| base).max();
    Ok((newest.unwrap_or(0).max(base), reader))
}
