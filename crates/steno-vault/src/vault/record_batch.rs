//! Records on their way into a log. Each is encoded as it arrives, all in one buffer.

use super::record;
use steno_model::timestamp::Timestamp;
use steno_model::unique_id::new_unique_id;

/// Buffer capacity retained between batches.
const MAX_RETAINED_CAPACITY: usize = 1 << 20;

/// Encoded records of a wire protocol, which have no entries by themselves.
#[derive(Clone, Debug, Default)]
pub struct RecordBatch {
    bytes: Vec<u8>,
    /// End offset of each line in `bytes`.
    ends: Vec<usize>,
    /// The time of the last record and its text, cached because many records share a time.
    at: Option<(Timestamp, String)>,
}

impl RecordBatch {
    /// Adds a record with its time. `write` appends its bytes: one line of valid JSON, without a newline.
    pub fn push_with(&mut self, at: Timestamp, write: impl FnOnce(&mut Vec<u8>)) {
        if self.at.as_ref().is_none_or(|(known, _)| *known != at) {
            self.at = Some((at, at.to_string()));
        }
        let time = self.at.as_ref().map_or("", |(_, text)| text.as_str());
        record::write_raw_prefix(&mut self.bytes, time, new_unique_id(at));
        write(&mut self.bytes);
        self.bytes.push(b'}');
        self.ends.push(self.bytes.len());
    }

    /// Whether there are no records.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Number of records.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Removes all records.
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
