//! The outline of a session: its turns, the runs of its subagents, and the totals of each.

use std::collections::HashMap;
use std::ops::Range;

use maud::{Markup, html};
use steno_model::{Entry, EntryKind};
use steno_store::amount::{format_count, format_dollars};
use steno_store::cost::PriceTable;
use steno_store::view::entry_totals::{EntryCosts, EntryTotals};
use steno_store::view::lanes::SubagentLanes;
use steno_store::view::turns::split_turns;

use crate::prompt_branches::{PromptBranch, find_branches};
use crate::subagent_run::{OutlinedRun, outline_runs};
use crate::units::{count_of, exact_count, format_duration};

/// The turns and runs of a session.
#[derive(Default)]
pub(crate) struct SessionOutline {
    turns: Vec<OutlinedTurn>,
    pub(crate) runs: Vec<OutlinedRun>,
    /// The calls that were started together, by number: which one it is, and how many there are.
    pub(crate) parallel_calls: HashMap<usize, (usize, usize)>,
    /// Where the user went back and left what had followed.
    pub(crate) branches: Vec<PromptBranch>,
    /// The totals of the session.
    pub(crate) totals: EntryTotals,
}

/// A turn and its totals.
struct OutlinedTurn {
    places: Range<usize>,
    totals: EntryTotals,
}

/// What a compaction removed from the context of an agent.
pub(crate) struct CompactedSpan {
    /// How many entries were in the context since the last compaction.
    pub(crate) entries: usize,
    /// The tokens of the context before: as the agent reported, or as the last message had read.
    pub(crate) tokens_before: Option<u64>,
    /// The tokens that the next message read.
    pub(crate) tokens_after: Option<u64>,
}

impl SessionOutline {
    /// Outlines a session.
    pub(crate) fn new(entries: &[Entry], lanes: &SubagentLanes, prices: &PriceTable) -> Self {
        let costs = EntryCosts::from_entries(entries, prices);
        let numbered = |places: Range<usize>| {
            places.map(|place| lanes.number_at(place)).map(|number| (number, &entries[number]))
        };
        let turns = split_turns(entries, lanes).into_iter();
        let turns = turns.map(|places| OutlinedTurn {
            totals: costs.sum_entries(numbered(places.clone())),
            places,
        });
        Self {
            turns: turns.collect(),
            runs: outline_runs(entries, lanes, &costs),
            parallel_calls: find_parallel_calls(entries),
            branches: find_branches(entries),
            totals: costs.sum_entries(entries.iter().enumerate()),
        }
    }

    /// The line below the turn that ends before a position.
    pub(crate) fn turn_end(&self, place: usize) -> Option<Markup> {
        let at = self.turns.binary_search_by_key(&place, |turn| turn.places.end).ok()?;
        let OutlinedTurn { places, totals } = &self.turns[at];
        let has_work = totals.tool_calls > 0 || !totals.usage.is_empty();
        let has_facts = places.len() > 1 && has_work && self.lone_answer(place - 1).is_none();
        has_facts.then(|| html! { li.turn { span { "Turn" } (totals_line(totals)) } })
    }

    /// The totals of a turn that is only a prompt and the answer at a position. The answer shows them itself.
    pub(crate) fn lone_answer(&self, place: usize) -> Option<&EntryTotals> {
        let at = self.turns.binary_search_by_key(&(place + 1), |turn| turn.places.end).ok()?;
        let OutlinedTurn { places, totals } = &self.turns[at];
        (places.len() == 2 && totals.tool_calls == 0).then_some(totals)
    }

    /// The run that starts at a position, with its index.
    pub(crate) fn runs_from(&self, place: usize) -> impl Iterator<Item = (usize, &OutlinedRun)> {
        self.runs.iter().enumerate().filter(move |(_, one)| one.run.places.start == place)
    }

    /// The indexes of the runs that contain a position.
    pub(crate) fn runs_at(&self, place: usize) -> impl Iterator<Item = usize> + '_ {
        let runs = self.runs.iter().enumerate();
        runs.filter(move |(_, one)| one.run.places.contains(&place)).map(|(at, _)| at)
    }

    /// Whether a position is hidden when the page opens.
    pub(crate) fn is_folded_at(&self, place: usize) -> bool {
        self.runs_at(place).any(|at| self.runs[at].is_folded())
    }

    /// The runs for the scripts: first position, position after the last, `f` if it is folded, and the number of the call
    /// that started it.
    pub(crate) fn runs_text(&self) -> Option<String> {
        self.runs_text_without(None)
    }

    /// The same, with one run that is not folded.
    pub(crate) fn runs_text_without(&self, unfolded: Option<usize>) -> Option<String> {
        let run = |(at, one): (usize, &OutlinedRun)| {
            let Range { start, end } = one.run.places;
            let is_folded = one.is_folded() && unfolded != Some(at);
            let caller = one.run.caller.map_or_else(String::new, |caller| format!(" {caller}"));
            format!("{start} {end} {}{caller}", if is_folded { "f" } else { "o" })
        };
        let all: Vec<String> = self.runs.iter().enumerate().map(run).collect();
        (!all.is_empty()).then(|| all.join(","))
    }
}

/// The calls of messages with several of them.
fn find_parallel_calls(entries: &[Entry]) -> HashMap<usize, (usize, usize)> {
    let mut messages: HashMap<&str, Vec<usize>> = HashMap::new();
    for (number, entry) in entries.iter().enumerate() {
        let is_call = entry.kind == EntryKind::ToolCall;
        if let Some(message) = entry.message_id.as_deref().filter(|_| is_call) {
            messages.entry(message).or_default().push(number);
        }
    }
    let several = messages.into_values().filter(|calls| calls.len() > 1);
    let numbered = several.flat_map(|calls| {
        let count = calls.len();
        calls.into_iter().enumerate().map(move |(at, number)| (number, (at + 1, count)))
    });
    numbered.collect()
}

/// Totals in one line, each with a unit. A script explains them by their classes: a long session has many.
pub(crate) fn totals_line(totals: &EntryTotals) -> Markup {
    html! {
        @if let Some(duration) = totals.duration_ms().filter(|duration| *duration > 0) {
            span.took { (format_duration(duration)) }
        }
        @if totals.tool_calls > 0 { span.calls { (count_of(totals.tool_calls, "tool call")) } }
        @if totals.failed_calls > 0 { span.errors { (exact_count(totals.failed_calls)) " failed" } }
        @if totals.other_errors > 0 { span.errors { (count_of(totals.other_errors, "other error")) } }
        @if !totals.usage.is_empty() {
            span.tokens {
                (format_count(totals.usage.prompt_tokens())) " tokens in, " (format_count(totals.usage.output)) " out"
            }
        }
        @if let Some(cost) = cost_text(totals) { span.cost { (cost) } }
    }
}

/// The cost of some entries; `None` if they have no tokens.
pub(crate) fn cost_text(totals: &EntryTotals) -> Option<String> {
    let suffix = if totals.is_partly_unpriced { "+?" } else { "" };
    match totals.cost {
        Some(cost) => Some(format!("{}{suffix}", format_dollars(cost))),
        None => totals.is_partly_unpriced.then(|| "cost unknown".to_owned()),
    }
}

/// The tokens of the context before a compaction, as Claude Code reports them.
fn stated_context(entry: &Entry) -> Option<u64> {
    entry.metadata.as_ref()?.get("compactMetadata")?.get("preTokens")?.as_u64()
}

/// What the compaction at a position removed.
pub(crate) fn compacted_span(
    entries: &[Entry],
    lanes: &SubagentLanes,
    place: usize,
) -> CompactedSpan {
    let at = |place: usize| &entries[lanes.number_at(place)];
    let source = &at(place).source;
    let prompt = |entry: &Entry| entry.usage.as_ref().map(|usage| usage.prompt_tokens());
    let is_own = |entry: &&Entry| entry.source == *source;
    let before = || {
        let above = (0..place).rev().map(at).filter(is_own);
        above.take_while(|entry| entry.kind != EntryKind::Compaction)
    };
    let read_before = before().find_map(|entry| prompt(entry).filter(|tokens| *tokens > 0));
    let mut after = (place + 1..entries.len()).map(at).filter(is_own);
    let read_after = after.find_map(|entry| prompt(entry).filter(|tokens| *tokens > 0));
    let stated = stated_context(at(place));
    CompactedSpan {
        entries: before().count(),
        tokens_before: stated.or(read_before),
        tokens_after: read_after,
    }
}

#[cfg(test)]
mod tests {
    use steno_model::{Role, Usage};

    use super::*;

    fn said(role: Role, kind: EntryKind, prompt: u64) -> Entry {
        let mut entry = Entry::new(role, kind, "x");
        entry.usage = (prompt > 0).then(|| Usage { input: prompt, ..Usage::default() });
        entry
    }

    #[test]
    fn a_turn_ends_with_its_totals() {
        let entries = [
            said(Role::User, EntryKind::Text, 0),
            said(Role::Assistant, EntryKind::ToolCall, 1200),
            said(Role::User, EntryKind::Text, 0),
        ];
        let lanes = SubagentLanes::from_entries(&entries);
        let outline = SessionOutline::new(&entries, &lanes, &PriceTable::bundled());
        let line = outline.turn_end(2).map(|line| line.0).unwrap_or_default();
        assert!(line.contains("1 tool call") && line.contains("1.20k tokens in"), "{line}");
        assert!(line.contains("cost unknown"), "{line}");
        assert!(outline.turn_end(3).is_none(), "a prompt alone has no totals");
        assert!(outline.turn_end(1).is_none());
        assert!(outline.lone_answer(1).is_none(), "a call is no answer");
    }

    #[test]
    fn calls_of_one_message_are_parallel() {
        let call = |message: &str| {
            let mut entry = said(Role::Assistant, EntryKind::ToolCall, 0);
            entry.message_id = Some(message.to_owned());
            entry
        };
        let calls = find_parallel_calls(&[call("a"), call("b"), call("a")]);
        assert_eq!(calls, HashMap::from([(0, (1, 2)), (2, (2, 2))]));
    }

    #[test]
    fn a_single_answer_shows_the_totals_itself() {
        let entries =
            [said(Role::User, EntryKind::Text, 0), said(Role::Assistant, EntryKind::Text, 1200)];
        let lanes = SubagentLanes::from_entries(&entries);
        let outline = SessionOutline::new(&entries, &lanes, &PriceTable::bundled());
        assert!(outline.turn_end(2).is_none());
        assert!(outline.lone_answer(1).is_some() && outline.lone_answer(0).is_none());
    }

    #[test]
    fn long_runs_of_subagents_are_folded() {
        let mut entries = vec![said(Role::User, EntryKind::Text, 0)];
        for number in 0..45 {
            let mut entry = said(Role::Assistant, EntryKind::Text, 0);
            entry.source = if number < 41 { "subagent:a" } else { "subagent:b" }.to_owned();
            entries.push(entry);
        }
        let lanes = SubagentLanes::from_entries(&entries);
        let outline = SessionOutline::new(&entries, &lanes, &PriceTable::bundled());
        assert_eq!(outline.runs_text().as_deref(), Some("1 42 f,42 46 o"));
        assert!(outline.is_folded_at(5) && !outline.is_folded_at(43) && !outline.is_folded_at(0));
    }

    #[test]
    fn a_compaction_names_what_it_removed() {
        let entries = [
            said(Role::User, EntryKind::Text, 0),
            said(Role::Assistant, EntryKind::Text, 90_000),
            said(Role::System, EntryKind::Compaction, 0),
            said(Role::Assistant, EntryKind::Text, 8000),
        ];
        let span = compacted_span(&entries, &SubagentLanes::default(), 2);
        let tokens = (span.tokens_before, span.tokens_after);
        assert_eq!((span.entries, tokens), (2, (Some(90_000), Some(8000))));
        let mut stated = entries;
        let reported = serde_json::json!({"compactMetadata": {"preTokens": 167_482}});
        stated[2].metadata = reported.as_object().cloned();
        let span = compacted_span(&stated, &SubagentLanes::default(), 2);
        assert_eq!(span.tokens_before, Some(167_482), "the reported number is exact");
    }
}
