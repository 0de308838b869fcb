//! Placeholder of a command line that comes with its format.

use crate::error::{CommandError, Exit};
use crate::scene::Scene;
use crate::ui::Ui;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

pub(crate) fn run(_ui: &mut Ui, _scene: &Scene, _args: Args) -> Result<Exit, CommandError> {
    Ok(Exit::Done)
}
