//! Merges the log and the window of a context into one conversation.

use std::collections::{HashMap, HashSet};

use super::line_conversion::{chibi_fields_mut, unique_line_id};
use steno_model::entry::Entry;

/// Marks entries that are only in the log: they are not in the active conversation any more.
pub(super) const ARCHIVED_KEY: &str = "archived";

/// Inserts entries that only the window has after the neighbour that is also in the log.
pub(super) fn merge_window(log: Vec<Entry>, window: Vec<Entry>) -> Vec<Entry> {
    let numbered = log.iter().enumerate();
    let known: HashMap<_, _> =
        numbered.filter_map(|(at, entry)| Some((unique_line_id(entry)?, at))).collect();
    let known = |entry: &Entry| known.get(&unique_line_id(entry)?).copied();
    let active: HashSet<_> = window.iter().filter_map(unique_line_id).collect();

    // Sort key: the neighbour's index in the log, then 0 for before it, 1 for itself, 2 for after it.
    let mut position = (window.iter().find_map(known).unwrap_or(log.len()), 0);
    let mut placed = Vec::with_capacity(log.len() + window.len());
    for entry in window {
        match known(&entry) {
            Some(at) => position = (at, 2),
            None => placed.push((position, entry)),
        }
    }
    for (at, mut entry) in log.into_iter().enumerate() {
        if !unique_line_id(&entry).is_some_and(|id| active.contains(&id)) {
            chibi_fields_mut(&mut entry).insert(ARCHIVED_KEY.to_owned(), true.into());
        }
        placed.push(((at, 1), entry));
    }
    placed.sort_by_key(|(position, _)| *position);
    placed.into_iter().map(|(_, entry)| entry).collect()
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use steno_model::entry::{EntryKind, Role};

    fn entries(names: &str) -> Vec<Entry> {
        let named = names.chars().map(|name| {
            let mut entry = Entry::new(Role::User, EntryKind::Text, name);
            entry.entry_id = Uuid::from_u128(u128::from(name));
            entry
        });
        named.collect()
    }

    fn merged(log: &str, window: &str) -> String {
        let merged = merge_window(entries(log), entries(window));
        merged.iter().map(|entry| entry.content.as_str()).collect()
    }

    #[test]
    fn nothing_is_lost_and_nothing_doubled() {
        assert_eq!(merged("abc", "de"), "abcde");
        assert_eq!(merged("abc", "abcd"), "abcd");
        assert_eq!(merged("xde", "abcde"), "xabcde");
        assert_eq!(merged("abc", "bxc"), "abxc");
        assert_eq!(merged("", "ab"), "ab");
        assert_eq!(merged("ab", ""), "ab");
    }

    #[test]
    fn entries_without_an_id_are_never_the_same() {
        let nameless = || vec![Entry::new(Role::User, EntryKind::Text, "x")];
        assert_eq!(merge_window(nameless(), nameless()).len(), 2);
    }

    #[test]
    fn marks_entries_outside_the_window() {
        let merged = merge_window(entries("abc"), entries("cd"));
        let marked = |entry: &Entry| entry.extra.get("chibi").is_some();
        assert_eq!(merged.iter().map(marked).collect::<Vec<_>>(), [true, true, false, false]);
    }
}
