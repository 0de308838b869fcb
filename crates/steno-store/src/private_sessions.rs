//! Which sessions their owner keeps from other readers, such as agents that search the history.
//!
//! A session is private by a note with the tag `private`, or by its agent or project. So are the sessions that it
//! started and its forks: they repeat what it says.

use std::collections::HashSet;

use steno_model::durable::FileError;
use steno_vault::{SessionDir, Vault};

/// The tag of a note that makes its session private.
pub const PRIVATE_TAG: &str = "private";

/// Which agents, projects and sessions are private.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PrivacyRules {
    /// Names of agents.
    pub agents: Vec<String>,
    /// Folders, or a part of their path: `clients/acme` is in `/home/ada/clients/acme/shop`.
    pub projects: Vec<String>,
    /// Agent and id of single sessions.
    pub sessions: HashSet<(String, String)>,
}

/// The private sessions of an index.
#[derive(Clone, Debug, Default)]
pub struct PrivateSessions {
    /// Their rows in the index.
    pub(crate) rows: Vec<i64>,
    /// Their agents and ids.
    pub(crate) names: HashSet<(String, String)>,
}

impl PrivacyRules {
    /// Adds the sessions with a private note. A session with notes that cannot be read may have had one.
    pub fn with_tagged_sessions(mut self, vault: &Vault) -> Result<Self, FileError> {
        for session in vault.sessions_with_notes()? {
            if is_tagged_private(&session)? {
                self.sessions.insert((session.agent().to_owned(), session.id().to_string()));
            }
        }
        Ok(self)
    }

    /// Whether no session is private.
    pub fn is_empty(&self) -> bool {
        self.agents.is_empty() && self.projects.is_empty() && self.sessions.is_empty()
    }

    /// Whether the rules name a session.
    pub(crate) fn names_session(&self, agent: &str, id: &str, project: Option<&str>) -> bool {
        let is_below = |private: &String| project.is_some_and(|at| is_part_of_path(private, at));
        self.agents.iter().any(|private| private == agent)
            || self.projects.iter().any(is_below)
            || self.sessions.contains(&(agent.to_owned(), id.to_owned()))
    }
}

impl PrivateSessions {
    /// Whether a session is private.
    pub fn contains(&self, agent: &str, id: &str) -> bool {
        !self.names.is_empty() && self.names.contains(&(agent.to_owned(), id.to_owned()))
    }

    /// Whether no session is private.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Adds other sessions.
    pub fn extend(&mut self, others: Self) {
        self.rows.extend(others.rows);
        self.names.extend(others.names);
    }
}

fn is_tagged_private(session: &SessionDir) -> Result<bool, FileError> {
    let notes = session.read_notes()?;
    let is_private = |tag: &str| tag.eq_ignore_ascii_case(PRIVATE_TAG);
    Ok(!notes.problems.is_empty() || notes.all.iter().any(|note| note.tags().any(is_private)))
}

/// Whether whole components of `path` are `part`.
fn is_part_of_path(part: &str, path: &str) -> bool {
    let part = part.trim_matches('/');
    !part.is_empty() && format!("/{}/", path.trim_matches('/')).contains(&format!("/{part}/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_is_private_by_whole_components() {
        let rules = PrivacyRules { projects: vec!["clients/acme/".to_owned()], ..<_>::default() };
        let is_private = |project| rules.names_session("codex", "s", Some(project));
        assert!(is_private("/home/ada/clients/acme") && is_private("/clients/acme/shop"));
        assert!(!is_private("/home/ada/clients/acme2") && !is_private("/home/acme"));
        assert!(!rules.names_session("codex", "s", None));
    }

    #[test]
    fn an_empty_name_makes_nothing_private() {
        let rules = PrivacyRules { projects: vec!["/".to_owned()], ..<_>::default() };
        assert!(!rules.names_session("codex", "s", Some("/home/ada")));
    }
}
