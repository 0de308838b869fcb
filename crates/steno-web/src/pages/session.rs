//! One session: its first entries at once, the others as they come into sight.

use std::ops::Range;

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use maud::{Markup, PreEscaped, html};
use serde::Deserialize;
use steno_core::entry::PRIMARY;
use steno_core::index::text;
use steno_core::problem::Problem;
use steno_core::vault::notes::Note;
use steno_core::{Entry, Kind, Role, Session, Transcript};

use crate::app::WebApp;
use crate::error::WebError;
use crate::heading;
use crate::library::{Library, Opened};
use crate::page;
use crate::pages::address;
use crate::render::{Show, is_bad, minimap};

/// How many entries are asked for at once.
const CHUNK: usize = 60;

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

/// From which entry one goes on, to what.
#[derive(Deserialize)]
pub(crate) struct Step {
    from: Option<usize>,
    of: Sort,
    #[serde(default)]
    back: bool,
}

/// What one goes on to.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Sort {
    Prompt,
    Error,
}

impl Sort {
    fn fits(self, entry: &Entry) -> bool {
        match self {
            Sort::Prompt => {
                let is_prompt = entry.role == Role::User && entry.kind == Kind::Text;
                is_prompt && entry.source == PRIMARY
            }
            Sort::Error => is_bad(entry),
        }
    }
}

/// The page.
pub(crate) async fn page(
    State(app): State<WebApp>,
    Path((agent, id)): Name,
) -> Result<Markup, WebError> {
    let can_change = app.resume.is_some();
    app.run_blocking(move |library| {
        let opened = library.open(&agent, &id)?;
        let notes = opened.dir.notes()?;
        let Transcript { session, entries, .. } = &opened.transcript;
        let bar = html! { (heading::find_box(true)) (heading::buttons()) };
        let body = html! {
            main #main .reading
                data-session=(address(&agent, &session.id))
                data-entries=(entries.len())
                data-chunk=(CHUNK)
                data-runs=[heading::runs(&opened.lanes)]
            {
                (heading::of(session, &library.zone))
                (problems(&opened.transcript.problems))
                (problems(&notes.problems))
                (tools(&opened, can_change))
                (heading::notes(&Note::of_session(&notes.all, entries), &library.zone))
                #entries { (chunks(library, &opened, &notes.all)) }
            }
            (minimap::strip(entries, &opened.lanes))
            button #fresh .fresh type="button" hidden { "New entries" }
            @if can_change { (note_form(session)) }
        };
        Ok(page::framed(&heading::title(session), "/", &bar, &body))
    })
    .await
}

fn tools(opened: &Opened, can_change: bool) -> Markup {
    let session = &opened.transcript.session;
    let here = address(&session.agent, &session.id);
    let api = api_address(session);
    html! {
        p.tools {
            a href={ (here) "/replay" } { "Replay" }
            a href={ "/compare?a=" (session.agent) "/" (session.id) } { "Compare" }
            a href={ (api) "/entries" } { "JSON" }
            @if can_change {
                button #annotate type="button" title="Note (a)" { "Note" }
                button #resume type="button" data-resume={ (api) "/resume" } { "Resume" }
                output #resumed for="resume" {}
            }
        }
    }
}

/// Where the API tells of a session.
fn api_address(session: &Session) -> String {
    format!("/api/sessions/{}/{}", session.agent, session.id)
}

/// Where a note is written.
fn note_form(session: &Session) -> Markup {
    html! {
        dialog #note aria-labelledby="note-title" {
            form method="dialog" data-notes={ (api_address(session)) "/notes" } {
                h2 #note-title { "Note" }
                textarea name="text" rows="5" aria-label="What to note" placeholder="Markdown; #words are tags" required {}
                p.error role="alert" hidden {}
                p.tools { button value="save" { "Save" } button value="" formnovalidate { "Cancel" } }
            }
        }
    }
}

fn problems(problems: &[Problem]) -> Markup {
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
fn chunks(library: &Library, opened: &Opened, notes: &[Note]) -> Markup {
    let count = opened.transcript.entries.len();
    html! {
        @for from in (0..count).step_by(CHUNK) {
            @let places = from..count.min(from + CHUNK);
            ol.entries.chunk data-from=(from) data-count=(places.len()) data-height=(height(opened, places.clone())) {
                @if from == 0 { (PreEscaped(shown(library, opened, notes, places))) }
            }
        }
    }
}

fn shown(library: &Library, opened: &Opened, notes: &[Note], places: Range<usize>) -> String {
    let session = &opened.transcript.session;
    let base = address(&session.agent, &session.id);
    let (zone, pictures, lanes) = (&library.zone, &opened.pictures, &opened.lanes);
    let show = Show { zone, pictures, base: Some(&base), lanes, notes };
    show.entries(&opened.transcript.entries, places)
}

/// About how many pixels some entries take: folded ones a line, others by their text.
fn height(opened: &Opened, places: Range<usize>) -> usize {
    let one = |entry: &Entry| match entry.kind {
        Kind::Text => 90 + entry.content.len() / 80 * 26,
        _ => 38,
    };
    let entries = places.map(|place| &opened.transcript.entries[opened.lanes.number(place)]);
    entries.map(|entry| one(entry).min(4000)).sum()
}

/// Some of its entries.
pub(crate) async fn part(
    State(app): State<WebApp>,
    Path((agent, id)): Name,
    Query(part): Query<Part>,
) -> Result<Markup, WebError> {
    app.run_blocking(move |library| {
        let opened = library.open(&agent, &id)?;
        let end = part.from.saturating_add(part.count.min(4 * CHUNK));
        let notes = opened.dir.notes()?.all;
        Ok(PreEscaped(shown(library, &opened, &notes, part.from..end)))
    })
    .await
}

/// What was noted about it.
pub(crate) async fn notes(
    State(app): State<WebApp>,
    Path((agent, id)): Name,
) -> Result<Markup, WebError> {
    app.run_blocking(move |library| {
        let opened = library.open(&agent, &id)?;
        let notes = opened.dir.notes()?.all;
        let notes = Note::of_session(&notes, &opened.transcript.entries);
        Ok(heading::notes(&notes, &library.zone))
    })
    .await
}

/// The number of the next entry that is a prompt or went wrong, from some entry on or, with `back`, before it.
pub(crate) async fn step(
    State(app): State<WebApp>,
    Path((agent, id)): Name,
    Query(Step { from, of, back }): Query<Step>,
) -> Result<Json<Option<usize>>, WebError> {
    app.run_blocking(move |library| {
        let opened = library.open(&agent, &id)?;
        let (entries, lanes) = (&opened.transcript.entries, &opened.lanes);
        let fits = |number: &usize| entries.get(*number).is_some_and(|entry| of.fits(entry));
        let place = from.map(|number| lanes.place(number));
        Ok(Json(if back {
            (0..place.unwrap_or(0)).rev().map(|place| lanes.number(place)).find(fits)
        } else {
            let begin = place.map_or(0, |place| place + 1);
            (begin..entries.len()).map(|place| lanes.number(place)).find(fits)
        }))
    })
    .await
}

/// The numbers of the entries that hold some words.
pub(crate) async fn find(
    State(app): State<WebApp>,
    Path((agent, id)): Name,
    Query(Words { q }): Query<Words>,
) -> Result<Json<Vec<usize>>, WebError> {
    app.run_blocking(move |library| {
        let opened = library.open(&agent, &id)?;
        let wanted = q.trim().to_lowercase();
        let holds = |(_, entry): &(usize, &Entry)| {
            let said = entry.content.to_lowercase().contains(&wanted);
            said || (entry.tool_input.is_some() && text::of(entry).to_lowercase().contains(&wanted))
        };
        if wanted.is_empty() {
            return Ok(Json(Vec::new()));
        }
        Ok(Json(opened.in_order().filter(holds).map(|(number, _)| number).collect()))
    })
    .await
}

/// All that one entry says, as it is.
pub(crate) async fn entry(
    State(app): State<WebApp>,
    Path((agent, id, number)): Path<(String, String, usize)>,
) -> Result<Response, WebError> {
    app.run_blocking(move |library| {
        let opened = library.open(&agent, &id)?;
        let entry = opened.transcript.entries.get(number);
        let entry = entry.ok_or_else(|| WebError::Unknown(format!("{agent}/{id}:{number}")))?;
        Ok(([(CONTENT_TYPE, "text/plain; charset=utf-8")], text::of(entry)).into_response())
    })
    .await
}

/// One of its pictures.
pub(crate) async fn picture(
    State(app): State<WebApp>,
    Path((agent, id, sum)): Path<(String, String, String)>,
) -> Result<Response, WebError> {
    app.run_blocking(move |library| {
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
