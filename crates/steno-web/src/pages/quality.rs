//! The quality page: failed calls, retries, undone edits and compactions by project and model, and the sessions with
//! the most of them.
//!
//! Retries and undone edits are found in the entries themselves, so each session is read once and its counts are
//! cached. A request reads for a limited time; the page requests the rest by itself.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use axum::extract::Query;
use jiff::civil::Date;
use maud::{Markup, html};
use steno_model::Session;
use steno_store::amount::format_count;

use crate::addresses::{distinct_name, last_segment, session_address};
use crate::app::WebApp;
use crate::chart::{self, BarChart, ChartBar, ChartStyle};
use crate::chart_axis::{ChartAxis, span_of};
use crate::date_range::period_days;
use crate::error::WebError;
use crate::filter_query::{DEFAULT_DAYS, FilterQuery};
use crate::heading;
use crate::library::SessionLibrary;
use crate::list_filter::{IgnoredCondition, ListFilter};
use crate::period_step::{PeriodStep, StepDays};
use crate::quality_counts::{QualityCounts, RETRY_MEANING};
use crate::render::plain::clean_text;
use crate::report_page::{ReportPage, empty_period};
use crate::session_listing::SessionListing;
use crate::units::{count_of, exact_count};
use crate::viewer::PageViewer;

/// The address of the page.
const ADDRESS: &str = "/quality";

/// How long one request reads sessions.
const READING_TIME: Duration = Duration::from_millis(700);

/// How many projects, models and sessions are listed.
const MAX_ROWS: usize = 30;

/// The columns of the tables: heading and explanation.
const COLUMNS: [(&str, &str); 9] = [
    ("Sessions", "Sessions with entries that were last active in this period"),
    ("Tool calls", "Calls of tools. A session that continues another one has its calls, too"),
    ("Failed", "Tool calls whose result is an error, and their share of all calls"),
    ("Other errors", "Errors that are no results of tools, as of the model's API"),
    (
        "Not repaired",
        "Failed calls and other errors after which the same call, file or command did not succeed",
    ),
    ("Retries", RETRY_MEANING),
    ("Undone edits", "Edits that a later edit of the same session reversed"),
    ("Compactions", "How often an agent replaced its context by a summary"),
    ("Largest context", "The most tokens that a model read at once"),
];

/// What counts as a problem.
const PROBLEM_MEANING: &str =
    "Problems are failed calls, other errors, retries, undone edits and compactions";

/// A property of sessions by which their counts are added up.
struct SessionGroup {
    title: &'static str,
    /// The filter for one value.
    field: &'static str,
    about: &'static str,
}

const PROJECT_GROUP: SessionGroup = SessionGroup {
    title: "Projects",
    field: "project",
    about: "The project folder of the session",
};

const MODEL_GROUP: SessionGroup = SessionGroup {
    title: "First models",
    field: "model",
    about: "The first model of the session; all numbers of the session count there",
};

/// How many problems a session of a class has.
type ProblemRange = fn(u64) -> bool;

/// The classes of sessions, the best first.
const PROBLEM_CLASSES: [(&str, ProblemRange); 4] = [
    ("No problems", |problems| problems == 0),
    ("1 or 2 problems", |problems| (1..=2).contains(&problems)),
    ("3 to 9 problems", |problems| (3..=9).contains(&problems)),
    ("10 and more problems", |problems| problems >= 10),
];

/// The quality page.
pub(crate) async fn quality_page(
    app: WebApp,
    viewer: PageViewer,
    Query(filters): Query<FilterQuery>,
) -> Result<Markup, WebError> {
    app.run_blocking(move |library| {
        let today = viewer.today(&library.clock);
        let filters = filters.with_default_period(DEFAULT_DAYS, today);
        let report = QualityReport::read(library, &viewer, &filters)?;
        let content = html! {
            (report.progress())
            @if report.sessions.is_empty() && report.unread == 0 {
@let text = if report.empty > 0 { "No sessions with entries in this period" } else { "No sessions in this period" };
                (empty_period(ADDRESS, &filters, text))
            } @else {
                (figures(&report.total()))
                (report.explanations(&*library.session_listing()?, !filters.model.is_empty()))
                (report.distribution())
                (report.failure_chart(&viewer, period_days(&filters.to_filter(library, &viewer.zone)?, &viewer.zone, today)))
                (report.worst_sessions())
                (group_table(&PROJECT_GROUP, &filters, &report.group_by(|session| session.project.as_deref())))
                (group_table(&MODEL_GROUP, &filters, &report.group_by(|session| session.models.first().map(String::as_str))))
            }
        };
        let (title, address, viewer, filters) = ("Quality", ADDRESS, &viewer, &filters);
        ReportPage { title, address, library, viewer, filters, today }.with_content(&content)
    })
    .await
}

/// The sessions of a period and their counts.
struct QualityReport {
    sessions: Vec<(Session, QualityCounts)>,
    /// How many sessions this request had no time for.
    unread: usize,
    /// How many sessions could not be read.
    unreadable: usize,
    /// How many sessions have no entries. They are not counted: without problems, but without anything else, too.
    empty: usize,
}

impl QualityReport {
    /// Reads the sessions that were last active in the period, the newest first.
    fn read(
        library: &SessionLibrary,
        viewer: &PageViewer,
        filters: &FilterQuery,
    ) -> Result<Self, WebError> {
        let list_filter = ListFilter {
            agent: filters.agent.clone(),
            project: filters.project.clone(),
            model: filters.model.clone(),
            since: filters.since.clone(),
            until: filters.until.clone(),
            ..ListFilter::default()
        };
        let matcher = list_filter.to_matcher(&viewer.local_now(&library.clock))?;
        let listing = library.session_listing()?;
        let sessions = listing.sessions.iter().map(|one| &one.session);
        let begun = Instant::now();
        let mut report = Self { sessions: Vec::new(), unread: 0, unreadable: 0, empty: 0 };
        for session in sessions.filter(|one| matcher.matches(one, IgnoredCondition::Nothing)) {
            if session.totals.entries == 0 {
                report.empty += 1;
                continue;
            }
            let may_read = begun.elapsed() < READING_TIME;
            match library.session_quality(session, may_read) {
                Ok(Some(counts)) => report.sessions.push((session.clone(), counts)),
                Ok(None) => report.unread += 1,
                Err(_) => report.unreadable += 1,
            }
        }
        Ok(report)
    }

    fn total(&self) -> QualityCounts {
        let mut total = QualityCounts::default();
        self.sessions.iter().for_each(|(_, counts)| total.add(counts));
        total
    }

    /// Says why these totals are not those of pages that count an entry once.
    fn explanations(&self, listing: &SessionListing, is_of_model: bool) -> Markup {
        let totals = listing.sum_sessions(self.sessions.iter().map(|(session, _)| session));
        let (empty, copies) = (self.empty as u64, totals.copies);
        html! {
            @if is_of_model { p.hint { "Of whole sessions that used this model, also what other models did in them." } }
            @if empty > 0 || copies > 0 {
                p.hint {
                    @if empty > 0 { (count_of(empty, "more session")) @if empty == 1 { " has" } @else { " have" } " no entries and " @if empty == 1 { "is" } @else { "are" } " not counted. " }
                    @if copies > 0 { (count_of(copies, "entry")) @if copies == 1 { " is a copy" } @else { " are copies" } " in resumed and forked sessions; here, they count in each session." }
                }
            }
        }
    }

    /// How far reading is. A script requests the rest.
    fn progress(&self) -> Markup {
        let all = self.sessions.len() + self.unread + self.unreadable;
        html! {
            @if self.unread > 0 {
                p.stale role="status" data-unfinished {
                    "Reading sessions: " (exact_count((all - self.unread) as u64)) " of " (exact_count(all as u64)) " so far. The numbers below are of those."
                }
            }
            @if self.unreadable > 0 {
                p.stale role="status" { (count_of(self.unreadable as u64, "session")) " could not be read. Run " code { "steno verify" } " to see why." }
            }
        }
    }

    /// The counts by a property of the sessions, the most calls first.
    fn group_by(&self, of: fn(&Session) -> Option<&str>) -> Vec<(&str, QualityCounts)> {
        let mut groups: BTreeMap<&str, QualityCounts> = BTreeMap::new();
        for (session, counts) in &self.sessions {
            groups.entry(of(session).unwrap_or_default()).or_default().add(counts);
        }
        let mut groups: Vec<_> = groups.into_iter().collect();
        groups.sort_by_key(|(_, counts)| std::cmp::Reverse((counts.tool_calls, counts.sessions)));
        groups
    }

    /// How many sessions have how many problems.
    fn distribution(&self) -> Markup {
        let counts = PROBLEM_CLASSES.map(|(_, range)| {
            self.sessions.iter().filter(|(_, counts)| range(counts.problems())).count()
        });
        let names: Vec<String> = PROBLEM_CLASSES
            .iter()
            .zip(counts)
            .map(|((name, _), count)| {
                let share = chart::share_text(count as f64 / self.sessions.len().max(1) as f64);
                format!("{name}: {} ({share})", count_of(count as u64, "session"))
            })
            .collect();
        html! {
            @if !self.sessions.is_empty() {
                section.distribution {
                    h2 title=(PROBLEM_MEANING) { "Sessions by their problems" }
                    (chart::divided_bar(&counts))
                    (chart::chart_legend(&names))
                }
            }
        }
    }

    /// The share of calls that failed in the sessions of each day, week or month.
    fn failure_chart(&self, viewer: &PageViewer, period: Option<(Date, Date)>) -> Markup {
        let day = |session: &Session| {
            Some(session.ended.or(session.started)?.in_zone(&viewer.zone).wall().date())
        };
        let called = self.sessions.iter().filter(|(_, counts)| counts.tool_calls > 0);
        let called: Vec<(Date, &QualityCounts)> =
            called.filter_map(|(session, counts)| Some((day(session)?, counts))).collect();
        let used: Vec<Date> = called.iter().map(|(day, _)| *day).collect();
        let period = period.map(|(first, last)| StepDays { first, last });
        let Some(days) = period.or_else(|| span_of(&used)).filter(|_| !used.is_empty()) else {
            return html! {};
        };
        let axis = ChartAxis::new(PeriodStep::for_bars(days), days, &used);
        let mut steps: BTreeMap<Date, QualityCounts> = BTreeMap::new();
        for (day, counts) in called {
            steps.entry(axis.step.first_day(day)).or_default().add(counts);
        }
        let mut bars = axis
            .fill(steps.iter().map(|(day, counts)| (*day, failure_bar(counts))).collect(), None);
        for (bar, days) in bars.iter_mut().zip(&axis.steps).filter(|(bar, _)| bar.amount.is_some())
        {
            bar.link = Some(format!("/?since={}&until={}", days.first, days.last));
        }
        let step = axis.step.name();
        let title = format!("Failed tool calls by {step}");
        let unit = axis.caption(&format!("% of the tool calls of each {step}'s sessions"));
        html! {
            h2 title={ "A session counts in the " (step) " of its last entry" } { (title) }
            (BarChart { title: &title, unit: &unit, unknown: "no tool calls", bars: &bars, format: |percent| format!("{percent:.1}%"), limits: &[], series: &[], style: ChartStyle::Bars }.draw())
        }
    }

    fn worst_sessions(&self) -> Markup {
        let mut worst: Vec<_> =
            self.sessions.iter().filter(|(_, counts)| counts.problems() > 0).collect();
        worst.sort_by_key(|(_, counts)| std::cmp::Reverse(counts.problems()));
        html! {
            h2 title=(PROBLEM_MEANING) { "Sessions with the most problems" }
            @if worst.is_empty() { p.hint { "No failed calls, retries, undone edits or compactions." } }
            @else {
                .wide-table tabindex="0" {
                    table.sums.counts.worst {
                        (table_head("Session", PROBLEM_MEANING, 1))
                        tbody {
                            @for (session, counts) in worst.iter().take(MAX_ROWS) {
                                tr {
                                    td {
                                        small { b title=(PROBLEM_MEANING) { (count_of(counts.problems(), "problem")) } } " "
                                        a href={ (session_address(&session.agent, &session.id)) "#quality" } { (heading::session_title(session)) }
                                        " " small { (clean_text(&session.agent)) @if let Some(project) = &session.project { " · " (clean_text(last_segment(project))) } }
                                    }
                                    (count_cells(counts, 1))
                                }
                            }
                        }
                    }
                }
                @if worst.len() > MAX_ROWS { p.hint { (more_sessions(worst.len() - MAX_ROWS)) } }
            }
        }
    }
}

/// The share of calls that failed in some sessions, with its counts.
fn failure_bar(counts: &QualityCounts) -> ChartBar {
    let note = format!(
        "{} of {} in {}",
        exact_count(counts.failed_calls),
        count_of(counts.tool_calls, "call"),
        count_of(counts.sessions, "session")
    );
    ChartBar { note, ..ChartBar::with_amount(counts.failure_percent()) }
}

fn more_sessions(count: usize) -> String {
    let verb = if count == 1 { "has" } else { "have" };
    format!("{} {verb} problems.", count_of(count as u64, "more session"))
}

/// The figures of all sessions together.
fn figures(total: &QualityCounts) -> Markup {
    let cells = count_texts(total);
    html! {
        ul.figures {
            @for ((text, _), (name, about)) in cells.iter().zip(COLUMNS) {
                li title=(about) {
                    @match total.failure_percent().filter(|_| name == "Failed") {
                        Some(percent) => { b { (format!("{percent:.1}%")) } small { (exact_count(total.failed_calls)) " calls failed" } }
                        None => { b { (text) } small { (name.to_lowercase()) } }
                    }
                }
            }
        }
    }
}

/// The numbers of a row, each with its tooltip, in the order of [`COLUMNS`].
fn count_texts(counts: &QualityCounts) -> [(String, String); 9] {
    let counted = |number: u64, noun: &str| (exact_count(number), count_of(number, noun));
    let percent = counts.failure_percent().map(|percent| format!(" ({percent:.1}%)"));
    let failed = format!("{}{}", exact_count(counts.failed_calls), percent.unwrap_or_default());
    let calls = count_of(counts.tool_calls, "tool call");
    let context = match counts.largest_context {
        0 => (String::new(), "No tokens were recorded".to_owned()),
        tokens => (format_count(tokens), format!("{} tokens", exact_count(tokens))),
    };
    [
        counted(counts.sessions, "session"),
        counted(counts.tool_calls, "tool call"),
        (failed, format!("{} failed of {calls}", exact_count(counts.failed_calls))),
        counted(counts.other_errors, "other error"),
        (
            exact_count(counts.unrepaired),
            format!("{} not repaired", exact_count(counts.unrepaired)),
        ),
        counted(counts.retries, "retry"),
        counted(counts.undone_edits, "undone edit"),
        counted(counts.compactions, "compaction"),
        context,
    ]
}

/// The cells of a row, without the first columns.
fn count_cells(counts: &QualityCounts, skipped: usize) -> Markup {
    html! {
        @for ((text, about), (name, _)) in count_texts(counts).iter().zip(COLUMNS).skip(skipped) {
            @let is_nothing = text.is_empty() || text == "0" || text.starts_with("0 (");
            td.nothing[is_nothing] title=(about) data-name=(unit_of(name, about)) { (text) }
        }
    }
}

/// The unit of a number, which narrow screens show behind it.
fn unit_of(name: &str, about: &str) -> String {
    match name {
        "Failed" => "failed".to_owned(),
        "Largest context" => "tokens in the largest context".to_owned(),
        _ => about.split_once(' ').map_or_else(String::new, |(_, noun)| noun.to_owned()),
    }
}

fn table_head(name: &str, about: &str, skipped: usize) -> Markup {
    html! {
        thead { tr { th title=(about) { (name) } @for (name, about) in COLUMNS.iter().skip(skipped) { th title=(about) { (name) } } } }
    }
}

fn group_table(
    group: &SessionGroup,
    filters: &FilterQuery,
    groups: &[(&str, QualityCounts)],
) -> Markup {
    let SessionGroup { title, field, about } = *group;
    let name = title.trim_end_matches('s');
    let values: Vec<&str> = groups.iter().map(|(value, _)| *value).collect();
    html! {
        h2 title=(about) { (title) }
        .wide-table tabindex="0" {
            table.sums.counts {
                (table_head(name, about, 0))
                tbody {
                    @for (value, counts) in groups.iter().take(MAX_ROWS) {
                        tr {
                            td title=(clean_text(value)) {
                                @if value.is_empty() { "no " (field) }
                                @else { a href=(filters.address_with(ADDRESS, field, value)) { (clean_text(distinct_name(value, &values))) } }
                            }
                            (count_cells(counts, 0))
                        }
                    }
                }
            }
        }
        @if groups.len() > MAX_ROWS { p.hint { (groups.len() - MAX_ROWS) " more are not shown." } }
    }
}
