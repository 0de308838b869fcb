//! A message of an agent, collected until all of its entries are known.

use crate::decoding::entries;
use crate::decoding::entry_emitter::EntryEmitter;
use steno_model::entry::{Entry, EntryKind, Role, Usage};
use steno_model::json::Value;
use steno_model::timestamp::Timestamp;

/// The entries of one message, and the fields they share.
#[derive(Debug, Default)]
pub(crate) struct AgentMessage {
    pub(crate) id: Option<String>,
    pub(crate) parent: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) created_at: Option<Timestamp>,
    pub(crate) usage: Option<Usage>,
    pub(crate) entries: Vec<Entry>,
}

impl EntryEmitter<'_> {
    /// Emits a message of the user, a tool or the program.
    pub(crate) fn emit_message(&mut self, mut message: AgentMessage) {
        let entries = std::mem::take(&mut message.entries);
        for entry in entries {
            self.emit_entry(message.complete_entry(entry));
        }
    }

    /// Emits an answer of the model. An answer without content becomes an empty text entry.
    pub(crate) fn emit_answer(&mut self, mut message: AgentMessage) {
        if !message.entries.iter().any(is_model_answer) {
            message.entries.insert(0, Entry::new(Role::Assistant, EntryKind::Text, ""));
        }
        let usage = message.usage.take();
        if let Some(first) = message.entries.iter_mut().find(|entry| is_model_answer(entry)) {
            first.usage = usage;
        }
        self.emit_message(message);
    }
}

impl AgentMessage {
    /// Adds an entry.
    pub(crate) fn push(&mut self, entry: Entry) {
        self.entries.push(entry);
    }

    /// Adds an entry with text content.
    pub(crate) fn add_text(&mut self, role: Role, kind: EntryKind, content: impl Into<String>) {
        self.push(Entry::new(role, kind, content));
    }

    /// Adds a part of an unknown kind as an entry of kind `other`.
    pub(crate) fn add_unknown(&mut self, part: Value) {
        self.push(entries::unknown_entry(part));
    }

    fn complete_entry(&self, mut entry: Entry) -> Entry {
        entry.message_id.clone_from(&self.id);
        entry.parent_id.clone_from(&self.parent);
        entry.created_at = entry.created_at.or(self.created_at);
        if entry.role == Role::Assistant {
            entry.model = entry.model.or_else(|| self.model.clone());
        }
        entry
    }
}

fn is_model_answer(entry: &Entry) -> bool {
    entry.role == Role::Assistant
        && matches!(entry.kind, EntryKind::Text | EntryKind::Thinking | EntryKind::ToolCall)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reader::{ItemSink, ReaderItem};

    fn answered(message: AgentMessage) -> Vec<Entry> {
        let mut entries = Vec::new();
        let emit: ItemSink<'_> = &mut |item| match item {
            ReaderItem::Entry(entry) => entries.push(*entry),
            ReaderItem::Problem(problem) => panic!("{problem}"),
        };
        EntryEmitter::new("x", "s", emit).emit_answer(message);
        entries
    }

    #[test]
    fn usage_is_on_one_entry() {
        let usage = Usage { output: 5, ..Usage::default() };
        let mut message =
            AgentMessage { id: Some("m".into()), usage: Some(usage), ..AgentMessage::default() };
        message.add_text(Role::User, EntryKind::Notice, "n");
        message.add_text(Role::Assistant, EntryKind::Thinking, "a");
        message.add_text(Role::Assistant, EntryKind::Text, "b");
        let entries = answered(message);
        let usages: Vec<_> = entries.iter().map(|entry| entry.usage).collect();
        assert_eq!(usages, [None, Some(usage), None]);
        assert!(entries.iter().all(|entry| entry.message_id.as_deref() == Some("m")));
    }

    #[test]
    fn an_answer_without_content_is_kept() {
        let message = AgentMessage { model: Some("gpt".into()), ..AgentMessage::default() };
        let entries = answered(message);
        assert_eq!((entries[0].kind, entries[0].model.as_deref()), (EntryKind::Text, Some("gpt")));
    }
}
