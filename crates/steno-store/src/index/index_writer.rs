//! Writes sessions to the index: only their new entries, some dozen megabytes per transaction.
//!
//! After each transaction the index has the first entries of a session and their number. A later process, also after a
//! crash, compares the hash over those entries and continues after them.

use rusqlite::{CachedStatement, OptionalExtension, named_params, params};

use super::refresh::MAX_BATCH_BYTES;
use super::session_draft::{IndexedEntry, PreparedSession, ROW_OVERHEAD_BYTES};
use super::stored_name::StoredName;
use super::text_blocks::{TextHash, TextPacker};
use super::text_folding::fold_text;
use super::usage_tables::UsageTables;
use super::{Index, IndexError, schema};
use crate::cost::bill::signed_counts;
use steno_model::timestamp::Timestamp;

impl Index {
    /// Writes the missing entries of sessions to the index.
    pub fn write_sessions(&self, sessions: &[PreparedSession]) -> Result<(), IndexError> {
        self.write_all_sessions(sessions).map(|_| ())
    }

    /// As [`Self::write_sessions`], and returns whether all are written. A part is not, if an earlier part is missing.
    pub(super) fn write_all_sessions(
        &self,
        sessions: &[PreparedSession],
    ) -> Result<bool, IndexError> {
        if sessions.is_empty() {
            return Ok(true);
        }
        self.wrap_error(schema::configure_writer(&self.connection))?;
        let mut writer = self.wrap_error(IndexWriter::new(self))?;
        self.wrap_error(self.connection.execute_batch("BEGIN IMMEDIATE"))?;
        let all = sessions
            .iter()
            .try_fold(true, |all, session| Ok(writer.write_session(session)? && all));
        match all.and_then(|all| writer.flush_texts().map(|()| all)) {
            Ok(all) => {
                self.wrap_error(self.connection.execute_batch("COMMIT"))?;
                Ok(all)
            }
            Err(error) => {
                // The first error is returned; one of the rollback is ignored.
                let _ = self.connection.execute_batch("ROLLBACK");
                Err(error)
            }
        }
    }

    /// Removes a session. Its texts stay, because other sessions may share them.
    pub(super) fn remove_session(&self, session: i64) -> Result<(), IndexError> {
        self.clear_session(session)?;
        self.execute_for_session("DELETE FROM session WHERE id = ?1", session)
    }

    /// Removes the entries of a session.
    fn clear_session(&self, session: i64) -> Result<(), IndexError> {
        self.execute_for_session("DELETE FROM entry WHERE session = ?1", session)?;
        let mut books = UsageTables::new(self);
        books.remove_session(session)?;
        books.write_rollups()?;
        self.execute_for_session(
            "UPDATE session SET taken = 0, digest = NULL, kept = -1 WHERE id = ?1",
            session,
        )
    }

    fn execute_for_session(&self, sql: &str, session: i64) -> Result<(), IndexError> {
        self.wrap_error(self.connection.execute(sql, [session])).map(|_| ())
    }
}

/// What the index has of a session: its first entries.
struct IndexedPrefix {
    id: i64,
    /// How many of its entries are written.
    written_entries: usize,
    /// Whether the session facts for those entries are written too.
    is_complete: bool,
}

struct IndexWriter<'a> {
    index: &'a Index,
    packer: TextPacker,
    insert_entry_statement: CachedStatement<'a>,
    insert_text_statement: CachedStatement<'a>,
    insert_hash_statement: CachedStatement<'a>,
    insert_words_statement: CachedStatement<'a>,
    find_text_statement: CachedStatement<'a>,
    /// Bytes written since the last commit.
    uncommitted_bytes: usize,
}

impl<'a> IndexWriter<'a> {
    fn new(index: &'a Index) -> rusqlite::Result<Self> {
        let prepare = |sql| index.connection.prepare_cached(sql);
        Ok(Self {
            index,
            packer: TextPacker::default(),
            insert_entry_statement: prepare(
                "INSERT INTO entry VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
            )?,
            insert_text_statement: prepare(
                "INSERT INTO text (block, start, length) VALUES (?1, ?2, ?3)",
            )?,
            insert_hash_statement: prepare("INSERT INTO text_hash (hash, text) VALUES (?1, ?2)")?,
            insert_words_statement: prepare(
                "INSERT INTO words (rowid, text, parts) VALUES (?1, ?2, ?3)",
            )?,
            find_text_statement: prepare("SELECT text FROM text_hash WHERE hash = ?1")?,
            uncommitted_bytes: 0,
        })
    }

    /// Writes one session in as many transactions as it needs. Returns whether it is written.
    fn write_session(&mut self, prepared: &PreparedSession) -> Result<bool, IndexError> {
        let mut standing = self.find_written(prepared)?;
        let mut billed = if standing.is_complete { standing.written_entries } else { 0 };
        while standing.written_entries < prepared.end_number() {
            if standing.written_entries < prepared.first_number {
                return Ok(false);
            }
            if self.uncommitted_bytes >= MAX_BATCH_BYTES {
                self.save_progress(&standing, prepared)?;
                self.commit_step()?;
                standing = self.find_written(prepared)?;
                billed = billed.min(standing.written_entries);
                continue;
            }
            let row = &prepared.rows[standing.written_entries - prepared.first_number];
            let text = row.text.map(|hash| self.text_id(prepared, hash)).transpose()?;
            self.insert_entry(&standing, row, text)?;
            self.uncommitted_bytes += ROW_OVERHEAD_BYTES;
            standing.written_entries += 1;
        }
        if standing.written_entries < prepared.first_number {
            return Ok(false);
        }
        if standing.written_entries == prepared.end_number() {
            self.save_progress(&standing, prepared)?;
        }
        if !prepared.is_part {
            self.update_facts(standing.id, prepared)?;
        }
        let mut books = UsageTables::new(self.index);
        books.enter_session(standing.id, prepared, billed)?;
        books.write_rollups()?;
        self.uncommitted_bytes += ROW_OVERHEAD_BYTES;
        if self.uncommitted_bytes >= MAX_BATCH_BYTES {
            self.commit_step()?;
        }
        Ok(true)
    }

    /// Commits, so that other processes get the lock.
    fn commit_step(&mut self) -> Result<(), IndexError> {
        self.uncommitted_bytes = 0;
        self.flush_texts()?;
        self.index.wrap_error(self.index.connection.execute_batch("COMMIT; BEGIN IMMEDIATE"))
    }

    /// Writes the open text block.
    fn flush_texts(&mut self) -> Result<(), IndexError> {
        self.index.wrap_error(self.packer.flush(&self.index.connection))
    }

    /// Finds what the index has of the session. Removes its entries if they differ from the given ones.
    fn find_written(&self, prepared: &PreparedSession) -> Result<IndexedPrefix, IndexError> {
        let connection = &self.index.connection;
        let names = (prepared.session.agent.as_str(), prepared.session.id.as_str());
        let query = "SELECT id, taken, digest, kept FROM session WHERE agent = ?1 AND name = ?2";
        let row = connection.prepare_cached(query).and_then(|mut statement| {
            let columns = |row: &rusqlite::Row<'_>| {
                Ok((
                    row.get(0)?,
                    row.get::<_, u32>(1)?,
                    row.get::<_, Option<TextHash>>(2)?,
                    row.get::<_, i64>(3)?,
                ))
            };
            statement.query_row(names, columns).optional()
        });
        let Some((id, taken, digest, kept)): Option<(i64, u32, _, _)> =
            self.index.wrap_error(row)?
        else {
            let sql = "INSERT INTO session (agent, name) VALUES (?1, ?2)";
            self.index.wrap_error(
                connection.prepare_cached(sql).and_then(|mut new| new.execute(names)),
            )?;
            return Ok(IndexedPrefix {
                id: connection.last_insert_rowid(),
                written_entries: 0,
                is_complete: false,
            });
        };
        let taken = taken as usize;
        // A later part shows whether the entries beyond are the same.
        let is_ahead = prepared.is_part && taken > prepared.end_number();
        if is_ahead || (prepared.digest_at(taken) == digest && taken <= prepared.end_number()) {
            return Ok(IndexedPrefix { id, written_entries: taken, is_complete: kept >= 0 });
        }
        self.index.clear_session(id)?;
        Ok(IndexedPrefix { id, written_entries: 0, is_complete: false })
    }

    fn save_progress(
        &self,
        standing: &IndexedPrefix,
        prepared: &PreparedSession,
    ) -> Result<(), IndexError> {
        let last = prepared.digest_at(standing.written_entries);
        let sql = "UPDATE session SET taken = ?2, digest = ?3, kept = -1 WHERE id = ?1";
        let connection = &self.index.connection;
        let done = connection.prepare_cached(sql).and_then(|mut update| {
            update.execute(params![standing.id, standing.written_entries as i64, last])
        });
        self.index.wrap_error(done).map(|_| ())
    }

    fn insert_entry(
        &mut self,
        at: &IndexedPrefix,
        row: &IndexedEntry,
        text: Option<i64>,
    ) -> Result<(), IndexError> {
        let done = self.insert_entry_statement.execute(params![
            at.id,
            at.written_entries as i64,
            row.time,
            StoredName(row.role.as_str()),
            StoredName(row.kind.as_str()),
            row.tool,
            row.model,
            StoredName(&row.source),
            row.is_failure,
            text
        ]);
        self.index.wrap_error(done).map(|_| ())
    }

    /// The id of a text. Inserts the text if the index lacks it.
    fn text_id(&mut self, prepared: &PreparedSession, hash: TextHash) -> Result<i64, IndexError> {
        let known = self.find_text_statement.query_row([hash], |row| row.get(0)).optional();
        if let Some(id) = self.index.wrap_error(known)? {
            return Ok(id);
        }
        let text = &prepared.texts[&hash];
        self.uncommitted_bytes += text.len();
        let index = self.index;
        index.wrap_error(self.insert_text(hash, text))
    }

    /// Inserts a text that the index lacks.
    fn insert_text(&mut self, hash: TextHash, text: &str) -> rusqlite::Result<i64> {
        let connection = &self.index.connection;
        let (block, start) = self.packer.next_location(connection)?;
        self.insert_text_statement.execute(params![block, start, text.len() as i64])?;
        let id = connection.last_insert_rowid();
        self.insert_hash_statement.execute(params![hash, id])?;
        self.packer.push(connection, text)?;
        let folded = fold_text(text);
        self.insert_words_statement.execute(params![id, folded.text, folded.parts])?;
        Ok(id)
    }

    /// Updates the facts of a session.
    fn update_facts(&self, id: i64, prepared: &PreparedSession) -> Result<(), IndexError> {
        let session = &prepared.session;
        let moment = |at: Option<Timestamp>| at.map(|at| at.instant().as_millisecond());
        let models = serde_json::to_string(&session.models).expect("names are text");
        let [input, cache_read, cache_write, cache_write_5m, cache_write_1h, output, reasoning] =
            signed_counts(session.totals.usage.numbers());
        let done =
            self.index.connection.prepare_cached(UPDATE_SESSION_FACTS).and_then(|mut update| {
                update.execute(named_params! {
                    ":id": id, ":native_id": session.native_id, ":project": session.project,
                    ":branch": session.branch, ":title": session.title,
                    ":started": session.started.map(|at| at.to_string()),
                    ":ended": session.ended.map(|at| at.to_string()),
                    ":started_at": moment(session.started), ":ended_at": moment(session.ended),
                    ":status": session.status.as_str(), ":stop_reason": session.stop_reason,
                    ":models": models, ":thread": session.thread, ":parent": session.parent,
                    ":subagent_files": session.subagent_files as i64,
                    ":entries": session.totals.entries as i64,
                    ":input": input, ":cache_read": cache_read, ":cache_write": cache_write,
                    ":cache_write_5m": cache_write_5m, ":cache_write_1h": cache_write_1h,
                    ":output": output, ":reasoning": reasoning, ":cost": session.totals.cost,
                    ":trouble": prepared.damage.as_ref().map(|damage| &damage.problem),
                    ":damage_stamp": prepared.damage.as_ref().map(|damage| damage.files_stamp),
                    ":kept": prepared.vault_bytes.map_or(-1, |kept| kept as i64),
                })
            });
        self.index.wrap_error(done).map(|_| ())
    }
}

const UPDATE_SESSION_FACTS: &str = "UPDATE session SET native_id = :native_id, project = :project, branch = :branch,
    title = :title, started = :started, ended = :ended, started_at = :started_at, ended_at = :ended_at,
    status = :status, stop_reason = :stop_reason, models = :models, thread = :thread,
    parent = :parent, subagent_files = :subagent_files, entries = :entries, input = :input,
    cache_read = :cache_read, cache_write = :cache_write, cache_write_5m = :cache_write_5m,
    cache_write_1h = :cache_write_1h, output = :output, reasoning = :reasoning, cost = :cost,
    trouble = :trouble, damage_stamp = :damage_stamp, kept = :kept WHERE id = :id";
