//! What of a session is folded: tools and thoughts at first, then as the reader likes.

use std::collections::HashMap;

use steno_core::{Entry, Kind, Role};

/// Entries that are folded together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    /// Tools, and what the program rather than a speaker tells.
    Tools,
    /// Thoughts.
    Thoughts,
    /// What was said.
    Said,
}

/// Which entries are folded.
#[derive(Debug)]
pub(crate) struct Folds {
    tools: bool,
    thoughts: bool,
    single: HashMap<usize, bool>,
}

impl Default for Folds {
    fn default() -> Self {
        Self { tools: true, thoughts: true, single: HashMap::new() }
    }
}

impl Folds {
    pub(crate) fn is_folded(&self, entries: &[Entry], at: usize) -> bool {
        let group = || match entries.get(at).map(group) {
            Some(Group::Tools) => self.tools,
            Some(Group::Thoughts) => self.thoughts,
            _ => false,
        };
        self.single.get(&at).copied().unwrap_or_else(group)
    }

    /// Folds or unfolds one entry.
    pub(crate) fn set(&mut self, at: usize, folded: bool) {
        self.single.insert(at, folded);
    }

    /// Folds all of a group, or unfolds them if they are.
    pub(crate) fn toggle(&mut self, wanted: Group, entries: &[Entry]) {
        match wanted {
            Group::Tools => self.tools = !self.tools,
            Group::Thoughts => self.thoughts = !self.thoughts,
            Group::Said => {}
        }
        self.single.retain(|at, _| entries.get(*at).map(group) != Some(wanted));
    }
}

fn group(entry: &Entry) -> Group {
    match entry.kind {
        Kind::Thinking => Group::Thoughts,
        Kind::ToolCall | Kind::ToolResult | Kind::Notice | Kind::Other => Group::Tools,
        _ if entry.role == Role::System && entry.kind == Kind::Text => Group::Tools,
        _ => Group::Said,
    }
}
