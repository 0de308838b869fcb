//! Foldable sections above the entries of a session: its prompts, subagents, the files that it changed, and its quality.
//!
//! They are rendered when the reader opens them, because a long session has many of each. A few subagents are listed at
//! once.

use axum::extract::Path;
use maud::{Markup, html};
use steno_model::Transcript;
use steno_store::view::file_changes::find_file_changes;

use crate::addresses::{SessionPath, session_address};
use crate::app::WebApp;
use crate::error::WebError;
use crate::library::OpenedSession;
use crate::quality_report::{quality_heading, quality_report};
use crate::section_lists::{MIN_CONTENTS, changes_heading, file_change_list, prompt_list};
use crate::session_listing::SessionListing;
use crate::subagent_overview::{
    MAX_OPEN_RUNS, OverviewSession, child_sessions, subagent_overview, subagents_heading,
};
use crate::units::exact_count;
use crate::viewer::PageViewer;

/// The sections of a session, folded. Their content is requested when they are opened.
pub(crate) fn section_folds(
    opened: &OpenedSession,
    listing: &SessionListing,
    viewer: &PageViewer,
) -> Markup {
    let session = &opened.transcript.session;
    let base = session_address(&session.agent, &session.id);
    let counts = opened.section_counts();
    html! {
        .sections {
            @if counts.prompts >= MIN_CONTENTS {
                details #contents .section data-load={ (base) "/contents" } {
                    summary { b { "Prompts" } span { (exact_count(counts.prompts as u64)) } }
                }
            }
            (subagents_fold(opened, listing, viewer))
            details #changes .section .none[counts.files == 0] data-load={ (base) "/changes" } {
                summary #changes-open title="The net change of each file" { (changes_heading(counts)) }
            }
            details #quality .section .none[counts.quality.is_clean()] data-load={ (base) "/quality" } {
                summary #quality-open title="Failures, retries, undone edits and the size of the context" { (quality_heading(&counts.quality)) }
            }
        }
    }
}

/// The section of subagents, if there are any. It is open if they are few.
fn subagents_fold(opened: &OpenedSession, listing: &SessionListing, viewer: &PageViewer) -> Markup {
    let session = &opened.transcript.session;
    let runs = &opened.outline.runs;
    let others = child_sessions(listing, session).count();
    let is_open = (1..=MAX_OPEN_RUNS).contains(&(runs.len() + others));
    html! {
        @if runs.len() + others > 0 {
            details #subagents .section open[is_open] data-load={ (session_address(&session.agent, &session.id)) "/subagents" } {
                summary #subagents-open title="The subagents of this session: who ran when, how each ended, and its totals" { (subagents_heading(runs, others)) }
                @if is_open { div { (subagent_overview(&overview_of(opened, listing), &viewer.zone)) } }
            }
        }
    }
}

fn overview_of<'a>(opened: &'a OpenedSession, listing: &'a SessionListing) -> OverviewSession<'a> {
    let Transcript { session, entries, .. } = &opened.transcript;
    let OpenedSession { lanes, outline, .. } = opened;
    OverviewSession { session, entries, lanes, outline, listing: Some(listing) }
}

/// The subagents of a session, and when each ran.
pub(crate) async fn subagents_section(
    app: WebApp,
    viewer: PageViewer,
    Path((agent, id)): SessionPath,
) -> Result<Markup, WebError> {
    app.run_blocking(move |library| {
        let opened = library.open_session(&agent, &id)?;
        let listing = library.session_listing()?;
        Ok(subagent_overview(&overview_of(&opened, &listing), &viewer.zone))
    })
    .await
}

/// The prompts of a session, with links to them.
pub(crate) async fn contents_section(
    app: WebApp,
    viewer: PageViewer,
    Path((agent, id)): SessionPath,
) -> Result<Markup, WebError> {
    app.run_blocking(move |library| {
        let opened = library.open_session(&agent, &id)?;
        Ok(prompt_list(&opened.transcript.entries, &viewer.zone))
    })
    .await
}

/// The files that a session changed, each with its net change.
pub(crate) async fn changes_section(
    app: WebApp,
    Path((agent, id)): SessionPath,
) -> Result<Markup, WebError> {
    app.run_blocking(move |library| {
        let opened = library.open_session(&agent, &id)?;
        let Transcript { session, entries, .. } = &opened.transcript;
        Ok(file_change_list(&find_file_changes(entries), session.project.as_deref()))
    })
    .await
}

/// The failures, retries, undone edits and the context of a session.
pub(crate) async fn quality_section(
    app: WebApp,
    Path((agent, id)): SessionPath,
) -> Result<Markup, WebError> {
    app.run_blocking(move |library| {
        let opened = library.open_session(&agent, &id)?;
        let entries = &opened.transcript.entries;
        Ok(quality_report(&opened.section_counts().quality, entries))
    })
    .await
}
