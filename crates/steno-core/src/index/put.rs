//! Writes sessions to the index: only their new entries, some dozen megabytes per transaction.
//!
//! After each transaction the index has the first entries of a session and their number. A later process, also after a
//! crash, compares the hash over those entries and continues after them.

use rusqlite::{CachedStatement, OptionalExtension, named_params, params};

use super::blocks::{Hash, Packer};
use super::draft::{Prepared, ROW, Row};
use super::fold::fold;
use super::refresh::GATHERED;
use super::usage::Books;
use super::{Index, IndexError, schema};
use crate::cost::bill::signed;
use crate::timestamp::Timestamp;

impl Index {
    /// Writes the missing entries of sessions to the index.
    pub fn put(&self, sessions: &[Prepared]) -> Result<(), IndexError> {
        self.put_all(sessions).map(|_| ())
    }

    /// As [`Self::put`], and returns whether all are written. A part is not, if an earlier part is missing.
    pub(super) fn put_all(&self, sessions: &[Prepared]) -> Result<bool, IndexError> {
        if sessions.is_empty() {
            return Ok(true);
        }
        self.on(schema::writing(&self.connection))?;
        let mut writer = self.on(Writer::new(self))?;
        self.on(self.connection.execute_batch("BEGIN IMMEDIATE"))?;
        let all =
            sessions.iter().try_fold(true, |all, session| Ok(writer.session(session)? && all));
        match all.and_then(|all| writer.close().map(|()| all)) {
            Ok(all) => {
                self.on(self.connection.execute_batch("COMMIT"))?;
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
    pub(super) fn remove(&self, session: i64) -> Result<(), IndexError> {
        self.clear(session)?;
        self.run("DELETE FROM session WHERE id = ?1", session)
    }

    /// Removes the entries of a session.
    fn clear(&self, session: i64) -> Result<(), IndexError> {
        self.run("DELETE FROM entry WHERE session = ?1", session)?;
        let mut books = Books::new(self);
        books.remove(session)?;
        books.close()?;
        self.run("UPDATE session SET taken = 0, digest = NULL, kept = -1 WHERE id = ?1", session)
    }

    fn run(&self, sql: &str, session: i64) -> Result<(), IndexError> {
        self.on(self.connection.execute(sql, [session])).map(|_| ())
    }
}

/// What the index has of a session.
struct Standing {
    id: i64,
    /// How many of its entries are written.
    taken: usize,
    /// Whether the session facts for those entries are written too.
    whole: bool,
}

struct Writer<'a> {
    index: &'a Index,
    packer: Packer,
    new_entry: CachedStatement<'a>,
    new_text: CachedStatement<'a>,
    new_words: CachedStatement<'a>,
    find_text: CachedStatement<'a>,
    /// Bytes written since the last commit.
    work: usize,
}

impl<'a> Writer<'a> {
    fn new(index: &'a Index) -> rusqlite::Result<Self> {
        let prepare = |sql| index.connection.prepare_cached(sql);
        Ok(Self {
            index,
            packer: Packer::default(),
            new_entry: prepare(
                "INSERT INTO entry VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
            )?,
            new_text: prepare(
                "INSERT INTO text (hash, block, start, length) VALUES (?1, ?2, ?3, ?4)
                ON CONFLICT DO NOTHING",
            )?,
            new_words: prepare("INSERT INTO words (rowid, text, parts) VALUES (?1, ?2, ?3)")?,
            find_text: prepare("SELECT id FROM text WHERE hash = ?1")?,
            work: 0,
        })
    }

    /// Writes one session in as many transactions as it needs. Returns whether it is written.
    fn session(&mut self, prepared: &Prepared) -> Result<bool, IndexError> {
        let mut standing = self.stand(prepared)?;
        let mut billed = if standing.whole { standing.taken } else { 0 };
        while standing.taken < prepared.end() {
            if standing.taken < prepared.first {
                return Ok(false);
            }
            if self.work >= GATHERED {
                self.note_taken(&standing, prepared)?;
                self.step()?;
                standing = self.stand(prepared)?;
                billed = billed.min(standing.taken);
                continue;
            }
            let row = &prepared.rows[standing.taken - prepared.first];
            let text = row.text.map(|hash| self.text(prepared, hash)).transpose()?;
            self.entry(&standing, row, text)?;
            self.work += ROW;
            standing.taken += 1;
        }
        if standing.taken < prepared.first {
            return Ok(false);
        }
        if standing.taken == prepared.end() {
            self.note_taken(&standing, prepared)?;
        }
        if !prepared.is_part {
            self.facts(standing.id, prepared)?;
        }
        let mut books = Books::new(self.index);
        books.session(standing.id, prepared, billed)?;
        books.close()?;
        self.work += ROW;
        if self.work >= GATHERED {
            self.step()?;
        }
        Ok(true)
    }

    /// Commits, so that other processes get the lock.
    fn step(&mut self) -> Result<(), IndexError> {
        self.work = 0;
        self.close()?;
        self.index.on(self.index.connection.execute_batch("COMMIT; BEGIN IMMEDIATE"))
    }

    /// Writes the open text block.
    fn close(&mut self) -> Result<(), IndexError> {
        self.index.on(self.packer.close(&self.index.connection))
    }

    /// Finds what the index has of the session. Removes its entries if they differ from the given ones.
    fn stand(&self, prepared: &Prepared) -> Result<Standing, IndexError> {
        let connection = &self.index.connection;
        let names = (prepared.session.agent.as_str(), prepared.session.id.as_str());
        let query = "SELECT id, taken, digest, kept FROM session WHERE agent = ?1 AND name = ?2";
        let row = connection.prepare_cached(query).and_then(|mut statement| {
            let columns = |row: &rusqlite::Row<'_>| {
                Ok((
                    row.get(0)?,
                    row.get::<_, u32>(1)?,
                    row.get::<_, Option<Hash>>(2)?,
                    row.get::<_, i64>(3)?,
                ))
            };
            statement.query_row(names, columns).optional()
        });
        let Some((id, taken, digest, kept)): Option<(i64, u32, _, _)> = self.index.on(row)? else {
            let sql = "INSERT INTO session (agent, name) VALUES (?1, ?2)";
            self.index.on(connection.prepare_cached(sql).and_then(|mut new| new.execute(names)))?;
            return Ok(Standing { id: connection.last_insert_rowid(), taken: 0, whole: false });
        };
        let taken = taken as usize;
        // A later part shows whether the entries beyond are the same.
        let is_ahead = prepared.is_part && taken > prepared.end();
        if is_ahead || (prepared.digest(taken) == digest && taken <= prepared.end()) {
            return Ok(Standing { id, taken, whole: kept >= 0 });
        }
        self.index.clear(id)?;
        Ok(Standing { id, taken: 0, whole: false })
    }

    fn note_taken(&self, standing: &Standing, prepared: &Prepared) -> Result<(), IndexError> {
        let last = prepared.digest(standing.taken);
        let sql = "UPDATE session SET taken = ?2, digest = ?3, kept = -1 WHERE id = ?1";
        let connection = &self.index.connection;
        let done = connection.prepare_cached(sql).and_then(|mut update| {
            update.execute(params![standing.id, standing.taken as i64, last])
        });
        self.index.on(done).map(|_| ())
    }

    fn entry(&mut self, at: &Standing, row: &Row, text: Option<i64>) -> Result<(), IndexError> {
        let done = self.new_entry.execute(params![
            at.id,
            at.taken as i64,
            row.time,
            row.role.as_str(),
            row.kind.as_str(),
            row.tool,
            row.model,
            row.source,
            row.message,
            row.parent,
            row.failed,
            text
        ]);
        self.index.on(done).map(|_| ())
    }

    /// The id of a text. Inserts the text if the index lacks it.
    fn text(&mut self, prepared: &Prepared, hash: Hash) -> Result<i64, IndexError> {
        let text = &prepared.texts[&hash];
        let index = self.index;
        match index.on(self.put_text(hash, text))? {
            Some(id) => {
                self.work += text.len();
                Ok(id)
            }
            None => index.on(self.find_text.query_row([hash], |row| row.get(0))),
        }
    }

    /// Inserts a text. Returns `None` if it exists.
    fn put_text(&mut self, hash: Hash, text: &str) -> rusqlite::Result<Option<i64>> {
        let connection = &self.index.connection;
        let (block, start) = self.packer.place(connection)?;
        let added = self.new_text.execute(params![hash, block, start, text.len() as i64])?;
        if added == 0 {
            return Ok(None);
        }
        let id = connection.last_insert_rowid();
        self.packer.push(connection, text)?;
        let folded = fold(text);
        self.new_words.execute(params![id, folded.text, folded.parts])?;
        Ok(Some(id))
    }

    /// Updates the facts of a session.
    fn facts(&self, id: i64, prepared: &Prepared) -> Result<(), IndexError> {
        let session = &prepared.session;
        let moment = |at: Option<Timestamp>| at.map(|at| at.instant().as_millisecond());
        let models = serde_json::to_string(&session.models).expect("names are text");
        let [input, cache_read, cache_write, cache_write_5m, cache_write_1h, output, reasoning] =
            signed(session.totals.usage.numbers());
        let done = self.index.connection.prepare_cached(FACTS).and_then(|mut update| {
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
                ":trouble": prepared.trouble, ":kept": prepared.kept.map_or(-1, |kept| kept as i64),
            })
        });
        self.index.on(done).map(|_| ())
    }
}

const FACTS: &str = "UPDATE session SET native_id = :native_id, project = :project, branch = :branch,
    title = :title, started = :started, ended = :ended, started_at = :started_at, ended_at = :ended_at,
    status = :status, stop_reason = :stop_reason, models = :models, thread = :thread,
    parent = :parent, subagent_files = :subagent_files, entries = :entries, input = :input,
    cache_read = :cache_read, cache_write = :cache_write, cache_write_5m = :cache_write_5m,
    cache_write_1h = :cache_write_1h, output = :output, reasoning = :reasoning, cost = :cost,
    trouble = :trouble, kept = :kept WHERE id = :id";
