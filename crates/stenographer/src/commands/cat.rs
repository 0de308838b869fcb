//! `steno cat`: prints the kept bytes of a session's files.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::PoisonError;

use serde_json::json;
use steno_model::backup;
use steno_vault::sealed::SharedProblems;
use steno_vault::{SessionBundle, SessionDir, SessionFile};

use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::session_store::SessionStore;
use crate::ui::Ui;

/// The name under which a recording is printed.
const RECORDING: &str = "record.jsonl";

/// Print the kept bytes of a session's files.
///
/// The bytes are those that the agent wrote, with masks for forgotten ones, also in an encrypted store. A session with
/// several files needs the name of one; `--list` prints the names. Earlier contents of a file that the agent rewrote are
/// NAME.steno-earlier.0, NAME.steno-earlier.1 and so on, oldest first.
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
    let files = NamedFiles::of_bundle(dir.collect_bundle(&problems)?);
    let recording = dir.is_recorded()?.then_some(RECORDING);
    let mut names: Vec<&str> = files.0.iter().map(|file| file.name.as_str()).collect();
    names.extend(recording);
    if args.list || args.json {
        list_names(ui, &names, args.json)?;
        return Ok(CommandExit::Done);
    }
    let latest: Vec<&str> = files.latest_names().chain(recording).collect();
    let wanted = match (&args.file, &latest[..], &names[..]) {
        (Some(file), _, _) => file.as_str(),
        (None, [only], _) | (None, _, [only]) => only,
        (None, _, _) => {
            let error = CommandError::user(format!("the session has {} files", names.len()));
            return Err(error.hint(format!("name one of them: {}", names.join(", "))));
        }
    };
    if !names.contains(&wanted) {
        let error = CommandError::user(format!("the session has no such file: {wanted}"));
        return Err(error.hint(format!("its files are: {}", names.join(", "))));
    }
    match files.0.iter().find(|file| file.name == wanted) {
        Some(named) => drop(io::copy(&mut named.file.open()?, ui.out())?),
        None => print_recording(ui, &dir, &problems)?,
    }
    let problems = problems.lock().unwrap_or_else(PoisonError::into_inner);
    ui.report_problems(&problems);
    Ok(if problems.is_empty() { CommandExit::Done } else { CommandExit::Failed })
}

/// A file of a session and the name by which it is selected.
struct NamedFile {
    name: String,
    /// Whether the agent has rewritten the file since.
    is_earlier: bool,
    file: SessionFile,
}

/// The files of a session, each with a name of its own.
struct NamedFiles(Vec<NamedFile>);

impl NamedFiles {
    fn of_bundle(bundle: SessionBundle) -> Self {
        let mut files = Self(Vec::new());
        for file in bundle.files.into_iter().chain(bundle.excerpts) {
            let name = file.name().to_owned();
            files.add(NamedFile { name, is_earlier: false, file });
        }
        let mut numbers: BTreeMap<String, u32> = BTreeMap::new();
        for file in bundle.earlier_files {
            let number = numbers.entry(file.name().to_owned()).or_default();
            let name = backup::earlier_name(Path::new(file.name()), *number);
            *number += 1;
            let name = name.to_string_lossy().into_owned();
            files.add(NamedFile { name, is_earlier: true, file });
        }
        files
    }

    /// Adds a file. If its name is taken, a number is appended.
    fn add(&mut self, mut file: NamedFile) {
        let is_free = |name: &str| self.0.iter().all(|other| other.name != name);
        if !is_free(&file.name) {
            let mut numbered = (2_u32..).map(|number| format!("{}.{number}", file.name));
            file.name = numbered.find(|name| is_free(name)).unwrap_or_default();
        }
        self.0.push(file);
    }

    fn latest_names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter(|file| !file.is_earlier).map(|file| file.name.as_str())
    }
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
