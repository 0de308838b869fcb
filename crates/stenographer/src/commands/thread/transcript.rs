//! `steno transcript`: lists the transcripts of a thread, and writes new ones from sessions.

use std::fs;
use std::path::PathBuf;

use serde_json::json;
use steno_model::durable::OnPath;
use steno_seeds::leslie;

use super::json_line;
use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::project_threads::ThreadArgument;
use crate::session_store::SessionStore;
use crate::thread_error::explain_thread_error;
use crate::ui::Ui;

/// List the transcripts of a thread, or write a session into it.
///
/// Writes one text file per prompt, at most fifty per thread. Long outputs are shortened; the recorded session is
/// not.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    thread: ThreadArgument,
    /// Session to write: id, unique prefix, `latest`, or a path.
    session: Option<String>,
}

/// Runs the command.
pub(super) fn run(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &Args,
) -> Result<CommandExit, CommandError> {
    let (threads, thread) = args.thread.find_thread(ui, env)?;
    let paths = match &args.session {
        None => list_text_files(threads.store.transcripts_folder(&thread.id))?,
        Some(session) => {
            let mut transcript = SessionStore::new(env).transcript(session)?;
            ui.report_problems(&transcript.problems);
            transcript.session.thread = Some(thread.id.to_string());
            leslie::localize_times(&mut transcript, &env.zone);
            threads
                .store
                .write_transcript(thread.id.as_str(), &transcript)
                .map_err(explain_thread_error)?
        }
    };
    if paths.is_empty() {
        ui.status(format_args!("no transcripts in {}", thread.id));
    }
    for path in paths {
        if args.thread.flags.json {
            json_line(ui, &json!({ "thread_id": thread.id, "path": path }))?;
        } else {
            ui.transcript_text(&format!("{}\n", path.display()))?;
        }
    }
    Ok(CommandExit::Done)
}

/// Lists the text files of a folder, sorted by name and thus by time.
fn list_text_files(folder: PathBuf) -> Result<Vec<PathBuf>, CommandError> {
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let mut paths = Vec::new();
    for item in fs::read_dir(&folder).on("open", &folder)? {
        paths.push(item.on("open", &folder)?.path());
    }
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "txt"));
    paths.sort();
    Ok(paths)
}
