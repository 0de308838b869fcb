//! Handles replays: on `session/load` an agent sends earlier turns again. Entries already in the log are dropped, new
//! ones are kept.

use std::collections::{HashMap, HashSet};

use blake3::{Hash, Hasher};

use super::saying::Key;
use super::tool::Tool;
use super::{Fold, about};
use crate::entry::{Entry, Kind, Role};

/// State from before a replay.
#[derive(Clone, Debug)]
pub(super) struct Replay {
    /// Index of the first replayed entry.
    begin: usize,
    messages: HashMap<Key, usize>,
    tools: HashMap<String, Tool>,
}

/// Hashes that identify the entries before a replay. Each entry is hashed once, however often the session is loaded.
#[derive(Clone, Debug, Default)]
pub(super) struct KnownNames {
    names: HashSet<Hash>,
    /// Number of entries hashed.
    count: usize,
}

impl Fold {
    /// Starts a replay, which lasts until the next prompt: some agents replay only after they have sent the response.
    pub(super) fn begin_replay(&mut self) {
        self.end_turn(None);
        self.settle_replay();
        let messages = std::mem::take(&mut self.messages);
        let tools = std::mem::take(&mut self.tools);
        self.replay = Some(Replay { begin: self.entries.len(), messages, tools });
    }

    /// Drops replayed known entries and marks the others.
    pub(super) fn settle_replay(&mut self) {
        let Some(replay) = self.replay.take() else { return };
        self.settle_tools();
        self.open = None;
        self.learn_names(replay.begin);
        for at in replay.begin..self.entries.len() {
            let names = hashed_names(&self.entries[at]);
            if names.iter().any(|name| self.known_names.names.contains(name)) {
                self.repeat(at);
                continue;
            }
            let metadata = self.entries[at].metadata.get_or_insert_default();
            metadata.extend(about("replayed", true));
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
        let Some(at) = at.filter(|at| *at < self.known_names.count) else { return };
        let Entry { role, kind, .. } = &self.entries[at];
        self.known_names.names.insert(hash_name("message", (role, *kind), id));
    }

    fn learn_names(&mut self, end: usize) {
        let known = &mut self.known_names;
        for at in known.count..end {
            if !self.repeated.contains(&at) {
                known.names.extend(hashed_names(&self.entries[at]));
            }
        }
        known.count = end;
    }

    /// Empties an entry that repeats another. Its index stays valid.
    fn repeat(&mut self, at: usize) {
        let entry =
            std::mem::replace(&mut self.entries[at], Entry::new(Role::System, Kind::Other, ""));
        self.repeated.insert(at);
        if let Some(id) = entry.message_id.filter(|id| self.compactions.get(id) == Some(&at)) {
            self.compactions.remove(&id);
        }
    }

    /// Restores the messages and tools from before the replay and merges the new ones into them.
    fn restore_known(&mut self, replay: Replay) {
        let mut messages = replay.messages;
        for (key, at) in self.messages.drain() {
            if !self.repeated.contains(&at) {
                messages.entry(key).or_insert(at);
            }
        }
        let mut tools = replay.tools;
        for (id, tool) in self.tools.drain() {
            if let Some(tool) = tool.without(&self.repeated) {
                tools.entry(id).or_insert(tool);
            }
        }
        self.messages = messages;
        self.tools = tools;
    }
}

/// The hashes that identify an entry: of its tool call id, or of its message id and its text.
fn hashed_names(entry: &Entry) -> Vec<Hash> {
    let speaker = (&entry.role, entry.kind);
    if let Some(id) = &entry.tool_call_id {
        // Kind and id identify a call or result. The role adds nothing.
        return vec![hash_name("tool", (&Role::Tool, entry.kind), id)];
    }
    let message = entry.message_id.as_ref().map(|id| hash_name("message", speaker, id));
    let text = Some(entry.content.trim()).filter(|text| !text.is_empty());
    message.into_iter().chain(text.map(|text| hash_name("text", speaker, text))).collect()
}

fn hash_name(field: &str, (role, kind): (&Role, Kind), value: &str) -> Hash {
    let mut hasher = Hasher::new();
    for part in [field, role.as_str(), &kind.to_string(), value] {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
    }
    hasher.finalize()
}
