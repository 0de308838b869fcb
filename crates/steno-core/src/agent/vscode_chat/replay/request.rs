//! Compact byte ranges of requests and their changes, because there may be millions of each.

use std::ops::Range;

use crate::varint;

/// Byte range of a request, and of the lines that change it.
pub(super) struct Request {
    pub(super) start: u64,
    /// Lengths above `u32::MAX` are capped. Such a request is too long to read anyway.
    pub(super) length: u32,
    /// Most requests have no changes.
    pub(super) changes: Option<Box<Changes>>,
}

/// Consecutive lines.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Run {
    pub(super) place: Range<u64>,
    /// The number of the first line.
    pub(super) line: u64,
}

/// Line runs in file order. All but the last are packed as distances to the run before.
#[derive(Default)]
pub(super) struct Changes {
    packed: Vec<u8>,
    before: Run,
    last: Run,
}

impl Request {
    pub(super) fn at(range: &Range<u64>) -> Self {
        let length = u32::try_from(range.end - range.start).unwrap_or(u32::MAX);
        Self { start: range.start, length, changes: None }
    }

    pub(super) fn change(&mut self, run: Run) {
        self.changes.get_or_insert_default().push(run);
    }
}

impl Changes {
    fn push(&mut self, run: Run) {
        if self.last.place.end == run.place.start {
            self.last.place.end = run.place.end;
            return;
        }
        let last = std::mem::replace(&mut self.last, run);
        if !last.place.is_empty() {
            let before = std::mem::replace(&mut self.before, last);
            let Run { place, line } = &self.before;
            let ahead =
                [place.start - before.place.end, place.end - place.start, line - before.line];
            ahead.into_iter().for_each(|number| varint::write(&mut self.packed, number));
        }
    }

    pub(super) fn runs(&self) -> impl Iterator<Item = Run> {
        let (mut rest, mut before) = (self.packed.as_slice(), Run::default());
        let packed = std::iter::from_fn(move || {
            let mut next = || varint::read(&mut rest);
            let (start, length, line) = (before.place.end + next()?, next()?, next()?);
            before = Run { place: start..start + length, line: before.line + line };
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
        let mut request = Request::at(&(3..9));
        let run = |place, line| Run { place, line };
        for (place, line) in [(10..20, 2), (20..21, 3), (1000..70_000, 9), (70_001..70_003, 11)] {
            request.change(run(place, line));
        }
        let changes = request.changes.unwrap();
        let runs = [run(10..21, 2), run(1000..70_000, 9), run(70_001..70_003, 11)];
        assert_eq!(changes.runs().collect::<Vec<_>>(), runs);
        assert!(changes.packed.len() < 12);
        assert_eq!(Request::at(&(3..u64::MAX)).length, u32::MAX);
    }
}
