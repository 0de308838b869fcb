//! `archive`: lists archived runs and deletes archives.

use clap::Subcommand;
use steno_seeds::devflow::RunId;

use super::DevflowStore;
use crate::error::{CommandError, CommandExit};
use crate::ui::Ui;

#[derive(Debug, Subcommand)]
pub(super) enum ArchiveCommand {
    /// List the archived runs.
    List,
    /// Delete the archive of a run; the run itself stays.
    Delete {
        /// Run id.
        #[arg(value_name = "RUN-ID")]
        id: String,
    },
}

impl ArchiveCommand {
    /// Returns whether the command changes the store.
    pub(super) fn is_writing(&self) -> bool {
        matches!(self, ArchiveCommand::Delete { .. })
    }
}

/// Lists archives or deletes one.
pub(super) fn run(
    ui: &mut Ui,
    devflow: &DevflowStore,
    command: &ArchiveCommand,
) -> Result<CommandExit, CommandError> {
    match command {
        ArchiveCommand::List => {
            let archived = devflow.store.list_archives()?;
            let lines: String = archived.iter().map(|id| format!("{id}\n")).collect();
            ui.transcript_text(&lines)?;
        }
        ArchiveCommand::Delete { id } => {
            let id: RunId = id.parse()?;
            devflow.store.delete_archive(&id)?;
            ui.transcript_text(&format!("Deleted the archive of {id}\n"))?;
        }
    }
    Ok(CommandExit::Done)
}
