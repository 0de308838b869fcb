//! `steno watch`: keeps what agents write while they write it.

mod events;
mod pending;
mod roots;
mod watch_loop;

use std::path::PathBuf;
use std::time::Duration;

use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::session_syncer;
use crate::ui::Ui;

use watch_loop::WatchLoop;

/// Keep every session while agents write it.
///
/// Keeps what is new as `steno sync` does, then goes on: a session is kept again once its files have been quiet for a
/// moment, and every few seconds while they grow. Folders that agents make later are found. Ends with Ctrl-C.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Watch this instead of where agents keep their sessions; it need not be there yet.
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Only this agent's; may be given several times.
    #[arg(long, value_name = "NAME", value_parser = session_syncer::agent_name_parser())]
    agent: Vec<String>,
    /// How many milliseconds a file must be quiet before it is kept.
    #[arg(long, value_name = "MS", default_value_t = 500)]
    debounce: u64,
    /// Print JSON Lines: `ready`, then one `kept` for each session that has grown, and `stopped`.
    #[arg(long)]
    json: bool,
}

impl Args {
    fn quiet_time(&self) -> Duration {
        Duration::from_millis(self.debounce)
    }
}

/// Runs the command.
pub(crate) fn run(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &Args,
) -> Result<CommandExit, CommandError> {
    WatchLoop::new(ui, env, args)?.run()?;
    Ok(CommandExit::Done)
}
