//! What a push has done.

use serde::Serialize;

/// What a push has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PushSummary {
    /// Sessions with something new.
    pub sessions: u64,
    /// Sessions without anything new.
    pub unchanged: u64,
    /// Sessions that share a file with others, and so cannot be pushed alone.
    pub shared: u64,
    /// Sessions that are older than the remote keeps them.
    pub expired: u64,
    /// Sessions that the remote refused, as they were forgotten.
    pub refused: u64,
    /// Sent frames.
    pub frames: u64,
    /// Sent rows of entries and usage.
    pub rows: u64,
    /// Bytes of content in the sent frames.
    pub bytes: u64,
    /// Secrets replaced in what was sent.
    pub secrets: u64,
    /// Forgotten sessions that were removed from the remote.
    pub forgotten: u64,
    /// Sessions removed from the remote because they are private now.
    pub withdrawn: u64,
}

impl PushSummary {
    /// Adds what another connection has done.
    pub(crate) fn add(&mut self, other: &Self) {
        let Self {
            sessions,
            unchanged,
            shared,
            expired,
            refused,
            frames,
            rows,
            bytes,
            secrets,
            forgotten,
            withdrawn,
        } = other;
        self.sessions += sessions;
        self.unchanged += unchanged;
        self.shared += shared;
        self.expired += expired;
        self.refused += refused;
        self.frames += frames;
        self.rows += rows;
        self.bytes += bytes;
        self.secrets += secrets;
        self.forgotten += forgotten;
        self.withdrawn += withdrawn;
    }
}
