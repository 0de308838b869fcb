//! The commands on a project's threads, one module each.

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

use crate::error::{CommandError, Exit};
use crate::scene::Scene;
use crate::ui::Ui;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
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
pub(crate) fn run(ui: &mut Ui, scene: &Scene, command: &Command) -> Result<Exit, CommandError> {
    match command {
        Command::Init(args) => init::run(ui, scene, args),
        Command::Objective(args) => objective::run(ui, scene, args),
        Command::Spawn(args) => spawn::run(ui, scene, args),
        Command::Reference(args) => reference::run(ui, scene, args),
        Command::Lifecycle(args) => lifecycle::run(ui, scene, args),
        Command::Status(args) => status::run(ui, scene, args),
        Command::Artifacts(args) => artifacts::run(ui, scene, args),
        Command::Inject(args) => inject::run(ui, scene, args),
        Command::Transfer(args) => transfer::run(ui, scene, args),
        Command::Merge(args) => merge::run(ui, scene, args),
        Command::Transcript(args) => transcript::run(ui, scene, args),
        Command::Context(args) => context::run(ui, scene, args),
    }
}

/// Prints one JSON object on a line of its own.
fn json_line(ui: &mut Ui, value: &impl Serialize) -> Result<Exit, CommandError> {
    serde_json::to_writer(ui.out(), value)?;
    writeln!(ui.out())?;
    Ok(Exit::Done)
}
