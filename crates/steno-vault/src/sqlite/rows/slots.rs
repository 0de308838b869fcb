//! The slots of a row log: number and hash of the last line of each.

use std::collections::HashMap;
use std::io::{self, BufRead};
use std::path::Path;

use serde::Deserialize;
use serde_json::value::RawValue;

use steno_model::lines::{LineEnd, Lines};
use steno_model::problem::{Problem, json_reason};

/// Bytes per read of a line.
const PIECE: usize = 4 << 20;

/// The prefix of a row's slot.
const ROW: &[u8] = b"[\"row\",";

/// The filled slots of a row log.
#[derive(Debug, Default)]
pub struct Slots {
    filled: HashMap<Vec<u8>, Filled>,
}

/// The last line of a slot.
#[derive(Debug)]
struct Filled {
    line: u64,
    sum: blake3::Hash,
    is_seen: bool,
    /// The line itself, unless it is a row.
    text: Option<Vec<u8>>,
}

#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow)]
    of: &'a RawValue,
    #[serde(default)]
    gone: bool,
}

impl Slots {
    /// Reads a log. A bad line is reported and skipped.
    pub fn read(
        input: impl BufRead,
        path: &Path,
        problem: &mut dyn FnMut(Problem),
    ) -> io::Result<Self> {
        let mut slots = Self::default();
        each_beginning(input, |line| {
            let number = line.number;
            match slot_of(&line) {
                Ok((slot, true)) => drop(slots.filled.remove(&slot)),
                Ok((slot, false)) => {
                    let text = (!slot.starts_with(ROW)).then_some(line.bytes);
                    let filled = Filled { line: number, sum: line.hash, is_seen: false, text };
                    slots.filled.insert(slot, filled);
                }
                Err(reason) => problem(Problem::at(path, number, reason)),
            }
            Ok(())
        })?;
        Ok(slots)
    }

    /// All current lines except rows, each with its number, in order.
    pub fn others(&self) -> Vec<(u64, &[u8])> {
        let lines = self.filled.values();
        let mut lines: Vec<_> =
            lines.filter_map(|filled| Some((filled.line, filled.text.as_deref()?))).collect();
        lines.sort_unstable();
        lines
    }

    /// Whether a line is the current one of a row's slot.
    fn holds_row(&self, number: u64, slot: &[u8]) -> bool {
        let filled = self.filled.get(slot);
        filled.is_some_and(|filled| filled.line == number && filled.text.is_none())
    }

    /// Passes the current lines of rows to `take`. For a line longer than `limit` bytes, only its number.
    pub fn each_row(
        &self,
        input: impl BufRead,
        limit: usize,
        mut take: impl FnMut(u64, Option<Vec<u8>>),
    ) -> io::Result<()> {
        let mut lines = Lines::with_limit(input, PIECE);
        while let Some(mut line) = lines.read()? {
            let slot = slot_in(&line.bytes, line.end != LineEnd::Limit);
            let is_wanted = slot.is_ok_and(|(slot, _)| self.holds_row(line.number, slot));
            let (mut bytes, mut length) = (Vec::new(), 0);
            loop {
                length += line.bytes.len();
                if is_wanted && length <= limit {
                    bytes.append(&mut line.bytes);
                }
                if line.end != LineEnd::Limit {
                    break;
                }
                let Some(next) = lines.read()? else { break };
                line = next;
            }
            if is_wanted && line.end == LineEnd::Newline {
                take(line.number, Some(bytes).filter(|_| length <= limit));
            }
        }
        Ok(())
    }

    /// Marks a slot as still filled. Returns whether the line with this hash is new.
    pub fn is_news(&mut self, slot: &[u8], hash: blake3::Hash) -> bool {
        match self.filled.get_mut(slot) {
            Some(filled) => {
                filled.is_seen = true;
                filled.sum != hash
            }
            None => true,
        }
    }

    /// Whether a filled row slot was never passed to [`Slots::is_news`].
    pub fn lacks_rows(&self) -> bool {
        self.filled.values().any(|filled| !filled.is_seen && filled.text.is_none())
    }

    /// Lines that empty the slots never passed to [`Slots::is_news`], in the order of the lines they replace.
    pub fn gone(self) -> Vec<Vec<u8>> {
        let mut gone: Vec<_> = self.filled.into_iter().filter(|(_, f)| !f.is_seen).collect();
        gone.sort_by_key(|(_, filled)| filled.line);
        let line = |slot: Vec<u8>| [b"{\"of\":", slot.as_slice(), b",\"gone\":true}"].concat();
        gone.into_iter().map(|(slot, _)| line(slot)).collect()
    }
}

/// A line of a log. Of a long line, only the start is held.
struct LineBeginning {
    number: u64,
    bytes: Vec<u8>,
    is_whole: bool,
    /// The hash of the whole line.
    hash: blake3::Hash,
}

/// Passes each line of a log to `take`. An unfinished last line is skipped.
fn each_beginning(
    input: impl BufRead,
    mut take: impl FnMut(LineBeginning) -> io::Result<()>,
) -> io::Result<()> {
    let mut lines = Lines::with_limit(input, PIECE);
    while let Some(first) = lines.read()? {
        let (number, mut end) = (first.number, first.end);
        let is_whole = end != LineEnd::Limit;
        let mut hasher = blake3::Hasher::new();
        hasher.update(&first.bytes);
        while end == LineEnd::Limit {
            let Some(next) = lines.read()? else { break };
            hasher.update(&next.bytes);
            end = next.end;
        }
        if end == LineEnd::Newline {
            take(LineBeginning { number, bytes: first.bytes, is_whole, hash: hasher.finalize() })?;
        }
    }
    Ok(())
}

/// Passes the hash of each line of a log to `take`.
pub fn each_hash(input: impl BufRead, mut take: impl FnMut(blake3::Hash)) -> io::Result<()> {
    each_beginning(input, |line| {
        take(line.hash);
        Ok(())
    })
}

fn slot_of(line: &LineBeginning) -> Result<(Vec<u8>, bool), String> {
    slot_in(&line.bytes, line.is_whole).map(|(slot, gone)| (slot.to_vec(), gone))
}

/// Parses the slot of a line, and whether the line empties it. A truncated line must be a row with a long
/// value.
fn slot_in(bytes: &[u8], is_whole: bool) -> Result<(&[u8], bool), String> {
    if is_whole {
        let head: Head<'_> = serde_json::from_slice(bytes).map_err(|error| json_reason(&error))?;
        return Ok((head.of.get().as_bytes(), head.gone));
    }
    let rest = bytes.strip_prefix(b"{\"of\":").ok_or("a long line that is not a row")?;
    let mut values = serde_json::Deserializer::from_slice(rest).into_iter::<&RawValue>();
    match values.next() {
        Some(Ok(slot)) if slot.get().as_bytes().starts_with(ROW) => {
            Ok((slot.get().as_bytes(), false))
        }
        Some(Err(error)) => Err(json_reason(&error)),
        _ => Err("a long line that is not a row".to_owned()),
    }
}
