//! What could not be read, and where: `path:line: reason`.

use std::fmt;
use std::path::{Path, PathBuf};

/// One record that could not be read. Its bytes stay in the source; reading went on after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The file that holds the record.
    pub path: PathBuf,
    /// Its line, counted from 1; absent where the file has no lines or as a whole is bad.
    pub line: Option<u64>,
    /// Why it could not be read.
    pub reason: String,
}

impl Problem {
    /// A bad record at a line of a file.
    pub fn at(path: &Path, line: u64, reason: impl fmt::Display) -> Self {
        Self { path: path.to_owned(), line: Some(line), reason: reason.to_string() }
    }

    /// Something wrong with a file as a whole.
    pub fn of(path: &Path, reason: impl fmt::Display) -> Self {
        Self { path: path.to_owned(), line: None, reason: reason.to_string() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.path.display())?;
        if let Some(line) = self.line {
            write!(f, "{line}:")?;
        }
        write!(f, " {}", self.reason)
    }
}

/// The first line of `serde_json`'s message, without a line number that would always be 1.
pub(crate) fn json_reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let reason = match text.rfind(" at line ") {
        Some(at) => &text[..at],
        None => &text,
    };
    format!("not JSON: {reason} (column {})", error.column())
}
