//! `steno as`: the command lines of the systems that Steno is compatible with.

use clap::Subcommand;

use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::ui::Ui;

mod chibi;
mod devflow;
mod leslie;

#[derive(Debug, Subcommand)]
pub(crate) enum ForeignCommand {
    /// devflow's commands, on a `.devflow` folder.
    Devflow(devflow::Args),
    /// chibi's commands, on a `~/.chibi` folder.
    Chibi(chibi::Args),
    /// leslie's commands, on the `.leslie` folder of the working folder.
    Leslie(leslie::Args),
}

/// Runs a command of another system.
pub(crate) fn run(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    language: ForeignCommand,
) -> Result<CommandExit, CommandError> {
    match language {
        ForeignCommand::Devflow(args) => devflow::run(ui, env, args),
        ForeignCommand::Chibi(args) => chibi::run(ui, env, args),
        ForeignCommand::Leslie(args) => leslie::run(ui, env, args),
    }
}
