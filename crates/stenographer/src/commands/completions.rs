//! `steno completions`: what a shell needs to complete our command line.

use clap_complete::Shell;

use crate::error::{CommandError, CommandExit};
use crate::ui::Ui;

/// Print a shell's completion script.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The shell.
    shell: Shell,
}

/// Runs the command.
pub(crate) fn run(
    ui: &mut Ui,
    mut command: clap::Command,
    args: &Args,
) -> Result<CommandExit, CommandError> {
    // Written in one piece: a reader that goes away would be a panic in there.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "steno", &mut script);
    ui.out().write_all(&script)?;
    Ok(CommandExit::Done)
}
