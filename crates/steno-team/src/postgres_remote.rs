//! A remote in PostgreSQL 15 or newer.
//!
//! Each person has a role. Row level security decides what a role sees; searching and counting go through functions that
//! check it themselves, as a policy would keep the database from using its text index.

pub(crate) mod connection;
pub(crate) mod folded_words;
mod migration;
mod prepared_client;
mod push_durability;
mod retention;
mod row_upload;
mod rows;
mod search;
pub(crate) mod tls_settings;
mod word_pairs;

use std::collections::HashSet;
use std::fmt;

use postgres::Row;
use steno_model::Timestamp;
use steno_store::index::session_rows::USAGE_KEY_VERSION;
use steno_store::index::word_tokens::WordTokenizer;

use self::connection::connect;
use self::prepared_client::PreparedClient;
use crate::frame_chain::{FrameHash, FrameLink, SentFrame};
use crate::manifest::{SessionKey, SessionManifest};
use crate::remote_tombstone::RemoteTombstone;
use crate::team_error::TeamError;

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
    client: PreparedClient,
    url: String,
    password: Option<PostgresPassword>,
    owner: String,
    now: Timestamp,
    tokenizer: Option<WordTokenizer>,
    /// The own session that is being pushed.
    current: Option<CurrentSession>,
}

/// What is known of an own session in the database.
struct CurrentSession {
    key: SessionKey,
    number: i64,
    /// The frames that it has; `None` if nobody has asked.
    frames: Option<HashSet<FrameHash>>,
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
        let mut client = PreparedClient::new(connect(url, password)?);
        let failed = |error: postgres::Error| TeamError::Connection {
            remote: url.to_owned(),
            reason: describe(&error),
        };
        let row = client.query_one("SELECT session_user::text", &[]).map_err(failed)?;
        let (password, owner) = (password.cloned(), row.get(0));
        let url = url.to_owned();
        Ok(Self { client, url, password, owner, now, tokenizer: None, current: None })
    }

    /// A second connection of the same user.
    pub(crate) fn connect_again(&self) -> Result<Self, TeamError> {
        Self::connect(&self.url, self.password.as_ref(), self.now)
    }

    fn tokenizer(&mut self) -> Result<&mut WordTokenizer, TeamError> {
        match &mut self.tokenizer {
            Some(tokenizer) => Ok(tokenizer),
            none => Ok(none.insert(WordTokenizer::new()?)),
        }
    }

    pub(crate) fn owner(&self) -> &str {
        &self.owner
    }

    /// Turns an error of the database into one of ours.
    fn failure(url: &str, action: &'static str, error: &postgres::Error) -> TeamError {
        TeamError::Database { remote: url.to_owned(), action, reason: describe(error) }
    }

    fn run<T>(
        &mut self,
        action: &'static str,
        work: impl FnOnce(&mut PreparedClient) -> Result<T, postgres::Error>,
    ) -> Result<T, TeamError> {
        work(&mut self.client).map_err(|error| Self::failure(&self.url, action, &error))
    }

    /// The members of this user's team.
    pub(crate) fn list_members(&mut self) -> Result<Vec<String>, TeamError> {
        let sql = "SELECT role::text FROM steno.member WHERE team = (SELECT steno.own_team())";
        let rows = self.run("read the members", |client| client.query(sql, &[]))?;
        Ok(rows.iter().map(|row| row.get(0)).collect())
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
        if let Some(current) = self.current.as_ref().filter(|current| current.key == *key) {
            return Ok(current.number);
        }
        let (agent, id) = (key.agent.as_str(), key.id.as_str());
        let visibility = manifest.visibility.as_str();
        let add = "INSERT INTO steno.session (team, owner, agent, id, visibility, usage_key_version)
            VALUES (steno.own_team(), session_user, $1, $2, $3, $4) ON CONFLICT DO NOTHING RETURNING key";
        match self.client.query_opt(add, &[&agent, &id, &visibility, &USAGE_KEY_VERSION]) {
            Ok(Some(row)) => {
                let (number, frames) = (row.get(0), Some(HashSet::new()));
                self.current = Some(CurrentSession { key: key.clone(), number, frames });
                Ok(number)
            }
            Ok(None) => self.session_number(key),
            Err(error) => Err(self.explain_refusal(key, "add a session", &error)),
        }
    }

    /// An own session cannot be written. Either it was forgotten on another machine, or something failed.
    fn explain_refusal(
        &mut self,
        key: &SessionKey,
        action: &'static str,
        error: &postgres::Error,
    ) -> TeamError {
        self.current = None;
        let sql = "SELECT steno.is_forgotten($1, $2)";
        let is_forgotten = self.client.query_one(sql, &[&key.agent, &key.id.as_str()]);
        match is_forgotten.is_ok_and(|row| row.get(0)) {
            true => TeamError::Forgotten(key.to_string()),
            false => Self::failure(&self.url, action, error),
        }
    }

    fn session_number(&mut self, key: &SessionKey) -> Result<i64, TeamError> {
        if let Some(current) = self.current.as_ref().filter(|current| current.key == *key) {
            return Ok(current.number);
        }
        let sql = "SELECT key FROM steno.session
            WHERE owner = $1::text::name AND agent = $2 AND id = $3";
        let row = self.run("find a session", |client| {
            client.query_opt(sql, &[&key.owner, &key.agent, &key.id.as_str()])
        })?;
        // It was forgotten since it was added.
        let row = row.ok_or_else(|| TeamError::Forgotten(key.to_string()))?;
        let number = row.get(0);
        self.current = Some(CurrentSession { key: key.clone(), number, frames: None });
        Ok(number)
    }

    pub(crate) fn known_frames(
        &mut self,
        manifest: &SessionManifest,
        hashes: &[FrameHash],
    ) -> Result<HashSet<FrameHash>, TeamError> {
        let session = self.own_session(manifest)?;
        let is_known = self.current.as_ref().is_some_and(|current| current.frames.is_some());
        if !is_known {
            let sql = "SELECT hash FROM steno.frame WHERE session = $1";
            let rows = self.run("compare frames", |client| client.query(sql, &[&session]))?;
            let found = rows.iter().filter_map(|row| hash_from_bytes(row.get(0))).collect();
            self.current.as_mut().expect("own_session has set it").frames = Some(found);
        }
        let known = self.current.as_ref().and_then(|current| current.frames.as_ref());
        let is_known = |hash: &&FrameHash| known.is_some_and(|known| known.contains(*hash));
        Ok(hashes.iter().filter(is_known).copied().collect())
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
        if let Err(error) = self.client.execute(insert, &[&session, &hashes, &stored]) {
            return Err(self.explain_refusal(&manifest.key, "send frames", &error));
        }
        if let Some(known) = self.current.as_mut().and_then(|current| current.frames.as_mut()) {
            known.extend(frames.iter().map(|(hash, _)| *hash));
        }
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
        if changed != 1 {
            // Another machine has replaced or removed it.
            self.current = None;
        }
        Ok(changed == 1)
    }

    pub(crate) fn clear_session(&mut self, key: &SessionKey) -> Result<(), TeamError> {
        self.current = None;
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
        self.current = None;
        self.run("forget a session", |client| {
            client.execute("SELECT steno.forget($1, $2, $3)", &[&agent, &id, &text])
        })?;
        Ok(())
    }
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
