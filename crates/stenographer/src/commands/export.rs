//! `steno export`: writes sessions in another format. Formats made for sharing are redacted.

#[cfg(feature = "parquet")]
mod tables;

use std::path::{Path, PathBuf};

use steno_model::{Session, durable};
use steno_web::export::{SessionExport as Page, render_index};

use crate::config::Config;
use crate::error::{CommandError, CommandExit};
use crate::export_format::{EXPORT_FORMATS, ExportFormat, HTML, PARQUET, TranscriptExport};
use crate::process_environment::ProcessEnvironment;
use crate::redaction_choice::{ExportRedaction, RedactionFlags};
use crate::session_store::{PicturedTranscript, SessionStore};
use crate::team_access::RemoteFlag;
use crate::ui::Ui;

/// Write sessions in another format.
///
/// Formats that are folders are written to a new or existing folder; other formats to a file or standard output.
/// Formats for sharing (md, html and atif) are written without keys, tokens and passwords. Other formats are exact: a
/// warning says if they contain secrets, and `--redact` removes them.
///
/// parquet writes entries.parquet and usage.parquet for programs that query tables, without IDs for all sessions. It is
/// for sharing too, and only in builds with the feature `parquet`, such as the packages.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Sessions: ids, unique prefixes, `latest`, or paths.
    #[arg(value_name = "ID")]
    sessions: Vec<String>,
    /// Format to write [default: by the extension of --output; with --site: html].
    #[arg(long, value_enum, required_unless_present_any = ["site", "output"])]
    format: Option<&'static ExportFormat>,
    /// File to write [default: standard output]; a folder for several sessions.
    #[arg(long, short, value_name = "PATH")]
    output: Option<PathBuf>,
    /// Write a page per session, and an index page, to this folder; without IDs, for all sessions.
    #[arg(long, value_name = "DIR", conflicts_with = "output")]
    site: Option<PathBuf>,
    #[command(flatten)]
    redaction: RedactionFlags,
    /// Print JSON Lines: session, agent, path, and how many secrets were redacted and left in each file. Needs
    /// --output or --site.
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
    let format = args.find_format()?;
    if args.site.is_some() && *format != HTML {
        let error = CommandError::usage(format!("--site writes html, not {}", format.name));
        return Err(error.hint("leave out --format"));
    }
    if args.sessions.is_empty() && args.site.is_none() && *format != PARQUET {
        let error = CommandError::usage("no session is named");
        return Err(error.hint("name one, such as `latest`, or use --site DIR for all sessions"));
    }
    if args.json && args.site.is_none() && args.output.is_none() {
        let error = CommandError::usage("--json needs --output or --site");
        return Err(error.hint("add -o PATH, as the session itself goes to standard output"));
    }
    args.check_output(env, format)?;
    Config::load(env)?.configure_redaction()?;
    let redaction = ExportRedaction::new(args.redaction, format);
    if *format == PARQUET {
        return write_tables(ui, env, args, redaction);
    }
    let mut exporting = SessionExporter { env, args, format, redaction };
    match &args.site {
        Some(dir) => exporting.write_site(ui, &env.cwd.join(dir))?,
        None => exporting.write_files(ui)?,
    }
    exporting.redaction.report(ui);
    Ok(CommandExit::Done)
}

#[cfg(feature = "parquet")]
use tables::write_tables;

#[cfg(not(feature = "parquet"))]
fn write_tables(
    _: &mut Ui,
    _: &ProcessEnvironment,
    _: &Args,
    _: ExportRedaction,
) -> Result<CommandExit, CommandError> {
    let error = CommandError::user("this build of steno has no Parquet");
    Err(error.hint("install a package, or build with `cargo install --features parquet`"))
}

impl Args {
    /// Returns the format that was named, or that of the file to write.
    fn find_format(&self) -> Result<&'static ExportFormat, CommandError> {
        if let Some(format) = self.format {
            return Ok(format);
        }
        let Some(output) = &self.output else { return Ok(&HTML) };
        let extension = output.extension().unwrap_or_default();
        let by_name = EXPORT_FORMATS
            .iter()
            .find(|format| format.extension() == Some(format.name) && extension == format.name);
        by_name.copied().ok_or_else(|| {
            let error =
                CommandError::usage(format!("no format has the name of {}", output.display()));
            error.hint("add --format, or write a .html, .md, .json or .jsonl file")
        })
    }
}

impl Args {
    /// Checks that the output can hold what is written: one document each for a session, which end to end are none.
    fn check_output(
        &self,
        env: &ProcessEnvironment,
        format: &ExportFormat,
    ) -> Result<(), CommandError> {
        let Some(extension) = format.extension().filter(|_| self.site.is_none()) else {
            return Ok(());
        };
        let name = format.name;
        let is_several = self.sessions.len() > 1;
        match self.output.as_deref().filter(|output| *output != Path::new("-")) {
            None if is_several && format.is_document() => {
                let error = CommandError::usage(format!("{name} is one document for each session"));
                Err(error.hint("write them to a folder with -o DIR, or use --format jsonl"))
            }
            Some(output) if !is_several && env.cwd.join(output).is_dir() => {
                let error = CommandError::user(format!("is a folder: {}", output.display()));
                let session = Path::new(&self.sessions[0]).file_stem().unwrap_or_default();
                let file = output.join(session).with_extension(extension);
                Err(error.hint(format!("name a file: -o {}", file.display())))
            }
            _ => Ok(()),
        }
    }
}

/// Exports sessions to files or to a site.
struct SessionExporter<'a> {
    env: &'a ProcessEnvironment,
    args: &'a Args,
    format: &'static ExportFormat,
    redaction: ExportRedaction,
}

impl SessionExporter<'_> {
    fn write_files(&mut self, ui: &mut Ui) -> Result<(), CommandError> {
        let store = SessionStore::new(self.env);
        let (format, out) = (self.format, self.args.output.as_deref());
        for name in &self.args.sessions {
            let PicturedTranscript { mut transcript, pictures } =
                store.transcript_with_pictures(name)?;
            ui.report_problems(&transcript.problems);
            let secrets = self.redaction.apply(&mut transcript);
            let file = match (out, format.extension(), self.args.sessions.len()) {
                (Some(dir), Some(extension), 2..) if dir != Path::new("-") => {
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
            let is_redacted = self.redaction.is_redacting();
            let row = ExportedFile { session: &transcript.session, path, secrets, is_redacted };
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
            let PicturedTranscript { mut transcript, pictures } =
                PicturedTranscript::from_session(session)?;
            ui.report_problems(&transcript.problems);
            let secrets = self.redaction.apply(&mut transcript);
            let (session, zone) = (&transcript.session, &self.env.zone);
            let file = format!("{}/{}.html", session.agent, session.id);
            let index = Some("../index.html");
            let page = Page { transcript: &transcript, pictures: &pictures, zone, prices, index };
            let path = dir.join(&file);
            durable::create_private_dir(path.parent().unwrap_or(dir))?;
            durable::replace_unsynced(&path, page.to_html().as_bytes())?;
            if self.args.json {
                let (session, path) = (&transcript.session, path.as_path());
                let is_redacted = self.redaction.is_redacting();
                let row = ExportedFile { session, path, secrets, is_redacted };
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
}

/// A file that was written.
struct ExportedFile<'a> {
    session: &'a Session,
    path: &'a Path,
    secrets: u64,
    is_redacted: bool,
}

impl ExportedFile<'_> {
    fn print_json_line(&self, ui: &mut Ui) -> Result<(), CommandError> {
        let (redacted, left) = if self.is_redacted { (self.secrets, 0) } else { (0, self.secrets) };
        let row = serde_json::json!({
            "session": self.session.id.as_str(),
            "agent": self.session.agent,
            "path": self.path.to_string_lossy(),
            "secrets_redacted": redacted,
            "secrets_left": left,
        });
        serde_json::to_writer(ui.out(), &row)?;
        Ok(writeln!(ui.out())?)
    }
}
