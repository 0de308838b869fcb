//! Runs agents on threads with `steno run`, in the background or in the foreground.

mod agent_run;
mod approval;
mod monitor;
mod policy;
mod runtime;

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use steno_seeds::thread::Thread;

use self::agent_run::run_agent;
pub(super) use self::monitor::run as run_objective;
use self::runtime::RuntimeFolder;
use super::LeslieContext;
use super::response::LeslieFailure;
use crate::process_environment::ProcessEnvironment;

/// Runs an agent on a new thread and adds the result to `data`. Returns whether it succeeded.
pub(super) fn run_or_start_agent(
    context: &mut LeslieContext<'_>,
    thread: &Thread,
    data: &mut Value,
) -> Result<bool, LeslieFailure> {
    let runtime = RuntimeFolder::from_environment();
    let is_ours = runtime.as_ref().map_or(Ok(true), |runtime| runtime.claim_thread(thread))?;
    if !context.flags.has("foreground") || !is_ours {
        if is_ours {
            start_worker(context, thread, runtime.as_ref().map(|runtime| (runtime, "spawn")))?;
        }
        context.ui.print_note(format_args!("thread {} started in the background", thread.id));
        data["run_mode"] = "background".into();
        data["worker_log_path"] = json!(log_path(context, thread));
        return Ok(true);
    }
    let report = run_agent(context, thread, None)?;
    data["session_id"] = json!(context.store.thread(thread.id.as_str())?.session_id);
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

/// `_worker`: runs an agent on one thread.
pub(super) fn run_worker(context: &mut LeslieContext<'_>) -> Result<(), LeslieFailure> {
    let thread = context.store.thread(context.flags.required_text("thread")?)?;
    let runtime = RuntimeFolder::from_environment();
    run_agent(context, &thread, runtime.as_ref())?;
    Ok(())
}

/// Starts a worker process for the thread. `run` is the run it belongs to, and the reason for the start.
fn start_worker(
    context: &LeslieContext<'_>,
    thread: &Thread,
    run: Option<(&RuntimeFolder, &str)>,
) -> Result<Child, LeslieFailure> {
    let mut command = steno_command(context)?;
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
        let fields = json!({ "source": source, "pid": worker.id() });
        runtime.append_event(context, thread, "thread_started", fields)?;
    }
    Ok(worker)
}

/// Returns a command for this program, in the project's folder and with the agents' variables.
fn steno_command(context: &LeslieContext<'_>) -> Result<Command, LeslieFailure> {
    let program = ProcessEnvironment::program_path()
        .map_err(|error| LeslieFailure::without_code(error.error.to_string()))?;
    let mut command = Command::new(program);
    command.current_dir(context.store.root()).envs(context.variables.iter().cloned());
    Ok(command)
}

fn log_path(context: &LeslieContext<'_>, thread: &Thread) -> PathBuf {
    context.store.root().join(format!(".leslie/logs/workers/{}.ndjson", thread.id))
}
