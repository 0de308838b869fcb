//! `steno convert`: converts one format into another, without the store.

use std::path::PathBuf;

use steno_seeds::devflow;

use crate::config::Config;
use crate::error::{CommandError, CommandExit};
use crate::export_format::{ExportFormat, TranscriptExport};
use crate::process_environment::ProcessEnvironment;
use crate::redaction_choice::{ExportRedaction, RedactionFlags};
use crate::session_store::{PicturedTranscript, SessionPath, SessionStore};
use crate::ui::Ui;

/// Convert a transcript from one format to another.
///
/// The store is not used. Formats that are folders are written to a new or existing folder; other formats to a file or
/// standard output. Formats for sharing (md, html and atif) are written without keys, tokens and passwords. Other
/// formats are exact: a warning says if they contain secrets, and `--redact` removes them.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// File or folder in any known format, or a recorded session.
    #[arg(value_name = "IN")]
    input: String,
    /// Format to write.
    #[arg(long, value_enum, value_name = "FORMAT")]
    to: &'static ExportFormat,
    /// File or folder to write [default: standard output].
    #[arg(long, short, value_name = "OUT")]
    output: Option<PathBuf>,
    #[command(flatten)]
    redaction: RedactionFlags,
}

/// Runs the command.
pub(crate) fn run(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &Args,
) -> Result<CommandExit, CommandError> {
    Config::load(env)?.configure_redaction()?;
    let PicturedTranscript { mut transcript, pictures } =
        match SessionPath::from_name(&env.cwd, &args.input) {
            Some(place) => {
                let PicturedTranscript { transcript, pictures } = place.read_pictured()?;
                PicturedTranscript { transcript: devflow::restore_original(transcript), pictures }
            }
            None => SessionStore::new(env).transcript_with_pictures(&args.input)?,
        };
    ui.report_problems(&transcript.problems);
    let (format, out) = (args.to, args.output.as_deref());
    let mut redaction = ExportRedaction::new(args.redaction, format);
    redaction.apply(&mut transcript);
    TranscriptExport { transcript: &transcript, pictures: &pictures, format, out }
        .write_output(ui, env)?;
    redaction.report(ui);
    Ok(CommandExit::Done)
}
