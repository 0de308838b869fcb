//! Export formats, and writing a transcript in one of them.

use std::path::{Path, PathBuf};

use clap::ValueEnum;
use clap::builder::PossibleValue;
use steno_agents::interchange::atif::render_atif;
use steno_model::{Transcript, durable};
use steno_seeds::{chibi, devflow, leslie, weakincentives};
use steno_store::format::native;
use steno_store::view::markdown::render_markdown;
use steno_store::view::pictures::SessionPictures;
use steno_web::export::SessionExport as Page;

use crate::config::Config;
use crate::error::CommandError;
use crate::process_environment::ProcessEnvironment;
use crate::ui::Ui;

/// An export format: one row of [`EXPORT_FORMATS`].
#[derive(Debug)]
pub(crate) struct ExportFormat {
    /// Name for `--format`.
    pub(crate) name: &'static str,
    /// Help for the name.
    pub(crate) help: &'static str,
    /// Whether the format is made for sharing, and thus redacted by default.
    pub(crate) is_shared: bool,
    /// Whether the format is text for people, not JSON.
    is_prose: bool,
    writer: ExportWriter,
}

/// Renders a transcript as text.
type RenderText = fn(&TranscriptExport<'_>, &ProcessEnvironment) -> Result<String, CommandError>;

/// How a transcript is written.
#[derive(Debug)]
enum ExportWriter {
    /// As one text, in a file with this extension.
    Text { extension: &'static str, render: RenderText },
    /// As files in a folder, whose paths are returned.
    Folder(
        fn(&TranscriptExport<'_>, &Path, &ProcessEnvironment) -> Result<Vec<PathBuf>, CommandError>,
    ),
    /// As one table over all sessions; [`crate::commands::export`] does that.
    Tables,
}

/// All export formats, in the order of the help.
pub(crate) const EXPORT_FORMATS: &[&ExportFormat] =
    &[&LESLIE, &DEVFLOW, &WEAKINCENTIVES, &CHIBI, &JSON, &JSONL, &MARKDOWN, &HTML, &ATIF, &PARQUET];

const LESLIE: ExportFormat = ExportFormat {
    name: "leslie",
    help: "A folder of text files, one per unit",
    is_shared: false,
    is_prose: false,
    writer: ExportWriter::Folder(|export, dir, env| {
        let mut local = export.transcript.clone();
        leslie::localize_times(&mut local, &env.zone);
        Ok(leslie::write_units(&local, dir, &env.clock)?)
    }),
};

const DEVFLOW: ExportFormat = ExportFormat {
    name: "devflow",
    help: "A folder with `runs/<id>/transcript.json`",
    is_shared: false,
    is_prose: false,
    writer: ExportWriter::Folder(|export, dir, _| {
        Ok(vec![devflow::write_run(export.transcript, dir, devflow::RunFileShape::Shipped)?])
    }),
};

const WEAKINCENTIVES: ExportFormat = ExportFormat {
    name: "weakincentives",
    help: "JSON Lines of `TranscriptEntry`",
    is_shared: false,
    is_prose: false,
    writer: ExportWriter::Text {
        extension: "jsonl",
        render: |export, _| Ok(weakincentives::render_lines(export.transcript, false)),
    },
};

const CHIBI: ExportFormat = ExportFormat {
    name: "chibi",
    help: "A folder with `contexts/<name>/context.jsonl`",
    is_shared: false,
    is_prose: false,
    writer: ExportWriter::Folder(|export, dir, _| {
        Ok(vec![chibi::write_context(export.transcript, dir)?])
    }),
};

const JSON: ExportFormat = ExportFormat {
    name: "json",
    help: "One JSON document: session and entries",
    is_shared: false,
    is_prose: false,
    writer: ExportWriter::Text {
        extension: "json",
        render: |export, _| Ok(native::render_json(export.transcript)),
    },
};

const JSONL: ExportFormat = ExportFormat {
    name: "jsonl",
    help: "Steno's entries, one per line",
    is_shared: false,
    is_prose: false,
    writer: ExportWriter::Text {
        extension: "jsonl",
        render: |export, _| Ok(native::render_lines(export.transcript)),
    },
};

pub(crate) const MARKDOWN: ExportFormat = ExportFormat {
    name: "md",
    help: "Markdown, for sharing",
    is_shared: true,
    is_prose: true,
    writer: ExportWriter::Text {
        extension: "md",
        render: |export, _| Ok(render_markdown(export.transcript)),
    },
};

pub(crate) const HTML: ExportFormat = ExportFormat {
    name: "html",
    help: "A page in one file for a browser, for sharing",
    is_shared: true,
    is_prose: true,
    writer: ExportWriter::Text {
        extension: "html",
        render: |export, env| {
            let TranscriptExport { transcript, pictures, .. } = *export;
            let (zone, prices) = (&env.zone, &Config::load(env)?.prices()?);
            Ok(Page { transcript, pictures, zone, prices, index: None }.to_html())
        },
    },
};

const ATIF: ExportFormat = ExportFormat {
    name: "atif",
    help: "A trajectory in the Agent Trajectory Interchange Format, for sharing",
    is_shared: true,
    is_prose: false,
    writer: ExportWriter::Text {
        extension: "json",
        render: |export, _| Ok(render_atif(export.transcript)),
    },
};

/// Written by `export/tables.rs` if the feature `parquet` is on.
pub(crate) const PARQUET: ExportFormat = ExportFormat {
    name: "parquet",
    help: "Tables of all entries and of what each API message cost, for DuckDB or Spark",
    is_shared: true,
    is_prose: false,
    writer: ExportWriter::Tables,
};

impl ExportFormat {
    /// Whether a session is one document, so that two of them in one file are none. Lines and Markdown can be appended.
    pub(crate) fn is_document(&self) -> bool {
        [&JSON, &HTML, &ATIF].contains(&self)
    }

    /// Returns the file extension; `None` for formats written to a folder.
    pub(crate) fn extension(&self) -> Option<&'static str> {
        match self.writer {
            ExportWriter::Text { extension, .. } => Some(extension),
            ExportWriter::Folder(_) | ExportWriter::Tables => None,
        }
    }
}

impl PartialEq for ExportFormat {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl ValueEnum for &'static ExportFormat {
    fn value_variants<'a>() -> &'a [Self] {
        EXPORT_FORMATS
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.name).help(self.help))
    }
}

/// A transcript to export.
pub(crate) struct TranscriptExport<'a> {
    pub(crate) transcript: &'a Transcript,
    pub(crate) pictures: &'a SessionPictures,
    pub(crate) format: &'static ExportFormat,
    pub(crate) out: Option<&'a Path>,
}

impl TranscriptExport<'_> {
    /// Writes the transcript: text to a file or standard output, other formats to a folder.
    pub(crate) fn write_output(
        &self,
        ui: &mut Ui,
        env: &ProcessEnvironment,
    ) -> Result<(), CommandError> {
        match self.format.writer {
            ExportWriter::Text { render, .. } => self.write_text(ui, &render(self, env)?),
            ExportWriter::Folder(write) => {
                let Some(dir) = self.out else {
                    let error = CommandError::usage("this format needs an output folder");
                    return Err(error.hint("use -o DIR"));
                };
                for path in write(self, dir, env)? {
                    ui.path_line(&path)?;
                }
                Ok(())
            }
            ExportWriter::Tables => {
                let error = CommandError::usage(format!("{} needs the store", self.format.name));
                Err(error.hint("import the session, then use `steno export`"))
            }
        }
    }

    fn write_text(&self, ui: &mut Ui, text: &str) -> Result<(), CommandError> {
        match self.out.filter(|path| *path != Path::new("-")) {
            // Not synced to disk, as it can be exported again.
            Some(path) => durable::replace_unsynced(path, text.as_bytes())?,
            None if self.format.is_prose => ui.transcript_text(text)?,
            None => ui.json_text(text)?,
        }
        Ok(())
    }
}
