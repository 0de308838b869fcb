//! The overview of all subagents of a session: who ran when, how each ended, and its totals.

use jiff::tz::TimeZone;
use maud::{Markup, html};
use steno_model::{Entry, Session, SessionStatus, Timestamp};
use steno_store::amount::{format_cost, format_count};
use steno_store::view::entry_totals::EntryTotals;
use steno_store::view::lanes::SubagentLanes;

use crate::addresses::{session_address, short_model};
use crate::fork::find_call;
use crate::heading::{session_duration, session_title, status_badge};
use crate::outline::{SessionOutline, cost_text, totals_line};
use crate::render::plain::clean_text;
use crate::render::{depth_class, lane_colour, run_title, subagent_address};
use crate::session_listing::SessionListing;
use crate::subagent_run::{OutlinedRun, SubagentOutcome};
use crate::units::{COST_EXPLANATION, count_of, exact_count, explain_tokens, format_duration};

/// The width of the time axis, in units of the drawing, and the narrowest bar.
const AXIS_WIDTH: i64 = 1000;
const MIN_BAR_WIDTH: i64 = 6;

/// How many subagents and sessions are listed.
const MAX_RUNS: usize = 300;
const MAX_SESSIONS: usize = 100;

/// How many subagents the section lists without being opened by the reader: the first prompt stays on the first screen.
pub(crate) const MAX_OPEN_RUNS: usize = 3;

/// The orders of the list, in the order of the numbers of each row.
const RUN_ORDERS: [&str; 5] = ["start", "duration", "entries", "tokens", "cost"];

/// The heading of the section: how many subagents there are, and how many failed; and how many sessions were started.
pub(crate) fn subagents_heading(runs: &[OutlinedRun], others: usize) -> Markup {
    let count = |outcome| runs.iter().filter(|one| one.outcome == outcome).count() as u64;
    let (failed, unanswered) = (count(SubagentOutcome::Failed), count(SubagentOutcome::Unanswered));
    if runs.is_empty() {
        return html! { b { "Sessions started from this one" } span { (exact_count(others as u64)) } };
    }
    html! {
        b { "Subagents" }
        span { (exact_count(runs.len() as u64)) }
        @if failed > 0 { small.minus { (exact_count(failed)) " failed" } }
        @if unanswered > 0 { small { (exact_count(unanswered)) " without an answer" } }
        @let totals = sum_runs(runs);
        small.totals-part { (count_of(totals.entries, "entry")) }
        @if let Some(cost) = cost_text(&totals) { small.totals-part title=(COST_EXPLANATION) { (cost) } }
        @if others > 0 { small { (count_of(others as u64, "session")) " started from this one" } }
    }
}

/// The entries, tokens and cost of all subagents. Those that the main agent started include the others.
fn sum_runs(runs: &[OutlinedRun]) -> EntryTotals {
    let mut sum = EntryTotals::default();
    for totals in runs.iter().filter(|one| one.run.depth == 1).map(|one| &one.totals) {
        sum.entries += totals.entries;
        sum.usage.add(&totals.usage);
        sum.is_partly_unpriced |= totals.is_partly_unpriced;
        if let Some(cost) = totals.cost {
            *sum.cost.get_or_insert_default() += cost;
        }
    }
    sum
}

/// The sessions that name this one as their parent.
pub(crate) fn child_sessions<'a>(
    listing: &'a SessionListing,
    session: &'a Session,
) -> impl Iterator<Item = &'a Session> {
    let is_named = |parent: &str| {
        session.native_id.as_deref() == Some(parent) || session.id.as_str() == parent
    };
    let all = listing.sessions.iter().map(|one| &one.session);
    all.filter(move |other| other.id != session.id && other.parent.as_deref().is_some_and(is_named))
}

/// A session whose subagents are listed.
pub(crate) struct OverviewSession<'a> {
    pub(crate) session: &'a Session,
    pub(crate) entries: &'a [Entry],
    pub(crate) lanes: &'a SubagentLanes,
    pub(crate) outline: &'a SessionOutline,
    /// All sessions; `None` in a file, which has no links to others.
    pub(crate) listing: Option<&'a SessionListing>,
}

/// The subagents of a session, and the sessions that it started.
pub(crate) fn subagent_overview(of: &OverviewSession<'_>, zone: &TimeZone) -> Markup {
    let runs = &of.outline.runs;
    let children = of.listing.map(|listing| child_sessions(listing, of.session));
    let mut children: Vec<&Session> = children.into_iter().flatten().collect();
    // Those without a time come last.
    let begin = |one: &&Session| one.started.map(|at| at.instant());
    children.sort_by_key(|one| (begin(one).is_none(), begin(one)));
    let base = session_address(&of.session.agent, &of.session.id);
    let spans = runs.iter().filter_map(|one| one.totals.time_span());
    let axis = TimeAxis::of_spans(spans.chain(children.iter().filter_map(|one| session_span(one))));
    let view = OverviewView { of, zone, axis, base: &base };
    html! {
        .subagent-overview {
            .runs-head {
                @if !runs.is_empty() { (summary_line(runs)) }
                @if runs.len() > 2 { (order_choice()) }
            }
            @if !children.is_empty() { p.hint { (count_of(children.len() as u64, "session")) " started or forked from this one, with files of their own" } }
            ol.runs {
                (view.axis_line())
                @for (at, one) in runs.iter().take(MAX_RUNS).enumerate() { (view.run_row(at, one)) }
                @for child in children.iter().take(MAX_SESSIONS) { (view.child_row(child)) }
            }
            @if runs.len() > MAX_RUNS { p.hint { (runs.len() - MAX_RUNS) " more subagents are not listed." } }
            @if children.len() > MAX_SESSIONS { p.hint { (children.len() - MAX_SESSIONS) " more sessions are not listed." } }
        }
    }
}

/// Where the order of the rows is chosen. A script sorts them.
fn order_choice() -> Markup {
    html! {
        label { "Sort by " select.runs-order { @for (at, name) in RUN_ORDERS.iter().enumerate() { option value=(at) { (name) } } } }
    }
}

/// The numbers of a row by which it is sorted, in the order of [`RUN_ORDERS`].
fn order_numbers(at: usize, totals: &EntryTotals) -> String {
    let tokens = totals.usage.prompt_tokens().saturating_add(totals.usage.output);
    let (duration, cost) = (totals.duration_ms().unwrap_or(0), totals.cost.unwrap_or(0.0));
    format!("{at} {duration} {} {tokens} {cost}", totals.entries)
}

/// The times of a session.
fn session_span(session: &Session) -> Option<TimeSpan> {
    session.started.zip(session.ended)
}

/// How many subagents there are, how many ran at once, and how long they took.
fn summary_line(runs: &[OutlinedRun]) -> Markup {
    let spans: Vec<_> =
        runs.iter().filter_map(|one| one.totals.time_span()).map(to_milliseconds).collect();
    let main = runs.iter().filter(|one| one.run.depth == 1);
    let work: i64 = main.filter_map(|one| one.totals.duration_ms()).sum();
    let axis = TimeAxis::of_spans(runs.iter().filter_map(|one| one.totals.time_span()));
    let passed = axis.map_or(0, TimeAxis::length);
    html! {
        p.hint {
            (count_of(runs.len() as u64, "subagent"))
            @if spans.len() > 1 {
                ", " span title="A subagent that waits for those that it started counts, too" { "at most " (most_at_once(&spans)) " at the same time" }
            }
            @if passed > 0 {
                ", " span title="The durations of the subagents that the main agent started, added up" { (format_duration(work)) " of work" }
                " in " span title="From the begin of the first subagent to the end of the last" { (format_duration(passed)) }
            }
        }
    }
}

/// The most spans that overlap at one time.
fn most_at_once(spans: &[(i64, i64)]) -> usize {
    let running =
        |at: i64| spans.iter().filter(move |(from, to)| *from <= at && at < (*to).max(from + 1));
    spans.iter().map(|(from, _)| running(*from).count()).max().unwrap_or(0)
}

/// The times of a first and a last entry.
type TimeSpan = (Timestamp, Timestamp);

fn to_milliseconds((from, to): TimeSpan) -> (i64, i64) {
    (from.instant().as_millisecond(), to.instant().as_millisecond())
}

/// The time from the first begin to the last end.
#[derive(Clone, Copy)]
struct TimeAxis {
    from: Timestamp,
    to: Timestamp,
}

impl TimeAxis {
    /// The axis of some spans; `None` if there are none, or if all times are the same.
    fn of_spans(spans: impl Iterator<Item = TimeSpan> + Clone) -> Option<Self> {
        let from = spans.clone().map(|(from, _)| from).min_by_key(Timestamp::instant)?;
        let to = spans.map(|(_, to)| to).max_by_key(Timestamp::instant)?;
        Some(Self { from, to }).filter(|axis| axis.length() > 0)
    }

    /// The length in milliseconds.
    fn length(self) -> i64 {
        let (from, to) = to_milliseconds((self.from, self.to));
        to - from
    }

    /// The position and width of a bar. A short one is as wide as can be seen, and none leaves the axis.
    fn bar(self, span: TimeSpan) -> (i64, i64) {
        let begin = self.from.instant().as_millisecond();
        let (from, to) = to_milliseconds(span);
        let place = |at: i64| (at - begin) * AXIS_WIDTH / self.length();
        let width = (place(to) - place(from)).max(MIN_BAR_WIDTH);
        (place(from).min(AXIS_WIDTH - width), width)
    }
}

/// What the rows of the overview need.
struct OverviewView<'a> {
    of: &'a OverviewSession<'a>,
    zone: &'a TimeZone,
    axis: Option<TimeAxis>,
    base: &'a str,
}

impl OverviewView<'_> {
    fn clock(&self, at: Timestamp) -> String {
        at.in_zone(self.zone).wall().strftime("%H:%M:%S").to_string()
    }

    /// The times at both ends of the axis.
    fn axis_line(&self) -> Markup {
        html! {
            @if let Some(TimeAxis { from, to }) = self.axis {
                li.axis { span {} span.ends { span title="The first one began" { (self.clock(from)) } span title="The last one ended" { (self.clock(to)) } } }
            }
        }
    }

    fn run_row(&self, at: usize, one: &OutlinedRun) -> Markup {
        let first = self.of.lanes.number_at(one.run.places.start);
        html! {
            li class={ "lane " (lane_colour(&one.run.source)) " " (depth_class(one.run.depth)) } data-sums=(order_numbers(at, &one.totals)) {
                span.name {
                    a href={ "#e" (first) } title={ "Go to subagent " (clean_text(one.name())) } { (run_title(one)) }
                    (one.outcome_badge())
                }
                (self.bar(one.totals.time_span(), one.outcome == SubagentOutcome::Failed))
                span.more {
                    @if self.of.listing.is_some() { a href=(subagent_address(self.base, one.name())) title="Show only this subagent" { "Open alone" } }
                    @for model in self.models(one) { span title={ "Model " (clean_text(model)) } { (clean_text(short_model(model))) } }
                }
                span.totals-line title="With those of the subagents that it started" {
                    span { (count_of(one.totals.entries, "entry")) }
                    (totals_line(&one.totals))
                }
            }
        }
    }

    /// When something ran, as a bar. Its tooltip names the times.
    fn bar(&self, span: Option<TimeSpan>, has_failed: bool) -> Markup {
        let Some((axis, span)) = self.axis.zip(span) else {
            return html! { span.hint { "no times recorded" } };
        };
        let (x, width) = axis.bar(span);
        let times = format!("Ran from {} to {}", self.clock(span.0), self.clock(span.1));
        html! {
            svg viewBox="0 0 1000 10" preserveAspectRatio="none" role="img" aria-label=(times) {
                title { (times) }
                rect class=(if has_failed { "fail" } else { "" }) x=(x) y="1" width=(width) height="8" {}
            }
        }
    }

    /// A session that this one started, with the call that did.
    fn child_row(&self, child: &Session) -> Markup {
        let key = (child.agent.clone(), child.id.to_string());
        let names = [child.native_id.as_deref(), Some(child.id.as_str())];
        let names: Vec<&str> = names.into_iter().flatten().collect();
        let call = find_call(self.of.entries, &names, None);
        let usage = &child.totals.usage;
        html! {
            li.lane {
                span.name {
                    a href=(session_address(&child.agent, &child.id)) title="Open this session" { (session_title(child)) }
                    (status_badge(child.status))
                }
                (self.bar(session_span(child), child.status == SessionStatus::Failed))
                span.more {
                    @if let Some(call) = call { a href={ "#e" (call) } title="Go to the call that started it" { "Call: entry " (call) } }
                    @for model in &child.models { span title={ "Model " (clean_text(model)) } { (clean_text(short_model(model))) } }
                }
                span.totals-line {
                    span title="Messages, tool calls and results, and notices" { (count_of(child.totals.entries, "entry")) }
                    @if let Some(length) = session_duration(child) { span title="From the first entry to the last" { (length) } }
                    @if !usage.is_empty() { span title=(explain_tokens(usage)) { (format_count(usage.prompt_tokens())) " tokens in, " (format_count(usage.output)) " out" } }
                    @if let Some(cost) = self.of.listing.and_then(|listing| listing.costs.get(&key)) { span title=(COST_EXPLANATION) { (format_cost(cost)) } }
                }
            }
        }
    }

    /// The models of a run's own entries.
    fn models(&self, one: &OutlinedRun) -> Vec<&str> {
        let mut models: Vec<&str> = Vec::new();
        let numbers = one.run.places.clone().map(|place| self.of.lanes.number_at(place));
        let entries = numbers.map(|number| &self.of.entries[number]);
        let own = entries.filter(|entry: &&Entry| entry.source == one.run.source);
        for model in own.filter_map(|entry| entry.model.as_deref()) {
            if !models.contains(&model) {
                models.push(model);
            }
        }
        models
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_runs_are_counted() {
        assert_eq!(most_at_once(&[(0, 10), (5, 20), (10, 30), (40, 40)]), 2);
        assert_eq!(most_at_once(&[(0, 100), (10, 20), (15, 30), (29, 31)]), 3);
        assert_eq!(most_at_once(&[(5, 5), (5, 5)]), 2);
        assert_eq!(most_at_once(&[]), 0);
    }

    #[test]
    fn a_bar_is_visible_and_stays_on_the_axis() {
        let at = |seconds: i64| Timestamp::from_unix(seconds).expect("the time is valid");
        let spans = [(at(3), at(8)), (at(1), at(2)), (at(9), at(11))];
        let axis = TimeAxis::of_spans(spans.into_iter()).expect("the spans differ");
        assert_eq!((axis.from, axis.to, axis.length()), (at(1), at(11), 10_000));
        assert_eq!(axis.bar((at(1), at(11))), (0, 1000));
        assert_eq!(axis.bar((at(3), at(6))), (200, 300));
        assert_eq!(axis.bar((at(11), at(11))), (994, 6));
        assert!(TimeAxis::of_spans([(at(1), at(1))].into_iter()).is_none());
    }
}
