//! `steno acp`: runs an agent for an editor, records every byte and forwards it.

use std::ffi::OsString;
use std::io;

use steno_acp::proxy;
use steno_acp::recording::ConnectionSettings;
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
    let assignment = ConnectionSettings {
        agent: args.agent.clone(),
        ..agents::assignment(scene, &args.command)
    };
    let (status, kept) =
        proxy::run_proxy(assignment, &agents::child_launcher()?).map_err(unable)?;
    kept.iter().for_each(|kept| agents::join_later(scene, kept));
    Ok(Exit::of(status))
}
