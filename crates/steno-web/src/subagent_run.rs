//! A run of a subagent: what it was asked, what it answered, how it ended, and its totals.
//!
//! All of it is taken from entries. A run without an answer is marked as such; whether it still runs is not known.

use maud::{Markup, html};
use steno_model::{Entry, EntryKind, Role};
use steno_store::view::entry_totals::{EntryCosts, EntryTotals};
use steno_store::view::lanes::{SubagentLanes, SubagentRun};

/// The longest run of a subagent that is unfolded at first, in entries.
const MAX_UNFOLDED_RUN: usize = 12;

/// A run of a subagent and its totals.
pub(crate) struct OutlinedRun {
    pub(crate) run: SubagentRun,
    /// What the call that started it says of it, or else the first line of its prompt.
    pub(crate) task: Option<String>,
    /// The type of agent that the call asked for.
    pub(crate) agent_type: Option<String>,
    /// The number of its first prompt.
    pub(crate) prompt: Option<usize>,
    /// The number of its last answer; `None` if it did not end with one.
    pub(crate) answer: Option<usize>,
    pub(crate) outcome: SubagentOutcome,
    /// How many subagents it started, and those started, and so on.
    pub(crate) nested: usize,
    /// The totals of its entries, with those of the subagents that it started.
    pub(crate) totals: EntryTotals,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SubagentOutcome {
    /// With an answer.
    Answered,
    /// The call that started it failed, or its last entry is an error.
    Failed,
    /// With something else: it was interrupted, or still runs.
    Unanswered,
}

/// All runs of a session, with their totals.
pub(crate) fn outline_runs(
    entries: &[Entry],
    lanes: &SubagentLanes,
    costs: &EntryCosts,
) -> Vec<OutlinedRun> {
    let runs = lanes.subagent_runs(entries).into_iter();
    let mut runs: Vec<_> = runs.map(|run| outline_run(entries, lanes, costs, run)).collect();
    for at in 0..runs.len() {
        let outer = runs[at].run.places.clone();
        // Runs are in the order of their first positions, so those inside follow.
        let inside = runs[at + 1..].iter().take_while(|one| one.run.places.start < outer.end);
        runs[at].nested = inside.count();
    }
    runs
}

fn outline_run(
    entries: &[Entry],
    lanes: &SubagentLanes,
    costs: &EntryCosts,
    run: SubagentRun,
) -> OutlinedRun {
    let all = run.places.clone().map(|place| lanes.number_at(place));
    let totals = costs.sum_entries(all.clone().map(|number| (number, &entries[number])));
    let own = all.filter(|number| entries[*number].source == run.source);
    let own: Vec<usize> = own.collect();
    let is_said = |number: &&usize, role: &Role| {
        let entry = &entries[**number];
        entry.kind == EntryKind::Text && entry.role == *role && !entry.content.trim().is_empty()
    };
    let is_notice =
        |number: &&usize| matches!(entries[**number].kind, EntryKind::Notice | EntryKind::Other);
    let last = own.iter().rev().find(|number| !is_notice(number));
    let call = run.caller.map(|caller| &entries[caller]);
    let has_failed = call.is_some_and(|call| has_failed_result(entries, call))
        || last.is_some_and(|last| entries[*last].kind == EntryKind::Error);
    let answer = last.filter(|number| is_said(number, &Role::Assistant)).copied();
    let input = |name: &str| {
        let value = call?.tool_input.as_ref()?.get(name)?.as_str()?.trim();
        (!value.is_empty()).then(|| value.to_owned())
    };
    let prompt = own.iter().find(|number| is_said(number, &Role::User)).copied();
    let first_line = || Some(entries[prompt?].content.trim().lines().next()?.to_owned());
    OutlinedRun {
        task: input("description").or_else(|| input("name")).or_else(first_line),
        agent_type: input("subagent_type").or_else(|| input("agent_type")),
        prompt,
        answer,
        outcome: match answer {
            _ if has_failed => SubagentOutcome::Failed,
            Some(_) => SubagentOutcome::Answered,
            None => SubagentOutcome::Unanswered,
        },
        nested: 0,
        totals,
        run,
    }
}

/// Whether the result of a call is an error.
fn has_failed_result(entries: &[Entry], call: &Entry) -> bool {
    let Some(id) = call.tool_call_id.as_deref() else { return false };
    let is_result = |entry: &&Entry| {
        entry.tool_call_id.as_deref() == Some(id)
            && entry.source == call.source
            && entry.kind != EntryKind::ToolCall
    };
    entries.iter().filter(is_result).any(Entry::is_tool_error)
}

impl OutlinedRun {
    /// Whether the run is folded when the page opens.
    pub(crate) fn is_folded(&self) -> bool {
        self.run.places.len() > MAX_UNFOLDED_RUN
    }

    /// The id of the subagent, as the agent wrote it.
    pub(crate) fn name(&self) -> &str {
        self.run.source.strip_prefix("subagent:").unwrap_or(&self.run.source)
    }

    /// How the run ended, unless it ended with an answer.
    pub(crate) fn outcome_badge(&self) -> Markup {
        html! {
            @match self.outcome {
                SubagentOutcome::Answered => {}
                SubagentOutcome::Failed => span.agent.failed title="The call that started it failed, or its last entry is an error" { "failed" },
                SubagentOutcome::Unanswered => span.agent.unanswered title="Its last entry is no answer: it was interrupted, or still runs" { "no answer" },
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use steno_store::cost::PriceTable;

    use super::*;

    fn said(source: &str, role: Role, kind: EntryKind, text: &str) -> Entry {
        let mut entry = Entry::new(role, kind, text);
        entry.source = source.to_owned();
        entry
    }

    fn call(source: &str, id: &str, prompt: &str) -> Entry {
        let mut entry = said(source, Role::Assistant, EntryKind::ToolCall, "");
        entry.tool_call_id = Some(id.to_owned());
        let input = json!({"prompt": prompt, "description": "Look", "subagent_type": "Explore"});
        entry.tool_input = Some(input);
        entry
    }

    fn outlined(entries: &[Entry]) -> Vec<OutlinedRun> {
        let costs = EntryCosts::from_entries(entries, &PriceTable::bundled());
        outline_runs(entries, &SubagentLanes::from_entries(entries), &costs)
    }

    #[test]
    fn a_run_has_its_prompt_answer_and_task() {
        let entries = [
            call("primary", "t1", "look"),
            said("subagent:a", Role::User, EntryKind::Text, "look"),
            call("subagent:a", "t2", "closer"),
            said("subagent:b", Role::User, EntryKind::Text, "closer"),
            said("subagent:b", Role::Assistant, EntryKind::Text, "a crack"),
            said("subagent:a", Role::Assistant, EntryKind::Text, "it leaks"),
            said("subagent:a", Role::System, EntryKind::Notice, "stopped"),
        ];
        let runs = outlined(&entries);
        let facts = |run: &OutlinedRun| (run.prompt, run.answer, run.nested, run.totals.entries);
        assert_eq!(
            runs.iter().map(facts).collect::<Vec<_>>(),
            [(Some(1), Some(5), 1, 6), (Some(3), Some(4), 0, 2)]
        );
        let names = (runs[0].task.as_deref(), runs[0].agent_type.as_deref(), runs[0].name());
        assert_eq!(names, (Some("Look"), Some("Explore"), "a"));
        assert!(runs.iter().all(|run| run.outcome == SubagentOutcome::Answered));
    }

    #[test]
    fn a_failed_run_is_told_from_one_without_an_answer() {
        let mut failed = said("primary", Role::Tool, EntryKind::ToolResult, "no such agent");
        failed.tool_call_id = Some("t1".to_owned());
        failed.extra.insert("is_error".to_owned(), true.into());
        let entries = [
            call("primary", "t1", "one"),
            failed,
            call("primary", "t2", "two"),
            said("subagent:a", Role::User, EntryKind::Text, "one"),
            said("subagent:a", Role::Assistant, EntryKind::Text, "an answer"),
            said("subagent:b", Role::User, EntryKind::Text, "two"),
            call("subagent:b", "t3", "three"),
            said("subagent:c", Role::User, EntryKind::Text, "four"),
            said("subagent:c", Role::System, EntryKind::Error, "overloaded"),
        ];
        let outcomes: Vec<_> = outlined(&entries)
            .iter()
            .map(|run| (run.name().to_owned(), run.outcome, run.answer))
            .collect();
        let expected = [
            ("a", SubagentOutcome::Failed, Some(4)),
            ("b", SubagentOutcome::Unanswered, None),
            ("c", SubagentOutcome::Failed, None),
        ];
        let expected = expected.map(|(name, outcome, answer)| (name.to_owned(), outcome, answer));
        assert_eq!(outcomes, expected);
    }

    #[test]
    fn the_task_of_a_run_is_not_that_of_the_run_above_it() {
        // The last entry of the first run is a call with a description, and nothing names the call of the second.
        let entries = [
            said("primary", Role::User, EntryKind::Text, "go"),
            said("subagent:a", Role::User, EntryKind::Text, "one"),
            call("subagent:a", "t1", "x"),
            said("subagent:b", Role::User, EntryKind::Text, "two"),
        ];
        let tasks: Vec<_> = outlined(&entries).into_iter().map(|run| run.task).collect();
        assert_eq!(tasks, [Some("one".to_owned()), Some("two".to_owned())]);
    }
}
