//! What agents did over time: entries, tools with their failures and times, waits, and compactions.
//!
//! One pass over the entries of the selected sessions. What a session copied from another one is not counted again. A
//! result belongs to the oldest open call of the same tool and source, because the index has no ids of calls. Results
//! name no model, so a filter by model selects them by their calls.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};

use rusqlite::types::Value;
use rusqlite::{Row, params_from_iter};

use super::stored_name::StoredName;
use super::{EntryFilter, Index, IndexError};
use crate::cost::charge::QUARTER_HOUR_MS;

/// How many waits and how many sessions with compactions are reported.
const MAX_REPORTED: usize = 10;

/// What agents did in a period.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TrendReport {
    /// How many sessions have selected entries.
    pub sessions: u64,
    /// How many entries are selected. One that several sessions have counts once.
    pub entries: u64,
    /// How many of them are prompts of a person.
    pub prompts: u64,
    /// How many of them are errors or failed calls.
    pub failures: u64,
    /// Entries per quarter of an hour, by its start in milliseconds since 1970, in order.
    pub quarter_hours: Vec<(i64, u64)>,
    /// How many sessions were active in each quarter of an hour, by its start in milliseconds since 1970, in order.
    pub active_sessions: Vec<(i64, u64)>,
    /// The tools, the most used first.
    pub tools: Vec<ToolTrend>,
    /// The longest waits for a model, the longest first.
    pub longest_waits: Vec<LongWait>,
    /// The tool calls that took longest from call to result, the longest first. Each has the number of its result.
    pub longest_calls: Vec<LongWait>,
    /// How many times contexts were compacted.
    pub compactions: u64,
    /// The sessions with the most compactions.
    pub most_compacted: Vec<(TrendSession, u64)>,
}

/// The calls of a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolTrend {
    /// The tool's name.
    pub tool: String,
    /// How many calls there are.
    pub calls: u64,
    /// How many results are failures.
    pub failures: u64,
    /// How many calls have a known duration.
    pub timed_calls: u64,
    /// The time from call to result of those, in milliseconds.
    pub total_ms: i64,
    /// The longest of them.
    pub longest_ms: i64,
}

/// A pause before an entry of the model, or a tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LongWait {
    /// The session.
    pub session: TrendSession,
    /// The number of the entry after the pause.
    pub number: usize,
    /// The tool that was called; `None` for the model.
    pub tool: Option<String>,
    /// The pause in milliseconds.
    pub wait_ms: i64,
}

/// A session of a report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrendSession {
    /// The agent.
    pub agent: String,
    /// The session's id.
    pub id: String,
    /// The title.
    pub title: Option<String>,
}

impl Index {
    /// Reports what agents did, for the entries that a filter selects.
    pub fn load_trends(&self, filter: &EntryFilter) -> Result<TrendReport, IndexError> {
        let whole = EntryFilter { since: None, until: None, model: None, ..filter.clone() };
        let (conditions, mut values) = whole.sql_conditions();
        values.insert(0, Value::from(1));
        let bound = |at: Option<steno_model::timestamp::Timestamp>| {
            at.map(|at| at.instant().as_millisecond())
        };
        let since = bound(filter.since)
            .map(|at| format!(" AND coalesce(session.ended_at, session.started_at) >= {at}"));
        let until = bound(filter.until).map(|at| format!(" AND session.started_at < {at}"));
        let sql = format!(
            "SELECT entry.session, entry.number, coalesce(entry.time, session.started_at), entry.role, entry.kind,
                entry.tool, entry.source, entry.failed, session.agent, session.name, session.title, entry.time,
                entry.model
             FROM session JOIN entry ON entry.session = session.id
             WHERE ?1 = ?1{conditions}{}{} ORDER BY entry.session, entry.number",
            since.unwrap_or_default(),
            until.unwrap_or_default()
        );
        let read = || -> rusqlite::Result<TrendReport> {
            let mut trends = TrendCounter::new(filter);
            let of_models = EntryFilter { model: None, ..filter.clone() };
            let copies = self.find_copied_entries(&of_models)?;
            trends.copies = copies.iter().map(|copy| (copy.session, copy.number)).collect();
            let mut query = self.connection.prepare(&sql)?;
            let mut rows = query.query(params_from_iter(values))?;
            while let Some(row) = rows.next()? {
                trends.add_row(row)?;
            }
            Ok(trends.into_report())
        };
        self.wrap_error(read())
    }
}

/// An entry of the pass.
struct TrendEntry {
    number: usize,
    /// Whether another session has it, too.
    is_copy: bool,
    /// The time, or the start of the session.
    at: Option<i64>,
    /// The time as recorded.
    time: Option<i64>,
    is_prompt: bool,
    is_model: bool,
    kind: String,
    tool: Option<String>,
    source: String,
    failed: bool,
    /// Whether it is of the model of the filter; all are if there is none.
    is_of_model: bool,
}

/// Counts entries in the order of their sessions.
struct TrendCounter<'a> {
    filter: &'a EntryFilter,
    /// A part of the model's name in lower case.
    model: Option<String>,
    report: TrendReport,
    quarters: BTreeMap<i64, u64>,
    active_sessions: BTreeMap<i64, u64>,
    tools: HashMap<String, ToolTrend>,
    session: SessionTrend,
    /// Row of the session and number of the entries that another session has too.
    copies: HashSet<(i64, i64)>,
}

/// The session that is being counted.
#[derive(Default)]
struct SessionTrend {
    row: Option<i64>,
    session: TrendSession,
    entries: u64,
    compactions: u64,
    /// The quarters of an hour with selected entries.
    quarters: BTreeSet<i64>,
    /// The calls without a result, by source, the oldest first.
    open_calls: HashMap<String, VecDeque<OpenCall>>,
    /// The time of the last entry of each source.
    last_times: HashMap<String, i64>,
}

/// A call without a result.
struct OpenCall {
    tool: String,
    time: Option<i64>,
    is_of_model: bool,
}

/// The most open calls of a source. Older ones never get a result.
const MAX_OPEN_CALLS: usize = 500;

impl SessionTrend {
    fn open_call(&mut self, source: &str, call: OpenCall) {
        let calls = self.open_calls.entry(source.to_owned()).or_default();
        calls.push_back(call);
        if calls.len() > MAX_OPEN_CALLS {
            calls.pop_front();
        }
    }

    /// Removes the oldest open call of a tool; of any tool if the result does not name one.
    fn close_call(&mut self, source: &str, tool: Option<&str>) -> Option<OpenCall> {
        let calls = self.open_calls.get_mut(source)?;
        let at = calls.iter().position(|call| tool.is_none_or(|tool| tool == call.tool))?;
        calls.remove(at)
    }
}

impl<'a> TrendCounter<'a> {
    fn new(filter: &'a EntryFilter) -> Self {
        Self {
            filter,
            model: filter.model.as_deref().map(str::to_lowercase),
            report: TrendReport::default(),
            quarters: BTreeMap::new(),
            active_sessions: BTreeMap::new(),
            tools: HashMap::new(),
            session: SessionTrend::default(),
            copies: HashSet::new(),
        }
    }

    fn add_row(&mut self, row: &Row<'_>) -> rusqlite::Result<()> {
        let session: i64 = row.get(0)?;
        if self.session.row != Some(session) {
            self.end_session();
            let named = TrendSession { agent: row.get(8)?, id: row.get(9)?, title: row.get(10)? };
            self.session =
                SessionTrend { row: Some(session), session: named, ..SessionTrend::default() };
        }
        let StoredName(role): StoredName<String> = row.get(3)?;
        let StoredName(kind): StoredName<String> = row.get(4)?;
        let number = row.get(1)?;
        self.add_entry(TrendEntry {
            number: usize::try_from(number).unwrap_or_default(),
            is_copy: self.copies.contains(&(session, number)),
            at: row.get(2)?,
            time: row.get(11)?,
            is_prompt: role == "user" && kind == "text",
            is_model: role == "assistant",
            kind,
            tool: row.get(5)?,
            source: row.get::<_, StoredName<_>>(6)?.0,
            failed: row.get(7)?,
            is_of_model: self.is_of_model(row.get_ref(12)?.as_str_or_null()?),
        });
        Ok(())
    }

    fn is_of_model(&self, model: Option<&str>) -> bool {
        let Some(part) = &self.model else { return true };
        model.is_some_and(|model| model.to_lowercase().contains(part))
    }

    fn add_entry(&mut self, entry: TrendEntry) {
        let in_period = self.filter.matches_time(entry.at);
        let is_counted = in_period && entry.is_of_model;
        self.session.entries += u64::from(is_counted);
        let is_selected = is_counted && !entry.is_copy;
        if is_selected {
            self.report.entries += 1;
            self.report.prompts += u64::from(entry.is_prompt);
            self.report.failures += u64::from(entry.failed);
            self.session.compactions += u64::from(entry.kind == "compaction");
            if let Some(at) = entry.at {
                let quarter = at.div_euclid(QUARTER_HOUR_MS);
                *self.quarters.entry(quarter).or_default() += 1;
                self.session.quarters.insert(quarter);
            }
        }
        let tool = self.count_tool(&entry, in_period && !entry.is_copy);
        self.count_wait(&TrendEntry { tool, ..entry }, is_selected);
    }

    /// Counts a call or a result, if `is_new` says that it is in the period and no copy. Returns its tool: some agents name
    /// it only in the call.
    fn count_tool(&mut self, entry: &TrendEntry, is_new: bool) -> Option<String> {
        if entry.kind == "tool_call" {
            let (tool, is_of_model) = (entry.tool.clone()?, entry.is_of_model);
            self.tools.entry(tool.clone()).or_default().calls += u64::from(is_new && is_of_model);
            let call = OpenCall { tool: tool.clone(), time: entry.time, is_of_model };
            self.session.open_call(&entry.source, call);
            return Some(tool);
        }
        let is_result = entry.kind == "tool_result" || entry.tool.is_some();
        let call = is_result
            .then(|| self.session.close_call(&entry.source, entry.tool.as_deref()))
            .flatten();
        let called = call.as_ref().and_then(|call| call.time);
        let is_of_call = call.as_ref().is_some_and(|call| call.is_of_model);
        let is_selected = is_new && (entry.is_of_model || is_of_call);
        // A failure that names no model itself was not counted with the entries.
        self.report.failures += u64::from(is_selected && entry.failed && !entry.is_of_model);
        let tool = entry.tool.clone().or(call.map(|call| call.tool))?;
        let trend = self.tools.entry(tool.clone()).or_default();
        trend.failures += u64::from(is_selected && entry.failed);
        let took = called.zip(entry.time).map(|(called, ended)| ended - called);
        if let Some(took) = took.filter(|took| is_selected && *took >= 0) {
            trend.timed_calls += 1;
            trend.total_ms += took;
            trend.longest_ms = trend.longest_ms.max(took);
            if is_among_longest(&self.report.longest_calls, took) {
                let call = self.long_wait(entry.number, Some(tool.clone()), took);
                add_long_wait(&mut self.report.longest_calls, call);
            }
        }
        Some(tool)
    }

    fn count_wait(&mut self, entry: &TrendEntry, is_selected: bool) {
        let Some(time) = entry.time else { return };
        let last = self.session.last_times.insert(entry.source.clone(), time);
        let waited = last.map(|last| time - last).filter(|waited| *waited > 0);
        if let Some(waited) = waited.filter(|_| is_selected && entry.is_model)
            && is_among_longest(&self.report.longest_waits, waited)
        {
            let wait = self.long_wait(entry.number, None, waited);
            add_long_wait(&mut self.report.longest_waits, wait);
        }
    }

    fn long_wait(&self, number: usize, tool: Option<String>, wait_ms: i64) -> LongWait {
        LongWait { session: self.session.session.clone(), number, tool, wait_ms }
    }

    fn end_session(&mut self) {
        let done = std::mem::take(&mut self.session);
        self.report.sessions += u64::from(done.entries > 0);
        self.report.compactions += done.compactions;
        for quarter in done.quarters {
            *self.active_sessions.entry(quarter).or_default() += 1;
        }
        if done.compactions > 0 {
            self.report.most_compacted.push((done.session, done.compactions));
        }
    }

    fn into_report(mut self) -> TrendReport {
        self.end_session();
        let mut report = self.report;
        report.most_compacted.sort_by_key(|(_, count)| Reverse(*count));
        report.most_compacted.truncate(MAX_REPORTED);
        let by_start = |counts: BTreeMap<i64, u64>| {
            let counts = counts.into_iter();
            counts.map(|(quarter, count)| (quarter * QUARTER_HOUR_MS, count)).collect()
        };
        report.quarter_hours = by_start(self.quarters);
        report.active_sessions = by_start(self.active_sessions);
        let named = self.tools.into_iter().map(|(tool, trend)| ToolTrend { tool, ..trend });
        report.tools = named.filter(|trend| trend.calls > 0).collect();
        report.tools.sort_by(|a, b| b.calls.cmp(&a.calls).then_with(|| a.tool.cmp(&b.tool)));
        report
    }
}

/// Whether a wait is one of the longest so far.
fn is_among_longest(longest: &[LongWait], wait_ms: i64) -> bool {
    longest.len() < MAX_REPORTED || longest.last().is_some_and(|last| last.wait_ms < wait_ms)
}

/// Adds a wait to the longest ones.
fn add_long_wait(longest: &mut Vec<LongWait>, wait: LongWait) {
    longest.push(wait);
    longest.sort_by_key(|wait| Reverse(wait.wait_ms));
    longest.truncate(MAX_REPORTED);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(number: usize, seconds: i64, kind: &str, tool: Option<&str>) -> TrendEntry {
        TrendEntry {
            number,
            is_copy: false,
            at: Some(seconds * 1000),
            time: Some(seconds * 1000),
            is_prompt: kind == "prompt",
            is_model: kind == "tool_call" || kind == "text",
            kind: kind.to_owned(),
            tool: tool.map(str::to_owned),
            source: "primary".to_owned(),
            failed: false,
            is_of_model: true,
        }
    }

    #[test]
    fn results_belong_to_the_oldest_open_call_of_their_tool() {
        let filter = EntryFilter::default();
        let mut trends = TrendCounter::new(&filter);
        trends.add_entry(entry(0, 0, "prompt", None));
        trends.add_entry(entry(1, 10, "tool_call", Some("Bash")));
        trends.add_entry(entry(2, 11, "tool_call", Some("Bash")));
        trends.add_entry(entry(3, 15, "tool_result", Some("Bash")));
        trends.add_entry(TrendEntry { failed: true, ..entry(4, 31, "tool_result", Some("Bash")) });
        trends.add_entry(entry(5, 32, "compaction", None));
        let report = trends.into_report();
        let bash = ToolTrend {
            tool: "Bash".to_owned(),
            calls: 2,
            failures: 1,
            timed_calls: 2,
            total_ms: 25_000,
            longest_ms: 20_000,
        };
        assert_eq!(report.tools, [bash]);
        assert_eq!((report.entries, report.prompts, report.failures), (6, 1, 1));
        assert_eq!((report.sessions, report.compactions), (1, 1));
        let of = |waits: &[LongWait]| -> Vec<_> {
            waits.iter().map(|wait| (wait.number, wait.wait_ms)).collect()
        };
        assert_eq!(of(&report.longest_waits), [(1, 10_000), (2, 1000)]);
        assert_eq!(of(&report.longest_calls), [(4, 20_000), (3, 5000)]);
        assert!(report.longest_calls.iter().all(|call| call.tool.as_deref() == Some("Bash")));
        assert_eq!(report.quarter_hours, [(0, 6)]);
    }

    #[test]
    fn sessions_that_are_active_at_once_are_counted() {
        let filter = EntryFilter::default();
        let mut trends = TrendCounter::new(&filter);
        trends.add_entry(entry(0, 0, "prompt", None));
        trends.add_entry(entry(1, 60, "text", None));
        trends.end_session();
        trends.add_entry(entry(0, 300, "prompt", None));
        trends.add_entry(entry(1, 1000, "text", None));
        assert_eq!(trends.into_report().active_sessions, [(0, 2), (QUARTER_HOUR_MS, 1)]);
    }

    #[test]
    fn a_result_without_a_name_belongs_to_the_oldest_open_call() {
        let filter = EntryFilter::default();
        let mut trends = TrendCounter::new(&filter);
        trends.add_entry(entry(0, 10, "tool_call", Some("shell")));
        trends.add_entry(entry(1, 11, "tool_call", Some("patch")));
        trends.add_entry(entry(2, 12, "text", None));
        trends.add_entry(TrendEntry { failed: true, ..entry(3, 15, "tool_result", None) });
        trends.add_entry(entry(4, 31, "tool_result", Some("patch")));
        trends.add_entry(entry(5, 40, "tool_result", None));
        let report = trends.into_report();
        let counts: Vec<_> = report
            .tools
            .iter()
            .map(|tool| (tool.tool.as_str(), tool.calls, tool.failures, tool.total_ms))
            .collect();
        assert_eq!(counts, [("patch", 1, 0, 20_000), ("shell", 1, 1, 5000)]);
        let calls: Vec<_> = report.longest_calls.iter().map(|call| call.tool.as_deref()).collect();
        assert_eq!(calls, [Some("patch"), Some("shell")]);
        assert!(report.longest_waits.iter().all(|wait| wait.tool.is_none()));
    }

    #[test]
    fn a_result_in_the_period_of_a_call_before_it_is_timed() {
        let since = "1970-01-01T00:00:20Z".parse().ok();
        let filter = EntryFilter { since, ..EntryFilter::default() };
        let mut trends = TrendCounter::new(&filter);
        trends.add_entry(entry(0, 10, "tool_call", Some("Bash")));
        trends.add_entry(entry(1, 21, "tool_call", Some("Bash")));
        trends.add_entry(entry(2, 25, "tool_result", Some("Bash")));
        trends.add_entry(entry(3, 26, "tool_result", Some("Bash")));
        let report = trends.into_report();
        assert_eq!((report.tools[0].calls, report.tools[0].total_ms), (1, 20_000));
        assert_eq!(report.entries, 3);
    }
}
