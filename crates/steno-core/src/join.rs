//! Joins what was recorded of a session with what its agent wrote down itself: each thing stands once, with all that either
//! of them knows.
//!
//! The agent's own files give the conversation. What was recorded of the Agent Client Protocol (`acp`) adds what they lack
//! where it was said; recorded traffic with a model's API (`traffic`) adds it in sources of its own, named `wire`.

mod acp;
mod entry_key;
mod traffic;

use std::collections::HashMap;

pub(crate) use self::entry_key::EntryKey;
use crate::entry::Entry;
use crate::json::Value;

/// The source of what only recorded traffic has.
pub const WIRE_SOURCE: &str = "wire";

/// Whether an entry is known from recorded traffic only.
pub fn is_only_on_wire(entry: &Entry) -> bool {
    entry.source == WIRE_SOURCE || entry.source.starts_with("wire:")
}

/// The entries of both, without numbers: those of the agent's own files keep their ids.
pub(crate) fn join_recorded(own: Vec<Entry>, recorded: Vec<Entry>) -> Vec<Entry> {
    let (traffic, messages): (Vec<_>, Vec<_>) = recorded.into_iter().partition(is_of_traffic);
    let own = if messages.is_empty() { own } else { acp::join_messages(own, messages) };
    traffic::join_traffic(own, traffic)
}

/// Whether an entry was made from recorded traffic.
fn is_of_traffic(entry: &Entry) -> bool {
    entry
        .metadata
        .as_ref()
        .is_some_and(|metadata| metadata.contains_key("adapter") && metadata.contains_key("api"))
}

/// The agent's own entries, by their keys.
struct OwnEntries {
    by_key: HashMap<EntryKey, Vec<usize>>,
    is_found: Vec<bool>,
}

impl OwnEntries {
    fn new(own: &[Entry], keys: impl Fn(&Entry) -> Vec<EntryKey>) -> Self {
        let mut by_key: HashMap<EntryKey, Vec<usize>> = HashMap::new();
        // From the end, so that the first is found first.
        for (at, entry) in own.iter().enumerate().rev() {
            for key in keys(entry) {
                by_key.entry(key).or_default().push(at);
            }
        }
        Self { by_key, is_found: vec![false; own.len()] }
    }

    /// The next entry of a key. One with several keys is found once by each.
    fn find(&mut self, key: &EntryKey) -> Option<usize> {
        let at = self.by_key.get_mut(key)?.pop()?;
        self.is_found[at] = true;
        Some(at)
    }

    /// The next entry of a key that was not found by any.
    fn find_new(&mut self, key: &EntryKey) -> Option<usize> {
        let places = self.by_key.get_mut(key)?;
        while let Some(at) = places.pop() {
            if !std::mem::replace(&mut self.is_found[at], true) {
                return Some(at);
            }
        }
        None
    }

    /// The last entry of a key, found or not, unless all were found.
    fn last(&self, key: &EntryKey) -> Option<usize> {
        self.by_key.get(key)?.first().copied()
    }
}

/// Fills in what an agent's own entry lacks, and adds the metadata of the recorded one under a name.
fn complete(own: &mut Entry, recorded: &Entry, name: &str) {
    own.created_at = own.created_at.or(recorded.created_at);
    own.model = own.model.take().or_else(|| recorded.model.clone());
    if let Some(metadata) = &recorded.metadata {
        let metadata = Value::Object(metadata.clone());
        own.metadata.get_or_insert_default().insert(name.to_owned(), metadata);
    }
}
