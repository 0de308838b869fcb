//! What a transcript can be written as, and where.

use std::path::{Path, PathBuf};

use jiff::tz::TimeZone;
use steno_core::durable;
use steno_core::format::{chibi, devflow, leslie, native, weakincentives};
use steno_core::view::pictures::Pictures;
use steno_core::{Transcript, view};
use steno_web::export::SessionExport as Page;

use crate::error::CommandError;
use crate::scene::Scene;
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
    /// A page in one file, to read in a browser.
    Html,
    /// A trajectory of the Agent Trajectory Interchange Format.
    Atif,
}

impl Target {
    /// Whether it is made for people to share, so that secrets should not stand in it.
    pub(crate) fn is_shared(self) -> bool {
        matches!(self, Target::Md | Target::Html)
    }

    /// How the name of a file of it ends; nothing where it is a folder.
    pub(crate) fn extension(self) -> Option<&'static str> {
        match self {
            Target::Weakincentives | Target::Jsonl => Some("jsonl"),
            Target::Json | Target::Atif => Some("json"),
            Target::Md => Some("md"),
            Target::Html => Some("html"),
            Target::Leslie | Target::Devflow | Target::Chibi => None,
        }
    }
}

/// A transcript on its way out.
pub(crate) struct Export<'a> {
    pub(crate) transcript: &'a Transcript,
    pub(crate) pictures: &'a Pictures,
    pub(crate) target: Target,
    pub(crate) out: Option<&'a Path>,
}

impl Export<'_> {
    /// Writes the transcript; into a file or to stdout as text, into a folder as files.
    pub(crate) fn write(&self, ui: &mut Ui, scene: &Scene) -> Result<(), CommandError> {
        if let Some(text) = self.text(&scene.zone) {
            match self.out.filter(|path| *path != Path::new("-")) {
                // It can be made again: nobody has to wait for the disk.
                Some(path) => durable::replace_unsynced(path, text.as_bytes())?,
                None if self.target.is_shared() => ui.transcript_text(&text)?,
                None => ui.json_text(&text)?,
            }
            return Ok(());
        }
        let Some(dir) = self.out else {
            let error = CommandError::usage("this format is written into a folder");
            return Err(error.hint("name it with -o DIR"));
        };
        for path in self.files(dir, scene)? {
            ui.path_line(&path)?;
        }
        Ok(())
    }

    fn text(&self, zone: &TimeZone) -> Option<String> {
        let Self { transcript, pictures, .. } = *self;
        match self.target {
            Target::Weakincentives => Some(weakincentives::render(self.transcript, false)),
            Target::Json => Some(native::render_json(self.transcript)),
            Target::Jsonl => Some(native::render_lines(self.transcript)),
            Target::Md => Some(view::markdown::render(self.transcript)),
            Target::Atif => Some(view::atif::render(self.transcript)),
            Target::Html => Some(Page { transcript, pictures, zone, index: None }.to_html()),
            Target::Leslie | Target::Devflow | Target::Chibi => None,
        }
    }

    fn files(&self, dir: &Path, scene: &Scene) -> Result<Vec<PathBuf>, CommandError> {
        let transcript = self.transcript;
        Ok(match self.target {
            Target::Leslie => {
                let mut local = transcript.clone();
                leslie::localize(&mut local, &scene.zone);
                leslie::write(&local, dir, &scene.clock)?
            }
            Target::Devflow => vec![devflow::write(transcript, dir, devflow::Shape::Shipped)?],
            Target::Chibi => vec![chibi::write(transcript, dir)?],
            _ => Vec::new(),
        })
    }
}
