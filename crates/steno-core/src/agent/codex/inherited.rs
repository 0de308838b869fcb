//! What a fork or a subagent copied from another thread into the start of its own file.
//!
//! Turn ids are version 7 UUIDs: one that is older than the thread itself was not its turn. Where turns have no ids,
//! the copy was written within one second and begins with the other thread's `session_meta`. Before 0.88 that is all that
//! tells a fork: its own `session_meta` does not name the other thread.

use serde::Deserialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::record::{Body, Record, decode};
use crate::timestamp::Timestamp;

/// Tells a thread's own records from those that it copied.
#[derive(Default)]
pub(super) struct Inherited {
    /// Whether records may still be copies.
    within: bool,
    /// The thread's own id.
    id: Option<String>,
    /// When the thread was made, in milliseconds.
    made: Option<u64>,
    /// When the first record was written.
    begun: Option<Timestamp>,
    /// Whether no record has followed the first one yet.
    at_start: bool,
    /// The first ordinal that is the thread's own.
    start: Option<u64>,
    /// Whether something was seen that only a copy has.
    foreign: bool,
    /// Whether a turn of another thread was seen.
    turns: bool,
}

#[derive(Deserialize)]
struct Origin {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    forked_from_id: Option<String>,
    #[serde(default)]
    parent_thread_id: Option<String>,
    #[serde(default)]
    subagent_history_start_ordinal: Option<u64>,
    #[serde(default)]
    source: Option<Box<RawValue>>,
}

impl Inherited {
    /// Takes the first `session_meta` of the file, written at `at`.
    pub(super) fn new(meta: &RawValue, at: Option<Timestamp>) -> Self {
        let Some(origin) = decode::<Origin>(meta) else {
            return Self::default();
        };
        let spawned = origin.source.is_some_and(|source| source.get().contains("thread_spawn"));
        let forked = origin.forked_from_id.is_some() || origin.parent_thread_id.is_some();
        Self {
            within: forked || spawned,
            made: origin.id.as_deref().and_then(made),
            id: origin.id,
            begun: at,
            at_start: true,
            start: origin.subagent_history_start_ordinal,
            foreign: false,
            turns: false,
        }
    }

    /// Whether `record` was copied. To be asked of every record in order.
    pub(super) fn holds(&mut self, record: &Record<'_>) -> bool {
        if std::mem::take(&mut self.at_start) && self.begins_copy(record) {
            self.within = true;
        }
        if !self.within {
            return false;
        }
        if let (Some(start), Some(ordinal)) = (self.start, record.ordinal) {
            self.within = ordinal < start;
            return self.within;
        }
        match (&record.body, record.turn_id().as_deref().and_then(made), self.made) {
            (Body::Meta(_), _, _) => self.foreign = true,
            (_, Some(turn), Some(thread)) if turn >= thread => self.within = false,
            (_, Some(_), Some(_)) => (self.foreign, self.turns) = (true, true),
            _ if !self.turns && self.is_later(record) => self.within = false,
            _ => {}
        }
        self.within && self.foreign
    }

    /// Whether tokens counted by `record` may have been billed to another thread.
    pub(super) fn may_count(&self, record: &Record<'_>) -> bool {
        self.within && !self.is_later(record)
    }

    /// Whether `record` is the `session_meta` of another thread, written together with this thread's own.
    fn begins_copy(&self, record: &Record<'_>) -> bool {
        let Body::Meta(meta) = record.body else { return false };
        let other = thread_id(meta);
        other.is_some() && other != self.id && !self.is_later(record)
    }

    fn is_later(&self, record: &Record<'_>) -> bool {
        let Some((now, begun)) = record.timestamp.zip(self.begun) else { return false };
        now.instant().duration_since(begun.instant()).as_secs() >= 1
    }
}

/// The id of the thread that a `session_meta` is about.
pub(super) fn thread_id(meta: &RawValue) -> Option<String> {
    decode::<Origin>(meta)?.id
}

/// When a version 7 UUID was made, in milliseconds.
fn made(id: &str) -> Option<u64> {
    let id = Uuid::parse_str(id).ok().filter(|id| id.get_version_num() == 7)?;
    u64::try_from(id.as_u128() >> 80).ok()
}
