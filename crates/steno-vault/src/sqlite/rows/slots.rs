//! The slots of a row log: number and hash of the last line of each.

use std::collections::HashMap;
use std::io::{self, BufRead};
use std::path::Path;

use serde::Deserialize;
use serde_json::value::RawValue;

use steno_model::lines::{LineEnd, LineReader};
use steno_model::problem::{Problem, json_error_reason};

/// Bytes per read of a line.
const PIECE_BYTES: usize = 4 << 20;

/// The prefix of a row's slot.
const ROW_SLOT_PREFIX: &[u8] = b"[\"row\",";

/// The filled slots of a row log.
#[derive(Debug, Default)]
pub struct RowLogSlots {
    filled: HashMap<Vec<u8>, FilledSlot>,
}

/// The last line of a slot.
#[derive(Debug)]
struct FilledSlot {
    line: u64,
    hash: blake3::Hash,
    is_seen: bool,
    /// The line itself, unless it is a row.
    text: Option<Vec<u8>>,
}

#[derive(Deserialize)]
struct SlotHead<'a> {
    #[serde(borrow)]
    of: &'a RawValue,
    #[serde(default)]
    gone: bool,
}

impl RowLogSlots {
    /// Reads a log. A bad line is reported and skipped.
    pub fn read(
        input: impl BufRead,
        path: &Path,
        problem: &mut dyn FnMut(Problem),
    ) -> io::Result<Self> {
        let mut slots = Self::default();
        for_each_line_start(input, |line| {
            let number = line.number;
            match owned_slot(&line) {
                Ok((slot, true)) => drop(slots.filled.remove(&slot)),
                Ok((slot, false)) => {
                    let text = (!slot.starts_with(ROW_SLOT_PREFIX)).then_some(line.bytes);
                    let filled = FilledSlot { line: number, hash: line.hash, is_seen: false, text };
                    slots.filled.insert(slot, filled);
                }
                Err(reason) => problem(Problem::at_line(path, number, reason)),
            }
            Ok(())
        })?;
        Ok(slots)
    }

    /// All current lines except rows, each with its number, in order.
    pub fn schema_lines(&self) -> Vec<(u64, &[u8])> {
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
    pub fn for_each_row(
        &self,
        input: impl BufRead,
        limit: usize,
        mut take: impl FnMut(u64, Option<Vec<u8>>),
    ) -> io::Result<()> {
        let mut lines = LineReader::with_limit(input, PIECE_BYTES);
        while let Some(mut line) = lines.read_line()? {
            let slot = parse_slot(&line.bytes, line.end != LineEnd::Limit);
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
                let Some(next) = lines.read_line()? else { break };
                line = next;
            }
            if is_wanted && line.end == LineEnd::Newline {
                take(line.number, Some(bytes).filter(|_| length <= limit));
            }
        }
        Ok(())
    }

    /// Marks a slot as still filled. Returns whether the line with this hash is new.
    pub fn note_line(&mut self, slot: &[u8], hash: blake3::Hash) -> bool {
        match self.filled.get_mut(slot) {
            Some(filled) => {
                filled.is_seen = true;
                filled.hash != hash
            }
            None => true,
        }
    }

    /// Whether a filled row slot was never passed to [`RowLogSlots::note_line`].
    pub fn has_unseen_rows(&self) -> bool {
        self.filled.values().any(|filled| !filled.is_seen && filled.text.is_none())
    }

    /// Lines that empty the slots never passed to [`RowLogSlots::note_line`], in the order of the lines they replace.
    pub fn removal_lines(self) -> Vec<Vec<u8>> {
        let mut gone: Vec<_> = self.filled.into_iter().filter(|(_, f)| !f.is_seen).collect();
        gone.sort_by_key(|(_, filled)| filled.line);
        let line = |slot: Vec<u8>| [b"{\"of\":", slot.as_slice(), b",\"gone\":true}"].concat();
        gone.into_iter().map(|(slot, _)| line(slot)).collect()
    }
}

/// A line of a log. Of a long line, only the start is held.
struct LogLineStart {
    number: u64,
    bytes: Vec<u8>,
    is_whole: bool,
    /// The hash of the whole line.
    hash: blake3::Hash,
}

/// Passes each line of a log to `take`. An unfinished last line is skipped.
fn for_each_line_start(
    input: impl BufRead,
    mut take: impl FnMut(LogLineStart) -> io::Result<()>,
) -> io::Result<()> {
    let mut lines = LineReader::with_limit(input, PIECE_BYTES);
    while let Some(first) = lines.read_line()? {
        let (number, mut end) = (first.number, first.end);
        let is_whole = end != LineEnd::Limit;
        let mut hasher = blake3::Hasher::new();
        hasher.update(&first.bytes);
        while end == LineEnd::Limit {
            let Some(next) = lines.read_line()? else { break };
            hasher.update(&next.bytes);
            end = next.end;
        }
        if end == LineEnd::Newline {
            take(LogLineStart { number, bytes: first.bytes, is_whole, hash: hasher.finalize() })?;
        }
    }
    Ok(())
}

/// Passes the hash of each line of a log to `take`.
pub fn for_each_line_hash(
    input: impl BufRead,
    mut take: impl FnMut(blake3::Hash),
) -> io::Result<()> {
    for_each_line_start(input, |line| {
        take(line.hash);
        Ok(())
    })
}

fn owned_slot(line: &LogLineStart) -> Result<(Vec<u8>, bool), String> {
    parse_slot(&line.bytes, line.is_whole).map(|(slot, gone)| (slot.to_vec(), gone))
}

/// Parses the slot of a line, and whether the line empties it. A truncated line must be a row with a long
/// value.
fn parse_slot(bytes: &[u8], is_whole: bool) -> Result<(&[u8], bool), String> {
    if is_whole {
        let head: SlotHead<'_> =
            serde_json::from_slice(bytes).map_err(|error| json_error_reason(&error))?;
        return Ok((head.of.get().as_bytes(), head.gone));
    }
    let rest = bytes.strip_prefix(b"{\"of\":").ok_or("a long line that is not a row")?;
    let mut values = serde_json::Deserializer::from_slice(rest).into_iter::<&RawValue>();
    match values.next() {
        Some(Ok(slot)) if slot.get().as_bytes().starts_with(ROW_SLOT_PREFIX) => {
            Ok((slot.get().as_bytes(), false))
        }
        Some(Err(error)) => Err(json_error_reason(&error)),
        _ => Err("a long line that is not a row".to_owned()),
    }
}
