//! Exports a session as one HTML file without dependencies, or many sessions as a folder with an index.

use std::num::NonZero;
use std::ops::Range;
use std::thread;

use jiff::tz::TimeZone;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use steno_model::{Entry, Session, Transcript};
use steno_store::amount::format_dollars;
use steno_store::cost::PriceTable;
use steno_store::view::file_changes::find_file_changes;
use steno_store::view::lanes::SubagentLanes;
use steno_store::view::pictures::SessionPictures;
use steno_vault::notes::Note;

use crate::assets::{SCRIPT_BUNDLE, STYLE, csp_hash};
use crate::heading::{self, HeadingFacts};
use crate::help_dialog::{HelpTopic, help_dialog};
use crate::outline::{SessionOutline, cost_text};
use crate::page::help_button;
use crate::quality_report::{quality_heading, quality_report};
use crate::render::plain::clean_text;
use crate::render::{EntryRenderer, minimap};
use crate::section_lists::{MIN_CONTENTS, SectionCounts, changes_heading, file_change_list};
use crate::subagent_overview::{
    MAX_OPEN_RUNS, OverviewSession, subagent_overview, subagents_heading,
};
use crate::units::exact_count;

/// How many entries are worth a thread.
const MIN_THREAD_ENTRIES: usize = 1000;

/// How many entries a browser lays out together.
const PART_ENTRIES: usize = 100;

/// A session to export.
#[derive(Clone, Copy)]
pub struct SessionExport<'a> {
    /// The entries.
    pub transcript: &'a Transcript,
    /// The pictures in the entries.
    pub pictures: &'a SessionPictures,
    /// The time zone of the times in the file.
    pub zone: &'a TimeZone,
    /// What tokens cost.
    pub prices: &'a PriceTable,
    /// The address of an index that lists this file.
    pub index: Option<&'a str>,
}

impl SessionExport<'_> {
    /// Renders the file.
    pub fn to_html(&self) -> String {
        let Transcript { session, entries, notes, .. } = self.transcript;
        let (zone, lanes) = (self.zone, &SubagentLanes::from_entries(entries));
        let outline = &SessionOutline::new(entries, lanes, self.prices);
        let (pictures, base, fork) = (self.pictures, None, None);
        let renderer = EntryRenderer {
            alone: None,
            zone,
            pictures,
            base,
            lanes,
            notes,
            outline,
            fork,
            project: session.project.as_deref(),
        };
        let cost = session.totals.cost.map(format_dollars);
        let counts = SectionCounts::from_entries(entries);
        let quality = &counts.quality;
        let cost = cost.or_else(|| cost_text(&outline.totals));
        let facts = HeadingFacts {
            zone,
            status: session.status,
            cost,
            fork,
            quality: Some(quality),
            entries,
        };
        let body = html! {
            (self.top_bar())
            main.reading data-runs=[heading::lane_runs(lanes)] data-subagents=[outline.runs_text()] {
                (heading::session_heading(session, &facts))
                .sections {
                    @if counts.prompts >= MIN_CONTENTS {
                        details #contents .section { summary { b { "Prompts" } span { (exact_count(counts.prompts as u64)) } } }
                    }
                    (subagents_fold(&OverviewSession { session, entries, lanes, outline, listing: None }, zone))
                    @if counts.files > 0 {
                        details #changes .section { summary { (changes_heading(&counts)) } (file_change_list(&find_file_changes(entries), session.project.as_deref())) }
                    }
                    @if !quality.is_clean() {
                        details #quality .section { summary { (quality_heading(quality)) } (quality_report(quality, entries)) }
                    }
                }
                (heading::session_notes(&Note::for_session(notes, entries), zone))
                @for parts in render_entries(renderer, entries) { (PreEscaped(parts)) }
            }
            (minimap::minimap_strip(entries, lanes))
        };
        render_document(&heading::session_title(session), &body)
    }

    fn top_bar(&self) -> Markup {
        html! {
            header.top {
                @match self.index {
                    Some(index) => { a.name href=(index) { "Sessions" } }
                    None => { span.name { "Steno" } }
                }
                span.room {}
                (heading::find_box(false))
                (heading::reader_buttons())
                (help_button())
                (heading::theme_button())
            }
        }
    }
}

/// The overview of the subagents, if there are any.
fn subagents_fold(of: &OverviewSession<'_>, zone: &TimeZone) -> Markup {
    let runs = &of.outline.runs;
    html! {
        @if !runs.is_empty() {
            details #subagents .section open[runs.len() <= MAX_OPEN_RUNS] {
                summary { (subagents_heading(runs, 0)) }
                (subagent_overview(of, zone))
            }
        }
    }
}

/// Renders all entries, on all cores.
fn render_entries(renderer: EntryRenderer<'_>, entries: &[Entry]) -> Vec<String> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let size = entries.len().div_ceil(threads).max(MIN_THREAD_ENTRIES);
    let size = size.next_multiple_of(PART_ENTRIES);
    thread::scope(|scope| {
        let begin = |from| scope.spawn(move || render_parts(renderer, entries, from..from + size));
        let parts: Vec<_> = (0..entries.len()).step_by(size).map(begin).collect();
        parts.into_iter().map(|part| part.join().expect("an entry is shown or not")).collect()
    })
}

/// Renders entries in parts. A browser lays out only the parts in view, and needs seconds if each entry is one.
fn render_parts(renderer: EntryRenderer<'_>, entries: &[Entry], places: Range<usize>) -> String {
    let mut page = String::new();
    for from in (places.start..places.end.min(entries.len())).step_by(PART_ENTRIES) {
        page.push_str("<ol class=\"entries part\">");
        page.push_str(&renderer.render_entries(entries, from..from + PART_ENTRIES));
        page.push_str("</ol>");
    }
    page
}

/// Renders the index of a folder: file names and their sessions.
pub fn render_index(sessions: &[(String, Session)], zone: &TimeZone) -> String {
    let body = html! {
        header.top { span.name { "Steno" } span.room {} (heading::theme_button()) }
        main {
            h1 { (sessions.len()) " session" @if sessions.len() != 1 { "s" } }
            .filters {
                input #filter type="search" placeholder="Filter by title, agent or project"
                    aria-label="Filter by title, agent or project";
            }
            ul.rows {
                @for (file, session) in sessions { li { (index_row(file, session, zone)) } }
            }
        }
    };
    render_document("Sessions", &body)
}

fn index_row(file: &str, session: &Session, zone: &TimeZone) -> Markup {
    let started = session.started.map(|at| at.in_zone(zone).wall());
    html! {
        a.row.index-row href=(file) {
            span.when { @if let Some(at) = started { (at.strftime("%-d %b %Y")) } }
            span.title { (heading::session_title(session)) }
            span.sum { (session.totals.entries) small { "entries" } }
            span.more {
                span.agent { (clean_text(&session.agent)) }
                @if let Some(project) = &session.project { span { (clean_text(project)) } }
            }
        }
    }
}

/// A document that may run its own script and load nothing.
fn render_document(title: &str, body: &Markup) -> String {
    let policy = format!(
        "default-src 'none'; script-src {}; style-src {}; img-src data:; base-uri 'none'; form-action 'none'",
        csp_hash(&SCRIPT_BUNDLE),
        csp_hash(STYLE)
    );
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="referrer" content="no-referrer";
                meta name="generator" content="steno";
                title { (clean_text(title)) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                (body)
                (help_dialog(HelpTopic::Export))
                script type="module" { (PreEscaped(SCRIPT_BUNDLE.as_str())) }
            }
        }
    }
    .into_string()
}

#[cfg(test)]
mod tests {
    use steno_model::{EntryKind, Role, SessionId};

    use super::*;

    #[test]
    fn a_file_consists_of_parts_with_all_entries() {
        let id = "parts".parse::<SessionId>().expect("the id is valid");
        let mut transcript = Transcript::new(Session::new(id, "codex"));
        transcript.entries = (0..2 * MIN_THREAD_ENTRIES + 50)
            .map(|number| Entry::new(Role::User, EntryKind::Text, format!("Prompt {number}.")))
            .collect();
        let (pictures, prices) = (SessionPictures::default(), PriceTable::bundled());
        let export = SessionExport {
            transcript: &transcript,
            pictures: &pictures,
            zone: &TimeZone::UTC,
            prices: &prices,
            index: None,
        };
        let file = export.to_html();
        assert_eq!(file.matches("<ol class=\"entries part\">").count(), 21);
        let prompt = |number: usize| file.matches(&format!("Prompt {number}.")).count();
        assert_eq!([0, 99, 100, 1000, 2049].map(prompt), [1; 5]);
    }
}
