//! The formats of other systems, one module each: a reader and a writer.
//!
//! Each module finds its sessions below a path by content (`find`), reads one as a [`Transcript`] (`read`), and
//! writes one back (`write` or `render`). A bad record becomes a [`Problem`] of the transcript; only a source that
//! cannot be read at all is an error.

pub mod chibi;
pub mod devflow;
pub mod leslie;
pub mod native;
pub mod shape;
mod tree;
pub mod weakincentives;

use std::path::Path;

use crate::durable::FileError;
use crate::problem::Problem;
use crate::session::Transcript;
use crate::source::Bundle;

/// A format that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Text files, one per unit.
    Leslie,
    /// Run folders.
    Devflow,
    /// Contexts.
    Chibi,
    /// Slices of `TranscriptEntry`.
    Weakincentives,
    /// Our own JSON, and JSON Lines of any known shape.
    Native,
}

impl Format {
    /// Every format; one that knows its files better comes before one that takes any file of its shape.
    pub const ALL: [Format; 5] =
        [Format::Leslie, Format::Devflow, Format::Chibi, Format::Weakincentives, Format::Native];

    /// The format of what `agent` wrote.
    pub fn of_agent(agent: &str) -> Self {
        match agent {
            leslie::AGENT => Format::Leslie,
            devflow::AGENT => Format::Devflow,
            chibi::AGENT => Format::Chibi,
            weakincentives::AGENT => Format::Weakincentives,
            _ => Format::Native,
        }
    }

    /// The sessions of this format at or below `path`.
    pub fn find(self, path: &Path) -> Result<Vec<Bundle>, FileError> {
        match self {
            Format::Leslie => leslie::find(path),
            Format::Devflow => devflow::find(path),
            Format::Chibi => chibi::find(path),
            Format::Weakincentives => weakincentives::find(path),
            Format::Native => native::find(path),
        }
    }

    /// Reads one session.
    pub fn read(self, bundle: &Bundle) -> Result<Transcript, FormatError> {
        match self {
            Format::Leslie => leslie::read(bundle),
            Format::Devflow => devflow::read(bundle),
            Format::Chibi => chibi::read(bundle),
            Format::Weakincentives => weakincentives::read(bundle),
            Format::Native => native::read(bundle),
        }
    }
}

/// A session that was found in files.
#[derive(Clone, Debug)]
pub struct Found {
    /// The format of its files.
    pub format: Format,
    /// Its files.
    pub bundle: Bundle,
}

impl Found {
    /// Reads it.
    pub fn read(&self) -> Result<Transcript, FormatError> {
        self.format.read(&self.bundle)
    }
}

/// Every session of any format at or below `path`. No file belongs to two sessions.
pub fn find(path: &Path) -> Result<Vec<Found>, FileError> {
    let mut found: Vec<Found> = Vec::new();
    for format in Format::ALL {
        for bundle in format.find(path)? {
            let taken = bundle.sources.iter().any(|source| {
                let mut known = found.iter().flat_map(|found| &found.bundle.sources);
                known.any(|known| known.path() == source.path())
            });
            if !taken {
                found.push(Found { format, bundle });
            }
        }
    }
    Ok(found)
}

/// A source that could not be read, or a target that could not be written, as a whole.
#[derive(Debug, thiserror::Error)]
pub enum FormatError {
    /// The file system said no.
    #[error(transparent)]
    File(#[from] FileError),
    /// The content is not of this format.
    #[error("{0}")]
    Invalid(Problem),
}
