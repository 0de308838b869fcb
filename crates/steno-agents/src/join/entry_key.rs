//! Keys that identify an entry both in an agent's own session files and in a recording.

use steno_model::entry::{Entry, EntryKind, Role};
use steno_model::json::{JsonStyle, sort_keys};

/// Content that is the same on both sides, whatever the formatting.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum EntryKey {
    /// The id of a tool call, and whether the entry is the call or its result.
    ToolId { id: String, is_call: bool },
    /// A tool call by name and input. Some APIs give calls no ids, and the agent invents its own.
    ToolInput { name: String, input: String },
    /// A text without whitespace, which may differ.
    Text { role: Role, kind: EntryKind, words: String },
    /// The id of a message. One side may have it in several pieces.
    Message { id: String, kind: EntryKind },
}

/// Removes all whitespace.
pub(super) fn strip_whitespace(text: &str) -> String {
    text.split_whitespace().collect()
}

impl EntryKey {
    /// The keys of an entry, the most specific first; empty if it has none.
    pub(crate) fn entry_keys(entry: &Entry) -> Vec<Self> {
        match (entry.kind, &entry.tool_call_id) {
            (EntryKind::ToolCall, id) => {
                let is_call = true;
                let id = id.iter().map(|id| Self::ToolId { id: id.clone(), is_call });
                let name = entry.tool_name.clone().unwrap_or_default();
                let input = JsonStyle::COMPACT.print(&entry.tool_input.as_ref().map(sort_keys));
                id.chain([Self::ToolInput { name, input }]).collect()
            }
            (EntryKind::ToolResult | EntryKind::Error, Some(id)) => {
                vec![Self::ToolId { id: id.clone(), is_call: false }]
            }
            (EntryKind::Text | EntryKind::Thinking, _) => {
                let words = strip_whitespace(&entry.content);
                let is_empty = words.is_empty();
                let key = Self::Text { role: entry.role.clone(), kind: entry.kind, words };
                Some(key).filter(|_| !is_empty).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    /// The keys of an entry for messages of the Agent Client Protocol, where calls and messages have ids.
    pub(super) fn message_keys(entry: &Entry) -> Vec<Self> {
        match (entry.kind, &entry.tool_call_id, &entry.message_id) {
            (EntryKind::ToolCall | EntryKind::ToolResult | EntryKind::Error, Some(id), _) => {
                vec![Self::ToolId { id: id.clone(), is_call: entry.kind == EntryKind::ToolCall }]
            }
            (kind @ (EntryKind::Text | EntryKind::Thinking), _, message) => {
                let words = strip_whitespace(&entry.content);
                let text = Self::Text { role: entry.role.clone(), kind, words };
                let message = message.iter().map(|id| Self::Message { id: id.clone(), kind });
                [text].into_iter().chain(message).collect()
            }
            _ => Vec::new(),
        }
    }
}
