//! One session: its first entries at once, the others as they come into sight.

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use maud::{Markup, PreEscaped, html};
use serde::Deserialize;
use steno_core::Entry;
use steno_core::index::text;

use crate::error::WebError;
use crate::heading;
use crate::library::{Library, Opened};
use crate::page;
use crate::pages::address;
use crate::render::{Show, minimap};
use crate::routes::App;

/// How many entries are asked for at once.
const CHUNK: usize = 60;

/// How many places a search in a session gives at most.
const PLACES: usize = 2000;

/// Which session.
pub(crate) type Name = Path<(String, String)>;

/// Which entries of it.
#[derive(Deserialize)]
pub(crate) struct Part {
    from: usize,
    count: usize,
}

/// What to look for in it.
#[derive(Deserialize)]
pub(crate) struct Words {
    q: String,
}

/// The page.
pub(crate) async fn page(
    State(app): State<App>,
    Path((agent, id)): Name,
) -> Result<Markup, WebError> {
    let can_resume = app.resume.is_some();
    app.work(move |library| {
        let opened = library.open(&agent, &id)?;
        let session = &opened.transcript.session;
        let bar = html! { (heading::find_box(true)) (heading::buttons()) };
        let body = html! {
            main #main .reading
                data-session=(address(&agent, &session.id))
                data-entries=(opened.transcript.entries.len())
                data-chunk=(CHUNK)
            {
                (heading::of(session, &library.zone))
                (problems(&opened))
                (tools(&opened, can_resume))
                #entries { (chunks(library, &opened)) }
            }
            (minimap::strip(&opened.transcript.entries))
            button #fresh .fresh type="button" hidden { "New entries" }
        };
        Ok(page::framed(&heading::title(session), ("/", &bar), &body))
    })
    .await
}

fn tools(opened: &Opened, can_resume: bool) -> Markup {
    let session = &opened.transcript.session;
    let here = address(&session.agent, &session.id);
    html! {
        p.tools {
            a href={ (here) "/replay" } { "Replay" }
            a href={ "/compare?a=" (session.agent) "/" (session.id) } { "Compare" }
            a href={ "/api/sessions/" (session.agent) "/" (session.id) "/entries" } { "JSON" }
            @if can_resume {
                button #resume type="button" data-resume={ "/api/sessions/" (session.agent) "/" (session.id) "/resume" } { "Resume" }
                output #resumed for="resume" {}
            }
        }
    }
}

fn problems(opened: &Opened) -> Markup {
    let problems = &opened.transcript.problems;
    html! {
        @if !problems.is_empty() {
            details.error {
                summary { b { (problems.len()) " of its records could not be read" } }
                pre tabindex="0" { @for problem in problems { (problem.to_string()) "\n" } }
            }
        }
    }
}

/// The first chunk, and how high each of the others may be.
fn chunks(library: &Library, opened: &Opened) -> Markup {
    let entries = &opened.transcript.entries;
    html! {
        @for (at, chunk) in entries.chunks(CHUNK).enumerate() {
            section.chunk data-from=(at * CHUNK) data-count=(chunk.len()) data-height=(height(chunk)) {
                @if at == 0 { (PreEscaped(shown(library, opened, 0..chunk.len()))) }
            }
        }
    }
}

fn shown(library: &Library, opened: &Opened, range: std::ops::Range<usize>) -> String {
    let session = &opened.transcript.session;
    let base = address(&session.agent, &session.id);
    let show = Show { zone: &library.zone, pictures: &opened.pictures, base: Some(&base) };
    show.entries(&opened.transcript.entries, range)
}

/// About how many pixels some entries take: folded ones a line, others by their text.
fn height(entries: &[Entry]) -> usize {
    let one = |entry: &Entry| match entry.kind {
        steno_core::Kind::Text => 90 + entry.content.len() / 80 * 26,
        _ => 38,
    };
    entries.iter().map(|entry| one(entry).min(4000)).sum()
}

/// Some of its entries.
pub(crate) async fn part(
    State(app): State<App>,
    Path((agent, id)): Name,
    Query(part): Query<Part>,
) -> Result<Markup, WebError> {
    app.work(move |library| {
        let opened = library.open(&agent, &id)?;
        let end = part.from.saturating_add(part.count.min(4 * CHUNK));
        Ok(PreEscaped(shown(library, &opened, part.from..end)))
    })
    .await
}

/// The numbers of the entries that hold some words.
pub(crate) async fn find(
    State(app): State<App>,
    Path((agent, id)): Name,
    Query(Words { q }): Query<Words>,
) -> Result<Json<Vec<usize>>, WebError> {
    app.work(move |library| {
        let opened = library.open(&agent, &id)?;
        let wanted = q.trim().to_lowercase();
        let holds = |(_, entry): &(usize, &Entry)| {
            let said = entry.content.to_lowercase().contains(&wanted);
            said || (entry.tool_input.is_some() && text::of(entry).to_lowercase().contains(&wanted))
        };
        let found = opened.transcript.entries.iter().enumerate().filter(holds).map(|(at, _)| at);
        Ok(Json(if wanted.is_empty() { Vec::new() } else { found.take(PLACES).collect() }))
    })
    .await
}

/// All that one entry says, as it is.
pub(crate) async fn entry(
    State(app): State<App>,
    Path((agent, id, number)): Path<(String, String, usize)>,
) -> Result<Response, WebError> {
    app.work(move |library| {
        let opened = library.open(&agent, &id)?;
        let entry = opened.transcript.entries.get(number);
        let entry = entry.ok_or_else(|| WebError::Unknown(format!("{agent}/{id}:{number}")))?;
        Ok(([(CONTENT_TYPE, "text/plain; charset=utf-8")], text::of(entry)).into_response())
    })
    .await
}

/// One of its pictures.
pub(crate) async fn picture(
    State(app): State<App>,
    Path((agent, id, sum)): Path<(String, String, String)>,
) -> Result<Response, WebError> {
    app.work(move |library| {
        let opened = library.open(&agent, &id)?;
        let unknown = || WebError::Unknown(sum.clone());
        let picture = opened.pictures.get(&sum).ok_or_else(unknown)?;
        let bytes = STANDARD.decode(&picture.base64).map_err(|_| unknown())?;
        let headers =
            [(CONTENT_TYPE, picture.media_type), (CACHE_CONTROL, "private, max-age=86400")];
        Ok((headers, bytes).into_response())
    })
    .await
}
