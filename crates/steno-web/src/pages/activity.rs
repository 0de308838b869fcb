//! The activity page: what agents did by day and hour, by tool and by model, and what took long.

use std::collections::BTreeMap;

use axum::extract::Query;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use maud::{Markup, html};
use steno_store::amount::{format_cost, format_count, format_dollars};
use steno_store::cost::report::{GroupBy, ReportGroup, ReportRow};
use steno_store::index::trends::{ToolTrend, TrendReport, TrendSession};

use crate::addresses::distinct_name;
use crate::app::WebApp;
use crate::chart::{self, BarChart, ChartStyle};
use crate::chart_axis::{ChartAxis, parse_step};
use crate::date_range::period_days;
use crate::error::WebError;
use crate::filter_query::{DEFAULT_DAYS, FilterQuery};
use crate::library::CostAccounts;
use crate::period_step::{PeriodStep, StepDays};
use crate::render::plain::clean_text;
use crate::report_page::{ReportPage, empty_period};
use crate::units::{COST_EXPLANATION, count_of, exact_count, explain_tokens, format_duration};
use crate::viewer::PageViewer;
use crate::week_hours::WeekHours;

/// The address of the page.
const ADDRESS: &str = "/activity";

/// The most projects and models.
const MAX_ROWS: usize = 12;

/// How many tools are shown, and how many more are folded.
const MAX_TOOLS: usize = 12;
const MAX_MORE_TOOLS: usize = 200;

/// The activity page.
pub(crate) async fn activity_page(
    app: WebApp,
    viewer: PageViewer,
    Query(filters): Query<FilterQuery>,
) -> Result<Markup, WebError> {
    app.run_blocking(move |library| {
        let today = viewer.today(&library.clock);
        let filters = filters.with_default_period(DEFAULT_DAYS, today);
        let filter = filters.to_filter(library, &viewer.zone)?;
        let trends = library.query_index(|index| index.load_trends(&filter))?;
        let accounts = library.cost_accounts(filter.clone())?;
        let view = ActivityView {
            trends: &trends,
            accounts: &accounts,
            filters: &filters,
            zone: &viewer.zone,
            period: period_days(&filter, &viewer.zone, today),
        };
        let content = html! {
            @if trends.entries == 0 { (empty_period(ADDRESS, &filters, "No activity in this period")) }
            @else {
                (trend_figures(&trends, &filters, &viewer.zone))
                (view.time_chart())
                h2 { "Entries by hour of the week" }
                (count_week_hours(&trends, &viewer.zone).draw())
                (tool_table(&trends.tools))
                .breakdowns {
                    (view.usage_table("Project", GroupBy::Project))
                    (view.usage_table("Model", GroupBy::Model))
                    (wait_lists(&trends))
                }
                (compaction_list(&trends))
            }
        };
        let (title, address, viewer, filters) = ("Activity", ADDRESS, &viewer, &filters);
        ReportPage { title, address, library, viewer, filters, today }.with_content(&content)
    })
    .await
}

fn trend_figures(trends: &TrendReport, filters: &FilterQuery, zone: &TimeZone) -> Markup {
    // Prompts and compactions name no model.
    let is_of_model = !filters.model.is_empty();
    let is_known = |name: &str| !is_of_model || !["prompts", "compactions"].contains(&name);
    let calls: u64 = trends.tools.iter().map(|tool| tool.calls).sum();
    let failed: u64 = trends.tools.iter().map(|tool| tool.failures).sum();
    let errors = format!(
        "{} failed calls of tools, and other errors, as of the model's API",
        exact_count(failed)
    );
    let all = [
        (trends.sessions, "sessions", "Sessions with entries in this period"),
        (trends.prompts, "prompts", "Messages of a person"),
        (
            trends.entries,
            "entries",
            "Messages, tool calls and results, and notices. One that several sessions share counts once.",
        ),
        (calls, "tool calls", "Calls of tools"),
        (trends.failures, "errors", errors.as_str()),
        (trends.compactions, "compactions", "How often an agent replaced its context by a summary"),
    ];
    html! {
        ul.figures {
            @for (count, name, about) in all.into_iter().filter(|(_, name, _)| is_known(name)) { li title=(about) { b { (exact_count(count)) } small { (name) } } }
            @if let Some((at, most)) = trends.active_sessions.iter().rev().max_by_key(|(_, sessions)| *sessions) {
                li title="The most sessions with entries in the same quarter of an hour" {
                    b { (exact_count(*most)) }
                    small { "sessions at once" @if let Some(at) = local_time(*at, zone) { span.wide-text { ", " (at.strftime("%-d %b, %H:%M").to_string()) } } }
                }
            }
        }
        @if is_of_model {
            p.hint { "What this model wrote, and the results of its calls. Prompts and compactions name no model." }
        }
    }
}

/// The local day, weekday and hour of a time.
fn local_time(millisecond: i64, zone: &TimeZone) -> Option<jiff::civil::DateTime> {
    let at = jiff::Timestamp::from_millisecond(millisecond).ok()?;
    Some(at.to_zoned(zone.clone()).datetime())
}

/// What the chart of days, weeks or months shows.
struct DayMetric {
    /// The value of `by`.
    name: &'static str,
    tab: &'static str,
    title: &'static str,
    /// What the axis counts; `{step}` is `day`, `week` or `month`.
    unit: &'static str,
    format: fn(f64) -> String,
}

/// The metrics, the first of which is shown unless another one is chosen.
const METRICS: [DayMetric; 5] = [
    DayMetric {
        name: "entries",
        tab: "Entries",
        title: "Entries",
        unit: "entries a {step}",
        format: |amount| format_count(amount as u64),
    },
    DayMetric {
        name: "tokens",
        tab: "Tokens",
        title: "Tokens",
        unit: "tokens a {step}, in and out, cached or not",
        format: |amount| format_count(amount as u64),
    },
    DayMetric {
        name: "cost",
        tab: "Cost",
        title: "Known cost",
        unit: "US dollars a {step}",
        format: format_dollars,
    },
    DayMetric {
        name: "sessions",
        tab: "Sessions",
        title: "Sessions with tokens",
        unit: "sessions a {step}",
        format: |amount| format_count(amount as u64),
    },
    DayMetric {
        name: "at-once",
        tab: "At once",
        title: "Most sessions at once",
        unit: "sessions in the same quarter of an hour, the most of each {step}",
        format: |amount| format_count(amount as u64),
    },
];

/// The entries and the charges of a period.
struct ActivityView<'a> {
    trends: &'a TrendReport,
    accounts: &'a CostAccounts,
    filters: &'a FilterQuery,
    zone: &'a TimeZone,
    period: Option<(Date, Date)>,
}

impl ActivityView<'_> {
    fn metric(&self) -> &'static DayMetric {
        METRICS.iter().find(|metric| metric.name == self.filters.by).unwrap_or(&METRICS[0])
    }

    /// The days that are shown: those of the period, or those with entries.
    fn shown_days(&self) -> Option<StepDays> {
        let day = |(at, _): &(i64, u64)| Some(local_time(*at, self.zone)?.date());
        let quarters = &self.trends.quarter_hours;
        let counted = || Some((day(quarters.first()?)?, day(quarters.last()?)?));
        self.period.or_else(counted).map(|(first, last)| StepDays { first, last })
    }

    /// The chart over time, with tabs for what it shows.
    fn time_chart(&self) -> Markup {
        let metric = self.metric();
        let Some(shown) = self.shown_days() else { return html! {} };
        let step = PeriodStep::for_bars(shown);
        html! {
            h2 { (metric.title) " by " (step.name()) }
            nav.tabs aria-label="What the chart shows" {
                @for one in &METRICS {
                    a href=(self.filters.address_with("/activity", "by", one.name)) aria-current=[(one.name == metric.name).then_some("true")] { (one.tab) }
                }
            }
            (self.draw_steps(metric, step, shown))
        }
    }

    fn draw_steps(&self, metric: &DayMetric, step: PeriodStep, shown: StepDays) -> Markup {
        let amounts = self.step_amounts(metric, step);
        if amounts.is_empty() {
            return html! { p.hint { "Nothing of this kind was recorded in this period." } };
        }
        let used: Vec<Date> = amounts.keys().copied().collect();
        let axis = ChartAxis::new(step, shown, &used);
        let mut bars = axis.fill(BTreeMap::new(), Some(0.0));
        for (bar, days) in bars.iter_mut().zip(&axis.steps) {
            bar.amount = amounts.get(&step.first_day(days.first)).copied().or(bar.amount);
            bar.link = Some(format!("/?since={}&until={}", days.first, days.last));
        }
        let unit = axis.caption(&metric.unit.replace("{step}", step.name()));
        let (title, format) = (metric.title, metric.format);
        BarChart {
            title,
            unit: &unit,
            unknown: "unknown",
            bars: &bars,
            format,
            limits: &[],
            series: &[],
            style: ChartStyle::Bars,
        }
        .draw()
    }

    /// The amount of each step, by its first day.
    fn step_amounts(&self, metric: &DayMetric, step: PeriodStep) -> BTreeMap<Date, f64> {
        let mut amounts: BTreeMap<Date, f64> = BTreeMap::new();
        let local_steps = |counts: &[(i64, u64)]| -> Vec<(Date, f64)> {
            let start = |at: i64| Some(step.first_day(local_time(at, self.zone)?.date()));
            counts.iter().filter_map(|(at, count)| Some((start(*at)?, *count as f64))).collect()
        };
        match metric.name {
            "entries" => local_steps(&self.trends.quarter_hours)
                .into_iter()
                .for_each(|(start, count)| *amounts.entry(start).or_default() += count),
            "at-once" => {
                for (start, count) in local_steps(&self.trends.active_sessions) {
                    let most = amounts.entry(start).or_default();
                    *most = most.max(count);
                }
            }
            name => {
                for row in self.report_rows(step.group()) {
                    let Some(start) = row.key.as_deref().and_then(parse_step) else { continue };
                    let tokens = row.sum.tokens();
                    let amount = match name {
                        "tokens" => tokens.prompt_tokens().saturating_add(tokens.output) as f64,
                        "cost" => row.sum.cost().unwrap_or(0.0),
                        _ => row.sum.sessions.len() as f64,
                    };
                    amounts.insert(start, amount);
                }
            }
        }
        amounts
    }

    fn report_rows(&self, by: GroupBy) -> Vec<ReportRow> {
        let CostAccounts { charges, costs, filter } = self.accounts;
        let selected: Vec<usize> = charges.select_charges(filter).collect();
        charges.report_rows(costs, &selected, &ReportGroup { by, zone: self.zone })
    }
}

fn count_week_hours(trends: &TrendReport, zone: &TimeZone) -> WeekHours {
    let mut counts = [[0; 24]; 7];
    for (at, count) in &trends.quarter_hours {
        if let Some(at) = local_time(*at, zone) {
            let day = at.date().weekday().to_monday_zero_offset();
            counts[usize::from(day.unsigned_abs())][usize::from(at.hour().unsigned_abs())] += count;
        }
    }
    WeekHours(counts)
}

/// The tools, the most used first. Those that are hardly used are folded.
fn tool_table(tools: &[ToolTrend]) -> Markup {
    let calls = tools.iter().map(|tool| tool.calls).sum::<u64>().max(1);
    let (shown, more) = tools.split_at(tools.len().min(MAX_TOOLS));
    html! {
        @if !tools.is_empty() {
            h2 { "Tools" }
            (tool_rows(shown, calls))
            @if !more.is_empty() {
                details.section {
                    summary { b { (count_of(more.len() as u64, "more tool")) } span { "with " (count_of(more.iter().map(|tool| tool.calls).sum(), "call")) } }
                    (tool_rows(&more[..more.len().min(MAX_MORE_TOOLS)], calls))
                    @if more.len() > MAX_MORE_TOOLS { p.hint { (exact_count((more.len() - MAX_MORE_TOOLS) as u64)) " more are not shown." } }
                }
            }
        }
    }
}

/// A table of tools. `calls` is how many calls all tools have.
fn tool_rows(tools: &[ToolTrend], calls: u64) -> Markup {
    html! {
        .wide-table tabindex="0" {
            table.sums {
                thead {
                    tr {
                        th { "Tool" } th title="How often it was called" { "Calls" }
                        th title="Results that are errors" { "Failed" }
                        th.minor title="From call to result, of all calls together" { "Total time" }
                        th.minor title="From call to result, on average" { "Average" }
                        th title="From call to result, the longest" { "Longest" }
                        th.percent title="Share of all calls" { "Share" } td.share {}
                    }
                }
                tbody { @for tool in tools { (tool_row(tool, calls)) } }
            }
        }
    }
}

fn tool_row(tool: &ToolTrend, calls: u64) -> Markup {
    let failed = tool.failures as f64 / tool.calls.max(1) as f64 * 100.0;
    let share = tool.calls as f64 / calls as f64;
    html! {
        tr {
            td title=(clean_text(&tool.tool)) { (clean_text(&tool.tool)) }
            td title="Calls" { (exact_count(tool.calls)) }
            td title="Results that are errors" { @if tool.failures > 0 { (exact_count(tool.failures)) " (" (format!("{failed:.1}")) "%)" } @else { "0" } }
            td.minor title={ "From call to result, of " (count_of(tool.timed_calls, "call")) " together" } { (format_duration(tool.total_ms)) }
            td.minor title="From call to result, on average" { @if tool.timed_calls > 0 { (format_duration(tool.total_ms / tool.timed_calls as i64)) } }
            td title="From call to result, the longest" { (format_duration(tool.longest_ms)) }
            td.percent title="Share of all calls" { (chart::share_text(share)) }
            td.share { (chart::share_bar(share)) }
        }
    }
}

impl ActivityView<'_> {
    /// What projects or models used, with links to their costs.
    fn usage_table(&self, title: &str, by: GroupBy) -> Markup {
        let rows = self.report_rows(by);
        let keys: Vec<&str> = rows.iter().filter_map(|row| row.key.as_deref()).collect();
        html! {
            @if !rows.is_empty() { section {
                h2 { (title) "s" }
                .wide-table tabindex="0" {
                    table.sums {
                        thead { tr { th { (title) } th title="Sessions that used tokens" { "Sessions" } th title="Tokens that the model read, cached or not" { "Tokens in" } th title="Tokens that the model wrote" { "Tokens out" } th title=(COST_EXPLANATION) { "Cost" } } }
                        tbody { @for row in rows.iter().take(MAX_ROWS) { (self.usage_row(by, row, &keys)) } }
                    }
                }
                @if rows.len() > MAX_ROWS {
                    p.hint { a href=(self.filters.address_with("/cost", "by", by.name())) { "All " (exact_count(rows.len() as u64)) " " (title.to_lowercase()) "s" } }
                }
            } }
        }
    }

    fn usage_row(&self, by: GroupBy, row: &ReportRow, keys: &[&str]) -> Markup {
        let tokens = row.sum.tokens();
        let filters = FilterQuery { by: String::new(), ..self.filters.clone() };
        html! {
            tr {
                td title=(clean_text(row.key.as_deref().unwrap_or_default())) {
                    @match row.key.as_deref().filter(|name| !name.is_empty()) {
                        Some(name) => a href=(filters.address_with("/cost", by.name(), name)) { (clean_text(distinct_name(name, keys))) },
                        None => { "no " (by.name()) },
                    }
                }
                td title="Sessions that used tokens" { (exact_count(row.sum.sessions.len() as u64)) }
                td title=(explain_tokens(&tokens)) { (format_count(tokens.prompt_tokens())) }
                td title=(explain_tokens(&tokens)) { (format_count(tokens.output)) }
                td title=(COST_EXPLANATION) { (format_cost(&row.sum)) }
            }
        }
    }
}

/// The calls of tools that took longest, and the longest waits for a model.
fn wait_lists(trends: &TrendReport) -> Markup {
    html! {
        @if !trends.longest_calls.is_empty() { section {
            h2 title="From call to result, with the time that a person took to allow it" { "Tool calls that took longest" }
            ol.plain-list #longest-calls {
                @for call in &trends.longest_calls {
                    li {
                        b title="From call to result" { (format_duration(call.wait_ms)) }
                        span { (clean_text(call.tool.as_deref().unwrap_or("a tool"))) }
                        (session_link(&call.session, Some(call.number)))
                    }
                }
            }
        } }
        @if !trends.longest_waits.is_empty() { section {
            h2 title="From the entry before an answer of a model to the answer" { "Longest waits for a model" }
            ol.plain-list {
                @for wait in &trends.longest_waits {
                    li {
                        b title="From the entry before to the answer" { (format_duration(wait.wait_ms)) }
                        (session_link(&wait.session, Some(wait.number)))
                    }
                }
            }
        } }
    }
}

fn compaction_list(trends: &TrendReport) -> Markup {
    html! {
        @if !trends.most_compacted.is_empty() {
            h2 { "Sessions with the most compactions" }
            ol.plain-list {
                @for (session, count) in &trends.most_compacted {
                    li { b title="How often the agent replaced its context by a summary" { (count_of(*count, "compaction")) } (session_link(session, None)) }
                }
            }
        }
    }
}

fn session_link(session: &TrendSession, number: Option<usize>) -> Markup {
    let place = number.map(|number| format!("#e{number}")).unwrap_or_default();
    html! {
        a href={ "/session/" (session.agent) "/" (session.id) (place) } {
            (clean_text(session.title.as_deref().unwrap_or(&session.id)))
        }
    }
}
