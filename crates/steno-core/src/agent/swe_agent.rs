//! SWE-agent and mini-swe-agent: one JSON document per run (`.traj`, `.traj.json`).
//!
//! Entries come from `history` or `messages`, or else from the steps of `trajectory`. Demonstrations, which are shown
//! to the model but are not part of the run, become notices.

mod history;
mod steps;

use self::history::History;
use super::document;
use super::fields::{as_count, string, unpacked};
use super::head::Head;
use super::listing::Listing;
use super::output::Output;
use crate::durable::FileError;
use crate::entry::Usage;
use crate::format::tree::Tree;
use crate::format::{Emit, FormatError, Reader};
use crate::json::Value;
use crate::problem::Problem;
use crate::session::{Session, SessionId, Status};
use steno_vault::{Bundle, Source};

/// The agent's name.
pub const AGENT: &str = "swe-agent";

/// Finds and reads runs.
pub const READER: Reader = Reader { agent: AGENT, find, read };

/// The field with the steps of a run.
const STEPS: &str = "trajectory";

/// Fields with the conversation, in order of preference.
const LISTS: [&str; 3] = ["history", "messages", STEPS];

fn find(tree: &Tree) -> Result<Vec<Bundle>, FileError> {
    document::find(tree, recognises)
}

/// Whether a file starts as a run does.
pub(crate) fn recognises(head: &Head) -> bool {
    is_run(head) || is_mini_run(head)
}

fn is_run(head: &Head) -> bool {
    let Some(steps) = head.field("trajectory") else { return false };
    let has_steps = steps.contains("\"action\"") && steps.contains("\"observation\"");
    let has_history = || head.field("history").is_some_and(|history| history.contains("\"role\""));
    steps.starts_with('[') && (has_steps || has_history())
}

fn is_mini_run(head: &Head) -> bool {
    let format = head.field("trajectory_format");
    let info = head.field("info");
    format.is_some_and(|format| format.starts_with("\"mini-swe-agent"))
        || info.is_some_and(|info| info.contains("\"mini_version\""))
}

fn read(bundle: &Bundle, emit: Emit<'_>) -> Result<Session, FormatError> {
    let source = document::only_source(bundle)?;
    let mut listing = Listing::of(source, &LISTS)?.map_err(FormatError::Invalid)?;
    let run = Value::Object(std::mem::take(&mut listing.fields));
    let path = source.path().display().to_string();
    let mut output = Output::new(AGENT, &path, emit);
    if listing.field == Some(STEPS) {
        let mut count = 0;
        listing.each(|step| {
            count += 1;
            match step {
                Ok(step) => steps::step(count - 1, &step, &mut output),
                Err(reason) => output.problem(bad(source, "step", count, &reason)),
            }
        })?;
    } else {
        let (mut history, mut count) = (History::new(&mut output), 0);
        listing.each(|message| {
            count += 1;
            let read = message.and_then(|message| history.message(count - 1, &message));
            if let Err(reason) = read {
                history.output.problem(bad(source, "message", count, &reason));
            }
        })?;
    }
    Ok(session(&run, source, &path))
}

fn bad(source: &Source, kind: &str, number: usize, reason: &str) -> Problem {
    Problem::of(source.path(), format!("{kind} {number}: {reason}"))
}

fn session(run: &Value, source: &Source, path: &str) -> Session {
    let info = &run["info"];
    let stats = &info["model_stats"];
    let mut session = Session::new(SessionId::for_native(AGENT, path), AGENT);
    let name = source.name();
    let stem = name.strip_suffix(".json").unwrap_or(name);
    session.native_id = Some(stem.strip_suffix(".traj").unwrap_or(stem).to_owned());
    session.stop_reason = string(&info["exit_status"]);
    session.status = status(session.stop_reason.as_deref());
    session.totals.cost = stats["instance_cost"].as_f64();
    session.totals.usage = Usage {
        input: as_count(&stats["tokens_sent"]),
        output: as_count(&stats["tokens_received"]),
        ..Usage::default()
    };
    let replayed = unpacked(&run["replay_config"]);
    let names = [&replayed["agent"]["model"]["name"], &info["config"]["model"]["model_name"]];
    session.models.extend(names.into_iter().filter_map(string));
    session
}

/// Maps the exit status. A run cut off by a limit may still have submitted.
fn status(exit: Option<&str>) -> Status {
    match exit {
        None => Status::Running,
        Some(exit) if exit.to_lowercase().contains("submitted") => Status::Completed,
        Some(_) => Status::Failed,
    }
}

#[cfg(test)]
mod tests;
