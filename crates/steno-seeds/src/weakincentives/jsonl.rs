//! Reads JSON Lines: one object per line. Blank lines are skipped, and a bad line becomes a problem.

use std::fmt::Display;
use std::io::BufRead;
use std::path::Path;

use steno_agents::decoding::json_repair;
use steno_model::durable::{FileError, OnPath};
use steno_model::entry::EntryError;
use steno_model::json::{JsonStyle, Object, Value};
use steno_model::lines::{InputLine, LineEnd, LineReader, MAX_LINE_LENGTH};
use steno_model::problem::{Problem, ProblemList};

/// Calls `take` for each object, and returns parse errors and rejected objects as problems.
pub(super) fn read_objects<E: Display>(
    input: impl BufRead,
    path: &Path,
    mut take: impl FnMut(Object) -> Result<(), E>,
) -> Result<ProblemList, FileError> {
    let mut problems = ProblemList::default();
    let mut too_long = None;
    for line in LineReader::new(input) {
        let line = line.on("read", path)?;
        if too_long == Some(line.number) {
            continue;
        }
        if line.end == LineEnd::Limit {
            too_long = Some(line.number);
        }
        let taken = match parse_object_line(&line) {
            None => continue,
            Some(Ok(object)) => take(object).map_err(|error| error.to_string()),
            Some(Err(reason)) => Err(reason),
        };
        if let Err(reason) = taken {
            problems.push(Problem::at_line(path, line.number, reason));
        }
    }
    Ok(problems)
}

/// Renders objects as Python does, one per line.
pub(super) fn render_objects<'a>(objects: impl IntoIterator<Item = &'a Object>) -> String {
    let mut text = String::new();
    for object in objects {
        text.push_str(&JsonStyle::PYTHON_COMPACT.print(object));
        text.push('\n');
    }
    text
}

/// Parses the object of a line; `None` for a blank line.
pub(super) fn parse_object_line(line: &InputLine) -> Option<Result<Object, String>> {
    if line.end == LineEnd::Limit {
        return Some(Err(format!("line longer than {MAX_LINE_LENGTH} bytes")));
    }
    if line.bytes.trim_ascii().is_empty() {
        return None;
    }
    Some(json_repair::parse_lenient(&line.bytes).and_then(|value| match value {
        Value::Object(object) => Ok(object),
        _ => Err(EntryError::NotAnObject.to_string()),
    }))
}
