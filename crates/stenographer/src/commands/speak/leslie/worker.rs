//! Agents that work on threads: `steno run` does the work, in the background or while one waits.

mod agent_run;
mod approval;
mod monitor;
mod policy;
mod runtime;

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use steno_core::thread::Thread;

use self::agent_run::run_agent;
pub(super) use self::monitor::run as run_objective;
use self::runtime::RuntimeFolder;
use super::LeslieCall;
use super::response::LeslieFailure;
use crate::process_environment::ProcessEnvironment;

/// Has an agent work on a new thread, and tells of it in `data`; whether that went well.
pub(super) fn run_or_start_agent(
    desk: &mut LeslieCall<'_>,
    thread: &Thread,
    data: &mut Value,
) -> Result<bool, LeslieFailure> {
    let runtime = RuntimeFolder::from_environment();
    let is_ours = runtime.as_ref().map_or(Ok(true), |runtime| runtime.claim_thread(thread))?;
    if !desk.flags.has("foreground") || !is_ours {
        if is_ours {
            start_worker(desk, thread, runtime.as_ref().map(|runtime| (runtime, "spawn")))?;
        }
        desk.ui.print_note(format_args!("thread {} started in the background", thread.id));
        data["run_mode"] = "background".into();
        data["worker_log_path"] = json!(log_path(desk, thread));
        return Ok(true);
    }
    let report = run_agent(desk, thread, None)?;
    data["session_id"] = json!(desk.store.thread(thread.id.as_str())?.session_id);
    data["agent_result"] = json!({
        "success": report.failure.is_none(),
        "result": report.text,
        "errors": Vec::from_iter(&report.failure),
        "duration_ms": report.milliseconds,
        "cost_usd": report.end["cost"],
        "num_turns": report.turns,
    });
    Ok(report.failure.is_none())
}

/// `_worker`: works on one thread and notes how it went.
pub(super) fn run_worker(desk: &mut LeslieCall<'_>) -> Result<(), LeslieFailure> {
    let thread = desk.store.thread(desk.flags.required_text("thread")?)?;
    let runtime = RuntimeFolder::from_environment();
    run_agent(desk, &thread, runtime.as_ref())?;
    Ok(())
}

/// Starts a process of its own that works on the thread, in a run and for some reason, or in none.
fn start_worker(
    desk: &LeslieCall<'_>,
    thread: &Thread,
    run: Option<(&RuntimeFolder, &str)>,
) -> Result<Child, LeslieFailure> {
    let mut command = steno_command(desk)?;
    command.args(["as", "leslie", "_worker", "--thread", thread.id.as_str()]);
    command
        .env_remove(runtime::RUNTIME_VARIABLE)
        .envs(run.map(|(runtime, _)| runtime.environment_variable()));
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let unstarted = |error| LeslieFailure::without_code(format!("No worker started: {error}"));
    let worker = command.spawn().map_err(unstarted)?;
    if let Some((runtime, source)) = run {
        let told = json!({ "source": source, "pid": worker.id() });
        runtime.append_event(desk, thread, "thread_started", told)?;
    }
    Ok(worker)
}

/// This program, in the project and with the variables for agents.
fn steno_command(desk: &LeslieCall<'_>) -> Result<Command, LeslieFailure> {
    let program = ProcessEnvironment::program_path()
        .map_err(|error| LeslieFailure::without_code(error.error.to_string()))?;
    let mut command = Command::new(program);
    command.current_dir(desk.store.root()).envs(desk.variables.iter().cloned());
    Ok(command)
}

fn log_path(desk: &LeslieCall<'_>, thread: &Thread) -> PathBuf {
    desk.store.root().join(format!(".leslie/logs/workers/{}.ndjson", thread.id))
}
