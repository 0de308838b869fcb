//! `steno export`: writes sessions in another format. Formats made for sharing are redacted.

use std::path::{Path, PathBuf};

use steno_model::{Session, durable};
use steno_store::view::redaction::SecretRedactor;
use steno_web::export::{SessionExport as Page, render_index};

use crate::config::Config;
use crate::error::{CommandError, CommandExit};
use crate::export_format::{ExportFormat, HTML, TranscriptExport};
use crate::process_environment::ProcessEnvironment;
use crate::session_store::{PicturedTranscript, SessionStore};
use crate::ui::{Ui, count_noun};

/// Write sessions in another format.
///
/// Formats that are folders are written to a new or existing folder; other formats to a file or standard output.
/// Formats for sharing are written without keys, tokens and passwords.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Sessions: ids, unique prefixes, `latest`, or paths.
    #[arg(value_name = "ID", required_unless_present = "site")]
    sessions: Vec<String>,
    /// Format to write [default with --site: html].
    #[arg(long, value_enum, required_unless_present = "site")]
    format: Option<&'static ExportFormat>,
    /// File to write [default: standard output]; a folder for several sessions.
    #[arg(long, short, value_name = "PATH")]
    output: Option<PathBuf>,
    /// Write a page per session, and an index page, to this folder; without IDs, for all sessions.
    #[arg(long, value_name = "DIR", conflicts_with = "output")]
    site: Option<PathBuf>,
    /// Keep secrets in formats for sharing.
    #[arg(long)]
    no_redact: bool,
    /// Print JSON Lines: session, agent, path and the number of redacted secrets of each file. Needs --output or
    /// --site.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &Args,
) -> Result<CommandExit, CommandError> {
    let format = args.format.unwrap_or(&HTML);
    if args.site.is_some() && *format != HTML {
        let error = CommandError::usage(format!("--site writes html, not {}", format.name));
        return Err(error.hint("leave out --format"));
    }
    if args.json && args.site.is_none() && args.output.is_none() {
        let error = CommandError::usage("--json needs --output or --site");
        return Err(error.hint("add -o PATH, as the session itself goes to standard output"));
    }
    let mut exporting = SessionExporter { env, args, format, redactor: SecretRedactor::default() };
    match &args.site {
        Some(dir) => exporting.write_site(ui, &env.cwd.join(dir))?,
        None => exporting.write_files(ui)?,
    }
    if format.is_shared && !args.no_redact {
        ui.status(format_args!("{} redacted", count_noun(exporting.redactor.count(), "secret")));
    }
    Ok(CommandExit::Done)
}

/// Exports sessions to files or to a site.
struct SessionExporter<'a> {
    env: &'a ProcessEnvironment,
    args: &'a Args,
    format: &'static ExportFormat,
    redactor: SecretRedactor,
}

impl SessionExporter<'_> {
    fn write_files(&mut self, ui: &mut Ui) -> Result<(), CommandError> {
        let store = SessionStore::new(self.env);
        let (format, out) = (self.format, self.args.output.as_deref());
        for name in &self.args.sessions {
            let before = self.redactor.count();
            let PicturedTranscript { transcript, pictures } =
                self.redact_if_shared(ui, store.transcript_with_pictures(name)?);
            let secrets = self.redactor.count() - before;
            let file = match (out, format.extension(), self.args.sessions.len()) {
                (Some(dir), Some(extension), 2..) => {
                    durable::create_private_dir(dir)?;
                    Some(dir.join(format!("{}.{extension}", transcript.session.id)))
                }
                _ => out.map(Path::to_owned),
            };
            let (transcript, pictures, out) = (&transcript, &pictures, file.as_deref());
            let export = TranscriptExport { transcript, pictures, format, out };
            if !self.args.json {
                export.write_output(ui, self.env)?;
                continue;
            }
            // The paths are in the JSON.
            export.write_output(&mut Ui::silent(), self.env)?;
            let path = out.unwrap_or(Path::new("-"));
            let row = ExportedFile { session: &transcript.session, path, secrets };
            row.print_json_line(ui)?;
        }
        Ok(())
    }

    /// Writes a page per session and an index page, newest first.
    fn write_site(&mut self, ui: &mut Ui, dir: &Path) -> Result<(), CommandError> {
        let store = SessionStore::new(self.env);
        let named = self.args.sessions.iter().map(|name| store.find_session(name));
        let mut sessions = named.collect::<Result<Vec<_>, _>>()?;
        if self.args.sessions.is_empty() {
            sessions = store.vault.list_sessions()?;
        }
        let prices = &Config::load(self.env)?.prices()?;
        let mut listed = Vec::new();
        for session in &sessions {
            let before = self.redactor.count();
            let PicturedTranscript { transcript, pictures } =
                self.redact_if_shared(ui, PicturedTranscript::from_session(session)?);
            let secrets = self.redactor.count() - before;
            let (session, zone) = (&transcript.session, &self.env.zone);
            let file = format!("{}/{}.html", session.agent, session.id);
            let index = Some("../index.html");
            let page = Page { transcript: &transcript, pictures: &pictures, zone, prices, index };
            let path = dir.join(&file);
            durable::create_private_dir(path.parent().unwrap_or(dir))?;
            durable::replace_unsynced(&path, page.to_html().as_bytes())?;
            if self.args.json {
                let row = ExportedFile { session: &transcript.session, path: &path, secrets };
                row.print_json_line(ui)?;
            }
            listed.push((file, transcript.session));
        }
        listed
            .sort_by_key(|(_, session)| std::cmp::Reverse(session.started.map(|at| at.instant())));
        let path = dir.join("index.html");
        durable::replace_unsynced(&path, render_index(&listed, &self.env.zone).as_bytes())?;
        match self.args.json {
            true => Ok(()),
            false => Ok(ui.path_line(&path)?),
        }
    }

    /// Reports problems, and redacts the session if the format is for sharing.
    fn redact_if_shared(
        &mut self,
        ui: &mut Ui,
        mut pictured: PicturedTranscript,
    ) -> PicturedTranscript {
        ui.report_problems(&pictured.transcript.problems);
        if self.format.is_shared && !self.args.no_redact {
            self.redactor.redact_transcript(&mut pictured.transcript);
        }
        pictured
    }
}

/// A file that was written.
struct ExportedFile<'a> {
    session: &'a Session,
    path: &'a Path,
    secrets: u64,
}

impl ExportedFile<'_> {
    fn print_json_line(&self, ui: &mut Ui) -> Result<(), CommandError> {
        let row = serde_json::json!({
            "session": self.session.id.as_str(),
            "agent": self.session.agent,
            "path": self.path.to_string_lossy(),
            "secrets_redacted": self.secrets,
        });
        serde_json::to_writer(ui.out(), &row)?;
        Ok(writeln!(ui.out())?)
    }
}
