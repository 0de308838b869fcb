//! The cost page: charts and tables by day, model, project, agent and more, and blocks of five hours.

mod breakdowns;
pub(crate) mod download;

use std::collections::BTreeMap;

use axum::extract::Query;
use jiff::ToSpan;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use maud::{Markup, html};
use steno_store::amount::{format_cost, format_count, format_dollars};
use steno_store::cost::billing_block::BillingBlock;
use steno_store::cost::budget::BudgetLimits;
use steno_store::cost::charge::ChargeTable;
use steno_store::cost::report::{ChargeSum, GroupBy, ReportGroup, ReportRow};
use steno_store::view::json_rows::cost::timestamp_from_millis;
use steno_store::view::markdown::capitalize_first;

use crate::addresses::distinct_name;
use crate::amount_list::{NamedAmount, amount_list};
use crate::app::WebApp;
use crate::budget_list::budget_list;
use crate::chart::{self, BarChart, ChartBar, ChartStyle};
use crate::chart_axis::{ChartAxis, parse_step, span_of};
use crate::cost_series::{CostSeries, SeriesRequest};
use crate::cost_tables::{
    CACHE_READ_MEANING, CACHE_WRITE_MEANING, CostLine, INPUT_MEANING, OUTPUT_MEANING, cached_share,
    cost_table, short_day,
};
use crate::date_range::period_days;
use crate::error::WebError;
use crate::filter_query::{DEFAULT_DAYS, FilterQuery};
use crate::library::{CostAccounts, SessionLibrary};
use crate::period_step::{PeriodStep, StepDays};
use crate::render::plain::{clean_text, first_line};
use crate::report_page::{ReportPage, empty_period};
use crate::units::{COST_EXPLANATION, count_of, exact_count};
use crate::viewer::PageViewer;

/// The address of the page.
const ADDRESS: &str = "/cost";

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

/// The most bars of a chart of single blocks. More are added up by day, week or month.
const MAX_BLOCK_BARS: usize = 60;

/// The longest name of a session in a chart, in characters.
const MAX_NAME_CHARS: usize = 120;

/// What the bars of a chart over time can be divided by.
const STACK_GROUPS: [GroupBy; 3] = [GroupBy::Project, GroupBy::Model, GroupBy::Agent];

/// What a bar without a known cost says.
const NO_PRICE: &str = "no price";

/// The cost page.
pub(crate) async fn cost_page(
    app: WebApp,
    viewer: PageViewer,
    Query(filters): Query<FilterQuery>,
) -> Result<Markup, WebError> {
    app.run_blocking(move |library| {
        let today = viewer.today(&library.clock);
        // The tabs keep only a period that was chosen: each has its own default.
        let asked = filters;
        let filters = asked.clone().with_default_period(default_days(&asked), today);
        let accounts = library.cost_accounts(filters.to_filter(library, &viewer.zone)?)?;
        let selected: Vec<usize> = accounts.charges.select_charges(&accounts.filter).collect();
        let period = filters.clone();
        let filters = with_fitting_group(filters, &accounts, &selected, &viewer.zone);
        let total = accounts.charges.sum_charges(&accounts.costs, &selected);
        let budgets = library.read_budgets();
        let limits = budgets.clone().unwrap_or_default();
        let view = CostView { library, viewer: &viewer, accounts: &accounts, filters: &filters, limits: &limits };
        let content = html! {
            @if !selected.is_empty() { (view.total_figures(&total, &selected)) }
            (budget_list(library, &viewer, &accounts, &budgets))
            nav.tabs aria-label="Group by" {
                @let shown = GROUPS.iter().filter(|by| **by != GroupBy::Person || library.serves_team());
                @for name in shown.map(|by| by.name()).chain(["block"]) {
                    @let is_current = name == group_name(&filters);
                    a href=(asked.address_with(ADDRESS, "by", name))
                        aria-current=[is_current.then_some("true")]
                    {
                        "By " (name)
                    }
                }
                span.room {}
                @if !selected.is_empty() { a.download href=(asked.address_of("/cost.csv")) download title="The rows of the table with exact numbers" { "CSV" } }
            }
            @match group_by(&filters) {
                Some(by) => (view.grouped_costs(by, &selected)),
                None => (view.block_costs()),
            }
        };
        let (title, address, viewer, filters) = ("Cost", ADDRESS, &viewer, &period);
        ReportPage { title, address, library, viewer, filters, today }.with_content(&content)
    })
    .await
}

/// These filters with a group whose bars fit in a chart, unless one is chosen: long periods are shown by week or month.
fn with_fitting_group(
    filters: FilterQuery,
    accounts: &CostAccounts,
    selected: &[usize],
    zone: &TimeZone,
) -> FilterQuery {
    if !filters.by.is_empty() {
        return filters;
    }
    let step = charged_days(accounts, selected, zone).map_or(PeriodStep::Day, PeriodStep::for_bars);
    let by = if step == PeriodStep::Day { "" } else { step.name() };
    FilterQuery { by: by.to_owned(), ..filters }
}

/// The days from the first charge to the last.
fn charged_days(accounts: &CostAccounts, selected: &[usize], zone: &TimeZone) -> Option<StepDays> {
    let charges = selected.iter().map(|at| &accounts.charges.charges[*at]);
    let day = |at: i64| Some(timestamp_from_millis(at)?.in_zone(zone).wall().date());
    let first = charges.clone().filter_map(|charge| charge.first).min().and_then(day)?;
    let last = charges.filter_map(|charge| charge.last).max().and_then(day)?;
    Some(StepDays { first, last: last.max(first) })
}

/// How many days are shown unless a period is chosen: more of long ones.
fn default_days(filters: &FilterQuery) -> i32 {
    match group_by(filters) {
        Some(GroupBy::Week) => 90,
        Some(GroupBy::Month) => 365,
        _ => DEFAULT_DAYS,
    }
}

fn group_name(filters: &FilterQuery) -> &str {
    if filters.by.is_empty() { "day" } else { &filters.by }
}

/// The names of all groups.
pub(crate) fn group_names() -> impl Iterator<Item = &'static str> {
    GROUPS.into_iter().map(GroupBy::name).chain(["block"])
}

/// The group of a query; `None` for blocks.
pub(crate) fn group_by(filters: &FilterQuery) -> Option<GroupBy> {
    GROUPS.into_iter().find(|by| by.name() == group_name(filters))
}

/// The steps of a group over time.
fn period_step(by: GroupBy) -> Option<PeriodStep> {
    PeriodStep::ALL.into_iter().find(|step| step.group() == by)
}

/// What the parts of the page need.
struct CostView<'a> {
    library: &'a SessionLibrary,
    viewer: &'a PageViewer,
    accounts: &'a CostAccounts,
    filters: &'a FilterQuery,
    limits: &'a BudgetLimits,
}

impl CostView<'_> {
    fn total_figures(&self, total: &ChargeSum, selected: &[usize]) -> Markup {
        let tokens = total.tokens();
        let missing = UnpricedModels::of(&self.accounts.charges, total);
        let days = self.report_rows(GroupBy::Day, selected);
        let costs = days.iter().filter_map(|day| Some((day.sum.cost()?, day.key.as_deref()?)));
        let most = costs.max_by(|a, b| a.0.total_cmp(&b.0));
        let average =
            total.cost().filter(|_| !days.is_empty()).map(|cost| cost / days.len() as f64);
        html! {
            ul.figures {
                li title=(COST_EXPLANATION) { (total_cost(total, &missing)) (self.change(total)) }
                @if let Some(average) = average { li title="Total cost divided by the days on which models were used" { b { (format_dollars(average)) } small { "per active day" } } }
                @if let Some((cost, day)) = most { li title="The day that cost the most" { b { (format_dollars(cost)) } small { "most on a day, " (short_day(day)) } } }
                li title={ (count_of(tokens.input, "token")) ". " (INPUT_MEANING) } { b { (format_count(tokens.input)) } small { "tokens in, not cached" } }
                li title={ (count_of(tokens.cache_read, "token")) ". " (CACHE_READ_MEANING) } { b { (format_count(tokens.cache_read)) } small { "cache reads, in tokens" @if let Some(share) = cached_share(&tokens) { ", " (share) " of what was read" } } }
                li title={ (count_of(tokens.cache_write, "token")) ". " (CACHE_WRITE_MEANING) } { b { (format_count(tokens.cache_write)) } small { "cache writes, in tokens" } }
                li title={ (count_of(tokens.output, "token")) ". " (OUTPUT_MEANING) } { b { (format_count(tokens.output)) } small { "tokens out" } }
                li title="Sessions that used tokens" { b { (exact_count(total.sessions.len() as u64)) } small { "sessions with tokens" } }
            }
            @if !missing.named.is_empty() {
                p { small { "No price for " (clean_text(&missing.named.join(", "))) "; set one in " code { "config.toml" } "." } }
            }
            @if missing.has_unnamed {
                p { small { "Some messages name no model, so their cost is not known." } }
            }
        }
    }

    /// How much more or less was spent than in as many days before.
    fn change(&self, total: &ChargeSum) -> Markup {
        let compare = || -> Option<(f64, f64, i32)> {
            let Self { library, viewer, accounts, filters, .. } = *self;
            let today = viewer.today(&library.clock);
            let (first, last) = period_days(&accounts.filter, &viewer.zone, today)?;
            let days = (last - first).get_days() + 1;
            let since = first.checked_sub(days.days()).ok()?.to_string();
            let until = first.yesterday().ok()?.to_string();
            let before = FilterQuery { since, until, ..filters.clone() };
            let before =
                library.cost_accounts(before.to_filter(library, &viewer.zone).ok()?).ok()?;
            let selected: Vec<usize> = before.charges.select_charges(&before.filter).collect();
            let cost = before.charges.sum_charges(&before.costs, &selected).cost()?;
            Some((total.cost()?, cost, days))
        };
        html! {
            @if let Some((now, before, days)) = compare() && let Some(change) = change_text(now, before) {
                small.change title={ (format_dollars(before)) " in the " (count_of(u64::from(days.unsigned_abs()), "day")) " before" } { (change) }
            }
        }
    }

    fn report_rows(&self, by: GroupBy, selected: &[usize]) -> Vec<ReportRow> {
        let group = ReportGroup { by, zone: &self.viewer.zone };
        self.accounts.charges.report_rows(&self.accounts.costs, selected, &group)
    }

    fn grouped_costs(&self, by: GroupBy, selected: &[usize]) -> Markup {
        let rows = self.report_rows(by, selected);
        let step = period_step(by);
        let mut lines: Vec<CostLine<'_>> = rows.iter().map(|row| self.cost_line(by, row)).collect();
        if let Some(step) = step {
            name_steps(&mut lines, step);
        }
        html! {
            @if lines.is_empty() { (no_charges(self.filters)) }
            @else if let Some(step) = step {
                (self.time_chart(step, selected))
                (self.breakdowns(selected)) (self.top_sessions(selected))
                h2 { (capitalize_first(by.name())) "s" }
                (cost_table(by.name(), &lines))
            } @else {
                (amount_list("US dollars", &named_amounts(by, &lines)))
                @if by == GroupBy::Session { (self.session_costs(&rows, selected)) } @else { (cost_table(by.name(), &lines)) }
            }
        }
    }

    /// The days of the chosen period, or those from the first charge to the last.
    fn charted_days(&self, selected: &[usize]) -> Option<StepDays> {
        let Self { library, viewer, accounts, .. } = *self;
        let period = period_days(&accounts.filter, &viewer.zone, viewer.today(&library.clock));
        period
            .map(|(first, last)| StepDays { first, last })
            .or_else(|| charged_days(accounts, selected, &viewer.zone))
    }

    /// The chart of all days, weeks or months of the period.
    fn time_chart(&self, asked: PeriodStep, selected: &[usize]) -> Markup {
        let Some(days) = self.charted_days(selected) else { return html! {} };
        let by = asked.fit_to_chart(days.count()).group();
        let rows = self.report_rows(by, selected);
        let started = |row: &ReportRow| row.key.as_deref().and_then(parse_step);
        let used: Vec<Date> = rows.iter().filter_map(started).collect();
        let axis = ChartAxis::new(asked, days, &used);
        let series = self.cost_series(by, selected);
        let bar = |row: &ReportRow| {
            let line = self.cost_line(by, row);
            let note = count_of(line.sum.sessions.len() as u64, "session");
            let (parts, link) = (series.parts_of(&line.name), line.link);
            let bar = ChartBar { parts, link, note, ..ChartBar::with_amount(line.sum.cost()) };
            Some((started(row)?, bar))
        };
        let bars = axis.fill(rows.iter().filter_map(bar).collect(), Some(0.0));
        let (title, limits) = (format!("Cost by {}", by.name()), self.budget_lines(by));
        let unit = axis.caption(&format!("US dollars a {}", by.name()));
        html! {
            (BarChart { title: &title, unit: &unit, unknown: NO_PRICE, bars: &bars, format: format_dollars, limits: &limits, series: &series.names, style: ChartStyle::Bars }.draw())
            .chart-notes { (chart::chart_legend(&series.names_with_totals())) (self.stack_tabs()) }
            @if let Some(undated) = rows.iter().find(|row| row.key.is_none() && row.sum.cost() != Some(0.0)) {
                p.hint { (format_cost(&undated.sum)) " of messages without a time are in no bar." }
            }
        }
    }

    fn cost_line<'r>(&self, by: GroupBy, row: &'r ReportRow) -> CostLine<'r> {
        let charges = &self.accounts.charges;
        let account = row.sum.sessions.iter().map(|at| &charges.accounts[*at]).next();
        let (name, link) = match account.filter(|_| by == GroupBy::Session) {
            Some(account) => (
                account.title.clone().unwrap_or_else(|| account.session.clone()),
                Some(format!("/session/{}/{}", account.agent, account.session)),
            ),
            None => (
                row.key.clone().unwrap_or_else(|| format!("no {}", by.name())),
                row.key.as_deref().and_then(|key| self.narrowed_address(by, key)),
            ),
        };
        CostLine { name, link, sum: &row.sum }
    }

    /// The address of the costs of one group: the sessions of a day, week or month, the days of a project, model or agent.
    fn narrowed_address(&self, by: GroupBy, key: &str) -> Option<String> {
        let days = |first: Date, last: Date| {
            let (since, until) = (first.to_string(), last.to_string());
            let by = GroupBy::Session.name().to_owned();
            FilterQuery { since, until, by, ..self.filters.clone() }.address_of(ADDRESS)
        };
        match by {
            GroupBy::Day => key.parse().ok().map(|day| days(day, day)),
            GroupBy::Week => {
                let monday: Date = key.parse().ok()?;
                Some(days(monday, monday.saturating_add(6.days())))
            }
            GroupBy::Month => {
                let first: Date = format!("{key}-01").parse().ok()?;
                Some(days(first, first.last_of_month()))
            }
            GroupBy::Project | GroupBy::Model | GroupBy::Agent if !key.is_empty() => {
                let by_day = FilterQuery { by: String::new(), ..self.filters.clone() };
                Some(by_day.address_with(ADDRESS, by.name(), key))
            }
            _ => None,
        }
    }

    /// The parts of the bars: by project unless another division was chosen.
    fn cost_series(&self, period: GroupBy, selected: &[usize]) -> CostSeries {
        let CostAccounts { charges, costs, .. } = self.accounts;
        let request = SeriesRequest { charges, costs, selected, zone: &self.viewer.zone };
        CostSeries::new(&request, period, self.stacked_by())
    }

    fn stacked_by(&self) -> GroupBy {
        let mut groups = STACK_GROUPS.into_iter();
        groups.find(|by| by.name() == self.filters.stack).unwrap_or(GroupBy::Project)
    }

    fn stack_tabs(&self) -> Markup {
        html! {
            nav.tabs aria-label="Colours of the chart" {
                @for by in STACK_GROUPS {
                    a href=(self.filters.address_with(ADDRESS, "stack", by.name())) aria-current=[(by == self.stacked_by()).then_some("true")] { "Colour by " (by.name()) }
                }
            }
        }
    }

    /// The budget of each bar.
    fn budget_lines(&self, by: GroupBy) -> Vec<(String, f64)> {
        let limit = match by {
            GroupBy::Day => self.limits.day,
            GroupBy::Month => self.limits.month,
            _ => None,
        };
        limit.map(|limit| ("Budget".to_owned(), limit)).into_iter().collect()
    }

    fn block_costs(&self) -> Markup {
        let Self { library, accounts, filters, .. } = *self;
        let (blocks, _) = accounts.charges.blocks_started_in(&accounts.costs, &accounts.filter);
        let now = library.clock.now().instant().as_millisecond();
        let used: Vec<_> = blocks.iter().filter(|block| !block.is_gap).collect();
        let mut lines = self.block_lines(&used);
        lines.reverse();
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
            @if lines.is_empty() { (no_charges(filters)) }
            @else { (self.block_chart(&used)) (cost_table("block", &lines)) }
        }
    }
}

impl CostView<'_> {
    fn local_time(&self, at: i64) -> Option<DateTime> {
        Some(timestamp_from_millis(at)?.in_zone(&self.viewer.zone).wall())
    }

    /// The rows of a table of blocks, the oldest first.
    fn block_lines<'b>(&self, blocks: &[&'b BillingBlock]) -> Vec<CostLine<'b>> {
        let name = |block: &BillingBlock| {
            let at = self.local_time(block.start);
            at.map(|at| at.strftime("%Y-%m-%d %H:%M").to_string()).unwrap_or_default()
        };
        let line =
            |block: &&'b BillingBlock| CostLine { name: name(block), link: None, sum: &block.sum };
        blocks.iter().map(line).collect()
    }

    /// All blocks: each as a bar, or many by day, week or month.
    fn block_chart(&self, blocks: &[&BillingBlock]) -> Markup {
        let at = |block: &BillingBlock| self.local_time(block.start);
        let begun: Vec<Date> = blocks.iter().filter_map(|block| Some(at(block)?.date())).collect();
        let Some(days) = span_of(&begun) else { return html! {} };
        let (bars, unit) = if blocks.len() > MAX_BLOCK_BARS {
            let axis = ChartAxis::new(PeriodStep::for_bars(days), days, &begun);
            let step = axis.step.name();
            let count = exact_count(blocks.len() as u64);
            let unit = axis.caption(&format!(
                "US dollars in {count} blocks of five hours, by the {step} in which they began"
            ));
            let mut steps: BTreeMap<Date, Vec<&BillingBlock>> = BTreeMap::new();
            for block in blocks {
                let Some(at) = at(block) else { continue };
                steps.entry(axis.step.first_day(at.date())).or_default().push(block);
            }
            let bars = steps.iter().map(|(day, blocks)| (*day, sum_bar(blocks))).collect();
            (axis.fill(bars, Some(0.0)), unit)
        } else {
            let bar = |(place, block): (usize, &&BillingBlock)| {
                let begin = at(block)?;
                let is_new_day = place == 0 || begun[place - 1] != begin.date();
                let label = is_new_day.then(|| begin.strftime("%-d %b").to_string());
                Some(ChartBar {
                    name: begin.strftime("%A, %-d %B %Y, %H:%M").to_string(),
                    label: label.unwrap_or_default(),
                    ..ChartBar::with_amount(block.sum.cost())
                })
            };
            let bars = blocks.iter().enumerate().filter_map(bar).collect();
            (
                bars,
                "US dollars a block of five hours; times without a block are left out".to_owned(),
            )
        };
        BarChart {
            title: "Cost by block",
            unit: &unit,
            unknown: NO_PRICE,
            bars: &bars,
            format: format_dollars,
            limits: &[],
            series: &[],
            style: ChartStyle::Bars,
        }
        .draw()
    }
}

/// The bar of several blocks.
fn sum_bar(blocks: &[&BillingBlock]) -> ChartBar {
    let known: Vec<f64> = blocks.iter().filter_map(|block| block.sum.cost()).collect();
    let amount = (!known.is_empty()).then(|| known.iter().sum());
    ChartBar { note: count_of(blocks.len() as u64, "block"), ..ChartBar::with_amount(amount) }
}

/// The models without a price.
struct UnpricedModels<'a> {
    /// In order of their names.
    named: Vec<&'a str>,
    /// Whether some messages name no model.
    has_unnamed: bool,
}

impl<'a> UnpricedModels<'a> {
    fn of(charges: &'a ChargeTable, sum: &ChargeSum) -> Self {
        let names = sum.unpriced.iter().map(|model| charges.models[*model].as_str());
        let (unnamed, mut named): (Vec<_>, Vec<_>) = names.partition(|name| name.is_empty());
        named.sort_unstable();
        Self { named, has_unnamed: !unnamed.is_empty() }
    }

    /// Which part of a cost is unknown: `2 models have no price`.
    fn describe(&self) -> String {
        match self.named.len() {
            0 => "some messages name no model".to_owned(),
            1 => "1 model has no price".to_owned(),
            count => format!("{} have no price", count_of(count as u64, "model")),
        }
    }
}

/// The known part of the total cost, and how many models have no price.
fn total_cost(total: &ChargeSum, unpriced: &UnpricedModels<'_>) -> Markup {
    let priceless = unpriced.describe();
    html! {
        @match total.cost() {
            Some(cost) if !total.unpriced.is_empty() => { b { (format_dollars(cost)) } small { "at least; " (priceless) } },
            Some(cost) => { b { (format_dollars(cost)) } small { "total cost" } },
            None => { b { "unknown" } small { "total cost; " (priceless) } },
        }
    }
}

/// A change of a cost: `26% more than before`; `None` if there was nothing before.
fn change_text(now: f64, before: f64) -> Option<String> {
    if before < 0.005 {
        return None;
    }
    let change = now / before - 1.0;
    Some(match change {
        change if change.abs() < 0.005 => "as much as before".to_owned(),
        change if change < 0.0 => format!("{} less than before", chart::share_text(-change)),
        change if change < 2.0 => format!("{} more than before", chart::share_text(change)),
        change => format!("{:.1} times as much as before", change + 1.0),
    })
}

fn no_charges(filters: &FilterQuery) -> Markup {
    empty_period(ADDRESS, filters, "No tokens were used in this period")
}

/// Names the rows of a table over time, and begins with the newest.
fn name_steps(lines: &mut [CostLine<'_>], step: PeriodStep) {
    for line in &mut *lines {
        if let Some(first) = parse_step(&line.name) {
            line.name = step.short_name(first);
        }
    }
    lines.reverse();
}

/// The known costs of groups, with names that differ.
fn named_amounts(by: GroupBy, lines: &[CostLine<'_>]) -> Vec<NamedAmount> {
    let all: Vec<&str> = lines.iter().map(|line| line.name.as_str()).collect();
    let name = |line: &CostLine<'_>| match by {
        GroupBy::Project => distinct_name(&line.name, &all).to_owned(),
        GroupBy::Session => first_line(&line.name, MAX_NAME_CHARS),
        _ => line.name.clone(),
    };
    let amount = |line: &CostLine<'_>| NamedAmount {
        name: name(line),
        whole_name: line.name.clone(),
        link: line.link.clone(),
        dollars: line.sum.cost().unwrap_or(0.0),
    };
    lines.iter().map(amount).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_a_share_of_what_was_before() {
        let shown = [(12.6, 10.0), (7.0, 10.0), (10.0, 10.0), (40.0, 10.0), (4.0, 0.0)];
        let shown = shown.map(|(now, before)| change_text(now, before));
        let all = [
            Some("26% more than before"),
            Some("30% less than before"),
            Some("as much as before"),
            Some("4.0 times as much as before"),
            None,
        ];
        assert_eq!(shown, all.map(|text| text.map(str::to_owned)));
    }
}
