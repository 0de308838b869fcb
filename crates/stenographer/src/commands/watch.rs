//! `steno watch`: copies sessions while agents write them.

mod background_push;
mod events;
mod pending;
mod roots;
mod watch_event;
mod watch_loop;

use std::path::PathBuf;
use std::time::Duration;

use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::session_paths;
use crate::ui::Ui;
use crate::value_parsers::parse_milliseconds;

use watch_loop::WatchLoop;

/// Copy sessions while agents write them.
///
/// Syncs like `steno sync`, then continues: a session is copied again once its files have been quiet for a moment,
/// and every few seconds while they grow. New session folders are found. Stop with Ctrl-C.
///
/// Remotes with `every` in `config.toml` are pushed in the background: at that interval if the store has changed.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Watch these paths instead of the agents' session folders; they need not exist yet.
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Only this agent; may be repeated.
    #[arg(long, value_name = "NAME", value_parser = session_paths::agent_name_parser())]
    agent: Vec<String>,
    /// Milliseconds that a file must be quiet before it is copied.
    #[arg(long, value_name = "MS", default_value_t = 500, value_parser = parse_milliseconds)]
    debounce: u64,
    /// Print JSON Lines: `ready`, then `kept` for each session that has grown, `pushed`, and `stopped`.
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
