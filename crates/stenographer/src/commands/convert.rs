//! `steno convert`: from one format to another, without the store.

use std::path::PathBuf;

use steno_core::format::devflow;

use crate::error::{CommandError, CommandExit};
use crate::export_format::{ExportFormat, TranscriptExport};
use crate::process_environment::ProcessEnvironment;
use crate::session_store::{PicturedTranscript, SessionPath, SessionStore};
use crate::ui::Ui;

/// Turn a transcript of one format into another.
///
/// Nothing is kept and nothing is left out, secrets included. leslie, devflow and chibi are written into a folder, the others into a file or to
/// standard output.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A file or folder of any known format, or a kept session.
    #[arg(value_name = "IN")]
    input: String,
    /// The format to write.
    #[arg(long, value_enum, value_name = "FORMAT")]
    to: ExportFormat,
    /// Where to [default: standard output].
    #[arg(long, short, value_name = "OUT")]
    output: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &Args,
) -> Result<CommandExit, CommandError> {
    let PicturedTranscript { transcript, pictures } =
        match SessionPath::from_name(&env.cwd, &args.input) {
            Some(place) => {
                let PicturedTranscript { transcript, pictures } = place.read_pictured()?;
                PicturedTranscript { transcript: devflow::give_back(transcript), pictures }
            }
            None => SessionStore::new(env).transcript_with_pictures(&args.input)?,
        };
    ui.report_problems(&transcript.problems);
    let (target, out) = (args.to, args.output.as_deref());
    TranscriptExport { transcript: &transcript, pictures: &pictures, format: target, out }
        .write_output(ui, env)?;
    Ok(CommandExit::Done)
}
