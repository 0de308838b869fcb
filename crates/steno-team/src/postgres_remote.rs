//! A remote in PostgreSQL 15 or newer.
//!
//! Each person has a role. Row level security decides what a role sees; searching and counting go through functions that
//! check it themselves, as a policy would keep the database from using its text index.

pub(crate) mod connection;
mod rows;
mod search;

use std::collections::HashSet;
use std::fmt;

use postgres::{Client, Row};
use steno_model::Timestamp;

use self::connection::connect;
use crate::frame_chain::{FrameHash, FrameLink, SentFrame};
use crate::manifest::{REMOTE_VERSION, SessionKey, SessionManifest};
use crate::remote_tombstone::RemoteTombstone;
use crate::team_error::TeamError;

const SCHEMA: &str = include_str!("postgres_remote/schema.sql");

/// Years before and after the present one with a partition per month. Each partition makes every search slower by a tenth of
/// a millisecond, so there are only a few; entries of other times are in one of their own.
const YEARS_AROUND: i16 = 1;

/// A password. It is never shown.
#[derive(Clone)]
pub struct PostgresPassword(pub String);

impl fmt::Debug for PostgresPassword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PostgresPassword")
    }
}

/// A connected database.
pub struct PostgresRemote {
    client: Client,
    url: String,
    owner: String,
    now: Timestamp,
    has_staging: bool,
}

impl fmt::Debug for PostgresRemote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresRemote").field("url", &self.url).finish_non_exhaustive()
    }
}

impl PostgresRemote {
    /// Connects. `now` decides which partitions are created.
    pub fn connect(
        url: &str,
        password: Option<&PostgresPassword>,
        now: Timestamp,
    ) -> Result<Self, TeamError> {
        let mut client = connect(url, password)?;
        let failed = |error: postgres::Error| TeamError::Connection {
            remote: url.to_owned(),
            reason: describe(&error),
        };
        let row = client.query_one("SELECT session_user::text", &[]).map_err(failed)?;
        Ok(Self { client, url: url.to_owned(), owner: row.get(0), now, has_staging: false })
    }

    pub(crate) fn owner(&self) -> &str {
        &self.owner
    }

    /// Turns an error of the database into one of ours.
    fn failure(url: &str, action: &'static str, error: &postgres::Error) -> TeamError {
        TeamError::Database { remote: url.to_owned(), action, reason: describe(error) }
    }

    pub(crate) fn run<T, E: Into<DatabaseFailure>>(
        &mut self,
        action: &'static str,
        work: impl FnOnce(&mut Client) -> Result<T, E>,
    ) -> Result<T, TeamError> {
        work(&mut self.client).map_err(|error| {
            let DatabaseFailure(reason) = error.into();
            TeamError::Database { remote: self.url.clone(), action, reason }
        })
    }

    /// The version of the schema; `None` without one.
    fn schema_version(&mut self) -> Result<Option<i64>, TeamError> {
        self.run("read the version of the schema", |client| {
            let found = client.query_one("SELECT to_regclass('steno.meta') IS NOT NULL", &[])?;
            if !found.get::<_, bool>(0) {
                return Ok::<_, postgres::Error>(None);
            }
            let row =
                client.query_opt("SELECT value FROM steno.meta WHERE name = 'version'", &[])?;
            Ok(row.map(|row| row.get(0)))
        })
    }

    pub(crate) fn check_version(&mut self) -> Result<(), TeamError> {
        let remote = self.url.clone();
        match self.schema_version()? {
            None => Err(TeamError::NotInitialised(remote)),
            Some(found) if found > REMOTE_VERSION => {
                Err(TeamError::NewerSchema { remote, found, known: REMOTE_VERSION })
            }
            Some(found) if found < REMOTE_VERSION => {
                Err(TeamError::OlderSchema { remote, found, needed: REMOTE_VERSION })
            }
            Some(_) => Ok(()),
        }
    }

    pub(crate) fn initialise(&mut self) -> Result<bool, TeamError> {
        let is_new = match self.check_version() {
            Err(TeamError::NotInitialised(_)) => true,
            other => other.map(|()| false)?,
        };
        let months = month_starts(self.now.wall().year());
        self.run("create the schema", |client| {
            let mut transaction = client.transaction()?;
            if is_new {
                transaction.batch_execute(SCHEMA)?;
                let insert = "INSERT INTO steno.meta VALUES ('version', $1)";
                transaction.execute(insert, &[&REMOTE_VERSION])?;
            }
            for pair in months.windows(2) {
                let [(name, from), (_, to)] = pair else { continue };
                // Entries of this month may be among the others already. There they stay.
                transaction.batch_execute(&format!(
                    "DO $$ BEGIN
                        CREATE TABLE IF NOT EXISTS steno.{name} PARTITION OF steno.entry
                            FOR VALUES FROM ({from}) TO ({to});
                        ALTER TABLE steno.{name} ENABLE ROW LEVEL SECURITY;
                    EXCEPTION WHEN check_violation THEN NULL; END $$"
                ))?;
            }
            transaction.batch_execute("ALTER TABLE steno.entry_other ENABLE ROW LEVEL SECURITY")?;
            transaction.commit()
        })?;
        Ok(is_new)
    }

    pub(crate) fn list_revisions(&mut self) -> Result<Vec<(SessionKey, FrameHash)>, TeamError> {
        let sql = "SELECT owner::text, agent, id, revision FROM steno.session
            WHERE revision IS NOT NULL";
        let rows = self.run("list the sessions", |client| client.query(sql, &[]))?;
        Ok(rows.iter().filter_map(revision_from_row).collect())
    }

    pub(crate) fn read_manifest(
        &mut self,
        key: &SessionKey,
    ) -> Result<Option<SessionManifest>, TeamError> {
        let sql = "SELECT manifest FROM steno.session
            WHERE owner = $1::text::name AND agent = $2 AND id = $3 AND manifest IS NOT NULL";
        let row = self.run("read a session", |client| {
            client.query_opt(sql, &[&key.owner, &key.agent, &key.id.as_str()])
        })?;
        row.map(|row| SessionManifest::parse(row.get(0), key)).transpose()
    }

    /// The number of an own session, which is added if it is new.
    fn own_session(&mut self, manifest: &SessionManifest) -> Result<i64, TeamError> {
        let key = &manifest.key;
        let (agent, id) = (key.agent.clone(), key.id.to_string());
        let visibility = manifest.visibility.as_str();
        let add = "INSERT INTO steno.session (team, owner, agent, id, visibility)
            VALUES (steno.own_team(), session_user, $1, $2, $3) ON CONFLICT DO NOTHING";
        let added = self.client.execute(add, &[&agent, &id, &visibility]);
        if let Err(error) = added {
            let sql = "SELECT steno.is_forgotten($1, $2)";
            let is_forgotten = self.client.query_one(sql, &[&agent, &id]);
            if is_forgotten.is_ok_and(|row| row.get(0)) {
                return Err(TeamError::Forgotten(key.to_string()));
            }
            return Err(Self::failure(&self.url, "add a session", &error));
        }
        self.session_number(key)
    }

    fn session_number(&mut self, key: &SessionKey) -> Result<i64, TeamError> {
        let sql = "SELECT key FROM steno.session
            WHERE owner = $1::text::name AND agent = $2 AND id = $3";
        let row = self.run("find a session", |client| {
            client.query_opt(sql, &[&key.owner, &key.agent, &key.id.as_str()])
        })?;
        // It was forgotten since it was added.
        row.map(|row| row.get(0)).ok_or_else(|| TeamError::Forgotten(key.to_string()))
    }

    pub(crate) fn known_frames(
        &mut self,
        key: &SessionKey,
        hashes: &[FrameHash],
    ) -> Result<HashSet<FrameHash>, TeamError> {
        let hashes: Vec<&[u8]> = hashes.iter().map(|hash| hash.0.as_slice()).collect();
        let sql = "SELECT f.hash FROM steno.session s JOIN steno.frame f ON f.session = s.key
            WHERE s.owner = $1::text::name AND s.agent = $2 AND s.id = $3 AND f.hash = ANY ($4)";
        let rows = self.run("compare frames", |client| {
            client.query(sql, &[&key.owner, &key.agent, &key.id.as_str(), &hashes])
        })?;
        Ok(rows.iter().filter_map(|row| hash_from_bytes(row.get(0))).collect())
    }

    pub(crate) fn put_frames(
        &mut self,
        manifest: &SessionManifest,
        frames: &[SentFrame],
    ) -> Result<(), TeamError> {
        let session = self.own_session(manifest)?;
        let insert = "INSERT INTO steno.frame (session, hash, stored)
            SELECT $1, hash, stored FROM unnest($2::bytea[], $3::bytea[]) AS f (hash, stored)
            ON CONFLICT DO NOTHING";
        let hashes: Vec<&[u8]> = frames.iter().map(|(hash, _)| hash.0.as_slice()).collect();
        let stored: Vec<&[u8]> = frames.iter().map(|(_, stored)| stored.as_slice()).collect();
        self.run("send frames", |client| client.execute(insert, &[&session, &hashes, &stored]))?;
        Ok(())
    }

    pub(crate) fn swap_manifest(
        &mut self,
        expected: Option<FrameHash>,
        manifest: &SessionManifest,
    ) -> Result<bool, TeamError> {
        let session = self.own_session(manifest)?;
        let (text, revision) = (manifest.to_json(), manifest.revision());
        let expected: Option<&[u8]> = expected.as_ref().map(|hash| hash.0.as_slice());
        let visibility = manifest.visibility.as_str();
        let update = "UPDATE steno.session SET manifest = $2, revision = $3, visibility = $4
            WHERE key = $1 AND revision IS NOT DISTINCT FROM $5";
        let changed = self.run("replace the manifest of a session", |client| {
            let revision = revision.0.as_slice();
            client.execute(update, &[&session, &text, &revision, &visibility, &expected])
        })?;
        Ok(changed == 1)
    }

    pub(crate) fn clear_session(&mut self, key: &SessionKey) -> Result<(), TeamError> {
        self.run("clear a session", |client| {
            let sql = "SELECT steno.clear_session($1, $2)";
            client.execute(sql, &[&key.agent, &key.id.as_str()])
        })?;
        Ok(())
    }

    pub(crate) fn read_frame(
        &mut self,
        key: &SessionKey,
        frame: &FrameLink,
    ) -> Result<Option<Vec<u8>>, TeamError> {
        let sql = "SELECT f.stored FROM steno.session s JOIN steno.frame f ON f.session = s.key
            WHERE s.owner = $1::text::name AND s.agent = $2 AND s.id = $3 AND f.hash = $4";
        let hash = frame.hash.0.as_slice();
        let row = self.run("read a frame", |client| {
            client.query_opt(sql, &[&key.owner, &key.agent, &key.id.as_str(), &hash])
        })?;
        Ok(row.map(|row| row.get(0)))
    }

    pub(crate) fn list_tombstones(&mut self) -> Result<Vec<RemoteTombstone>, TeamError> {
        let sql = "SELECT owner::text, agent, id, tombstone FROM steno.forgotten";
        let rows = self.run("list what was forgotten", |client| client.query(sql, &[]))?;
        let mut tombstones = Vec::new();
        for row in &rows {
            let key = key_from_row(row);
            let read: Option<RemoteTombstone> = serde_json::from_str(row.get(3)).ok();
            tombstones.extend(read.filter(|read| key.as_ref() == Some(&read.key)));
        }
        Ok(tombstones)
    }

    pub(crate) fn forget_session(&mut self, forgotten: &RemoteTombstone) -> Result<(), TeamError> {
        let text = serde_json::to_string(forgotten).expect("a tombstone has only texts");
        let (agent, id) = (forgotten.key.agent.clone(), forgotten.key.id.to_string());
        self.run("forget a session", |client| {
            client.execute("SELECT steno.forget($1, $2, $3)", &[&agent, &id, &text])
        })?;
        Ok(())
    }
}

/// What a database or the connection to it says.
pub(crate) struct DatabaseFailure(String);

impl From<postgres::Error> for DatabaseFailure {
    fn from(error: postgres::Error) -> Self {
        Self(describe(&error))
    }
}

impl From<std::io::Error> for DatabaseFailure {
    fn from(error: std::io::Error) -> Self {
        Self(error.to_string())
    }
}

/// Name and start of each month around a year, and of the one after the last, in milliseconds since 1970.
fn month_starts(year: i16) -> Vec<(String, i64)> {
    let mut months = Vec::new();
    for year in year - YEARS_AROUND..=year + YEARS_AROUND + 1 {
        for month in 1..=12 {
            let start = jiff::civil::date(year, month, 1).to_zoned(jiff::tz::TimeZone::UTC);
            let start = start.map_or(0, |start| start.timestamp().as_millisecond());
            months.push((format!("entry_{year}_{month:02}"), start));
        }
    }
    months.truncate(12 * (2 * YEARS_AROUND as usize + 1) + 1);
    months
}

fn key_from_row(row: &Row) -> Option<SessionKey> {
    let id: &str = row.get(2);
    Some(SessionKey { owner: row.get(0), agent: row.get(1), id: id.parse().ok()? })
}

fn revision_from_row(row: &Row) -> Option<(SessionKey, FrameHash)> {
    Some((key_from_row(row)?, hash_from_bytes(row.get(3))?))
}

fn hash_from_bytes(bytes: &[u8]) -> Option<FrameHash> {
    bytes.try_into().ok().map(FrameHash)
}

/// What an error says, without values of a query.
pub(crate) fn describe(error: &postgres::Error) -> String {
    match error.as_db_error() {
        Some(database) => database.message().to_owned(),
        None => {
            let mut text = error.to_string();
            let mut cause = std::error::Error::source(error);
            while let Some(below) = cause {
                text.push_str(&format!(": {below}"));
                cause = below.source();
            }
            text
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn months_are_those_of_three_years() {
        let months = month_starts(2026);
        assert_eq!(months.len(), 37, "the last one ends the one before");
        assert_eq!(months[0], ("entry_2025_01".to_owned(), 1_735_689_600_000));
        assert_eq!(months[36].0, "entry_2028_01");
    }
}
