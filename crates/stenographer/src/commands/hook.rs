//! `steno hook`: the command that agents call. It returns at once; a background process does the work.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use steno_model::durable::OnPath;

use crate::error::{CommandError, CommandExit};
use crate::hooks::hook_log::HookLog;
use crate::hooks::hook_payload::{HookPayload, read_stdin};
use crate::hooks::session_sync::sync_session;
use crate::process_environment::ProcessEnvironment;

/// Delays before each sync: an agent may call the hook before it has written the last lines.
const SYNC_DELAYS: [Duration; 3] =
    [Duration::ZERO, Duration::from_millis(300), Duration::from_millis(1500)];

/// Sync the session that an agent reports; called by agents.
///
/// Reads the JSON that agents pass to hooks, and copies that session with its subagents in the background. It always
/// exits at once with 0 and prints nothing; `steno hooks status` shows the last error.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Agent that calls the hook.
    #[arg(value_name = "AGENT")]
    agent: Option<String>,
    /// The agent's JSON, if not on standard input; may be preceded by another program to call with it.
    #[arg(value_name = "JSON", trailing_var_arg = true, allow_hyphen_values = true)]
    payload: Vec<OsString>,
    /// Do the work in this process.
    #[arg(long, hide = true)]
    keep: bool,
}

/// Runs the command. On failure the agent continues, and the error goes to the hook log.
pub(crate) fn run(env: &ProcessEnvironment, args: &Args) -> Result<CommandExit, CommandError> {
    let done = if args.keep { sync_with_retries(env, args) } else { start_worker(args) };
    if let Err(error) = done {
        log_error(env, args, &error);
    }
    Ok(CommandExit::Done)
}

/// Writes an error to the hook log.
pub(crate) fn log_error(env: &ProcessEnvironment, args: &Args, error: &CommandError) {
    let agent = args.agent.as_deref().unwrap_or("agent");
    HookLog::new(&env.store).append_error(env.clock.now(), agent, &*error.error);
}

/// Starts the process that does the work. It outlives the agent and inherits the agent's input.
fn start_worker(args: &Args) -> Result<(), CommandError> {
    #[cfg(unix)]
    // Fails only if the process already leads a group.
    let _ = rustix::process::setsid();
    let mut worker = Command::new(ProcessEnvironment::program_path()?);
    worker.args(["hook", "--keep"]).args(&args.agent);
    if let Some(payload) = args.payload.last() {
        worker.arg(payload).stdin(Stdio::null());
    }
    let started = spawn_detached(&mut worker);
    if let [program, arguments @ .., payload] = args.payload.as_slice() {
        spawn_detached(Command::new(program).args(arguments).arg(payload).stdin(Stdio::null()))?;
    }
    started
}

fn spawn_detached(command: &mut Command) -> Result<(), CommandError> {
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    let program = PathBuf::from(command.get_program());
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().on("start", &program)?;
    Ok(())
}

/// Syncs the session several times, to catch lines that the agent writes shortly after the call.
fn sync_with_retries(env: &ProcessEnvironment, args: &Args) -> Result<(), CommandError> {
    let bytes = match args.payload.last() {
        Some(payload) => payload.clone().into_encoded_bytes(),
        None => read_stdin(),
    };
    let payload = HookPayload::parse(&bytes)?;
    let (mut kept, mut last) = (false, Ok(()));
    for pause in SYNC_DELAYS {
        thread::sleep(pause);
        last = sync_session(env, args.agent.as_deref(), &payload).map(|found| kept |= found);
    }
    last?;
    if kept || payload.is_start { Ok(()) } else { Err(missing_session_error(&payload)) }
}

fn missing_session_error(payload: &HookPayload) -> CommandError {
    match (&payload.transcript, &payload.session) {
        (Some(path), _) => CommandError::user(format!("no session at {}", path.display())),
        (None, Some(name)) => CommandError::user(format!("no session file for {name}")),
        (None, None) => CommandError::user("the agent reported no session"),
    }
}
