//! `steno handoff`: prints a note for whoever continues a session.

use std::path::PathBuf;

use steno_model::durable;
use steno_store::view::handoff::HandoffNote;
use steno_store::view::redaction::SecretRedactor;

use crate::config::Config;
use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::session_store::SessionStore;
use crate::team_access::RemoteFlag;
use crate::ui::Ui;

/// Print a hand-off note of a session.
///
/// The note has the task, decisions, changed files and open ends of the session. It is made from the record without a
/// model: every line is a quotation with the number of its entry, which `steno show ID:N` shows, or a count. Secrets are
/// redacted.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Session id, unique prefix, `latest`, or a path.
    #[arg(value_name = "ID")]
    session: String,
    /// File to write [default: standard output].
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Keep keys, tokens and passwords.
    #[arg(long)]
    no_redact: bool,
    /// Print the note as JSON.
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
    let mut transcript = SessionStore::new(env).transcript(&args.session)?;
    ui.report_problems(&transcript.problems);
    if !args.no_redact {
        Config::load(env)?.configure_redaction()?;
        SecretRedactor::default().redact_transcript(&mut transcript);
    }
    let note = HandoffNote::from_transcript(&transcript);
    let text = match args.json {
        true => format!("{}\n", serde_json::to_string(&note)?),
        false => note.to_markdown(),
    };
    match &args.output {
        Some(path) => {
            let path = env.cwd.join(path);
            durable::replace_unsynced(&path, text.as_bytes())?;
            ui.path_line(&path)?;
        }
        None if args.json => ui.json_text(&text)?,
        None => ui.transcript_text(&text)?,
    }
    Ok(CommandExit::Done)
}
