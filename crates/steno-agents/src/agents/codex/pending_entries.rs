//! Queues entries until their usage is known. Codex writes a response's token count some records after it.

use steno_model::entry::{Entry, EntryKind, Role, Usage};

/// How many entries may queue behind an answer.
const MAX_WAITING_ENTRIES: usize = 256;

/// The last answer and the entries after it.
#[derive(Debug, Default)]
pub(super) struct CodexPendingEntries(Vec<Entry>);

impl CodexPendingEntries {
    /// Queues an entry, and passes on to `out` those that need not wait.
    pub(super) fn push_entry(&mut self, entry: Entry, out: &mut dyn FnMut(Entry)) {
        if is_answer(&entry) || self.0.len() > MAX_WAITING_ENTRIES {
            self.release_all(out);
        }
        if is_answer(&entry) || !self.0.is_empty() {
            self.0.push(entry);
        } else {
            out(entry);
        }
    }

    /// Adds usage to the queued answer. Returns false if there is none.
    pub(super) fn add_usage(&mut self, usage: &Usage) -> bool {
        let answer = self.0.first_mut();
        let has_answer = answer.is_some();
        if let Some(answer) = answer {
            answer.usage.get_or_insert_default().add(usage);
        }
        has_answer
    }

    /// Passes all queued entries on to `out`.
    pub(super) fn release_all(&mut self, out: &mut dyn FnMut(Entry)) {
        self.0.drain(..).for_each(out);
    }
}

/// Whether an entry is part of the model's response.
pub(super) fn is_answer(entry: &Entry) -> bool {
    let is_part = matches!(entry.kind, EntryKind::Text | EntryKind::Thinking | EntryKind::ToolCall);
    entry.role == Role::Assistant && is_part
}
