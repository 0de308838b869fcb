//! Where records come in: numbers them, and writes and syncs for everybody who waits.

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

/// The end of a session's log, and what waits to be written there.
#[derive(Debug)]
pub(crate) struct Desk {
    log: LiveLog,
    reader: Mutex<RecordReader>,
    combiner: Combiner<Option<Incoming>, Outcome>,
    clerk: OnceLock<Clerk>,
}

/// What came of a record, or of a commit, which has none.
pub(crate) type Outcome = Result<Option<Recorded>, FileError>;

/// Serves the batches that only tasks wait for: a task must not block. It ends with the desk.
type Clerk = Sender<(Arc<Desk>, Arc<Batch<Outcome>>)>;

/// A record on its way into the log.
#[derive(Debug)]
pub(crate) struct Incoming {
    pub(crate) at: Timestamp,
    pub(crate) id: Uuid,
    /// What its line says.
    pub(crate) body: Vec<u8>,
    pub(crate) entries: Result<Vec<Entry>, RecordError>,
}

impl Desk {
    pub(crate) fn new(log: LiveLog, reader: RecordReader) -> Arc<Self> {
        let (reader, combiner) = (Mutex::new(reader), Combiner::new());
        Arc::new(Self { log, reader, combiner, clerk: OnceLock::new() })
    }

    /// Puts a record into the file, at once and alone.
    pub(crate) fn append(&self, incoming: Incoming) -> Result<Recorded, FileError> {
        let (mut tail, mut reader) = self.lock()?;
        let recorded = take(&mut tail, &mut reader, incoming);
        tail.write()?;
        Ok(recorded)
    }

    /// Hands in a record, or a wish that all before it be on disk.
    pub(crate) fn submit(&self, incoming: Option<Incoming>) -> Ticket<Outcome> {
        self.combiner.submit(incoming)
    }

    /// Returns after what was handed in is on disk.
    pub(crate) fn wait(&self, ticket: Ticket<Outcome>) -> Outcome {
        self.combiner.wait(ticket, |batch| self.serve(batch))
    }

    /// The same for a task.
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

    /// Takes the log's end, after reading what others have recorded.
    pub(crate) fn lock(&self) -> Result<(Tail<'_>, MutexGuard<'_, RecordReader>), FileError> {
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        let tail = self.log.lock(&mut |line| {
            // A damaged line is reported to whoever reads or verifies the session.
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

/// Puts a record into the tail, numbered as the next of the session.
fn take(tail: &mut Tail<'_>, reader: &mut RecordReader, incoming: Incoming) -> Recorded {
    let mut entries = incoming.entries;
    if let Ok(entries) = &mut entries {
        reader.number(incoming.at, incoming.id, entries);
    }
    reader.wrote(tail.append(&incoming.body));
    Recorded { entries }
}
