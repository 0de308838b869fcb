//! The lines of a file of records: blank ones left out, endless ones and read errors reported.

use std::io::BufRead;
use std::path::PathBuf;

use crate::lines::{Line, LineEnd, Lines};
use crate::problem::Problem;

/// Lines that hold something, in order.
pub(crate) struct JsonLines {
    path: PathBuf,
    lines: Lines<Box<dyn BufRead>>,
    ended: bool,
}

impl JsonLines {
    /// Lines of `input`; problems are reported under `path`.
    pub(crate) fn new(path: impl Into<PathBuf>, input: Box<dyn BufRead>) -> Self {
        Self { path: path.into(), lines: Lines::new(input), ended: false }
    }

    /// Passes over what is left of a line that grew too long.
    fn pass_over(&mut self, line: &Line) -> Problem {
        while let Ok(Some(piece)) = self.lines.read() {
            if piece.end != LineEnd::Limit {
                break;
            }
        }
        Problem::at(&self.path, line.number, "line is too long")
    }
}

impl Iterator for JsonLines {
    type Item = Result<Line, Problem>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.ended {
            match self.lines.read() {
                Ok(None) => return None,
                Ok(Some(line)) if line.end == LineEnd::Limit => {
                    return Some(Err(self.pass_over(&line)));
                }
                Ok(Some(line)) if line.bytes.trim_ascii().is_empty() => {}
                Ok(Some(line)) => return Some(Ok(line)),
                Err(error) => {
                    self.ended = true;
                    return Some(Err(Problem::of(
                        &self.path,
                        format!("could not read on: {error}"),
                    )));
                }
            }
        }
        None
    }
}
