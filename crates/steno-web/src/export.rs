//! A session as one file that needs nothing else, and many sessions as a folder with an index.

use std::num::NonZero;
use std::thread;

use jiff::tz::TimeZone;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use steno_core::vault::notes::Note;
use steno_core::view::lanes::Lanes;
use steno_core::view::pictures::Pictures;
use steno_core::{Entry, Session, Transcript};

use crate::assets::{BUNDLE, STYLE, permit};
use crate::heading;
use crate::render::plain::clean;
use crate::render::{Show, minimap};

/// Entries that are worth a thread of their own.
const WORTH_A_THREAD: usize = 1000;

/// A session on its way into a file.
#[derive(Clone, Copy)]
pub struct Export<'a> {
    /// What was said.
    pub transcript: &'a Transcript,
    /// Its pictures.
    pub pictures: &'a Pictures,
    /// Whose clock times are told by.
    pub zone: &'a TimeZone,
    /// Where an index of it and others stands.
    pub index: Option<&'a str>,
}

impl Export<'_> {
    /// The file.
    pub fn html(&self) -> String {
        let Transcript { session, entries, notes, .. } = self.transcript;
        let (zone, lanes) = (self.zone, &Lanes::of(entries));
        let show = Show { zone, pictures: self.pictures, base: None, lanes, notes };
        let body = html! {
            (self.top())
            main.reading data-runs=[heading::runs(lanes)] {
                (heading::of(session, zone))
                (heading::notes(&Note::of_session(notes, entries), zone))
                ol.entries { @for part in shown(show, entries) { (PreEscaped(part)) } }
            }
            (minimap::strip(entries, lanes))
        };
        document(&heading::title(session), &body)
    }

    fn top(&self) -> Markup {
        html! {
            header.top {
                @match self.index {
                    Some(index) => { a.name href=(index) { "Sessions" } }
                    None => { span.name { "Steno" } }
                }
                span.room {}
                (heading::find_box(false))
                (heading::buttons())
            }
        }
    }
}

/// All entries, made by as many threads as the machine has room for.
fn shown(show: Show<'_>, entries: &[Entry]) -> Vec<String> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let size = entries.len().div_ceil(threads).max(WORTH_A_THREAD);
    thread::scope(|scope| {
        let begin = |from| scope.spawn(move || show.entries(entries, from..from + size));
        let parts: Vec<_> = (0..entries.len()).step_by(size).map(begin).collect();
        parts.into_iter().map(|part| part.join().expect("an entry is shown or not")).collect()
    })
}

/// The index of a folder of sessions, by the names of their files.
pub fn index(sessions: &[(String, Session)], zone: &TimeZone) -> String {
    let body = html! {
        header.top { span.name { "Steno" } span.room {} (heading::theme_button()) }
        main {
            h1 { (sessions.len()) " session" @if sessions.len() != 1 { "s" } }
            .filters {
                input #filter type="search" placeholder="Filter by title, agent or project"
                    aria-label="Filter by title, agent or project";
            }
            ul.rows {
                @for (file, session) in sessions { li { (row(file, session, zone)) } }
            }
        }
    };
    document("Sessions", &body)
}

fn row(file: &str, session: &Session, zone: &TimeZone) -> Markup {
    let started = session.started.map(|at| at.in_zone(zone).wall());
    html! {
        a.row href=(file) {
            span.when { @if let Some(at) = started { (at.strftime("%-d %b %Y")) } }
            span.title { (heading::title(session)) }
            span.sum { (session.totals.entries) small { "entries" } }
            span.more {
                span.agent { (clean(&session.agent)) }
                @if let Some(project) = &session.project { span { (clean(project)) } }
            }
        }
    }
}

/// A document that may run its own script and load nothing at all.
fn document(title: &str, body: &Markup) -> String {
    let policy = format!(
        "default-src 'none'; script-src {}; style-src {}; img-src data:; base-uri 'none'; form-action 'none'",
        permit(&BUNDLE),
        permit(STYLE)
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
                title { (clean(title)) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                (body)
                (heading::help())
                script type="module" { (PreEscaped(BUNDLE.as_str())) }
            }
        }
    }
    .into_string()
}
