//! Agents that work on threads: `steno run` does the work, in the background or while one waits.

mod runtime;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use serde_json::{Value, json};
use steno_core::durable;
use steno_core::thread::{Action, Lifecycle, Objective, Operator, Spawn, Status, Thread};

use self::runtime::Runtime;
use super::Desk;
use super::answer::{Answer, Failure, with_causes};
use crate::scene::Scene;

/// Has an agent work on a new thread, and tells of it in `data`; whether that went well.
pub(super) fn set_to_work(
    desk: &mut Desk<'_>,
    thread: &Thread,
    data: &mut Value,
) -> Result<bool, Failure> {
    if !desk.flags.has("foreground") {
        start(desk, thread)?;
        desk.ui.note(format_args!("thread {} started in the background", thread.id));
        data["run_mode"] = "background".into();
        data["worker_log_path"] = json!(log_path(desk, thread));
        return Ok(true);
    }
    let (begun, report) = (Instant::now(), work(desk, thread)?);
    data["session_id"] = json!(desk.store.thread(thread.id.as_str())?.session_id);
    data["agent_result"] = json!({
        "success": report.failure.is_none(),
        "result": report.said,
        "errors": Vec::from_iter(&report.failure),
        "duration_ms": u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
        "cost_usd": report.end["cost"],
        // One prompt is one turn, as agents' protocol has it.
        "num_turns": 1,
    });
    Ok(report.failure.is_none())
}

/// `_worker`: works on one thread and notes how it went.
pub(super) fn run(desk: &mut Desk<'_>) -> Result<(), Failure> {
    let thread = desk.store.thread(desk.flags.required("thread")?)?;
    work(desk, &thread)?;
    Ok(())
}

/// `run`: a new objective, worked on until all its threads are over or one fails.
pub(super) fn run_objective(desk: &mut Desk<'_>) -> Result<Answer, Failure> {
    let title = desk.flags.required("title")?;
    let objective = desk.store.create_objective(title)?;
    desk.store.spawn(&Spawn::new(title, objective.id.as_str()))?;
    let runtime = Runtime::begin(desk, &objective)?;
    while let Some(thread) = next(desk, &objective)? {
        desk.ui.note(format_args!("thread {} started", thread.id));
        runtime.started(desk, &thread)?;
        let report = work(desk, &thread)?;
        runtime.ended(desk, &thread, &report)?;
        if let Some(failure) = report.failure {
            let message = format!("Agent of thread '{}' failed: {failure}", thread.id);
            return Err(Failure::unknown(message));
        }
        if desk.store.thread(thread.id.as_str())?.status == Status::Active {
            break;
        }
    }
    let objective = desk.store.objective(objective.id.as_str())?;
    Ok(Answer::new(json!({
        "objective_id": objective.id,
        "title": objective.title,
        "status": objective.status,
        "runtime_dir": runtime.folder,
        "logs_dir": desk.store.log_folder(&objective.id),
    })))
}

/// The next thread to work on: an active one, or one that waited for others which are over.
fn next(desk: &Desk<'_>, objective: &Objective) -> Result<Option<Thread>, Failure> {
    let mut threads = desk.store.threads(None)?;
    threads.retain(|thread| thread.objective == objective.id);
    let active = threads.iter().find(|thread| thread.status == Status::Active);
    if let Some(thread) = active {
        return Ok(Some(thread.clone()));
    }
    let is_ready = |thread: &&Thread| {
        let is_child = |child: &&Thread| child.parent_id.as_ref() == Some(&thread.id);
        let mut children = threads.iter().filter(is_child).peekable();
        thread.status == Status::Suspended
            && children.peek().is_some()
            && children.all(|child| child.status.is_over())
    };
    let Some(waiting) = threads.iter().find(is_ready) else { return Ok(None) };
    let resumed = desk.store.lifecycle(&Lifecycle {
        thread: waiting.id.to_string(),
        action: Action::Resume,
        reason: Some("Children completed".to_owned()),
        operator: Operator::System,
    })?;
    Ok(Some(resumed))
}

/// Starts a process of its own that works on the thread.
fn start(desk: &Desk<'_>, thread: &Thread) -> Result<(), Failure> {
    let mut command = program(desk)?;
    command.args(["as", "leslie", "_worker", "--thread", thread.id.as_str()]);
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().map_err(|error| Failure::unknown(format!("No worker started: {error}")))?;
    Ok(())
}

/// Lets an agent work on the thread, and notes when it began and how it ended.
fn work(desk: &Desk<'_>, thread: &Thread) -> Result<Report, Failure> {
    let log = log_path(desk, thread);
    note(desk, thread, &log, json!({ "type": "worker_started" }))?;
    let mut command = program(desk)?;
    command.args(["run", "--json", "--thread", thread.id.as_str(), "--", &thread.title]);
    let ended = command.stdin(Stdio::null()).output();
    let output = ended.map_err(|error| Failure::unknown(format!("No agent started: {error}")))?;
    let report = Report::of(&output);
    let event = match &report.failure {
        None => json!({ "type": "worker_finished", "success": true }),
        Some(error) => json!({ "type": "worker_failed", "error": error }),
    };
    note(desk, thread, &log, event)?;
    Ok(report)
}

/// What a run told of itself.
struct Report {
    /// What the agent said.
    said: String,
    /// The last event, which sums up.
    end: Value,
    /// Why it did not end well, if it did not.
    failure: Option<String>,
}

impl Report {
    fn of(output: &Output) -> Self {
        let stdout = String::from_utf8_lossy(&output.stdout);
        let (mut said, mut end) = (String::new(), Value::Null);
        for event in stdout.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
            let update = &event["update"];
            match (event["event"].as_str(), update["sessionUpdate"].as_str()) {
                (_, Some("agent_message_chunk")) => {
                    said.push_str(update["content"]["text"].as_str().unwrap_or_default());
                }
                (Some("end"), _) => end = event,
                _ => {}
            }
        }
        Self { said, end, failure: failure_of(output) }
    }
}

/// This program, in the project and with the variables for agents.
fn program(desk: &Desk<'_>) -> Result<Command, Failure> {
    let program = Scene::program().map_err(|error| Failure::unknown(error.error.to_string()))?;
    let mut command = Command::new(program);
    command.current_dir(desk.store.root()).envs(desk.variables.iter().cloned());
    Ok(command)
}

/// The last thing that a failed run said.
fn failure_of(output: &Output) -> Option<String> {
    if output.status.success() {
        return None;
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let mut errors = said.lines().filter(|line| line.starts_with("error: "));
    let last = errors.next_back().map(|line| line.trim_start_matches("error: ").to_owned());
    Some(last.unwrap_or_else(|| output.status.to_string()))
}

fn log_path(desk: &Desk<'_>, thread: &Thread) -> PathBuf {
    desk.store.root().join(format!(".leslie/logs/workers/{}.ndjson", thread.id))
}

/// Adds a line about a thread to a log.
fn note(desk: &Desk<'_>, thread: &Thread, log: &Path, mut event: Value) -> Result<(), Failure> {
    event["threadId"] = json!(thread.id);
    event["timestamp"] = json!(desk.now());
    durable::create_private_dir(durable::parent(log))
        .and_then(|()| durable::append_lines(log, format!("{event}\n").as_bytes()))
        .map_err(|error| Failure::unknown(with_causes(&error)))
}
