//! When a push is on the disk of the server: once, at its end, as each wait takes longer than what is waited for.
//!
//! A server that loses power loses the last transactions of a push. What it keeps is all that was committed before them, and
//! the client notes only after the end what it has pushed. So the next push finds what is missing.

use super::PostgresRemote;
use crate::team_error::TeamError;

/// Writes to the log of the server, which goes to the disk in order. A user without a session has nothing to wait for.
const WRITE_SOMETHING: &str = "UPDATE steno.session SET taken = taken
    WHERE key = (SELECT max(key) FROM steno.session WHERE owner = session_user)";

impl PostgresRemote {
    /// From now on, nothing waits for the disk.
    pub(crate) fn begin_push(&mut self) -> Result<(), TeamError> {
        self.check_membership(false)?;
        self.run("begin a push", |client| {
            client.execute("SET synchronous_commit = off", &[]).map(drop)
        })
    }

    /// Waits until everything is on disk that any connection has sent.
    pub(crate) fn finish_push(&mut self) -> Result<(), TeamError> {
        self.run("finish a push", |client| {
            client.execute("RESET synchronous_commit", &[])?;
            client.execute(WRITE_SOMETHING, &[]).map(drop)
        })
    }
}
