//! devflow: run transcripts in `runs/<run id>/transcript.json`, as ADR-011 defines them.
//!
//! [`find`], [`read`] and [`write()`] convert runs to transcripts and back. [`Store`] records and stores runs in a
//! `.devflow` folder, and [`View`] renders them.

mod archive;
mod artifact;
mod base;
mod decode;
mod diff;
mod encode;
mod entries;
mod entry_patch;
mod error;
mod fields;
mod folder;
mod go_time;
mod index;
mod journal;
mod markdown;
mod recording;
mod retention;
mod run;
mod run_id;
mod search;
mod stats;
mod store;
mod table;
mod turns;
mod view;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

pub use artifact::{ArtifactInfo, artifact_type};
pub use base::base_of;
pub use decode::{Decoded, metadata as read_metadata, transcript as read_transcript};
pub use diff::diff;
pub use encode::Shape;
pub use error::StoreError;
pub use markdown::markdown;
pub use recording::NewRun;
pub use retention::{Cleanup, CleanupOptions, DiskUsage, Retention};
pub use run::{Run, RunMeta, ToolCall, Turn};
pub use run_id::{RunId, RunIdError};
pub use search::{Hit, Query, SearchResult, TokenRange};
pub use stats::Stats;
pub use store::{Filter, RunList, Store};
pub use table::{meta_list, stats_text};
pub use view::{Look, View, thousands};

use self::fields::Fields;
use crate::durable::{self, FileError};
use crate::entry::{Entry, EntryError};
use crate::format::tree::Tree;
use crate::format::{FormatError, Reader, emit_all};
use crate::json::{Object, Value};
use crate::session::Transcript;
use steno_vault::{Bundle, Source};

/// The agent's name.
pub const AGENT: &str = "devflow";

/// The reader of these files.
pub const READER: Reader =
    Reader { agent: AGENT, find, read: |bundle, emit| Ok(emit_all(read(bundle)?, emit)) };

/// Finds runs: a run folder, any folder above one, or a single transcript file.
pub fn find(tree: &Tree) -> Result<Vec<Bundle>, FileError> {
    if !tree.is_folder() && is_transcript(tree.root()) {
        return Ok(vec![Bundle::file(tree.root())]);
    }
    let mut found: Vec<Bundle> = Vec::new();
    let marks = [folder::METADATA, folder::PLAIN, folder::COMPRESSED];
    for folder in tree.folders_with(|name| marks.contains(&name)) {
        // Files inside a run folder belong to that run.
        let within = found.last().is_some_and(|run| folder.starts_with(&run.root));
        if !within && is_run_folder(folder) {
            found.push(folder::bundle(folder));
        }
    }
    Ok(found)
}

/// Whether a record is a turn of a run.
pub fn recognises(object: &Object) -> bool {
    let text = |field: &str| object.get(field).is_some_and(Value::is_string);
    let numbered = object.get("id").is_some_and(Value::is_u64);
    numbered && ["role", "content", "timestamp"].into_iter().all(text)
}

/// Decodes one turn.
pub fn entries(object: Object) -> Result<Vec<Entry>, EntryError> {
    let mut fields = Fields::new(object);
    let turn = Turn::take(&mut fields);
    match fields.wrong.into_iter().next() {
        Some(wrong) => Err(wrong),
        None => Ok(entries::entries("turn", turn.id.saturating_sub(1) as usize, &turn)),
    }
}

/// Whether a record is a whole run.
pub fn recognises_run(object: &Object) -> bool {
    object.get("runId").is_some_and(Value::is_string)
        && object.get("turns").is_some_and(|turns| turns.is_array() || turns.is_null())
}

/// Decodes all turns of a run.
pub fn run_entries(mut object: Object) -> Result<Vec<Entry>, EntryError> {
    let run_id = Fields::new(object.clone()).string("runId");
    let Some(Value::Array(turns)) = object.shift_remove("turns") else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    for (position, turn) in turns.into_iter().enumerate() {
        let Value::Object(turn) = turn else {
            return Err(EntryError::NotAnObject);
        };
        let turn = Turn::take(&mut Fields::new(turn));
        found.extend(entries::entries(&run_id, position, &turn));
    }
    Ok(found)
}

/// Reads one run.
pub fn read(bundle: &Bundle) -> Result<Transcript, FormatError> {
    folder::load(bundle).map(entries::transcript)
}

/// Returns the original session, if the run was written from a session of another agent; else the transcript
/// unchanged.
///
/// The vault stores such a run under its own name, next to the session. A conversion returns the session.
pub fn give_back(transcript: Transcript) -> Transcript {
    entries::give_back(transcript)
}

/// Writes a transcript as a run below `base`, and returns the folder.
///
/// A run of the same name is replaced only if it is an earlier state of this one.
pub fn write(transcript: &Transcript, base: &Path, shape: Shape) -> Result<PathBuf, StoreError> {
    let run = Run::from(transcript);
    let id: RunId = run.run_id.parse()?;
    let runs = base.join(store::RUNS);
    let folder = runs.join(id.as_str());
    if journal::is_live(&folder)? {
        return Err(StoreError::Recording(id));
    }
    match folder::load(&folder::bundle(&folder)) {
        Ok(before) if !continues(&run, &before.run) => return Err(StoreError::AlreadyExists(id)),
        Ok(_) => {}
        Err(FormatError::Invalid(_)) if folder::bundle(&folder).sources.is_empty() => {}
        Err(error) => return Err(StoreError::unreadable(id, error)),
    }
    folder::save(&folder, &run, shape)?;
    // The index is outdated now; a missing one is valid.
    durable::remove_file(&runs.join(index::NAME))?;
    Ok(folder)
}

/// Whether a run starts with all turns of another one.
fn continues(run: &Run, before: &Run) -> bool {
    let alike = |(a, b): (&Turn, &Turn)| {
        (&a.role, &a.content) == (&b.role, &b.content)
            && a.timestamp.map(|at| at.instant()) == b.timestamp.map(|at| at.instant())
    };
    let (meta, meta_before) = (&run.metadata, &before.metadata);
    meta.flow_id == meta_before.flow_id
        && meta.started_at.map(|at| at.instant()) == meta_before.started_at.map(|at| at.instant())
        && before.turns.len() <= run.turns.len()
        && run.turns.iter().zip(&before.turns).all(alike)
}

fn is_run_folder(dir: &Path) -> bool {
    let bundle = folder::bundle(dir);
    let metadata = bundle.get(folder::METADATA).map(Source::bytes);
    let described = metadata.and_then(Result::ok).is_some_and(|bytes| {
        decode::metadata(dir, &bytes).is_ok_and(|(meta, _)| meta.started_at.is_some())
    });
    let named = [folder::PLAIN, folder::COMPRESSED];
    described || named.iter().any(|name| is_transcript(&dir.join(name)))
}

fn is_transcript(path: &Path) -> bool {
    if !folder::is_plain_file(path) {
        return false;
    }
    folder::plain_start(path).is_ok_and(|start| decode::is_transcript(&start))
}
