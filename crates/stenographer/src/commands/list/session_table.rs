//! The table of sessions: whole ids for a pipe, short ones and more room for titles on a terminal.

use std::collections::HashMap;

use jiff::tz::TimeZone;
use steno_model::{SessionId, SessionStatus};
use steno_store::current_status::StatusCheck;
use steno_store::index::{Index, IndexError, SessionHeading};
use steno_store::session_owners::SessionOwners;

use super::{MIN_ID_CHARS, format_start, refresh_heading};
use crate::process_environment::ProcessEnvironment;
use crate::session_store::SessionStore;
use crate::text_table::TextTable;
use crate::ui::group_digits;

/// With more sessions, all ids are read at once instead of the neighbours of each.
const MAX_SINGLE_LOOKUPS: usize = 500;

/// Maximum width of the column of short ids; an id that must be longer takes the room of its own title.
const MAX_ID_COLUMNS: usize = 16;

/// The rows of a table.
enum TableRows {
    /// For a pipe. Rows are rendered as they come: to hold all headings costs more time than to read them.
    Pipe(TextTable<6>),
    /// For a terminal, where the length of an id depends on all others.
    Terminal(Vec<SessionHeading>),
}

/// The sessions to print.
pub(super) struct SessionTable<'a> {
    store: &'a SessionStore,
    status_check: StatusCheck<'a>,
    zone: &'a TimeZone,
    this_year: i16,
    rows: TableRows,
    /// How many sessions the table has.
    count: usize,
    /// Whose sessions they are; empty unless they are of several people.
    owners: SessionOwners,
    /// Whether recordings without entries are listed, and how many were hidden.
    pub(super) with_empty: bool,
    pub(super) hidden: usize,
    pub(super) unreadable: Vec<(SessionId, String)>,
}

impl<'a> SessionTable<'a> {
    /// A table without rows, for a terminal or for a pipe.
    pub(super) fn new(
        env: &'a ProcessEnvironment,
        store: &'a SessionStore,
        is_terminal: bool,
    ) -> Self {
        let heading = ["STARTED", "AGENT", "STATUS", "ENTRIES", "ID", "TITLE"];
        let owners = Some(env.session_owners()).filter(|owners| owners.people().len() > 1);
        let rows = match is_terminal {
            true => TableRows::Terminal(Vec::new()),
            false => TableRows::Pipe(TextTable::new(heading)),
        };
        Self {
            store,
            status_check: store.status_check(),
            zone: &env.zone,
            this_year: env.clock.now().in_zone(&env.zone).wall().year(),
            rows,
            count: 0,
            owners: owners.unwrap_or_default(),
            with_empty: false,
            hidden: 0,
            unreadable: Vec::new(),
        }
    }

    /// Adds a session, unless it cannot be read or is an empty recording.
    pub(super) fn add(&mut self, mut heading: SessionHeading) {
        if let Some(reason) = heading.problem.take() {
            self.unreadable.push((heading.id.clone(), reason));
            if heading.entries == 0 {
                return;
            }
        }
        refresh_heading(&self.status_check, &mut heading);
        let SessionHeading { agent, id, entries, .. } = &heading;
        if !self.with_empty && self.store.vault.is_empty_recording(agent, id, *entries) {
            self.hidden += 1;
            return;
        }
        self.count += 1;
        let (started, agent) = (self.started_text(&heading), self.agent_text(&heading));
        match &mut self.rows {
            TableRows::Pipe(table) => table.add_row([
                &started,
                &agent,
                heading.status.as_str(),
                &heading.entries.to_string(),
                heading.id.as_str(),
                heading.title.as_deref().unwrap_or_default(),
            ]),
            TableRows::Terminal(rows) => rows.push(heading),
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Renders the table: with whole ids, or with short ones that are unique in the index.
    pub(super) fn render(&self, index: &Index, width: usize) -> Result<String, IndexError> {
        match &self.rows {
            TableRows::Pipe(table) => Ok(table.render(width)),
            TableRows::Terminal(rows) => {
                let lengths = distinct_lengths(index, rows.iter().map(|row| &row.id))?;
                Ok(self.render_short(rows, &lengths, width))
            }
        }
    }

    /// Renders the table of a terminal, with short ids; a status is shown only if it is not the usual one. A column of
    /// [`Self::add`] belongs here too.
    fn render_short(
        &self,
        rows: &[SessionHeading],
        lengths: &HashMap<SessionId, usize>,
        width: usize,
    ) -> String {
        let mut table = TextTable::new(["STARTED", "AGENT", "ENTRIES", "ID", "TITLE"]);
        table.limit_column(3, MAX_ID_COLUMNS);
        for row in rows {
            let id = row.id.as_str();
            let length = lengths.get(&row.id).copied().unwrap_or(id.len()).min(id.len());
            let title = row.title.as_deref().unwrap_or_default();
            let title = match row.status {
                SessionStatus::Completed => title.to_owned(),
                status => format!("[{}] {title}", status.as_str()),
            };
            table.add_row([
                self.started_text(row),
                self.agent_text(row),
                format!("{:>7}", group_digits(row.entries)),
                id[..length].to_owned(),
                title,
            ]);
        }
        table.render(width)
    }

    /// The agent, and whose session it is.
    fn agent_text(&self, row: &SessionHeading) -> String {
        match self.owners.person_of(&row.agent, row.id.as_str()) {
            Some(person) => format!("{} of {person}", row.agent),
            None => row.agent.clone(),
        }
    }

    fn started_text(&self, row: &SessionHeading) -> String {
        let started = row.started.map(|at| format_start(at.in_zone(self.zone), self.this_year));
        started.unwrap_or_default()
    }
}

/// Returns how many characters of each id are unique among all sessions, at least [`MIN_ID_CHARS`].
fn distinct_lengths<'a>(
    index: &Index,
    ids: impl ExactSizeIterator<Item = &'a SessionId>,
) -> Result<HashMap<SessionId, usize>, IndexError> {
    if ids.len() > MAX_SINGLE_LOOKUPS {
        return Ok(lengths_among(index.find_by_prefix("")?));
    }
    ids.map(|id| Ok((id.clone(), index.distinct_length(id)?.max(MIN_ID_CHARS)))).collect()
}

fn lengths_among(sessions: Vec<(String, SessionId)>) -> HashMap<SessionId, usize> {
    let mut ids: Vec<SessionId> = sessions.into_iter().map(|(_, id)| id).collect();
    ids.sort_unstable_by(|a, b| a.as_str().cmp(b.as_str()));
    let shared = |a: &SessionId, b: &SessionId| {
        a.as_str().bytes().zip(b.as_str().bytes()).take_while(|(a, b)| a == b).count()
    };
    let mut lengths = HashMap::with_capacity(ids.len());
    for (at, id) in ids.iter().enumerate() {
        let before = at.checked_sub(1).map_or(0, |before| shared(id, &ids[before]));
        let after = ids.get(at + 1).map_or(0, |after| shared(id, after));
        lengths.insert(id.clone(), (before.max(after) + 1).max(MIN_ID_CHARS));
    }
    lengths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_shortened_as_far_as_they_differ() {
        let lengths = |ids: &[&str]| -> Vec<usize> {
            let sessions = ids.iter().map(|id| (String::new(), id.parse().unwrap())).collect();
            let lengths = lengths_among(sessions);
            ids.iter().map(|id| lengths[&id.parse::<SessionId>().unwrap()]).collect()
        };
        assert_eq!(lengths(&["0190-abcdef", "0200-abcdef"]), [8, 8]);
        assert_eq!(lengths(&["0190-abcdef", "0190-abcdeg", "03"]), [11, 11, 8]);
        assert_eq!(lengths(&["only"]), [8]);
    }
}
