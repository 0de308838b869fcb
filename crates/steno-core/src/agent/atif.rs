//! ATIF, the Agent Trajectory Interchange Format of Harbor (v1.0 to v1.8): one JSON document per trajectory.
//!
//! A trajectory may contain those of its subagents. Steps copied from an earlier trajectory become notices, because
//! they are counted in that trajectory.

mod step;

use std::path::Path;

use self::step::Steps;
use super::document;
use super::fields::{as_count, items, string};
use super::head::Head;
use super::listing::Listing;
use super::output::Output;
use crate::durable::FileError;
use crate::entry::{PRIMARY, Usage};
use crate::format::tree::Tree;
use crate::format::{Emit, FormatError, Reader};
use crate::json::Value;
use crate::session::{Session, SessionId};
use steno_vault::Bundle;

/// The agent's name.
pub const AGENT: &str = "atif";

/// Finds and reads trajectories.
pub const READER: Reader = Reader { agent: AGENT, find, read };

/// Fields of a trajectory kept in the session's extra fields.
const KEPT: [&str; 5] = ["schema_version", "agent", "notes", "continued_trajectory_ref", "extra"];

fn find(tree: &Tree) -> Result<Vec<Bundle>, FileError> {
    document::find(tree, recognises)
}

/// Whether a file starts as a trajectory does.
pub(crate) fn recognises(head: &Head) -> bool {
    head.field("schema_version").is_some_and(|version| version.starts_with("\"ATIF-"))
}

fn read(bundle: &Bundle, emit: Emit<'_>) -> Result<Session, FormatError> {
    let source = document::only_source(bundle)?;
    let mut listing = Listing::of(source, &["steps"])?.map_err(FormatError::Invalid)?;
    let trajectory = Value::Object(std::mem::take(&mut listing.fields));
    let id = string(&trajectory["session_id"]).or_else(|| string(&trajectory["trajectory_id"]));
    let native_id = id.unwrap_or_else(|| source.path().display().to_string());
    let mut output = Output::new(AGENT, &native_id, emit);
    let mut steps = Steps::new(source.path(), PRIMARY.to_owned(), &trajectory);
    listing.each(|step| steps.take(step.as_ref().map_err(Clone::clone), &mut output))?;
    for (index, subagent) in items(&trajectory["subagent_trajectories"]).iter().enumerate() {
        read_subagent(source.path(), index, subagent, &mut output);
    }
    let mut session = Session::new(SessionId::for_native(AGENT, &native_id), AGENT);
    session.native_id = Some(native_id);
    let metrics = &trajectory["final_metrics"];
    session.totals.cost = metrics["total_cost_usd"].as_f64().or(steps.cost);
    if !steps.has_usage {
        session.totals.usage = total(metrics);
    }
    for key in KEPT {
        if let Some(value) = trajectory.get(key).filter(|value| !value.is_null()) {
            session.extra.insert(key.to_owned(), value.clone());
        }
    }
    Ok(session)
}

/// Reads a nested trajectory, recursively.
fn read_subagent(path: &Path, index: usize, trajectory: &Value, output: &mut Output<'_>) {
    let ids = [&trajectory["trajectory_id"], &trajectory["session_id"]];
    let id = ids.into_iter().find_map(string).unwrap_or_else(|| (index + 1).to_string());
    let mut steps = Steps::new(path, format!("subagent:{id}"), trajectory);
    items(&trajectory["steps"]).iter().for_each(|step| steps.take(Ok(step), output));
    for (index, inner) in items(&trajectory["subagent_trajectories"]).iter().enumerate() {
        read_subagent(path, index, inner, output);
    }
}

/// The usage of a trajectory with no usage in its steps.
fn total(metrics: &Value) -> Usage {
    let cache_read = as_count(&metrics["total_cached_tokens"]);
    Usage {
        input: as_count(&metrics["total_prompt_tokens"]).saturating_sub(cache_read),
        cache_read,
        output: as_count(&metrics["total_completion_tokens"]),
        ..Usage::default()
    }
}

#[cfg(test)]
mod tests;
