//! Reads JSON Lines with line numbers. A bad line becomes a problem.

use steno_agents::decoding::json_repair;
use steno_model::durable::{FileError, OnPath};
use steno_model::entry::EntryError;
use steno_model::json::Object;
use steno_model::lines::{LineEnd, LineReader, MAX_LINE_LENGTH};
use steno_model::problem::Problem;
use steno_vault::SessionFile;

/// Converts each record of a file. Lines that JSON or `convert` rejects are added to `problems`.
pub(super) fn read_records<T>(
    source: &SessionFile,
    problems: &mut Vec<Problem>,
    convert: impl Fn(Object) -> Result<T, EntryError>,
) -> Result<Vec<T>, FileError> {
    let mut records = Vec::new();
    let mut too_long = 0;
    for line in LineReader::new(source.open_document()?) {
        let line = line.on("read", source.path())?;
        let number = line.number;
        if line.end == LineEnd::Limit && number != too_long {
            too_long = number;
            let reason = format!("longer than {MAX_LINE_LENGTH} bytes");
            problems.push(Problem::at_line(source.path(), number, reason));
        }
        if number == too_long || line.bytes.trim_ascii().is_empty() {
            continue;
        }
        let record = parse_record(&line.bytes)
            .and_then(|object| convert(object).map_err(|error| error.to_string()));
        match record {
            Ok(record) => records.push(record),
            Err(reason) => problems.push(Problem::at_line(source.path(), number, reason)),
        }
    }
    Ok(records)
}

/// Parses one line as a JSON object.
pub(super) fn parse_record(bytes: &[u8]) -> Result<Object, String> {
    std::str::from_utf8(bytes).map_err(|error| format!("not UTF-8: {error}"))?;
    json_repair::parse_lenient(bytes)
}
