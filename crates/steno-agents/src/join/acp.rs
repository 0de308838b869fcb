//! Joins recorded messages of the Agent Client Protocol.
//!
//! The agent's own files decide order, texts and usage. The messages add what is missing, such as permissions, plans
//! and answers that the agent did not write down. An added entry follows the one that preceded it on the wire.

use std::collections::HashMap;

use super::entry_key::strip_whitespace;
use super::{AgentEntryIndex, EntryKey, complete_entry};
use steno_model::entry::{Entry, EntryKind, Role};

/// Joins both lists. Entries that only the messages have follow their predecessors.
pub(super) fn join_messages(own: Vec<Entry>, messages: Vec<Entry>) -> Vec<Entry> {
    let mut known = KnownMessages::new(&own);
    let is_billed = own.iter().any(|entry| entry.usage.is_some());
    let mut own: Vec<FollowedEntry> = own.into_iter().map(FollowedEntry::new).collect();
    let mut before = Vec::new();
    let mut anchor = None;
    for mut entry in messages {
        if let Some(at) = known.find_entry(&entry) {
            anchor = anchor.max(Some(at));
            complete_from_message(&mut own[at].entry, entry);
            continue;
        }
        if is_billed {
            entry.usage = None;
        }
        match anchor {
            Some(at) => own[at].after.push(entry),
            None => before.push(entry),
        }
    }
    let own = own.into_iter().flat_map(|own| std::iter::once(own.entry).chain(own.after));
    before.into_iter().chain(own).collect()
}

/// An entry of the agent's own, and the added entries that follow it.
struct FollowedEntry {
    entry: Entry,
    after: Vec<Entry>,
}

impl FollowedEntry {
    fn new(entry: Entry) -> Self {
        Self { entry, after: Vec::new() }
    }
}

/// The agent's own entries, by key and by message text.
struct KnownMessages {
    entries: AgentEntryIndex,
    /// The joined text of each message. On the wire it may be one piece.
    pieces: HashMap<(EntryKind, String), String>,
}

impl KnownMessages {
    fn new(own: &[Entry]) -> Self {
        let mut pieces: HashMap<(EntryKind, String), String> = HashMap::new();
        for entry in own.iter().filter(|entry| is_message_text(entry)) {
            if let Some(id) = &entry.message_id {
                let pieces = pieces.entry((entry.kind, id.clone())).or_default();
                pieces.push_str(&strip_whitespace(&entry.content));
            }
        }
        Self { entries: AgentEntryIndex::new(own, EntryKey::message_keys), pieces }
    }

    fn find_entry(&mut self, entry: &Entry) -> Option<usize> {
        let mut keys = EntryKey::message_keys(entry).into_iter();
        if let Some(at) = keys.find_map(|key| self.entries.find_next(&key)) {
            return Some(at);
        }
        // The agent has several pieces, the wire one message.
        let (kind, id) = (entry.kind, entry.message_id.clone().filter(|_| is_message_text(entry))?);
        let pieces = self.pieces.get(&(kind, id.clone()))?;
        let is_part = pieces.contains(&strip_whitespace(&entry.content));
        is_part.then(|| self.entries.find_last(&EntryKey::Message { id, kind })).flatten()
    }
}

fn is_message_text(entry: &Entry) -> bool {
    matches!(entry.kind, EntryKind::Text | EntryKind::Thinking)
}

/// Fills in missing fields of the agent's entry.
fn complete_from_message(own: &mut Entry, message: Entry) {
    // The wire has the time of the prompt. The agent writes it down a little later.
    if own.role == Role::User && own.kind == EntryKind::Text {
        own.created_at = message.created_at.or(own.created_at);
    }
    complete_entry(own, &message, "acp");
    if own.content.is_empty() {
        own.content = message.content;
    }
    own.tool_name = own.tool_name.take().or(message.tool_name);
    own.tool_input = own.tool_input.take().or(message.tool_input);
}
