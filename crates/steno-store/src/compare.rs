//! Compares two sessions by matching their entries.
//!
//! Entries that are equal, except for whitespace, match first and align the two sessions. The entries between them are
//! paired by similarity.

mod alignment;
pub mod facts;
mod pairing;
pub mod text_diff;

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::index::entry_text;
use steno_model::entry::{Entry, PRIMARY_SOURCE};

/// What changed for an entry or a pair of entries. Numbers are entry numbers, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryChange {
    /// Both are equal.
    Same(usize, usize),
    /// They match, but differ.
    Changed(usize, usize),
    /// Only in the first session.
    Removed(usize),
    /// Only in the second session.
    Added(usize),
}

/// The changes, in the order of both sessions.
pub fn compare_entries(a: &[Entry], b: &[Entry]) -> Vec<EntryChange> {
    let prints =
        |entries: &[Entry]| -> Vec<u64> { entries.iter().map(entry_fingerprint).collect() };
    let anchors = alignment::common_items(&prints(a), &prints(b));
    let mut steps = Vec::with_capacity(a.len().max(b.len()));
    let (mut from_a, mut from_b) = (0, 0);
    for (at_a, at_b) in anchors.into_iter().chain([(a.len(), b.len())]) {
        for (in_a, in_b) in pairing::pair_between((a, from_a..at_a), (b, from_b..at_b)) {
            push_unpaired(&mut steps, from_a..in_a, from_b..in_b);
            steps.push(pair_change(a, b, in_a, in_b));
            (from_a, from_b) = (in_a + 1, in_b + 1);
        }
        push_unpaired(&mut steps, from_a..at_a, from_b..at_b);
        if at_a < a.len() && at_b < b.len() {
            steps.push(pair_change(a, b, at_a, at_b));
        }
        (from_a, from_b) = (at_a + 1, at_b + 1);
    }
    steps
}

fn pair_change(a: &[Entry], b: &[Entry], in_a: usize, in_b: usize) -> EntryChange {
    let is_same = is_same_entry(&a[in_a], &b[in_b]);
    if is_same { EntryChange::Same(in_a, in_b) } else { EntryChange::Changed(in_a, in_b) }
}

/// Adds entries without a match, the first session's before the second's.
fn push_unpaired(
    steps: &mut Vec<EntryChange>,
    a: std::ops::Range<usize>,
    b: std::ops::Range<usize>,
) {
    steps.extend(a.map(EntryChange::Removed));
    steps.extend(b.map(EntryChange::Added));
}

/// Whether two entries have the same content, whatever their times and ids.
fn is_same_entry(a: &Entry, b: &Entry) -> bool {
    entry_class(a) == entry_class(b) && a.content == b.content && a.tool_input == b.tool_input
}

/// Properties that matching entries share.
fn entry_class(entry: &Entry) -> (&str, steno_model::entry::EntryKind, Option<&str>, bool) {
    // A subagent has another id in each session.
    (entry.role.as_str(), entry.kind, entry.tool_name.as_deref(), entry.source == PRIMARY_SOURCE)
}

/// A hash of an entry's text without whitespace.
fn entry_fingerprint(entry: &Entry) -> u64 {
    let mut hasher = DefaultHasher::new();
    entry_class(entry).hash(&mut hasher);
    for word in entry_text::searchable_text(entry).split_whitespace() {
        word.hash(&mut hasher);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests;
