//! A session as it happened: what was said up to a moment, and what files had become by then.

use axum::extract::{Path, Query, State};
use maud::{Markup, PreEscaped, html};
use serde::Deserialize;
use serde_json::json;
use steno_core::Entry;
use steno_core::view::edits::{self, Edit};

use crate::app::WebApp;
use crate::error::WebError;
use crate::heading;
use crate::library::Opened;
use crate::page;
use crate::pages::address;
use crate::pages::session::Name;
use crate::render::diff;
use crate::render::plain::clean;

/// How many edits are shown, the latest first.
const SHOWN: usize = 30;

/// Up to which place.
#[derive(Deserialize)]
pub(crate) struct Until {
    at: usize,
}

/// The page.
pub(crate) async fn page(
    State(app): State<WebApp>,
    Path((agent, id)): Name,
) -> Result<Markup, WebError> {
    app.run_blocking(move |library| {
        let opened = library.open(&agent, &id)?;
        let session = &opened.transcript.session;
        let entries = &opened.transcript.entries;
        let here = address(&agent, &session.id);
        let bar = html! { a href=(here) { "Read" } (heading::theme_button()) };
        let body = html! {
            main #main data-replay=(here) data-entries=(entries.len()) data-runs=[heading::runs(&opened.lanes)] {
                h1 { (heading::title(session)) }
                .replay {
                    section.stage aria-label="What was said" aria-live="off" { ol #stage .entries {} }
                    section #files .files aria-label="What files have become" {}
                }
            }
            script #times type="application/json" { (PreEscaped(times(&opened))) }
            (player(entries.len()))
        };
        Ok(page::framed(&heading::title(session), "/", &bar, &body))
    })
    .await
}

fn player(count: usize) -> Markup {
    html! {
        .player role="group" aria-label="Replay" {
            button #play type="button" { "Play" }
            label {
                select #speed aria-label="Speed" {
                    @for speed in ["1", "2", "5", "20", "100"] {
                        option value=(speed) selected[speed == "5"] { (speed) "×" }
                    }
                }
            }
            input #scrub type="range" min="0" max=(count.saturating_sub(1)) value="0" aria-label="Moment";
            output #moment for="scrub" {}
        }
    }
}

/// When the entry at each place was said, in milliseconds since 1970; 0 where that is not told.
fn times(opened: &Opened) -> String {
    let time = |entry: &Entry| entry.created_at.map_or(0, |at| at.instant().as_millisecond());
    json!(opened.in_order().map(|(_, entry)| time(entry)).collect::<Vec<_>>()).to_string()
}

/// The files that were changed up to a place, the latest change first.
pub(crate) async fn files(
    State(app): State<WebApp>,
    Path((agent, id)): Name,
    Query(Until { at }): Query<Until>,
) -> Result<Markup, WebError> {
    app.run_blocking(move |library| {
        let opened = library.open(&agent, &id)?;
        let so_far = opened.in_order().take(at.saturating_add(1)).enumerate();
        let all = so_far.flat_map(|(place, (_, entry))| {
            edits::of(entry).into_iter().map(move |edit| (place, edit))
        });
        let all: Vec<(usize, Edit<'_>)> = all.collect();
        let mut paths: Vec<&str> = all.iter().map(|(_, edit)| edit.path).collect();
        paths.sort_unstable();
        paths.dedup();
        Ok(html! {
            h2 { (paths.len()) @if paths.len() == 1 { " file changed" } @else { " files changed" } }
            @for (place, edit) in all.iter().rev().take(SHOWN) {
                details.diff open[place + 20 > at] {
                    summary { code { (clean(edit.path)) } (diff::amount(edit)) }
                    (diff::lines(&edit.lines))
                }
            }
        })
    })
    .await
}
