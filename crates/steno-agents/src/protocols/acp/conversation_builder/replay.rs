//! Handles replays: on `session/load` an agent sends earlier turns again. Entries already in the log are dropped, new
//! ones are kept.

use std::collections::{HashMap, HashSet};

use blake3::{Hash, Hasher};

use super::message_chunk::MessageKey;
use super::tool::AcpToolCall;
use super::{AcpConversationBuilder, single_field};
use steno_model::entry::{Entry, EntryKind, Role};

/// State from before a replay.
#[derive(Clone, Debug)]
pub(super) struct HistoryReplay {
    /// Index of the first replayed entry.
    first_entry: usize,
    messages: HashMap<MessageKey, usize>,
    tools: HashMap<String, AcpToolCall>,
}

/// Hashes that identify the entries before a replay. Each entry is hashed once, however often the session is loaded.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownEntryHashes {
    hashes: HashSet<Hash>,
    /// Number of entries hashed.
    count: usize,
}

impl AcpConversationBuilder {
    /// Starts a replay, which lasts until the next prompt: some agents replay only after they have sent the response.
    pub(super) fn begin_replay(&mut self) {
        self.end_turn(None);
        self.finish_replay();
        let messages = std::mem::take(&mut self.messages);
        let tools = std::mem::take(&mut self.tools);
        self.replay = Some(HistoryReplay { first_entry: self.entries.len(), messages, tools });
    }

    /// Drops replayed known entries and marks the others.
    pub(super) fn finish_replay(&mut self) {
        let Some(replay) = self.replay.take() else { return };
        self.finish_tools();
        self.open_message = None;
        self.hash_entries_before(replay.first_entry);
        for at in replay.first_entry..self.entries.len() {
            let names = identity_hashes(&self.entries[at]);
            if names.iter().any(|name| self.known_entries.hashes.contains(name)) {
                self.mark_repeated(at);
                continue;
            }
            let metadata = self.entries[at].metadata.get_or_insert_default();
            metadata.extend(single_field("replayed", true));
        }
        self.restore_known(replay);
    }

    /// Removes the entries that repeat others.
    pub(super) fn drop_repeated(&mut self) {
        let repeated = std::mem::take(&mut self.repeated);
        let mut at = 0..;
        self.entries.retain(|_| at.next().is_none_or(|at| !repeated.contains(&at)));
    }

    /// Adds the hash of a message id that a prompt received with its response.
    pub(super) fn learn_message_id(&mut self, at: Option<usize>, id: &str) {
        let Some(at) = at.filter(|at| *at < self.known_entries.count) else { return };
        let Entry { role, kind, .. } = &self.entries[at];
        self.known_entries.hashes.insert(hash_identity("message", role, *kind, id));
    }

    fn hash_entries_before(&mut self, end: usize) {
        let known = &mut self.known_entries;
        for at in known.count..end {
            if !self.repeated.contains(&at) {
                known.hashes.extend(identity_hashes(&self.entries[at]));
            }
        }
        known.count = end;
    }

    /// Empties an entry that repeats another. Its index stays valid.
    fn mark_repeated(&mut self, at: usize) {
        let entry = std::mem::replace(
            &mut self.entries[at],
            Entry::new(Role::System, EntryKind::Other, ""),
        );
        self.repeated.insert(at);
        if let Some(id) = entry.message_id.filter(|id| self.compactions.get(id) == Some(&at)) {
            self.compactions.remove(&id);
        }
    }

    /// Restores the messages and tools from before the replay and merges the new ones into them.
    fn restore_known(&mut self, replay: HistoryReplay) {
        let mut messages = replay.messages;
        for (key, at) in self.messages.drain() {
            if !self.repeated.contains(&at) {
                messages.entry(key).or_insert(at);
            }
        }
        let mut tools = replay.tools;
        for (id, tool) in self.tools.drain() {
            if let Some(tool) = tool.without_repeated(&self.repeated) {
                tools.entry(id).or_insert(tool);
            }
        }
        self.messages = messages;
        self.tools = tools;
    }
}

/// The hashes that identify an entry: of its tool call id, or of its message id and its text.
fn identity_hashes(entry: &Entry) -> Vec<Hash> {
    let (role, kind) = (&entry.role, entry.kind);
    if let Some(id) = &entry.tool_call_id {
        // Kind and id identify a call or result. The role adds nothing.
        return vec![hash_identity("tool", &Role::Tool, kind, id)];
    }
    let message = entry.message_id.as_ref().map(|id| hash_identity("message", role, kind, id));
    let text = Some(entry.content.trim()).filter(|text| !text.is_empty());
    message.into_iter().chain(text.map(|text| hash_identity("text", role, kind, text))).collect()
}

fn hash_identity(field: &str, role: &Role, kind: EntryKind, value: &str) -> Hash {
    let mut hasher = Hasher::new();
    for part in [field, role.as_str(), &kind.to_string(), value] {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
    }
    hasher.finalize()
}
