//! Joins the recording of a session with the agent's own session files, so that each entry appears once, with the
//! fields of both.
//!
//! The agent's files give the conversation. Recorded messages of the Agent Client Protocol (`acp`) add missing entries
//! in place. Recorded API traffic (`traffic`) adds them in sources of their own, named `wire`.
//!
//! # Example
//! The agent's file has a prompt and an answer. The gateway recorded the same turn, and a request for a title:
//!
//! | agent's file | traffic | joined entry |
//! |---|---|---|
//! | | system: "You are an agent." | source `wire` |
//! | user: "Count the herons." | user: "Count the herons." | the agent's, with metadata of the exchange |
//! | assistant: "There are three.", 7 tokens | the same text with a line break, 7 tokens | the agent's, 7 tokens |
//! | | user: "Give this a title." | source `wire` |
//! | | assistant: "Herons", 2 tokens | source `wire`, 2 tokens |
//!
//! The session has 9 tokens: usage of an answer that both sides have counts once. An `EntryKey` identifies the same
//! entry on both sides: the id of a tool call, a call's name and input, a text without whitespace, or a message id.
//! Each entry of the agent matches at most one entry of the traffic, so a prompt that was sent twice stays twice. If
//! the agent's files state no usage at all, that of the traffic is used.

mod acp;
mod entry_key;
mod traffic;

use std::collections::HashMap;

pub(crate) use self::entry_key::EntryKey;
use steno_model::entry::Entry;
use steno_model::json::Value;

/// The source of entries that only recorded traffic has.
pub const WIRE_SOURCE: &str = "wire";

/// Whether only recorded traffic has this entry.
pub fn is_only_on_wire(entry: &Entry) -> bool {
    entry.source == WIRE_SOURCE || entry.source.starts_with("wire:")
}

/// Joins both lists. Entries of the agent's own files keep their ids.
pub fn join_recorded(own: Vec<Entry>, recorded: Vec<Entry>) -> Vec<Entry> {
    let (traffic, messages): (Vec<_>, Vec<_>) = recorded.into_iter().partition(is_traffic_entry);
    let own = if messages.is_empty() { own } else { acp::join_messages(own, messages) };
    traffic::join_traffic(own, traffic)
}

/// Whether an entry was decoded from recorded traffic.
fn is_traffic_entry(entry: &Entry) -> bool {
    entry
        .metadata
        .as_ref()
        .is_some_and(|metadata| metadata.contains_key("adapter") && metadata.contains_key("api"))
}

/// The agent's own entries, by key.
struct AgentEntryIndex {
    by_key: HashMap<EntryKey, Vec<usize>>,
    is_matched: Vec<bool>,
}

impl AgentEntryIndex {
    fn new(own: &[Entry], keys: impl Fn(&Entry) -> Vec<EntryKey>) -> Self {
        let mut by_key: HashMap<EntryKey, Vec<usize>> = HashMap::new();
        // In reverse, so that `pop` returns the first.
        for (at, entry) in own.iter().enumerate().rev() {
            for key in keys(entry) {
                by_key.entry(key).or_default().push(at);
            }
        }
        Self { by_key, is_matched: vec![false; own.len()] }
    }

    /// The next entry with this key. An entry with several keys is returned once for each.
    fn find_next(&mut self, key: &EntryKey) -> Option<usize> {
        let at = self.by_key.get_mut(key)?.pop()?;
        self.is_matched[at] = true;
        Some(at)
    }

    /// The next entry with this key that has not matched yet.
    fn find_unmatched(&mut self, key: &EntryKey) -> Option<usize> {
        let positions = self.by_key.get_mut(key)?;
        while let Some(at) = positions.pop() {
            if !std::mem::replace(&mut self.is_matched[at], true) {
                return Some(at);
            }
        }
        None
    }

    /// The last entry with this key, unless all were taken.
    fn find_last(&self, key: &EntryKey) -> Option<usize> {
        self.by_key.get(key)?.first().copied()
    }
}

/// Fills in missing fields of the agent's entry, and adds the recorded entry's metadata under `name`.
fn complete_entry(own: &mut Entry, recorded: &Entry, name: &str) {
    own.created_at = own.created_at.or(recorded.created_at);
    own.model = own.model.take().or_else(|| recorded.model.clone());
    if let Some(metadata) = &recorded.metadata {
        let metadata = Value::Object(metadata.clone());
        own.metadata.get_or_insert_default().insert(name.to_owned(), metadata);
    }
}
