//! What every reader of a format provides, and how a session is collected from its items.
//!
//! This module knows no format. [`crate::registry`] lists the readers.

pub mod file_tree;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use foldhash::fast::RandomState;

pub use self::file_tree::FileListing;
use self::file_tree::FileTree;
use steno_model::durable::FileError;
use steno_model::entry::Entry;
use steno_model::problem::{Problem, ProblemList};
use steno_model::session::{Session, SessionTotals, Transcript};
pub use steno_vault::FormatError;
use steno_vault::{SessionBundle, take_read_failures};

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
    /// A record whose parsing failed.
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
pub fn emit_transcript(transcript: Transcript, emit: ItemSink<'_>) -> Session {
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

/// The sessions found at a path, and the files that could not be opened.
#[derive(Debug)]
pub struct FoundSessions {
    /// The sessions.
    pub sessions: Vec<FoundSession>,
    /// Files and folders below the path that could not be opened.
    pub failures: Vec<FileError>,
}

/// Finds the sessions of the given readers at or below `path`, and the files that could not be opened.
///
/// A file belongs to sessions of one format only. A database is the exception: an editor stores the chats of several
/// programs in one, each under its own key.
pub fn find_sessions(
    path: &Path,
    readers: impl IntoIterator<Item = &'static FormatReader>,
) -> Result<FoundSessions, FileError> {
    let mut found = Vec::new();
    take_read_failures();
    let mut tree = FileTree::open(path)?;
    let mut taken: HashSet<PathBuf, RandomState> = HashSet::default();
    for reader in readers {
        let mut bundles = loop {
            match (reader.find)(&tree) {
                Err(error) if tree.skip_unreadable(&error) => {}
                other => break other?,
            }
        };
        // A session may also claim files next to its main file.
        bundles
            .retain(|bundle| !bundle.main_files().iter().any(|file| taken.contains(file.path())));
        tree.remove_session_files(&bundles);
        for bundle in bundles {
            if bundle.origin.is_none() {
                taken.extend(bundle.main_files().iter().map(|source| source.path().to_owned()));
            }
            found.push(FoundSession { reader, bundle });
        }
    }
    let mut failures = tree.into_failures();
    for failure in take_read_failures() {
        if !failures.iter().any(|known| known.path == failure.path) {
            failures.push(failure);
        }
    }
    Ok(FoundSessions { sessions: found, failures })
}
