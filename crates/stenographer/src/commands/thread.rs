//! Commands on a project's threads, one module each.

mod artifacts;
mod context;
mod init;
mod inject;
mod lifecycle;
pub(crate) mod list;
mod merge;
mod objective;
mod reference;
mod spawn;
mod status;
mod transcript;
mod transfer;

use clap::Subcommand;
use serde::Serialize;

use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::ui::Ui;

#[derive(Debug, Subcommand)]
pub(crate) enum ThreadCommand {
    Init(init::Args),
    Objective(objective::Args),
    Spawn(spawn::Args),
    Reference(reference::Args),
    Lifecycle(lifecycle::Args),
    Status(status::Args),
    Artifacts(artifacts::Args),
    Inject(inject::Args),
    Transfer(transfer::Args),
    Merge(merge::Args),
    Transcript(transcript::Args),
    Context(context::Args),
}

/// Runs a command on threads.
pub(crate) fn run(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    command: &ThreadCommand,
) -> Result<CommandExit, CommandError> {
    match command {
        ThreadCommand::Init(args) => init::run(ui, env, args),
        ThreadCommand::Objective(args) => objective::run(ui, env, args),
        ThreadCommand::Spawn(args) => spawn::run(ui, env, args),
        ThreadCommand::Reference(args) => reference::run(ui, env, args),
        ThreadCommand::Lifecycle(args) => lifecycle::run(ui, env, args),
        ThreadCommand::Status(args) => status::run(ui, env, args),
        ThreadCommand::Artifacts(args) => artifacts::run(ui, env, args),
        ThreadCommand::Inject(args) => inject::run(ui, env, args),
        ThreadCommand::Transfer(args) => transfer::run(ui, env, args),
        ThreadCommand::Merge(args) => merge::run(ui, env, args),
        ThreadCommand::Transcript(args) => transcript::run(ui, env, args),
        ThreadCommand::Context(args) => context::run(ui, env, args),
    }
}

/// Prints one JSON object and a newline.
fn json_line(ui: &mut Ui, value: &impl Serialize) -> Result<CommandExit, CommandError> {
    serde_json::to_writer(ui.out(), value)?;
    writeln!(ui.out())?;
    Ok(CommandExit::Done)
}
