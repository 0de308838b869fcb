//! The search of `steno search`, with what the hits have in common.

use std::collections::BTreeMap;

use axum::extract::{Query, State};
use maud::{Markup, html};
use steno_core::index::mark::Shown;
use steno_core::index::{Hit, Query as Question};

use crate::app::WebApp;
use crate::asked::Asked;
use crate::error::WebError;
use crate::library::Library;
use crate::page;
use crate::pages::address;
use crate::pages::home::short_path;
use crate::render::diff::marked;
use crate::render::plain::clean;

/// How many hits are looked at for what they have in common, and how many are shown.
const LOOKED_AT: usize = 100;
const SHOWN: usize = 40;

/// The page.
pub(crate) async fn page(
    State(app): State<WebApp>,
    Query(asked): Query<Asked>,
) -> Result<Markup, WebError> {
    app.run_blocking(move |library| {
        let found = asked.hits(library, LOOKED_AT);
        let body = html! {
            h1 { "Search" }
            (form(&asked))
            (page::stale_notice(library.notice().as_deref()))
            @match found {
                _ if asked.q.trim().is_empty() => p.empty {
                    "Words, \"a phrase\", -not, begin*, one OR other, /regex/: in all that was said, thought, run or answered."
                },
                Err(error) => p.empty role="status" { (error.to_string()) },
                Ok((_, hits)) if hits.is_empty() => p.empty role="status" { "Nothing found." },
                Ok((question, hits)) => .aside {
                    (facets(&asked, &hits))
                    div {
                        p.found role="status" {
                            (hits.len()) @if hits.len() == LOOKED_AT { " or more" } " hit" @if hits.len() != 1 { "s" }
                        }
                        ol.hits {
                            @for hit in hits.iter().take(SHOWN) { li { (shown(library, &question, hit)) } }
                        }
                    }
                },
            }
        };
        Ok(page::shell("Search", "/search", &body))
    })
    .await
}

fn form(asked: &Asked) -> Markup {
    let kept = [
        ("agent", &asked.agent),
        ("project", &asked.project),
        ("role", &asked.role),
        ("tool", &asked.tool),
        ("model", &asked.model),
    ];
    html! {
        form.filters action="/search" role="search" {
            input #query name="q" type="search" value=(asked.q) autofocus[asked.q.is_empty()]
                placeholder="What was said" aria-label="What to look for";
            @for (name, value) in kept.iter().filter(|(_, value)| !value.is_empty()) {
                input type="hidden" name=(name) value=(value);
            }
            input name="since" value=(asked.since) placeholder="Since: 7d, 2026-01-05" aria-label="Since" size="18";
            select name="sort" aria-label="Order" {
                option value="" { "Best first" }
                option value="time" selected[asked.sort == "time"] { "Newest first" }
            }
            label { input type="checkbox" name="errors" value="true" checked[asked.errors]; " Errors" }
            button { "Search" }
        }
    }
}

/// Something that hits may have in common.
type Property = fn(&Hit) -> Option<&str>;

/// What the hits have in common, each a link that asks for it alone.
fn facets(asked: &Asked, hits: &[Hit]) -> Markup {
    let all: [(&str, &str, &str, Property); 5] = [
        ("Agent", "agent", &asked.agent, |hit| Some(&hit.agent)),
        ("Project", "project", &asked.project, |hit| hit.project.as_deref()),
        ("Who", "role", &asked.role, |hit| Some(&hit.role)),
        ("Tool", "tool", &asked.tool, |hit| hit.tool.as_deref()),
        ("Model", "model", &asked.model, |hit| hit.model.as_deref()),
    ];
    html! {
        nav.facets aria-label="Narrow down" {
            @for (title, name, chosen, of) in all {
                @let counts = counted(hits, of);
                @if !counts.is_empty() {
                    h2 { (title) }
                    ul {
                        @for (value, count) in counts.iter().take(8) {
                            @let is_chosen = *value == chosen;
                            li {
                                a href=(asked.with("/search", name, if is_chosen { "" } else { value }))
                                    aria-current=[is_chosen.then_some("true")]
                                {
                                    span { (clean(short_path(value))) } small { (count) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn counted(hits: &[Hit], of: Property) -> Vec<(&str, usize)> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    hits.iter().filter_map(of).for_each(|value| *counts.entry(value).or_default() += 1);
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts
}

fn shown(library: &Library, question: &Question, hit: &Hit) -> Markup {
    let place = format!("{}#e{}", address(&hit.agent, &hit.session), hit.number);
    let title = hit.title.as_deref().unwrap_or(hit.session.as_str());
    html! {
        .where {
            a href=(place) { (clean(title)) }
            span.agent { (clean(&hit.agent)) }
            span { (clean(&hit.heading())) }
            @if let Some(at) = hit.time {
                span { (at.in_zone(&library.zone).wall().strftime("%-d %b %Y, %H:%M")) }
            }
            @if hit.copies > 0 { span { "and " (hit.copies) " more" } }
        }
        pre {
            @for line in question.lines(&hit.text, Shown { lines: 3, context: 0 }) {
                (marked(&line.text, &line.marks)) "\n"
            }
        }
    }
}
