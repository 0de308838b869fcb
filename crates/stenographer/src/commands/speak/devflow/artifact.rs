//! `artifact`: lists, shows and exports the files of a run.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use steno_model::durable;
use steno_model::json::JsonStyle;
use steno_seeds::devflow::{ArtifactInfo, RunId};

use super::DevflowStore;
use crate::error::{CommandError, CommandExit};
use crate::ui::Ui;

#[derive(Debug, Subcommand)]
pub(super) enum ArtifactCommand {
    /// List the artifacts of a run.
    List {
        /// Run id, unique prefix, or `latest`.
        #[arg(value_name = "RUN-ID")]
        id: String,
        /// Print one JSON object per line.
        #[arg(long)]
        json: bool,
    },
    /// Show an artifact as text.
    View {
        /// Run id, unique prefix, or `latest`.
        #[arg(value_name = "RUN-ID")]
        id: String,
        /// Name of the artifact.
        name: String,
    },
    /// Write an artifact, byte for byte; without a name, all of them to a folder.
    Export {
        /// Run id, unique prefix, or `latest`.
        #[arg(value_name = "RUN-ID")]
        id: String,
        /// Name of the artifact [default: all].
        #[arg(required_unless_present = "output")]
        name: Option<String>,
        /// File, or folder for all of them [default: standard output].
        #[arg(long, short, value_name = "OUT")]
        output: Option<PathBuf>,
    },
}

/// Lists, shows or writes artifacts.
pub(super) fn run(
    ui: &mut Ui,
    devflow: &DevflowStore,
    command: &ArtifactCommand,
) -> Result<CommandExit, CommandError> {
    match command {
        ArtifactCommand::List { id, json } => {
            list_artifacts(ui, &devflow.store.list_artifacts(&devflow.resolve_run(id)?)?, *json)
        }
        ArtifactCommand::View { id, name } => {
            let bytes = devflow.store.load_artifact(&devflow.resolve_run(id)?, name)?;
            ui.transcript_text(&String::from_utf8_lossy(&bytes))?;
            Ok(CommandExit::Done)
        }
        ArtifactCommand::Export { id, name: Some(name), output } => {
            let bytes = devflow.store.load_artifact(&devflow.resolve_run(id)?, name)?;
            match output {
                Some(output) => write_new_file(devflow, output, &bytes)?,
                None => ui.out().write_all(&bytes)?,
            }
            Ok(CommandExit::Done)
        }
        ArtifactCommand::Export { id, name: None, output } => {
            let folder = output.clone().unwrap_or_default();
            export_all(ui, devflow, &devflow.resolve_run(id)?, &folder)
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
            ui.transcript_text(&(JsonStyle::COMPACT.print(artifact) + "\n"))?;
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
    devflow: &DevflowStore,
    id: &RunId,
    folder: &Path,
) -> Result<CommandExit, CommandError> {
    let artifacts = devflow.store.list_artifacts(id)?;
    for artifact in &artifacts {
        let bytes = devflow.store.load_artifact(id, &artifact.name)?;
        write_new_file(devflow, &folder.join(&artifact.name), &bytes)?;
    }
    ui.status(format_args!("wrote {}", super::pluralize(artifacts.len() as u64, "artifact")));
    Ok(CommandExit::Done)
}

/// Writes a file; fails if it exists.
fn write_new_file(devflow: &DevflowStore, path: &Path, bytes: &[u8]) -> Result<(), CommandError> {
    let path = devflow.env.cwd.join(path);
    durable::create_private_dir(durable::parent_folder(&path))?;
    if !durable::create_atomic(&path, bytes)? {
        let message = format!("file exists: {}", path.display());
        return Err(CommandError::user(message).hint("use --output for another path"));
    }
    Ok(())
}
