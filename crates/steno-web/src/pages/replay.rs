//! The replay page: a session over time, and the file changes up to a moment.

use axum::extract::{Path, Query};
use maud::{Markup, PreEscaped, html};
use serde::Deserialize;
use serde_json::json;
use steno_model::Entry;
use steno_store::view::edits::{self, FileEdit};

use crate::addresses::{SessionPath, session_address, short_path};
use crate::app::WebApp;
use crate::error::WebError;
use crate::heading::{self, HeadingFacts};
use crate::help_dialog::HelpTopic;
use crate::library::OpenedSession;
use crate::page::{self, PageHead};
use crate::render::diff;
use crate::render::plain::clean_text;
use crate::units::count_of;
use crate::viewer::PageViewer;

/// How many edits are shown, latest first.
const MAX_EDITS: usize = 30;

/// The position up to which files are shown.
#[derive(Deserialize)]
pub(crate) struct ReplayPosition {
    at: usize,
}

/// The replay page.
pub(crate) async fn replay_page(
    app: WebApp,
    viewer: PageViewer,
    Path((agent, id)): SessionPath,
) -> Result<Markup, WebError> {
    app.run_blocking(move |library| {
        let opened = library.open_session(&agent, &id)?;
        let session = &opened.transcript.session;
        let entries = &opened.transcript.entries;
        let here = session_address(&agent, &session.id);
        let bar = html! {
            a.back href=(here) title="Read the whole session" { "Back to the session" }
            (page::common_buttons())
        };
        let facts = HeadingFacts {
            zone: &viewer.zone,
            status: library.status_check().status_of(session),
            cost: library.session_cost(&opened),
            fork: None,
            quality: None,
            entries,
        };
        let body = html! {
            main #main data-replay=(here) data-entries=(entries.len()) data-runs=[heading::lane_runs(&opened.lanes)] {
                (heading::session_heading(session, &facts))
                @if entries.is_empty() { p.empty { "This session has no entries to replay yet." } }
                .replay {
                    section.stage aria-label="Entries" aria-live="off" { ol #stage .entries {} }
                    section #files .files aria-label="Changed files" {}
                }
            }
            script #times type="application/json" { (PreEscaped(entry_times(&opened))) }
            @if !entries.is_empty() { (player_controls(entries.len())) }
        };
        Ok(PageHead::new(&heading::session_title(session), "/").viewed_by(&viewer).helps_with(HelpTopic::Replay).with_bar(&bar, &body))
    })
    .await
}

fn player_controls(count: usize) -> Markup {
    html! {
        .player role="region" aria-label="Replay" {
            button #step-back type="button" aria-label="Previous entry" title="Previous entry (←)" { "‹" }
            button #play type="button" title="Play or pause (Space). Pauses of the session are shortened to 5 seconds." { "Play" }
            button #step-on type="button" aria-label="Next entry" title="Next entry (→)" { "›" }
            label {
                select #speed aria-label="Speed" title="How many times faster than the session was" {
                    @for speed in ["1", "2", "5", "20", "100"] {
                        option value=(speed) selected[speed == "5"] { (speed) "×" }
                    }
                }
            }
            input #scrub type="range" min="0" max=(count.saturating_sub(1)) value="0" aria-label="Position in the session";
            output #moment for="scrub" title="The entry, and the time at which it was recorded" {}
        }
    }
}

/// The time of the entry at each position, in milliseconds since 1970; 0 if it is unknown.
fn entry_times(opened: &OpenedSession) -> String {
    let time = |entry: &Entry| entry.created_at.map_or(0, |at| at.instant().as_millisecond());
    json!(opened.entries_in_order().map(|(_, entry)| time(entry)).collect::<Vec<_>>()).to_string()
}

/// The files changed up to a position, latest change first.
pub(crate) async fn changed_files(
    app: WebApp,
    Path((agent, id)): SessionPath,
    Query(ReplayPosition { at }): Query<ReplayPosition>,
) -> Result<Markup, WebError> {
    app.run_blocking(move |library| {
        let opened = library.open_session(&agent, &id)?;
        let so_far = opened.entries_in_order().take(at.saturating_add(1)).enumerate();
        let all = so_far.flat_map(|(place, (_, entry))| {
            edits::find_edits(entry).into_iter().map(move |edit| (place, edit))
        });
        let all: Vec<(usize, FileEdit<'_>)> = all.collect();
        let mut paths: Vec<&str> = all.iter().map(|(_, edit)| edit.path).collect();
        paths.sort_unstable();
        paths.dedup();
        Ok(html! {
            h2 title="Files that tools had written up to this moment" { (count_of(paths.len() as u64, "file")) " changed" }
            @if paths.is_empty() { p.hint { "The changes of files appear here, latest first." } }
            @for (place, edit) in all.iter().rev().take(MAX_EDITS) {
                details.diff open[place + 20 > at] {
                    summary { code title=(clean_text(edit.path)) { (clean_text(short_path(edit.path))) } (diff::edit_amount(edit)) }
                    (diff::edit_lines(&edit.lines))
                }
            }
            @if all.len() > MAX_EDITS { p.hint { (count_of((all.len() - MAX_EDITS) as u64, "earlier edit")) @if all.len() == MAX_EDITS + 1 { " is" } @else { " are" } " not shown." } }
        })
    })
    .await
}
