//! The page of one subagent of a session, with a link back to the call that started it.

use maud::{Markup, html};

use crate::addresses::session_address;
use crate::error::WebError;
use crate::heading;
use crate::help_dialog::HelpTopic;
use crate::library::{CHUNK_ENTRIES, OpenedSession, SessionLibrary};
use crate::page::{self, PageHead};
use crate::pages::session::EntryWindowView;
use crate::pages::session_export;
use crate::render::plain::clean_text;
use crate::render::run_title;
use crate::viewer::PageViewer;

/// The page of one subagent of a session. Its entries keep their numbers, so links to them lead to the whole session too.
pub(super) fn subagent_page(
    library: &SessionLibrary,
    viewer: &PageViewer,
    opened: &OpenedSession,
    name: &str,
) -> Result<Markup, WebError> {
    let session = &opened.transcript.session;
    let base = session_address(&session.agent, &session.id);
    let runs = &opened.outline.runs;
    let at = runs.iter().position(|one| one.name() == name);
    let at = at.ok_or_else(|| WebError::NotFound(format!("subagent {name}")))?;
    let one = &runs[at];
    let notes = opened.dir.read_notes()?;
    let bar =
        html! { (heading::find_box(true)) (heading::reader_buttons()) (page::common_buttons()) };
    let window = EntryWindowView { library, viewer, opened, notes: &notes.all, alone: Some(at) };
    let caller = one.run.caller.map_or_else(String::new, |caller| format!("#e{caller}"));
    let title = run_title(one);
    let body = html! {
        main #main .reading
            data-session=(base) data-first=(one.run.places.start) data-entries=(one.run.places.end)
            data-chunk=(CHUNK_ENTRIES) data-total=(opened.transcript.entries.len())
            data-runs=[heading::lane_runs(&opened.lanes)]
            data-subagents=[opened.outline.runs_text_without(Some(at))]
        {
            nav.list-links aria-label="The session of this subagent" {
                a #call-back href={ (base) (caller) } title="Back to the call that started it (u)" { "‹ Back to its call in “" (heading::session_title(session)) "”" }
            }
            h1 { (title) }
            ul.facts {
                li { (heading::agent_label(session)) " subagent " code { (clean_text(one.name())) } }
                @if let Some(caller) = one.run.caller { li { "started by " a href={ (base) "#e" (caller) } { "entry " (caller) } } }
                @if let Some(started) = opened.transcript.entries[opened.lanes.number_at(one.run.places.start)].created_at { li title="Start of the subagent" { (viewer.format_time(started)) } }
            }
            #entries { (window.chunks_of(one.run.places.clone(), None)) }
        }
        button #fresh .fresh type="button" hidden { "New entries" }
        (session_export::print_dialog())
    };
    Ok(PageHead::new(&title, "/")
        .viewed_by(viewer)
        .helps_with(HelpTopic::Subagent)
        .with_bar(&bar, &body))
}
