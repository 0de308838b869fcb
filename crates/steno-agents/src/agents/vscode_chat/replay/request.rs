//! Compact byte ranges of requests and their changes, because there may be millions of each.

use std::ops::Range;

use steno_model::varint;

/// Byte range of a request, and of the lines that change it.
pub(super) struct RequestLocation {
    pub(super) start: u64,
    /// Lengths above `u32::MAX` are capped. Such a request is too long to read anyway.
    pub(super) length: u32,
    /// Most requests have no changes.
    pub(super) changes: Option<Box<PackedLineRuns>>,
}

/// Consecutive lines.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct LineRun {
    pub(super) range: Range<u64>,
    /// The number of the first line.
    pub(super) line: u64,
}

/// Line runs in file order. All but the last are packed as distances to the run before.
#[derive(Default)]
pub(super) struct PackedLineRuns {
    packed: Vec<u8>,
    before: LineRun,
    last: LineRun,
}

impl RequestLocation {
    pub(super) fn from_range(range: &Range<u64>) -> Self {
        let length = u32::try_from(range.end - range.start).unwrap_or(u32::MAX);
        Self { start: range.start, length, changes: None }
    }

    pub(super) fn add_change(&mut self, run: LineRun) {
        self.changes.get_or_insert_default().push(run);
    }
}

impl PackedLineRuns {
    fn push(&mut self, run: LineRun) {
        if self.last.range.end == run.range.start {
            self.last.range.end = run.range.end;
            return;
        }
        let last = std::mem::replace(&mut self.last, run);
        if !last.range.is_empty() {
            let before = std::mem::replace(&mut self.before, last);
            let LineRun { range: place, line } = &self.before;
            let ahead =
                [place.start - before.range.end, place.end - place.start, line - before.line];
            ahead.into_iter().for_each(|number| varint::write_varint(&mut self.packed, number));
        }
    }

    pub(super) fn runs(&self) -> impl Iterator<Item = LineRun> {
        let (mut rest, mut before) = (self.packed.as_slice(), LineRun::default());
        let packed = std::iter::from_fn(move || {
            let mut next = || varint::read_varint(&mut rest);
            let (start, length, line) = (before.range.end + next()?, next()?, next()?);
            before = LineRun { range: start..start + length, line: before.line + line };
            Some(before.clone())
        });
        packed.chain([self.last.clone()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_joined_and_packed() {
        let mut request = RequestLocation::from_range(&(3..9));
        let run = |place, line| LineRun { range: place, line };
        for (place, line) in [(10..20, 2), (20..21, 3), (1000..70_000, 9), (70_001..70_003, 11)] {
            request.add_change(run(place, line));
        }
        let changes = request.changes.unwrap();
        let runs = [run(10..21, 2), run(1000..70_000, 9), run(70_001..70_003, 11)];
        assert_eq!(changes.runs().collect::<Vec<_>>(), runs);
        assert!(changes.packed.len() < 12);
        assert_eq!(RequestLocation::from_range(&(3..u64::MAX)).length, u32::MAX);
    }
}
