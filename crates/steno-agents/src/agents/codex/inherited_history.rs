//! Recognizes records that a fork or subagent copied from another thread to the start of its rollout.
//!
//! Turn ids are version 7 UUIDs: a turn older than the thread was copied. If turns have no ids, the copy was written
//! within one second and begins with the other thread's `session_meta`. Before 0.88, a fork has no other sign:
//! its own `session_meta` does not name the other thread.

use serde::Deserialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::record::{CodexLineBody, CodexRolloutLine, decode_raw};
use steno_model::timestamp::Timestamp;

/// Separates a thread's own records from copied ones.
#[derive(Default)]
pub(super) struct InheritedHistory {
    /// Whether the next records may be copies.
    may_be_copy: bool,
    /// The thread's own id.
    id: Option<String>,
    /// When the thread was created, in milliseconds since the epoch.
    created_millis: Option<u64>,
    /// When the first record was written.
    first_written: Option<Timestamp>,
    /// Whether the next record is the second one.
    is_at_start: bool,
    /// The ordinal of the thread's first own record.
    first_own_ordinal: Option<u64>,
    /// Whether a record was seen that only a copy has.
    has_foreign_record: bool,
    /// Whether a turn of another thread was seen.
    has_foreign_turn: bool,
}

#[derive(Deserialize)]
struct CodexThreadOrigin {
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

impl InheritedHistory {
    /// Starts with the first `session_meta` of the file, written at `at`.
    pub(super) fn new(meta: &RawValue, at: Option<Timestamp>) -> Self {
        let Some(origin) = decode_raw::<CodexThreadOrigin>(meta) else {
            return Self::default();
        };
        let is_spawned = origin.source.is_some_and(|source| source.get().contains("thread_spawn"));
        let is_forked = origin.forked_from_id.is_some() || origin.parent_thread_id.is_some();
        Self {
            may_be_copy: is_forked || is_spawned,
            created_millis: origin.id.as_deref().and_then(uuid_millis),
            id: origin.id,
            first_written: at,
            is_at_start: true,
            first_own_ordinal: origin.subagent_history_start_ordinal,
            has_foreign_record: false,
            has_foreign_turn: false,
        }
    }

    /// Whether `record` was copied. Must be called for every record, in order.
    pub(super) fn is_copied(&mut self, record: &CodexRolloutLine<'_>) -> bool {
        if std::mem::take(&mut self.is_at_start) && self.begins_copy(record) {
            self.may_be_copy = true;
        }
        if !self.may_be_copy {
            return false;
        }
        if let (Some(first_own), Some(ordinal)) = (self.first_own_ordinal, record.ordinal) {
            self.may_be_copy = ordinal < first_own;
            return self.may_be_copy;
        }
        match (&record.body, record.turn_id().as_deref().and_then(uuid_millis), self.created_millis)
        {
            (CodexLineBody::Meta(_), _, _) => self.has_foreign_record = true,
            (_, Some(turn), Some(thread)) if turn >= thread => self.may_be_copy = false,
            (_, Some(_), Some(_)) => {
                (self.has_foreign_record, self.has_foreign_turn) = (true, true);
            }
            _ if !self.has_foreign_turn && self.is_later(record) => self.may_be_copy = false,
            _ => {}
        }
        self.may_be_copy && self.has_foreign_record
    }

    /// Whether the tokens that `record` counts may have been billed to another thread.
    pub(super) fn may_be_billed_elsewhere(&self, record: &CodexRolloutLine<'_>) -> bool {
        self.may_be_copy && !self.is_later(record)
    }

    /// Whether `record` is the `session_meta` of another thread, written together with this thread's own.
    fn begins_copy(&self, record: &CodexRolloutLine<'_>) -> bool {
        let CodexLineBody::Meta(meta) = record.body else { return false };
        let other = thread_id(meta);
        other.is_some() && other != self.id && !self.is_later(record)
    }

    fn is_later(&self, record: &CodexRolloutLine<'_>) -> bool {
        let Some((now, first)) = record.timestamp.zip(self.first_written) else { return false };
        now.instant().duration_since(first.instant()).as_secs() >= 1
    }
}

/// The thread id in a `session_meta`.
pub(super) fn thread_id(meta: &RawValue) -> Option<String> {
    decode_raw::<CodexThreadOrigin>(meta)?.id
}

/// The creation time of a version 7 UUID, in milliseconds since the epoch.
fn uuid_millis(id: &str) -> Option<u64> {
    let id = Uuid::parse_str(id).ok().filter(|id| id.get_version_num() == 7)?;
    u64::try_from(id.as_u128() >> 80).ok()
}
