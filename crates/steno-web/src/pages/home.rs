//! The start page: all sessions by day, with a filter and the cost of each.

use axum::extract::{Query, State};
use jiff::civil::Date;
use maud::{Markup, html};
use serde::Deserialize;
use steno_model::Session;
use steno_store::index::ListedSession;
use steno_store::view::amount::{format_cost, format_count, format_dollars};

use crate::app::WebApp;
use crate::error::WebError;
use crate::library::{SessionLibrary, SessionListing};
use crate::pages::session_address;
use crate::render::plain::clean_text;
use crate::{heading, page};

/// How many sessions are listed; the filter finds the others.
const MAX_SESSIONS: usize = 300;

/// The text in the filter.
#[derive(Deserialize)]
pub(crate) struct HomeQuery {
    #[serde(default)]
    filter: String,
}

/// The start page.
pub(crate) async fn home_page(
    State(app): State<WebApp>,
    Query(query): Query<HomeQuery>,
) -> Result<Markup, WebError> {
    app.run_blocking(move |library| {
        let body = html! {
            h1 { "Sessions" }
            .filters {
                input #filter data-server type="search" value=(query.filter) autocomplete="off"
                    placeholder="Filter by title, agent, project or model"
                    aria-label="Filter by title, agent, project or model";
            }
            #sessions data-live="sessions" { (session_rows(library, &query.filter)?) }
        };
        Ok(page::page_shell("Sessions", "/", &body))
    })
    .await
}

/// The list of sessions without the page, for updates.
pub(crate) async fn session_list(
    State(app): State<WebApp>,
    Query(query): Query<HomeQuery>,
) -> Result<Markup, WebError> {
    app.run_blocking(move |library| session_rows(library, &query.filter)).await
}

fn session_rows(library: &SessionLibrary, filter: &str) -> Result<Markup, WebError> {
    let listing = library.session_listing()?;
    let words: Vec<String> = filter.split_whitespace().map(str::to_lowercase).collect();
    let matching: Vec<&ListedSession> =
        listing.sessions.iter().filter(|one| matches_words(&one.session, &words)).collect();
    let shown = &matching[..matching.len().min(MAX_SESSIONS)];
    let days =
        shown.chunk_by(|a, b| start_date(library, &a.session) == start_date(library, &b.session));
    Ok(html! {
        (page::stale_notice(library.index_notice().as_deref()))
        (page::damage_notice(&library.damage_warnings()?))
        p.found role="status" {
            (matching.len()) @if matching.len() == 1 { " session" } @else { " sessions" }
            @if matching.len() > MAX_SESSIONS { ", showing the newest " (MAX_SESSIONS) }
        }
        @if matching.is_empty() {
            p.empty {
                @if words.is_empty() {
                    "No sessions yet. Run " code { "steno sync" } " to import the sessions of agents on this machine."
                } @else { "No session matches the filter." }
            }
        }
        @for sessions in days {
            h2 { (day_heading(start_date(library, &sessions[0].session))) }
            ul.rows { @for one in sessions { li { (session_row(library, &listing, one)) } } }
        }
    })
}

fn matches_words(session: &Session, words: &[String]) -> bool {
    let texts = [session.title.as_deref(), Some(&session.agent), session.project.as_deref()];
    let texts = texts.into_iter().flatten().chain(session.models.iter().map(String::as_str));
    let all = texts.chain([session.id.as_str()]).collect::<Vec<_>>().join("\n").to_lowercase();
    words.iter().all(|word| all.contains(word))
}

fn start_date(library: &SessionLibrary, session: &Session) -> Option<Date> {
    session.started.map(|at| at.in_zone(&library.zone).wall().date())
}

fn day_heading(day: Option<Date>) -> String {
    day.map_or_else(|| "No date".to_owned(), |day| day.strftime("%A, %-d %B %Y").to_string())
}

fn session_row(library: &SessionLibrary, listing: &SessionListing, one: &ListedSession) -> Markup {
    let session = &one.session;
    let key = (session.agent.clone(), session.id.to_string());
    let started = session.started.map(|at| at.in_zone(&library.zone).wall());
    let usage = &session.totals.usage;
    let spent = match (session.totals.cost, listing.costs.get(&key)) {
        (_, Some(sum)) => Some(format_cost(sum)),
        (recorded, None) => recorded.map(format_dollars),
    };
    html! {
        a.row href=(session_address(&session.agent, &session.id)) {
            span.when { @if let Some(at) = started { (at.strftime("%H:%M")) } }
            span.title { (heading::session_title(session)) }
            span.sum {
                (spent.unwrap_or_default())
                small {
                    @if !usage.is_empty() { (format_count(usage.prompt_tokens().saturating_add(usage.output))) " tokens" }
                }
            }
            span.more {
                span { (heading::agent_badge(session)) }
                @if let Some(project) = &session.project { span { (clean_text(short_path(project))) } }
                span { (heading::entry_count(session)) }
                @if let Some(length) = heading::session_duration(session) { span { (length) } }
                @if let Some(failures) = listing.failures.get(&key) {
                    span.errors { (failures) @if *failures == 1 { " error" } @else { " errors" } }
                }
                @if let Some(trouble) = &one.problem { span.errors { (clean_text(trouble)) } }
            }
        }
    }
}

/// The last two segments of a path.
pub(crate) fn short_path(path: &str) -> &str {
    let end = path.trim_end_matches('/');
    let cut = end.match_indices('/').rev().nth(1).map_or(0, |(at, _)| at + 1);
    &end[cut..]
}
