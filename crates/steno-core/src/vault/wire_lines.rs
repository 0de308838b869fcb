//! Wire lines on their way into a log. Each is encoded as it arrives, all in one buffer.

use uuid::Uuid;

use super::record;
use crate::agent::acp::wire::{self, AcpSide};
use crate::timestamp::Timestamp;

/// Buffer capacity retained between batches.
const MAX_RETAINED_CAPACITY: usize = 1 << 20;

/// Encoded wire lines.
#[derive(Clone, Debug, Default)]
pub struct WireLines {
    bytes: Vec<u8>,
    /// End offset of each line in `bytes`.
    ends: Vec<usize>,
    /// The time of the last line and its text, cached because many lines share a time.
    at: Option<(Timestamp, String)>,
}

impl WireLines {
    /// Adds a line and the time it was forwarded. With `is_json`, the line is not parsed again.
    pub fn push(&mut self, at: Timestamp, side: AcpSide, bytes: &[u8], is_json: bool) {
        if self.at.as_ref().is_none_or(|(known, _)| *known != at) {
            self.at = Some((at, at.to_string()));
        }
        let time = self.at.as_ref().map_or("", |(_, text)| text.as_str());
        record::write_raw_prefix(&mut self.bytes, time, Uuid::now_v7());
        wire::write_wire_record(&mut self.bytes, side, bytes, is_json);
        self.bytes.push(b'}');
        self.ends.push(self.bytes.len());
    }

    /// Whether there are no lines.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Number of lines.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Removes all lines.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(MAX_RETAINED_CAPACITY);
        self.ends.clear();
    }

    /// The bodies of the log lines.
    pub(super) fn bodies(&self) -> impl Iterator<Item = &[u8]> {
        let begins = [0].into_iter().chain(self.ends.iter().copied());
        begins.zip(&self.ends).map(|(begin, end)| &self.bytes[begin..*end])
    }
}
