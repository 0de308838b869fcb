//! The append queue of a recorder: numbers records, and shares one write and one sync among concurrent callers.

use std::sync::{Mutex, MutexGuard, PoisonError};

use uuid::Uuid;

use super::combiner::RequestCombiner;
use super::live_log::{LiveLog, LiveLogTail};
use super::record::{self, RecordDecoder, RecordError};
use super::record_cursor::RecordCursor;
use super::recorder::KeptRecord;
use steno_model::durable::FileError;
use steno_model::entry::Entry;
use steno_model::timestamp::Timestamp;

/// The end of a session's live log, and the records queued for it.
#[derive(Debug)]
pub(crate) struct AppendQueue {
    log: LiveLog,
    decoder: RecordDecoder,
    cursor: Mutex<RecordCursor>,
    combiner: RequestCombiner<Option<IncomingRecord>, AppendResult>,
}

/// The result of appending a record, or of a commit, which has no record.
type AppendResult = Result<Option<KeptRecord>, FileError>;

/// A prepared record.
#[derive(Debug)]
pub(crate) struct IncomingRecord {
    at: Timestamp,
    id: Uuid,
    /// The body of its log line.
    body: Vec<u8>,
    entries: Result<Vec<Entry>, RecordError>,
}

impl IncomingRecord {
    /// Encodes a record with its entries, or bytes with the reason why they are no record.
    pub(crate) fn encode(
        at: Timestamp,
        id: Uuid,
        bytes: &[u8],
        entries: Result<Vec<Entry>, RecordError>,
    ) -> Self {
        let body = match &entries {
            Ok(_) => record::raw_body(at, id, bytes),
            Err(error) => record::bad_body(at, bytes, &error.to_string()),
        };
        Self { at, id, body, entries }
    }
}

impl AppendQueue {
    pub(crate) fn new(log: LiveLog, cursor: RecordCursor, decoder: RecordDecoder) -> Self {
        Self { log, decoder, cursor: Mutex::new(cursor), combiner: RequestCombiner::new() }
    }

    /// Appends one record at once, without batching.
    pub(crate) fn append_record(&self, incoming: IncomingRecord) -> Result<KeptRecord, FileError> {
        let (mut tail, mut cursor) = self.lock_log()?;
        let recorded = append_numbered(&mut tail, &mut cursor, incoming);
        tail.write()?;
        Ok(recorded)
    }

    /// Appends one record and syncs it, together with those of concurrent callers.
    pub(crate) fn append_and_sync(
        &self,
        incoming: IncomingRecord,
    ) -> Result<KeptRecord, FileError> {
        self.submit(Some(incoming)).map(|recorded| recorded.expect("a record was submitted"))
    }

    /// Syncs everything appended so far. Concurrent commits share one sync.
    pub(crate) fn commit(&self) -> Result<(), FileError> {
        self.submit(None).map(drop)
    }

    fn submit(&self, incoming: Option<IncomingRecord>) -> AppendResult {
        self.combiner.serve(incoming, |batch| self.append_batch(batch))
    }

    /// Locks the end of the log after reading what other processes recorded.
    pub(crate) fn lock_log(
        &self,
    ) -> Result<(LiveLogTail<'_>, MutexGuard<'_, RecordCursor>), FileError> {
        let mut cursor = self.cursor.lock().unwrap_or_else(PoisonError::into_inner);
        let tail = self.log.lock_tail(&mut |line| cursor.follow_line(line, self.decoder))?;
        Ok((tail, cursor))
    }

    pub(crate) fn sync(&self) -> Result<(), FileError> {
        self.log.sync()
    }

    fn append_batch(&self, batch: Vec<Option<IncomingRecord>>) -> Vec<AppendResult> {
        let count = batch.len();
        match self.write_batch(batch) {
            Ok(recorded) => recorded.into_iter().map(Ok).collect(),
            Err(error) => (0..count).map(|_| Err(error.duplicate_error())).collect(),
        }
    }

    fn write_batch(
        &self,
        batch: Vec<Option<IncomingRecord>>,
    ) -> Result<Vec<Option<KeptRecord>>, FileError> {
        let (mut tail, mut cursor) = self.lock_log()?;
        let recorded = batch
            .into_iter()
            .map(|incoming| {
                incoming.map(|incoming| append_numbered(&mut tail, &mut cursor, incoming))
            })
            .collect();
        drop(cursor);
        tail.write()?;
        self.log.sync()?;
        Ok(recorded)
    }
}

/// Numbers a record as the session's next and adds it to the tail.
fn append_numbered(
    tail: &mut LiveLogTail<'_>,
    cursor: &mut RecordCursor,
    incoming: IncomingRecord,
) -> KeptRecord {
    let mut entries = incoming.entries;
    if let Ok(entries) = &mut entries {
        cursor.number_entries(incoming.at, incoming.id, entries);
    }
    cursor.note_written_line(tail.append(&incoming.body));
    KeptRecord { entries }
}
