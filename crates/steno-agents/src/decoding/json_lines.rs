//! Reads JSON Lines: skips blank lines, and reports overlong lines and read errors.

use std::cell::Cell;
use std::io::BufRead;
use std::path::PathBuf;

use crate::decoding::json_repair;
use steno_model::durable::FileError;
use steno_model::entry::EntryError;
use steno_model::json::{Object, Value, value_limit};
use steno_model::lines::{InputLine, LineEnd, LinePiece, LineReader};
use steno_model::problem::Problem;
use steno_vault::SessionFile;

/// Parses each line as an object and passes it to `take` with its line number. A bad line is passed as a problem.
pub(crate) fn for_each_object(
    source: &SessionFile,
    mut take: impl FnMut(Result<Object, Problem>, u64),
) -> Result<(), FileError> {
    JsonLines::open(source)?.for_each_line(|number, line| {
        let bad = |why| Problem::at_line(source.path(), number, why);
        take(line.and_then(|bytes| parse_object(bytes).map_err(bad)), number);
    });
    Ok(())
}

/// Parses one object.
pub(crate) fn parse_object(bytes: &[u8]) -> Result<Object, String> {
    match json_repair::parse_lenient(bytes)? {
        Value::Object(object) => Ok(object),
        _ => Err(EntryError::NotAnObject.to_string()),
    }
}

/// Capacity above which a buffer is not kept for reuse.
const MAX_SPARE_BUFFER: usize = 4 << 20;

thread_local! {
    /// The buffer of the last line that did not fit the input buffer, kept for reuse.
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// The non-blank lines of a file, in order.
pub(crate) struct JsonLines {
    path: PathBuf,
    lines: LineReader<Box<dyn BufRead>>,
    ended: bool,
}

impl JsonLines {
    /// Opens the lines of `source`.
    pub(crate) fn open(source: &SessionFile) -> Result<Self, FileError> {
        Ok(Self::new(source.path(), source.open()?))
    }

    /// The lines of `input`. Problems are reported for `path`.
    pub(crate) fn new(path: impl Into<PathBuf>, input: Box<dyn BufRead>) -> Self {
        Self { path: path.into(), lines: LineReader::new(input), ended: false }
    }

    /// Passes each line to `take` with its number. Most lines are passed without a copy.
    pub(crate) fn for_each_line(mut self, mut take: impl FnMut(u64, Result<&[u8], Problem>)) {
        let mut room = SPARE.take();
        loop {
            let in_place = self.lines.take_in_place(|number, bytes| {
                if !bytes.trim_ascii().is_empty() {
                    take(number, Ok(bytes));
                }
            });
            if in_place.is_some() {
                continue;
            }
            match self.read_next_into(&mut room) {
                Some(Ok(piece)) => take(piece.number, Ok(&room)),
                Some(Err(problem)) => take(problem.line.unwrap_or_default(), Err(problem)),
                None => break,
            }
        }
        if room.capacity() <= MAX_SPARE_BUFFER {
            SPARE.set(room);
        }
    }

    /// Reads the next line into `room`.
    fn read_next_into(&mut self, room: &mut Vec<u8>) -> Option<Result<LinePiece, Problem>> {
        while !self.ended {
            match self.lines.read_into(room) {
                Ok(None) => return None,
                Ok(Some(LinePiece { number, end: LineEnd::Limit, .. })) => {
                    return Some(Err(self.skip_long_line(number)));
                }
                Ok(Some(_)) if room.trim_ascii().is_empty() => {}
                Ok(Some(piece)) => {
                    let bad = |why| Problem::at_line(&self.path, piece.number, why);
                    return Some(value_limit::check_value_count(room).map_err(bad).map(|()| piece));
                }
                Err(error) => {
                    self.ended = true;
                    let reason = format!("could not read further: {error}");
                    return Some(Err(Problem::for_file(&self.path, reason)));
                }
            }
        }
        None
    }

    /// Skips the rest of an overlong line.
    fn skip_long_line(&mut self, number: u64) -> Problem {
        while let Ok(Some(piece)) = self.lines.read_line() {
            if piece.end != LineEnd::Limit {
                break;
            }
        }
        Problem::at_line(&self.path, number, "line too long to be a record")
    }
}

impl Iterator for JsonLines {
    type Item = Result<InputLine, Problem>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut bytes = Vec::new();
        let piece = self.read_next_into(&mut bytes)?;
        Some(piece.map(|piece| piece.with_bytes(bytes)))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, BufReader, Cursor, Read};

    use super::*;

    #[test]
    fn bad_lines_cost_only_themselves() {
        let bytes = b"{\"a\":1}\n\n[1]\n{\"b\":2}{\"c\":3}\n{\"d\":4}\n{\"e\"".to_vec();
        let source = SessionFile::in_memory("x", "x", bytes);
        let mut seen = Vec::new();
        for_each_object(&source, |object, line| seen.push((line, object.is_ok()))).unwrap();
        assert_eq!(seen, [(1, true), (3, false), (4, false), (5, true), (6, false)]);
    }

    #[test]
    fn reports_a_line_of_too_many_values() {
        let bytes = format!("{{\"a\":[{}1]}}\n{{}}\n", "1,".repeat(3 << 20)).into_bytes();
        let seen: Vec<_> =
            JsonLines::open(&SessionFile::in_memory("x", "x", bytes)).unwrap().collect();
        let problem = seen[0].as_ref().unwrap_err();
        assert_eq!((problem.line, problem.reason.starts_with("more than")), (Some(1), true));
        assert_eq!((seen.len(), seen[1].is_ok()), (2, true));
    }

    #[test]
    fn reports_a_read_error_once_and_stops() {
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("gone"))
            }
        }
        let input = BufReader::new(Cursor::new(b"{}\n").chain(Broken));
        let seen: Vec<_> = JsonLines::new("x", Box::new(input)).collect();
        assert_eq!(seen.len(), 2);
        assert_eq!(seen[1].as_ref().unwrap_err().reason, "could not read further: gone");
    }

    #[test]
    fn reports_an_endless_line_once() {
        let lines = LineReader::with_limit(
            Box::new(Cursor::new(b"{\"a\":1}{\"b\":2}\n{}\n")) as Box<dyn BufRead>,
            5,
        );
        let lines = JsonLines { path: "x".into(), lines, ended: false };
        let seen: Vec<_> = lines.map(|line| line.map(|line| line.number)).collect();
        assert_eq!(seen.len(), 2);
        assert_eq!(seen[0].as_ref().unwrap_err().line, Some(1));
        assert_eq!(seen[1], Ok(2));
    }
}
