//! What an agent tells again of earlier turns when a session is loaded: kept where it is new, and dropped where it
//! stands in the log already.

use std::collections::{HashMap, HashSet};

use super::saying::Key;
use super::tool::Tool;
use super::{Fold, about};
use crate::entry::{Entry, Kind, Role};

/// What was known before a replay.
#[derive(Clone, Debug)]
pub(super) struct Replay {
    /// Where its entries begin.
    begin: usize,
    messages: HashMap<Key, usize>,
    tools: HashMap<String, Tool>,
}

impl Fold {
    /// From here on until the next prompt the agent repeats. Some do so only after they have answered.
    pub(super) fn begin_replay(&mut self) {
        self.end_turn(None);
        self.settle_replay();
        let messages = std::mem::take(&mut self.messages);
        let tools = std::mem::take(&mut self.tools);
        self.replay = Some(Replay { begin: self.entries.len(), messages, tools });
    }

    /// Drops what was repeated, and marks what was not known.
    pub(super) fn settle_replay(&mut self) {
        let Some(replay) = self.replay.take() else { return };
        self.settle_tools();
        self.open = None;
        let repeated = self.entries.split_off(replay.begin);
        let known: HashSet<Name> = self.entries.iter().flat_map(names).collect();
        let mut moved = HashMap::new();
        for (at, mut entry) in repeated.into_iter().enumerate() {
            if names(&entry).iter().any(|name| known.contains(name)) {
                continue;
            }
            moved.insert(replay.begin + at, self.entries.len());
            let mark = about("replayed", true);
            entry.metadata.get_or_insert_default().extend(mark);
            self.entries.push(entry);
        }
        self.follow(replay, &moved);
    }

    /// Finds again what stands elsewhere now; what was known before is known again.
    fn follow(&mut self, replay: Replay, moved: &HashMap<usize, usize>) {
        for asked in self.asked.values_mut() {
            let is_before = |at: &usize| *at < replay.begin;
            asked.entry = asked
                .entry
                .and_then(|at| Some(at).filter(is_before).or_else(|| moved.get(&at).copied()));
        }
        let mut messages = replay.messages;
        for (key, at) in self.messages.drain() {
            if let Some(at) = moved.get(&at) {
                messages.entry(key).or_insert(*at);
            }
        }
        let mut tools = replay.tools;
        for (id, tool) in self.tools.drain() {
            if let Some(tool) = tool.moved(moved) {
                tools.entry(id).or_insert(tool);
            }
        }
        self.messages = messages;
        self.tools = tools;
    }
}

/// What an entry is known by.
#[derive(PartialEq, Eq, Hash)]
enum Name {
    Tool(Kind, String),
    Message(Role, Kind, String),
    Text(Role, Kind, String),
}

fn names(entry: &Entry) -> Vec<Name> {
    let (role, kind) = (&entry.role, entry.kind);
    if let Some(id) = &entry.tool_call_id {
        return vec![Name::Tool(kind, id.clone())];
    }
    let message = entry.message_id.clone().map(|id| Name::Message(role.clone(), kind, id));
    let text = Some(entry.content.trim().to_owned()).filter(|text| !text.is_empty());
    message.into_iter().chain(text.map(|text| Name::Text(role.clone(), kind, text))).collect()
}
