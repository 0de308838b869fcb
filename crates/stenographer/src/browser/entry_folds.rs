//! Which entries of a session are folded: at first tools and thoughts, then as the user toggles them.

use std::collections::HashMap;

use steno_model::{Entry, EntryKind, Role};

/// Entries that are folded together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FoldGroup {
    /// Tool calls, tool results and notices.
    Tools,
    /// Thoughts.
    Thoughts,
    /// Messages.
    Messages,
}

/// The folded entries.
#[derive(Debug)]
pub(crate) struct EntryFolds {
    are_tools_folded: bool,
    are_thoughts_folded: bool,
    single: HashMap<usize, bool>,
}

impl Default for EntryFolds {
    fn default() -> Self {
        Self { are_tools_folded: true, are_thoughts_folded: true, single: HashMap::new() }
    }
}

impl EntryFolds {
    pub(crate) fn is_folded(&self, entries: &[Entry], at: usize) -> bool {
        let group = || match entries.get(at).map(fold_group) {
            Some(FoldGroup::Tools) => self.are_tools_folded,
            Some(FoldGroup::Thoughts) => self.are_thoughts_folded,
            _ => false,
        };
        self.single.get(&at).copied().unwrap_or_else(group)
    }

    /// Folds or unfolds one entry.
    pub(crate) fn set_folded(&mut self, at: usize, folded: bool) {
        self.single.insert(at, folded);
    }

    /// Toggles a group; single entries of it lose their own setting.
    pub(crate) fn toggle_group(&mut self, wanted: FoldGroup, entries: &[Entry]) {
        match wanted {
            FoldGroup::Tools => self.are_tools_folded = !self.are_tools_folded,
            FoldGroup::Thoughts => self.are_thoughts_folded = !self.are_thoughts_folded,
            FoldGroup::Messages => {}
        }
        self.single.retain(|at, _| entries.get(*at).map(fold_group) != Some(wanted));
    }
}

fn fold_group(entry: &Entry) -> FoldGroup {
    match entry.kind {
        EntryKind::Thinking => FoldGroup::Thoughts,
        EntryKind::ToolCall | EntryKind::ToolResult | EntryKind::Notice | EntryKind::Other => {
            FoldGroup::Tools
        }
        _ if entry.role == Role::System && entry.kind == EntryKind::Text => FoldGroup::Tools,
        _ => FoldGroup::Messages,
    }
}
