//! Agents that work on threads: `steno run` does the work, in the background or while one waits.

mod approval;
mod monitor;
mod policy;
mod runtime;
mod work;

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use steno_core::thread::Thread;

pub(super) use self::monitor::run as run_objective;
use self::runtime::Runtime;
use self::work::work;
use super::Desk;
use super::answer::Failure;
use crate::scene::Scene;

/// Has an agent work on a new thread, and tells of it in `data`; whether that went well.
pub(super) fn set_to_work(
    desk: &mut Desk<'_>,
    thread: &Thread,
    data: &mut Value,
) -> Result<bool, Failure> {
    let runtime = Runtime::inherited();
    let is_ours = runtime.as_ref().map_or(Ok(true), |runtime| runtime.claim(thread))?;
    if !desk.flags.has("foreground") || !is_ours {
        if is_ours {
            start(desk, thread, runtime.as_ref().map(|runtime| (runtime, "spawn")))?;
        }
        desk.ui.note(format_args!("thread {} started in the background", thread.id));
        data["run_mode"] = "background".into();
        data["worker_log_path"] = json!(log_path(desk, thread));
        return Ok(true);
    }
    let report = work(desk, thread, None)?;
    data["session_id"] = json!(desk.store.thread(thread.id.as_str())?.session_id);
    data["agent_result"] = json!({
        "success": report.failure.is_none(),
        "result": report.said,
        "errors": Vec::from_iter(&report.failure),
        "duration_ms": report.milliseconds,
        "cost_usd": report.end["cost"],
        "num_turns": report.turns,
    });
    Ok(report.failure.is_none())
}

/// `_worker`: works on one thread and notes how it went.
pub(super) fn run(desk: &mut Desk<'_>) -> Result<(), Failure> {
    let thread = desk.store.thread(desk.flags.required("thread")?)?;
    let runtime = Runtime::inherited();
    work(desk, &thread, runtime.as_ref())?;
    Ok(())
}

/// Starts a process of its own that works on the thread, in a run and for some reason, or in none.
fn start(
    desk: &Desk<'_>,
    thread: &Thread,
    run: Option<(&Runtime, &str)>,
) -> Result<Child, Failure> {
    let mut command = program(desk)?;
    command.args(["as", "leslie", "_worker", "--thread", thread.id.as_str()]);
    command.env_remove(runtime::VARIABLE).envs(run.map(|(runtime, _)| runtime.variable()));
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let unstarted = |error| Failure::unknown(format!("No worker started: {error}"));
    let worker = command.spawn().map_err(unstarted)?;
    if let Some((runtime, source)) = run {
        let told = json!({ "source": source, "pid": worker.id() });
        runtime.note(desk, thread, "thread_started", told)?;
    }
    Ok(worker)
}

/// This program, in the project and with the variables for agents.
fn program(desk: &Desk<'_>) -> Result<Command, Failure> {
    let program = Scene::program().map_err(|error| Failure::unknown(error.error.to_string()))?;
    let mut command = Command::new(program);
    command.current_dir(desk.store.root()).envs(desk.variables.iter().cloned());
    Ok(command)
}

fn log_path(desk: &Desk<'_>, thread: &Thread) -> PathBuf {
    desk.store.root().join(format!(".leslie/logs/workers/{}.ndjson", thread.id))
}
