//! The cost page: charts and tables by day, model, project, agent and more, and blocks of five hours.

use axum::extract::{Query, State};
use maud::{Markup, html};
use steno_store::cost::report::{ChargeSum, GroupBy, ReportGroup, ReportRow};
use steno_store::view::amount::{format_cost, format_count, format_dollars};
use steno_store::view::json_rows::cost::{timestamp_from_millis, unpriced_models};

use crate::app::WebApp;
use crate::error::WebError;
use crate::filter_query::FilterQuery;
use crate::library::{CostAccounts, SessionLibrary};
use crate::render::plain::clean_text;
use crate::{chart, page};

/// The groups, in the order of their tabs. Blocks have a tab of their own.
pub(crate) const GROUPS: [GroupBy; 8] = [
    GroupBy::Day,
    GroupBy::Week,
    GroupBy::Month,
    GroupBy::Model,
    GroupBy::Project,
    GroupBy::Agent,
    GroupBy::Session,
    GroupBy::Thread,
];

/// The most bars of a chart, and the most rows of a table.
const MAX_BARS: usize = 60;
const MAX_ROWS: usize = 200;

/// A row of the table: its name, its link and its sum.
struct CostLine<'a> {
    name: String,
    link: Option<String>,
    sum: &'a ChargeSum,
}

/// The cost page.
pub(crate) async fn cost_page(
    State(app): State<WebApp>,
    Query(filters): Query<FilterQuery>,
) -> Result<Markup, WebError> {
    app.run_blocking(move |library| {
        let accounts = library.cost_accounts(filters.to_filter(library)?)?;
        let selected: Vec<usize> = accounts.charges.select_charges(&accounts.filter).collect();
        let total = accounts.charges.sum_charges(&accounts.costs, &selected);
        let body = html! {
            h1 { "Cost" }
            (page::stale_notice(library.index_notice().as_deref()))
            (page::damage_notice(&library.damage_warnings()?))
            (total_figures(&accounts, &total))
            nav.tabs aria-label="Group by" {
                @for name in GROUPS.map(GroupBy::name).into_iter().chain(["block"]) {
                    @let is_current = name == group_name(&filters);
                    a href=(filters.address_with("/cost", "by", name))
                        aria-current=[is_current.then_some("true")]
                    {
                        "By " (name)
                    }
                }
            }
            @match group_by(&filters) {
                Some(by) => (grouped_costs(library, &accounts, by, &selected)),
                None => (block_costs(library, &accounts)),
            }
        };
        Ok(page::page_shell("Cost", "/cost", &body))
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

fn total_figures(accounts: &CostAccounts, total: &ChargeSum) -> Markup {
    let tokens = total.tokens();
    let missing = unpriced_models(&accounts.charges, total);
    html! {
        ul.figures {
            li { b { (format_cost(total)) } small { "total" } }
            li { b { (format_count(tokens.input.saturating_add(tokens.cache_write))) } small { "tokens in" } }
            li { b { (format_count(tokens.cache_read)) } small { "cached tokens" } }
            li { b { (format_count(tokens.output)) } small { "tokens out" } }
            li { b { (total.sessions.len()) } small { "sessions" } }
        }
        @if !missing.is_empty() {
            p { small { "No price for: " (clean_text(&missing.join(", "))) } }
        }
    }
}

fn grouped_costs(
    library: &SessionLibrary,
    accounts: &CostAccounts,
    by: GroupBy,
    selected: &[usize],
) -> Markup {
    let group = ReportGroup { by, zone: &library.zone };
    let rows = accounts.charges.report_rows(&accounts.costs, selected, &group);
    let is_time = matches!(by, GroupBy::Day | GroupBy::Week | GroupBy::Month);
    let mut lines: Vec<CostLine<'_>> =
        rows.iter().map(|row| cost_line(accounts, by, row)).collect();
    let charted = if is_time {
        lines.len().saturating_sub(MAX_BARS)..lines.len()
    } else {
        0..lines.len().min(20)
    };
    let bars: Vec<_> =
        lines[charted].iter().map(|line| (line.name.clone(), line.sum.cost())).collect();
    if is_time {
        lines.reverse();
    }
    html! {
        @if lines.is_empty() { p.empty { "No charges." } }
        @else { (chart::bar_chart(&format!("Cost by {}", by.name()), &bars)) (cost_table(by.name(), &lines)) }
    }
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

fn block_costs(library: &SessionLibrary, accounts: &CostAccounts) -> Markup {
    let (blocks, _) = accounts.charges.blocks_started_in(&accounts.costs, &accounts.filter);
    let now = library.clock.now().instant().as_millisecond();
    let used: Vec<_> = blocks.iter().filter(|block| !block.is_gap).collect();
    let name = |start: i64| {
        let at = timestamp_from_millis(start).map(|at| at.in_zone(&library.zone).wall());
        at.map(|at| at.strftime("%Y-%m-%d %H:%M").to_string()).unwrap_or_default()
    };
    let lines: Vec<CostLine<'_>> = used
        .iter()
        .rev()
        .map(|block| CostLine { name: name(block.start), link: None, sum: &block.sum })
        .collect();
    let recent = &used[used.len().saturating_sub(MAX_BARS)..];
    let bars: Vec<_> = recent.iter().map(|block| (name(block.start), block.sum.cost())).collect();
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
        @if lines.is_empty() { p.empty { "No charges." } }
        @else { (chart::bar_chart("Cost by block", &bars)) (cost_table("block", &lines)) }
    }
}

fn cost_table(heading: &str, lines: &[CostLine<'_>]) -> Markup {
    let largest = lines.iter().filter_map(|line| line.sum.cost()).fold(0.0, f64::max);
    html! {
        table.sums {
            thead {
                tr { th { (heading) } th { "In" } th { "Cached" } th { "Out" } th { "Cost" } th.share { "Share" } }
            }
            tbody {
                @for CostLine { name, link, sum } in lines.iter().take(MAX_ROWS) {
                    @let tokens = sum.tokens();
                    tr {
                        td {
                            @match link {
                                Some(link) => a href=(link) { (clean_text(name)) },
                                None => (clean_text(name)),
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
