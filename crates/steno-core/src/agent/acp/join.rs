//! Joins what the wire told of a session with what its agent wrote down itself: each thing stands once, with all that
//! either of them knows.
//!
//! The agent's own files tell the order, the texts and the tokens. The wire adds what they lack, such as permissions,
//! plans, and answers that were never written down, after what it followed on the wire.

use std::collections::HashMap;

use crate::entry::{Entry, Kind, Role};
use crate::json::Value;

/// The entries of both, without numbers: those of the files keep their ids.
pub(crate) fn join(own: Vec<Entry>, wire: Vec<Entry>) -> Vec<Entry> {
    let mut known = Known::of(&own);
    let is_billed = own.iter().any(|entry| entry.usage.is_some());
    let mut own: Vec<Slot> = own.into_iter().map(Slot::of).collect();
    let mut before = Vec::new();
    let mut anchor = None;
    for mut entry in wire {
        if let Some(at) = known.find(&entry) {
            anchor = anchor.max(Some(at));
            complete(&mut own[at].entry, entry);
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
    let own = own.into_iter().flat_map(|slot| std::iter::once(slot.entry).chain(slot.after));
    before.into_iter().chain(own).collect()
}

/// An entry of the agent's own, and what the wire tells to have followed it.
struct Slot {
    entry: Entry,
    after: Vec<Entry>,
}

impl Slot {
    fn of(entry: Entry) -> Self {
        Self { entry, after: Vec::new() }
    }
}

/// What an entry of either side is known by.
#[derive(PartialEq, Eq, Hash)]
enum Name {
    Tool(Kind, String),
    Said(Role, Kind, String),
}

/// The agent's own entries by name, each of which is found once.
struct Known {
    names: HashMap<Name, Vec<usize>>,
    /// Pieces of one message, which the wire may tell as one.
    pieces: HashMap<(Kind, String), String>,
}

impl Known {
    fn of(own: &[Entry]) -> Self {
        let mut known = Self { names: HashMap::new(), pieces: HashMap::new() };
        // Looked through from the end, so that the first is taken first.
        for (at, entry) in own.iter().enumerate().rev() {
            for name in names(entry) {
                known.names.entry(name).or_default().push(at);
            }
        }
        for entry in own.iter().filter(|entry| is_said(entry)) {
            if let Some(id) = &entry.message_id {
                let pieces = known.pieces.entry((entry.kind, id.clone())).or_default();
                pieces.push_str(&plain(&entry.content));
            }
        }
        known
    }

    fn find(&mut self, entry: &Entry) -> Option<usize> {
        for name in names(entry) {
            if let Some(at) = self.names.get_mut(&name).and_then(Vec::pop) {
                return Some(at);
            }
        }
        // Several pieces there, one message here.
        let id = entry.message_id.clone().filter(|_| is_said(entry))?;
        let pieces = self.pieces.get(&(entry.kind, id.clone()))?;
        let is_part = pieces.contains(&plain(&entry.content));
        is_part.then(|| self.place_of(entry.kind, &id)).flatten()
    }

    fn place_of(&self, kind: Kind, id: &str) -> Option<usize> {
        let name = Name::Said(Role::Other(id.to_owned()), kind, String::new());
        self.names.get(&name).and_then(|places| places.first().copied())
    }
}

fn names(entry: &Entry) -> Vec<Name> {
    if let Some(id) = &entry.tool_call_id
        && matches!(entry.kind, Kind::ToolCall | Kind::ToolResult | Kind::Error)
    {
        let kind = if entry.kind == Kind::ToolCall { Kind::ToolCall } else { Kind::ToolResult };
        return vec![Name::Tool(kind, id.clone())];
    }
    if !is_said(entry) {
        return Vec::new();
    }
    let text = Name::Said(entry.role.clone(), entry.kind, plain(&entry.content));
    let message = entry.message_id.clone();
    let message = message.map(|id| Name::Said(Role::Other(id), entry.kind, String::new()));
    std::iter::once(text).chain(message).collect()
}

fn is_said(entry: &Entry) -> bool {
    matches!(entry.kind, Kind::Text | Kind::Thinking)
}

/// A text without blanks, which the two may have set differently.
fn plain(text: &str) -> String {
    text.split_whitespace().collect()
}

/// Fills in what an agent's own entry lacks.
fn complete(own: &mut Entry, wire: Entry) {
    if own.content.is_empty() {
        own.content = wire.content;
    }
    // A prompt was given when the wire says so; the agent writes it down a little later.
    let is_prompt = own.role == Role::User && own.kind == Kind::Text;
    own.created_at = match is_prompt {
        true => wire.created_at.or(own.created_at),
        false => own.created_at.or(wire.created_at),
    };
    own.model = own.model.take().or(wire.model);
    own.tool_name = own.tool_name.take().or(wire.tool_name);
    own.tool_input = own.tool_input.take().or(wire.tool_input);
    if let Some(metadata) = wire.metadata {
        own.metadata.get_or_insert_default().insert("acp".to_owned(), Value::Object(metadata));
    }
}
