//! Reads and writes the formats of other systems, one module each.
//!
//! Each module has a [`FormatReader`], which detects its sessions by content and reads them item by item, and functions
//! that write a session back. A record that cannot be parsed becomes a [`Problem`](steno_model::problem::Problem) of the transcript; only a session
//! file that cannot be read at all is an error. Adding a format does not change the vault.

pub(crate) mod file_format;
#[cfg(test)]
mod message_list_tests;
pub mod native;
pub mod nearby_sessions;
pub mod record_shape;

use std::path::{Path, PathBuf};

use steno_agents::agent::Agent;
use steno_agents::protocols::traffic;
use steno_agents::reader::{self, file_tree};
pub use steno_agents::reader::{
    FileListing, FormatError, FormatReader, FoundSession, FoundSessions, ItemSink, ReaderItem,
    read_transcript,
};
use steno_agents::registry;
use steno_model::durable::FileError;
use steno_model::json::Value;
use steno_seeds::SEED_AGENTS;
use steno_vault::{SessionBundle, SessionFile};

/// Version of what all readers share. Raise it when most of them find or decode anything differently.
const SHARED_READER_VERSION: u32 = 7;

/// Version of what the readers produce: another one after each change of a reader, and with each new reader. The index
/// is then rebuilt, and files seen before are checked again.
pub fn reader_version() -> u32 {
    SHARED_READER_VERSION + all_agents().map(|agent| agent.reader_version).sum::<u32>()
}

/// All agents: Claude Code first, because it has the most files, then the seed systems, the other agents, and Steno's
/// own formats.
///
/// A reader that identifies its files precisely comes before one that accepts any file of a similar shape.
pub fn all_agents() -> impl Iterator<Item = &'static Agent> {
    let mut agents = registry::all_agents();
    let first = agents.next();
    let seeds = SEED_AGENTS.iter().copied();
    first.into_iter().chain(seeds).chain(agents).chain([&traffic::AGENT, &native::AGENT])
}

/// The readers of all agents, in the order of [`all_agents`].
pub fn all_readers() -> impl Iterator<Item = &'static FormatReader> {
    all_agents().map(|agent| agent.reader)
}

/// Returns the reader for the files of `agent`. An agent that is only recorded by `steno record` has none of its own
/// and uses [`native::READER`].
pub fn reader_for_agent(agent: &str) -> &'static FormatReader {
    all_readers().find(|reader| reader.agent == agent).unwrap_or(&native::READER)
}

/// Returns the reader for a session in the vault: the agent's, unless the session was imported from a Steno document.
pub(crate) fn reader_for_stored_session(
    agent: &str,
    bundle: &SessionBundle,
) -> &'static FormatReader {
    let is_ours = |source: &SessionFile| native::is_document_file(source).unwrap_or(false);
    match bundle.files.as_slice() {
        [only] if only.name().ends_with(".json") && is_ours(only) => &native::READER,
        _ => reader_for_agent(agent),
    }
}

/// Lists the file `path`, or all plain files below the folder `path`. Symlinks are not followed.
pub fn list_file_paths(path: &Path) -> Result<Vec<PathBuf>, FileError> {
    file_tree::list_file_paths(path)
}

/// Like [`list_file_paths`], and returns the folders that could not be listed.
pub fn list_files(path: &Path) -> Result<FileListing, FileError> {
    file_tree::list_files(path)
}

/// Finds the sessions of all formats at or below `path`.
pub fn find_sessions(path: &Path) -> Result<Vec<FoundSession>, FileError> {
    find_sessions_and_failures(path).map(|look| look.sessions)
}

/// Like [`find_sessions`], and returns the files and folders that failed to open. Fails if `path` itself does.
pub fn find_sessions_and_failures(path: &Path) -> Result<FoundSessions, FileError> {
    reader::find_sessions(path, all_readers())
}

/// Largest size in bytes of a file that may count as a log without messages.
const MAX_EMPTY_LOG_BYTES: u64 = 4096;

/// Whether there are files at `path` and all of them are empty, as logs of any format are before the first message.
pub fn holds_only_empty_logs(path: &Path) -> bool {
    let files = list_file_paths(path).unwrap_or_default();
    !files.is_empty() && files.iter().all(|file| is_empty_log(file))
}

/// Whether a file is blank, or JSON that has only empty lists and objects.
fn is_empty_log(file: &Path) -> bool {
    let is_small = std::fs::metadata(file).is_ok_and(|file| file.len() <= MAX_EMPTY_LOG_BYTES);
    let Some(bytes) = is_small.then(|| std::fs::read(file).ok()).flatten() else { return false };
    bytes.trim_ascii().is_empty()
        || serde_json::from_slice::<Value>(&bytes).is_ok_and(|value| is_empty_json(&value))
}

fn is_empty_json(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.values().all(is_empty_json),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinguishes_empty_logs_from_other_files() {
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
