//! The search page: the hits of `steno search`, and filters for them.

use std::collections::BTreeMap;

use axum::extract::{Query, State};
use maud::{Markup, html};
use steno_store::index::match_lines::LineLimits;
use steno_store::index::{SearchHit, SearchQuery as Question};

use crate::addresses::{session_address, short_path};
use crate::app::WebApp;
use crate::error::WebError;
use crate::filter_query::{FilterQuery, encode_query_text};
use crate::page::{self, PageHead};
use crate::render::diff::marked_line;
use crate::render::plain::clean_text;
use crate::viewer::PageViewer;

/// How many hits are counted for the filters, and how many are shown.
const MAX_HITS: usize = 100;
const MAX_SHOWN_HITS: usize = 40;

/// The search page.
pub(crate) async fn search_page(
    State(app): State<WebApp>,
    viewer: PageViewer,
    Query(filters): Query<FilterQuery>,
) -> Result<Markup, WebError> {
    app.run_blocking(move |library| {
        let result = filters.search(library, &viewer.zone, MAX_HITS);
        let body = html! {
            h1 { "Search" }
            (search_form(&filters))
            (page::stale_notice(library.index_notice().as_deref()))
            (page::damage_notice(&library.damage_warnings()?))
            @match result {
                _ if filters.q.trim().is_empty() => .empty {
                    p { b { "Search in messages, tool calls and results" } }
                    p { code { "two words" } " finds both, " code { "\"a phrase\"" } " in this order, " code { "-word" } " leaves out, " code { "pre*" } " finds starts of words, " code { "one OR other" } " either, " code { "/regex/" } " a pattern." }
                },
                Err(error) => p.empty role="status" { (error.to_string()) },
                Ok((_, hits)) if hits.is_empty() => .empty role="status" { p { b { "Nothing found" } } p { "Try fewer words, the start of a word with * (log*), or remove filters." } },
                Ok((question, hits)) => .aside {
                    (facet_list(&filters, &hits))
                    div {
                        p.found role="status" {
                            (hits.len()) @if hits.len() == MAX_HITS { " or more" } " hit" @if hits.len() != 1 { "s" }
                        }
                        ol.hits {
                            @for hit in hits.iter().take(MAX_SHOWN_HITS) { li { (hit_item(&viewer, &filters.q, &question, hit)) } }
                        }
                    }
                },
            }
        };
        Ok(PageHead::new("Search", "/search").viewed_by(&viewer).with_body(&body))
    })
    .await
}

fn search_form(filters: &FilterQuery) -> Markup {
    let kept = [
        ("agent", &filters.agent),
        ("project", &filters.project),
        ("role", &filters.role),
        ("tool", &filters.tool),
        ("model", &filters.model),
    ];
    html! {
        form.filters action="/search" role="search" {
            input #query name="q" type="search" value=(filters.q) autofocus[filters.q.is_empty()]
                placeholder="Search all sessions" aria-label="Search all sessions";
            @for (name, value) in kept.iter().filter(|(_, value)| !value.is_empty()) {
                input type="hidden" name=(name) value=(value);
            }
            input name="since" value=(filters.since) placeholder="Since: 7d, 2026-01-05" aria-label="Since" title="Only entries since then: a number of days (7d) or a date (2026-01-05)" size="18";
            select name="sort" aria-label="Order" {
                option value="" { "Best first" }
                option value="time" selected[filters.sort == "time"] { "Newest first" }
            }
            label { input type="checkbox" name="errors" value="true" checked[filters.errors]; " Only errors" }
            button { "Search" }
        }
    }
}

/// A property that hits can be filtered by.
type HitProperty = fn(&SearchHit) -> Option<&str>;

/// The values of each property, with links that filter by them.
fn facet_list(filters: &FilterQuery, hits: &[SearchHit]) -> Markup {
    let all: [(&str, &str, &str, HitProperty); 5] = [
        ("Agent", "agent", &filters.agent, |hit| Some(&hit.agent)),
        ("Project", "project", &filters.project, |hit| hit.project.as_deref()),
        ("Role", "role", &filters.role, |hit| Some(&hit.role)),
        ("Tool", "tool", &filters.tool, |hit| hit.tool.as_deref()),
        ("Model", "model", &filters.model, |hit| hit.model.as_deref()),
    ];
    html! {
        nav.facets aria-label="Narrow down" {
            @for (title, name, chosen, of) in all {
                @let counts = count_values(hits, of);
                @if !counts.is_empty() {
                    h2 { (title) }
                    ul {
                        @for (value, count) in counts.iter().take(8) {
                            @let is_chosen = *value == chosen;
                            li {
                                a href=(filters.address_with("/search", name, if is_chosen { "" } else { value }))
                                    aria-current=[is_chosen.then_some("true")]
                                {
                                    span { (clean_text(short_path(value))) } small { (count) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn count_values(hits: &[SearchHit], of: HitProperty) -> Vec<(&str, usize)> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    hits.iter().filter_map(of).for_each(|value| *counts.entry(value).or_default() += 1);
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts
}

fn hit_item(viewer: &PageViewer, asked: &str, question: &Question, hit: &SearchHit) -> Markup {
    let address = session_address(&hit.agent, &hit.session);
    let place = format!("{address}?marks={}#e{}", encode_query_text(asked), hit.number);
    let title = hit.title.as_deref().unwrap_or(hit.session.as_str());
    html! {
        .where {
            a href=(place) { (clean_text(title)) }
            span.agent { (clean_text(&hit.agent)) }
            span { (clean_text(&hit.heading())) }
            @if let Some(at) = hit.time {
                span { (at.in_zone(&viewer.zone).wall().strftime("%-d %b %Y, %H:%M")) }
            }
            @if hit.copies > 0 { span { "and " (hit.copies) " more" } }
        }
        pre {
            @for line in question.matching_lines(&hit.text, LineLimits { max_lines: 3, context_lines: 0 }) {
                (marked_line(&line.text, &line.marks)) "\n"
            }
        }
    }
}
