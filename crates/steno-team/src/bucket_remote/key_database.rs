//! People and keys in a small PostgreSQL database beside the bucket.
//!
//! The schema is `steno_keys`, so that it can share a database with a remote. Row level security decides who gets the
//! key of a session.

use std::collections::HashMap;
use std::fmt;

use postgres::{Client, Row};
use steno_cipher::DataKey;

use crate::bucket_remote::session_keys::{BucketMarker, LiveKey};
use crate::manifest::SessionKey;
use crate::postgres_remote::connection::connect;
use crate::postgres_remote::{PostgresPassword, describe};
use crate::remote_tombstone::RemoteTombstone;
use crate::team_error::TeamError;
use steno_store::session_owners::SessionVisibility;

const KEY_SCHEMA: &str = include_str!("key_schema.sql");

/// The version of the schema.
const KEY_SCHEMA_VERSION: i64 = 1;

/// A connected database with keys.
pub(crate) struct KeyDatabase {
    client: Client,
    url: String,
    owner: String,
}

impl fmt::Debug for KeyDatabase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyDatabase").field("url", &self.url).finish_non_exhaustive()
    }
}

impl KeyDatabase {
    pub(crate) fn connect(
        url: &str,
        password: Option<&PostgresPassword>,
    ) -> Result<Self, TeamError> {
        let mut client = connect(url, password)?;
        let row = client.query_one("SELECT session_user::text", &[]);
        let row = row.map_err(|error| TeamError::Connection {
            remote: url.to_owned(),
            reason: describe(&error),
        })?;
        Ok(Self { client, url: url.to_owned(), owner: row.get(0) })
    }

    pub(crate) fn owner(&self) -> &str {
        &self.owner
    }

    fn run<T>(
        &mut self,
        action: &'static str,
        work: impl FnOnce(&mut Client) -> Result<T, postgres::Error>,
    ) -> Result<T, TeamError> {
        work(&mut self.client).map_err(|error| TeamError::Database {
            remote: self.url.clone(),
            action,
            reason: describe(&error),
        })
    }

    /// Version of the schema and id of the bucket; `None` without a schema.
    fn read_meta(&mut self) -> Result<Option<(i64, String)>, TeamError> {
        self.run("read the version of the keys", |client| {
            let found =
                client.query_one("SELECT to_regclass('steno_keys.meta') IS NOT NULL", &[])?;
            if !found.get::<_, bool>(0) {
                return Ok(None);
            }
            let sql = "SELECT v.value::bigint, b.value FROM steno_keys.meta v, steno_keys.meta b
                WHERE v.name = 'version' AND b.name = 'bucket'";
            Ok(client.query_opt(sql, &[])?.map(|row| (row.get(0), row.get(1))))
        })
    }

    pub(crate) fn check_version(&mut self, marker: &BucketMarker) -> Result<(), TeamError> {
        let remote = self.url.clone();
        let Some((found, bucket)) = self.read_meta()? else {
            return Err(TeamError::NotInitialised(remote));
        };
        if found > KEY_SCHEMA_VERSION {
            return Err(TeamError::NewerSchema { remote, found, known: KEY_SCHEMA_VERSION });
        }
        if found < KEY_SCHEMA_VERSION {
            return Err(TeamError::OlderSchema { remote, found, needed: KEY_SCHEMA_VERSION });
        }
        if bucket != marker.id.to_string() {
            return Err(TeamError::OtherKeys(remote));
        }
        self.check_membership()
    }

    /// Checks that this role belongs to a team, or is the owner of the schema. To others, row level security shows no key.
    fn check_membership(&mut self) -> Result<(), TeamError> {
        let sql = "SELECT steno_keys.own_team() IS NOT NULL OR pg_has_role(session_user, nspowner, 'MEMBER')
            FROM pg_namespace WHERE nspname = 'steno_keys'";
        let row = self.run("look for your team", |client| client.query_one(sql, &[]))?;
        let not_member =
            || TeamError::NotMember { role: self.owner.clone(), remote: self.url.clone() };
        row.get::<_, bool>(0).then_some(()).ok_or_else(not_member)
    }

    pub(crate) fn initialise(&mut self, marker: &BucketMarker) -> Result<bool, TeamError> {
        match self.check_version(marker) {
            Err(TeamError::NotInitialised(_)) => {}
            other => return other.map(|()| false),
        }
        let (version, bucket) = (KEY_SCHEMA_VERSION.to_string(), marker.id.to_string());
        self.run("create the schema of the keys", |client| {
            let mut transaction = client.transaction()?;
            transaction.batch_execute(KEY_SCHEMA)?;
            let insert = "INSERT INTO steno_keys.meta VALUES ('version', $1), ('bucket', $2)";
            transaction.execute(insert, &[&version, &bucket])?;
            transaction.commit()
        })?;
        Ok(true)
    }

    pub(crate) fn list_visible(
        &mut self,
    ) -> Result<HashMap<SessionKey, Option<LiveKey>>, TeamError> {
        let sql = "SELECT owner::text, agent, id, key_id, key FROM steno_keys.session_key";
        let rows = self.run("list keys", |client| client.query(sql, &[]))?;
        let visible = rows.iter().filter_map(|row| {
            let id: &str = row.get(2);
            let key = SessionKey { owner: row.get(0), agent: row.get(1), id: id.parse().ok()? };
            Some((key, Some(live_key(row, 3)?)))
        });
        Ok(visible.collect())
    }

    pub(crate) fn find(&mut self, key: &SessionKey) -> Result<Option<LiveKey>, TeamError> {
        let sql = "SELECT key_id, key FROM steno_keys.session_key
            WHERE owner = $1::text::name AND agent = $2 AND id = $3";
        let row = self.run("read a key", |client| {
            client.query_opt(sql, &[&key.owner, &key.agent, &key.id.as_str()])
        })?;
        Ok(row.and_then(|row| live_key(&row, 0)))
    }

    pub(crate) fn find_or_create(
        &mut self,
        key: &SessionKey,
        visibility: SessionVisibility,
    ) -> Result<LiveKey, TeamError> {
        let new = LiveKey::generate();
        let sql = "SELECT key_id, key FROM steno_keys.create_key($1, $2, $3, $4, $5)";
        let row = self.run("create a key", |client| {
            let (id, bytes) = (new.id.to_string(), new.key.as_bytes());
            client
                .query_opt(sql, &[&key.agent, &key.id.as_str(), &visibility.as_str(), &id, &bytes])
        })?;
        row.and_then(|row| live_key(&row, 0)).ok_or_else(|| TeamError::Forgotten(key.to_string()))
    }

    pub(crate) fn replace(&mut self, key: &SessionKey) -> Result<(), TeamError> {
        let new = LiveKey::generate();
        let (id, bytes) = (new.id.to_string(), new.key.as_bytes());
        self.run("replace a key", |client| {
            let sql = "SELECT steno_keys.replace_key($1, $2, $3, $4)";
            client.execute(sql, &[&key.agent, &key.id.as_str(), &id, &bytes])
        })?;
        Ok(())
    }

    pub(crate) fn forget(&mut self, forgotten: &RemoteTombstone) -> Result<(), TeamError> {
        let text = serde_json::to_string(forgotten).expect("a tombstone has only texts");
        let key = &forgotten.key;
        self.run("forget a session", |client| {
            let sql = "SELECT steno_keys.forget($1, $2, $3)";
            client.execute(sql, &[&key.agent, &key.id.as_str(), &text])
        })?;
        Ok(())
    }

    pub(crate) fn list_tombstones(&mut self) -> Result<Vec<RemoteTombstone>, TeamError> {
        let sql = "SELECT owner::text, agent, id, tombstone FROM steno_keys.forgotten";
        let rows = self.run("list what was forgotten", |client| client.query(sql, &[]))?;
        let tombstones = rows.iter().filter_map(|row| {
            let read: RemoteTombstone = serde_json::from_str(row.get(3)).ok()?;
            let stated: [&str; 3] = [row.get(0), row.get(1), row.get(2)];
            let SessionKey { owner, agent, id } = &read.key;
            (stated == [owner.as_str(), agent, id.as_str()]).then_some(read)
        });
        Ok(tombstones.collect())
    }
}

/// The id and the key in two columns.
fn live_key(row: &Row, first: usize) -> Option<LiveKey> {
    let (id, key): (&str, &[u8]) = (row.get(first), row.get(first + 1));
    Some(LiveKey { id: id.parse().ok()?, key: DataKey::from_bytes(key)? })
}
