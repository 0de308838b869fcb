//! swe_agent: not read yet.

use std::path::Path;

use crate::durable::FileError;
use crate::format::{Emit, FormatError, Reader};
use crate::problem::Problem;
use crate::session::Session;
use crate::source::Bundle;

/// The agent's name.
pub const AGENT: &str = "swe-agent";

/// Finds and reads its sessions.
pub const READER: Reader = Reader { agent: AGENT, find, read };

fn find(_path: &Path) -> Result<Vec<Bundle>, FileError> {
    Ok(Vec::new())
}

fn read(bundle: &Bundle, _emit: Emit<'_>) -> Result<Session, FormatError> {
    Err(FormatError::Invalid(Problem::of(&bundle.root, "not read yet")))
}
