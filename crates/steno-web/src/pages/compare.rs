//! Two sessions side by side, as `steno diff` compares them.

use axum::extract::{Query, State};
use maud::{Markup, html};
use serde::Deserialize;
use steno_core::compare::text::{Row, rows, words};
use steno_core::compare::{Step, compare, facts};
use steno_core::view::answer::diff::Pair;

use crate::app::WebApp;
use crate::error::WebError;
use crate::heading;
use crate::library::{Library, Opened};
use crate::page;
use crate::pages::address;
use crate::render::diff::marked;
use crate::render::plain::clean;

/// How many pairs that differ are shown.
const SHOWN: usize = 200;

/// How many sessions are offered to choose from.
const OFFERED: usize = 200;

/// Lines of a pair that are shown.
const LINES: usize = 200;

/// Which two, each as `AGENT/ID`.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(crate) struct Both {
    pub(crate) a: String,
    pub(crate) b: String,
}

/// The page.
pub(crate) async fn page(
    State(app): State<WebApp>,
    Query(both): Query<Both>,
) -> Result<Markup, WebError> {
    app.run_blocking(move |library| {
        let is_asked = !both.a.is_empty() && !both.b.is_empty();
        let body = html! {
            h1 { "Compare" }
            (form(library, &both)?)
            @if is_asked { (compared(library, &both)?) }
            @else { p.empty { "Choose two sessions: what is known of them, and what was said, stands side by side." } }
        };
        Ok(page::shell("Compare", "/compare", &body))
    })
    .await
}

fn form(library: &Library, both: &Both) -> Result<Markup, WebError> {
    let listing = library.listing()?;
    let sessions = || listing.sessions.iter().take(OFFERED).map(|one| &one.session);
    let choice = |name: &str, chosen: &str| {
        let is_known = sessions().any(|session| named(&session.agent, &session.id) == chosen);
        html! {
            select name=(name) aria-label={ "Session " (name) } {
                option value="" { "Choose a session" }
                @if !is_known && !chosen.is_empty() { option value=(chosen) selected { (chosen) } }
                @for session in sessions() {
                    @let name = named(&session.agent, &session.id);
                    option value=(name) selected[name == chosen] {
                        (heading::title(session)) " (" (session.agent) ")"
                    }
                }
            }
        }
    };
    Ok(html! {
        form.filters action="/compare" { (choice("a", &both.a)) (choice("b", &both.b)) button { "Compare" } }
    })
}

fn named(agent: &str, id: &steno_core::SessionId) -> String {
    format!("{agent}/{id}")
}

/// The session that a name of the form `AGENT/ID` means.
pub(crate) fn opened(library: &Library, name: &str) -> Result<std::sync::Arc<Opened>, WebError> {
    let (agent, id) = name.split_once('/').ok_or_else(|| WebError::Unknown(name.to_owned()))?;
    library.open(agent, id)
}

fn compared(library: &Library, both: &Both) -> Result<Markup, WebError> {
    let (a, b) = (opened(library, &both.a)?, opened(library, &both.b)?);
    let (a, b) = (&a.transcript, &b.transcript);
    let steps = compare(&a.entries, &b.entries);
    let clock = |at: steno_core::Timestamp| at.in_zone(&library.zone).date_and_clock();
    let bases = [a, b].map(|one| address(&one.session.agent, &one.session.id));
    let shown = shown(&steps);
    Ok(html! {
        table.sides {
            tbody {
                @for fact in facts::of(&a.session, &b.session, &clock) {
                    tr { th scope="row" { (fact.name) } td { (clean(&fact.a)) } td { (clean(&fact.b)) } }
                }
            }
        }
        @for group in shown.chunk_by(|a, b| is_same(a) && is_same(b)) {
            @if is_same(&group[0]) {
                p.same { (group.len()) @if group.len() == 1 { " entry is" } @else { " entries are" } " the same" }
            } @else {
                (pair(&Pair::of(&group[0], &a.entries, &b.entries), &bases))
            }
        }
        @if shown.len() < steps.len() { p.same { "Only the first " (SHOWN) " differences are shown." } }
    })
}

/// The steps up to the last difference that is shown.
fn shown(steps: &[Step]) -> &[Step] {
    let differing = steps.iter().enumerate().filter(|(_, step)| !is_same(step));
    let end = differing.map(|(at, _)| at).nth(SHOWN).unwrap_or(steps.len());
    &steps[..end]
}

fn is_same(step: &Step) -> bool {
    matches!(step, Step::Same(..))
}

fn pair(pair: &Pair<'_>, bases: &[String; 2]) -> Markup {
    let texts = pair.texts();
    let rows: Vec<Row<'_>> = rows(&texts[0], &texts[1]);
    let rows = &rows[..rows.len().min(LINES)];
    let link = |side: Option<(usize, &steno_core::Entry)>, base: &str| {
        html! {
            @if let Some((number, entry)) = side {
                a href={ (base) "#e" (number) } { (number) " " (clean(&entry.heading())) }
            }
        }
    };
    html! {
        section.pair {
            header { span { (link(pair.a, &bases[0])) } b { (pair.change) } span { (link(pair.b, &bases[1])) } }
            .columns {
                pre tabindex="0" { @for row in rows { (side(row.a, row.b, true)) } }
                pre tabindex="0" { @for row in rows { (side(row.b, row.a, false)) } }
            }
        }
    }
}

/// A line of one side, with what the other side does not have marked.
fn side(line: Option<&str>, other: Option<&str>, is_first: bool) -> Markup {
    let Some(line) = line else { return html! { "\n" } };
    if other == Some(line) {
        return html! { (clean(line)) "\n" };
    }
    let [marks, _] = other.map_or_else(Default::default, |other| words(line, other));
    let text = marked(line, &marks);
    html! { @if is_first { del { (text) "\n" } } @else { ins { (text) "\n" } } }
}
