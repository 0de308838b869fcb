//! The output of `steno watch --json`.

use serde::Serialize;
use steno_store::sync::SyncedSession;

/// A line of the output.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub(super) enum WatchEvent<'a> {
    /// All existing sessions were copied.
    Ready { roots: usize },
    /// A session has grown.
    Kept(&'a SyncedSession),
    /// A remote was pushed to.
    Pushed {
        remote: &'a str,
        sessions: u64,
        #[serde(skip_serializing_if = "is_zero")]
        removed: u64,
    },
    /// The end.
    Stopped { sessions: u64, bytes_new: u64, looks: u64 },
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}
