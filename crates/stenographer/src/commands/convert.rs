//! `steno convert`: from one format to another, without the store.

use std::path::PathBuf;

use steno_core::format::devflow;

use crate::error::{CommandError, Exit};
use crate::scene::Scene;
use crate::store::{Pictured, Place, Store};
use crate::target::{Export, Target};
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
    to: Target,
    /// Where to [default: standard output].
    #[arg(long, short, value_name = "OUT")]
    output: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(ui: &mut Ui, scene: &Scene, args: &Args) -> Result<Exit, CommandError> {
    let Pictured { transcript, pictures } = match Place::of(&scene.cwd, &args.input) {
        Some(place) => {
            let Pictured { transcript, pictures } = place.read_pictured()?;
            Pictured { transcript: devflow::give_back(transcript), pictures }
        }
        None => Store::new(scene).pictured(&args.input)?,
    };
    ui.problems(&transcript.problems);
    let (target, out) = (args.to, args.output.as_deref());
    Export { transcript: &transcript, pictures: &pictures, target, out }.write(ui, scene)?;
    Ok(Exit::Done)
}
