//! The failures of a session, and which later entry repaired each of them.
//!
//! A failed call is repaired when the same call, another call for the same file, or the same command with other
//! arguments succeeds later in the session. The words of one command must then contain those of the other: `lampctl
//! status 2` says nothing about `lampctl status 1`. An error of the agent itself is repaired when the agent continues.

use std::collections::{HashMap, HashSet};

use super::call_target::{CallTarget, call_targets, plain_words};
use steno_model::entry::{Entry, EntryKind, Role};

/// An error or a failed tool call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionFailure {
    /// The number of the entry with the error.
    pub number: usize,
    /// The number of the call that failed; `None` for an error of the agent itself.
    pub call: Option<usize>,
    /// The later entry that repaired it, if there is one.
    pub repair: Option<FailureRepair>,
}

/// The entry that repaired a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailureRepair {
    /// The number of the entry.
    pub number: usize,
    /// What it has in common with the failure.
    pub kind: RepairKind,
}

/// Why a failure counts as repaired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepairKind {
    /// The same call succeeded.
    SameCall,
    /// A call for the same file succeeded.
    SameFile,
    /// The same command succeeded with other arguments.
    SameCommand,
    /// The agent continued after an error of its own.
    Continued,
}

/// The numbers of the successful calls of each target, the last first.
type LaterSuccesses<'a> = HashMap<CallTarget<'a>, Vec<usize>>;

/// How many later commands are compared with a failed one.
const MAX_COMPARED: usize = 50;

/// Finds the errors and failed calls of a session, in order.
pub(super) fn find_failures(entries: &[Entry]) -> Vec<SessionFailure> {
    let calls = pair_results_with_calls(entries);
    let successes = successful_calls(entries, &calls);
    let mut repairs: LaterSuccesses<'_> = HashMap::new();
    let mut answers: HashMap<&str, usize> = HashMap::new();
    let mut failures = Vec::new();
    // From the end, so that the last success of a list is the first after the failure.
    for (number, entry) in entries.iter().enumerate().rev() {
        if is_failure(entry) {
            let call = calls.get(&number).copied();
            let repair = match call {
                Some(call) => find_repair(entries, call, &repairs),
                None => answers
                    .get(entry.source.as_str())
                    .map(|&number| FailureRepair { number, kind: RepairKind::Continued }),
            };
            failures.push(SessionFailure { number, call, repair });
        } else if entry.role == Role::Assistant {
            answers.insert(&entry.source, number);
        }
        if successes.contains(&number) {
            for target in call_targets(entry) {
                repairs.entry(target).or_default().push(number);
            }
        }
    }
    failures.reverse();
    failures
}

fn is_failure(entry: &Entry) -> bool {
    entry.kind == EntryKind::Error || entry.is_tool_error()
}

/// The number of the call of each result. A result without an id belongs to the last call of its source without one.
fn pair_results_with_calls(entries: &[Entry]) -> HashMap<usize, usize> {
    let (mut by_id, mut unnamed) = (HashMap::new(), HashMap::new());
    let mut calls = HashMap::new();
    for (number, entry) in entries.iter().enumerate() {
        let source = entry.source.as_str();
        match (entry.kind, entry.tool_call_id.as_deref()) {
            (EntryKind::ToolCall, Some(id)) => _ = by_id.insert(id, number),
            (EntryKind::ToolCall, None) => _ = unnamed.insert(source, number),
            (_, Some(id)) => calls.extend(by_id.get(id).map(|&call| (number, call))),
            (EntryKind::ToolResult, None) => {
                calls.extend(unnamed.remove(source).map(|call| (number, call)));
            }
            _ => {}
        }
    }
    calls
}

/// The numbers of the calls with a result, none of which is an error.
fn successful_calls(entries: &[Entry], calls: &HashMap<usize, usize>) -> HashSet<usize> {
    let is_failed = |result: &usize| is_failure(&entries[*result]);
    let failed: HashSet<usize> =
        calls.iter().filter(|(result, _)| is_failed(result)).map(|(_, call)| *call).collect();
    calls.values().copied().filter(|call| !failed.contains(call)).collect()
}

/// The success that has most in common with a failed call.
fn find_repair(
    entries: &[Entry],
    failed: usize,
    successes: &LaterSuccesses<'_>,
) -> Option<FailureRepair> {
    call_targets(&entries[failed]).into_iter().find_map(|target| {
        let mut nearest = successes.get(&target)?.iter().rev().copied();
        let (number, kind) = match target {
            CallTarget::Call { .. } => (nearest.next()?, RepairKind::SameCall),
            CallTarget::File { .. } => (nearest.next()?, RepairKind::SameFile),
            CallTarget::Command(_) => {
                let words = plain_words(&entries[failed]);
                let is_similar = |later: &usize| {
                    let later = plain_words(&entries[*later]);
                    later.is_subset(&words) || words.is_subset(&later)
                };
                (nearest.take(MAX_COMPARED).find(is_similar)?, RepairKind::SameCommand)
            }
        };
        Some(FailureRepair { number, kind })
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn call(id: &str, tool: &str, input: Value) -> Entry {
        let mut entry = Entry::new(Role::Assistant, EntryKind::ToolCall, "");
        entry.tool_call_id = Some(id.to_owned());
        (entry.tool_name, entry.tool_input) = (Some(tool.to_owned()), Some(input));
        entry
    }

    fn result(id: &str, is_error: bool) -> Entry {
        let mut entry = Entry::new(Role::Tool, EntryKind::ToolResult, "");
        entry.tool_call_id = Some(id.to_owned());
        entry.extra.insert("is_error".to_owned(), json!(is_error));
        entry
    }

    /// Calls and whether each fails. Call `n` is entry `2n`, its result the next.
    fn failures_of(calls: &[(&str, Value, bool)]) -> Vec<Option<(usize, RepairKind)>> {
        let entries: Vec<Entry> = calls
            .iter()
            .enumerate()
            .flat_map(|(at, (tool, input, fails))| {
                [call(&at.to_string(), tool, input.clone()), result(&at.to_string(), *fails)]
            })
            .collect();
        let repairs = find_failures(&entries).into_iter().map(|failure| failure.repair);
        repairs.map(|repair| repair.map(|repair| (repair.number, repair.kind))).collect()
    }

    #[test]
    fn the_same_call_repairs_a_failure_even_if_a_similar_one_came_first() {
        let command = |text: &str| json!({"command": text, "description": text.len()});
        let found = failures_of(&[
            ("Bash", command("cargo test"), true),
            ("Bash", command("cargo test --quiet"), false),
            ("Bash", json!({"command": "cargo test", "description": "Once more"}), false),
        ]);
        assert_eq!(found, [Some((4, RepairKind::SameCall))]);
    }

    #[test]
    fn a_file_or_a_command_that_succeeds_later_repairs_a_failure() {
        let edit = |old: &str| json!({"file_path": "a.rs", "old_string": old, "new_string": "x"});
        let found = failures_of(&[
            ("Edit", edit("missing"), true),
            ("Bash", json!({"command": "cd src && cargo test login"}), true),
            ("Bash", json!({"command": "gh pr create"}), true),
            ("Write", json!({"file_path": "a.rs", "content": "x"}), false),
            ("Bash", json!({"command": "cargo test 2>&1 | tail"}), false),
        ]);
        let same_file = Some((6, RepairKind::SameFile));
        let same_command = Some((8, RepairKind::SameCommand));
        assert_eq!(found, [same_file, same_command, None]);
    }

    #[test]
    fn the_same_command_for_something_else_repairs_nothing() {
        let status = |lamp: &str| json!({"command": format!("lampctl status {lamp}")});
        let found = failures_of(&[("Bash", status("1"), true), ("Bash", status("2"), false)]);
        assert_eq!(found, [None]);
    }

    #[test]
    fn a_success_before_the_failure_or_without_a_result_repairs_nothing() {
        let make = || call("3", "Bash", json!({"command": "make"}));
        let found = failures_of(&[
            ("Bash", json!({"command": "make"}), false),
            ("Bash", json!({"command": "make"}), true),
        ]);
        assert_eq!(found, [None]);
        let entries = [call("1", "Bash", json!({"command": "make"})), result("1", true), make()];
        assert_eq!(find_failures(&entries)[0].repair, None);
    }

    #[test]
    fn an_error_of_the_agent_is_repaired_when_it_continues() {
        let error = Entry::new(Role::System, EntryKind::Error, "overloaded");
        let answer = Entry::new(Role::Assistant, EntryKind::Text, "Done");
        let failures = find_failures(&[error.clone(), answer, error]);
        let continued = FailureRepair { number: 1, kind: RepairKind::Continued };
        assert_eq!(failures[0], SessionFailure { number: 0, call: None, repair: Some(continued) });
        assert_eq!(failures[1].repair, None);
    }

    #[test]
    fn results_without_ids_belong_to_the_call_before_them() {
        let mut entries = [
            call("", "run", json!({"command": "make"})),
            result("", true),
            call("", "run", json!({"command": "make"})),
            result("", false),
        ];
        entries.iter_mut().for_each(|entry| entry.tool_call_id = None);
        let repair = Some(FailureRepair { number: 2, kind: RepairKind::SameCall });
        assert_eq!(find_failures(&entries), [SessionFailure { number: 1, call: Some(0), repair }]);
    }
}
