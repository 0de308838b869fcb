//! What a transcript can be written as, and where.

use std::path::{Path, PathBuf};

use steno_core::durable;
use steno_core::format::{chibi, devflow, leslie, native, weakincentives};
use steno_core::{Clock, Transcript, view};

use crate::error::CommandError;
use crate::ui::Ui;

/// A format that can be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Target {
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
    /// Our entries, one to a line.
    Jsonl,
    /// Markdown.
    Md,
}

/// A transcript on its way out.
pub(crate) struct Export<'a> {
    pub(crate) transcript: &'a Transcript,
    pub(crate) target: Target,
    pub(crate) out: Option<&'a Path>,
}

impl Export<'_> {
    /// Writes the transcript; into a file or to stdout as text, into a folder as files.
    pub(crate) fn write(&self, ui: &mut Ui, clock: &Clock) -> Result<(), CommandError> {
        if let Some(text) = self.text() {
            match self.out.filter(|path| *path != Path::new("-")) {
                Some(path) => durable::write_atomic(path, text.as_bytes())?,
                None => ui.out().write_all(text.as_bytes())?,
            }
            return Ok(());
        }
        let Some(dir) = self.out else {
            let error = CommandError::usage("this format is written into a folder");
            return Err(error.hint("name it with -o DIR"));
        };
        for path in self.files(dir, clock)? {
            writeln!(ui.out(), "{}", path.display())?;
        }
        Ok(())
    }

    fn text(&self) -> Option<String> {
        match self.target {
            Target::Weakincentives => Some(weakincentives::render(self.transcript, false)),
            Target::Json => Some(native::render_json(self.transcript)),
            Target::Jsonl => Some(native::render_lines(self.transcript)),
            Target::Md => Some(view::markdown::render(self.transcript)),
            Target::Leslie | Target::Devflow | Target::Chibi => None,
        }
    }

    fn files(&self, dir: &Path, clock: &Clock) -> Result<Vec<PathBuf>, CommandError> {
        let transcript = self.transcript;
        Ok(match self.target {
            Target::Leslie => leslie::write(transcript, dir, clock)?,
            Target::Devflow => vec![devflow::write(transcript, dir, devflow::Shape::Shipped)?],
            Target::Chibi => vec![chibi::write(transcript, dir)?],
            _ => Vec::new(),
        })
    }
}
