//! The activity page: what agents did by day and hour, by tool and by model, and what took long.

use std::collections::BTreeMap;

use axum::extract::Query;
use jiff::ToSpan;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use maud::{Markup, html};
use steno_store::cost::report::{GroupBy, ReportGroup};
use steno_store::index::trends::{ToolTrend, TrendReport, TrendSession};
use steno_store::view::amount::{format_cost, format_count};

use crate::app::WebApp;
use crate::chart::{self, BarChart, ChartBar};
use crate::date_range::{period_days, period_form};
use crate::error::WebError;
use crate::filter_query::FilterQuery;
use crate::library::SessionLibrary;
use crate::page::{self, PageHead};
use crate::render::plain::clean_text;
use crate::units::{COST_EXPLANATION, count_of, exact_count, explain_tokens, format_duration};
use crate::viewer::PageViewer;

/// How many days are shown unless a period is chosen.
const DEFAULT_DAYS: i32 = 29;

/// The most bars of a chart, and the most rows of a table.
const MAX_BARS: usize = 370;
const MAX_ROWS: usize = 50;

/// The activity page.
pub(crate) async fn activity_page(
    app: WebApp,
    viewer: PageViewer,
    Query(mut filters): Query<FilterQuery>,
) -> Result<Markup, WebError> {
    app.run_blocking(move |library| {
        let today = viewer.today(&library.clock);
        if filters.since.is_empty() && filters.until.is_empty() && filters.by != "all" {
            filters.since = today.saturating_sub(DEFAULT_DAYS.days()).to_string();
        }
        let filter = filters.to_filter(library, &viewer.zone)?;
        let trends = library.query_index(|index| index.load_trends(&filter))?;
        let listing = library.session_listing()?;
        let body = html! {
            h1 { "Activity" }
            (page::stale_notice(library.index_notice().as_deref()))
            (page::damage_notice(&library.damage_warnings()?))
            (period_form("/activity", &FilterQuery { by: "all".to_owned(), ..filters.clone() }, today, &listing))
            (trend_figures(&trends))
            @if trends.entries == 0 {
                .empty { p { b { "No activity in this period" } } p { "Choose a longer period or fewer filters, or run " code { "steno sync" } " to import sessions." } }
            } @else {
                h2 { "Entries by day" }
                (day_chart(&trends, &viewer.zone, period_days(&filter, &viewer.zone, today)))
                h2 { "Entries by hour of the week" }
                (chart::week_hours_chart("Entries by weekday and hour", &count_week_hours(&trends, &viewer.zone)))
                (tool_table(&trends.tools))
                (model_table(library, &viewer, &filters)?)
                (wait_list(&trends))
                (compaction_list(&trends))
            }
        };
        Ok(PageHead::new("Activity", "/activity").viewed_by(&viewer).with_body(&body))
    })
    .await
}

fn trend_figures(trends: &TrendReport) -> Markup {
    let calls: u64 = trends.tools.iter().map(|tool| tool.calls).sum();
    let all = [
        (trends.sessions, "sessions", "Sessions with entries in this period"),
        (trends.prompts, "prompts", "Messages of a person"),
        (trends.entries, "entries", "Messages, tool calls and results, and notices"),
        (calls, "tool calls", "Calls of tools"),
        (trends.failures, "failures", "Errors and failed tool calls"),
        (trends.compactions, "compactions", "How often an agent replaced its context by a summary"),
    ];
    html! {
        ul.figures { @for (count, name, about) in all { li title=(about) { b { (exact_count(count)) } small { (name) } } } }
    }
}

/// The local day, weekday and hour of a time.
fn local_time(millisecond: i64, zone: &TimeZone) -> Option<jiff::civil::DateTime> {
    let at = jiff::Timestamp::from_millisecond(millisecond).ok()?;
    Some(at.to_zoned(zone.clone()).datetime())
}

fn day_chart(trends: &TrendReport, zone: &TimeZone, period: Option<(Date, Date)>) -> Markup {
    let mut days: BTreeMap<Date, u64> = BTreeMap::new();
    for (at, count) in &trends.quarter_hours {
        let day = local_time(*at, zone).map(|at| at.date());
        day.into_iter().for_each(|day| *days.entry(day).or_default() += count);
    }
    let (Some(first), Some(last)) = (days.keys().next(), days.keys().next_back()) else {
        return html! {};
    };
    let (first, last) = period.unwrap_or((*first, *last));
    let all: Vec<Date> = first.series(1.day()).take_while(|day| *day <= last).collect();
    let recent = &all[all.len().saturating_sub(MAX_BARS)..];
    let bars: Vec<ChartBar> = recent
        .iter()
        .map(|day| ChartBar {
            name: day.strftime("%A, %-d %B %Y").to_string(),
            label: day.strftime("%-d %b").to_string(),
            amount: Some(days.get(day).copied().unwrap_or(0) as f64),
        })
        .collect();
    BarChart {
        title: "Entries by day",
        bars: &bars,
        format: |amount| format_count(amount as u64),
        limits: &[],
    }
    .draw()
}

fn count_week_hours(trends: &TrendReport, zone: &TimeZone) -> [[u64; 24]; 7] {
    let mut counts = [[0; 24]; 7];
    for (at, count) in &trends.quarter_hours {
        if let Some(at) = local_time(*at, zone) {
            let day = at.date().weekday().to_monday_zero_offset();
            counts[usize::from(day.unsigned_abs())][usize::from(at.hour().unsigned_abs())] += count;
        }
    }
    counts
}

fn tool_table(tools: &[ToolTrend]) -> Markup {
    let most = tools.first().map_or(1, |tool| tool.calls).max(1);
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
                            th title="From call to result, on average" { "Average" }
                            th title="From call to result, the longest" { "Longest" }
                            th.share { "Share of calls" }
                        }
                    }
                    tbody {
                        @for tool in tools.iter().take(MAX_ROWS) {
                            @let share = tool.failures as f64 / tool.calls.max(1) as f64 * 100.0;
                            tr {
                                td { (clean_text(&tool.tool)) }
                                td { (exact_count(tool.calls)) }
                                td { @if tool.failures > 0 { (exact_count(tool.failures)) " (" (format!("{share:.1}")) "%)" } @else { "0" } }
                                td.minor { (format_duration(tool.total_ms)) }
                                td { @if tool.timed_calls > 0 { (format_duration(tool.total_ms / tool.timed_calls as i64)) } }
                                td { (format_duration(tool.longest_ms)) }
                                td.share { (chart::share_bar(tool.calls as f64 / most as f64)) }
                            }
                        }
                    }
                }
            }
            @if tools.len() > MAX_ROWS { p { small { (tools.len() - MAX_ROWS) " more tools are not shown." } } }
        }
    }
}

fn model_table(
    library: &SessionLibrary,
    viewer: &PageViewer,
    filters: &FilterQuery,
) -> Result<Markup, WebError> {
    let accounts = library.cost_accounts(filters.to_filter(library, &viewer.zone)?)?;
    let selected: Vec<usize> = accounts.charges.select_charges(&accounts.filter).collect();
    let group = ReportGroup { by: GroupBy::Model, zone: &viewer.zone };
    let rows = accounts.charges.report_rows(&accounts.costs, &selected, &group);
    Ok(html! {
        @if !rows.is_empty() {
            h2 { "Models" }
            .wide-table tabindex="0" {
                table.sums {
                    thead { tr { th { "Model" } th { "Sessions" } th title="Tokens that the model read, cached or not" { "Tokens in" } th title="Tokens that the model wrote" { "Tokens out" } th title=(COST_EXPLANATION) { "Cost" } } }
                    tbody {
                        @for row in rows.iter().take(MAX_ROWS) {
                            @let tokens = row.sum.tokens();
                            tr {
                                td { (clean_text(row.key.as_deref().filter(|name| !name.is_empty()).unwrap_or("unknown"))) }
                                td { (exact_count(row.sum.sessions.len() as u64)) }
                                td title=(explain_tokens(&tokens)) { (format_count(tokens.prompt_tokens())) }
                                td title=(explain_tokens(&tokens)) { (format_count(tokens.output)) }
                                td { (format_cost(&row.sum)) }
                            }
                        }
                    }
                }
            }
        }
    })
}

fn wait_list(trends: &TrendReport) -> Markup {
    html! {
        @if !trends.longest_waits.is_empty() {
            h2 { "Longest waits for a model or a tool" }
            ol.plain-list {
                @for wait in &trends.longest_waits {
                    li {
                        b { (format_duration(wait.wait_ms)) }
                        span { @match &wait.tool { Some(tool) => { "tool " (clean_text(tool)) } None => "the model" } }
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
                    li { b { (count_of(*count, "compaction")) } (session_link(session, None)) }
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
