//! `steno export`: writes a kept session in another format.

use std::path::PathBuf;

use crate::error::{CommandError, Exit};
use crate::scene::Scene;
use crate::store::Store;
use crate::target::{Export, Target};
use crate::ui::Ui;

/// Write a session in another format.
///
/// leslie, devflow and chibi are written into a folder, which is made if need be; the others into a file, or
/// to standard output.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session: its id, the beginning of one, `latest`, or a path.
    #[arg(value_name = "ID")]
    session: String,
    /// The format.
    #[arg(long, value_enum)]
    format: Target,
    /// Where to [default: standard output].
    #[arg(long, short, value_name = "PATH")]
    output: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(ui: &mut Ui, scene: &Scene, args: &Args) -> Result<Exit, CommandError> {
    let transcript = Store::new(scene).transcript(&args.session)?;
    ui.problems(&transcript.problems);
    let out = args.output.as_deref();
    Export { transcript: &transcript, target: args.format, out }.write(ui, &scene.clock)?;
    Ok(Exit::Done)
}
