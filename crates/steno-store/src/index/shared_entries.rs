//! Which sessions have entries in common, so that a list of any sessions can count each entry once.
//!
//! What is the same entry is said in `copied_entries`, whose counts are for one filter.

use std::collections::{BTreeSet, HashMap};

use rusqlite::Row;
use rusqlite::types::Value;

use super::{Index, IndexError};

/// The entries that several sessions have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedEntries {
    /// The sessions, by agent and id.
    sessions: Vec<(String, String)>,
    /// Entries of the same sessions together.
    groups: Vec<SharedGroup>,
}

/// Entries that the same sessions have.
#[derive(Clone, Debug, PartialEq, Eq)]
struct SharedGroup {
    /// The place of each session in the list, and how often it has the entry. The first has the original.
    holders: Vec<(usize, u64)>,
    entries: u64,
}

impl SharedEntries {
    /// How many entries of some sessions are copies of entries of others of them.
    pub fn count_copies(&self, is_selected: impl Fn(&str, &str) -> bool) -> u64 {
        let selected: Vec<bool> =
            self.sessions.iter().map(|(agent, id)| is_selected(agent, id)).collect();
        let copies = |group: &SharedGroup| -> u64 {
            let held = group.holders.iter().filter(|(session, _)| selected[*session]);
            held.skip(1).map(|(_, times)| times * group.entries).sum()
        };
        self.groups.iter().map(copies).sum()
    }
}

impl Index {
    /// Finds the entries that several sessions have.
    pub fn find_shared_entries(&self) -> Result<SharedEntries, IndexError> {
        self.wrap_error(self.read_shared_entries())
    }

    fn read_shared_entries(&self) -> rusqlite::Result<SharedEntries> {
        // The columns are those of the covering index, in its order, so that nothing is sorted.
        let mut identities = self.connection.prepare_cached(
            "SELECT text, time, role, kind FROM entry INDEXED BY entry_text
             WHERE text IS NOT NULL AND time IS NOT NULL
             GROUP BY text, time, role, kind HAVING min(session) <> max(session)",
        )?;
        let mut holders = self.connection.prepare_cached(
            "SELECT session FROM entry INDEXED BY entry_text
             WHERE text = ?1 AND time = ?2 AND role IS ?3 AND kind IS ?4 ORDER BY failed, session",
        )?;
        let mut groups: HashMap<Vec<(i64, u64)>, u64> = HashMap::new();
        let mut rows = identities.query([])?;
        while let Some(row) = rows.next()? {
            let identity: [Value; 4] = [row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?];
            let mut group: Vec<(i64, u64)> = Vec::new();
            for session in holders.query_map(identity, |row| row.get::<_, i64>(0))? {
                let session = session?;
                match group.iter_mut().find(|(known, _)| *known == session) {
                    Some((_, times)) => *times += 1,
                    None => group.push((session, 1)),
                }
            }
            *groups.entry(group).or_default() += 1;
        }
        self.name_holders(groups)
    }

    /// Replaces the rows of sessions by their names.
    fn name_holders(
        &self,
        groups: HashMap<Vec<(i64, u64)>, u64>,
    ) -> rusqlite::Result<SharedEntries> {
        let mut name =
            self.connection.prepare_cached("SELECT agent, name FROM session WHERE id = ?1")?;
        let named = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
        let rows: BTreeSet<i64> = groups.keys().flatten().map(|(session, _)| *session).collect();
        let mut places: HashMap<i64, usize> = HashMap::new();
        let mut sessions = Vec::new();
        for row in rows {
            places.insert(row, sessions.len());
            sessions.push(name.query_row([row], named)?);
        }
        let group = |(holders, entries): (Vec<(i64, u64)>, u64)| SharedGroup {
            holders: holders.into_iter().map(|(row, times)| (places[&row], times)).collect(),
            entries,
        };
        Ok(SharedEntries { sessions, groups: groups.into_iter().map(group).collect() })
    }
}
