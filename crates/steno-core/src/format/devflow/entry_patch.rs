//! What a turn cannot say about entries of other agents, kept in its `metadata` where devflow ignores it.
//!
//! `metadata.entries` has one object for each entry that the turn reads as, with the fields that are different there. So a
//! session that went through devflow comes back as it was, and a turn that somebody has edited reads as edited.

use std::collections::HashMap;

use super::run::{ToolCall, Turn};
use crate::entry::Entry;
use crate::json::{Object, Value};

/// The field of a turn that holds ours.
const TURN_METADATA: &str = "metadata";
/// The field in there that lists what is different.
const PATCHES: &str = "entries";
/// The place of an entry among all, where it is not the one that it is read at.
const INDEX: &str = "index";
/// Marks an entry that the session does not have: its text stands in the call that follows.
const OMITTED: &str = "omitted";

/// Which entry each part of a turn was, by its place in the session.
#[derive(Clone, Debug, Default)]
pub(super) struct TurnParts {
    /// The text; absent where it only repeats what a call holds.
    pub(super) text: Option<usize>,
    /// Each call, its output and its error.
    pub(super) calls: Vec<[Option<usize>; 3]>,
}

impl TurnParts {
    /// The places in the order in which a turn is read; `None` for a text that was no entry of its own.
    fn in_order(&self, turn: &Turn) -> Vec<Option<usize>> {
        let text = reads_as_text(turn).then_some(self.text);
        let calls = self.calls.iter().zip(&turn.tool_calls).flat_map(|(parts, call)| {
            let there = [true, !call.output.is_empty(), !call.error.is_empty()];
            parts.iter().zip(there).filter(|(_, there)| *there).map(|(part, _)| *part)
        });
        text.into_iter().chain(calls).collect()
    }
}

/// Whether a turn reads as a text beside its calls.
pub(super) fn reads_as_text(turn: &Turn) -> bool {
    turn.role != "assistant" || !turn.content.is_empty() || turn.tool_calls.is_empty()
}

/// Writes into turns what they cannot say about the entries of a session.
#[derive(Debug)]
pub(super) struct PatchWriter<'a> {
    entries: &'a [Entry],
    /// The number that each entry has by its place.
    natural: Vec<u64>,
    /// How many entries were read before.
    count: usize,
}

impl<'a> PatchWriter<'a> {
    pub(super) fn new(entries: &'a [Entry]) -> Self {
        let mut next: HashMap<&str, u64> = HashMap::new();
        let natural = entries.iter().map(|entry| {
            let number = next.entry(&entry.source).or_default();
            *number += 1;
            *number - 1
        });
        Self { entries, natural: natural.collect(), count: 0 }
    }

    /// Adds to a turn what the entries that it `reads` as do not tell.
    pub(super) fn describe(&mut self, turn: &mut Turn, parts: &TurnParts, reads: Vec<Entry>) {
        let places = parts.in_order(turn);
        let patches = places.into_iter().zip(reads).map(|(place, read)| {
            Value::Object(match place {
                Some(place) => self.patch(place, read),
                None => Object::from_iter([(OMITTED.to_owned(), Value::Bool(true))]),
            })
        });
        let patches = Value::Array(patches.collect());
        let metadata = Object::from_iter([(PATCHES.to_owned(), patches)]);
        turn.extra.insert(TURN_METADATA.to_owned(), Value::Object(metadata));
    }

    fn patch(&mut self, place: usize, read: Entry) -> Object {
        let entry = &self.entries[place];
        let read = read.to_object();
        let mut patch = entry.to_object();
        patch.shift_remove("sequence");
        patch.retain(|name, value| read.get(name) != Some(value));
        if entry.sequence != self.natural[place] {
            patch.insert("sequence".to_owned(), entry.sequence.into());
        }
        if place != self.count {
            patch.insert(INDEX.to_owned(), (place as u64).into());
        }
        self.count += 1;
        patch
    }
}

/// An entry as a turn and its patch tell it.
#[derive(Debug)]
pub(super) struct PatchedEntry {
    pub(super) entry: Entry,
    /// Its place among all entries.
    pub(super) index: Option<usize>,
    /// Its number, where that is not its place among those of its source.
    pub(super) sequence: Option<u64>,
}

/// The turn without what is ours, and what was in there.
pub(super) fn take_patches(turn: &Turn) -> (Turn, Vec<Value>) {
    let mut plain = turn.clone();
    let ours = plain.extra.shift_remove(TURN_METADATA);
    let patches = ours.and_then(|mut ours| ours.as_object_mut()?.shift_remove(PATCHES));
    match patches {
        Some(Value::Array(patches)) => (plain, patches),
        _ => (turn.clone(), Vec::new()),
    }
}

/// Applies the patches of a turn to what it reads as; a turn that was changed since reads as it is.
pub(super) fn apply_patches(reads: Vec<Entry>, patches: Vec<Value>) -> Vec<PatchedEntry> {
    let as_read = |entry| PatchedEntry { entry, index: None, sequence: None };
    if reads.len() != patches.len() {
        return reads.into_iter().map(as_read).collect();
    }
    let pairs = reads.into_iter().zip(patches);
    pairs.filter_map(|(entry, patch)| apply(entry, patch)).collect()
}

/// The entry with its patch; `None` when the session has no such entry.
fn apply(entry: Entry, patch: Value) -> Option<PatchedEntry> {
    let Value::Object(mut patch) = patch else {
        return Some(PatchedEntry { entry, index: None, sequence: None });
    };
    if patch.get(OMITTED) == Some(&Value::Bool(true)) {
        return None;
    }
    let index = patch.shift_remove(INDEX).and_then(|index| index.as_u64());
    let sequence = patch.shift_remove("sequence").and_then(|sequence| sequence.as_u64());
    let mut object = entry.to_object();
    object.extend(patch);
    let entry = Entry::from_object(object).unwrap_or(entry);
    Some(PatchedEntry { entry, index: index.map(|index| index as usize), sequence })
}

/// Whether arguments that are no object stand in one field of it, because Go reads nothing else.
pub(super) const WRAPPED: &str = "wrapped";

/// The call with arguments that Go can read.
pub(super) fn wrap_input(call: &mut ToolCall, input: Option<Value>) {
    call.input = match input {
        None | Some(Value::Null) => None,
        Some(Value::Object(object)) => Some(object),
        Some(other) => {
            call.extra.insert(WRAPPED.to_owned(), Value::Bool(true));
            Some(Object::from_iter([("value".to_owned(), other)]))
        }
    };
}
