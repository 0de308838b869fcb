//! `steno hook`: what agents call. It lets them go on at once; a process of its own does the work.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use steno_core::agent::places::places;
use steno_core::durable::{self, OnPath};
use steno_core::format;

use crate::error::{CommandError, Exit};
use crate::hooks::log::HookLog;
use crate::hooks::told::{Told, read_stdin};
use crate::scene::Scene;
use crate::sweep::{self, Sweep, real};
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
        last = look(ui, scene, args.agent.as_deref(), &told).map(|found| kept |= found);
    }
    last?;
    if kept || told.begins { Ok(()) } else { Err(missing(&told)) }
}

/// Keeps the session of an agent that has ended; whether there is one.
pub(crate) fn keep_session(
    ui: &Ui,
    scene: &Scene,
    agent: &str,
    session: &str,
) -> Result<bool, CommandError> {
    look(ui, scene, Some(agent), &Told::of_session(session))
}

/// Keeps what is new by now; whether there is a session at all.
fn look(ui: &Ui, scene: &Scene, agent: Option<&str>, told: &Told) -> Result<bool, CommandError> {
    let files = files(scene, agent, told)?;
    if files.is_empty() {
        return Ok(false);
    }
    // One hook at a time, so that the next one finds what this one has seen.
    let path = scene.store.join("hook.lock");
    durable::create_private_dir(&scene.store)?;
    let lock =
        durable::private_options().create(true).append(true).open(&path).on("open", &path)?;
    lock.lock().on("lock", &path)?;
    let places: Vec<_> = sweep::wanted(scene, &[], &[]).into_iter().map(real).collect();
    keep_files(Sweep::new(ui, scene)?, told, &files, &places)
}

fn missing(told: &Told) -> CommandError {
    match (&told.transcript, &told.session) {
        (Some(path), _) => CommandError::user(format!("no session at {}", path.display())),
        (None, Some(name)) => CommandError::user(format!("no file of session {name}")),
        (None, None) => CommandError::user("the agent named no session"),
    }
}

/// The files of the session: the one that was named, or else the transcripts that have its name.
fn files(scene: &Scene, agent: Option<&str>, told: &Told) -> Result<Vec<PathBuf>, CommandError> {
    if let Some(path) = &told.transcript {
        return Ok(if path.is_file() { vec![real(path.clone())] } else { Vec::new() });
    }
    let mut files = Vec::new();
    for place in places(&scene.home, &Scene::variable) {
        if agent == Some(place.agent) && told.session.is_some() && place.path.is_dir() {
            files.extend(format::files(&real(place.path))?);
        }
    }
    files.retain(|file| told.is_named_in(file) && is_transcript(file));
    Ok(files)
}

/// Whether a file may be a transcript by its name: agents leave locks and notes under the same names.
fn is_transcript(file: &Path) -> bool {
    let name = file.to_string_lossy();
    name.ends_with(".jsonl") || name.ends_with(".jsonl.zst")
}

/// Keeps what is new of the session and its subagents; whether there is a session in the files.
fn keep_files(
    mut sync: Sweep,
    told: &Told,
    files: &[PathBuf],
    places: &[PathBuf],
) -> Result<bool, CommandError> {
    let mut known: Vec<PathBuf> = Vec::new();
    for file in files {
        if !known.contains(file) {
            known.extend(sync.sessions_of(file, places)?);
        }
        // Codex tells of no subagents, but keeps them beside.
        if told.is_turn {
            sync.folder(durable::parent(file))?;
        }
    }
    // Most agents keep subagents with their session; to others they are sessions of their own.
    let subagent = told.subagent.clone().filter(|path| path.is_file()).map(real);
    if let Some(file) = subagent.filter(|file| !known.is_empty() && !known.contains(file)) {
        sync.sessions_of(&file, places)?;
    }
    sync.failures.pop().map_or(Ok(!known.is_empty()), Err)
}
