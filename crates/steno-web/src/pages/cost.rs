//! The cost page: charts and tables by day, model, project, agent and more, and blocks of five hours.

use axum::extract::Query;
use jiff::ToSpan;
use jiff::civil::Date;
use maud::{Markup, html};
use steno_store::cost::report::{ChargeSum, GroupBy, ReportGroup, ReportRow};
use steno_store::view::amount::{format_cost, format_count, format_dollars};
use steno_store::view::json_rows::cost::{timestamp_from_millis, unpriced_models};
use steno_store::view::markdown::capitalize_first;

use crate::addresses::last_segment;
use crate::app::WebApp;
use crate::chart::{self, BarChart, ChartBar};
use crate::date_range::{period_days, period_form};
use crate::error::WebError;
use crate::filter_query::FilterQuery;
use crate::library::{CostAccounts, SessionLibrary};
use crate::page::{self, PageHead};
use crate::render::plain::clean_text;
use crate::units::{COST_EXPLANATION, exact_count};
use crate::viewer::PageViewer;

/// The groups, in the order of their tabs. Blocks have a tab of their own, people only on the page of a team.
pub(crate) const GROUPS: [GroupBy; 9] = [
    GroupBy::Day,
    GroupBy::Week,
    GroupBy::Month,
    GroupBy::Model,
    GroupBy::Project,
    GroupBy::Agent,
    GroupBy::Session,
    GroupBy::Thread,
    GroupBy::Person,
];

/// The most bars of a chart, and the most rows of a table.
const MAX_BARS: usize = 60;
const MAX_ROWS: usize = 200;

/// How many projects and models are listed below a chart.
const MAX_BREAKDOWN_ROWS: usize = 6;

/// The most days of a chart, with those that cost nothing.
const MAX_DAYS: usize = 370;

/// A row of the table: its name, its link and its sum.
struct CostLine<'a> {
    name: String,
    link: Option<String>,
    sum: &'a ChargeSum,
}

/// The cost page.
pub(crate) async fn cost_page(
    app: WebApp,
    viewer: PageViewer,
    Query(filters): Query<FilterQuery>,
) -> Result<Markup, WebError> {
    app.run_blocking(move |library| {
        let accounts = library.cost_accounts(filters.to_filter(library, &viewer.zone)?)?;
        let selected: Vec<usize> = accounts.charges.select_charges(&accounts.filter).collect();
        let total = accounts.charges.sum_charges(&accounts.costs, &selected);
        let view = CostView { library, viewer: &viewer, accounts: &accounts, filters: &filters };
        let body = html! {
            h1 { "Cost" }
            (page::stale_notice(library.index_notice().as_deref()))
            (page::damage_notice(&library.damage_warnings()?))
            (period_form("/cost", &filters, viewer.today(&library.clock), &*library.session_listing()?))
            (view.total_figures(&total, &selected))
            (view.budget_list())
            nav.tabs aria-label="Group by" {
                @let shown = GROUPS.iter().filter(|by| **by != GroupBy::Person || library.serves_team());
                @for name in shown.map(|by| by.name()).chain(["block"]) {
                    @let is_current = name == group_name(&filters);
                    a href=(filters.address_with("/cost", "by", name))
                        aria-current=[is_current.then_some("true")]
                    {
                        "By " (name)
                    }
                }
            }
            @match group_by(&filters) {
                Some(by) => (view.grouped_costs(by, &selected)),
                None => (view.block_costs()),
            }
        };
        Ok(PageHead::new("Cost", "/cost").viewed_by(&viewer).with_body(&body))
    })
    .await
}

fn group_name(filters: &FilterQuery) -> &str {
    if filters.by.is_empty() { "day" } else { &filters.by }
}

/// The group of a query; `None` for blocks.
pub(crate) fn group_by(filters: &FilterQuery) -> Option<GroupBy> {
    GROUPS.into_iter().find(|by| by.name() == group_name(filters))
}

/// What the parts of the page need.
struct CostView<'a> {
    library: &'a SessionLibrary,
    viewer: &'a PageViewer,
    accounts: &'a CostAccounts,
    filters: &'a FilterQuery,
}

impl CostView<'_> {
    fn total_figures(&self, total: &ChargeSum, selected: &[usize]) -> Markup {
        let tokens = total.tokens();
        let missing = unpriced_models(&self.accounts.charges, total);
        let days = self.report_rows(GroupBy::Day, selected);
        let costs = days.iter().filter_map(|day| Some((day.sum.cost()?, day.key.as_deref()?)));
        let most = costs.max_by(|a, b| a.0.total_cmp(&b.0));
        let average =
            total.cost().filter(|_| !days.is_empty()).map(|cost| cost / days.len() as f64);
        html! {
            ul.figures {
                li title=(COST_EXPLANATION) { b { (format_cost(total)) } small { "total cost" } }
                @if let Some(average) = average { li title="Total cost divided by the days on which models were used" { b { (format_dollars(average)) } small { "per active day" } } }
                @if let Some((cost, day)) = most { li title="The day that cost the most" { b { (format_dollars(cost)) } small { "dearest day, " (short_day(day)) } } }
                li title="Tokens that the model read and that were not cached" { b { (format_count(tokens.input.saturating_add(tokens.cache_write))) } small { "uncached in" } }
                li title="Tokens that the model read from its cache, which is cheaper" { b { (format_count(tokens.cache_read)) } small { "cached in" } }
                li title="Tokens that the model wrote" { b { (format_count(tokens.output)) } small { "tokens out" } }
                li title="Sessions that used tokens" { b { (exact_count(total.sessions.len() as u64)) } small { "sessions" } }
            }
            @if !missing.is_empty() {
                p { small { "No price for " (clean_text(&missing.join(", "))) "; set one in " code { "config.toml" } "." } }
            }
        }
    }

    fn report_rows(&self, by: GroupBy, selected: &[usize]) -> Vec<ReportRow> {
        let group = ReportGroup { by, zone: &self.viewer.zone };
        self.accounts.charges.report_rows(&self.accounts.costs, selected, &group)
    }

    /// Which projects and models cost the most, with links that filter by them.
    fn breakdowns(&self, selected: &[usize]) -> Markup {
        html! {
            .breakdowns {
                @let people = self.library.serves_team().then_some(("People", GroupBy::Person));
                @for (title, by) in [("Projects", GroupBy::Project), ("Models", GroupBy::Model)].into_iter().chain(people) {
                    @let rows = self.report_rows(by, selected);
                    @let total: f64 = rows.iter().filter_map(|row| row.sum.cost()).sum();
                    section {
                        h2 { (title) }
                        table.sums { tbody {
                            @for row in rows.iter().take(MAX_BREAKDOWN_ROWS) { (self.breakdown_row(by, row, total)) }
                        } }
                        @if rows.len() > MAX_BREAKDOWN_ROWS {
                            p.hint { a href=(self.filters.address_with("/cost", "by", by.name())) { "All " (rows.len()) } }
                        }
                    }
                }
            }
        }
    }

    fn breakdown_row(&self, by: GroupBy, row: &ReportRow, total: f64) -> Markup {
        let share = row.sum.cost().unwrap_or(0.0) / total.max(1e-9);
        html! {
            tr {
                td title=(clean_text(row.key.as_deref().unwrap_or_default())) {
                    @match row.key.as_deref().filter(|key| !key.is_empty()) {
                        Some(key) => a href=(self.filters.address_with("/cost", by.name(), key)) { (clean_text(last_segment(key))) },
                        None => { "no " (by.name()) },
                    }
                }
                td { (format_cost(&row.sum)) }
                td title="Share of the total cost" { (share_text(share)) }
                td.share { (chart::share_bar(share)) }
            }
        }
    }

    /// The budgets and what was spent of them.
    fn budget_list(&self) -> Markup {
        let Self { library, viewer, accounts, .. } = *self;
        let here = viewer.local_now(&library.clock);
        let all = library.budgets.check(&accounts.charges, &accounts.costs, &here);
        html! {
            @if !all.is_empty() {
                h2 { "Budgets" }
                ul.budgets aria-label="Budgets" {
                    @for one in &all {
                        li.crossed[one.is_crossed()] title="What was spent of a budget in config.toml" {
                            b { (clean_text(budget_label(&one.name))) }
                            (chart::share_bar(one.spent / one.limit.max(1e-9)))
                            span { (format_dollars(one.spent)) " of " (format_dollars(one.limit)) @if one.is_crossed() { ", crossed" } }
                        }
                    }
                }
            }
        }
    }

    fn grouped_costs(&self, by: GroupBy, selected: &[usize]) -> Markup {
        let rows = self.report_rows(by, selected);
        let is_time = matches!(by, GroupBy::Day | GroupBy::Week | GroupBy::Month);
        let mut lines: Vec<CostLine<'_>> =
            rows.iter().map(|row| cost_line(self.accounts, by, row)).collect();
        let charted = if is_time {
            lines.len().saturating_sub(MAX_DAYS)..lines.len()
        } else {
            0..lines.len().min(20)
        };
        let mut bars: Vec<ChartBar> = lines[charted].iter().map(cost_bar).collect();
        if by == GroupBy::Day {
            let Self { library, viewer, accounts, .. } = *self;
            let period = period_days(&accounts.filter, &viewer.zone, viewer.today(&library.clock));
            bars = fill_days(bars, period);
            lines.iter_mut().for_each(|line| line.name = long_day(&line.name));
        }
        if is_time {
            lines.reverse();
        }
        html! {
            @if lines.is_empty() { (no_charges()) }
            @else { (cost_chart(&format!("Cost by {}", by.name()), &bars, &self.budget_lines(by)))
                @if is_time { (self.breakdowns(selected)) }
                (cost_table(by.name(), &lines))
            }
        }
    }

    /// The budget of each bar.
    fn budget_lines(&self, by: GroupBy) -> Vec<(String, f64)> {
        let limit = match by {
            GroupBy::Day => self.library.budgets.day,
            GroupBy::Month => self.library.budgets.month,
            _ => None,
        };
        limit.map(|limit| ("Budget".to_owned(), limit)).into_iter().collect()
    }

    fn block_costs(&self) -> Markup {
        let Self { library, viewer, accounts, .. } = *self;
        let (blocks, _) = accounts.charges.blocks_started_in(&accounts.costs, &accounts.filter);
        let now = library.clock.now().instant().as_millisecond();
        let used: Vec<_> = blocks.iter().filter(|block| !block.is_gap).collect();
        let name = |start: i64| {
            let at = timestamp_from_millis(start).map(|at| at.in_zone(&viewer.zone).wall());
            at.map(|at| at.strftime("%Y-%m-%d %H:%M").to_string()).unwrap_or_default()
        };
        let lines: Vec<CostLine<'_>> = used
            .iter()
            .rev()
            .map(|block| CostLine { name: name(block.start), link: None, sum: &block.sum })
            .collect();
        let recent = &used[used.len().saturating_sub(MAX_BARS)..];
        let bar = |start: i64, amount| ChartBar {
            name: name(start),
            label: name(start)[5..].to_owned(),
            amount,
        };
        let bars: Vec<ChartBar> =
            recent.iter().map(|block| bar(block.start, block.sum.cost())).collect();
        let open = used.last().filter(|block| block.is_active(now));
        html! {
            p { small { "Claude's plans limit usage in blocks of five hours." } }
            @if let Some((open, end)) = open.and_then(|open| Some((open, open.project_end(now)?))) {
                p.card {
                    "The current block ends in " b { (end.minutes_left) " minutes" } ", at "
                    b { (end.cost.map_or("an unknown cost".to_owned(), format_dollars)) }
                    @if let Some(rate) = open.burn_rate().and_then(|burn| burn.cost_per_hour) {
                        " if spending continues at " (format_dollars(rate)) " an hour"
                    }
                    "."
                }
            }
            @if lines.is_empty() { (no_charges()) }
            @else { (cost_chart("Cost by block", &bars, &[])) (cost_table("block", &lines)) }
        }
    }
}

/// The name of a budget. Names of projects stay as they are.
fn budget_label(name: &str) -> &str {
    match name {
        "today" => "Today",
        "this month" => "This month",
        project => project,
    }
}

fn no_charges() -> Markup {
    html! {
        .empty {
            p { b { "No tokens were used in this period" } }
            p { "Choose a longer period or fewer filters, or run " code { "steno sync" } " to import sessions." }
        }
    }
}

fn cost_chart(title: &str, bars: &[ChartBar], limits: &[(String, f64)]) -> Markup {
    BarChart { title, bars, format: format_dollars, limits }.draw()
}

fn cost_bar(line: &CostLine<'_>) -> ChartBar {
    ChartBar {
        name: line.name.clone(),
        label: chart::short_label(&line.name),
        amount: line.sum.cost(),
    }
}

/// Adds the days of a period that cost nothing, and those between others, so that the axis shows all days.
fn fill_days(bars: Vec<ChartBar>, period: Option<(Date, Date)>) -> Vec<ChartBar> {
    let mut filled: Vec<ChartBar> = Vec::new();
    let mut next: Option<Date> = period.map(|(first, _)| first);
    for mut bar in bars {
        let Ok(day) = bar.name.parse::<Date>() else {
            filled.push(bar);
            continue;
        };
        let missing =
            next.into_iter().flat_map(|next| next.series(1.day()).take_while(|at| *at < day));
        filled.extend(missing.map(|day| day_bar(day, Some(0.0))));
        bar = day_bar(day, bar.amount);
        filled.push(bar);
        next = day.checked_add(1.day()).ok();
    }
    if let Some((next, (_, last))) = next.zip(period) {
        let missing = next.series(1.day()).take_while(|at| *at <= last);
        filled.extend(missing.map(|day| day_bar(day, Some(0.0))));
    }
    let first = filled.len().saturating_sub(MAX_DAYS);
    filled.split_off(first)
}

/// A share in percent.
fn share_text(share: f64) -> String {
    if share > 0.0 && share < 0.005 { "<1%".to_owned() } else { format!("{:.0}%", share * 100.0) }
}

/// The name of a line. A narrow screen shows `5 Jan` of `Mon, 5 Jan 2026`.
fn line_name(name: &str) -> Markup {
    let parts =
        name.split_once(", ").and_then(|(weekday, date)| Some((weekday, date.rsplit_once(' ')?)));
    html! {
        @match parts.filter(|(weekday, _)| weekday.len() == 3) {
            Some((weekday, (day, year))) => { span.wide-text { (clean_text(weekday)) ", " } (clean_text(day)) span.wide-text { " " (clean_text(year)) } }
            None => (clean_text(name)),
        }
    }
}

/// A day for a label: `5 Jan` for `2026-01-05`.
fn short_day(day: &str) -> String {
    day.parse::<Date>().map_or_else(|_| day.to_owned(), |day| day.strftime("%-d %b").to_string())
}

/// A day for people: `Mon, 5 Jan 2026` for `2026-01-05`.
fn long_day(day: &str) -> String {
    day.parse::<Date>()
        .map_or_else(|_| day.to_owned(), |day| day.strftime("%a, %-d %b %Y").to_string())
}

fn day_bar(day: Date, amount: Option<f64>) -> ChartBar {
    let (name, label) = (day.strftime("%A, %-d %B %Y"), day.strftime("%-d %b"));
    ChartBar { name: name.to_string(), label: label.to_string(), amount }
}

fn cost_line<'a>(accounts: &CostAccounts, by: GroupBy, row: &'a ReportRow) -> CostLine<'a> {
    let account = row.sum.sessions.iter().map(|at| &accounts.charges.accounts[*at]).next();
    match account.filter(|_| by == GroupBy::Session) {
        Some(account) => {
            let name = account.title.clone().unwrap_or_else(|| account.session.clone());
            let link = Some(format!("/session/{}/{}", account.agent, account.session));
            CostLine { name, link, sum: &row.sum }
        }
        None => {
            let name = row.key.clone().unwrap_or_else(|| format!("no {}", by.name()));
            CostLine { name, link: None, sum: &row.sum }
        }
    }
}

fn cost_table(heading: &str, lines: &[CostLine<'_>]) -> Markup {
    let largest = lines.iter().filter_map(|line| line.sum.cost()).fold(0.0, f64::max);
    html! {
        table.sums {
            thead {
                tr {
                    th { (capitalize_first(heading)) }
                    th title="Tokens that the model read and that were not cached" { "Uncached in" }
                    th title="Tokens that the model read from its cache" { "Cached in" }
                    th title="Tokens that the model wrote" { "Out" }
                    th title=(COST_EXPLANATION) { "Cost" }
                    th.share { "Share" }
                }
            }
            tbody {
                @for CostLine { name, link, sum } in lines.iter().take(MAX_ROWS) {
                    @let tokens = sum.tokens();
                    tr {
                        td.day[heading == "day"] {
                            @match link {
                                Some(link) => a href=(link) { (clean_text(name)) },
                                None => (line_name(name)),
                            }
                        }
                        td { (format_count(tokens.input.saturating_add(tokens.cache_write))) }
                        td { (format_count(tokens.cache_read)) }
                        td { (format_count(tokens.output)) }
                        td { (format_cost(sum)) }
                        td.share { (chart::share_bar(sum.cost().unwrap_or(0.0) / largest.max(1e-9))) }
                    }
                }
            }
        }
        @if lines.len() > MAX_ROWS { p { small { (lines.len() - MAX_ROWS) " more" } } }
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    #[test]
    fn the_axis_has_all_days_of_the_period() {
        let bars = || {
            ["2026-01-05", "2026-01-07"]
                .map(|day| ChartBar {
                    name: day.to_owned(),
                    label: String::new(),
                    amount: Some(2.0),
                })
                .into_iter()
                .collect()
        };
        let labels =
            |bars: Vec<ChartBar>| bars.into_iter().map(|bar| bar.label).collect::<Vec<_>>();
        assert_eq!(labels(fill_days(bars(), None)), ["5 Jan", "6 Jan", "7 Jan"]);
        let period = Some((date(2026, 1, 4), date(2026, 1, 8)));
        let all = ["4 Jan", "5 Jan", "6 Jan", "7 Jan", "8 Jan"];
        assert_eq!(labels(fill_days(bars(), period)), all);
    }

    #[test]
    fn a_day_is_shown_for_people() {
        assert_eq!(long_day("2026-01-05"), "Mon, 5 Jan 2026");
        assert_eq!(long_day("no day"), "no day");
        assert_eq!(["2026-01-05", "no day"].map(short_day), ["5 Jan", "no day"]);
        assert_eq!([0.0, 0.001, 0.014, 1.0].map(share_text), ["0%", "<1%", "1%", "100%"]);
    }
}
