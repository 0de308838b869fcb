//! The append queue of a recorder: numbers records, and shares one write and one sync among concurrent callers.

use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll};
use std::thread;

use uuid::Uuid;

use super::combiner::{BatchTicket, RequestBatch, RequestCombiner};
use super::live_log::{LiveLog, LiveLogTail};
use super::record::{RecordError, RecordReader};
use super::recorder::KeptRecord;
use crate::durable::FileError;
use crate::entry::Entry;
use crate::timestamp::Timestamp;

/// The end of a session's live log, and the records queued for it.
#[derive(Debug)]
pub(crate) struct AppendQueue {
    log: LiveLog,
    reader: Mutex<RecordReader>,
    combiner: RequestCombiner<Option<IncomingRecord>, AppendResult>,
    batch_sender: OnceLock<BatchSender>,
}

/// The result of appending a record, or of a commit, which has no record.
pub(crate) type AppendResult = Result<Option<KeptRecord>, FileError>;

/// Sends batches that only tasks wait for to a writer thread, because tasks must not block. The thread ends with the
/// queue.
type BatchSender = Sender<(Arc<AppendQueue>, Arc<RequestBatch<AppendResult>>)>;

/// A prepared record.
#[derive(Debug)]
pub(crate) struct IncomingRecord {
    pub(crate) at: Timestamp,
    pub(crate) id: Uuid,
    /// The body of its log line.
    pub(crate) body: Vec<u8>,
    pub(crate) entries: Result<Vec<Entry>, RecordError>,
}

impl AppendQueue {
    pub(crate) fn new(log: LiveLog, reader: RecordReader) -> Arc<Self> {
        let (reader, combiner) = (Mutex::new(reader), RequestCombiner::new());
        Arc::new(Self { log, reader, combiner, batch_sender: OnceLock::new() })
    }

    /// Appends one record at once, without batching.
    pub(crate) fn append_record(&self, incoming: IncomingRecord) -> Result<KeptRecord, FileError> {
        let (mut tail, mut reader) = self.lock_log()?;
        let recorded = append_numbered(&mut tail, &mut reader, incoming);
        tail.write()?;
        Ok(recorded)
    }

    /// Queues a record. `None` only asks for a sync of everything before it.
    pub(crate) fn submit(&self, incoming: Option<IncomingRecord>) -> BatchTicket<AppendResult> {
        self.combiner.submit(incoming)
    }

    /// Waits until the request is on disk.
    pub(crate) fn wait_for(&self, ticket: BatchTicket<AppendResult>) -> AppendResult {
        self.combiner.wait(ticket, |batch| self.append_batch(batch))
    }

    /// Like `wait_for`, for a task.
    pub(crate) fn poll_ticket(
        self: &Arc<Self>,
        ticket: &BatchTicket<AppendResult>,
        task: &Context<'_>,
    ) -> Poll<AppendResult> {
        ticket.poll(task, |batch| {
            let clerk = self.batch_sender.get_or_init(start_writer_thread);
            clerk.send((Arc::clone(self), batch)).expect("the clerk listens as long as we are");
        })
    }

    /// Locks the end of the log after reading what other processes recorded.
    pub(crate) fn lock_log(
        &self,
    ) -> Result<(LiveLogTail<'_>, MutexGuard<'_, RecordReader>), FileError> {
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        let tail = self.log.lock_tail(&mut |line| {
            // Readers and `verify` report damaged lines.
            let _ = reader.decode_line(line);
        })?;
        Ok((tail, reader))
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
        let (mut tail, mut reader) = self.lock_log()?;
        let recorded = batch
            .into_iter()
            .map(|incoming| {
                incoming.map(|incoming| append_numbered(&mut tail, &mut reader, incoming))
            })
            .collect();
        drop(reader);
        tail.write()?;
        self.log.sync()?;
        Ok(recorded)
    }
}

fn start_writer_thread() -> BatchSender {
    let (clerk, batches) = mpsc::channel::<(Arc<AppendQueue>, Arc<RequestBatch<AppendResult>>)>();
    thread::spawn(move || {
        for (desk, batch) in batches {
            desk.combiner.serve_batch(&batch, |requests| desk.append_batch(requests));
        }
    });
    clerk
}

/// Numbers a record as the session's next and adds it to the tail.
fn append_numbered(
    tail: &mut LiveLogTail<'_>,
    reader: &mut RecordReader,
    incoming: IncomingRecord,
) -> KeptRecord {
    let mut entries = incoming.entries;
    if let Ok(entries) = &mut entries {
        reader.number_entries(incoming.at, incoming.id, entries);
    }
    reader.note_written_line(tail.append(&incoming.body));
    KeptRecord { entries }
}
