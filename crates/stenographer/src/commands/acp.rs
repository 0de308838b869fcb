//! `steno acp`: runs an agent for an editor, records every byte and forwards it.

mod vault_history;

use std::ffi::OsString;
use std::io;
use std::sync::Arc;

use steno_acp::proxy::{self, SessionHistory};
use steno_acp::recording::ConnectionSettings;
use steno_vault::AgentName;

use self::vault_history::VaultHistory;
use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::runnable_agent;

/// Record the agent of an editor (Agent Client Protocol).
///
/// Put `steno acp --` before the agent's command in the editor's settings. Every byte is recorded and then forwarded
/// unchanged, in both directions; signals, the end of input and the exit code are forwarded too. Each session of the
/// agent becomes one of Steno's. If the store fails, recording pauses and the agent continues.
///
/// With `--history`, an agent that can neither list nor load sessions gets those of the store: the editor lists all
/// sessions of its folder, of any agent, and a loaded one goes on in a new session of the agent, which gets the
/// conversation so far with the first prompt.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Agent name of the sessions [default: the name that the agent reports].
    #[arg(long, value_name = "NAME")]
    agent: Option<AgentName>,
    /// Let the editor list and load sessions of the store, if the agent has no history of its own.
    #[arg(long)]
    history: bool,
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
pub(crate) fn run(env: &ProcessEnvironment, args: &Args) -> Result<CommandExit, CommandError> {
    let unable = |error: io::Error| {
        let program = args.command[0].to_string_lossy();
        let error = CommandError::user(format!("could not start {program}: {error}"));
        error.hint("check the program's name, or give its path")
    };
    let assignment = ConnectionSettings {
        agent: args.agent.clone(),
        ..runnable_agent::new_assignment(env, &args.command)
    };
    let history = args.history.then(|| Arc::new(VaultHistory::new(env)) as Arc<dyn SessionHistory>);
    let launcher = runnable_agent::child_launcher()?;
    let (status, kept) = proxy::run_proxy(assignment, &launcher, history).map_err(unable)?;
    kept.iter().for_each(|kept| runnable_agent::spawn_agent_files_sync(env, kept));
    Ok(CommandExit::from_status(status))
}
