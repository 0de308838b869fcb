//! `artifact`: the files that a run has left.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use steno_core::durable;
use steno_core::format::devflow::{ArtifactInfo, RunId};
use steno_core::json::Style;

use super::DevflowStore;
use crate::error::{CommandError, CommandExit};
use crate::ui::Ui;

#[derive(Debug, Subcommand)]
pub(super) enum ArtifactCommand {
    /// List the artifacts of a run.
    List {
        /// The run: its id, a beginning that only it has, or `latest`.
        #[arg(value_name = "RUN-ID")]
        id: String,
        /// One JSON object per line.
        #[arg(long)]
        json: bool,
    },
    /// Show an artifact as text.
    View {
        /// The run: its id, a beginning that only it has, or `latest`.
        #[arg(value_name = "RUN-ID")]
        id: String,
        /// The artifact.
        name: String,
    },
    /// Write an artifact, byte for byte; without a name all of them, into a folder.
    Export {
        /// The run: its id, a beginning that only it has, or `latest`.
        #[arg(value_name = "RUN-ID")]
        id: String,
        /// The artifact [default: all].
        #[arg(required_unless_present = "output")]
        name: Option<String>,
        /// The file, or the folder for all of them [default: standard output].
        #[arg(long, short, value_name = "OUT")]
        output: Option<PathBuf>,
    },
}

/// Lists, shows or writes artifacts.
pub(super) fn run(
    ui: &mut Ui,
    place: &DevflowStore,
    command: &ArtifactCommand,
) -> Result<CommandExit, CommandError> {
    match command {
        ArtifactCommand::List { id, json } => {
            list_artifacts(ui, &place.store.artifacts(&place.resolve_run(id)?)?, *json)
        }
        ArtifactCommand::View { id, name } => {
            let bytes = place.store.load_artifact(&place.resolve_run(id)?, name)?;
            ui.transcript_text(&String::from_utf8_lossy(&bytes))?;
            Ok(CommandExit::Done)
        }
        ArtifactCommand::Export { id, name: Some(name), output } => {
            let bytes = place.store.load_artifact(&place.resolve_run(id)?, name)?;
            match output {
                Some(output) => write_new_file(place, output, &bytes)?,
                None => ui.out().write_all(&bytes)?,
            }
            Ok(CommandExit::Done)
        }
        ArtifactCommand::Export { id, name: None, output } => {
            let folder = output.clone().unwrap_or_default();
            export_all(ui, place, &place.resolve_run(id)?, &folder)
        }
    }
}

fn list_artifacts(
    ui: &mut Ui,
    artifacts: &[ArtifactInfo],
    json: bool,
) -> Result<CommandExit, CommandError> {
    if json {
        for artifact in artifacts {
            ui.transcript_text(&(Style::COMPACT.print(artifact) + "\n"))?;
        }
        return Ok(CommandExit::Done);
    }
    if artifacts.is_empty() {
        ui.transcript_text("No artifacts found.\n")?;
        return Ok(CommandExit::Done);
    }
    let width = artifacts.iter().map(|it| it.name.chars().count()).max().unwrap_or(0).max(4);
    let mut text = format!("{:<width$}  {:<13}  {:>9}  CREATED\n", "NAME", "TYPE", "SIZE");
    for artifact in artifacts {
        let created = artifact.created_at.map(|at| at.date_and_clock()).unwrap_or_default();
        let packed = if artifact.compressed { " (compressed)" } else { "" };
        let ArtifactInfo { name, kind, size, .. } = artifact;
        text += &format!("{name:<width$}  {kind:<13}  {size:>9}  {created}{packed}\n");
    }
    ui.transcript_text(&text)?;
    Ok(CommandExit::Done)
}

fn export_all(
    ui: &mut Ui,
    place: &DevflowStore,
    id: &RunId,
    folder: &Path,
) -> Result<CommandExit, CommandError> {
    let artifacts = place.store.artifacts(id)?;
    for artifact in &artifacts {
        let bytes = place.store.load_artifact(id, &artifact.name)?;
        write_new_file(place, &folder.join(&artifact.name), &bytes)?;
    }
    ui.status(format_args!("wrote {}", super::pluralize(artifacts.len() as u64, "artifact")));
    Ok(CommandExit::Done)
}

/// Writes a file that is not there yet.
fn write_new_file(place: &DevflowStore, path: &Path, bytes: &[u8]) -> Result<(), CommandError> {
    let path = place.env.cwd.join(path);
    durable::create_private_dir(durable::parent(&path))?;
    if !durable::create_atomic(&path, bytes)? {
        let message = format!("there is a file already: {}", path.display());
        return Err(CommandError::user(message).hint("name another place with --output"));
    }
    Ok(())
}
