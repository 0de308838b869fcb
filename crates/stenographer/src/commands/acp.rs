//! `steno acp`: runs an agent for an editor, records every byte and forwards it.

use std::ffi::OsString;
use std::io;
use std::process::ExitStatus;

use steno_acp::leash;
use steno_acp::proxy;
use steno_acp::recording::Assignment;
use steno_core::vault::AgentName;

use crate::agents;
use crate::error::{CommandError, Exit};
use crate::scene::Scene;

/// Record an agent from inside an editor that speaks the Agent Client Protocol.
///
/// Put `steno acp --` before the agent's command in the editor's settings. Every byte is recorded and then forwarded
/// unchanged, in both directions; signals, the end of input and the exit code are forwarded too. Each session of the
/// agent becomes one of Steno's. If the store fails, recording pauses and the agent continues.
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
    let unable = |error: io::Error| {
        let program = args.command[0].to_string_lossy();
        CommandError::user(format!("could not start {program}: {error}"))
    };
    if let Some(parent) = args.leash {
        return Err(unable(leash::become_agent(parent, &args.command)));
    }
    let assignment =
        Assignment { agent: args.agent.clone(), ..agents::assignment(scene, &args.command) };
    let (status, kept) = proxy::run(assignment, &agents::leash()?).map_err(unable)?;
    kept.iter().for_each(|kept| agents::join_later(scene, kept));
    Ok(ended(status))
}

/// Ends as the agent has ended.
fn ended(status: ExitStatus) -> Exit {
    leash::end_by_signal_of(status);
    Exit::Ended(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
}
