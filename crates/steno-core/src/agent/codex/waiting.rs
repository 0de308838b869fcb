//! Entries that wait for their tokens: Codex counts a response's tokens some records after it.

use crate::entry::{Entry, Kind, Role, Usage};

/// How many entries may wait behind an answer.
const LIMIT: usize = 256;

/// The last answer, and what came after it.
#[derive(Debug, Default)]
pub(super) struct Waiting(Vec<Entry>);

impl Waiting {
    /// Takes one more entry, and lets go of those that need not wait.
    pub(super) fn take(&mut self, entry: Entry, out: &mut dyn FnMut(Entry)) {
        if is_answer(&entry) || self.0.len() > LIMIT {
            self.release(out);
        }
        if is_answer(&entry) || !self.0.is_empty() {
            self.0.push(entry);
        } else {
            out(entry);
        }
    }

    /// Gives tokens to the answer that waits; whether there is one.
    pub(super) fn bill(&mut self, usage: &Usage) -> bool {
        let answer = self.0.first_mut();
        let is_there = answer.is_some();
        if let Some(answer) = answer {
            answer.usage.get_or_insert_default().add(usage);
        }
        is_there
    }

    /// Lets all go.
    pub(super) fn release(&mut self, out: &mut dyn FnMut(Entry)) {
        self.0.drain(..).for_each(out);
    }
}

/// Whether an entry is part of what the model answered.
pub(super) fn is_answer(entry: &Entry) -> bool {
    let is_part = matches!(entry.kind, Kind::Text | Kind::Thinking | Kind::ToolCall);
    entry.role == Role::Assistant && is_part
}
