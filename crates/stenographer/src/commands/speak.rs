//! `steno as`: the command lines of the systems whose formats we speak.

use clap::Subcommand;

use crate::error::{CommandError, Exit};
use crate::scene::Scene;
use crate::ui::Ui;

mod chibi;
mod devflow;
mod leslie;

#[derive(Debug, Subcommand)]
pub(crate) enum Language {
    /// devflow's commands, on a `.devflow` folder.
    Devflow(devflow::Args),
    /// chibi's commands, on a `~/.chibi` folder.
    Chibi(chibi::Args),
    /// leslie's commands, on the `.leslie` folder of the working folder.
    Leslie(leslie::Args),
}

/// Runs a command of another system.
pub(crate) fn run(ui: &mut Ui, scene: &Scene, language: Language) -> Result<Exit, CommandError> {
    match language {
        Language::Devflow(args) => devflow::run(ui, scene, args),
        Language::Chibi(args) => chibi::run(ui, scene, args),
        Language::Leslie(args) => leslie::run(ui, scene, args),
    }
}
