//! What was billed: charts and tables by day, model, project, agent and the like, and blocks.

use axum::extract::{Query, State};
use maud::{Markup, html};
use steno_core::cost::report::{By, Group, Row, Sum};
use steno_core::view::amount::{cost, dollars, short};
use steno_core::view::answer::cost::{moment, unpriced};

use crate::app::WebApp;
use crate::asked::Asked;
use crate::chart;
use crate::error::WebError;
use crate::library::{Accounts, Library};
use crate::page;
use crate::render::plain::clean;

/// By what is added up, in the order of the tabs; blocks stand for themselves.
pub(crate) const GROUPS: [By; 8] =
    [By::Day, By::Week, By::Month, By::Model, By::Project, By::Agent, By::Session, By::Thread];

/// How many bars a chart has at most, and how many rows a table.
const BARS: usize = 60;
const ROWS: usize = 200;

/// A row as it is shown: its name, where it leads, and its sum.
type Line<'a> = (String, Option<String>, &'a Sum);

/// The page.
pub(crate) async fn page(
    State(app): State<WebApp>,
    Query(asked): Query<Asked>,
) -> Result<Markup, WebError> {
    app.run_blocking(move |library| {
        let accounts = library.accounts(asked.filter(library)?)?;
        let wanted: Vec<usize> = accounts.charges.select(&accounts.filter).collect();
        let total = accounts.charges.total(&accounts.costs, &wanted);
        let body = html! {
            h1 { "Cost" }
            (page::stale_notice(library.notice().as_deref()))
            (figures(&accounts, &total))
            nav.tabs aria-label="Add up by" {
                @for name in GROUPS.map(By::name).into_iter().chain(["block"]) {
                    @let is_current = name == group(&asked);
                    a href=(asked.with("/cost", "by", name)) aria-current=[is_current.then_some("true")] { "By " (name) }
                }
            }
            @match group_by(&asked) {
                Some(by) => (rows(library, &accounts, by, &wanted)),
                None => (blocks(library, &accounts)),
            }
        };
        Ok(page::shell("Cost", "/cost", &body))
    })
    .await
}

fn group(asked: &Asked) -> &str {
    if asked.by.is_empty() { "day" } else { &asked.by }
}

/// By what is asked to be added up; nothing for blocks.
pub(crate) fn group_by(asked: &Asked) -> Option<By> {
    GROUPS.into_iter().find(|by| by.name() == group(asked))
}

fn figures(accounts: &Accounts, total: &Sum) -> Markup {
    let tokens = total.tokens();
    let missing = unpriced(&accounts.charges, total);
    html! {
        ul.figures {
            li { b { (cost(total)) } small { "in all" } }
            li { b { (short(tokens.input.saturating_add(tokens.cache_write))) } small { "tokens in" } }
            li { b { (short(tokens.cache_read)) } small { "read from caches" } }
            li { b { (short(tokens.output)) } small { "tokens out" } }
            li { b { (total.sessions.len()) } small { "sessions" } }
        }
        @if !missing.is_empty() {
            p { small { "No price is known of: " (clean(&missing.join(", "))) } }
        }
    }
}

fn rows(library: &Library, accounts: &Accounts, by: By, wanted: &[usize]) -> Markup {
    let group = Group { by, zone: &library.zone };
    let rows = accounts.charges.rows(&accounts.costs, wanted, &group);
    let is_time = matches!(by, By::Day | By::Week | By::Month);
    let mut lines: Vec<Line<'_>> = rows.iter().map(|row| line(accounts, by, row)).collect();
    let charted = if is_time {
        lines.len().saturating_sub(BARS)..lines.len()
    } else {
        0..lines.len().min(20)
    };
    let bars: Vec<_> =
        lines[charted].iter().map(|(name, _, sum)| (name.clone(), sum.cost())).collect();
    if is_time {
        lines.reverse();
    }
    html! {
        @if lines.is_empty() { p.empty { "Nothing was billed." } }
        @else { (chart::bars(&format!("Cost by {}", by.name()), &bars)) (table(by.name(), &lines)) }
    }
}

fn line<'a>(accounts: &Accounts, by: By, row: &'a Row) -> Line<'a> {
    let account = row.sum.sessions.iter().map(|at| &accounts.charges.accounts[*at]).next();
    match account.filter(|_| by == By::Session) {
        Some(account) => {
            let name = account.title.clone().unwrap_or_else(|| account.session.clone());
            (name, Some(format!("/session/{}/{}", account.agent, account.session)), &row.sum)
        }
        None => {
            let name = row.key.clone().unwrap_or_else(|| format!("no {}", by.name()));
            (name, None, &row.sum)
        }
    }
}

fn blocks(library: &Library, accounts: &Accounts) -> Markup {
    let (blocks, _) = accounts.charges.blocks_begun(&accounts.costs, &accounts.filter);
    let now = library.clock.now().instant().as_millisecond();
    let used: Vec<_> = blocks.iter().filter(|block| !block.is_gap).collect();
    let name = |start: i64| {
        let at = moment(start).map(|at| at.in_zone(&library.zone).wall());
        at.map(|at| at.strftime("%Y-%m-%d %H:%M").to_string()).unwrap_or_default()
    };
    let lines: Vec<Line<'_>> =
        used.iter().rev().map(|block| (name(block.start), None, &block.sum)).collect();
    let recent = &used[used.len().saturating_sub(BARS)..];
    let bars: Vec<_> = recent.iter().map(|block| (name(block.start), block.sum.cost())).collect();
    let open = used.last().filter(|block| block.is_active(now));
    html! {
        p { small { "Blocks of five hours, in which Claude's plans are limited." } }
        @if let Some((open, end)) = open.and_then(|open| Some((open, open.projection(now)?))) {
            p.card {
                "The open block ends in " b { (end.minutes_left) " minutes" } ", at "
                b { (end.cost.map_or("an unknown cost".to_owned(), dollars)) }
                @if let Some(rate) = open.burn().and_then(|burn| burn.cost_per_hour) {
                    " if it goes on at " (dollars(rate)) " an hour"
                }
                "."
            }
        }
        @if lines.is_empty() { p.empty { "Nothing was billed." } }
        @else { (chart::bars("Cost by block", &bars)) (table("block", &lines)) }
    }
}

fn table(heading: &str, lines: &[Line<'_>]) -> Markup {
    let largest = lines.iter().filter_map(|(_, _, sum)| sum.cost()).fold(0.0, f64::max);
    html! {
        table.sums {
            thead {
                tr { th { (heading) } th { "In" } th { "Cached" } th { "Out" } th { "Cost" } th.share { "Share" } }
            }
            tbody {
                @for (name, place, sum) in lines.iter().take(ROWS) {
                    @let tokens = sum.tokens();
                    tr {
                        td {
                            @match place {
                                Some(place) => a href=(place) { (clean(name)) },
                                None => (clean(name)),
                            }
                        }
                        td { (short(tokens.input.saturating_add(tokens.cache_write))) }
                        td { (short(tokens.cache_read)) }
                        td { (short(tokens.output)) }
                        td { (cost(sum)) }
                        td.share { (chart::share(sum.cost().unwrap_or(0.0) / largest.max(1e-9))) }
                    }
                }
            }
        }
        @if lines.len() > ROWS { p { small { (lines.len() - ROWS) " more" } } }
    }
}
