//! The log and the window of a context as one conversation.

use std::collections::{HashMap, HashSet};

use super::convert::{id_of, native_mut};
use crate::entry::Entry;

/// On entries that stand in the log only: they have left the active conversation.
pub(super) const ARCHIVED: &str = "archived";

/// Puts what only the window holds where it was said: after its neighbour that the log knows too.
pub(super) fn merge(log: Vec<Entry>, window: Vec<Entry>) -> Vec<Entry> {
    let known: HashMap<_, _> = log
        .iter()
        .enumerate()
        .map(|(at, entry)| (id_of(entry), at))
        .collect();
    let active: HashSet<_> = window.iter().map(id_of).collect();
    let first_known = window.iter().find_map(|entry| known.get(&id_of(entry)));
    let end = log.len();

    // Sorted by the neighbour in the log; 0 stands before it, 1 is itself, 2 stands after it.
    let mut place = first_known.map_or((end, 0), |at| (*at, 0));
    let mut placed = Vec::with_capacity(log.len() + window.len());
    for entry in window {
        match known.get(&id_of(&entry)) {
            Some(at) => place = (*at, 2),
            None => placed.push((place, entry)),
        }
    }
    for (at, mut entry) in log.into_iter().enumerate() {
        if !active.contains(&id_of(&entry)) {
            native_mut(&mut entry).insert(ARCHIVED.to_owned(), true.into());
        }
        placed.push(((at, 1), entry));
    }
    placed.sort_by_key(|(place, _)| *place);
    placed.into_iter().map(|(_, entry)| entry).collect()
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::entry::{Kind, Role};

    fn entries(names: &str) -> Vec<Entry> {
        let named = names.chars().map(|name| {
            let mut entry = Entry::new(Role::User, Kind::Text, name);
            entry.entry_id = Uuid::from_u128(u128::from(name));
            entry
        });
        named.collect()
    }

    fn merged(log: &str, window: &str) -> String {
        let merged = merge(entries(log), entries(window));
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
    fn what_left_the_window_is_marked() {
        let merged = merge(entries("abc"), entries("cd"));
        let marked = |entry: &Entry| entry.extra.get("chibi").is_some();
        assert_eq!(
            merged.iter().map(marked).collect::<Vec<_>>(),
            [true, true, false, false]
        );
    }
}
