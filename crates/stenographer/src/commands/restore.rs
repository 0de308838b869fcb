//! `steno restore`: puts back the files that an agent wrote.

use std::path::PathBuf;

use steno_core::vault::restore::RestoreError;

use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::session_store::SessionStore;
use crate::ui::Ui;
use crate::write_permission::WritePermission;

/// Put back the files of an imported session, byte for byte, with their times and modes.
///
/// They go where they stood, so that the agent's own resume works after it has purged them. Nothing is written when
/// a file would replace other content. Prints the path of each file.
///
/// Files that stood outside of the folders where the agent keeps its sessions need `--to`, or a yes at a terminal. Files that
/// other programs run or trust, such as those in `~/.ssh`, are never written.
///
/// With `--force`, what is replaced is kept beside it as `NAME.steno-backup`. A link in the place of a file is replaced by the
/// file; what it leads to is not touched.
///
/// A session that was kept from a database goes back as rows: what the database lacks is inserted, after a copy of it
/// was made beside it, and nothing else in it is changed. Where there is none, one with this session alone is made.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session: its id, the beginning of one, or `latest`.
    #[arg(value_name = "ID")]
    session: String,
    /// Put them below this folder instead.
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
    /// Replace what stands there.
    #[arg(long)]
    force: bool,
    /// Also put back what files held before their agent rewrote them: each version beside its file, as
    /// NAME.steno-earlier.N.
    #[arg(long)]
    earlier: bool,
}

/// Runs the command.
pub(crate) fn run(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &Args,
) -> Result<CommandExit, CommandError> {
    let session = SessionStore::new(env).find_session(&args.session)?;
    let to = args.to.as_ref().map(|to| env.cwd.join(to));
    let targets = session.restore_targets(to.as_deref(), args.earlier).map_err(add_restore_hint)?;
    let find_projects =
        || Ok(session.read()?.session.project.into_iter().map(PathBuf::from).collect());
    let permission = WritePermission::new(env, &session, &find_projects);
    match &to {
        Some(_) => permission.check_protected(&targets)?,
        None => permission.check_targets(ui, &targets)?,
    }
    let mut restored = session.restore(to.as_deref(), args.force).map_err(add_restore_hint)?;
    if args.earlier {
        restored
            .extend(session.restore_earlier(to.as_deref(), args.force).map_err(add_restore_hint)?);
    }
    for file in restored {
        ui.path_line(&file.path)?;
        if let Some(backup) = &file.backup {
            let (path, backup) = (file.path.display(), backup.display());
            ui.status(format_args!("what stood at {path} is kept as {backup}"));
        }
        if !file.written {
            ui.status(format_args!("{} is there already", file.path.display()));
        }
    }
    ui.report_problems(&session.faults()?);
    Ok(CommandExit::Done)
}

/// The failure, and what to do about it.
fn add_restore_hint(error: RestoreError) -> CommandError {
    let hint = match &error {
        error if error.is_taken() => Some("use --force to replace it, or --to DIR"),
        error if error.is_foreign() => Some("use --to DIR to put them elsewhere"),
        error if error.is_damage() => Some("run `steno verify` to see what else is damaged"),
        _ => None,
    };
    let error = CommandError::user(error);
    hint.into_iter().fold(error, CommandError::hint)
}
