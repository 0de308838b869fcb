//! `steno restore`: restores the session files that an agent wrote.

mod redacted;

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use steno_agents::registry::database_schemas;
use steno_model::durable::OnPath;
use steno_store::transcript::ReadTranscript;
use steno_store::view::redaction::{SecretRedactor, search_file};
use steno_vault::SessionDir;
use steno_vault::restore::{RestoreError, RestoredFile};

use self::redacted::RedactedRestore;
use crate::config::Config;
use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::redaction_choice::warn_of_secrets;
use crate::session_store::SessionStore;
use crate::team_access::RemoteFlag;
use crate::ui::Ui;
use crate::write_permission::WritePermission;

/// Restore the files of an imported session, byte for byte.
///
/// Files go back to their original paths, with their times and modes, so that the agent can resume a session it has purged. Nothing is written if
/// a file would replace other content. Prints the path of each file.
///
/// Files outside of the agent's session folders need `--to`, or a yes at a terminal. Files that other programs run or
/// trust, such as those in `~/.ssh`, are never written.
///
/// With `--force`, replaced files are saved as `NAME.steno-backup`. A symbolic link is replaced by the file; its
/// target is not changed.
///
/// Texts that `steno forget` removed are masked in the restored files.
///
/// With `--to`, a warning says if the files contain secrets. `--redact` replaces them: such files are no longer what the agent wrote,
/// so they go to another folder only.
///
/// A session from a database is restored as rows: missing rows are inserted after a backup of the database, and
/// nothing else in it changes. If there is no database, one with only this session is created.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Session: id, unique prefix, or `latest`.
    #[arg(value_name = "ID")]
    session: String,
    /// Restore below this folder instead.
    #[arg(long, value_name = "DIR")]
    to: Option<PathBuf>,
    /// Replace existing files.
    #[arg(long)]
    force: bool,
    /// Also restore earlier contents of files that the agent rewrote, each as NAME.steno-earlier.N beside its file.
    #[arg(long)]
    earlier: bool,
    /// Replace keys, tokens and passwords in the restored files. Needs --to.
    #[arg(long, requires = "to")]
    redact: bool,
    /// Print JSON Lines: path, whether it was written, and the backup of what it replaced.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pub(crate) remote: RemoteFlag,
}

/// Runs the command.
pub(crate) fn run(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &Args,
) -> Result<CommandExit, CommandError> {
    Config::load(env)?.configure_redaction()?;
    let session = SessionStore::new(env).find_session(&args.session)?;
    let to = args.to.as_ref().map(|to| env.cwd.join(to));
    let targets = session.restore_targets(to.as_deref(), args.earlier).map_err(add_restore_hint)?;
    let find_projects =
        || Ok(session.read_transcript()?.session.project.into_iter().map(PathBuf::from).collect());
    let permission = WritePermission::new(env, &session, &find_projects);
    match &to {
        Some(_) => permission.check_protected(&targets)?,
        None => permission.check_targets(ui, &targets)?,
    }
    let restored = match &to {
        Some(to) if args.redact => {
            let restored = RedactedRestore { session: &session, args, to };
            restored.write_files(ui)?
        }
        to => {
            let restored = restore_files(&session, args, to.as_deref())?;
            // In its own folders, the agent has its secrets already.
            if to.is_some() {
                warn_of_secrets(ui, &search_restored(&restored)?);
            }
            restored
        }
    };
    for file in restored {
        match args.json {
            true => print_json_line(ui, &file)?,
            false => ui.path_line(&file.path)?,
        }
        if let Some(backup) = &file.backup {
            let (path, backup) = (file.path.display(), backup.display());
            ui.status(format_args!("saved the previous {path} as {backup}"));
        }
        if !file.was_written {
            ui.status(format_args!("{} is up to date", file.path.display()));
        }
    }
    for tombstone in session.part_tombstones()? {
        let (id, at) = (tombstone.short_id(), tombstone.at.in_zone(&env.zone).date_and_clock());
        ui.print_note(format_args!("texts that were forgotten {at} are masked: [forgotten {id}]"));
    }
    ui.report_problems(&session.find_faults()?);
    Ok(CommandExit::Done)
}

fn restore_files(
    session: &SessionDir,
    args: &Args,
    to: Option<&Path>,
) -> Result<Vec<RestoredFile>, CommandError> {
    let schemas = database_schemas(session.agent());
    let mut restored = session.restore(to, args.force, schemas).map_err(add_restore_hint)?;
    if args.earlier {
        restored.extend(session.restore_earlier(to, args.force).map_err(add_restore_hint)?);
    }
    Ok(restored)
}

/// Searches the files that were written.
fn search_restored(files: &[RestoredFile]) -> Result<SecretRedactor, CommandError> {
    let mut found = SecretRedactor::default();
    for RestoredFile { path, .. } in files.iter().filter(|file| file.was_written) {
        let file = File::open(path).on("open", path)?;
        search_file(&mut found, &mut BufReader::new(file)).on("read", path)?;
    }
    Ok(found)
}

fn print_json_line(ui: &mut Ui, file: &RestoredFile) -> Result<(), CommandError> {
    let text = |path: &PathBuf| path.to_string_lossy().into_owned();
    let row = serde_json::json!({
        "path": text(&file.path),
        "written": file.was_written,
        "backup": file.backup.as_ref().map(text),
    });
    serde_json::to_writer(ui.out(), &row)?;
    Ok(writeln!(ui.out())?)
}

/// Adds a hint to the error.
fn add_restore_hint(error: RestoreError) -> CommandError {
    let hint = match &error {
        error if error.is_taken() => Some("use --force to replace it, or --to DIR"),
        error if error.is_foreign() => Some("use --to DIR to restore to another folder"),
        RestoreError::Recorded => Some("use `steno export` to write it in another format"),
        error if error.is_damage() => Some("run `steno verify` to find other damage"),
        _ => None,
    };
    let error = CommandError::user(error);
    hint.into_iter().fold(error, CommandError::hint)
}
