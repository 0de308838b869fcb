//! The results of the palette (Ctrl-K): sessions and search hits, as one types.
//!
//! Its commands are part of every page, see `page.rs`.

use axum::extract::Query;
use maud::{Markup, html};
use serde::Deserialize;
use steno_model::Session;
use steno_store::index::SearchHit;
use steno_store::index::match_lines::{LineLimits, MatchLine};

use crate::addresses::session_address;
use crate::app::WebApp;
use crate::error::WebError;
use crate::filter_query::{FilterQuery, encode_query_text};
use crate::heading;
use crate::library::SessionLibrary;
use crate::list_filter::{IgnoredCondition, ListFilter};
use crate::project_names::ProjectNames;
use crate::render::diff::marked_line;
use crate::render::plain::clean_text;
use crate::units::exact_count;
use crate::viewer::PageViewer;

/// How many sessions and search hits are offered.
const MAX_SESSIONS: usize = 8;
const MAX_HITS: usize = 6;

/// How many hits are looked at, so that several of one session do not hide other sessions.
const MAX_LOOKED_AT: usize = 24;

/// How many bytes of a line are shown before its first match.
const MAX_BEFORE_MATCH: usize = 16;

/// The shortest text that is searched for.
const MIN_SEARCH_CHARS: usize = 2;

/// What was typed.
#[derive(Deserialize)]
pub(crate) struct PaletteQuery {
    #[serde(default)]
    q: String,
    /// Whether only sessions are wanted, to choose one.
    #[serde(default)]
    sessions: bool,
}

/// The sessions and search hits for what was typed.
pub(crate) async fn palette_results(
    app: WebApp,
    viewer: PageViewer,
    Query(query): Query<PaletteQuery>,
) -> Result<Markup, WebError> {
    app.run_blocking(move |library| {
        let filter = ListFilter { filter: query.q.clone(), ..ListFilter::default() };
        let matcher = filter.to_matcher(&viewer.local_now(&library.clock))?;
        let listing = library.session_listing()?;
        let sessions = listing.sessions.iter().map(|one| &one.session);
        let sessions = sessions.filter(|one| matcher.matches(one, IgnoredCondition::Nothing));
        let sessions: Vec<&Session> = sessions.collect();
        Ok(html! {
            @for session in sessions.iter().take(MAX_SESSIONS) { (session_option(session, &listing.projects, &viewer)) }
            @if !query.sessions && sessions.len() > MAX_SESSIONS { (list_option(&query.q, sessions.len())) }
            @if !query.sessions && query.q.trim().chars().count() >= MIN_SEARCH_CHARS { (hit_options(library, &query.q)) }
        })
    })
    .await
}

/// The option that leads to the list with all sessions of which only the first are offered.
fn list_option(typed: &str, sessions: usize) -> Markup {
    let filter = encode_query_text(typed.trim());
    let address = if filter.is_empty() { "/".to_owned() } else { format!("/?filter={filter}") };
    html! {
        li role="option" data-href=(address) {
            b { "List" }
            span { "Show all " (exact_count(sessions as u64)) " sessions" @if !filter.is_empty() { " with “" (clean_text(typed.trim())) "”" } }
            small { (MAX_SESSIONS) " of " (exact_count(sessions as u64)) " above" }
        }
    }
}

fn session_option(session: &Session, names: &ProjectNames, viewer: &PageViewer) -> Markup {
    let address = session_address(&session.agent, &session.id);
    let date =
        session.started.map(|at| at.in_zone(&viewer.zone).wall().strftime("%-d %b %Y").to_string());
    html! {
        li role="option" data-href=(address) data-name={ (session.agent) "/" (session.id) } {
            b { "Session" }
            span { (heading::session_title(session)) }
            small {
                (clean_text(&session.agent))
                @if let Some(project) = &session.project { " · " (clean_text(names.name(project))) }
                @if let Some(date) = date { " · " (date) }
            }
        }
    }
}

/// The best hits; none while the query is incomplete, such as an open quotation mark.
fn hit_options(library: &SessionLibrary, typed: &str) -> Markup {
    let is_word = typed.chars().next_back().is_some_and(char::is_alphanumeric);
    // The last word is still being typed.
    let asked = if is_word { format!("{typed}*") } else { typed.to_owned() };
    let filters = FilterQuery { q: asked, ..FilterQuery::default() };
    let Ok((question, hits)) = filters.search(library, &library.zone, MAX_LOOKED_AT) else {
        return html! {};
    };
    let marks = encode_query_text(typed.trim());
    html! {
            @for (hit, more) in best_of_sessions(&hits) {
                @let place = format!("{}?marks={marks}#e{}", session_address(&hit.agent, &hit.session), hit.number);
                li role="option" data-href=(place) {
                    b { "Found" }
                    span {
                        @for line in question.matching_lines(&hit.text, LineLimits { max_lines: 1, context_lines: 0 }) {
                            (cut_line(&line))
                        }
                    }
                    small {
                        (clean_text(hit.title.as_deref().unwrap_or(hit.session.as_str())))
                        @if more > 0 { " · " (more) " more" }
                    }
                }
            }
    li role="option" data-href={ "/search?q=" (marks) } { b { "Search" } span { "Show all results in all sessions for “" (clean_text(typed.trim())) "”" } }
        }
}

/// The best hit of each session, and how many others of it were looked at.
fn best_of_sessions(hits: &[SearchHit]) -> Vec<(&SearchHit, usize)> {
    let mut best: Vec<(&SearchHit, usize)> = Vec::new();
    for hit in hits {
        let is_same = |known: &SearchHit| known.agent == hit.agent && known.session == hit.session;
        match best.iter_mut().find(|(known, _)| is_same(known)) {
            Some((_, more)) => *more += 1,
            None => best.push((hit, 0)),
        }
    }
    best.truncate(MAX_HITS);
    best
}

/// A line that begins shortly before its first match.
fn cut_line(line: &MatchLine) -> Markup {
    let begin = line.marks.first().map_or(0, |mark| mark.start.saturating_sub(MAX_BEFORE_MATCH));
    let begin = (begin..line.text.len()).find(|at| line.text.is_char_boundary(*at)).unwrap_or(0);
    let marks: Vec<_> =
        line.marks.iter().map(|mark| mark.start - begin..mark.end - begin).collect();
    html! { @if begin > 0 { "…" } (marked_line(&line.text[begin..], &marks)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_begins_shortly_before_its_match() {
        let text = format!("{}needle é", "é".repeat(40));
        let line = |text: String, mark| MatchLine { number: 1, text, marks: vec![mark] };
        let shown = cut_line(&line(text, 80..86)).0;
        assert_eq!(shown, format!("…{}<mark>needle</mark> é", "é".repeat(8)));
        assert_eq!(cut_line(&line("a needle".to_owned(), 2..8)).0, "a <mark>needle</mark>");
    }
}
