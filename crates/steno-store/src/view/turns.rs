//! Divides a session into turns: a prompt of the user, and all entries up to the next one.

use std::ops::Range;

use super::lanes::SubagentLanes;
use steno_model::entry::{Entry, EntryKind, PRIMARY_SOURCE, Role};

/// Whether an entry is a prompt to the main agent.
pub fn is_prompt(entry: &Entry) -> bool {
    let is_typed = entry.role == Role::User && entry.kind == EntryKind::Text;
    is_typed && entry.source == PRIMARY_SOURCE
}

/// The display positions of each turn. Entries before the first prompt are a turn of their own.
pub fn split_turns(entries: &[Entry], lanes: &SubagentLanes) -> Vec<Range<usize>> {
    let is_start = |place: &usize| is_prompt(&entries[lanes.number_at(*place)]);
    let mut starts: Vec<usize> = (0..entries.len()).filter(is_start).collect();
    if starts.first() != Some(&0) && !entries.is_empty() {
        starts.insert(0, 0);
    }
    let ends = starts.iter().skip(1).copied().chain([entries.len()]);
    starts.iter().copied().zip(ends).map(|(start, end)| start..end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(role: Role, kind: EntryKind) -> Entry {
        Entry::new(role, kind, "x")
    }

    #[test]
    fn a_turn_lasts_until_the_next_prompt() {
        let mut subagent = entry(Role::User, EntryKind::Text);
        subagent.source = "subagent:a".to_owned();
        let entries = [
            entry(Role::System, EntryKind::Notice),
            entry(Role::User, EntryKind::Text),
            entry(Role::Assistant, EntryKind::Text),
            subagent,
            entry(Role::User, EntryKind::Text),
        ];
        let lanes = SubagentLanes::from_entries(&entries);
        assert_eq!(split_turns(&entries, &lanes), [0..1, 1..4, 4..5]);
        assert!(split_turns(&[], &SubagentLanes::default()).is_empty());
    }
}
