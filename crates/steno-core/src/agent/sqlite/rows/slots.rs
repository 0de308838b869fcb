//! What the slots of a log hold: for each the number and the sum of its last line.

use std::collections::HashMap;
use std::io::{self, BufRead};
use std::path::Path;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::lines::{Line, LineEnd, Lines};
use crate::problem::{Problem, json_reason};

/// No row can be longer: it is twice what SQLite allows.
const LIMIT: usize = 2 << 30;

/// How the slot of a row begins.
const ROW: &[u8] = b"[\"row\",";

/// The slots of a log that are not empty.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    filled: HashMap<Vec<u8>, Filled>,
}

/// The last line of a slot.
#[derive(Debug)]
struct Filled {
    line: u64,
    sum: blake3::Hash,
    is_seen: bool,
    /// The line itself, unless it is a row's.
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
    /// Reads a log; a bad line costs only itself.
    pub(crate) fn read(
        input: impl BufRead,
        path: &Path,
        problem: &mut dyn FnMut(Problem),
    ) -> io::Result<Self> {
        let mut slots = Self::default();
        each(input, |line| {
            match serde_json::from_slice::<Head<'_>>(&line.bytes) {
                Ok(Head { of, gone: true }) => {
                    slots.filled.remove(of.get().as_bytes());
                }
                Ok(Head { of, .. }) => {
                    let slot = of.get().as_bytes().to_vec();
                    let sum = blake3::hash(&line.bytes);
                    let text = (!slot.starts_with(ROW)).then_some(line.bytes);
                    let filled = Filled { line: line.number, sum, is_seen: false, text };
                    slots.filled.insert(slot, filled);
                }
                Err(error) => problem(Problem::at(path, line.number, json_reason(&error))),
            }
            Ok(())
        })?;
        Ok(slots)
    }

    /// All lines that count and are no row's, each with its number, in their order.
    pub(super) fn others(&self) -> Vec<(u64, &[u8])> {
        let lines = self.filled.values();
        let mut lines: Vec<_> =
            lines.filter_map(|filled| Some((filled.line, filled.text.as_deref()?))).collect();
        lines.sort_unstable();
        lines
    }

    /// Whether a line is a row's and counts.
    pub(super) fn holds_row(&self, line: &Line) -> bool {
        let Ok(head) = serde_json::from_slice::<Head<'_>>(&line.bytes) else { return false };
        let filled = self.filled.get(head.of.get().as_bytes());
        filled.is_some_and(|filled| filled.line == line.number && filled.text.is_none())
    }

    /// Notes that a slot is still filled; whether the line for it is a new one.
    pub(crate) fn is_news(&mut self, slot: &[u8], line: &[u8]) -> bool {
        match self.filled.get_mut(slot) {
            Some(filled) => {
                filled.is_seen = true;
                filled.sum != blake3::hash(line)
            }
            None => true,
        }
    }

    /// Whether [`Slots::is_news`] was not asked about all rows.
    pub(crate) fn lacks_rows(&self) -> bool {
        self.filled.values().any(|filled| !filled.is_seen && filled.text.is_none())
    }

    /// Lines that empty the slots which [`Slots::is_news`] was not asked about, in the order of what they held.
    pub(crate) fn gone(self) -> Vec<Vec<u8>> {
        let mut gone: Vec<_> = self.filled.into_iter().filter(|(_, f)| !f.is_seen).collect();
        gone.sort_by_key(|(_, filled)| filled.line);
        let line = |slot: Vec<u8>| [b"{\"of\":", slot.as_slice(), b",\"gone\":true}"].concat();
        gone.into_iter().map(|(slot, _)| line(slot)).collect()
    }
}

/// Hands out the lines of a log; what has no end is not written yet.
pub(super) fn each(
    input: impl BufRead,
    mut take: impl FnMut(Line) -> io::Result<()>,
) -> io::Result<()> {
    for line in Lines::with_limit(input, LIMIT) {
        let line = line?;
        if line.end == LineEnd::Newline {
            take(line)?;
        }
    }
    Ok(())
}
