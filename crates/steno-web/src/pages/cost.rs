//! The cost page: charts and tables by day, model, project, agent and more, and blocks of five hours.

mod blocks;
mod breakdowns;
pub(crate) mod download;
mod figures;

use axum::extract::Query;
use jiff::ToSpan;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use maud::{Markup, html};
use steno_store::amount::{format_cost, format_dollars};
use steno_store::cost::budget::BudgetLimits;
use steno_store::cost::report::{GroupBy, ReportGroup, ReportRow};
use steno_store::view::json_rows::cost::timestamp_from_millis;
use steno_store::view::markdown::capitalize_first;

use crate::addresses::distinct_name;
use crate::amount_list::{NamedAmount, amount_list};
use crate::app::WebApp;
use crate::budget_list::budget_list;
use crate::chart::{self, BarChart, ChartBar, ChartStyle};
use crate::chart_axis::{ChartAxis, parse_step};
use crate::cost_series::{CostSeries, SeriesRequest};
use crate::cost_tables::{CostLine, cost_table};
use crate::date_range::period_days;
use crate::error::WebError;
use crate::filter_query::{DEFAULT_DAYS, FilterQuery};
use crate::library::{CostAccounts, SessionLibrary};
use crate::period_step::{PeriodStep, StepDays};
use crate::render::plain::first_line;
use crate::report_page::{ReportPage, empty_period};
use crate::units::count_of;
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
    /// The rows of a group. What has no time, project or model has a row only if it used something.
    fn report_rows(&self, by: GroupBy, selected: &[usize]) -> Vec<ReportRow> {
        let group = ReportGroup { by, zone: &self.viewer.zone };
        let mut rows = self.accounts.charges.report_rows(&self.accounts.costs, selected, &group);
        rows.retain(is_worth_a_row);
        rows
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
}

/// Whether a row has a name, tokens or a cost.
fn is_worth_a_row(row: &ReportRow) -> bool {
    row.key.is_some() || !row.sum.tokens().is_empty() || row.sum.cost() != Some(0.0)
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
    use steno_store::cost::report::ChargeSum;

    use super::*;

    #[test]
    fn what_has_no_time_and_cost_nothing_has_no_row() {
        let row = |key: Option<&str>, unpriced: Option<usize>| {
            let mut sum = ChargeSum::default();
            sum.unpriced.extend(unpriced);
            is_worth_a_row(&ReportRow { key: key.map(str::to_owned), sum })
        };
        assert!(!row(None, None));
        assert!(row(Some("2026-01-05"), None));
        assert!(row(None, Some(7)), "an unknown cost is not 0");
    }
}
