//! Sends entries and usage of one session in parts, so that it takes little memory however large the session is. What the
//! database has already is not sent again.
//!
//! The usage of a part is sent before its entries. So whatever ends a push, the usage of all entries that the database
//! states to have is there too. Usage with keys of an older version is removed after all of the session was sent again; until
//! then it may count twice.

use steno_model::Timestamp;
use steno_store::index::session_rows::{SessionRows, USAGE_KEY_VERSION};
use steno_vault::SessionDir;

use super::PostgresRemote;
use super::rows::EntryBatch;
use crate::manifest::SessionKey;
use crate::team_error::TeamError;

/// Size of a part in memory. It takes several times as much while it is sent.
const MAX_PART_BYTES: usize = 4 << 20;

/// The progress of sending the rows of a session.
#[derive(Debug)]
struct RowUpload {
    /// The session's number in the database.
    session: i64,
    /// How many entries the database has.
    taken: usize,
    /// The digest of the last of them, until it has been compared.
    unchecked_digest: Option<Vec<u8>>,
    /// Whether its usage there may have keys of an older version.
    replaces_usage: bool,
    /// How many rows were sent.
    sent: u64,
}

/// What follows after a part.
#[derive(Debug, PartialEq, Eq)]
enum UploadStep {
    /// The next part.
    Continue,
    /// The first part again: the database had other entries, which were removed.
    Restart,
    /// Nothing: another machine has sent entries of this session. The next push compares again.
    Stop,
}

impl PostgresRemote {
    /// Sends the rows that the database lacks of the session in a folder. Returns their number. Entries without a time are
    /// from when the session `started`.
    pub(crate) fn put_rows(
        &mut self,
        key: &SessionKey,
        dir: &SessionDir,
        started: Option<Timestamp>,
    ) -> Result<u64, TeamError> {
        let mut upload = self.begin_upload(key)?;
        loop {
            let mut step = Ok(UploadStep::Continue);
            SessionRows::read_in_parts(dir, MAX_PART_BYTES, &mut |rows| {
                step = self.put_part(&mut upload, &rows, started);
                matches!(step, Ok(UploadStep::Continue))
            })?;
            if step? != UploadStep::Restart {
                return Ok(upload.sent);
            }
        }
    }

    fn begin_upload(&mut self, key: &SessionKey) -> Result<RowUpload, TeamError> {
        let session = self.session_number(key)?;
        let sql = "SELECT taken, digest, usage_key_version FROM steno.session WHERE key = $1";
        let row = self.run("compare entries", |client| client.query_one(sql, &[&session]))?;
        let taken = usize::try_from(row.get::<_, i64>(0)).unwrap_or(0);
        let digest: Option<Vec<u8>> = row.get(1);
        let unchecked_digest = (taken > 0).then(|| digest.unwrap_or_default());
        let replaces_usage = row.get::<_, i16>(2) < USAGE_KEY_VERSION;
        Ok(RowUpload { session, taken, unchecked_digest, replaces_usage, sent: 0 })
    }

    fn put_part(
        &mut self,
        upload: &mut RowUpload,
        rows: &SessionRows,
        started: Option<Timestamp>,
    ) -> Result<UploadStep, TeamError> {
        if upload.differs_from(rows) {
            self.run("replace entries", |client| {
                client.execute("SELECT steno.clear_rows($1)", &[&upload.session])
            })?;
            upload.taken = 0;
            if rows.first_number > 0 {
                return Ok(UploadStep::Restart);
            }
        }
        if rows.is_part && rows.end_number() <= upload.taken && !upload.replaces_usage {
            return Ok(UploadStep::Continue);
        }
        upload.sent += self.put_usage(upload.session, &rows.usage)?;
        let started = rows.session.started.or(started);
        while upload.taken < rows.end_number() {
            let missing = &rows.entries[upload.taken - rows.first_number..];
            let mut batch = EntryBatch::fill(missing, started, self.tokenizer()?)?;
            if !self.add_entries(upload.session, upload.taken, &mut batch)? {
                return Ok(UploadStep::Stop);
            }
            upload.taken += batch.at.len();
            upload.sent += batch.at.len() as u64;
        }
        if !rows.is_part {
            self.put_heading(upload.session, &rows.session)?;
            if upload.replaces_usage {
                self.remove_old_usage(upload.session)?;
            }
        }
        Ok(UploadStep::Continue)
    }
}

impl RowUpload {
    /// Whether the database has other entries than the session. That is known when the part with the last of them is read.
    fn differs_from(&mut self, rows: &SessionRows) -> bool {
        if rows.is_part && self.taken > rows.end_number() {
            return false;
        }
        let Some(digest) = self.unchecked_digest.take() else { return false };
        let own = self.taken.checked_sub(rows.first_number + 1);
        let own = own.and_then(|at| rows.entries.get(at));
        own.is_none_or(|own| own.digest.as_slice() != digest)
    }
}
