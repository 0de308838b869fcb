//! Finds all entries that contain a phrase, with what is needed to tell who wrote a text first.

use rusqlite::{OptionalExtension, Row, params};

use super::stored_name::{StoredName, name_condition};
use super::text_folding::fold_query;
use super::{Index, IndexError, text_blocks};
use steno_model::entry::{EntryKind, PRIMARY_SOURCE};
use steno_model::session::SessionId;

/// An entry that contains a phrase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhraseHit {
    /// The session's row in the index.
    pub session_row: i64,
    /// The entry's number in the session, from 0.
    pub number: u64,
    /// When the entry was created, or else its session; in milliseconds since 1970.
    pub time: Option<i64>,
    /// The role.
    pub role: String,
    /// The kind of entry.
    pub kind: EntryKind,
    /// The text's row in the index. Entries with equal texts share it.
    pub text_row: i64,
}

/// What the index knows about the session of a hit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionOfHit {
    /// The session.
    pub id: SessionId,
    /// The agent.
    pub agent: String,
    /// The id that the agent gave the session.
    pub native_id: Option<String>,
    /// The project folder.
    pub project: Option<String>,
    /// The title.
    pub title: Option<String>,
    /// When the session began, in milliseconds since 1970.
    pub started_at: Option<i64>,
    /// How many entries the session has.
    pub entries: u64,
}

/// The row of one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryFacts {
    /// The entry's number in the session, from 0.
    pub number: u64,
    /// The role.
    pub role: String,
    /// The kind of entry.
    pub kind: EntryKind,
    /// The tool of a call or result.
    pub tool: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// `primary` or `subagent:<id>`.
    pub source: String,
    /// Whether it is an error or the result of a tool that failed.
    pub is_failure: bool,
    /// The text's row in the index.
    pub text_row: Option<i64>,
}

impl Index {
    /// The entries that contain the words of `phrase` in this order, the newest texts first; at most `limit`.
    pub fn find_phrase(&self, phrase: &str, limit: usize) -> Result<Vec<PhraseHit>, IndexError> {
        let words: Vec<_> = phrase.split(|c: char| !c.is_alphanumeric()).collect();
        let (folded, _) = fold_query(&words.join(" "));
        if folded.trim().is_empty() {
            return Ok(Vec::new());
        }
        let sql =
            "SELECT entry.session, entry.number, entry.time, entry.role, entry.kind, words.rowid
             FROM words CROSS JOIN entry INDEXED BY entry_text ON entry.text = words.rowid
             WHERE words MATCH ?1 ORDER BY words.rowid DESC LIMIT ?2";
        let read = |row: &Row<'_>| {
            Ok(PhraseHit {
                session_row: row.get(0)?,
                number: row.get::<_, i64>(1)? as u64,
                time: row.get(2)?,
                role: row.get::<_, StoredName<_>>(3)?.0,
                kind: EntryKind::from_name(&row.get::<_, StoredName<String>>(4)?.0),
                text_row: row.get(5)?,
            })
        };
        let find = || -> rusqlite::Result<Vec<PhraseHit>> {
            let mut find = self.connection.prepare_cached(sql)?;
            let expression = format!("{{text}} : \"{}\"", folded.trim());
            find.query_map(params![expression, limit as i64], read)?.collect()
        };
        self.wrap_error(find())
    }

    /// The text with this row.
    pub fn text_at_row(&self, text_row: i64) -> Result<Option<String>, IndexError> {
        self.wrap_error(text_blocks::read_text(&self.connection, text_row))
    }

    /// The session with this row.
    pub fn session_at_row(&self, session_row: i64) -> Result<Option<SessionOfHit>, IndexError> {
        let sql = "SELECT name, agent, native_id, project, title, started_at, entries FROM session WHERE id = ?1";
        let read = |row: &Row<'_>| {
            let Ok(id) = row.get_ref(0)?.as_str().unwrap_or_default().parse() else {
                return Ok(None);
            };
            Ok(Some(SessionOfHit {
                id,
                agent: row.get(1)?,
                native_id: row.get(2)?,
                project: row.get(3)?,
                title: row.get(4)?,
                started_at: row.get(5)?,
                entries: row.get::<_, i64>(6)? as u64,
            }))
        };
        let find =
            || self.connection.prepare_cached(sql)?.query_row([session_row], read).optional();
        Ok(self.wrap_error(find())?.flatten())
    }

    /// The rows of the sessions whose own id, as their agent writes it, ends with `native_id`.
    pub fn sessions_with_native_id(&self, native_id: &str) -> Result<Vec<i64>, IndexError> {
        let sql = "SELECT id FROM session WHERE native_id IS NOT NULL
             AND substr(?1, -length(native_id)) = native_id";
        self.session_rows(sql, native_id)
    }

    /// The rows of all sessions of an agent.
    pub fn sessions_of_agent(&self, agent: &str) -> Result<Vec<i64>, IndexError> {
        self.session_rows("SELECT id FROM session WHERE agent = ?1", agent)
    }

    fn session_rows(&self, sql: &str, value: &str) -> Result<Vec<i64>, IndexError> {
        let find = || -> rusqlite::Result<Vec<i64>> {
            let mut find = self.connection.prepare_cached(sql)?;
            find.query_map([value], |row| row.get(0))?.collect()
        };
        self.wrap_error(find())
    }

    /// Up to `limit` entries of a session, from `number` on.
    pub fn entries_from(
        &self,
        session_row: i64,
        number: u64,
        limit: usize,
    ) -> Result<Vec<EntryFacts>, IndexError> {
        let sql = format!(
            "SELECT {ENTRY_COLUMNS} FROM entry WHERE session = ?1 AND number >= ?2 ORDER BY number LIMIT ?3"
        );
        let find = || -> rusqlite::Result<Vec<EntryFacts>> {
            let mut find = self.connection.prepare_cached(&sql)?;
            let values = params![session_row, number as i64, limit as i64];
            find.query_map(values, entry_facts_from_row)?.collect()
        };
        self.wrap_error(find())
    }

    /// The last text of the user before an entry, to the main agent.
    pub fn prompt_before(
        &self,
        session_row: i64,
        number: u64,
    ) -> Result<Option<EntryFacts>, IndexError> {
        let sql = format!(
            "SELECT {ENTRY_COLUMNS} FROM entry WHERE session = ?1 AND number < ?2 AND {} AND {} AND {}
             ORDER BY number DESC LIMIT 1",
            name_condition("role", "user"),
            name_condition("kind", "text"),
            name_condition("source", PRIMARY_SOURCE),
        );
        let find = || {
            let mut find = self.connection.prepare_cached(&sql)?;
            find.query_row(params![session_row, number as i64], entry_facts_from_row).optional()
        };
        self.wrap_error(find())
    }
}

const ENTRY_COLUMNS: &str = "number, role, kind, tool, model, source, failed, text";

fn entry_facts_from_row(row: &Row<'_>) -> rusqlite::Result<EntryFacts> {
    Ok(EntryFacts {
        number: row.get::<_, i64>(0)? as u64,
        role: row.get::<_, StoredName<_>>(1)?.0,
        kind: EntryKind::from_name(&row.get::<_, StoredName<String>>(2)?.0),
        tool: row.get(3)?,
        model: row.get(4)?,
        source: row.get::<_, StoredName<_>>(5)?.0,
        is_failure: row.get(6)?,
        text_row: row.get(7)?,
    })
}
