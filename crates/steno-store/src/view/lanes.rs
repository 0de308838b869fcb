//! Orders the entries of a session so that each subagent follows the call that started it, and each result its call.
//!
//! Agents write the output of subagents to separate files, or interleave it with others. Here the entries of one
//! subagent are kept together, indented below its caller. Results of parallel calls come after all calls; here each
//! result follows its own call. Entries keep their numbers; only their positions differ.

use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

use steno_model::entry::{Entry, EntryKind, PRIMARY_SOURCE, Role};

/// The display order of a session's entries, and their depths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SubagentLanes {
    /// Entry numbers by position; empty if every position equals its entry number and all entries are the main agent's.
    order: Vec<usize>,
    /// Nesting depth by position; the main agent has 0.
    depths: Vec<usize>,
    /// The numbers of the calls that started subagents, by source; only those that name the subagent or its prompt.
    callers: HashMap<String, usize>,
}

impl SubagentLanes {
    /// The lanes of these entries.
    pub fn from_entries(entries: &[Entry]) -> Self {
        let mut lanes = Self::default();
        let results = CallResults::from_entries(entries);
        if results.are_in_place() && entries.iter().all(|entry| entry.source == PRIMARY_SOURCE) {
            return lanes;
        }
        let mut numbers: HashMap<&str, Vec<usize>> = HashMap::new();
        for (number, entry) in entries.iter().enumerate() {
            numbers.entry(&entry.source).or_default().push(number);
        }
        let (mut begins, callers) = find_starts(entries, &numbers);
        lanes.callers = callers;
        let primary = numbers.get(PRIMARY_SOURCE).map_or(&[][..], Vec::as_slice);
        let mut layout = LaneLayout { numbers: &numbers, results: &results, begins: &mut begins };
        layout.lay_out(primary, &mut lanes);
        // Subagents that start each other in a cycle come last.
        let mut left: Vec<&str> = begins.into_values().flatten().collect();
        left.sort_by_key(|source| numbers[source][0]);
        for source in left {
            lanes.order.extend(&numbers[source]);
            lanes.depths.resize(lanes.order.len(), 1);
        }
        lanes
    }

    /// The entry number at a position.
    pub fn number_at(&self, position: usize) -> usize {
        self.order.get(position).copied().unwrap_or(position)
    }

    /// The position of an entry number.
    pub fn position_of(&self, number: usize) -> usize {
        self.order.iter().position(|other| *other == number).unwrap_or(number)
    }

    /// The nesting depth at a position.
    pub fn depth_at(&self, position: usize) -> usize {
        self.depths.get(position).copied().unwrap_or(0)
    }

    /// The runs of subagents: the positions of each, with those of the subagents that it started.
    pub fn subagent_runs(&self, entries: &[Entry]) -> Vec<SubagentRun> {
        let (mut runs, mut open): (Vec<SubagentRun>, Vec<usize>) = (Vec::new(), Vec::new());
        for place in 0..self.depths.len() {
            let (depth, source) = (self.depths[place], &entries[self.order[place]].source);
            while let Some(last) = open.last().map(|at| &mut runs[*at]) {
                if last.depth < depth || (last.depth == depth && last.source == *source) {
                    break;
                }
                last.places.end = place;
                open.pop();
            }
            let is_inside = open.last().is_some_and(|at| runs[*at].depth == depth);
            if depth > 0 && !is_inside {
                open.push(runs.len());
                let places = place..self.depths.len();
                let caller = self.callers.get(source).copied();
                runs.push(SubagentRun { source: source.clone(), depth, places, caller });
            }
        }
        runs
    }

    /// Runs of consecutive entry numbers, as first number and length. Empty if every position equals its entry number.
    pub fn consecutive_runs(&self) -> Vec<(usize, usize)> {
        let runs = self.order.chunk_by(|one, next| one + 1 == *next);
        let runs: Vec<_> = runs.map(|run| (run[0], run.len())).collect();
        if runs.len() <= 1 { Vec::new() } else { runs }
    }
}

/// The entries of a subagent, from its first to its last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubagentRun {
    /// The source of its entries.
    pub source: String,
    /// Its nesting depth, from 1.
    pub depth: usize,
    /// The positions of its entries, and of those of the subagents that it started.
    pub places: Range<usize>,
    /// The number of the call that started it, if it is known.
    pub caller: Option<usize>,
}

/// The numbers of each source, and what follows each entry.
struct LaneLayout<'a, 'b> {
    numbers: &'a HashMap<&'a str, Vec<usize>>,
    results: &'a CallResults,
    /// The subagents that start after an entry.
    begins: &'b mut SubagentStarts<'a>,
}

impl<'a> LaneLayout<'a, '_> {
    /// Lays out the main agent's entries, and after each the subagents that start there and the results of the call.
    fn lay_out(&mut self, primary: &'a [usize], lanes: &mut SubagentLanes) {
        let mut open = vec![(primary, 0)];
        let mut placed: HashSet<usize> = HashSet::new();
        self.begin_subagents(&mut open, None, 1);
        while let Some((lane, depth)) = open.pop() {
            let Some((number, rest)) = lane.split_first() else { continue };
            open.push((rest, depth));
            // A result is placed after its call, and skipped where its source has it.
            if self.results.is_paired.contains(number) && !placed.insert(*number) {
                continue;
            }
            lanes.order.push(*number);
            lanes.depths.push(depth);
            if let Some(results) = self.results.by_call.get(number) {
                open.push((results.as_slice(), depth));
            }
            self.begin_subagents(&mut open, Some(*number), depth + 1);
        }
    }

    fn begin_subagents(
        &mut self,
        open: &mut Vec<(&'a [usize], usize)>,
        at: Option<usize>,
        depth: usize,
    ) {
        let sources = self.begins.remove(&at).unwrap_or_default();
        open.extend(sources.iter().rev().map(|source| (self.numbers[source].as_slice(), depth)));
    }
}

/// The results that follow their calls in display order.
struct CallResults {
    by_call: HashMap<usize, Vec<usize>>,
    is_paired: HashSet<usize>,
}

impl CallResults {
    /// Pairs results with calls of the same source. A result that comes after the next prompt stays where it is.
    fn from_entries(entries: &[Entry]) -> Self {
        let mut calls: HashMap<&str, (usize, usize)> = HashMap::new();
        let mut prompts: HashMap<&str, usize> = HashMap::new();
        let (mut by_call, mut is_paired) = (HashMap::<usize, Vec<usize>>::new(), HashSet::new());
        for (number, entry) in entries.iter().enumerate() {
            let turn = prompts.entry(entry.source.as_str()).or_default();
            *turn += usize::from(entry.role == Role::User && entry.kind == EntryKind::Text);
            let Some(id) = entry.tool_call_id.as_deref() else { continue };
            match entry.kind {
                EntryKind::ToolCall => {
                    calls.insert(id, (number, *turn));
                }
                EntryKind::ToolResult | EntryKind::Error => {
                    let known = calls.get(id).filter(|(call, begun)| {
                        entries[*call].source == entry.source && begun == turn
                    });
                    if let Some((call, _)) = known {
                        by_call.entry(*call).or_default().push(number);
                        is_paired.insert(number);
                    }
                }
                _ => {}
            }
        }
        Self { by_call, is_paired }
    }

    /// Whether every result follows its call already.
    fn are_in_place(&self) -> bool {
        self.by_call.iter().all(|(call, results)| {
            results.iter().enumerate().all(|(at, result)| *result == call + 1 + at)
        })
    }
}

/// Subagents by the entry after which they start.
type SubagentStarts<'a> = HashMap<Option<usize>, Vec<&'a str>>;

/// Subagents by the entry after which they start, where `None` means before all entries, and the calls that started
/// them, by source.
fn find_starts<'a>(
    entries: &'a [Entry],
    numbers: &HashMap<&'a str, Vec<usize>>,
) -> (SubagentStarts<'a>, HashMap<String, usize>) {
    let callers = SubagentCallers::from_entries(entries);
    let mut sources: Vec<_> =
        numbers.iter().filter(|(source, _)| **source != PRIMARY_SOURCE).collect();
    sources.sort_by_key(|(_, numbers)| numbers[0]);
    let mut begins = SubagentStarts::new();
    let mut known = HashMap::new();
    for (source, numbers) in sources {
        let first = numbers[0];
        let caller = callers.find_caller(source, &entries[first]);
        let caller = caller.filter(|caller| entries[*caller].source != *source);
        let begin = caller.or_else(|| last_primary_before(entries, first));
        known.extend(caller.map(|caller| ((*source).to_owned(), caller)));
        begins.entry(begin).or_default().push(source);
    }
    (begins, known)
}

/// The last entry of the main agent before this one, by time, or by number if times are missing.
fn last_primary_before(entries: &[Entry], number: usize) -> Option<usize> {
    let is_before = |(other, entry): &(usize, &Entry)| {
        let time = |entry: &Entry| entry.created_at.map(|at| at.instant());
        let order = time(entry).zip(time(&entries[number])).map(|(one, next)| one.cmp(&next));
        let order = order.unwrap_or(Ordering::Equal).then(other.cmp(&number));
        entry.source == PRIMARY_SOURCE && order == Ordering::Less
    };
    entries.iter().enumerate().rev().find(is_before).map(|(other, _)| other)
}

/// Tool calls, by what may identify the subagent that they start.
struct SubagentCallers<'a> {
    by_call: HashMap<&'a str, usize>,
    by_agent: HashMap<&'a str, usize>,
    by_prompt: HashMap<&'a str, usize>,
}

impl<'a> SubagentCallers<'a> {
    fn from_entries(entries: &'a [Entry]) -> Self {
        let (mut by_call, mut by_prompt) = (HashMap::new(), HashMap::new());
        let calls =
            entries.iter().enumerate().filter(|(_, entry)| entry.kind == EntryKind::ToolCall);
        for (number, entry) in calls {
            by_call.extend(entry.tool_call_id.as_deref().map(|id| (id, number)));
            let prompt = entry.tool_input.as_ref().and_then(|input| input.get("prompt")?.as_str());
            by_prompt.extend(prompt.map(|prompt| (prompt.trim(), number)));
        }
        let mut by_agent = HashMap::new();
        for (number, entry) in entries.iter().enumerate() {
            let call = entry.tool_call_id.as_deref().and_then(|id| by_call.get(id).copied());
            let metadata = entry.metadata.as_ref();
            let agent = metadata.and_then(|metadata| metadata.get("agentId")?.as_str());
            by_agent.extend(agent.map(|agent| (agent, call.unwrap_or(number))));
        }
        Self { by_call, by_agent, by_prompt }
    }

    /// The call that started a subagent, found by its id or by the prompt in its first entry.
    fn find_caller(&self, source: &str, first: &Entry) -> Option<usize> {
        let id = source.strip_prefix("subagent:").unwrap_or(source);
        let named = self.by_agent.get(id).or_else(|| self.by_call.get(id));
        named.or_else(|| self.by_prompt.get(first.content.trim())).copied()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use steno_model::entry::Role;

    fn new_entry(source: &str, text: &str) -> Entry {
        let mut entry = Entry::new(Role::User, EntryKind::Text, text);
        entry.source = source.to_owned();
        entry
    }

    fn call(source: &str, id: &str, prompt: &str) -> Entry {
        let mut entry = new_entry(source, "");
        entry.kind = EntryKind::ToolCall;
        entry.tool_call_id = Some(id.to_owned());
        entry.tool_input = Some(json!({"prompt": prompt}));
        entry
    }

    fn result(source: &str, id: &str, agent: &str) -> Entry {
        let mut entry = new_entry(source, "done");
        entry.kind = EntryKind::ToolResult;
        entry.tool_call_id = Some(id.to_owned());
        entry.metadata.get_or_insert_default().insert("agentId".to_owned(), json!(agent));
        entry
    }

    /// The entry numbers in order, each with its depth.
    fn laid(entries: &[Entry]) -> Vec<(usize, usize)> {
        let lanes = SubagentLanes::from_entries(entries);
        (0..entries.len()).map(|place| (lanes.number_at(place), lanes.depth_at(place))).collect()
    }

    #[test]
    fn puts_subagents_below_their_call() {
        let entries = [
            new_entry(PRIMARY_SOURCE, "go"),
            call(PRIMARY_SOURCE, "t1", "look"),
            result(PRIMARY_SOURCE, "t1", "a"),
            new_entry(PRIMARY_SOURCE, "thanks"),
            new_entry("subagent:a", "look"),
            call("subagent:a", "t2", "look closer"),
            new_entry("subagent:a", "seen"),
            new_entry("subagent:b", "look closer"),
            new_entry("subagent:t1", "by the call's id"),
        ];
        let expected = [(0, 0), (1, 0), (4, 1), (5, 1), (7, 2), (6, 1), (8, 1), (2, 0), (3, 0)];
        assert_eq!(laid(&entries), expected);
        let lanes = SubagentLanes::from_entries(&entries);
        assert_eq!(lanes.consecutive_runs(), [(0, 2), (4, 2), (7, 1), (6, 1), (8, 1), (2, 2)]);
        assert_eq!(lanes.position_of(7), 4);
    }

    #[test]
    fn results_of_parallel_calls_follow_their_calls() {
        let entries = [
            new_entry(PRIMARY_SOURCE, "go"),
            call(PRIMARY_SOURCE, "t1", "one"),
            call(PRIMARY_SOURCE, "t2", "two"),
            result(PRIMARY_SOURCE, "t2", ""),
            result(PRIMARY_SOURCE, "t1", ""),
            call(PRIMARY_SOURCE, "t3", "three"),
            new_entry(PRIMARY_SOURCE, "wait"),
            result(PRIMARY_SOURCE, "t3", ""),
        ];
        let order: Vec<usize> = laid(&entries).into_iter().map(|(number, _)| number).collect();
        assert_eq!(order, [0, 1, 4, 2, 3, 5, 6, 7]);
        let one_by_one = [call(PRIMARY_SOURCE, "t1", "one"), result(PRIMARY_SOURCE, "t1", "")];
        assert_eq!(SubagentLanes::from_entries(&one_by_one), SubagentLanes::default());
    }

    #[test]
    fn the_run_of_a_subagent_contains_those_that_it_started() {
        let entries = [
            call(PRIMARY_SOURCE, "t1", "look"),
            new_entry("subagent:a", "look"),
            call("subagent:a", "t2", "look closer"),
            new_entry("subagent:b", "look closer"),
            new_entry("subagent:a", "seen"),
            new_entry(PRIMARY_SOURCE, "thanks"),
        ];
        let run = |name: &str, depth, places, caller| {
            let source = name.to_owned();
            SubagentRun { source, depth, places, caller: Some(caller) }
        };
        let runs = SubagentLanes::from_entries(&entries).subagent_runs(&entries);
        assert_eq!(runs, [run("subagent:a", 1, 1..5, 0), run("subagent:b", 2, 3..4, 2)]);
    }

    #[test]
    fn places_a_subagent_without_a_call_by_time() {
        let at = |mut entry: Entry, time: &str| {
            entry.created_at = format!("2026-01-05T{time}:00Z").parse().ok();
            entry
        };
        let entries = [
            at(new_entry(PRIMARY_SOURCE, "a"), "09:00"),
            at(new_entry(PRIMARY_SOURCE, "b"), "11:00"),
            at(new_entry("subagent:x", "c"), "10:00"),
            at(new_entry("subagent:y", "d"), "08:00"),
        ];
        assert_eq!(laid(&entries), [(3, 1), (0, 0), (2, 1), (1, 0)]);
        let runs = SubagentLanes::from_entries(&entries).subagent_runs(&entries);
        assert!(runs.iter().all(|run| run.caller.is_none()), "{runs:?}");
        let inline = [
            new_entry(PRIMARY_SOURCE, "a"),
            new_entry("subagent:x", "b"),
            new_entry(PRIMARY_SOURCE, "c"),
        ];
        assert_eq!(laid(&inline), [(0, 0), (1, 1), (2, 0)]);
        assert_eq!(SubagentLanes::from_entries(&inline).consecutive_runs(), []);
        assert_eq!(SubagentLanes::from_entries(&entries[..2]), SubagentLanes::default());
    }

    #[test]
    fn every_entry_has_one_lane_whatever_its_content() {
        let entries = [
            call("subagent:a", "b", ""),
            call("subagent:b", "a", ""),
            result("subagent:c", "x", "c"),
            new_entry(PRIMARY_SOURCE, "main"),
        ];
        let mut numbers: Vec<_> = laid(&entries).into_iter().map(|(number, _)| number).collect();
        numbers.sort_unstable();
        assert_eq!(numbers, [0, 1, 2, 3]);
    }
}
