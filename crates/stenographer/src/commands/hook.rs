//! `steno hook`: what agents call. It lets them go on at once; a process of its own does the work.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use steno_core::durable::OnPath;

use crate::error::{CommandError, Exit};
use crate::hooks::log::HookLog;
use crate::hooks::session_sync::sync_session;
use crate::hooks::told::{Told, read_stdin};
use crate::scene::Scene;
use crate::ui::Ui;

/// An agent may call before it has written the last lines: the session is looked at again after these times.
const LOOKS: [Duration; 3] =
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
    told: Vec<OsString>,
    /// Do the work here and now.
    #[arg(long, hide = true)]
    keep: bool,
}

/// Runs the command; whatever fails, the agent goes on.
pub(crate) fn run(ui: &mut Ui, scene: &Scene, args: &Args) -> Result<Exit, CommandError> {
    let done = if args.keep { keep(ui, scene, args) } else { detach(args) };
    if let Err(error) = done {
        let agent = args.agent.as_deref().unwrap_or("agent");
        HookLog::new(&scene.store).note(scene.clock.now(), agent, &*error.error);
    }
    Ok(Exit::Done)
}

/// Starts the process that does the work. It outlives the agent, and reads the agent's input in our place.
fn detach(args: &Args) -> Result<(), CommandError> {
    #[cfg(unix)]
    // Fails only for one that leads a group of its own already.
    let _ = rustix::process::setsid();
    let mut worker = Command::new(Scene::program()?);
    worker.args(["hook", "--keep"]).args(&args.agent);
    if let Some(told) = args.told.last() {
        worker.arg(told).stdin(Stdio::null());
    }
    let started = background(&mut worker);
    if let [program, arguments @ .., told] = args.told.as_slice() {
        background(Command::new(program).args(arguments).arg(told).stdin(Stdio::null()))?;
    }
    started
}

fn background(command: &mut Command) -> Result<(), CommandError> {
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    let program = PathBuf::from(command.get_program());
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().on("start", &program)?;
    Ok(())
}

/// Keeps the session, and what its agent still adds within a moment.
fn keep(ui: &Ui, scene: &Scene, args: &Args) -> Result<(), CommandError> {
    let bytes = match args.told.last() {
        Some(told) => told.clone().into_encoded_bytes(),
        None => read_stdin(),
    };
    let told = Told::parse(&bytes)?;
    let (mut kept, mut last) = (false, Ok(()));
    for pause in LOOKS {
        thread::sleep(pause);
        last = sync_session(ui, scene, args.agent.as_deref(), &told).map(|found| kept |= found);
    }
    last?;
    if kept || told.begins { Ok(()) } else { Err(missing(&told)) }
}

fn missing(told: &Told) -> CommandError {
    match (&told.transcript, &told.session) {
        (Some(path), _) => CommandError::user(format!("no session at {}", path.display())),
        (None, Some(name)) => CommandError::user(format!("no file of session {name}")),
        (None, None) => CommandError::user("the agent named no session"),
    }
}
