//! Export formats, and writing a transcript in one of them.

use std::path::{Path, PathBuf};

use steno_model::Transcript;
use steno_model::durable;
use steno_seeds::{chibi, devflow, leslie, weakincentives};
use steno_store::format::native;
use steno_store::view;
use steno_store::view::pictures::SessionPictures;
use steno_web::export::SessionExport as Page;

use crate::config::Config;
use crate::error::CommandError;
use crate::process_environment::ProcessEnvironment;
use crate::ui::Ui;

/// An export format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ExportFormat {
    /// A folder of text files, one per unit.
    Leslie,
    /// A folder with `runs/<id>/transcript.json`.
    Devflow,
    /// JSON Lines of `TranscriptEntry`.
    Weakincentives,
    /// A folder with `contexts/<name>/context.jsonl`.
    Chibi,
    /// One JSON document: session and entries.
    Json,
    /// Steno's entries, one per line.
    Jsonl,
    /// Markdown.
    Md,
    /// A page in one file, for a browser.
    Html,
    /// A trajectory in the Agent Trajectory Interchange Format.
    Atif,
}

impl ExportFormat {
    /// Returns whether the format is made for sharing, and thus redacted.
    pub(crate) fn is_shared(self) -> bool {
        matches!(self, ExportFormat::Md | ExportFormat::Html)
    }

    /// Returns the file extension; `None` for formats written to a folder.
    pub(crate) fn extension(self) -> Option<&'static str> {
        match self {
            ExportFormat::Weakincentives | ExportFormat::Jsonl => Some("jsonl"),
            ExportFormat::Json | ExportFormat::Atif => Some("json"),
            ExportFormat::Md => Some("md"),
            ExportFormat::Html => Some("html"),
            ExportFormat::Leslie | ExportFormat::Devflow | ExportFormat::Chibi => None,
        }
    }
}

/// A transcript to export.
pub(crate) struct TranscriptExport<'a> {
    pub(crate) transcript: &'a Transcript,
    pub(crate) pictures: &'a SessionPictures,
    pub(crate) format: ExportFormat,
    pub(crate) out: Option<&'a Path>,
}

impl TranscriptExport<'_> {
    /// Writes the transcript: text to a file or standard output, other formats to a folder.
    pub(crate) fn write_output(
        &self,
        ui: &mut Ui,
        env: &ProcessEnvironment,
    ) -> Result<(), CommandError> {
        if let Some(text) = self.render_text(env)? {
            match self.out.filter(|path| *path != Path::new("-")) {
                // Not synced to disk, as it can be exported again.
                Some(path) => durable::replace_unsynced(path, text.as_bytes())?,
                None if self.format.is_shared() => ui.transcript_text(&text)?,
                None => ui.json_text(&text)?,
            }
            return Ok(());
        }
        let Some(dir) = self.out else {
            let error = CommandError::usage("this format needs an output folder");
            return Err(error.hint("use -o DIR"));
        };
        for path in self.write_files(dir, env)? {
            ui.path_line(&path)?;
        }
        Ok(())
    }

    fn render_text(&self, env: &ProcessEnvironment) -> Result<Option<String>, CommandError> {
        let Self { transcript, pictures, .. } = *self;
        Ok(match self.format {
            ExportFormat::Weakincentives => {
                Some(weakincentives::render_lines(self.transcript, false))
            }
            ExportFormat::Json => Some(native::render_json(self.transcript)),
            ExportFormat::Jsonl => Some(native::render_lines(self.transcript)),
            ExportFormat::Md => Some(view::markdown::render_markdown(self.transcript)),
            ExportFormat::Atif => Some(view::atif::render_atif(self.transcript)),
            ExportFormat::Html => {
                let (zone, prices) = (&env.zone, &Config::load(env)?.prices()?);
                Some(Page { transcript, pictures, zone, prices, index: None }.to_html())
            }
            ExportFormat::Leslie | ExportFormat::Devflow | ExportFormat::Chibi => None,
        })
    }

    fn write_files(
        &self,
        dir: &Path,
        env: &ProcessEnvironment,
    ) -> Result<Vec<PathBuf>, CommandError> {
        let transcript = self.transcript;
        Ok(match self.format {
            ExportFormat::Leslie => {
                let mut local = transcript.clone();
                leslie::localize_times(&mut local, &env.zone);
                leslie::write_units(&local, dir, &env.clock)?
            }
            ExportFormat::Devflow => {
                vec![devflow::write_run(transcript, dir, devflow::RunFileShape::Shipped)?]
            }
            ExportFormat::Chibi => vec![chibi::write_context(transcript, dir)?],
            _ => Vec::new(),
        })
    }
}
