//! Puts sessions into the index: what is new of each, some dozen megabytes to a transaction.
//!
//! After each transaction a session has a whole number of its first entries, and says how many. So whoever comes next,
//! after a crash too, only has to go on from there, once the sum over them shows that they are the same.

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
    /// Puts sessions into the index, as far as they are not there yet.
    pub fn put(&self, sessions: &[Prepared]) -> Result<(), IndexError> {
        self.put_all(sessions).map(|_| ())
    }

    /// The same; tells whether all are in. A part is not if what comes before it is not.
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
                // The failure that is told is the first one.
                let _ = self.connection.execute_batch("ROLLBACK");
                Err(error)
            }
        }
    }

    /// Removes a session; texts stay, because others may have said the same.
    pub(super) fn remove(&self, session: i64) -> Result<(), IndexError> {
        self.clear(session)?;
        self.run("DELETE FROM session WHERE id = ?1", session)
    }

    /// Removes what is known of the entries of a session.
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

/// Where a session stands in the index.
struct Standing {
    id: i64,
    /// How many of its entries are in.
    taken: usize,
    /// Whether all that was told of it when those were put in is in too.
    whole: bool,
}

struct Writer<'a> {
    index: &'a Index,
    packer: Packer,
    new_entry: CachedStatement<'a>,
    new_text: CachedStatement<'a>,
    new_words: CachedStatement<'a>,
    find_text: CachedStatement<'a>,
    /// What was done since the lock was taken.
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

    /// Puts one session in, in as many steps as it needs; tells whether it is in.
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

    /// Lets others have the lock.
    fn step(&mut self) -> Result<(), IndexError> {
        self.work = 0;
        self.close()?;
        self.index.on(self.index.connection.execute_batch("COMMIT; BEGIN IMMEDIATE"))
    }

    /// Puts in what a transaction has left open.
    fn close(&mut self) -> Result<(), IndexError> {
        self.index.on(self.packer.close(&self.index.connection))
    }

    /// How much of the session is in; if that is something else than what comes, it is removed.
    fn stand(&self, prepared: &Prepared) -> Result<Standing, IndexError> {
        let connection = &self.index.connection;
        let names = (prepared.session.agent.as_str(), prepared.session.id.as_str());
        let query = "SELECT id, taken, digest, kept FROM session WHERE agent = ?1 AND name = ?2";
        let found = connection.prepare_cached(query).and_then(|mut found| {
            let columns = |row: &rusqlite::Row<'_>| {
                Ok((
                    row.get(0)?,
                    row.get::<_, u32>(1)?,
                    row.get::<_, Option<Hash>>(2)?,
                    row.get::<_, i64>(3)?,
                ))
            };
            found.query_row(names, columns).optional()
        });
        let Some((id, taken, digest, kept)): Option<(i64, u32, _, _)> = self.index.on(found)?
        else {
            let sql = "INSERT INTO session (agent, name) VALUES (?1, ?2)";
            self.index.on(connection.prepare_cached(sql).and_then(|mut new| new.execute(names)))?;
            return Ok(Standing { id: connection.last_insert_rowid(), taken: 0, whole: false });
        };
        let taken = taken as usize;
        // Whether more is the same shows in a later part.
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

    /// The number of a text, which is put in if no session has it yet.
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

    /// Puts a text in; nothing if it is there.
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

    /// What is told about the session as a whole.
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
