//! Stores what a turn cannot represent about entries of other agents in its `metadata`, which devflow ignores.
//!
//! `metadata.entries` has one object for each entry of the turn, with the fields that differ. So a session survives a
//! round trip through devflow, and a turn that was edited is read as edited.

use std::collections::HashMap;

use super::run::{RunTurn, TurnToolCall};
use steno_model::entry::Entry;
use steno_model::json::{Object, Value};

/// The field of a turn with Steno's data.
const TURN_METADATA_FIELD: &str = "metadata";
/// The field in it that lists the patches.
const PATCHES_FIELD: &str = "entries";
/// The index of an entry in the session, if it differs from the order in which it is read.
const INDEX_FIELD: &str = "index";
/// Marks an entry that the session does not have, because its text belongs to the call that follows.
const OMITTED_FIELD: &str = "omitted";

/// The entry that each part of a turn came from, by its index in the session.
#[derive(Clone, Debug, Default)]
pub(super) struct TurnParts {
    /// The text; absent if it only repeats the text of a call.
    pub(super) text: Option<usize>,
    /// Each call, its output and its error.
    pub(super) calls: Vec<[Option<usize>; 3]>,
}

impl TurnParts {
    /// The indexes in the order in which the turn is read; `None` for a text without an entry of its own.
    fn reading_order(&self, turn: &RunTurn) -> Vec<Option<usize>> {
        let text = has_text_entry(turn).then_some(self.text);
        let calls = self.calls.iter().zip(&turn.tool_calls).flat_map(|(parts, call)| {
            let there = [true, !call.output.is_empty(), !call.error.is_empty()];
            parts.iter().zip(there).filter(|(_, there)| *there).map(|(part, _)| *part)
        });
        text.into_iter().chain(calls).collect()
    }
}

/// Whether a turn is read with a text entry.
pub(super) fn has_text_entry(turn: &RunTurn) -> bool {
    turn.role != "assistant" || !turn.content.is_empty() || turn.tool_calls.is_empty()
}

/// Writes patches for the entries of a session into turns.
#[derive(Debug)]
pub(super) struct PatchWriter<'a> {
    entries: &'a [Entry],
    /// The sequence number that each entry has by its position.
    expected_sequences: Vec<u64>,
    /// Number of entries read before.
    count: usize,
}

impl<'a> PatchWriter<'a> {
    pub(super) fn new(entries: &'a [Entry]) -> Self {
        let mut next: HashMap<&str, u64> = HashMap::new();
        let sequences = entries.iter().map(|entry| {
            let number = next.entry(&entry.source).or_default();
            *number += 1;
            *number - 1
        });
        Self { entries, expected_sequences: sequences.collect(), count: 0 }
    }

    /// Adds patches to a turn for the entries that differ from `reads`, which is what the turn is read as.
    pub(super) fn write_patches(
        &mut self,
        turn: &mut RunTurn,
        parts: &TurnParts,
        reads: Vec<Entry>,
    ) {
        let indexes = parts.reading_order(turn);
        let patches = indexes.into_iter().zip(reads).map(|(index, read)| {
            Value::Object(match index {
                Some(index) => self.build_patch(index, read),
                None => Object::from_iter([(OMITTED_FIELD.to_owned(), Value::Bool(true))]),
            })
        });
        let patches = Value::Array(patches.collect());
        let metadata = Object::from_iter([(PATCHES_FIELD.to_owned(), patches)]);
        turn.extra.insert(TURN_METADATA_FIELD.to_owned(), Value::Object(metadata));
    }

    fn build_patch(&mut self, index: usize, read: Entry) -> Object {
        let entry = &self.entries[index];
        let read = read.to_object();
        let mut patch = entry.to_object();
        patch.shift_remove("sequence");
        patch.retain(|name, value| read.get(name) != Some(value));
        if entry.sequence != self.expected_sequences[index] {
            patch.insert("sequence".to_owned(), entry.sequence.into());
        }
        if index != self.count {
            patch.insert(INDEX_FIELD.to_owned(), (index as u64).into());
        }
        self.count += 1;
        patch
    }
}

/// An entry with its patch applied.
#[derive(Debug)]
pub(super) struct PatchedEntry {
    pub(super) entry: Entry,
    /// Its index among all entries.
    pub(super) index: Option<usize>,
    /// Its sequence number, if it differs from its position within its source.
    pub(super) sequence: Option<u64>,
}

/// Returns the turn without Steno's data, and the patches.
pub(super) fn take_patches(turn: &RunTurn) -> (RunTurn, Vec<Value>) {
    let mut plain = turn.clone();
    let metadata = plain.extra.shift_remove(TURN_METADATA_FIELD);
    let patches =
        metadata.and_then(|mut metadata| metadata.as_object_mut()?.shift_remove(PATCHES_FIELD));
    match patches {
        Some(Value::Array(patches)) => (plain, patches),
        _ => (turn.clone(), Vec::new()),
    }
}

/// Applies the patches of a turn to its entries. If the turn was edited since, the entries are unchanged.
pub(super) fn apply_patches(reads: Vec<Entry>, patches: Vec<Value>) -> Vec<PatchedEntry> {
    let as_read = |entry| PatchedEntry { entry, index: None, sequence: None };
    if reads.len() != patches.len() {
        return reads.into_iter().map(as_read).collect();
    }
    let pairs = reads.into_iter().zip(patches);
    pairs.filter_map(|(entry, patch)| apply_patch(entry, patch)).collect()
}

/// Applies a patch to an entry; `None` if the session has no such entry.
fn apply_patch(entry: Entry, patch: Value) -> Option<PatchedEntry> {
    let Value::Object(mut patch) = patch else {
        return Some(PatchedEntry { entry, index: None, sequence: None });
    };
    if patch.get(OMITTED_FIELD) == Some(&Value::Bool(true)) {
        return None;
    }
    let index = patch.shift_remove(INDEX_FIELD).and_then(|index| index.as_u64());
    let sequence = patch.shift_remove("sequence").and_then(|sequence| sequence.as_u64());
    let mut object = entry.to_object();
    object.extend(patch);
    let entry = Entry::from_object(object).unwrap_or(entry);
    Some(PatchedEntry { entry, index: index.map(|index| index as usize), sequence })
}

/// Marks arguments that are not an object and are stored in one field of it, because Go requires an object.
pub(super) const WRAPPED_FIELD: &str = "wrapped";

/// Sets a call's arguments, wrapped if Go could not parse them.
pub(super) fn wrap_input(call: &mut TurnToolCall, input: Option<Value>) {
    call.input = match input {
        None | Some(Value::Null) => None,
        Some(Value::Object(object)) => Some(object),
        Some(other) => {
            call.extra.insert(WRAPPED_FIELD.to_owned(), Value::Bool(true));
            Some(Object::from_iter([("value".to_owned(), other)]))
        }
    };
}
