//! The overview of all subagents of a session: who ran when, how each ended, and its totals.

use jiff::tz::TimeZone;
use maud::{Markup, html};
use steno_model::{Entry, Session, Timestamp};
use steno_store::amount::format_cost;

use crate::addresses::session_address;
use crate::heading::{session_duration, session_title};
use crate::library::{OpenedSession, SessionListing};
use crate::outline::totals_line;
use crate::render::plain::clean_text;
use crate::render::{depth_class, lane_colour, run_title, subagent_address};
use crate::subagent_run::{OutlinedRun, RunOutcome};
use crate::units::{COST_EXPLANATION, count_of, exact_count, format_duration};

/// The width of the time axis, in units of the drawing, and the narrowest bar.
const AXIS_WIDTH: i64 = 1000;
const MIN_BAR_WIDTH: i64 = 6;

/// How many subagents and sessions are listed.
const MAX_RUNS: usize = 300;
const MAX_SESSIONS: usize = 100;

/// How many subagents the section lists without being opened by the reader.
pub(crate) const MAX_OPEN_RUNS: usize = 8;

/// The heading of the section: how many subagents there are, and how many failed.
pub(crate) fn subagents_heading(runs: &[OutlinedRun], others: usize) -> Markup {
    let count = |outcome| runs.iter().filter(|one| one.outcome == outcome).count() as u64;
    let (failed, unanswered) = (count(RunOutcome::Failed), count(RunOutcome::Unanswered));
    html! {
        b { "Subagents" }
        span { (exact_count(runs.len() as u64)) }
        @if failed > 0 { small.minus { (exact_count(failed)) " failed" } }
        @if unanswered > 0 { small { (exact_count(unanswered)) " without an answer" } }
        @if others > 0 { small { (count_of(others as u64, "other session")) } }
    }
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

/// The subagents of a session, and the sessions that it started.
pub(crate) fn subagent_overview(
    opened: &OpenedSession,
    listing: &SessionListing,
    zone: &TimeZone,
) -> Markup {
    let session = &opened.transcript.session;
    let runs = &opened.outline.runs;
    let children: Vec<&Session> = child_sessions(listing, session).collect();
    let base = session_address(&session.agent, &session.id);
    let view = OverviewView { opened, zone, axis: TimeAxis::of_runs(runs), base: &base };
    html! {
        .subagent-overview {
            @if !runs.is_empty() {
                (summary_line(runs))
                ol.runs {
                    (view.axis_line())
                    @for one in runs.iter().take(MAX_RUNS) { (view.run_row(one)) }
                }
                @if runs.len() > MAX_RUNS { p.hint { (runs.len() - MAX_RUNS) " more subagents are not listed." } }
            }
            @if !children.is_empty() {
                p.hint { "Sessions that were started or forked from this one:" }
                ul.plain-list { @for child in children.iter().take(MAX_SESSIONS) { (child_row(child, listing)) } }
            }
        }
    }
}

/// How many subagents there are, how many ran at once, and how long they took.
fn summary_line(runs: &[OutlinedRun]) -> Markup {
    let spans: Vec<_> = runs.iter().filter_map(time_span).collect();
    let work: i64 = runs
        .iter()
        .filter(|one| one.run.depth == 1)
        .filter_map(time_span)
        .map(|(from, to)| to - from)
        .sum();
    let passed = TimeAxis::of_runs(runs).map_or(0, |axis| axis.to - axis.from);
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

/// The times of the first and the last entry of a run, in milliseconds.
fn time_span(one: &OutlinedRun) -> Option<(i64, i64)> {
    let milliseconds = |at: Timestamp| at.instant().as_millisecond();
    one.totals.time_span().map(|(from, to)| (milliseconds(from), milliseconds(to)))
}

/// The time from the first run's begin to the last run's end, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TimeAxis {
    from: i64,
    to: i64,
}

impl TimeAxis {
    /// The axis of some runs; `None` if they have no times, or all the same.
    fn of_runs(runs: &[OutlinedRun]) -> Option<Self> {
        let spans = || runs.iter().filter_map(time_span);
        let from = spans().map(|(from, _)| from).min()?;
        let to = spans().map(|(_, to)| to).max()?;
        (to > from).then_some(Self { from, to })
    }

    /// The position and width of a bar. A short run is as wide as can be seen, and no bar leaves the axis.
    fn bar(self, (from, to): (i64, i64)) -> (i64, i64) {
        let place = |at: i64| (at - self.from) * AXIS_WIDTH / (self.to - self.from);
        let width = (place(to) - place(from)).max(MIN_BAR_WIDTH);
        (place(from).min(AXIS_WIDTH - width), width)
    }
}

/// What the rows of the overview need.
struct OverviewView<'a> {
    opened: &'a OpenedSession,
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
        let spans = || self.opened.outline.runs.iter().filter_map(|one| one.totals.time_span());
        let begin = spans().map(|(from, _)| from).min_by_key(Timestamp::instant);
        let end = spans().map(|(_, to)| to).max_by_key(Timestamp::instant);
        html! {
            @if let (Some(_), Some(begin), Some(end)) = (self.axis, begin, end) {
                li.axis { span {} span.ends { span title="The first subagent began" { (self.clock(begin)) } span title="The last subagent ended" { (self.clock(end)) } } }
            }
        }
    }

    fn run_row(&self, one: &OutlinedRun) -> Markup {
        let first = self.opened.lanes.number_at(one.run.places.start);
        html! {
            li class={ "lane " (lane_colour(&one.run.source)) " " (depth_class(one.run.depth)) } {
                span.name {
                    a href={ "#e" (first) } title={ "Go to subagent " (clean_text(one.name())) } { (run_title(one)) }
                    (one.outcome_badge())
                }
                (self.bar(one))
                span.more {
                    a href=(subagent_address(self.base, one.name())) title="Show only this subagent" { "Open alone" }
                    @for model in self.models(one) { span title="Model" { (clean_text(model)) } }
                }
                span.totals-line title="With those of the subagents that it started" {
                    span { (count_of(one.totals.entries, "entry")) }
                    (totals_line(&one.totals))
                }
            }
        }
    }

    /// When the run was, as a bar. Its tooltip names the times.
    fn bar(&self, one: &OutlinedRun) -> Markup {
        let Some((axis, span)) = self.axis.zip(time_span(one)) else {
            return html! { span.hint { "no times recorded" } };
        };
        let (x, width) = axis.bar(span);
        let times = one
            .totals
            .time_span()
            .map(|(from, to)| format!("Ran from {} to {}", self.clock(from), self.clock(to)));
        let class = if one.outcome == RunOutcome::Failed { "fail" } else { "" };
        html! {
            svg viewBox="0 0 1000 10" preserveAspectRatio="none" role="img" aria-label=[times.as_deref()] {
                title { (times.as_deref().unwrap_or_default()) }
                rect class=(class) x=(x) y="1" width=(width) height="8" {}
            }
        }
    }

    /// The models of a run's own entries.
    fn models(&self, one: &OutlinedRun) -> Vec<&str> {
        let mut models: Vec<&str> = Vec::new();
        let numbers = one.run.places.clone().map(|place| self.opened.lanes.number_at(place));
        let entries = numbers.map(|number| &self.opened.transcript.entries[number]);
        let own = entries.filter(|entry: &&Entry| entry.source == one.run.source);
        for model in own.filter_map(|entry| entry.model.as_deref()) {
            if !models.contains(&model) {
                models.push(model);
            }
        }
        models
    }
}

/// A session that this one started, with its totals.
fn child_row(child: &Session, listing: &SessionListing) -> Markup {
    let key = (child.agent.clone(), child.id.to_string());
    html! {
        li {
            a href=(session_address(&child.agent, &child.id)) { (session_title(child)) }
            span.agent { (clean_text(&child.agent)) }
            small { (count_of(child.totals.entries, "entry")) }
            @if let Some(length) = session_duration(child) { small title="From the first entry to the last" { (length) } }
            @if let Some(cost) = listing.costs.get(&key) { small title=(COST_EXPLANATION) { (format_cost(cost)) } }
        }
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
        let axis = TimeAxis { from: 1000, to: 11_000 };
        assert_eq!(axis.bar((1000, 11_000)), (0, 1000));
        assert_eq!(axis.bar((3500, 6000)), (250, 250));
        assert_eq!(axis.bar((11_000, 11_000)), (994, 6));
    }
}
