//! The formats of other systems, one module each: a reader and a writer.
//!
//! Each module has a [`Reader`] that finds its sessions below a path by content and reads them item by item, and
//! writes a session back (`write` or `render`). A bad record becomes a [`Problem`] of the transcript; only a source that
//! cannot be read at all is an error.

pub mod chibi;
pub mod devflow;
pub(crate) mod file_format;
pub mod leslie;
pub mod native;
pub mod openai;
pub mod shape;
pub mod tree;
pub mod weakincentives;

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use foldhash::fast::RandomState;

pub use self::tree::FileListing;
use self::tree::Tree;
use crate::agent;
use crate::durable::FileError;
use crate::entry::Entry;
use crate::json::Value;
use crate::problem::{Problem, ProblemList};
use crate::session::{Session, Totals, Transcript};
use crate::traffic;
pub use steno_vault::FormatError;
use steno_vault::{Bundle, Source, take_read_failures};

/// Raised whenever a reader finds or tells something else than before. What was seen is then looked at again, and the
/// index is built anew.
pub const VERSION: u32 = 6;

/// Finds and reads the sessions of one format.
#[derive(Debug)]
pub struct Reader {
    /// The agent that writes it.
    pub agent: &'static str,
    /// The sessions among files, told by their content; empty when there is none.
    pub find: fn(&Tree) -> Result<Vec<Bundle>, FileError>,
    /// Reads one session item by item. The session that it gives says only what the source states.
    pub read: fn(&Bundle, Emit<'_>) -> Result<Session, FormatError>,
}

impl Reader {
    /// The sessions at or below a path.
    pub fn find_at(&self, path: &Path) -> Result<Vec<Bundle>, FileError> {
        (self.find)(&Tree::at(path)?)
    }
}

/// Claude Code's, which has most files; every format of the seed systems, then every other agent's, then our own.
///
/// One that knows its files better comes before one that takes any file of its shape.
pub fn readers() -> impl Iterator<Item = &'static Reader> {
    const FIRST: [&Reader; 5] = [
        &agent::claude_code::READER,
        &leslie::READER,
        &devflow::READER,
        &chibi::READER,
        &weakincentives::READER,
    ];
    FIRST
        .into_iter()
        .chain(agent::READERS.iter().copied())
        .chain([&traffic::READER, &native::READER])
}

/// The reader of what `agent` wrote; ours for those that only speak through `steno record`.
pub fn reader_of(agent: &str) -> &'static Reader {
    readers().find(|reader| reader.agent == agent).unwrap_or(&native::READER)
}

/// The reader of a kept session of `agent`: that of the agent, unless it was kept from a document of ours.
pub(crate) fn reader_of_kept(agent: &str, bundle: &Bundle) -> &'static Reader {
    let is_ours = |source: &Source| native::is_document(source).unwrap_or(false);
    match bundle.sources.as_slice() {
        [only] if only.name().ends_with(".json") && is_ours(only) => &native::READER,
        _ => reader_of(agent),
    }
}

/// One thing that a reader found.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// Something said or done.
    Entry(Box<Entry>),
    /// A record that could not be read.
    Problem(Problem),
}

/// Takes what a reader finds, in the order of the source. A reader holds no more than it must.
pub type Emit<'a> = &'a mut dyn FnMut(Item);

/// Collects what a reader finds into a transcript.
///
/// The session that a reader gives says only what the source states; what entries tell is added here.
fn collect(
    read: impl FnOnce(Emit<'_>) -> Result<Session, FormatError>,
) -> Result<Transcript, FormatError> {
    let (mut entries, mut problems) = (Vec::new(), ProblemList::default());
    let session = read(&mut |item| match item {
        Item::Entry(entry) => entries.push(*entry),
        Item::Problem(problem) => problems.push(problem),
    })?;
    let stated = session.totals;
    let mut transcript = Transcript::new(session);
    transcript.session.totals = Totals { cost: stated.cost, ..Totals::default() };
    transcript.problems = problems.into_problems();
    entries.into_iter().for_each(|entry| transcript.push(entry));
    if !stated.usage.is_empty() {
        transcript.session.totals.usage = stated.usage;
    }
    Ok(transcript)
}

/// Hands out entries alone.
pub(crate) fn entries_to(emit: Emit<'_>) -> impl FnMut(Entry) {
    move |entry| emit(Item::Entry(Box::new(entry)))
}

/// Hands out a transcript that was read as a whole.
pub(crate) fn emit_all(transcript: Transcript, emit: Emit<'_>) -> Session {
    transcript.entries.into_iter().for_each(|entry| emit(Item::Entry(Box::new(entry))));
    transcript.problems.into_iter().for_each(|problem| emit(Item::Problem(problem)));
    transcript.session
}

/// A session that was found in files.
#[derive(Clone, Debug)]
pub struct Found {
    /// What reads it.
    pub reader: &'static Reader,
    /// Its files.
    pub bundle: Bundle,
}

impl Found {
    /// Reads it.
    pub fn read(&self) -> Result<Transcript, FormatError> {
        read(self.reader, &self.bundle)
    }
}

/// Reads a session with what its entries tell.
pub fn read(reader: &Reader, bundle: &Bundle) -> Result<Transcript, FormatError> {
    collect(|emit| (reader.read)(bundle, emit))
}

/// The file `path` itself, or all plain files below the folder `path`; links are not followed.
pub fn files(path: &Path) -> Result<Vec<PathBuf>, FileError> {
    tree::files(path)
}

/// As [`files`], with the folders that could not be listed.
pub fn list_files(path: &Path) -> Result<FileListing, FileError> {
    tree::list_files(path)
}

/// Every session of any format at or below `path`. No file belongs to sessions of two formats, except a database: an editor
/// keeps the chats of several programs in one, each under a key of its own.
pub fn find(path: &Path) -> Result<Vec<Found>, FileError> {
    look(path).map(|look| look.found)
}

/// What a look at a path has found.
#[derive(Debug)]
pub struct Look {
    /// The sessions.
    pub found: Vec<Found>,
    /// Files and folders below the path that could not be opened.
    pub failures: Vec<FileError>,
}

/// As [`find`], and tells what was passed over because it could not be opened.
pub fn look(path: &Path) -> Result<Look, FileError> {
    let mut found = Vec::new();
    take_read_failures();
    let mut tree = Tree::at(path)?;
    let mut taken: HashSet<PathBuf, RandomState> = HashSet::default();
    for reader in readers() {
        let mut bundles = loop {
            match (reader.find)(&tree) {
                Err(error) if tree.pass_over(&error) => {}
                other => break other?,
            }
        };
        // A session takes what stands beside its file too.
        bundles.retain(|bundle| !bundle.files().iter().any(|file| taken.contains(file.path())));
        tree.take(&bundles);
        for bundle in bundles {
            if bundle.origin.is_none() {
                taken.extend(bundle.files().iter().map(|source| source.path().to_owned()));
            }
            found.push(Found { reader, bundle });
        }
    }
    let mut failures = tree.into_failures();
    for failure in take_read_failures() {
        if !failures.iter().any(|known| known.path == failure.path) {
            failures.push(failure);
        }
    }
    Ok(Look { found, failures })
}

/// The longest file that may be a log without messages, in bytes.
const EMPTY_LOG_LIMIT: u64 = 4096;

/// Whether there are files at `path`, and nothing in any of them: they may be logs of any format before the first message.
pub fn holds_only_empty_logs(path: &Path) -> bool {
    let files = files(path).unwrap_or_default();
    !files.is_empty() && files.iter().all(|file| is_empty_log(file))
}

/// Whether a file is blank, or JSON that holds nothing but empty lists and objects.
fn is_empty_log(file: &Path) -> bool {
    let is_small = std::fs::metadata(file).is_ok_and(|file| file.len() <= EMPTY_LOG_LIMIT);
    let Some(bytes) = is_small.then(|| std::fs::read(file).ok()).flatten() else { return false };
    bytes.trim_ascii().is_empty()
        || serde_json::from_slice::<Value>(&bytes).is_ok_and(|value| holds_nothing(&value))
}

fn holds_nothing(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(holds_nothing),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_without_messages_are_told_from_other_files() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("log");
        assert!(!holds_only_empty_logs(folder.path()));
        for empty in ["", " \n\n", "[]", "{}", r#"{"resourceSpans":[],"info":{}}"#] {
            std::fs::write(&file, empty).unwrap();
            assert!(holds_only_empty_logs(&file), "{empty}");
        }
        std::fs::write(folder.path().join("notes.txt"), "x").unwrap();
        assert!(!holds_only_empty_logs(folder.path()));
        for other in ["x", "[1]", r#"{"a":null}"#] {
            std::fs::write(&file, other).unwrap();
            assert!(!holds_only_empty_logs(&file), "{other}");
        }
    }
}
