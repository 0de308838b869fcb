//! Whose sessions a store has. Only the mirror of a team's remote has sessions of several people.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::entry_filter::SelectedSessions;

/// Who may see a session on a remote, besides its owner.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SessionVisibility {
    /// Nobody.
    Private,
    /// The owner's team.
    #[default]
    Team,
    /// The members of all teams.
    Everyone,
}

/// A word that names no visibility.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a visibility (private, team or everyone): {0}")]
pub struct VisibilityError(String);

/// Whose session it is, and who may see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionOwner {
    /// The name under which the owner pushes.
    pub person: String,
    /// Who else may see it.
    pub visibility: SessionVisibility,
}

/// The owners of the sessions of a store.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionOwners {
    /// The sessions of each agent, by the session's id in the store.
    agents: HashMap<String, HashMap<String, SessionOwner>>,
}

/// A reader of a team's record.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TeamReader {
    /// The name under which the reader pushes.
    pub person: String,
    /// Whether the reader belongs to the team of whoever pulled the record.
    pub is_teammate: bool,
}

impl SessionOwners {
    /// Notes the owner of a session.
    pub fn insert(&mut self, agent: &str, id: &str, owner: SessionOwner) {
        self.agents.entry(agent.to_owned()).or_default().insert(id.to_owned(), owner);
    }

    /// The owner of a session; `None` if unknown.
    pub fn find(&self, agent: &str, id: &str) -> Option<&SessionOwner> {
        self.agents.get(agent)?.get(id)
    }

    /// The name of a session's owner; `None` if unknown.
    pub fn person_of(&self, agent: &str, id: &str) -> Option<&str> {
        self.find(agent, id).map(|owner| owner.person.as_str())
    }

    /// All sessions, as agent, id and owner.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str, &SessionOwner)> {
        self.agents.iter().flat_map(|(agent, sessions)| {
            sessions.iter().map(move |(id, owner)| (agent.as_str(), id.as_str(), owner))
        })
    }

    /// The sessions whose owners are selected.
    pub fn select(&self, is_selected: impl Fn(&SessionOwner) -> bool) -> SelectedSessions {
        let mut selected = SelectedSessions::default();
        for (agent, id, _) in self.iter().filter(|(_, _, owner)| is_selected(owner)) {
            selected.insert(agent, id);
        }
        selected
    }

    /// Whether no owner is known.
    pub fn is_empty(&self) -> bool {
        self.agents.is_empty()
    }

    /// The names of all owners.
    pub fn people(&self) -> Vec<&str> {
        let mut people: Vec<_> = self.iter().map(|(_, _, owner)| owner.person.as_str()).collect();
        people.sort_unstable();
        people.dedup();
        people
    }
}

impl TeamReader {
    /// Whether the reader may see a session of this owner.
    pub fn may_see(&self, owner: &SessionOwner) -> bool {
        match owner.visibility {
            _ if owner.person == self.person => true,
            SessionVisibility::Private => false,
            SessionVisibility::Team => self.is_teammate,
            SessionVisibility::Everyone => true,
        }
    }
}

impl SessionVisibility {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Private => "private",
            Self::Team => "team",
            Self::Everyone => "everyone",
        }
    }
}

impl fmt::Display for SessionVisibility {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for SessionVisibility {
    type Err = VisibilityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let all = [Self::Private, Self::Team, Self::Everyone];
        let named = all.into_iter().find(|visibility| visibility.as_str() == text);
        named.ok_or_else(|| VisibilityError(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_sees_own_sessions_and_those_for_the_reader() {
        let reader =
            |person: &str, is_teammate| TeamReader { person: person.to_owned(), is_teammate };
        let seen = |reader: &TeamReader| {
            use SessionVisibility::{Everyone, Private, Team};
            [Private, Team, Everyone].map(|visibility| {
                reader.may_see(&SessionOwner { person: "ada".to_owned(), visibility })
            })
        };
        assert_eq!(seen(&reader("ada", false)), [true, true, true]);
        assert_eq!(seen(&reader("bob", true)), [false, true, true]);
        assert_eq!(seen(&reader("eve", false)), [false, false, true]);
    }
}
