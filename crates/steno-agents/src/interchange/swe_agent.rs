//! SWE-agent and mini-swe-agent: one JSON document per run (`.traj`, `.traj.json`).
//!
//! Entries come from `history` or `messages`, or else from the steps of `trajectory`. Demonstrations, which are shown
//! to the model but are not part of the run, become notices.

mod history;
mod steps;

use self::history::SweAgentHistory;
use crate::agent::Agent;
use crate::agent::record_format::RecordFormat;
use crate::decoding::document;
use crate::decoding::entry_emitter::EntryEmitter;
use crate::decoding::file_head::FileHead;
use crate::decoding::json_fields::{as_count, owned_text, unpack_json};
use crate::decoding::record_list::RecordList;
use crate::reader::file_tree::FileTree;
use crate::reader::{FormatError, FormatReader, ItemSink};
use steno_model::durable::FileError;
use steno_model::entry::Usage;
use steno_model::json::Value;
use steno_model::problem::Problem;
use steno_model::session::{Session, SessionId, SessionStatus};
use steno_vault::{SessionBundle, SessionFile};

/// The agent's name.
pub const AGENT_NAME: &str = "swe-agent";

/// Finds and reads runs.
pub const READER: FormatReader =
    FormatReader { agent: AGENT_NAME, find: find_sessions, read: read_session };

/// What is known about SWE-agent.
pub(crate) const AGENT: Agent = Agent {
    document: Some(RecordFormat::by_head(recognises)),
    ..Agent::new("SWE-agent trajectories", &READER)
};

/// The field with the steps of a run.
const STEPS_FIELD: &str = "trajectory";

/// Fields with the conversation, in order of preference.
const CONVERSATION_FIELDS: [&str; 3] = ["history", "messages", STEPS_FIELD];

fn find_sessions(tree: &FileTree) -> Result<Vec<SessionBundle>, FileError> {
    document::find_documents(tree, recognises)
}

/// Whether a file starts as a run does.
pub fn recognises(head: &FileHead) -> bool {
    is_swe_agent_run(head) || is_mini_run(head)
}

fn is_swe_agent_run(head: &FileHead) -> bool {
    let Some(steps) = head.field_start("trajectory") else { return false };
    let has_steps = steps.contains("\"action\"") && steps.contains("\"observation\"");
    let has_history =
        || head.field_start("history").is_some_and(|history| history.contains("\"role\""));
    steps.starts_with('[') && (has_steps || has_history())
}

fn is_mini_run(head: &FileHead) -> bool {
    let format = head.field_start("trajectory_format");
    let info = head.field_start("info");
    format.is_some_and(|format| format.starts_with("\"mini-swe-agent"))
        || info.is_some_and(|info| info.contains("\"mini_version\""))
}

fn read_session(bundle: &SessionBundle, emit: ItemSink<'_>) -> Result<Session, FormatError> {
    let source = document::only_file(bundle)?;
    let mut listing =
        RecordList::open(source, &CONVERSATION_FIELDS)?.map_err(FormatError::Invalid)?;
    let run = Value::Object(std::mem::take(&mut listing.fields));
    let path = source.path().display().to_string();
    let mut output = EntryEmitter::new(AGENT_NAME, &path, emit);
    if listing.list_field == Some(STEPS_FIELD) {
        let mut count = 0;
        listing.for_each_record(|step| {
            count += 1;
            match step {
                Ok(step) => steps::emit_step(count - 1, &step, &mut output),
                Err(reason) => output.emit_problem(record_problem(source, "step", count, &reason)),
            }
        })?;
    } else {
        let (mut history, mut count) = (SweAgentHistory::new(&mut output), 0);
        listing.for_each_record(|message| {
            count += 1;
            let read = message.and_then(|message| history.add_message(count - 1, &message));
            if let Err(reason) = read {
                history.output.emit_problem(record_problem(source, "message", count, &reason));
            }
        })?;
    }
    Ok(describe_session(&run, source, &path))
}

fn record_problem(source: &SessionFile, kind: &str, number: usize, reason: &str) -> Problem {
    Problem::for_file(source.path(), format!("{kind} {number}: {reason}"))
}

fn describe_session(run: &Value, source: &SessionFile, path: &str) -> Session {
    let info = &run["info"];
    let stats = &info["model_stats"];
    let mut session = Session::new(SessionId::for_native(AGENT_NAME, path), AGENT_NAME);
    let name = source.name();
    let stem = name.strip_suffix(".json").unwrap_or(name);
    session.native_id = Some(stem.strip_suffix(".traj").unwrap_or(stem).to_owned());
    session.stop_reason = owned_text(&info["exit_status"]);
    session.status = session_status(session.stop_reason.as_deref());
    session.totals.cost = stats["instance_cost"].as_f64();
    session.totals.usage = Usage {
        input: as_count(&stats["tokens_sent"]),
        output: as_count(&stats["tokens_received"]),
        ..Usage::default()
    };
    let replayed = unpack_json(&run["replay_config"]);
    let names = [&replayed["agent"]["model"]["name"], &info["config"]["model"]["model_name"]];
    session.models.extend(names.into_iter().filter_map(owned_text));
    session
}

/// Maps the exit status. A run cut off by a limit may still have submitted.
fn session_status(exit: Option<&str>) -> SessionStatus {
    match exit {
        None => SessionStatus::Running,
        Some(exit) if exit.to_lowercase().contains("submitted") => SessionStatus::Completed,
        Some(_) => SessionStatus::Failed,
    }
}

#[cfg(test)]
mod tests;
