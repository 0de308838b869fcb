//! The append queue of a recorder: numbers records, and shares one write and one sync among concurrent callers.

use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll};
use std::thread;

use uuid::Uuid;

use super::combine::{Batch, Combiner, Ticket};
use super::live::{LiveLog, Tail};
use super::record::{RecordError, RecordReader};
use super::recorder::Recorded;
use crate::durable::FileError;
use crate::entry::Entry;
use crate::timestamp::Timestamp;

/// The end of a session's live log, and the records queued for it.
#[derive(Debug)]
pub(crate) struct Desk {
    log: LiveLog,
    reader: Mutex<RecordReader>,
    combiner: Combiner<Option<Incoming>, Outcome>,
    clerk: OnceLock<Clerk>,
}

/// The result of appending a record, or of a commit, which has no record.
pub(crate) type Outcome = Result<Option<Recorded>, FileError>;

/// Sends batches that only tasks wait for to a writer thread, because tasks must not block. The thread ends with the
/// queue.
type Clerk = Sender<(Arc<Desk>, Arc<Batch<Outcome>>)>;

/// A prepared record.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) at: Timestamp,
    pub(crate) id: Uuid,
    /// The body of its log line.
    pub(crate) body: Vec<u8>,
    pub(crate) entries: Result<Vec<Entry>, RecordError>,
}

impl Desk {
    pub(crate) fn new(log: LiveLog, reader: RecordReader) -> Arc<Self> {
        let (reader, combiner) = (Mutex::new(reader), Combiner::new());
        Arc::new(Self { log, reader, combiner, clerk: OnceLock::new() })
    }

    /// Appends one record at once, without batching.
    pub(crate) fn append(&self, incoming: Incoming) -> Result<Recorded, FileError> {
        let (mut tail, mut reader) = self.lock()?;
        let recorded = take(&mut tail, &mut reader, incoming);
        tail.write()?;
        Ok(recorded)
    }

    /// Queues a record. `None` only asks for a sync of everything before it.
    pub(crate) fn submit(&self, incoming: Option<Incoming>) -> Ticket<Outcome> {
        self.combiner.submit(incoming)
    }

    /// Waits until the request is on disk.
    pub(crate) fn wait(&self, ticket: Ticket<Outcome>) -> Outcome {
        self.combiner.wait(ticket, |batch| self.serve(batch))
    }

    /// Like `wait_for`, for a task.
    pub(crate) fn poll(
        self: &Arc<Self>,
        ticket: &Ticket<Outcome>,
        task: &Context<'_>,
    ) -> Poll<Outcome> {
        ticket.poll(task, |batch| {
            let clerk = self.clerk.get_or_init(hire);
            clerk.send((Arc::clone(self), batch)).expect("the clerk listens as long as we are");
        })
    }

    /// Locks the end of the log after reading what other processes recorded.
    pub(crate) fn lock(&self) -> Result<(Tail<'_>, MutexGuard<'_, RecordReader>), FileError> {
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        let tail = self.log.lock(&mut |line| {
            // Readers and `verify` report damaged lines.
            let _ = reader.line(line);
        })?;
        Ok((tail, reader))
    }

    pub(crate) fn sync(&self) -> Result<(), FileError> {
        self.log.sync()
    }

    fn serve(&self, batch: Vec<Option<Incoming>>) -> Vec<Outcome> {
        let count = batch.len();
        match self.serve_all(batch) {
            Ok(recorded) => recorded.into_iter().map(Ok).collect(),
            Err(error) => (0..count).map(|_| Err(error.again())).collect(),
        }
    }

    fn serve_all(&self, batch: Vec<Option<Incoming>>) -> Result<Vec<Option<Recorded>>, FileError> {
        let (mut tail, mut reader) = self.lock()?;
        let recorded = batch
            .into_iter()
            .map(|incoming| incoming.map(|incoming| take(&mut tail, &mut reader, incoming)))
            .collect();
        drop(reader);
        tail.write()?;
        self.log.sync()?;
        Ok(recorded)
    }
}

fn hire() -> Clerk {
    let (clerk, batches) = mpsc::channel::<(Arc<Desk>, Arc<Batch<Outcome>>)>();
    thread::spawn(move || {
        for (desk, batch) in batches {
            desk.combiner.lead(&batch, |requests| desk.serve(requests));
        }
    });
    clerk
}

/// Numbers a record as the session's next and adds it to the tail.
fn take(tail: &mut Tail<'_>, reader: &mut RecordReader, incoming: Incoming) -> Recorded {
    let mut entries = incoming.entries;
    if let Ok(entries) = &mut entries {
        reader.number(incoming.at, incoming.id, entries);
    }
    reader.wrote(tail.append(&incoming.body));
    Recorded { entries }
}
