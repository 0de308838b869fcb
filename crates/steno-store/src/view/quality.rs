//! Signs of trouble in a session: failed calls, retries, edits that were undone, and a full context.

use std::collections::HashMap;

use super::edits::find_edits;
use super::failures::{SessionFailure, find_failures};
use super::file_changes::{TextReplacement, failed_call_ids, replaced_blocks};
use super::turns::is_prompt;
use steno_model::entry::{Entry, EntryKind};

/// What went wrong in a session, each with the numbers of the entries that show it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionQuality {
    /// Errors and failed tool calls.
    pub failures: Vec<SessionFailure>,
    /// How many of them are failed tool calls.
    pub failed_calls: usize,
    /// Calls that repeat an earlier call of the same turn which failed, while no file was edited.
    pub retries: Vec<RepeatedEntry>,
    /// Edits whose new text a later edit replaced by the old text.
    pub undone_edits: Vec<RepeatedEntry>,
    /// Where the agent compacted its context.
    pub compactions: Vec<usize>,
    /// The entry with the longest prompt, and its tokens.
    pub largest_context: Option<ContextPeak>,
}

/// An entry that repeats or undoes an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepeatedEntry {
    /// The number of the earlier entry.
    pub earlier: usize,
    /// The number of the later entry.
    pub later: usize,
}

/// The longest prompt of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContextPeak {
    /// The number of the entry.
    pub number: usize,
    /// The tokens that the model read.
    pub tokens: u64,
}

impl SessionQuality {
    /// Examines the entries of a session.
    pub fn from_entries(entries: &[Entry]) -> Self {
        let compacted =
            entries.iter().enumerate().filter(|(_, entry)| entry.kind == EntryKind::Compaction);
        Self {
            failures: find_failures(entries),
            failed_calls: entries.iter().filter(|entry| entry.is_tool_error()).count(),
            retries: find_retries(entries),
            undone_edits: find_undone_edits(entries),
            compactions: compacted.map(|(number, _)| number).collect(),
            largest_context: find_largest_context(entries),
        }
    }

    /// How many failures no later entry repaired.
    pub fn count_unrepaired(&self) -> usize {
        self.failures.iter().filter(|failure| failure.repair.is_none()).count()
    }

    /// Whether nothing is worth showing.
    pub fn is_clean(&self) -> bool {
        self.failures.is_empty()
            && self.retries.is_empty()
            && self.undone_edits.is_empty()
            && self.compactions.is_empty()
    }
}

fn find_retries(entries: &[Entry]) -> Vec<RepeatedEntry> {
    let failed = failed_call_ids(entries);
    let mut last_failed: HashMap<(&str, &str, String), usize> = HashMap::new();
    let mut retries = Vec::new();
    for (later, call) in entries.iter().enumerate() {
        // The same call on another request of the user is no retry.
        if is_prompt(call) {
            last_failed.clear();
        }
        if call.kind != EntryKind::ToolCall {
            continue;
        }
        let tool = call.tool_name.as_deref().unwrap_or_default();
        let input =
            call.tool_input.as_ref().map_or_else(|| call.content.clone(), ToString::to_string);
        let key = (call.source.as_str(), tool, input);
        if let Some(earlier) = last_failed.remove(&key) {
            retries.push(RepeatedEntry { earlier, later });
        }
        if call.tool_call_id.as_deref().is_some_and(|id| failed.contains(id)) {
            last_failed.insert(key, later);
        } else if !find_edits(call).is_empty() {
            // To run a command again after an edit is how agents work, and no retry.
            last_failed.clear();
        }
    }
    retries
}

fn find_undone_edits(entries: &[Entry]) -> Vec<RepeatedEntry> {
    let failed = failed_call_ids(entries);
    let mut open: HashMap<String, Vec<(usize, TextReplacement)>> = HashMap::new();
    let mut undone = Vec::new();
    for (later, entry) in entries.iter().enumerate() {
        if entry.tool_call_id.as_deref().is_some_and(|id| failed.contains(id)) {
            continue;
        }
        for edit in find_edits(entry) {
            let earlier_edits = open.entry(edit.path.to_owned()).or_default();
            for block in replaced_blocks(&edit.lines).into_iter().filter(|one| one.old != one.new) {
                let reverses = |(_, one): &(usize, TextReplacement)| {
                    one.new == block.old && one.old == block.new
                };
                match earlier_edits.iter().rposition(reverses) {
                    Some(at) => {
                        undone.push(RepeatedEntry { earlier: earlier_edits.remove(at).0, later })
                    }
                    None => earlier_edits.push((later, block)),
                }
            }
        }
    }
    undone
}

fn find_largest_context(entries: &[Entry]) -> Option<ContextPeak> {
    let prompts = entries.iter().enumerate().filter_map(|(number, entry)| {
        Some(ContextPeak { number, tokens: entry.usage.as_ref()?.prompt_tokens() })
    });
    prompts
        .filter(|peak| peak.tokens > 0)
        .max_by_key(|peak| (peak.tokens, usize::MAX - peak.number))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use steno_model::entry::Role;
    use steno_model::usage::Usage;

    fn call(id: &str, input: Value) -> Entry {
        let mut entry = Entry::new(Role::Assistant, EntryKind::ToolCall, "");
        entry.tool_call_id = Some(id.to_owned());
        (entry.tool_name, entry.tool_input) = (Some("Edit".to_owned()), Some(input));
        entry
    }

    fn result(id: &str, is_error: bool) -> Entry {
        let mut entry = Entry::new(Role::Tool, EntryKind::ToolResult, "");
        entry.tool_call_id = Some(id.to_owned());
        entry.extra.insert("is_error".to_owned(), json!(is_error));
        entry
    }

    fn edit(id: &str, old: &str, new: &str) -> Entry {
        call(id, json!({"file_path": "a", "old_string": old, "new_string": new}))
    }

    #[test]
    fn a_failed_call_that_is_repeated_is_a_retry() {
        let same = json!({"command": "make"});
        let entries = [
            call("1", same.clone()),
            result("1", true),
            call("2", json!({"command": "ls"})),
            result("2", false),
            call("3", same.clone()),
            result("3", false),
            call("4", same),
        ];
        let quality = SessionQuality::from_entries(&entries);
        let numbers: Vec<_> = quality.failures.iter().map(|failure| failure.number).collect();
        assert_eq!((numbers, quality.count_unrepaired()), (vec![1], 0));
        assert_eq!(quality.retries, [RepeatedEntry { earlier: 0, later: 4 }]);
        assert!(!quality.is_clean());
    }

    #[test]
    fn the_same_call_in_a_later_turn_is_no_retry() {
        let same = json!({"command": "make"});
        let prompt = |source: &str| {
            let mut entry = Entry::new(Role::User, EntryKind::Text, "Go on");
            entry.source = source.to_owned();
            entry
        };
        let entries = [
            call("1", same.clone()),
            result("1", true),
            prompt("primary"),
            call("2", same.clone()),
            result("2", true),
            prompt("subagent:a"),
            call("3", same),
        ];
        let quality = SessionQuality::from_entries(&entries);
        assert_eq!(quality.retries, [RepeatedEntry { earlier: 3, later: 6 }]);
    }

    #[test]
    fn a_command_that_runs_again_after_an_edit_is_no_retry() {
        let same = json!({"command": "make"});
        let entries = |is_failed_edit: bool| {
            [
                call("1", same.clone()),
                result("1", true),
                edit("2", "a", "b"),
                result("2", is_failed_edit),
                call("3", same.clone()),
            ]
        };
        assert_eq!(SessionQuality::from_entries(&entries(false)).retries, []);
        let retry = RepeatedEntry { earlier: 0, later: 4 };
        assert_eq!(SessionQuality::from_entries(&entries(true)).retries, [retry]);
    }

    #[test]
    fn an_edit_and_its_reverse_are_paired() {
        let entries =
            [edit("1", "a", "b"), edit("2", "c", "d"), edit("3", "b", "a"), edit("4", "d", "e")];
        let quality = SessionQuality::from_entries(&entries);
        assert_eq!(quality.undone_edits, [RepeatedEntry { earlier: 0, later: 2 }]);
    }

    #[test]
    fn the_longest_prompt_is_the_largest_context() {
        let said = |input: u64| {
            let mut entry = Entry::new(Role::Assistant, EntryKind::Text, "");
            entry.usage = Some(Usage { input, ..Usage::default() });
            entry
        };
        let quality = SessionQuality::from_entries(&[said(5), said(9), said(9)]);
        assert_eq!(quality.largest_context, Some(ContextPeak { number: 1, tokens: 9 }));
        assert!(quality.is_clean());
    }
}
