//! `steno hook`: what agents call. It lets them go on at once; a process of its own does the work.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use steno_core::durable::OnPath;

use crate::error::{CommandError, CommandExit};
use crate::hooks::hook_log::HookLog;
use crate::hooks::hook_payload::{HookPayload, read_stdin};
use crate::hooks::session_sync::sync_session;
use crate::process_environment::ProcessEnvironment;
use crate::ui::Ui;

/// An agent may call before it has written the last lines: the session is looked at again after these times.
const SYNC_DELAYS: [Duration; 3] =
    [Duration::ZERO, Duration::from_millis(300), Duration::from_millis(1500)];

/// Keep the session that an agent tells of; called by agents.
///
/// Reads the JSON that agents give to hooks and keeps that session with its subagents, in the background. It always
/// ends at once and well, and prints nothing; `steno hooks status` shows what went wrong.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The agent that calls.
    #[arg(value_name = "AGENT")]
    agent: Option<String>,
    /// The agent's JSON, if not on standard input; before it, another program to call with it.
    #[arg(value_name = "JSON", trailing_var_arg = true, allow_hyphen_values = true)]
    payload: Vec<OsString>,
    /// Do the work here and now.
    #[arg(long, hide = true)]
    keep: bool,
}

/// Runs the command; whatever fails, the agent goes on.
pub(crate) fn run(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &Args,
) -> Result<CommandExit, CommandError> {
    let done = if args.keep { sync_with_retries(ui, env, args) } else { start_worker(args) };
    if let Err(error) = done {
        let agent = args.agent.as_deref().unwrap_or("agent");
        HookLog::new(&env.store).append_error(env.clock.now(), agent, &*error.error);
    }
    Ok(CommandExit::Done)
}

/// Starts the process that does the work. It outlives the agent, and reads the agent's input in our place.
fn start_worker(args: &Args) -> Result<(), CommandError> {
    #[cfg(unix)]
    // Fails only for one that leads a group of its own already.
    let _ = rustix::process::setsid();
    let mut worker = Command::new(ProcessEnvironment::program_path()?);
    worker.args(["hook", "--keep"]).args(&args.agent);
    if let Some(told) = args.payload.last() {
        worker.arg(told).stdin(Stdio::null());
    }
    let started = spawn_detached(&mut worker);
    if let [program, arguments @ .., told] = args.payload.as_slice() {
        spawn_detached(Command::new(program).args(arguments).arg(told).stdin(Stdio::null()))?;
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

/// Keeps the session, and what its agent still adds within a moment.
fn sync_with_retries(ui: &Ui, env: &ProcessEnvironment, args: &Args) -> Result<(), CommandError> {
    let bytes = match args.payload.last() {
        Some(told) => told.clone().into_encoded_bytes(),
        None => read_stdin(),
    };
    let told = HookPayload::parse(&bytes)?;
    let (mut kept, mut last) = (false, Ok(()));
    for pause in SYNC_DELAYS {
        thread::sleep(pause);
        last = sync_session(ui, env, args.agent.as_deref(), &told).map(|found| kept |= found);
    }
    last?;
    if kept || told.is_start { Ok(()) } else { Err(missing_session_error(&told)) }
}

fn missing_session_error(told: &HookPayload) -> CommandError {
    match (&told.transcript, &told.session) {
        (Some(path), _) => CommandError::user(format!("no session at {}", path.display())),
        (None, Some(name)) => CommandError::user(format!("no file of session {name}")),
        (None, None) => CommandError::user("the agent named no session"),
    }
}
