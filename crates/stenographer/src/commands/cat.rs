//! `steno cat`: prints the kept bytes of a session's files.

use std::io;
use std::sync::PoisonError;

use serde_json::json;
use steno_vault::sealed::SharedProblems;
use steno_vault::{SessionDir, SessionFile};

use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::session_store::SessionStore;
use crate::ui::Ui;

/// The name under which a recording is printed.
const RECORDING: &str = "record.jsonl";

/// Print the kept bytes of a session's files.
///
/// The bytes are those that the agent wrote, with masks for forgotten ones, also in an encrypted store. A session with
/// several files needs the name of one; `--list` prints the names.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Session id, unique prefix, or `latest`.
    #[arg(value_name = "SESSION")]
    session: String,
    /// Name of a file of the session.
    file: Option<String>,
    /// List the names of the files.
    #[arg(long, conflicts_with = "file")]
    list: bool,
    /// List the files as JSON Lines.
    #[arg(long, conflicts_with = "file")]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &Args,
) -> Result<CommandExit, CommandError> {
    let dir = SessionStore::new(env).find_session(&args.session)?;
    let problems = SharedProblems::default();
    let bundle = dir.collect_bundle(&problems)?;
    let mut files = bundle.files;
    files.extend(bundle.earlier_files);
    files.extend(bundle.excerpts);
    let mut names: Vec<&str> = files.iter().map(SessionFile::name).collect();
    if dir.is_recorded()? {
        names.push(RECORDING);
    }
    if args.list || args.json {
        list_names(ui, &names, args.json)?;
        return Ok(CommandExit::Done);
    }
    let wanted = match (&args.file, &names[..]) {
        (Some(file), _) => file.as_str(),
        (None, [only]) => only,
        (None, _) => {
            let error = CommandError::user(format!("the session has {} files", names.len()));
            return Err(error.hint(format!("name one of them: {}", names.join(", "))));
        }
    };
    if !names.contains(&wanted) {
        let error = CommandError::user(format!("the session has no such file: {wanted}"));
        return Err(error.hint(format!("its files are: {}", names.join(", "))));
    }
    match files.iter().find(|file| file.name() == wanted) {
        Some(file) => drop(io::copy(&mut file.open()?, ui.out())?),
        None => print_recording(ui, &dir, &problems)?,
    }
    let problems = problems.lock().unwrap_or_else(PoisonError::into_inner);
    ui.report_problems(&problems);
    Ok(if problems.is_empty() { CommandExit::Done } else { CommandExit::Failed })
}

fn list_names(ui: &mut Ui, names: &[&str], as_json: bool) -> Result<(), CommandError> {
    for name in names {
        match as_json {
            true => ui.json_text(&format!("{}\n", json!({ "file": name })))?,
            false => ui.listing_text(&format!("{name}\n"))?,
        }
    }
    Ok(())
}

fn print_recording(
    ui: &mut Ui,
    dir: &SessionDir,
    problems: &SharedProblems,
) -> Result<(), CommandError> {
    let mut written = Ok(());
    dir.for_each_recorded_line(problems, &mut |_, line| {
        if written.is_ok() {
            written = ui.out().write_all(line).and_then(|()| ui.out().write_all(b"\n"));
        }
    })?;
    Ok(written?)
}
