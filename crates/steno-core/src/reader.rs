//! What every reader of a format provides, and how a session is collected from its items.
//!
//! This module knows no format. [`crate::format`] lists the readers and finds sessions with them.

pub mod file_tree;

use std::path::Path;

pub use self::file_tree::FileListing;
use self::file_tree::FileTree;
use crate::durable::FileError;
use crate::entry::Entry;
use crate::problem::{Problem, ProblemList};
use crate::session::{Session, SessionTotals, Transcript};
pub use steno_vault::FormatError;
use steno_vault::SessionBundle;

/// Finds and reads the sessions of one format.
#[derive(Debug)]
pub struct FormatReader {
    /// The agent that writes the format.
    pub agent: &'static str,
    /// Finds sessions among files by their content; empty if there are none.
    pub find: fn(&FileTree) -> Result<Vec<SessionBundle>, FileError>,
    /// Reads one session item by item. The returned session has only the fields that the files state; totals from
    /// entries are added by the caller.
    pub read: fn(&SessionBundle, ItemSink<'_>) -> Result<Session, FormatError>,
}

impl FormatReader {
    /// Finds the sessions at or below a path.
    pub fn find_at(&self, path: &Path) -> Result<Vec<SessionBundle>, FileError> {
        (self.find)(&FileTree::open(path)?)
    }
}

/// One item that a reader emits.
#[derive(Clone, Debug, PartialEq)]
pub enum ReaderItem {
    /// A message, tool call, tool result or other entry.
    Entry(Box<Entry>),
    /// A record that could not be parsed.
    Problem(Problem),
}

/// Receives the items of a reader, in file order. Readers buffer as little as possible.
pub type ItemSink<'a> = &'a mut dyn FnMut(ReaderItem);

/// Collects the items of a reader into a transcript.
///
/// Totals are computed from the entries. A cost or usage that the session files state takes precedence.
fn collect_transcript(
    read: impl FnOnce(ItemSink<'_>) -> Result<Session, FormatError>,
) -> Result<Transcript, FormatError> {
    let (mut entries, mut problems) = (Vec::new(), ProblemList::default());
    let session = read(&mut |item| match item {
        ReaderItem::Entry(entry) => entries.push(*entry),
        ReaderItem::Problem(problem) => problems.push(problem),
    })?;
    let stated = session.totals;
    let mut transcript = Transcript::new(session);
    transcript.session.totals = SessionTotals { cost: stated.cost, ..SessionTotals::default() };
    transcript.problems = problems.into_problems();
    entries.into_iter().for_each(|entry| transcript.push(entry));
    if !stated.usage.is_empty() {
        transcript.session.totals.usage = stated.usage;
    }
    Ok(transcript)
}

/// Returns a function that emits entries as items.
pub(crate) fn entry_sink(emit: ItemSink<'_>) -> impl FnMut(Entry) {
    move |entry| emit(ReaderItem::Entry(Box::new(entry)))
}

/// Emits the entries and problems of a transcript that was read as a whole, and returns its session.
pub(crate) fn emit_transcript(transcript: Transcript, emit: ItemSink<'_>) -> Session {
    transcript.entries.into_iter().for_each(|entry| emit(ReaderItem::Entry(Box::new(entry))));
    transcript.problems.into_iter().for_each(|problem| emit(ReaderItem::Problem(problem)));
    transcript.session
}

/// A session found in files, with the reader for it.
#[derive(Clone, Debug)]
pub struct FoundSession {
    /// The reader for the format.
    pub reader: &'static FormatReader,
    /// The session files.
    pub bundle: SessionBundle,
}

impl FoundSession {
    /// Reads the session as a transcript.
    pub fn read_transcript(&self) -> Result<Transcript, FormatError> {
        read_transcript(self.reader, &self.bundle)
    }
}

/// Reads a session as a transcript, with totals computed from its entries.
pub fn read_transcript(
    reader: &FormatReader,
    bundle: &SessionBundle,
) -> Result<Transcript, FormatError> {
    collect_transcript(|emit| (reader.read)(bundle, emit))
}
