//! Compact marks of spans, because a file may have millions of spans.

use std::num::NonZeroU32;
use std::ops::Range;

use steno_model::name_hash::ShortNameHash;

/// Number of marks in a chunk.
const MARKS_PER_CHUNK: usize = 4096;

/// Location and key facts of a span. Names are stored as numbers, ids as short hashes.
pub(super) struct SpanMark {
    /// Byte offset of the span in its file.
    pub(super) offset: u64,
    /// Start time in nanoseconds since the Unix epoch. 0 if unknown.
    pub(super) start_nanos: i64,
    pub(super) id: ShortNameHash,
    pub(super) parent: ShortNameHash,
    pub(super) length: u32,
    pub(super) trace: u32,
    /// The conversation that the span itself names.
    pub(super) conversation: Option<NonZeroU32>,
    /// Index of the file.
    pub(super) source: u16,
    /// Whether the span has GenAI attributes.
    pub(super) is_genai: bool,
    /// Whether the span invokes an agent.
    pub(super) invokes: bool,
}

impl SpanMark {
    /// Identifies the span among all files.
    pub(super) fn unique_key(&self) -> (u32, ShortNameHash) {
        (self.trace, self.id)
    }

    pub(super) fn byte_range(&self) -> Range<u64> {
        self.offset..self.offset + u64::from(self.length)
    }
}

/// A list of marks in chunks, so that growing it moves no marks.
#[derive(Default)]
pub(super) struct SpanMarkList {
    chunks: Vec<Vec<SpanMark>>,
}

impl SpanMarkList {
    pub(super) fn len(&self) -> usize {
        let full = self.chunks.len().saturating_sub(1) * MARKS_PER_CHUNK;
        full + self.chunks.last().map_or(0, Vec::len)
    }

    pub(super) fn push(&mut self, mark: SpanMark) {
        match self.chunks.last_mut() {
            Some(last) if last.len() < MARKS_PER_CHUNK => last.push(mark),
            _ => self.chunks.push(vec![mark]),
        }
    }

    /// Drops all marks except the first `length`.
    pub(super) fn truncate(&mut self, length: usize) {
        self.chunks.truncate(length.div_ceil(MARKS_PER_CHUNK));
        if let Some(last) = self.chunks.last_mut() {
            last.truncate((length - 1) % MARKS_PER_CHUNK + 1);
        }
    }

    pub(super) fn at(&self, index: u32) -> &SpanMark {
        &self.chunks[index as usize / MARKS_PER_CHUNK][index as usize % MARKS_PER_CHUNK]
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &SpanMark> {
        self.chunks.iter().flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(start: u64) -> SpanMark {
        let (order, id, parent, length, trace) = (0, start, 0, 1, 1);
        let (conversation, source, is_genai, invokes) = (None, 0, false, false);
        SpanMark {
            offset: start,
            start_nanos: order,
            id,
            parent,
            length,
            trace,
            conversation,
            source,
            is_genai,
            invokes,
        }
    }

    #[test]
    fn remaining_chunks_are_in_order() {
        for left in [
            0,
            1,
            MARKS_PER_CHUNK - 1,
            MARKS_PER_CHUNK,
            MARKS_PER_CHUNK + 1,
            2 * MARKS_PER_CHUNK + 9,
        ] {
            let mut marks = SpanMarkList::default();
            (0..3 * MARKS_PER_CHUNK).for_each(|start| marks.push(mark(start as u64)));
            marks.truncate(left);
            assert_eq!(marks.len(), left);
            marks.push(mark(left as u64));
            assert!(marks.iter().map(|mark| mark.offset).eq(0..=left as u64));
            assert_eq!(marks.at(left as u32).offset, left as u64);
        }
    }
}
