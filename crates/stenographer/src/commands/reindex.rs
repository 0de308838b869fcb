//! `steno reindex`: makes the index anew from the vault.

use steno_core::index::Index;

use crate::error::{CommandError, Exit};
use crate::scene::Scene;
use crate::store::Store;
use crate::ui::{Ui, count};

/// Build the index anew from what is kept.
///
/// The index only serves to find and to count; nothing is lost with it. A damaged one is built anew by itself.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// Runs the command.
pub(crate) fn run(ui: &mut Ui, scene: &Scene, _args: &Args) -> Result<Exit, CommandError> {
    let index = Index::anew(&scene.store, None)?;
    let store = Store::new(scene);
    let taken = store.refresh(ui, &index)?;
    ui.status(format_args!("{} taken in", count(taken as u64, "session")));
    store.ask_all(ui, |_| Ok(()))?;
    Ok(Exit::Done)
}
