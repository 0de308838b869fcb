//! All sessions by day, with a filter and what each adds up to.

use axum::extract::{Query, State};
use jiff::civil::Date;
use maud::{Markup, html};
use serde::Deserialize;
use steno_core::Session;
use steno_core::index::Listed;
use steno_core::view::amount::{cost, dollars, short};

use crate::app::WebApp;
use crate::error::WebError;
use crate::heading;
use crate::library::{Library, Listing};
use crate::page;
use crate::pages::address;
use crate::render::plain::clean;

/// How many sessions are listed; a filter finds the others.
const SHOWN: usize = 300;

/// What is typed into the filter.
#[derive(Deserialize)]
pub(crate) struct Asked {
    #[serde(default)]
    filter: String,
}

/// The page.
pub(crate) async fn page(
    State(app): State<WebApp>,
    Query(asked): Query<Asked>,
) -> Result<Markup, WebError> {
    app.run_blocking(move |library| {
        let body = html! {
            h1 { "Sessions" }
            .filters {
                input #filter data-server type="search" value=(asked.filter) autocomplete="off"
                    placeholder="Filter by title, agent, project or model"
                    aria-label="Filter by title, agent, project or model";
            }
            #sessions data-live="sessions" { (rows(library, &asked.filter)?) }
        };
        Ok(page::shell("Sessions", "/", &body))
    })
    .await
}

/// The list alone.
pub(crate) async fn list(
    State(app): State<WebApp>,
    Query(asked): Query<Asked>,
) -> Result<Markup, WebError> {
    app.run_blocking(move |library| rows(library, &asked.filter)).await
}

fn rows(library: &Library, filter: &str) -> Result<Markup, WebError> {
    let listing = library.listing()?;
    let words: Vec<String> = filter.split_whitespace().map(str::to_lowercase).collect();
    let found: Vec<&Listed> =
        listing.sessions.iter().filter(|one| fits(&one.session, &words)).collect();
    let shown = &found[..found.len().min(SHOWN)];
    let days = shown.chunk_by(|a, b| day(library, &a.session) == day(library, &b.session));
    Ok(html! {
        (page::stale_notice(library.notice().as_deref()))
        p.found role="status" {
            (found.len()) @if found.len() == 1 { " session" } @else { " sessions" }
            @if found.len() > SHOWN { ", the newest " (SHOWN) " of them below" }
        }
        @if found.is_empty() {
            p.empty {
                @if words.is_empty() { "Nothing is kept yet. Run " code { "steno sync" } " to keep what agents have left here." }
                @else { "No session fits that." }
            }
        }
        @for sessions in days {
            h2 { (named(day(library, &sessions[0].session))) }
            ul.rows { @for one in sessions { li { (row(library, &listing, one)) } } }
        }
    })
}

fn fits(session: &Session, words: &[String]) -> bool {
    let texts = [session.title.as_deref(), Some(&session.agent), session.project.as_deref()];
    let texts = texts.into_iter().flatten().chain(session.models.iter().map(String::as_str));
    let all = texts.chain([session.id.as_str()]).collect::<Vec<_>>().join("\n").to_lowercase();
    words.iter().all(|word| all.contains(word))
}

fn day(library: &Library, session: &Session) -> Option<Date> {
    session.started.map(|at| at.in_zone(&library.zone).wall().date())
}

fn named(day: Option<Date>) -> String {
    day.map_or_else(|| "No date".to_owned(), |day| day.strftime("%A, %-d %B %Y").to_string())
}

fn row(library: &Library, listing: &Listing, one: &Listed) -> Markup {
    let session = &one.session;
    let key = (session.agent.clone(), session.id.to_string());
    let started = session.started.map(|at| at.in_zone(&library.zone).wall());
    let usage = &session.totals.usage;
    let spent = match (session.totals.cost, listing.costs.get(&key)) {
        (_, Some(sum)) => Some(cost(sum)),
        (stated, None) => stated.map(dollars),
    };
    html! {
        a.row href=(address(&session.agent, &session.id)) {
            span.when { @if let Some(at) = started { (at.strftime("%H:%M")) } }
            span.title { (heading::title(session)) }
            span.sum { (spent.unwrap_or_default()) small { @if !usage.is_empty() { (short(usage.prompt().saturating_add(usage.output))) " tokens" } } }
            span.more {
                span { (heading::agent(session)) }
                @if let Some(project) = &session.project { span { (clean(short_path(project))) } }
                span { (heading::entries(session)) }
                @if let Some(length) = heading::duration(session) { span { (length) } }
                @if let Some(failures) = listing.failures.get(&key) {
                    span.errors { (failures) @if *failures == 1 { " error" } @else { " errors" } }
                }
                @if let Some(trouble) = &one.trouble { span.errors { (clean(trouble)) } }
            }
        }
    }
}

/// The last two parts of a folder's name.
pub(crate) fn short_path(path: &str) -> &str {
    let end = path.trim_end_matches('/');
    let cut = end.match_indices('/').rev().nth(1).map_or(0, |(at, _)| at + 1);
    &end[cut..]
}
