//! Reads JSON Lines with line numbers. A bad line becomes a problem.

use crate::agent::repair;
use crate::durable::{FileError, OnPath};
use crate::entry::EntryError;
use crate::json::Object;
use crate::lines::{LINE_LIMIT, LineEnd, Lines};
use crate::problem::Problem;
use steno_vault::Source;

/// Converts each record of a file. Lines that JSON or `convert` rejects are added to `problems`.
pub(super) fn records<T>(
    source: &Source,
    problems: &mut Vec<Problem>,
    convert: impl Fn(Object) -> Result<T, EntryError>,
) -> Result<Vec<T>, FileError> {
    let mut records = Vec::new();
    let mut too_long = 0;
    for line in Lines::new(source.open_document()?) {
        let line = line.on("read", source.path())?;
        let number = line.number;
        if line.end == LineEnd::Limit && number != too_long {
            too_long = number;
            let reason = format!("longer than {LINE_LIMIT} bytes");
            problems.push(Problem::at(source.path(), number, reason));
        }
        if number == too_long || line.bytes.trim_ascii().is_empty() {
            continue;
        }
        let record = parse(&line.bytes)
            .and_then(|object| convert(object).map_err(|error| error.to_string()));
        match record {
            Ok(record) => records.push(record),
            Err(reason) => problems.push(Problem::at(source.path(), number, reason)),
        }
    }
    Ok(records)
}

/// Parses one line as a JSON object.
pub(super) fn parse(bytes: &[u8]) -> Result<Object, String> {
    std::str::from_utf8(bytes).map_err(|error| format!("not UTF-8: {error}"))?;
    repair::parse(bytes)
}
