//! Finds the newest calls of tools that may edit files. What they changed is read from their texts by [`crate::blame`].

use rusqlite::types::Value;
use rusqlite::{Row, params_from_iter};

use super::search::ENTRY_TIME_SQL;
use super::stored_name::{StoredName, name_condition};
use super::text_folding::fold_query;
use super::{EntryFilter, Index, IndexError, PhraseHit};
use steno_model::entry::EntryKind;

/// Parts of the names of tools that edit files. Other tools edit only with a patch. Lists of tasks, as of `TodoWrite`, are
/// no files.
const EDIT_TOOL_WORDS: [&str; 10] = [
    "edit", "write", "patch", "replace", "create", "insert", "notebook", "save", "update", "modify",
];

/// Which calls to find.
#[derive(Clone, Debug)]
pub struct EditCallRequest<'a> {
    /// Which entries to look at.
    pub filter: &'a EntryFilter,
    /// Words of the file's path, in this order; the last one may be incomplete. All files if it is empty.
    pub path: &'a str,
    /// How many of the newest calls to leave out.
    pub skip: usize,
    /// The most calls to return.
    pub limit: usize,
}

/// Some of the calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EditCalls {
    /// The calls, the newest first. A call that several sessions have, because one continues the other, is in them once.
    pub calls: Vec<PhraseHit>,
    /// Whether there are older ones.
    pub has_more: bool,
}

impl Index {
    /// The newest calls of tools that may edit files.
    pub fn find_edit_calls(&self, request: &EditCallRequest<'_>) -> Result<EditCalls, IndexError> {
        let EditCallRequest { filter, path, skip, limit } = *request;
        let (conditions, mut values) = filter.sql_conditions();
        let path = path_expression(path);
        values.insert(0, path.clone().unwrap_or_default().into());
        let named: Vec<String> = EDIT_TOOL_WORDS
            .iter()
            .map(|word| format!("instr(lower(entry.tool), '{word}') > 0"))
            .collect();
        let in_path = match path {
            Some(_) => " AND entry.text IN (SELECT rowid FROM words WHERE words MATCH ?1)",
            None => "",
        };
        // Equal calls at the same recorded time are copies: the first session has the original.
        let sql = format!(
            "SELECT min(entry.session), entry.number, {ENTRY_TIME_SQL} AS at, entry.role, entry.kind, entry.text
             FROM session JOIN entry ON entry.session = session.id
             WHERE ?1 IS NOT NULL AND entry.text IS NOT NULL AND {}{conditions}{}{in_path}
                AND ((instr(lower(entry.tool), 'todo') = 0 AND ({})) OR entry.text IN
                (SELECT rowid FROM words WHERE words MATCH '{{text}} : \"begin patch\"'))
             GROUP BY entry.text, coalesce(entry.time, -entry.session * 1000000 - entry.number)
             ORDER BY at DESC, 1 DESC, 2 DESC LIMIT {} OFFSET {skip}",
            name_condition("entry.kind", "tool_call"),
            session_period(filter),
            named.join(" OR "),
            limit.saturating_add(1).min(i32::MAX as usize),
        );
        let read = |row: &Row<'_>| {
            Ok(PhraseHit {
                session_row: row.get(0)?,
                number: row.get::<_, i64>(1)?.unsigned_abs(),
                time: row.get(2)?,
                role: row.get::<_, StoredName<_>>(3)?.0,
                kind: EntryKind::from_name(&row.get::<_, StoredName<String>>(4)?.0),
                text_row: row.get(5)?,
            })
        };
        let find = || -> rusqlite::Result<Vec<PhraseHit>> {
            let mut find = self.connection.prepare(&sql)?;
            find.query_map(params_from_iter::<Vec<Value>>(values), read)?.collect()
        };
        let mut calls = self.wrap_error(find())?;
        let has_more = calls.len() > limit;
        calls.truncate(limit);
        Ok(EditCalls { calls, has_more })
    }
}

/// Leaves out sessions that ended before a period or began after it, so that their entries are not read.
fn session_period(filter: &EntryFilter) -> String {
    let millisecond = |at: steno_model::timestamp::Timestamp| at.instant().as_millisecond();
    let since = filter.since.map(millisecond);
    let until = filter.until.map(millisecond);
    let since =
        since.map(|at| format!(" AND coalesce(session.ended_at, session.started_at) >= {at}"));
    let until = until.map(|at| format!(" AND session.started_at < {at}"));
    since.unwrap_or_default() + &until.unwrap_or_default()
}

/// The words of a path as an FTS5 expression; `None` without words.
fn path_expression(path: &str) -> Option<String> {
    let words: Vec<&str> = path.split(|c: char| !c.is_alphanumeric()).collect();
    let (folded, _) = fold_query(&words.join(" "));
    let folded = folded.trim();
    (!folded.is_empty()).then(|| format!("{{text}} : \"{folded}\"*"))
}
