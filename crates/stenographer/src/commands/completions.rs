//! `steno completions`: prints the completion script for a shell.

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
    // Buffered: `generate` panics if the reader closes the pipe.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "steno", &mut script);
    ui.out().write_all(&script)?;
    Ok(CommandExit::Done)
}
