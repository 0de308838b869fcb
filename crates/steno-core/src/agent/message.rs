//! A message of an agent, collected until all of its entries are known.

use crate::agent::entries;
use crate::agent::output::Output;
use crate::entry::{Entry, Kind, Role, Usage};
use crate::json::Value;
use crate::timestamp::Timestamp;

/// The entries of one message, and the fields they share.
#[derive(Debug, Default)]
pub(crate) struct Message {
    pub(crate) id: Option<String>,
    pub(crate) parent: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) created_at: Option<Timestamp>,
    pub(crate) usage: Option<Usage>,
    pub(crate) entries: Vec<Entry>,
}

impl Output<'_> {
    /// Emits a message of the user, a tool or the program.
    pub(crate) fn message(&mut self, mut message: Message) {
        let entries = std::mem::take(&mut message.entries);
        for entry in entries {
            self.entry(message.complete(entry));
        }
    }

    /// Emits an answer of the model. An answer without content becomes an empty text entry.
    pub(crate) fn answer(&mut self, mut message: Message) {
        if !message.entries.iter().any(is_answer) {
            message.entries.insert(0, Entry::new(Role::Assistant, Kind::Text, ""));
        }
        let usage = message.usage.take();
        if let Some(first) = message.entries.iter_mut().find(|entry| is_answer(entry)) {
            first.usage = usage;
        }
        self.message(message);
    }
}

impl Message {
    /// Adds an entry.
    pub(crate) fn push(&mut self, entry: Entry) {
        self.entries.push(entry);
    }

    /// Adds an entry with text content.
    pub(crate) fn say(&mut self, role: Role, kind: Kind, content: impl Into<String>) {
        self.push(Entry::new(role, kind, content));
    }

    /// Adds a part of an unknown kind as an entry of kind `other`.
    pub(crate) fn unknown(&mut self, part: Value) {
        self.push(entries::unknown(part));
    }

    fn complete(&self, mut entry: Entry) -> Entry {
        entry.message_id.clone_from(&self.id);
        entry.parent_id.clone_from(&self.parent);
        entry.created_at = entry.created_at.or(self.created_at);
        if entry.role == Role::Assistant {
            entry.model = entry.model.or_else(|| self.model.clone());
        }
        entry
    }
}

fn is_answer(entry: &Entry) -> bool {
    entry.role == Role::Assistant
        && matches!(entry.kind, Kind::Text | Kind::Thinking | Kind::ToolCall)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{Emit, Item};

    fn answered(message: Message) -> Vec<Entry> {
        let mut entries = Vec::new();
        let emit: Emit<'_> = &mut |item| match item {
            Item::Entry(entry) => entries.push(*entry),
            Item::Problem(problem) => panic!("{problem}"),
        };
        Output::new("x", "s", emit).answer(message);
        entries
    }

    #[test]
    fn usage_stands_on_one_entry() {
        let usage = Usage { output: 5, ..Usage::default() };
        let mut message =
            Message { id: Some("m".into()), usage: Some(usage), ..Message::default() };
        message.say(Role::User, Kind::Notice, "n");
        message.say(Role::Assistant, Kind::Thinking, "a");
        message.say(Role::Assistant, Kind::Text, "b");
        let entries = answered(message);
        let usages: Vec<_> = entries.iter().map(|entry| entry.usage).collect();
        assert_eq!(usages, [None, Some(usage), None]);
        assert!(entries.iter().all(|entry| entry.message_id.as_deref() == Some("m")));
    }

    #[test]
    fn an_answer_without_content_is_kept() {
        let message = Message { model: Some("gpt".into()), ..Message::default() };
        let entries = answered(message);
        assert_eq!((entries[0].kind, entries[0].model.as_deref()), (Kind::Text, Some("gpt")));
    }
}
