//! Compares two sessions side by side, as `steno diff` does.

use axum::extract::Query;
use maud::{Markup, html};
use serde::Deserialize;
use steno_store::compare::facts::SessionFact;
use steno_store::compare::text_diff::{AlignedLines, changed_words, pair_lines};
use steno_store::compare::{EntryChange, compare_entries, facts};
use steno_store::view::json_rows::diff::EntryPair;
use steno_store::view::markdown::capitalize_first;
use steno_store::view::pictures::{TextSegment, split_pictures};

use crate::addresses::session_address;
use crate::app::WebApp;
use crate::error::WebError;
use crate::heading;
use crate::library::{OpenedSession, SessionLibrary};
use crate::page::PageHead;
use crate::render::diff::marked_line;
use crate::render::plain::{clean_text, visible_text};
use crate::units::{COST_EXPLANATION, exact_count};
use crate::viewer::PageViewer;

/// How many differences are shown.
const MAX_DIFFERENCES: usize = 200;

/// How many lines of a pair are shown.
const MAX_PAIR_LINES: usize = 200;

/// Two sessions, each as `AGENT/ID`.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct SessionPair {
    pub(crate) a: String,
    pub(crate) b: String,
}

/// Facts that differ between any two sessions, so that they are not marked. Two sessions may well have one title.
const ALWAYS_DIFFERENT: [&str; 3] = ["session", "started", "ended"];

/// The compare page.
pub(crate) async fn compare_page(
    app: WebApp,
    viewer: PageViewer,
    Query(both): Query<SessionPair>,
) -> Result<Markup, WebError> {
    app.run_blocking(move |library| {
        let is_asked = !both.a.is_empty() && !both.b.is_empty();
        let body = html! {
            h1 { "Compare" }
            (compare_form(library, &viewer, &both)?)
            @if is_asked { (comparison(library, &viewer, &both)?) }
            @else { .empty { p { b { "Choose two sessions" } } p { "Search for them by title, project, agent or id. Their facts and entries are then shown side by side." } } }
        };
        Ok(PageHead::new("Compare", "/compare").viewed_by(&viewer).with_body(&body))
    })
    .await
}

/// Two buttons that choose a session by searching, in the palette.
fn compare_form(
    library: &SessionLibrary,
    viewer: &PageViewer,
    both: &SessionPair,
) -> Result<Markup, WebError> {
    let listing = library.session_listing()?;
    let choice = |field: &str, name: &str, chosen: &str| {
        let mut sessions = listing.sessions.iter().map(|one| &one.session);
        let known = sessions.find(|session| session_name(&session.agent, &session.id) == chosen);
        html! {
            button.pick type="button" data-pick=(field) data-chosen=(chosen) {
                small { (name) }
                @match known {
                    Some(session) => {
                        b { (heading::session_title(session)) }
                        " " (heading::agent_label(session))
                        @if let Some(started) = session.started { small { (started.in_zone(&viewer.zone).wall().strftime("%-d %b %Y, %H:%M")) } }
                    }
                    None if chosen.is_empty() => b { "Choose a session…" },
                    None => b { (clean_text(chosen)) },
                }
            }
        }
    };
    Ok(html! {
        .filters.picks { (choice("a", "First session", &both.a)) (choice("b", "Second session", &both.b)) }
    })
}

fn session_name(agent: &str, id: &steno_model::SessionId) -> String {
    format!("{agent}/{id}")
}

/// Opens the session with a name of the form `AGENT/ID`.
pub(crate) fn open_named(
    library: &SessionLibrary,
    name: &str,
) -> Result<std::sync::Arc<OpenedSession>, WebError> {
    let (agent, id) = name.split_once('/').ok_or_else(|| WebError::NotFound(name.to_owned()))?;
    library.open_session(agent, id)
}

fn comparison(
    library: &SessionLibrary,
    viewer: &PageViewer,
    both: &SessionPair,
) -> Result<Markup, WebError> {
    let (a, b) = (open_named(library, &both.a)?, open_named(library, &both.b)?);
    let sessions = [&a, &b].map(|one| {
        let session = one.transcript.session.clone();
        let status = library.status_check().status_of(&session);
        steno_model::Session { status, ..session }
    });
    let costs = [&a, &b].map(|one| library.session_cost(one).unwrap_or_default());
    let (a, b) = (&a.transcript, &b.transcript);
    let steps = compare_entries(&a.entries, &b.entries);
    let clock = |at: steno_model::Timestamp| {
        at.in_zone(&viewer.zone).wall().strftime("%-d %B %Y, %H:%M:%S").to_string()
    };
    let bases = [a, b].map(|one| session_address(&one.session.agent, &one.session.id));
    let shown = shown_steps(&steps);
    Ok(html! {
        table.sides {
            tbody {
                @for fact in facts::compare_facts(&sessions[0], &sessions[1], &clock) {
                    @if fact.name != "cost" {
                        tr.differs[fact.a != fact.b && !ALWAYS_DIFFERENT.contains(&fact.name)] { th scope="row" { (capitalize_first(fact.name)) } td { (fact_text(&fact, &fact.a)) } td { (fact_text(&fact, &fact.b)) } }
                    }
                }
                @let lengths = [a, b].map(|one| heading::session_duration(&one.session).unwrap_or_default());
                tr.differs[lengths[0] != lengths[1]] { th scope="row" { "Duration" } @for length in &lengths { td { (length) } } }
                @if costs.iter().any(|cost| !cost.is_empty()) {
                    tr.differs[costs[0] != costs[1]] title=(COST_EXPLANATION) { th scope="row" { "Cost" } @for cost in &costs { td { (cost) } } }
                }
            }
        }
        @for group in shown.chunk_by(|a, b| is_same(a) && is_same(b)) {
            @if is_same(&group[0]) {
                p.same { (group.len()) @if group.len() == 1 { " entry is" } @else { " entries are" } " the same" }
            } @else {
                (entry_pair(&EntryPair::from_change(&group[0], &a.entries, &b.entries), &bases, viewer))
            }
        }
        @if shown.len() < steps.len() { p.same { "Only the first " (MAX_DIFFERENCES) " differences are shown." } }
    })
}

/// A fact; its numbers have separators.
fn fact_text(fact: &SessionFact, text: &str) -> String {
    let is_count = matches!(fact.name, "entries" | "tokens");
    let words = text.split(' ').map(|word| match word.parse() {
        Ok(number) if is_count => exact_count(number),
        _ => visible_text(word).into_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// What a change means, for people.
fn change_name(change: &str) -> &str {
    match change {
        "removed" => "only in the first session",
        "added" => "only in the second session",
        other => other,
    }
}

/// The steps up to the last difference to show.
fn shown_steps(steps: &[EntryChange]) -> &[EntryChange] {
    let differing = steps.iter().enumerate().filter(|(_, step)| !is_same(step));
    let end = differing.map(|(at, _)| at).nth(MAX_DIFFERENCES).unwrap_or(steps.len());
    &steps[..end]
}

fn is_same(step: &EntryChange) -> bool {
    matches!(step, EntryChange::Same(..))
}

fn entry_pair(pair: &EntryPair<'_>, bases: &[String; 2], viewer: &PageViewer) -> Markup {
    let texts = pair.texts().map(|text| name_pictures(&text));
    let rows: Vec<AlignedLines<'_>> = pair_lines(&texts[0], &texts[1]);
    let rows = &rows[..rows.len().min(MAX_PAIR_LINES)];
    let link = |side: Option<(usize, &steno_model::Entry)>, base: &str| {
        html! {
            @if let Some((number, entry)) = side {
                a href={ (base) "#e" (number) } title={ "Entry " (number) " of the session" } {
                    (clean_text(&capitalize_first(&entry.heading())))
                    @if let Some(at) = entry.created_at { ", " (at.in_zone(&viewer.zone).wall().strftime("%H:%M:%S").to_string()) }
                }
            }
        }
    };
    html! {
        section.pair {
            header { span { (link(pair.a, &bases[0])) } b { (change_name(pair.change)) } span { (link(pair.b, &bases[1])) } }
            .columns {
                @if pair.a.is_some() { pre tabindex="0" { @for row in rows { (side_line(row.a, row.b, true)) } } }
                @if pair.b.is_some() { pre tabindex="0" { @for row in rows { (side_line(row.b, row.a, false)) } } }
            }
        }
    }
}

/// A text with a short name for each picture, instead of its hash.
fn name_pictures(text: &str) -> String {
    let segments = split_pictures(text).into_iter().map(|segment| match segment {
        TextSegment::Text(text) => text.to_owned(),
        TextSegment::Picture { media_type, hash } => {
            format!("[picture {}, {media_type}]", hash.get(..8).unwrap_or(hash))
        }
    });
    segments.collect()
}

/// A line of one side. Words that the other side lacks are marked.
fn side_line(line: Option<&str>, other: Option<&str>, is_first: bool) -> Markup {
    let Some(line) = line else { return html! { "\n" } };
    if other == Some(line) {
        return html! { (clean_text(line)) "\n" };
    }
    let [marks, _] = other.map_or_else(Default::default, |other| changed_words(line, other));
    let text = marked_line(line, &marks);
    html! { @if is_first { del { (text) "\n" } } @else { ins { (text) "\n" } } }
}
