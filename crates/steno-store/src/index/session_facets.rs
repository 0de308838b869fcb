//! Lists the values that sessions and entries have: projects, models, tools and others.

use super::stored_name::{StoredName, stored_value};
use super::{Index, IndexError};

/// A property of sessions or entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionFacet {
    /// The project folder.
    Project,
    /// The Git branch.
    Branch,
    /// The models of a session.
    Model,
    /// The thread.
    Thread,
    /// The role of an entry.
    Role,
    /// The tool of a call or result.
    Tool,
}

impl SessionFacet {
    /// Selects the values, each as often as it occurs.
    fn sql(self) -> &'static str {
        match self {
            Self::Project => "SELECT project AS value FROM session",
            Self::Branch => "SELECT branch AS value FROM session",
            Self::Model => "SELECT json_each.value AS value FROM session, json_each(models)",
            Self::Thread => "SELECT thread AS value FROM session",
            Self::Role => "SELECT role AS value FROM entry",
            Self::Tool => "SELECT tool AS value FROM entry",
        }
    }
}

impl Index {
    /// Whether a session or entry has exactly this value. Unlike [`Index::facet_values`], it stops at the first.
    pub fn has_facet_value(&self, facet: SessionFacet, value: &str) -> Result<bool, IndexError> {
        let sql = format!("SELECT EXISTS (SELECT 1 FROM ({}) WHERE value = ?1)", facet.sql());
        let wanted = match facet {
            SessionFacet::Role => stored_value(value),
            _ => value.to_owned().into(),
        };
        let exists = || self.connection.prepare_cached(&sql)?.query_row([wanted], |row| row.get(0));
        self.wrap_error(exists())
    }

    /// All values of a property, the most frequent first.
    pub fn facet_values(&self, facet: SessionFacet) -> Result<Vec<String>, IndexError> {
        let sql = format!(
            "SELECT value FROM ({}) WHERE value IS NOT NULL AND value != ''
             GROUP BY value ORDER BY count(*) DESC, value",
            facet.sql()
        );
        let all = || -> rusqlite::Result<Vec<String>> {
            self.connection
                .prepare_cached(&sql)?
                .query_map([], |row| Ok(row.get::<_, StoredName<_>>(0)?.0))?
                .collect()
        };
        self.wrap_error(all())
    }
}
