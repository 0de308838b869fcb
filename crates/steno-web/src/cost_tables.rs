//! The tables of the cost page: sums by group, the most expensive sessions, and what each kind of token cost.

use jiff::civil::Date;
use maud::{Markup, html};
use steno_model::Usage;
use steno_store::amount::{format_cost, format_count, format_dollars};
use steno_store::cost::charge::SessionAccount;
use steno_store::cost::report::ChargeSum;
use steno_store::cost::token_costs::TokenCosts;
use steno_store::view::json_rows::cost::timestamp_from_millis;
use steno_store::view::markdown::capitalize_first;

use crate::addresses::last_segment;
use crate::chart;
use crate::render::plain::{clean_text, first_line};
use crate::units::{COST_EXPLANATION, count_of, exact_count};
use crate::viewer::PageViewer;

/// The most rows of a table.
const MAX_ROWS: usize = 200;

/// How many characters of a session's title are shown.
const TITLE_CHARS: usize = 120;

/// What the kinds of tokens are.
pub(crate) const INPUT_MEANING: &str =
    "Tokens that the model read and that were neither read from its cache nor written to it";
pub(crate) const CACHE_READ_MEANING: &str =
    "Tokens that the model read from its cache, which is cheaper";
pub(crate) const CACHE_WRITE_MEANING: &str =
    "Tokens that the model read and wrote to its cache, which some models charge more for";
pub(crate) const OUTPUT_MEANING: &str = "Tokens that the model wrote";

/// A row of the table: its name, its link and its sum.
pub(crate) struct CostLine<'a> {
    pub(crate) name: String,
    pub(crate) link: Option<String>,
    pub(crate) sum: &'a ChargeSum,
}

/// A row of the table of sessions.
pub(crate) struct SessionCost<'a> {
    pub(crate) account: &'a SessionAccount,
    pub(crate) sum: &'a ChargeSum,
}

/// The headings of the kinds of tokens.
fn token_headings() -> Markup {
    html! {
        th title=(INPUT_MEANING) { "Input" }
        th title=(CACHE_READ_MEANING) { "Cache reads" }
        th.minor title=(CACHE_WRITE_MEANING) { "Cache writes" }
        th title=(OUTPUT_MEANING) { "Output" }
    }
}

/// The tokens of each kind; the tooltips have the exact numbers.
fn token_cells(tokens: &Usage) -> Markup {
    let title = |count: u64, meaning: &str| format!("{}. {meaning}", count_of(count, "token"));
    html! {
        td title=(title(tokens.input, INPUT_MEANING)) { (format_count(tokens.input)) }
        td title=(title(tokens.cache_read, &cache_share_text(tokens))) { (format_count(tokens.cache_read)) }
        td.minor title=(title(tokens.cache_write, CACHE_WRITE_MEANING)) { (format_count(tokens.cache_write)) }
        td title=(title(tokens.output, OUTPUT_MEANING)) { (format_count(tokens.output)) }
    }
}

/// How much of what the model read came from its cache.
fn cache_share_text(tokens: &Usage) -> String {
    match cached_share(tokens) {
        Some(share) => format!("{share} of all that the model read"),
        None => "The model read nothing".to_owned(),
    }
}

/// The share of the tokens that the model read which were cached.
pub(crate) fn cached_share(tokens: &Usage) -> Option<String> {
    let read = tokens.prompt_tokens();
    (read > 0).then(|| chart::share_text(tokens.cache_read as f64 / read as f64))
}

/// The sums of groups, in this order.
pub(crate) fn cost_table(heading: &str, lines: &[CostLine<'_>]) -> Markup {
    let total: f64 = lines.iter().filter_map(|line| line.sum.cost()).sum();
    html! {
        table.sums {
            thead {
                tr {
                    th { (capitalize_first(heading)) }
                    (token_headings())
                    th title=(COST_EXPLANATION) { "Cost" }
                    th.percent title="Share of the cost of all rows" { "Share" } td.share {}
                }
            }
            tbody {
                @for CostLine { name, link, sum } in lines.iter().take(MAX_ROWS) {
                    tr {
                        td.day[heading == "day"] {
                            @match link {
                                Some(link) => a href=(link) { (line_name(name)) },
                                None => (line_name(name)),
                            }
                        }
                        (token_cells(&sum.tokens()))
                        td title=(cost_title(sum)) { (format_cost(sum)) }
                        @let share = sum.cost().unwrap_or(0.0) / total.max(1e-9);
                        td.percent title="Share of the cost of all rows" { (chart::share_text(share)) }
                        td.share { (chart::share_bar(share)) }
                    }
                }
            }
        }
        (rows_left_out(lines.len()))
    }
}

fn rows_left_out(rows: usize) -> Markup {
    html! { @if rows > MAX_ROWS { p { small { (exact_count((rows - MAX_ROWS) as u64)) " more rows are not shown." } } } }
}

/// The tooltip of the cost of a row.
fn cost_title(sum: &ChargeSum) -> String {
    let sessions = count_of(sum.sessions.len() as u64, "session");
    let unpriced = if sum.unpriced.is_empty() { "" } else { "; the price of a model is unknown" };
    format!("US dollars, of {sessions}{unpriced}")
}

/// The costs of sessions, in this order. `total` is the cost of all sessions, also of those that are not listed.
pub(crate) fn session_table(rows: &[SessionCost<'_>], total: f64, viewer: &PageViewer) -> Markup {
    html! {
        .wide-table tabindex="0" {
            table.sums.session-costs {
                thead {
                    tr {
                        th { "Session" }
                        th.named { "Project" }
                        th.named { "Agent" }
                        th.minor title="When it last used tokens" { "Last used" }
                        (token_headings())
                        th title=(COST_EXPLANATION) { "Cost" }
                        th.percent title="Share of the cost of all sessions of this period" { "Share" }
                    }
                }
                tbody { @for row in rows.iter().take(MAX_ROWS) { (session_row(row, total, viewer)) } }
            }
        }
        (rows_left_out(rows.len()))
    }
}

fn session_row(row: &SessionCost<'_>, total: f64, viewer: &PageViewer) -> Markup {
    let SessionCost { account, sum } = row;
    let title = account.title.as_deref().filter(|title| !title.trim().is_empty());
    let title = title.unwrap_or(&account.session);
    let project = account.project.as_deref().unwrap_or_default();
    let last = sum.last.and_then(timestamp_from_millis).map(|at| at.in_zone(&viewer.zone).wall());
    let share = sum.cost().unwrap_or(0.0) / total.max(1e-9);
    html! {
        tr {
            td title=(clean_text(title)) {
                a href={ "/session/" (account.agent) "/" (account.session) } { (first_line(title, TITLE_CHARS)) }
            }
            td.named title=(clean_text(project)) { (clean_text(last_segment(project))) }
            td.named title=(clean_text(&account.agent)) { (clean_text(&account.agent)) }
            td.minor.used title=[last.map(|at| at.strftime("%-d %B %Y, %H:%M").to_string())] {
                @if let Some(at) = last { (at.strftime("%-d %b %Y").to_string()) }
            }
            (token_cells(&sum.tokens()))
            td.paid title=(cost_title(sum)) { (format_cost(sum)) }
            td.percent title="Share of the cost of all sessions of this period" { (chart::share_text(share)) }
        }
    }
}

/// What each kind of token cost by list prices, and what the cache saved.
pub(crate) fn token_cost_table(tokens: &Usage, costs: &TokenCosts) -> Markup {
    let rows = [
        ("Input, not cached", tokens.input, costs.input, INPUT_MEANING),
        ("Cache reads", tokens.cache_read, costs.cache_read, CACHE_READ_MEANING),
        ("Cache writes", tokens.cache_write, costs.cache_write, CACHE_WRITE_MEANING),
        ("Output", tokens.output, costs.output, OUTPUT_MEANING),
    ];
    let total = rows.iter().map(|(_, _, cost, _)| cost).sum::<f64>().max(1e-9);
    let saved = costs.saved_by_cache();
    html! {
        table.sums {
            tbody {
                @for (name, count, cost, meaning) in rows {
                    tr {
                        td title=(meaning) { (name) }
                        td title=(count_of(count, "token")) { (format_count(count)) }
                        td title="US dollars by list prices" { (format_dollars(cost)) }
                        td.percent title="Share of the cost of all kinds" { (chart::share_text(cost / total)) }
                        td.share { (chart::share_bar(cost / total)) }
                    }
                }
            }
        }
        @if saved >= 0.005 {
            p.hint title="All that the model read at the price of input, less what reading from the cache and writing to it cost, by list prices" {
                "The cache saved " b { (format_dollars(saved)) } " of " (format_dollars(costs.prompt_without_cache + costs.output)) "."
            }
        }
    }
}

/// The name of a line. A narrow screen shows `5 Jan 2026` of `Mon, 5 Jan 2026`.
fn line_name(name: &str) -> Markup {
    html! {
        @match name.split_once(", ").filter(|(weekday, _)| weekday.len() == 3) {
            Some((weekday, day)) => { span.wide-text { (clean_text(weekday)) ", " } (clean_text(day)) }
            None => (clean_text(name)),
        }
    }
}

/// A day for a label: `5 Jan 2026` for `2026-01-05`.
pub(crate) fn short_day(day: &str) -> String {
    day.parse::<Date>().map_or_else(|_| day.to_owned(), |day| day.strftime("%-d %b %Y").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_day_is_short_in_a_label() {
        assert_eq!(["2026-01-05", "no day"].map(short_day), ["5 Jan 2026", "no day"]);
    }

    #[test]
    fn kinds_of_tokens_have_counts_costs_and_what_the_cache_saved() {
        let tokens = Usage::from_numbers([1000, 900_000, 20_000, 20_000, 0, 3000, 0]);
        let costs = TokenCosts {
            input: 1.0,
            cache_read: 2.0,
            cache_write: 3.0,
            output: 4.0,
            prompt_without_cache: 16.0,
        };
        let table = token_cost_table(&tokens, &costs).0;
        for shown in ["$2.00", "900k", "20%", "saved <b>$10.00</b> of $20.00"] {
            assert!(table.contains(shown), "{shown}: {table}");
        }
        assert!(table.contains("title=\"900,000 tokens\""), "{table}");
        let dear = TokenCosts { prompt_without_cache: 2.0, ..costs };
        assert!(!token_cost_table(&tokens, &dear).0.contains("saved"));
        assert_eq!(cached_share(&tokens).as_deref(), Some("98%"));
    }
}
