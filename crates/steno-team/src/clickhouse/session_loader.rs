//! Loads the sessions of a remote into the index. It keeps no state of its own: the database knows what it has.
//!
//! It can be killed at any time and run twice at once. A session's row is written after its entries and usage, so a load
//! that was interrupted is done again; rows that are written twice are the same rows.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::json;
use steno_model::Timestamp;
use steno_model::durable::OnPath;
use steno_store::index::session_rows::USAGE_KEY_VERSION;
use steno_store::index::word_tokens::WordTokenizer;
use steno_vault::{SessionDir, Vault};

use super::loader_rows::{ENTRY_COLUMNS, RowEncoder, USAGE_COLUMNS, hex_text};
use super::session_scan::{SessionPart, SessionScan};
use super::{ClickHouseIndex, MAX_NAMED_SESSIONS, integer, quote, quote_list, text};
use crate::frame_chain::FrameHash;
use crate::manifest::{SessionKey, SessionManifest};
use crate::remote::TeamRemote;
use crate::session_receiver::SessionReceiver;
use crate::team_error::TeamError;
use steno_store::session_owners::SessionVisibility;

/// The size of the rows that are sent at once.
const MAX_SENT_BYTES: usize = 8 << 20;

/// A session with more parts is loaded anew as one.
const MAX_PARTS: usize = 64;

const SESSION_COLUMNS: &str = "org, session, owner, agent, id, project, title, thread, started, ended, cost, tokens, entries, digest, parts, revision, is_clean";

/// What a load has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LoadSummary {
    /// Sessions with something new.
    pub sessions: u64,
    /// Sessions without anything new.
    pub unchanged: u64,
    /// Sessions that only their owners may see, and so are not loaded.
    pub private: u64,
    /// Written rows of entries.
    pub entries: u64,
    /// Written rows of usage.
    pub usage: u64,
    /// Sessions removed from the index, as the remote no longer shows them.
    pub removed: u64,
    /// Sessions that could not be read from the remote.
    pub failed: u64,
}

/// What the index has of a session.
struct LoadedRevision {
    revision: String,
    is_clean: bool,
}

/// The entries of a session that the index has.
#[derive(Default)]
struct LoadedEntries {
    count: usize,
    /// The digest of the last of them.
    digest: String,
    parts: Vec<String>,
}

/// A session that was read from the remote.
struct StagedSession {
    dir: SessionDir,
    _folder: tempfile::TempDir,
}

/// Rows that are not written yet, in the order in which they must be: what a session's row states is there before it.
#[derive(Debug, Default)]
struct LoadBatch {
    /// The first rows of new sessions, by which a killed load can be found.
    announced: Vec<u8>,
    entries: Vec<u8>,
    usage: Vec<u8>,
    sessions: Vec<u8>,
}

/// Loads one remote.
#[derive(Debug)]
pub struct SessionLoader<'a> {
    index: &'a ClickHouseIndex,
    remote: &'a mut TeamRemote,
    /// A folder for what is being read.
    folder: PathBuf,
    tokenizer: WordTokenizer,
    batch: LoadBatch,
    summary: LoadSummary,
}

impl<'a> SessionLoader<'a> {
    /// Checks both sides. `folder` is for what is being read; nothing stays in it.
    pub fn begin(
        index: &'a ClickHouseIndex,
        remote: &'a mut TeamRemote,
        folder: &Path,
    ) -> Result<Self, TeamError> {
        remote.check_version()?;
        index.check_version()?;
        let tokenizer = WordTokenizer::new()?;
        let (folder, summary) = (folder.to_owned(), LoadSummary::default());
        let batch = LoadBatch::default();
        Ok(Self { index, remote, folder, tokenizer, batch, summary })
    }

    /// Loads what the index lacks, and removes what the remote no longer shows. `report` is called with each session, and
    /// with what is wrong with it.
    pub fn load(
        &mut self,
        report: &mut dyn FnMut(&SessionKey, Option<&TeamError>),
    ) -> Result<LoadSummary, TeamError> {
        let mut loaded = self.list_loaded()?;
        let revisions = self.remote.list_revisions()?;
        let mut shown = BTreeSet::new();
        for (key, revision) in &revisions {
            let name = session_name(key);
            let known = loaded.get(&name);
            if known.is_some_and(|known| known.revision == loaded_revision(*revision)) {
                self.summary.unchanged += 1;
                shown.insert(name);
                continue;
            }
            match self.load_session(key, known.is_some()) {
                Ok(true) => {
                    report(key, None);
                    shown.insert(name);
                }
                Ok(false) => {}
                Err(error @ TeamError::Damaged { .. }) => {
                    self.summary.failed += 1;
                    report(key, Some(&error));
                    shown.insert(name);
                }
                Err(error) => return Err(error),
            }
        }
        self.flush()?;
        let is_gone = |(name, _): &(&String, &LoadedRevision)| !shown.contains(*name);
        let gone: Vec<String> =
            loaded.iter().filter(is_gone).map(|(name, _)| name.clone()).collect();
        self.summary.removed = gone.len() as u64;
        self.remove_sessions(&gone)?;
        self.remove_forgotten()?;
        loaded.clear();
        self.clean_sessions()?;
        Ok(self.summary)
    }

    fn list_loaded(&self) -> Result<HashMap<String, LoadedRevision>, TeamError> {
        let own = self.index.own_rows();
        let sql =
            format!("SELECT session, revision, is_clean FROM steno_session FINAL WHERE {own}");
        let rows = self.index.rows("list the loaded sessions", &sql)?;
        let session = |row: &super::AnswerRow| {
            let revision = row.get(1)?.as_str()?.to_owned();
            let is_clean = integer(row.get(2)?)? != 0;
            Some((text(row.first()?)?, LoadedRevision { revision, is_clean }))
        };
        Ok(rows.iter().filter_map(session).collect())
    }

    /// Loads a session. Returns whether the index may have it.
    fn load_session(&mut self, key: &SessionKey, is_known: bool) -> Result<bool, TeamError> {
        let Some(manifest) = self.remote.read_manifest(key)? else { return Ok(false) };
        if manifest.visibility == SessionVisibility::Private {
            self.summary.private += 1;
            return Ok(false);
        }
        let staged = self.stage_session(&manifest)?;
        let name = session_name(key);
        let loaded = if is_known { self.loaded_entries(&name)? } else { LoadedEntries::default() };
        let session = SessionScan::read(&staged.dir, loaded.count)?;
        let is_continued = session.counted_digest.as_ref().map(|digest| hex_text(digest))
            == Some(loaded.digest)
            && (1..MAX_PARTS).contains(&loaded.parts.len());
        let (from, mut parts) =
            if is_continued { (loaded.count, loaded.parts) } else { (0, Vec::new()) };
        if !is_known {
            let row = self.session_row(&manifest, &session, &[], "");
            self.batch.announced.extend_from_slice(row.as_bytes());
        }
        let revision = loaded_revision(manifest.revision());
        if let Some(last) = session.last_digest.filter(|_| session.entries > from) {
            let part = hex_text(&last);
            session.for_each_part(&staged.dir, &mut |rows| {
                self.add_entries(&name, &rows, from, &part)
            })?;
            self.summary.entries += (session.entries - from) as u64;
            parts.push(part);
        }
        let encoder = RowEncoder { org: &self.index.url.org, session: &name };
        encoder.push_usage(&session.usage, &revision, &mut self.batch.usage);
        self.summary.usage += session.usage.len() as u64;
        let row = self.session_row(&manifest, &session, &parts, &revision);
        self.batch.sessions.extend_from_slice(row.as_bytes());
        self.summary.sessions += 1;
        Ok(true)
    }

    /// Reads the frames of a session from the remote into a folder.
    fn stage_session(&mut self, manifest: &SessionManifest) -> Result<StagedSession, TeamError> {
        let folder = tempfile::Builder::new().prefix("steno-load-").tempdir_in(&self.folder);
        let folder = folder.on("create a folder in", &self.folder)?;
        let vault = Vault::new(folder.path().join("vault"));
        let dir = manifest.key.session_dir(&vault)?;
        let commit = vault.begin_commit();
        let mut receiver = SessionReceiver { key: &manifest.key, dir: &dir, commit };
        for stream in &manifest.files {
            receiver.receive_stream(self.remote, stream)?;
        }
        receiver.commit.finish()?;
        Ok(StagedSession { dir, _folder: folder })
    }

    /// What the index has of a session.
    fn loaded_entries(&self, name: &str) -> Result<LoadedEntries, TeamError> {
        let (own, name) = (self.index.own_rows(), quote(name));
        let sql = format!(
            "SELECT entries, digest, parts FROM steno_session FINAL WHERE {own} AND session = {name}"
        );
        let found = self.index.rows("compare a session", &sql)?;
        let loaded = found.first().and_then(|row| {
            let count = usize::try_from(integer(row.first()?)?).ok()?;
            let parts = row.get(2)?.as_array()?.iter().filter_map(text).collect();
            Some(LoadedEntries { count, digest: text(row.get(1)?)?, parts })
        });
        Ok(loaded.unwrap_or_default())
    }

    /// Adds the entries of a part from this number on to the batch. It is written when it is large enough.
    fn add_entries(
        &mut self,
        name: &str,
        rows: &SessionPart<'_>,
        from: usize,
        part: &str,
    ) -> Result<(), TeamError> {
        for (number, entry) in rows.entries_from(from) {
            let encoder = RowEncoder { org: &self.index.url.org, session: name };
            let row = encoder.entry_row(number, entry, part);
            row.push(rows.started, &mut self.tokenizer, &mut self.batch.entries)?;
            if self.batch.entries.len() >= MAX_SENT_BYTES {
                self.flush()?;
            }
        }
        Ok(())
    }

    /// Writes the rows of the batch.
    fn flush(&mut self) -> Result<(), TeamError> {
        let LoadBatch { announced, entries, usage, sessions } = std::mem::take(&mut self.batch);
        for (table, columns, lines) in [
            ("steno_session", SESSION_COLUMNS, announced),
            ("steno_entry", ENTRY_COLUMNS, entries),
            ("steno_usage", USAGE_COLUMNS, usage),
            ("steno_session", SESSION_COLUMNS, sessions),
        ] {
            if !lines.is_empty() {
                self.index.insert(table, columns, lines)?;
            }
        }
        Ok(())
    }

    /// The row that states what of a session counts. Without a revision, nothing does.
    fn session_row(
        &self,
        manifest: &SessionManifest,
        session: &SessionScan,
        parts: &[String],
        revision: &str,
    ) -> String {
        let key = &manifest.key;
        let heading = &session.heading;
        let moment = |at: Option<Timestamp>| at.map(|at| at.instant().as_millisecond());
        let usage = heading.totals.usage;
        let tokens = usage.prompt_tokens().saturating_add(usage.output);
        let last = session.last_digest.filter(|_| !revision.is_empty());
        let row = json!({
            "org": self.index.url.org, "session": session_name(key), "owner": key.owner,
            "agent": key.agent, "id": key.id.as_str(),
            "project": heading.project.as_deref().unwrap_or_default(),
            "title": heading.title.as_deref().unwrap_or_default(),
            "thread": heading.thread.as_deref().unwrap_or_default(),
            "started": moment(heading.started), "ended": moment(heading.ended),
            "cost": heading.totals.cost, "tokens": i64::try_from(tokens).unwrap_or(i64::MAX),
            "entries": session.entries,
            "digest": last.map(|last| hex_text(&last)).unwrap_or_default(),
            "parts": parts, "revision": revision, "is_clean": 0,
        });
        format!("{row}\n")
    }

    /// Removes sessions with all rows. Their own rows go last, so that an interrupted removal is repeated.
    fn remove_sessions(&self, names: &[String]) -> Result<(), TeamError> {
        let own = self.index.own_rows();
        for names in names.chunks(MAX_NAMED_SESSIONS) {
            let names = quote_list(names.iter().map(String::as_str));
            for table in ["steno_entry", "steno_usage", "steno_session"] {
                let sql = format!("DELETE FROM {table} WHERE {own} AND session IN {names}");
                self.index.client.run("remove sessions", &sql)?;
            }
        }
        Ok(())
    }

    /// Removes rows of forgotten sessions that a loader wrote after their removal, and was killed then.
    fn remove_forgotten(&mut self) -> Result<(), TeamError> {
        let tombstones = self.remote.list_tombstones()?;
        let names: Vec<String> = tombstones.iter().map(|one| session_name(&one.key)).collect();
        let own = self.index.own_rows();
        let mut left = Vec::new();
        for names in names.chunks(MAX_NAMED_SESSIONS) {
            let names = quote_list(names.iter().map(String::as_str));
            let sql = format!(
                "SELECT DISTINCT session FROM steno_entry WHERE {own} AND session IN {names}"
            );
            let rows = self.index.rows("look for forgotten sessions", &sql)?;
            left.extend(rows.iter().filter_map(|row| text(row.first()?)));
        }
        self.remove_sessions(&left)
    }

    /// Removes the rows that no longer count of sessions that were loaded since the last time.
    fn clean_sessions(&self) -> Result<(), TeamError> {
        let own = self.index.own_rows();
        let loaded = self.list_loaded()?;
        let unclean = loaded.iter().filter(|(_, session)| !session.is_clean);
        let unclean: Vec<&str> = unclean.map(|(name, _)| name.as_str()).collect();
        for names in unclean.chunks(MAX_NAMED_SESSIONS) {
            let names = quote_list(names.iter().copied());
            let own = format!("{own} AND session IN {names}");
            let current = format!("FROM steno_session FINAL WHERE {own}");
            let stale = [
                (
                    "steno_entry",
                    format!("(session, part) NOT IN (SELECT session, arrayJoin(parts) {current})"),
                ),
                (
                    "steno_usage",
                    format!("(session, revision) NOT IN (SELECT session, revision {current})"),
                ),
            ];
            for (table, condition) in stale {
                let sql = format!("SELECT count() FROM {table} WHERE {own} AND {condition}");
                let rows = self.index.rows("look for rows that no longer count", &sql)?;
                if rows.first().and_then(|row| integer(row.first()?)) != Some(0) {
                    let sql = format!("DELETE FROM {table} WHERE {own} AND {condition}");
                    self.index.client.run("remove rows that no longer count", &sql)?;
                }
            }
            let columns = SESSION_COLUMNS.trim_end_matches("is_clean");
            let sql = format!(
                "INSERT INTO steno_session ({SESSION_COLUMNS}) SETTINGS insert_deduplicate = 0
                SELECT {columns} 1 {current} AND NOT is_clean AND revision != ''"
            );
            self.index.client.run("mark sessions as clean", &sql)?;
        }
        Ok(())
    }

    /// Removes all rows that no session's row names, and erases all removed rows from the disk of the server. Nothing
    /// else may load meanwhile.
    pub fn sweep(&self) -> Result<(), TeamError> {
        let own = self.index.own_rows();
        let current = format!("FROM steno_session FINAL WHERE {own}");
        for (table, column, counted) in
            [("steno_entry", "part", "arrayJoin(parts)"), ("steno_usage", "revision", "revision")]
        {
            let sql = format!(
                "DELETE FROM {table} WHERE {own} AND (session, {column}) NOT IN (SELECT session, {counted} {current})"
            );
            self.index.client.run("remove rows that no longer count", &sql)?;
        }
        for table in ["steno_entry", "steno_usage", "steno_session"] {
            self.index
                .client
                .run("erase removed rows", &format!("OPTIMIZE TABLE {table} FINAL"))?;
        }
        Ok(())
    }
}

/// How the index names what it has of a session: by the remote's revision and the version of the keys of usage.
fn loaded_revision(revision: FrameHash) -> String {
    format!("{revision}-{USAGE_KEY_VERSION}")
}

/// How the index names a session.
fn session_name(key: &SessionKey) -> String {
    format!("{}/{}/{}", key.owner, key.agent, key.id)
}
