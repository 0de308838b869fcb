//! What is known of the spans of a file: little, since there may be millions.

use std::num::NonZeroU32;
use std::ops::Range;

use crate::sums::Short;

/// How many marks stand in a chunk.
const CHUNK: usize = 4096;

/// What is known of a span. Names are known by their numbers, ids by their sums.
pub(super) struct Mark {
    /// Where it stands.
    pub(super) start: u64,
    /// When it began, in nanoseconds since the epoch; 0 if it does not tell.
    pub(super) order: i64,
    pub(super) id: Short,
    pub(super) parent: Short,
    pub(super) length: u32,
    pub(super) trace: u32,
    /// The conversation that it names itself.
    pub(super) conversation: Option<NonZeroU32>,
    /// Which file it stands in.
    pub(super) source: u16,
    /// Whether it tells of a model, an agent or a tool.
    pub(super) is_genai: bool,
    /// Whether it invokes an agent.
    pub(super) invokes: bool,
}

impl Mark {
    /// What no other span has.
    pub(super) fn name(&self) -> (u32, Short) {
        (self.trace, self.id)
    }

    pub(super) fn place(&self) -> Range<u64> {
        self.start..self.start + u64::from(self.length)
    }
}

/// Marks in chunks: where there are more and more of them, none is moved.
#[derive(Default)]
pub(super) struct Marks {
    chunks: Vec<Vec<Mark>>,
}

impl Marks {
    pub(super) fn len(&self) -> usize {
        let full = self.chunks.len().saturating_sub(1) * CHUNK;
        full + self.chunks.last().map_or(0, Vec::len)
    }

    pub(super) fn push(&mut self, mark: Mark) {
        match self.chunks.last_mut() {
            Some(last) if last.len() < CHUNK => last.push(mark),
            _ => self.chunks.push(vec![mark]),
        }
    }

    /// Forgets all but the first `length`.
    pub(super) fn truncate(&mut self, length: usize) {
        self.chunks.truncate(length.div_ceil(CHUNK));
        if let Some(last) = self.chunks.last_mut() {
            last.truncate((length - 1) % CHUNK + 1);
        }
    }

    pub(super) fn at(&self, index: u32) -> &Mark {
        &self.chunks[index as usize / CHUNK][index as usize % CHUNK]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Mark> {
        self.chunks.iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(start: u64) -> Mark {
        let (order, id, parent, length, trace) = (0, start, 0, 1, 1);
        let (conversation, source, is_genai, invokes) = (None, 0, false, false);
        Mark { start, order, id, parent, length, trace, conversation, source, is_genai, invokes }
    }

    #[test]
    fn what_is_left_of_chunks_is_in_order() {
        for left in [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 2 * CHUNK + 9] {
            let mut marks = Marks::default();
            (0..3 * CHUNK).for_each(|start| marks.push(mark(start as u64)));
            marks.truncate(left);
            assert_eq!(marks.len(), left);
            marks.push(mark(left as u64));
            assert!(marks.iter().map(|mark| mark.start).eq(0..=left as u64));
            assert_eq!(marks.at(left as u32).start, left as u64);
        }
    }
}
