//! Reads JSON Lines: skips blank lines, and reports overlong lines and read errors.

use std::cell::Cell;
use std::io::BufRead;
use std::path::PathBuf;

use crate::agent::repair;
use crate::durable::FileError;
use crate::entry::EntryError;
use crate::json::{Object, Value, bounds};
use crate::lines::{Line, LineEnd, Lines, Piece};
use crate::problem::Problem;
use steno_vault::Source;

/// Parses each line as an object and passes it to `take` with its line number. A bad line is passed as a problem.
pub(crate) fn each_object(
    source: &Source,
    mut take: impl FnMut(Result<Object, Problem>, u64),
) -> Result<(), FileError> {
    JsonLines::of(source)?.each(|number, line| {
        let bad = |why| Problem::at(source.path(), number, why);
        take(line.and_then(|bytes| object(bytes).map_err(bad)), number);
    });
    Ok(())
}

/// Parses one object.
pub(crate) fn object(bytes: &[u8]) -> Result<Object, String> {
    match repair::parse(bytes)? {
        Value::Object(object) => Ok(object),
        _ => Err(EntryError::NotAnObject.to_string()),
    }
}

/// Capacity above which a buffer is not kept for reuse.
const MOST_SPARE: usize = 4 << 20;

thread_local! {
    /// The buffer of the last line that did not fit the input buffer, kept for reuse.
    static SPARE: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// The non-blank lines of a file, in order.
pub(crate) struct JsonLines {
    path: PathBuf,
    lines: Lines<Box<dyn BufRead>>,
    ended: bool,
}

impl JsonLines {
    /// Opens the lines of `source`.
    pub(crate) fn of(source: &Source) -> Result<Self, FileError> {
        Ok(Self::new(source.path(), source.open()?))
    }

    /// The lines of `input`. Problems are reported for `path`.
    pub(crate) fn new(path: impl Into<PathBuf>, input: Box<dyn BufRead>) -> Self {
        Self { path: path.into(), lines: Lines::new(input), ended: false }
    }

    /// Passes each line to `take` with its number. Most lines are passed without a copy.
    pub(crate) fn each(mut self, mut take: impl FnMut(u64, Result<&[u8], Problem>)) {
        let mut room = SPARE.take();
        loop {
            let in_place = self.lines.in_place(|number, bytes| {
                if !bytes.trim_ascii().is_empty() {
                    take(number, Ok(bytes));
                }
            });
            if in_place.is_some() {
                continue;
            }
            match self.next_in(&mut room) {
                Some(Ok(piece)) => take(piece.number, Ok(&room)),
                Some(Err(problem)) => take(problem.line.unwrap_or_default(), Err(problem)),
                None => break,
            }
        }
        if room.capacity() <= MOST_SPARE {
            SPARE.set(room);
        }
    }

    /// Reads the next line into `room`.
    fn next_in(&mut self, room: &mut Vec<u8>) -> Option<Result<Piece, Problem>> {
        while !self.ended {
            match self.lines.read_into(room) {
                Ok(None) => return None,
                Ok(Some(Piece { number, end: LineEnd::Limit, .. })) => {
                    return Some(Err(self.pass_over(number)));
                }
                Ok(Some(_)) if room.trim_ascii().is_empty() => {}
                Ok(Some(piece)) => {
                    let bad = |why| Problem::at(&self.path, piece.number, why);
                    return Some(bounds::check(room).map_err(bad).map(|()| piece));
                }
                Err(error) => {
                    self.ended = true;
                    let reason = format!("could not read further: {error}");
                    return Some(Err(Problem::of(&self.path, reason)));
                }
            }
        }
        None
    }

    /// Skips the rest of an overlong line.
    fn pass_over(&mut self, number: u64) -> Problem {
        while let Ok(Some(piece)) = self.lines.read() {
            if piece.end != LineEnd::Limit {
                break;
            }
        }
        Problem::at(&self.path, number, "line too long to be a record")
    }
}

impl Iterator for JsonLines {
    type Item = Result<Line, Problem>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut bytes = Vec::new();
        let piece = self.next_in(&mut bytes)?;
        Some(piece.map(|piece| piece.with(bytes)))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, BufReader, Cursor, Read};

    use super::*;

    #[test]
    fn bad_lines_cost_only_themselves() {
        let bytes = b"{\"a\":1}\n\n[1]\n{\"b\":2}{\"c\":3}\n{\"d\":4}\n{\"e\"".to_vec();
        let source = Source::in_memory("x", "x", bytes);
        let mut seen = Vec::new();
        each_object(&source, |object, line| seen.push((line, object.is_ok()))).unwrap();
        assert_eq!(seen, [(1, true), (3, false), (4, false), (5, true), (6, false)]);
    }

    #[test]
    fn a_line_of_too_many_values_is_told() {
        let bytes = format!("{{\"a\":[{}1]}}\n{{}}\n", "1,".repeat(3 << 20)).into_bytes();
        let seen: Vec<_> = JsonLines::of(&Source::in_memory("x", "x", bytes)).unwrap().collect();
        let problem = seen[0].as_ref().unwrap_err();
        assert_eq!((problem.line, problem.reason.starts_with("more than")), (Some(1), true));
        assert_eq!((seen.len(), seen[1].is_ok()), (2, true));
    }

    #[test]
    fn a_read_error_is_told_once_and_ends_it() {
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
    fn an_endless_line_is_told_once() {
        let lines = Lines::with_limit(
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
