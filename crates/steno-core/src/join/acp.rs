//! Joins recorded messages of the Agent Client Protocol.
//!
//! The agent's own files tell the order, the texts and the tokens. The messages add what they lack, such as permissions,
//! plans, and answers that were never written down, after what they followed on the wire.

use std::collections::HashMap;

use super::entry_key::without_blanks;
use super::{EntryKey, OwnEntries, complete};
use crate::entry::{Entry, Kind, Role};

/// The entries of both, those that only the messages have after what they followed.
pub(super) fn join_messages(own: Vec<Entry>, messages: Vec<Entry>) -> Vec<Entry> {
    let mut known = KnownMessages::new(&own);
    let is_billed = own.iter().any(|entry| entry.usage.is_some());
    let mut own: Vec<FollowedEntry> = own.into_iter().map(FollowedEntry::new).collect();
    let mut before = Vec::new();
    let mut anchor = None;
    for mut entry in messages {
        if let Some(at) = known.find(&entry) {
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

/// An entry of the agent's own, and what the wire tells to have followed it.
struct FollowedEntry {
    entry: Entry,
    after: Vec<Entry>,
}

impl FollowedEntry {
    fn new(entry: Entry) -> Self {
        Self { entry, after: Vec::new() }
    }
}

/// The agent's own entries by their keys, and by the texts of their messages.
struct KnownMessages {
    entries: OwnEntries,
    /// Pieces of one message, which the wire may tell as one.
    pieces: HashMap<(Kind, String), String>,
}

impl KnownMessages {
    fn new(own: &[Entry]) -> Self {
        let mut pieces: HashMap<(Kind, String), String> = HashMap::new();
        for entry in own.iter().filter(|entry| is_said(entry)) {
            if let Some(id) = &entry.message_id {
                let pieces = pieces.entry((entry.kind, id.clone())).or_default();
                pieces.push_str(&without_blanks(&entry.content));
            }
        }
        Self { entries: OwnEntries::new(own, EntryKey::of_message), pieces }
    }

    fn find(&mut self, entry: &Entry) -> Option<usize> {
        let mut keys = EntryKey::of_message(entry).into_iter();
        if let Some(at) = keys.find_map(|key| self.entries.find(&key)) {
            return Some(at);
        }
        // Several pieces there, one message here.
        let (kind, id) = (entry.kind, entry.message_id.clone().filter(|_| is_said(entry))?);
        let pieces = self.pieces.get(&(kind, id.clone()))?;
        let is_part = pieces.contains(&without_blanks(&entry.content));
        is_part.then(|| self.entries.last(&EntryKey::Message { id, kind })).flatten()
    }
}

fn is_said(entry: &Entry) -> bool {
    matches!(entry.kind, Kind::Text | Kind::Thinking)
}

/// Fills in what an agent's own entry lacks.
fn complete_from_message(own: &mut Entry, message: Entry) {
    // A prompt was given when the wire says so; the agent writes it down a little later.
    if own.role == Role::User && own.kind == Kind::Text {
        own.created_at = message.created_at.or(own.created_at);
    }
    complete(own, &message, "acp");
    if own.content.is_empty() {
        own.content = message.content;
    }
    own.tool_name = own.tool_name.take().or(message.tool_name);
    own.tool_input = own.tool_input.take().or(message.tool_input);
}
