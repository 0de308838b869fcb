//! The activity page: what agents did by day and hour, by tool and by model, and what took long.

use std::collections::BTreeMap;

use axum::extract::Query;
use jiff::ToSpan;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use maud::{Markup, html};
use steno_store::amount::{format_cost, format_count, format_dollars};
use steno_store::cost::report::{GroupBy, ReportGroup, ReportRow};
use steno_store::index::trends::{ToolTrend, TrendReport, TrendSession};

use crate::app::WebApp;
use crate::chart::{self, BarChart, ChartBar, ChartStyle};
use crate::date_range::{all_days_link, period_days, period_form};
use crate::day_bars::day_bar;
use crate::error::WebError;
use crate::filter_query::{DEFAULT_DAYS, FilterQuery};
use crate::library::CostAccounts;
use crate::page::{self, PageHead};
use crate::render::plain::clean_text;
use crate::units::{COST_EXPLANATION, count_of, exact_count, explain_tokens, format_duration};
use crate::viewer::PageViewer;
use crate::week_hours::WeekHours;

/// The most bars of a chart, and the most rows of a table.
const MAX_BARS: usize = 370;
const MAX_ROWS: usize = 50;

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
        let listing = library.session_listing()?;
        let accounts = library.cost_accounts(filter.clone())?;
        let view = ActivityView {
            trends: &trends,
            accounts: &accounts,
            filters: &filters,
            zone: &viewer.zone,
            period: period_days(&filter, &viewer.zone, today),
        };
        let body = html! {
            h1 { "Activity" }
            (page::stale_notice(library.index_notice().as_deref()))
            (page::damage_notice(&library.damage_warnings()?))
            (period_form("/activity", &filters, today, &listing))
            @if trends.entries == 0 {
                .empty { p { b { "No activity in this period" } } p { (all_days_link("/activity", &filters)) ", choose fewer filters, or run " code { "steno sync" } " to import sessions." } }
            } @else {
                (trend_figures(&trends, &viewer.zone))
                (view.day_chart())
                h2 { "Entries by hour of the week" }
                (count_week_hours(&trends, &viewer.zone).draw())
                (tool_table(&trends.tools))
                (view.model_table())
                (wait_lists(&trends))
                (compaction_list(&trends))
            }
        };
        Ok(PageHead::new("Activity", "/activity").viewed_by(&viewer).with_body(&body))
    })
    .await
}

fn trend_figures(trends: &TrendReport, zone: &TimeZone) -> Markup {
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
            @for (count, name, about) in all { li title=(about) { b { (exact_count(count)) } small { (name) } } }
            @if let Some((at, most)) = trends.active_sessions.iter().rev().max_by_key(|(_, sessions)| *sessions) {
                li title="The most sessions with entries in the same quarter of an hour" {
                    b { (exact_count(*most)) }
                    small { "sessions at once" @if let Some(at) = local_time(*at, zone) { span.wide-text { ", " (at.strftime("%-d %b, %H:%M").to_string()) } } }
                }
            }
        }
    }
}

/// The local day, weekday and hour of a time.
fn local_time(millisecond: i64, zone: &TimeZone) -> Option<jiff::civil::DateTime> {
    let at = jiff::Timestamp::from_millisecond(millisecond).ok()?;
    Some(at.to_zoned(zone.clone()).datetime())
}

/// What the chart of days shows.
struct DayMetric {
    /// The value of `by`.
    name: &'static str,
    tab: &'static str,
    title: &'static str,
    /// What the axis counts.
    unit: &'static str,
    format: fn(f64) -> String,
}

/// The metrics, the first of which is shown unless another one is chosen.
const METRICS: [DayMetric; 5] = [
    DayMetric {
        name: "entries",
        tab: "Entries",
        title: "Entries by day",
        unit: "entries a day",
        format: |amount| format_count(amount as u64),
    },
    DayMetric {
        name: "tokens",
        tab: "Tokens",
        title: "Tokens by day",
        unit: "tokens a day, in and out, cached or not",
        format: |amount| format_count(amount as u64),
    },
    DayMetric {
        name: "cost",
        tab: "Cost",
        title: "Known cost by day",
        unit: "US dollars a day",
        format: format_dollars,
    },
    DayMetric {
        name: "sessions",
        tab: "Sessions",
        title: "Sessions with tokens by day",
        unit: "sessions a day",
        format: |amount| format_count(amount as u64),
    },
    DayMetric {
        name: "at-once",
        tab: "At once",
        title: "Most sessions at once by day",
        unit: "sessions in the same quarter of an hour, the most of each day",
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

    /// The chart of days, with tabs for what it shows.
    fn day_chart(&self) -> Markup {
        let metric = self.metric();
        html! {
            h2 { (metric.title) }
            nav.tabs aria-label="What the chart shows" {
                @for one in &METRICS {
                    a href=(self.filters.address_with("/activity", "by", one.name)) aria-current=[(one.name == metric.name).then_some("true")] { (one.tab) }
                }
            }
            (self.draw_days(metric))
        }
    }

    fn draw_days(&self, metric: &DayMetric) -> Markup {
        let days = self.day_amounts(metric);
        let (Some(first), Some(last)) = (days.keys().next(), days.keys().next_back()) else {
            return html! { p.hint { "Nothing of this kind was recorded in this period." } };
        };
        let (first, last) = self.period.unwrap_or((*first, *last));
        let all: Vec<Date> = first.series(1.day()).take_while(|day| *day <= last).collect();
        let bar = |day: &Date| ChartBar {
            link: Some(format!("/?since={day}&until={day}")),
            ..day_bar(*day, Some(days.get(day).copied().unwrap_or(0.0)))
        };
        let bars: Vec<ChartBar> =
            all[all.len().saturating_sub(MAX_BARS)..].iter().map(bar).collect();
        let DayMetric { title, unit, format, .. } = metric;
        BarChart {
            title,
            unit,
            unknown: "unknown",
            bars: &bars,
            format: *format,
            limits: &[],
            series: &[],
            style: ChartStyle::Bars,
        }
        .draw()
    }

    /// The amount of each day.
    fn day_amounts(&self, metric: &DayMetric) -> BTreeMap<Date, f64> {
        let mut days: BTreeMap<Date, f64> = BTreeMap::new();
        let local_days = |counts: &[(i64, u64)]| -> Vec<(Date, f64)> {
            let day = |at: i64| local_time(at, self.zone).map(|at| at.date());
            counts.iter().filter_map(|(at, count)| Some((day(*at)?, *count as f64))).collect()
        };
        match metric.name {
            "entries" => local_days(&self.trends.quarter_hours)
                .into_iter()
                .for_each(|(day, count)| *days.entry(day).or_default() += count),
            "at-once" => {
                local_days(&self.trends.active_sessions).into_iter().for_each(|(day, count)| {
                    let most = days.entry(day).or_default();
                    *most = most.max(count);
                })
            }
            name => {
                for row in self.report_rows(GroupBy::Day) {
                    let Some(day) = row.key.as_deref().and_then(|key| key.parse().ok()) else {
                        continue;
                    };
                    let tokens = row.sum.tokens();
                    days.insert(
                        day,
                        match name {
                            "tokens" => tokens.prompt_tokens().saturating_add(tokens.output) as f64,
                            "cost" => row.sum.cost().unwrap_or(0.0),
                            _ => row.sum.sessions.len() as f64,
                        },
                    );
                }
            }
        }
        days
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

fn tool_table(tools: &[ToolTrend]) -> Markup {
    let calls = tools.iter().map(|tool| tool.calls).sum::<u64>().max(1);
    html! {
        @if !tools.is_empty() {
            h2 { "Tools" }
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
                    tbody {
                        @for tool in tools.iter().take(MAX_ROWS) {
                            @let share = tool.failures as f64 / tool.calls.max(1) as f64 * 100.0;
                            tr {
                                td { (clean_text(&tool.tool)) }
                                td title="Calls" { (exact_count(tool.calls)) }
                                td title="Results that are errors" { @if tool.failures > 0 { (exact_count(tool.failures)) " (" (format!("{share:.1}")) "%)" } @else { "0" } }
                                td.minor title={ "From call to result, of " (count_of(tool.timed_calls, "call")) " together" } { (format_duration(tool.total_ms)) }
                                td.minor title="From call to result, on average" { @if tool.timed_calls > 0 { (format_duration(tool.total_ms / tool.timed_calls as i64)) } }
                                td title="From call to result, the longest" { (format_duration(tool.longest_ms)) }
                                @let share = tool.calls as f64 / calls as f64;
                                td.percent title="Share of all calls" { (chart::share_text(share)) }
                                td.share { (chart::share_bar(share)) }
                            }
                        }
                    }
                }
            }
            @if tools.len() > MAX_ROWS { p { small { (tools.len() - MAX_ROWS) " more tools are not shown." } } }
        }
    }
}

impl ActivityView<'_> {
    fn model_table(&self) -> Markup {
        let (rows, filters) = (self.report_rows(GroupBy::Model), self.filters);
        html! {
        @if !rows.is_empty() {
            h2 { "Models" }
            .wide-table tabindex="0" {
                table.sums {
                    thead { tr { th { "Model" } th title="Sessions that used it" { "Sessions" } th title="Tokens that the model read, cached or not" { "Tokens in" } th title="Tokens that the model wrote" { "Tokens out" } th title=(COST_EXPLANATION) { "Cost" } } }
                    tbody {
                        @for row in rows.iter().take(MAX_ROWS) {
                            @let tokens = row.sum.tokens();
                            tr {
                                td {
                                    @match row.key.as_deref().filter(|name| !name.is_empty()) {
                                        Some(name) => a href=(FilterQuery { by: String::new(), ..filters.clone() }.address_with("/cost", "model", name)) { (clean_text(name)) },
                                        None => "unknown",
                                    }
                                }
                                td title="Sessions that used it" { (exact_count(row.sum.sessions.len() as u64)) }
                                td title=(explain_tokens(&tokens)) { (format_count(tokens.prompt_tokens())) }
                                td title=(explain_tokens(&tokens)) { (format_count(tokens.output)) }
                                td title=(COST_EXPLANATION) { (format_cost(&row.sum)) }
                            }
                        }
                    }
                }
            }
        }
        }
    }
}

/// The calls of tools that took longest, and the longest waits for a model.
fn wait_lists(trends: &TrendReport) -> Markup {
    html! {
        @if !trends.longest_calls.is_empty() {
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
        }
        @if !trends.longest_waits.is_empty() {
            h2 title="From the entry before an answer of a model to the answer" { "Longest waits for a model" }
            ol.plain-list {
                @for wait in &trends.longest_waits {
                    li {
                        b title="From the entry before to the answer" { (format_duration(wait.wait_ms)) }
                        (session_link(&wait.session, Some(wait.number)))
                    }
                }
            }
        }
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
