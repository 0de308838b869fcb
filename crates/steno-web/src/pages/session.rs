//! The page of one session. It contains the first entries; the browser requests others when they come into view.

use std::ops::Range;

use axum::Json;
use axum::extract::{Path, Query};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use maud::{Markup, PreEscaped, html};
use serde::Deserialize;
use steno_model::problem::Problem;
use steno_model::{Entry, EntryKind, Session, Transcript};
use steno_store::index::entry_text;
use steno_vault::notes::Note;

use crate::addresses::{SessionPath, session_address};
use crate::app::WebApp;
use crate::error::WebError;
use crate::fork::find_fork;
use crate::heading::{self, HeadingFacts};
use crate::help_dialog::HelpTopic;
use crate::library::{CHUNK_ENTRIES, OpenedSession, SessionLibrary};
use crate::page::{self, PageHead};
use crate::pages::subagent::subagent_page;
use crate::pages::{session_export, session_sections};
use crate::render::{EntryRenderer, ForkPoint, is_error_entry, minimap};
use crate::section_lists::is_listed_prompt;
use crate::units::count_of;
use crate::viewer::PageViewer;

/// A range of positions.
#[derive(Deserialize)]
pub(crate) struct EntryWindow {
    from: usize,
    count: usize,
}

/// The subagent that is shown alone.
#[derive(Deserialize)]
pub(crate) struct SubagentQuery {
    subagent: Option<String>,
}

/// The text to find.
#[derive(Deserialize)]
pub(crate) struct FindQuery {
    q: String,
}

/// Where to search for the next prompt or error.
#[derive(Deserialize)]
pub(crate) struct StepQuery {
    from: Option<usize>,
    of: StepTarget,
    #[serde(default)]
    back: bool,
}

/// What to search for.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum StepTarget {
    Prompt,
    Error,
}

impl StepTarget {
    fn matches_entry(self, entry: &Entry) -> bool {
        match self {
            StepTarget::Prompt => is_listed_prompt(entry),
            StepTarget::Error => is_error_entry(entry),
        }
    }
}

/// The page of a session, or of one of its subagents alone.
pub(crate) async fn session_page(
    app: WebApp,
    viewer: PageViewer,
    Path((agent, id)): SessionPath,
    Query(part): Query<SubagentQuery>,
) -> Result<Markup, WebError> {
    let can_change = app.resume.is_some();
    app.run_blocking(move |library| {
        let opened = library.open_session(&agent, &id)?;
        if let Some(name) = &part.subagent {
            return subagent_page(library, &viewer, &opened, name);
        }
        let notes = opened.dir.read_notes()?;
        let Transcript { session, entries, .. } = &opened.transcript;
        let bar = html! { (heading::find_box(true)) (heading::reader_buttons()) (page::common_buttons()) };
        let window = EntryWindowView { library, viewer: &viewer, opened: &opened, notes: &notes.all, alone: None };
        let fork = find_fork(library, &opened);
        let listing = library.last_listing()?;
        let body = html! {
            main #main .reading
                data-session=(session_address(&agent, &session.id))
                data-entries=(entries.len())
                data-chunk=(CHUNK_ENTRIES)
                data-runs=[heading::lane_runs(&opened.lanes)]
                data-subagents=[opened.outline.runs_text()]
            {
                (heading::list_links())
                (session_head(library, &viewer, &opened, fork.as_ref()))
                (problem_list(&opened.transcript.problems))
                (problem_list(&notes.problems))
                (session_tools(&opened, can_change))
                (session_sections::section_folds(&opened, &listing, &viewer))
                (heading::session_notes(&Note::for_session(&notes.all, entries), &viewer.zone))
                #entries { (window.entry_chunks(fork.as_ref())) }
                @if entries.is_empty() { p.empty { "This session has no entries yet. New ones appear here by themselves." } }
            }
            (minimap::minimap_strip(entries, &opened.lanes))
            button #fresh .fresh type="button" hidden { "New entries" }
            (session_export::export_dialog(session))
            (session_export::print_dialog())
            @if can_change { (note_form(session)) }
        };
        let title = heading::session_title(session);
        Ok(PageHead::new(&title, "/").viewed_by(&viewer).helps_with(HelpTopic::Session).with_bar(&bar, &body))
    })
    .await
}

/// The title and the facts of a session, which change while it is written.
fn session_head(
    library: &SessionLibrary,
    viewer: &PageViewer,
    opened: &OpenedSession,
    fork: Option<&ForkPoint>,
) -> Markup {
    let session = &opened.transcript.session;
    let facts = HeadingFacts {
        zone: &viewer.zone,
        status: library.status_check().status_of(session),
        cost: library.session_cost(opened),
        fork,
        quality: Some(&opened.section_counts().quality),
        entries: &opened.transcript.entries,
    };
    html! { div #session-head { (heading::session_heading(session, &facts)) } }
}

/// The parts of the page that sum up the session, for a page whose session has grown.
pub(crate) async fn head_part(
    app: WebApp,
    viewer: PageViewer,
    Path((agent, id)): SessionPath,
) -> Result<Markup, WebError> {
    app.run_blocking(move |library| {
        let opened = library.open_session(&agent, &id)?;
        let fork = find_fork(library, &opened);
        Ok(html! {
            (session_head(library, &viewer, &opened, fork.as_ref()))
            (session_sections::section_folds(&opened, &*library.last_listing()?, &viewer))
            (minimap::minimap_strip(&opened.transcript.entries, &opened.lanes))
        })
    })
    .await
}

fn session_tools(opened: &OpenedSession, can_change: bool) -> Markup {
    let session = &opened.transcript.session;
    let here = session_address(&session.agent, &session.id);
    html! {
        p.tools {
            a #replay-link href={ (here) "/replay" } title="Watch the session over time" { "Replay" }
            a #compare-link href={ "/compare?a=" (session.agent) "/" (session.id) } title="Compare with another session" { "Compare" }
            button #export-open type="button" title="Save as HTML, Markdown or JSON" { "Export" }
            button #print type="button" title="Print the session, or save it as a PDF (Ctrl+P)" { "Print" }
            @if can_change {
                button #annotate type="button" title="Add a note to the session (a)" { "Note" }
                button #resume type="button" title="Show the command that resumes the session" data-resume={ (api_address(session)) "/resume" } { "Resume" }
                output #resumed for="resume" {}
            }
        }
    }
}

/// The API address of a session.
fn api_address(session: &Session) -> String {
    format!("/api/sessions/{}/{}", session.agent, session.id)
}

/// The dialog for a new note.
fn note_form(session: &Session) -> Markup {
    html! {
        dialog #note aria-labelledby="note-title" {
            form method="dialog" data-notes={ (api_address(session)) "/notes" } {
                h2 #note-title { "Note" }
                textarea name="text" rows="5" aria-label="Text of the note"
                    placeholder="Markdown; #words are tags" required {}
                p.error role="alert" hidden {}
                p.tools { button.main value="save" { "Save" } button value="" formnovalidate { "Cancel" } }
            }
        }
    }
}

fn problem_list(problems: &[Problem]) -> Markup {
    html! {
        @if !problems.is_empty() {
            details.error {
                summary { b { (count_of(problems.len() as u64, "record")) " could not be read" } }
                pre tabindex="0" { @for problem in problems { (problem.to_string()) "\n" } }
            }
        }
    }
}

/// What is needed to render a part of a session's entries.
pub(super) struct EntryWindowView<'a> {
    pub(super) library: &'a SessionLibrary,
    pub(super) viewer: &'a PageViewer,
    pub(super) opened: &'a OpenedSession,
    pub(super) notes: &'a [Note],
    /// The run of the subagent that is shown alone.
    pub(super) alone: Option<usize>,
}

impl EntryWindowView<'_> {
    /// The first chunk of entries, and placeholders for the others with their estimated heights.
    fn entry_chunks(&self, fork: Option<&ForkPoint>) -> Markup {
        self.chunks_of(0..self.opened.transcript.entries.len(), fork)
    }

    /// The same of the entries at some places.
    pub(super) fn chunks_of(&self, shown: Range<usize>, fork: Option<&ForkPoint>) -> Markup {
        html! {
            @for from in shown.clone().step_by(CHUNK_ENTRIES) {
                @let places = from..shown.end.min(from + CHUNK_ENTRIES);
                ol.entries.chunk data-from=(from) data-count=(places.len())
                    data-height=(estimated_height(self.opened, places.clone()))
                {
                    @if from == shown.start { (PreEscaped(self.render_window(places, fork))) }
                }
            }
        }
    }

    fn render_window(&self, places: Range<usize>, fork: Option<&ForkPoint>) -> String {
        let Self { viewer, opened, notes, .. } = *self;
        let session = &opened.transcript.session;
        let base = session_address(&session.agent, &session.id);
        let OpenedSession { pictures, lanes, outline, .. } = opened;
        let zone = &viewer.zone;
        let base = Some(base.as_str());
        let renderer = EntryRenderer {
            alone: self.alone,
            zone,
            pictures,
            base,
            lanes,
            notes,
            outline,
            fork,
            project: session.project.as_deref(),
        };
        renderer.render_entries(&opened.transcript.entries, places)
    }

    /// Renders a window that was requested later.
    fn render_part(&self, places: Range<usize>) -> String {
        let fork = find_fork(self.library, self.opened);
        self.render_window(places, fork.as_ref())
    }
}

/// The estimated height of entries in pixels: one line for folded ones, others by their text.
fn estimated_height(opened: &OpenedSession, places: Range<usize>) -> usize {
    let one = |entry: &Entry| match entry.kind {
        EntryKind::Text => 90 + entry.content.len() / 80 * 26,
        EntryKind::ToolResult if entry.content.len() < 1200 => 60 + entry.content.len() / 4,
        _ => 38,
    };
    let shown = places.filter(|place| !opened.outline.is_folded_at(*place));
    let entries = shown.map(|place| &opened.transcript.entries[opened.lanes.number_at(place)]);
    entries.map(|entry| one(entry).min(4000)).sum()
}

/// The entries of a range.
pub(crate) async fn entries_part(
    app: WebApp,
    viewer: PageViewer,
    Path((agent, id)): SessionPath,
    Query(part): Query<EntryWindow>,
) -> Result<Markup, WebError> {
    app.run_blocking(move |library| {
        let opened = library.open_session(&agent, &id)?;
        let end = part.from.saturating_add(part.count.min(4 * CHUNK_ENTRIES));
        let notes = opened.dir.read_notes()?.all;
        let window = EntryWindowView {
            library,
            viewer: &viewer,
            opened: &opened,
            notes: &notes,
            alone: None,
        };
        Ok(PreEscaped(window.render_part(part.from..end)))
    })
    .await
}

/// The notes on a session.
pub(crate) async fn notes_part(
    app: WebApp,
    viewer: PageViewer,
    Path((agent, id)): SessionPath,
) -> Result<Markup, WebError> {
    app.run_blocking(move |library| {
        let opened = library.open_session(&agent, &id)?;
        let notes = opened.dir.read_notes()?.all;
        let notes = Note::for_session(&notes, &opened.transcript.entries);
        Ok(heading::session_notes(&notes, &viewer.zone))
    })
    .await
}

/// The number of the next prompt or error after an entry; with `back`, of the last one before it.
pub(crate) async fn find_step(
    app: WebApp,
    Path((agent, id)): SessionPath,
    Query(StepQuery { from, of, back }): Query<StepQuery>,
) -> Result<Json<Option<usize>>, WebError> {
    app.run_blocking(move |library| {
        let opened = library.open_session(&agent, &id)?;
        let (entries, lanes) = (&opened.transcript.entries, &opened.lanes);
        let fits =
            |number: &usize| entries.get(*number).is_some_and(|entry| of.matches_entry(entry));
        let place = from.map(|number| lanes.position_of(number));
        Ok(Json(if back {
            (0..place.unwrap_or(0)).rev().map(|place| lanes.number_at(place)).find(fits)
        } else {
            let begin = place.map_or(0, |place| place + 1);
            (begin..entries.len()).map(|place| lanes.number_at(place)).find(fits)
        }))
    })
    .await
}

/// The numbers of the entries that contain a text.
pub(crate) async fn find_entries(
    app: WebApp,
    Path((agent, id)): SessionPath,
    Query(FindQuery { q }): Query<FindQuery>,
) -> Result<Json<Vec<usize>>, WebError> {
    app.run_blocking(move |library| {
        let opened = library.open_session(&agent, &id)?;
        let needle = q.trim().to_lowercase();
        let holds = |(_, entry): &(usize, &Entry)| {
            let is_in_text = entry.content.to_lowercase().contains(&needle);
            is_in_text
                || (entry.tool_input.is_some()
                    && entry_text::searchable_text(entry).to_lowercase().contains(&needle))
        };
        if needle.is_empty() {
            return Ok(Json(Vec::new()));
        }
        Ok(Json(opened.entries_in_order().filter(holds).map(|(number, _)| number).collect()))
    })
    .await
}

/// The full text of an entry.
pub(crate) async fn entry_text(
    app: WebApp,
    Path((agent, id, number)): Path<(String, String, usize)>,
) -> Result<Response, WebError> {
    app.run_blocking(move |library| {
        let opened = library.open_session(&agent, &id)?;
        let entry = opened.transcript.entries.get(number);
        let entry = entry.ok_or_else(|| WebError::NotFound(format!("{agent}/{id}:{number}")))?;
        Ok(([(CONTENT_TYPE, "text/plain; charset=utf-8")], entry_text::searchable_text(entry))
            .into_response())
    })
    .await
}

/// A picture of a session.
pub(crate) async fn picture_bytes(
    app: WebApp,
    Path((agent, id, sum)): Path<(String, String, String)>,
) -> Result<Response, WebError> {
    app.run_blocking(move |library| {
        let opened = library.open_session(&agent, &id)?;
        let unknown = || WebError::NotFound(sum.clone());
        let picture = opened.pictures.get(&sum).ok_or_else(unknown)?;
        let bytes = STANDARD.decode(&picture.base64).map_err(|_| unknown())?;
        let headers =
            [(CONTENT_TYPE, picture.media_type), (CACHE_CONTROL, "private, max-age=86400")];
        Ok((headers, bytes).into_response())
    })
    .await
}
