//! The formats of other systems, one module each: a reader and a writer.
//!
//! Each module finds its sessions below a path by content (`find`), reads one as a [`Transcript`](crate::Transcript)
//! (`read`), and writes one back (`write` or `render`). A bad record becomes a [`Problem`] of the transcript;
//! only a source that cannot be read at all is an error.

pub mod chibi;
pub mod devflow;
pub mod leslie;
mod tree;
pub mod weakincentives;

use crate::durable::FileError;
use crate::problem::Problem;

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
