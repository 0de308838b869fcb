//! devflow: run transcripts in `runs/<run id>/transcript.json`, as ADR-011 defines them.
//!
//! [`find_runs`], [`read_run`] and [`write_run()`] convert runs to transcripts and back. [`RunStore`] records and
//! stores runs in a `.devflow` folder, and [`RunView`] renders them.

mod archive;
mod artifact;
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
mod run_table;
mod run_view;
mod search;
mod stats;
mod store;
mod store_base;
mod turns;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

pub use artifact::{ArtifactInfo, artifact_type};
pub use decode::{DecodedRun, read_metadata, read_transcript};
pub use diff::diff_runs;
pub use encode::RunFileShape;
pub use error::RunStoreError;
pub use markdown::render_markdown;
pub use recording::NewRun;
pub use retention::{CleanupOptions, CleanupReport, DiskUsage, RetentionPolicy};
pub use run::{DevflowRun, RunMetadata, RunTurn, TurnToolCall};
pub use run_id::{RunId, RunIdError};
pub use run_table::{render_run_table, render_stats};
pub use run_view::{RunView, RunViewStyle, format_thousands};
pub use search::{RunQuery, RunSearchResult, TokenRange, TurnHit};
pub use stats::RunStats;
pub use store::{RunFilter, RunList, RunStore};
pub use store_base::find_store_base;

use self::fields::LenientFields;
use steno_agents::agent::Agent;
use steno_agents::agent::nearby::NearbyRules;
use steno_agents::reader::file_tree::FileTree;
use steno_agents::reader::{FormatError, FormatReader, emit_transcript};
use steno_model::durable::{self, FileError};
use steno_model::entry::{Entry, EntryError};
use steno_model::json::{Object, Value};
use steno_model::session::Transcript;
use steno_vault::{SessionBundle, SessionFile};

/// The agent's name.
pub const AGENT_NAME: &str = "devflow";

/// The reader of these files.
pub const READER: FormatReader = FormatReader {
    agent: AGENT_NAME,
    find: find_runs,
    read: |bundle, emit| Ok(emit_transcript(read_run(bundle)?, emit)),
};

/// What is known about devflow.
pub(crate) const AGENT: Agent = Agent {
    nearby: NearbyRules {
        session_folder_files: &[folder::PLAIN_FILE, folder::COMPRESSED_FILE],
        ..NearbyRules::NONE
    },
    ..Agent::new("devflow", &READER)
};

/// Finds runs: a run folder, any folder above one, or a single transcript file.
pub fn find_runs(tree: &FileTree) -> Result<Vec<SessionBundle>, FileError> {
    if !tree.is_folder() && is_transcript_file(tree.root()) {
        return Ok(vec![SessionBundle::from_file(tree.root())]);
    }
    let mut found: Vec<SessionBundle> = Vec::new();
    let marks = [folder::METADATA_FILE, folder::PLAIN_FILE, folder::COMPRESSED_FILE];
    for folder in tree.folders_containing(|name| marks.contains(&name)) {
        // Files inside a run folder belong to that run.
        let within = found.last().is_some_and(|run| folder.starts_with(&run.root));
        if !within && is_run_folder(folder) {
            found.push(folder::run_bundle(folder));
        }
    }
    Ok(found)
}

/// Whether a record is a turn of a run.
pub fn is_turn_record(object: &Object) -> bool {
    let text = |field: &str| object.get(field).is_some_and(Value::is_string);
    let numbered = object.get("id").is_some_and(Value::is_u64);
    numbered && ["role", "content", "timestamp"].into_iter().all(text)
}

/// Decodes one turn.
pub fn decode_turn(object: Object) -> Result<Vec<Entry>, EntryError> {
    let mut fields = LenientFields::new(object);
    let turn = RunTurn::from_fields(&mut fields);
    match fields.errors.into_iter().next() {
        Some(wrong) => Err(wrong),
        None => Ok(entries::entries_from_turn("turn", turn.id.saturating_sub(1) as usize, &turn)),
    }
}

/// Whether a record is a whole run.
pub fn is_run_record(object: &Object) -> bool {
    object.get("runId").is_some_and(Value::is_string)
        && object.get("turns").is_some_and(|turns| turns.is_array() || turns.is_null())
}

/// Decodes all turns of a run.
pub fn decode_run(mut object: Object) -> Result<Vec<Entry>, EntryError> {
    let run_id = LenientFields::new(object.clone()).take_string("runId");
    let Some(Value::Array(turns)) = object.shift_remove("turns") else {
        return Ok(Vec::new());
    };
    let mut found = Vec::new();
    for (position, turn) in turns.into_iter().enumerate() {
        let Value::Object(turn) = turn else {
            return Err(EntryError::NotAnObject);
        };
        let turn = RunTurn::from_fields(&mut LenientFields::new(turn));
        found.extend(entries::entries_from_turn(&run_id, position, &turn));
    }
    Ok(found)
}

/// Reads one run.
pub fn read_run(bundle: &SessionBundle) -> Result<Transcript, FormatError> {
    folder::load_run(bundle).map(entries::transcript_from_run)
}

/// Returns the original session, if the run was written from a session of another agent; else the transcript
/// unchanged.
///
/// The vault stores such a run under its own name, next to the session. A conversion returns the session.
pub fn restore_original(transcript: Transcript) -> Transcript {
    entries::restore_original(transcript)
}

/// Writes a transcript as a run below `base`, and returns the folder.
///
/// A run of the same name is replaced only if it is an earlier state of this one.
pub fn write_run(
    transcript: &Transcript,
    base: &Path,
    shape: RunFileShape,
) -> Result<PathBuf, RunStoreError> {
    let run = DevflowRun::from(transcript);
    let id: RunId = run.run_id.parse()?;
    let runs = base.join(store::RUNS_FOLDER);
    let folder = runs.join(id.as_str());
    if journal::is_live(&folder)? {
        return Err(RunStoreError::Recording(id));
    }
    match folder::load_run(&folder::run_bundle(&folder)) {
        Ok(before) if !is_continuation(&run, &before.run) => {
            return Err(RunStoreError::AlreadyExists(id));
        }
        Ok(_) => {}
        Err(FormatError::Invalid(_)) if folder::run_bundle(&folder).files.is_empty() => {}
        Err(error) => return Err(RunStoreError::from_format_error(id, error)),
    }
    folder::save_run(&folder, &run, shape)?;
    // The index is outdated now; a missing one is valid.
    durable::remove_file(&runs.join(index::INDEX_FILE))?;
    Ok(folder)
}

/// Whether a run starts with all turns of another one.
fn is_continuation(run: &DevflowRun, before: &DevflowRun) -> bool {
    let alike = |(a, b): (&RunTurn, &RunTurn)| {
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
    let bundle = folder::run_bundle(dir);
    let metadata = bundle.file_named(folder::METADATA_FILE).map(SessionFile::read_bytes);
    let described = metadata.and_then(Result::ok).is_some_and(|bytes| {
        decode::read_metadata(dir, &bytes).is_ok_and(|(meta, _)| meta.started_at.is_some())
    });
    let named = [folder::PLAIN_FILE, folder::COMPRESSED_FILE];
    described || named.iter().any(|name| is_transcript_file(&dir.join(name)))
}

fn is_transcript_file(path: &Path) -> bool {
    if !folder::is_plain_file(path) {
        return false;
    }
    folder::read_plain_start(path).is_ok_and(|start| decode::is_transcript_json(&start))
}
