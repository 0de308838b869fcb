//! `archive`: which runs are archived, and the end of one archive.

use clap::Subcommand;
use steno_core::format::devflow::RunId;

use super::DevflowStore;
use crate::error::{CommandError, CommandExit};
use crate::ui::Ui;

#[derive(Debug, Subcommand)]
pub(super) enum ArchiveCommand {
    /// List the runs that are archived.
    List,
    /// Delete the archive of a run; the run itself, if it is there, stays.
    Delete {
        /// The run.
        #[arg(value_name = "RUN-ID")]
        id: String,
    },
}

impl ArchiveCommand {
    /// Whether the command changes something.
    pub(super) fn is_writing(&self) -> bool {
        matches!(self, ArchiveCommand::Delete { .. })
    }
}

/// Lists archives or deletes one.
pub(super) fn run(
    ui: &mut Ui,
    place: &DevflowStore,
    command: &ArchiveCommand,
) -> Result<CommandExit, CommandError> {
    match command {
        ArchiveCommand::List => {
            let archived = place.store.archives()?;
            let lines: String = archived.iter().map(|id| format!("{id}\n")).collect();
            ui.transcript_text(&lines)?;
        }
        ArchiveCommand::Delete { id } => {
            let id: RunId = id.parse()?;
            place.store.delete_archive(&id)?;
            ui.transcript_text(&format!("Deleted the archive of {id}\n"))?;
        }
    }
    Ok(CommandExit::Done)
}
