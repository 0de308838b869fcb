//! `steno acp`: stands between an editor and an agent, passes every byte on, and takes it down.

mod leash;
mod naming;
mod pass;
mod scribe;
mod taking;

use std::ffi::OsString;
use std::process::{Child, ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use steno_core::agent::acp::wire::Side;
use steno_core::vault::AgentName;

use self::pass::Passing;
use self::scribe::Scribe;
use crate::error::{CommandError, Exit};
use crate::scene::Scene;

/// How long an agent's last words may take that others of its programs still hold back.
const QUIET: Duration = Duration::from_millis(500);

/// Record an agent from inside an editor that speaks the Agent Client Protocol.
///
/// Put `steno acp --` before the agent's command in the editor's settings. Every byte goes on as it is, in both
/// directions, and so do signals, the end of input and the exit code; what was said is kept beside that, one
/// session for each of the agent's. Whatever happens to the store, the agent goes on.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Whose sessions these are [default: what the agent calls itself].
    #[arg(long, value_name = "NAME")]
    agent: Option<AgentName>,
    /// Become the command, and end with the process that waits for it.
    #[arg(long, hide = true, value_name = "PID")]
    leash: Option<i32>,
    /// The agent's command and its arguments.
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "COMMAND"
    )]
    command: Vec<OsString>,
}

/// Runs the command.
pub(crate) fn run(scene: &Scene, args: &Args) -> Result<Exit, CommandError> {
    if let Some(parent) = args.leash {
        return Err(leash::become_agent(parent, &args.command));
    }
    let signals = leash::Signals::caught()?;
    let mut agent = start(&args.command)?;
    signals.pass_on_to(&agent);
    let scribe = Scribe::start(scene, args.agent.clone(), &args.command);
    let (input, output) = (agent.stdin.take(), agent.stdout.take());
    let (client, words) = (scribe.ear(Side::Client), scribe.ear(Side::Agent));
    if let Some(input) = input {
        // Ends with the process: an editor may keep its end open.
        thread::spawn(move || {
            pass::pass(std::io::stdin(), input, &Passing::default(), &client);
            leash::close_stdin();
        });
    }
    let passing = Passing::default();
    let passed = output.map(|output| {
        let passing = passing.clone();
        thread::spawn(move || {
            pass::pass(output, std::io::stdout(), &passing, &words);
            leash::close_stdout();
        })
    });
    let status = agent.wait()?;
    passing.ended();
    if let Some(passed) = passed {
        // A program that the agent has left behind may hold its output open.
        while !passed.is_finished() && !passing.is_idle_for(QUIET) {
            thread::sleep(Duration::from_millis(1));
        }
    }
    scribe.finish(status);
    Ok(ended(status))
}

fn start(command: &[OsString]) -> Result<Child, CommandError> {
    let mut leashed = leash::leashed(command)?;
    leashed.stdin(Stdio::piped()).stdout(Stdio::piped());
    let named = || command[0].to_string_lossy().into_owned();
    leashed
        .spawn()
        .map_err(|error| CommandError::user(format!("could not start {}: {error}", named())))
}

/// Ends as the agent has ended.
fn ended(status: ExitStatus) -> Exit {
    leash::end_by_signal_of(status);
    Exit::Ended(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}
