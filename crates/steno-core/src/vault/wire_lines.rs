//! Lines of a wire on their way into a log: each is made ready as it comes, all of them in one buffer.

use uuid::Uuid;

use super::record;
use crate::agent::acp::wire::{self, Side};
use crate::timestamp::Timestamp;

/// Bytes that are held for the next lines.
const ROOM: usize = 1 << 20;

/// Lines of a wire that are ready to be written.
#[derive(Clone, Debug, Default)]
pub struct WireLines {
    bytes: Vec<u8>,
    /// Where each of them ends.
    ends: Vec<usize>,
    /// When the last one was passed on, and the text of that: lines come many at a time.
    at: Option<(Timestamp, String)>,
}

impl WireLines {
    /// Adds a line and when it was passed on. Who knows that it is JSON need not have it read again.
    pub fn push(&mut self, at: Timestamp, (side, bytes): (Side, &[u8]), is_json: bool) {
        if self.at.as_ref().is_none_or(|(known, _)| *known != at) {
            self.at = Some((at, at.to_string()));
        }
        let time = self.at.as_ref().map_or("", |(_, text)| text.as_str());
        record::raw_head(&mut self.bytes, time, Uuid::now_v7());
        wire::write_record(&mut self.bytes, side, bytes, is_json);
        self.bytes.push(b'}');
        self.ends.push(self.bytes.len());
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Forgets them.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(ROOM);
        self.ends.clear();
    }

    /// What the lines of a log say that hold them.
    pub(super) fn bodies(&self) -> impl Iterator<Item = &[u8]> {
        let begins = [0].into_iter().chain(self.ends.iter().copied());
        begins.zip(&self.ends).map(|(begin, end)| &self.bytes[begin..*end])
    }
}
