//! Foldable sections above the entries of a session: its prompts, the files that it changed, and its quality.
//!
//! They are rendered when the reader opens them, because a long session has many of each.

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
use crate::units::exact_count;
use crate::viewer::PageViewer;

/// The sections of a session, folded. Their content is requested when they are opened.
pub(crate) fn section_folds(opened: &OpenedSession) -> Markup {
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
            details #changes .section .none[counts.files == 0] data-load={ (base) "/changes" } {
                summary #changes-open title="The net change of each file" { (changes_heading(counts)) }
            }
            details #quality .section .none[counts.quality.is_clean()] data-load={ (base) "/quality" } {
                summary #quality-open title="Failures, retries, undone edits and the size of the context" { (quality_heading(&counts.quality)) }
            }
        }
    }
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
