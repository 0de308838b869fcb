//! Lists the sessions of the index.

use rusqlite::types::ValueRef;
use rusqlite::{OptionalExtension, Row, params_from_iter};

use super::{Index, IndexError, SessionFilter};
use steno_model::session::{Session, SessionId, SessionStatus};
use steno_model::timestamp::Timestamp;
use steno_model::usage::Usage;

/// A session as stored in the index.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedSession {
    /// The session, without the fields that only its session files have.
    pub session: Session,
    /// Why the session could not be read.
    pub problem: Option<String>,
}

/// What the table of `steno list` needs. All of it is in the covering index `session_heading`.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionHeading {
    /// The agent.
    pub agent: String,
    /// The session's id.
    pub id: SessionId,
    /// The title.
    pub title: Option<String>,
    /// When the session began.
    pub started: Option<Timestamp>,
    /// When its last entry was written.
    pub ended: Option<Timestamp>,
    /// Why the agent stopped.
    pub stop_reason: Option<String>,
    /// How it ended, if it did.
    pub status: SessionStatus,
    /// Number of entries.
    pub entries: u64,
    /// Why the session could not be read.
    pub problem: Option<String>,
}

/// Append only: [`session_from_row`] reads them by position.
const SESSION_COLUMNS: &str =
    "name, agent, native_id, project, branch, title, started, ended, status,
    stop_reason, models, thread, parent, subagent_files, entries, cost, trouble, input, cache_read,
    cache_write, cache_write_5m, cache_write_1h, output, reasoning";

/// All agents, one index lookup each. `DISTINCT` would read all sessions.
const AGENTS_CTE: &str = "WITH RECURSIVE agents (agent) AS (
    SELECT min(agent) FROM session
    UNION ALL
    SELECT (SELECT min(agent) FROM session WHERE agent > agents.agent) FROM agents
    WHERE agents.agent IS NOT NULL
)";

impl Index {
    /// The sessions of one agent or of all, newest first.
    pub fn list_sessions(
        &self,
        agent: Option<&str>,
        limit: Option<usize>,
    ) -> Result<Vec<ListedSession>, IndexError> {
        let filter = SessionFilter::of_agent(agent);
        self.query_newest(SESSION_COLUMNS, &filter, limit, session_from_row)
    }

    /// Calls `take` with each selected session, newest first, so that only one is in memory at a time.
    pub fn each_session(
        &self,
        filter: &SessionFilter,
        limit: Option<usize>,
        take: &mut dyn FnMut(ListedSession),
    ) -> Result<(), IndexError> {
        let read = |row: &Row<'_>| {
            session_from_row(row)?.into_iter().for_each(&mut *take);
            Ok(None)
        };
        // Rows come by time, but pages are in insertion order. With a smaller cache, the pages of a hundred thousand
        // sessions would be read again and again.
        self.wrap_error(self.connection.pragma_update(None, "cache_size", -64_000))?;
        self.query_newest::<()>(SESSION_COLUMNS, filter, limit, read).map(drop)
    }

    /// Calls `take` with the heading of each selected session, newest first.
    pub fn each_heading(
        &self,
        filter: &SessionFilter,
        limit: Option<usize>,
        take: &mut dyn FnMut(SessionHeading),
    ) -> Result<(), IndexError> {
        let columns =
            "name, agent, title, started_at, status, entries, trouble, ended_at, stop_reason";
        let read = |row: &Row<'_>| {
            heading_from_row(row)?.into_iter().for_each(&mut *take);
            Ok(None)
        };
        self.query_newest::<()>(columns, filter, limit, read).map(drop)
    }

    fn query_newest<T>(
        &self,
        columns: &str,
        filter: &SessionFilter,
        limit: Option<usize>,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<Option<T>>,
    ) -> Result<Vec<T>, IndexError> {
        let limit = limit.and_then(|limit| i64::try_from(limit).ok()).unwrap_or(-1);
        let (conditions, values) = filter.sql_conditions();
        // The covering index has the columns of a heading, and no others to select by.
        let hint = if filter.is_agent_only() { "INDEXED BY session_heading" } else { "" };
        let sql = format!(
            "SELECT {columns} FROM session {hint} WHERE {conditions}
             ORDER BY started_at DESC, agent, name LIMIT {limit}"
        );
        let all = || -> rusqlite::Result<Vec<T>> {
            let mut all = self.connection.prepare_cached(&sql)?;
            let rows = all.query_map(params_from_iter(values), read)?;
            rows.filter_map(Result::transpose).collect()
        };
        self.wrap_error(all())
    }

    /// The agents with sessions in the index.
    pub(super) fn list_agents(&self) -> Result<Vec<String>, IndexError> {
        let all = || -> rusqlite::Result<Vec<String>> {
            let sql = format!("{AGENTS_CTE} SELECT agent FROM agents WHERE agent IS NOT NULL");
            let mut all = self.connection.prepare_cached(&sql)?;
            all.query_map([], |row| row.get(0))?.collect()
        };
        self.wrap_error(all())
    }

    /// Agents and ids of all sessions with this id prefix.
    pub fn find_by_prefix(&self, beginning: &str) -> Result<Vec<(String, SessionId)>, IndexError> {
        // No id has a character after '~'.
        let sql = format!(
            "{AGENTS_CTE} SELECT session.agent, name FROM agents JOIN session
             ON session.agent = agents.agent AND name >= ?1 AND name < ?1 || char(127)
             ORDER BY session.agent, name"
        );
        let all = || -> rusqlite::Result<Vec<(String, String)>> {
            let mut all = self.connection.prepare_cached(&sql)?;
            all.query_map([beginning], |row| Ok((row.get(0)?, row.get(1)?)))?.collect()
        };
        let all = self.wrap_error(all())?.into_iter();
        Ok(all.filter_map(|(agent, name)| Some((agent, name.parse().ok()?))).collect())
    }

    /// Length of the shortest unique prefix of a session's id; the full length if another id equals or extends it.
    pub fn distinct_length(&self, id: &SessionId) -> Result<usize, IndexError> {
        // In sorted order, one of the two neighbours shares the longest prefix.
        let sql = format!(
            "{AGENTS_CTE} SELECT
                (SELECT max(name) FROM session WHERE agent = agents.agent AND name < ?1),
                (SELECT min(name) FROM session WHERE agent = agents.agent AND name > ?1),
                (SELECT name FROM session WHERE agent = agents.agent AND name = ?1)
             FROM agents"
        );
        let id = id.as_str();
        let shared = |other: &str| {
            id.bytes().zip(other.bytes()).take_while(|(own, other)| own == other).count()
        };
        let find = || -> rusqlite::Result<usize> {
            let (mut longest, mut owners) = (0, 0);
            let mut agents = self.connection.prepare_cached(&sql)?;
            let mut rows = agents.query([id])?;
            while let Some(row) = rows.next()? {
                for column in 0..2 {
                    let neighbour = row.get_ref(column)?.as_str_or_null()?;
                    longest = longest.max(neighbour.map_or(0, shared));
                }
                owners += usize::from(row.get_ref(2)? != ValueRef::Null);
            }
            Ok(if owners > 1 { id.len() } else { id.len().min(longest + 1) })
        };
        self.wrap_error(find())
    }

    /// The session that began last, except for those that cannot be read at all.
    pub fn latest_session(&self) -> Result<Option<(String, SessionId)>, IndexError> {
        let sql = "SELECT agent, name FROM session WHERE trouble IS NULL OR entries > 0
            ORDER BY started_at DESC, agent DESC, name DESC LIMIT 1";
        let find = || {
            let mut find = self.connection.prepare_cached(sql)?;
            let read = |row: &Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?));
            find.query_row([], read).optional()
        };
        let found = self.wrap_error(find())?;
        Ok(found.and_then(|(agent, name)| Some((agent, name.parse().ok()?))))
    }
}

fn heading_from_row(row: &Row<'_>) -> rusqlite::Result<Option<SessionHeading>> {
    let Ok(id) = row.get_ref(0)?.as_str().unwrap_or_default().parse() else { return Ok(None) };
    let time = |column: usize| -> rusqlite::Result<Option<Timestamp>> {
        let at = row.get::<_, Option<i64>>(column)?;
        let instant = at.and_then(|at| jiff::Timestamp::from_millisecond(at).ok());
        Ok(instant.map(|instant| Timestamp::from_instant(instant, 3)))
    };
    Ok(Some(SessionHeading {
        agent: row.get(1)?,
        id,
        title: row.get(2)?,
        started: time(3)?,
        ended: time(7)?,
        stop_reason: row.get(8)?,
        status: parse_status(row.get_ref(4)?),
        entries: row.get::<_, i64>(5)? as u64,
        problem: row.get(6)?,
    }))
}

fn parse_status(value: ValueRef<'_>) -> SessionStatus {
    match value.as_str().unwrap_or_default() {
        "running" => SessionStatus::Running,
        "failed" => SessionStatus::Failed,
        "canceled" => SessionStatus::Canceled,
        _ => SessionStatus::Completed,
    }
}

fn session_from_row(row: &Row<'_>) -> rusqlite::Result<Option<ListedSession>> {
    let name: String = row.get(0)?;
    let Ok(id) = name.parse() else { return Ok(None) };
    let mut session = Session::new(id, row.get::<_, String>(1)?);
    session.native_id = row.get(2)?;
    session.project = row.get(3)?;
    session.branch = row.get(4)?;
    session.title = row.get(5)?;
    let time = |at: usize| -> rusqlite::Result<_> {
        Ok(row.get_ref(at)?.as_str().ok().and_then(|text| text.parse().ok()))
    };
    session.started = time(6)?;
    session.ended = time(7)?;
    session.status = parse_status(row.get_ref(8)?);
    session.stop_reason = row.get(9)?;
    session.models =
        serde_json::from_str(row.get_ref(10)?.as_str().unwrap_or("[]")).unwrap_or_default();
    session.thread = row.get(11)?;
    session.parent = row.get(12)?;
    session.subagent_files = row.get::<_, i64>(13)? as u64;
    session.totals.entries = row.get::<_, i64>(14)? as u64;
    session.totals.cost = row.get(15)?;
    let mut numbers = [0; 7];
    for (at, number) in numbers.iter_mut().enumerate() {
        *number = u64::try_from(row.get::<_, i64>(17 + at)?).unwrap_or(0);
    }
    session.totals.usage = Usage::from_numbers(numbers);
    Ok(Some(ListedSession { session, problem: row.get(16)? }))
}
