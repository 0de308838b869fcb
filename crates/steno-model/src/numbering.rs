//! Assigns numbers and ids to the entries of a session.

use std::collections::HashMap;

use uuid::Uuid;

use crate::entry::Entry;

/// Assigns a number to each entry of a session, and an id to entries without one.
#[derive(Clone, Debug)]
pub struct EntryNumbering {
    namespace: Uuid,
    next: HashMap<String, u64>,
}

impl EntryNumbering {
    /// Starts numbering a session of an agent. The same names always produce the same ids.
    pub fn new(agent: &str, session: &str) -> Self {
        let name = format!("steno:{agent}\n{session}");
        Self {
            namespace: Uuid::new_v5(&Uuid::NAMESPACE_URL, name.as_bytes()),
            next: HashMap::new(),
        }
    }

    /// Assigns the next number of the entry's source.
    pub fn assign_number(&mut self, entry: &mut Entry) {
        if let Some(next) = self.next.get_mut(&entry.source) {
            entry.sequence = *next;
            *next += 1;
        } else {
            entry.sequence = 0;
            self.next.insert(entry.source.clone(), 1);
        }
        self.assign_id(entry);
    }

    /// Derives the entry's id from its source and number, unless it has one.
    pub fn assign_id(&self, entry: &mut Entry) {
        entry.normalize();
        if entry.entry_id.is_nil() {
            let name = format!("{}\n{}", entry.source, entry.sequence);
            entry.entry_id = Uuid::new_v5(&self.namespace, name.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entry::{EntryKind, Role};

    #[test]
    fn numbering_is_per_source_and_repeatable() {
        let number = || {
            let mut numbering = EntryNumbering::new("claude", "s1");
            let mut entries = ["primary", "subagent:a", "primary"].map(|source| {
                let mut entry = Entry::new(Role::User, EntryKind::Text, "x");
                entry.source = source.to_owned();
                entry
            });
            entries.iter_mut().for_each(|entry| numbering.assign_number(entry));
            entries.map(|entry| (entry.sequence, entry.entry_id))
        };
        let [a, b, c] = number();
        assert_eq!([a.0, b.0, c.0], [0, 0, 1]);
        assert_eq!(number(), [a, b, c]);
        assert_ne!(a.1, b.1);
    }
}
