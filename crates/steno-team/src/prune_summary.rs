//! What retention has removed.

use serde::Serialize;

/// What was removed from a remote as it was too old.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct PruneSummary {
    /// Sessions.
    pub sessions: u64,
    /// Months of which no entry is left.
    pub months: u64,
}
