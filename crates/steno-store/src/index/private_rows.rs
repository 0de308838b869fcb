//! Finds the private sessions of the index.

use std::collections::{HashMap, HashSet};

use rusqlite::Row;
use rusqlite::types::Value;

use super::{Index, IndexError};
use crate::private_sessions::{PrivacyRules, PrivateSessions};

/// What decides whether a session is private.
struct SessionFamily {
    row: i64,
    agent: String,
    id: String,
    native_id: Option<String>,
    project: Option<String>,
    parent: Option<String>,
}

impl Index {
    /// The sessions that the rules name, the sessions that those started, and their forks.
    pub fn find_private_sessions(
        &self,
        rules: &PrivacyRules,
    ) -> Result<PrivateSessions, IndexError> {
        if rules.is_empty() {
            return Ok(PrivateSessions::default());
        }
        let families = self.load_families()?;
        let mut children: HashMap<(&str, &str), Vec<usize>> = HashMap::new();
        for (at, family) in families.iter().enumerate() {
            if let Some(parent) = &family.parent {
                children.entry((&family.agent, parent)).or_default().push(at);
            }
        }
        let is_named = |family: &SessionFamily| {
            rules.names_session(&family.agent, &family.id, family.project.as_deref())
        };
        let mut pending: Vec<usize> =
            (0..families.len()).filter(|at| is_named(&families[*at])).collect();
        let mut found = HashSet::new();
        while let Some(at) = pending.pop() {
            if found.insert(at) {
                let SessionFamily { agent, id, native_id, .. } = &families[at];
                let names = [Some(id), native_id.as_ref()].into_iter().flatten();
                let started = names.filter_map(|name| children.get(&(agent.as_str(), name)));
                pending.extend(started.flatten());
            }
        }
        let name = |at: &usize| (families[*at].agent.clone(), families[*at].id.clone());
        let (rows, names) = (found.iter().map(|at| families[*at].row), found.iter().map(name));
        Ok(PrivateSessions { rows: rows.collect(), names: names.collect() })
    }

    /// The sessions that are not selected, by agent and id.
    pub fn find_unselected_sessions(
        &self,
        is_selected: &dyn Fn(&str, &str) -> bool,
    ) -> Result<PrivateSessions, IndexError> {
        let read = |row: &Row<'_>| Ok((row.get(0)?, row.get::<_, String>(1)?, row.get(2)?));
        let load = || -> rusqlite::Result<Vec<(i64, String, String)>> {
            let sql = "SELECT id, agent, name FROM session";
            self.connection.prepare_cached(sql)?.query_map([], read)?.collect()
        };
        let mut others = PrivateSessions::default();
        for (row, agent, id) in self.wrap_error(load())? {
            if !is_selected(&agent, &id) {
                others.rows.push(row);
                others.names.insert((agent, id));
            }
        }
        Ok(others)
    }

    fn load_families(&self) -> Result<Vec<SessionFamily>, IndexError> {
        let sql = "SELECT id, agent, name, native_id, project, parent FROM session";
        let read = |row: &Row<'_>| {
            Ok(SessionFamily {
                row: row.get(0)?,
                agent: row.get(1)?,
                id: row.get(2)?,
                native_id: row.get(3)?,
                project: row.get(4)?,
                parent: row.get(5)?,
            })
        };
        let load = || -> rusqlite::Result<Vec<SessionFamily>> {
            self.connection.prepare_cached(sql)?.query_map([], read)?.collect()
        };
        self.wrap_error(load())
    }
}

impl PrivateSessions {
    /// The rows as a parameter for `NOT IN (SELECT value FROM json_each(?))`; `None` if there are none.
    pub(super) fn sql_value(&self) -> Option<Value> {
        let rows: Vec<String> = self.rows.iter().map(i64::to_string).collect();
        (!rows.is_empty()).then(|| Value::from(format!("[{}]", rows.join(","))))
    }
}
