//! `steno acp`: stands between an editor and an agent, passes every byte on, and takes it down.

use std::ffi::OsString;
use std::io;
use std::process::ExitStatus;

use steno_acp::leash;
use steno_acp::proxy;
use steno_acp::scribe::Assignment;
use steno_core::vault::AgentName;

use crate::agents;
use crate::error::{CommandError, Exit};
use crate::scene::Scene;

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
