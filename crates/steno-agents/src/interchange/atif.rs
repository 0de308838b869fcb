//! ATIF, the Agent Trajectory Interchange Format of Harbor (v1.0 to v1.8): one JSON document per trajectory.
//!
//! A trajectory may contain those of its subagents. Steps copied from an earlier trajectory become notices, because
//! they are counted in that trajectory.

mod step;
mod write;

pub use self::write::render_atif;

use std::path::Path;

use self::step::AtifStepReader;
use crate::agent::Agent;
use crate::agent::record_format::RecordFormat;
use crate::decoding::document;
use crate::decoding::entry_emitter::EntryEmitter;
use crate::decoding::file_head::FileHead;
use crate::decoding::json_fields::{as_count, list_items, owned_text};
use crate::decoding::record_list::RecordList;
use crate::reader::file_tree::FileTree;
use crate::reader::{FormatError, FormatReader, ItemSink};
use steno_model::durable::FileError;
use steno_model::entry::{PRIMARY_SOURCE, Usage};
use steno_model::json::Value;
use steno_model::session::{Session, SessionId};
use steno_vault::SessionBundle;

/// The agent's name.
pub const AGENT_NAME: &str = "atif";

/// Finds and reads trajectories.
pub const READER: FormatReader =
    FormatReader { agent: AGENT_NAME, find: find_sessions, read: read_session };

/// What is known about ATIF.
pub(crate) const AGENT: Agent = Agent {
    document: Some(RecordFormat::by_head(recognises)),
    reader_version: 2,
    ..Agent::new("ATIF trajectories", &READER)
};

/// Field of a step's `extra` with the id of its API message.
const MESSAGE_ID_FIELD: &str = "message_id";

/// Field of the `extra` of metrics with the prompt tokens that were written to a cache.
const CACHE_WRITE_FIELD: &str = "cache_creation_input_tokens";

/// Fields of a trajectory kept in the session's extra fields.
const EXTRA_FIELDS: [&str; 5] =
    ["schema_version", "agent", "notes", "continued_trajectory_ref", "extra"];

fn find_sessions(tree: &FileTree) -> Result<Vec<SessionBundle>, FileError> {
    document::find_documents(tree, recognises)
}

/// Whether a file starts as a trajectory does.
pub fn recognises(head: &FileHead) -> bool {
    head.field_start("schema_version").is_some_and(|version| version.starts_with("\"ATIF-"))
}

fn read_session(bundle: &SessionBundle, emit: ItemSink<'_>) -> Result<Session, FormatError> {
    let source = document::only_file(bundle)?;
    let mut listing = RecordList::open(source, &["steps"])?.map_err(FormatError::Invalid)?;
    let trajectory = Value::Object(std::mem::take(&mut listing.fields));
    let id =
        owned_text(&trajectory["session_id"]).or_else(|| owned_text(&trajectory["trajectory_id"]));
    let native_id = id.unwrap_or_else(|| source.path().display().to_string());
    let mut output = EntryEmitter::new(AGENT_NAME, &native_id, emit);
    let mut steps = AtifStepReader::new(source.path(), PRIMARY_SOURCE.to_owned(), &trajectory);
    listing.for_each_record(|step| {
        steps.read_step(step.as_ref().map_err(Clone::clone), &mut output)
    })?;
    for (index, subagent) in list_items(&trajectory["subagent_trajectories"]).iter().enumerate() {
        read_subagent(source.path(), index, subagent, &mut output);
    }
    let mut session = Session::new(SessionId::for_native(AGENT_NAME, &native_id), AGENT_NAME);
    session.native_id = Some(native_id);
    let metrics = &trajectory["final_metrics"];
    session.totals.cost = metrics["total_cost_usd"].as_f64().or(steps.cost);
    if !steps.has_usage {
        session.totals.usage = total_usage(metrics);
    }
    for key in EXTRA_FIELDS {
        if let Some(value) = trajectory.get(key).filter(|value| !value.is_null()) {
            session.extra.insert(key.to_owned(), value.clone());
        }
    }
    Ok(session)
}

/// Reads a nested trajectory, recursively.
fn read_subagent(path: &Path, index: usize, trajectory: &Value, output: &mut EntryEmitter<'_>) {
    let ids = [&trajectory["trajectory_id"], &trajectory["session_id"]];
    let id = ids.into_iter().find_map(owned_text).unwrap_or_else(|| (index + 1).to_string());
    let mut steps = AtifStepReader::new(path, format!("subagent:{id}"), trajectory);
    list_items(&trajectory["steps"]).iter().for_each(|step| steps.read_step(Ok(step), output));
    for (index, inner) in list_items(&trajectory["subagent_trajectories"]).iter().enumerate() {
        read_subagent(path, index, inner, output);
    }
}

/// The usage of a trajectory with no usage in its steps.
fn total_usage(metrics: &Value) -> Usage {
    let cache_read = as_count(&metrics["total_cached_tokens"]);
    let cache_write = as_count(&metrics["extra"][CACHE_WRITE_FIELD]);
    let prompt = as_count(&metrics["total_prompt_tokens"]);
    Usage {
        input: prompt.saturating_sub(cache_read).saturating_sub(cache_write),
        cache_read,
        cache_write,
        output: as_count(&metrics["total_completion_tokens"]),
        ..Usage::default()
    }
}

#[cfg(test)]
mod tests;
