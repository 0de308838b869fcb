//! `steno child`: executes a program that another Steno process starts, or watches one. Internal.

use std::ffi::OsString;

use steno_acp::child::{self, ChildSetup};

use crate::error::{CommandError, CommandExit};

/// Execute a program that ends with its parent.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// End with this process.
    #[arg(long, value_name = "PID")]
    parent: Option<i32>,
    /// Let the program open up to N files.
    #[arg(long, value_name = "N")]
    open_files: Option<u64>,
    /// End this process group if standard input ends without a byte.
    #[arg(long, value_name = "ID", conflicts_with_all = ["parent", "open_files", "command"])]
    watch_group: Option<i32>,
    /// The program and its arguments.
    #[arg(
        required_unless_present = "watch_group",
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "COMMAND"
    )]
    command: Vec<OsString>,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<CommandExit, CommandError> {
    if let Some(group) = args.watch_group {
        child::end_abandoned_group(&mut std::io::stdin(), group)?;
        return Ok(CommandExit::Done);
    }
    let setup = ChildSetup { parent: args.parent, open_files: args.open_files };
    let error = child::become_child(setup, &args.command);
    let program = args.command[0].to_string_lossy();
    let error = CommandError::user(format!("could not start {program}: {error}"));
    Err(error.hint("check the program's name, or give its path"))
}
