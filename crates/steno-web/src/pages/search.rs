//! The search page: the hits of `steno search`, and filters for them.

use std::collections::BTreeMap;

use axum::extract::Query;
use jiff::civil::Date;
use maud::{Markup, html};
use steno_model::EntryKind;
use steno_store::index::match_lines::{LineLimits, MatchLine};
use steno_store::index::{
    CountedSearch, MAX_LOOKED_UP, MatchGroup, SearchHit, SearchQuery as Question, ToolMatchGroup,
};
use steno_store::view::markdown::capitalize_first;

use steno_store::session_owners::SessionOwners;

use crate::addresses::session_address;
use crate::app::WebApp;
use crate::date_range::{is_reversed_period, reversed_period_notice};
use crate::error::WebError;
use crate::filter_query::{FilterQuery, encode_query_text};
use crate::page::{self, PageHead};
use crate::project_names::ProjectNames;
use crate::render::diff::marked_line;
use crate::render::plain::clean_text;
use crate::render::result_text::ResultText;
use crate::units::{count_of, exact_count};
use crate::viewer::PageViewer;

/// The address of the page.
const ADDRESS: &str = "/search";

/// How many sessions are shown at first, and how many more at once.
const PAGE_SESSIONS: usize = 25;

/// The most sessions of one page.
const MAX_SESSIONS: usize = 2000;

/// How many hits of one session are shown.
const MAX_SESSION_HITS: usize = 3;

/// The search page.
pub(crate) async fn search_page(
    app: WebApp,
    viewer: PageViewer,
    Query(filters): Query<FilterQuery>,
) -> Result<Markup, WebError> {
    app.run_blocking(move |library| {
        let limit = filters.limit.unwrap_or(PAGE_SESSIONS).clamp(1, MAX_SESSIONS);
        let result = filters.search_and_count(library, &viewer.zone, limit);
        let owners = library.owners().unwrap_or_default();
        let body = html! {
            h1 { "Search" }
            (search_form(&filters))
            (reversed_period_notice("/search", &filters))
            (page::stale_notice(library.index_notice().as_deref()))
            (page::damage_notice(&library.damage_warnings()?))
            @match result {
                _ if filters.q.trim().is_empty() => .empty {
                    p { b { "Search in messages, tool calls and results" } }
                    p { code { "two words" } " finds both, " code { "\"a phrase\"" } " in this order, " code { "-word" } " leaves out, " code { "pre*" } " finds starts of words, " code { "one OR other" } " either, " code { "/regex/" } " a pattern." }
                },
                Err(error) => .empty role="status" { p { b { (capitalize_first(&error.to_string())) } } p { (error.hint()) } },
                Ok(_) if is_reversed_period(&filters) => {}
                Ok((_, found)) if found.hits.is_empty() => .empty role="status" { p { b { "Nothing found" (clean_text(&period_suffix(&filters))) } } p { "Try fewer words, or the start of a word with * (log*)." @if has_filters(&filters) { " " a href=(without_filters(&filters)) { "Remove all filters" } } } },
                Ok((question, found)) => .aside {
                    (facet_list(&filters, &found, &owners))
                    div { (hit_groups(&HitView { viewer: &viewer, filters: &filters, question: &question, found: &found, owners: &owners, projects: project_names(&found) })) }
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
        ("thread", &filters.thread),
        ("person", &filters.person),
    ];
    html! {
        form.filters action="/search" role="search" {
            input #query name="q" type="search" value=(filters.q) autofocus[filters.q.is_empty()]
                placeholder="Search all sessions" aria-label="Search all sessions";
            @for (name, value) in kept.iter().filter(|(_, value)| !value.is_empty()) {
                input type="hidden" name=(name) value=(value);
            }
            button.fold-filters type="button" aria-expanded="false" { "Dates and order" }
            (date_field("From ", "since", &filters.since))
            (date_field("to ", "until", &filters.until))
            select name="sort" aria-label="Order" {
                option value="" { "Best first" }
                option value="time" selected[filters.sort == "time"] { "Newest first" }
            }
            label { input type="checkbox" name="errors" value="true" checked[filters.errors]; " Only errors" }
            button { "Search" }
        }
    }
}

/// Whether a search has more than words and an order.
fn has_filters(filters: &FilterQuery) -> bool {
    let words =
        FilterQuery { q: filters.q.clone(), sort: filters.sort.clone(), ..FilterQuery::default() };
    filters.address_of(ADDRESS) != words.address_of(ADDRESS)
}

/// The address of the same words without filters.
fn without_filters(filters: &FilterQuery) -> String {
    FilterQuery { q: filters.q.clone(), ..FilterQuery::default() }.address_of(ADDRESS)
}

/// A date of the period. An address may have a number of days, which no date picker can show: that is a text.
fn date_field(label: &str, name: &str, value: &str) -> Markup {
    let is_date = value.is_empty() || value.parse::<Date>().is_ok();
    let kind = if is_date { "date" } else { "text" };
    html! {
        label.date { (label) input type=(kind) name=(name) value=(value) title="A date such as 2026-01-05, with the whole day; in the address also a number of days ago (7d)"; }
    }
}

/// The period of a search after what was found: `, from 2026-01-05 to 2026-01-31`; empty without a period.
fn period_suffix(filters: &FilterQuery) -> String {
    match (filters.since.trim(), filters.until.trim()) {
        ("", "") => String::new(),
        (since, "") => format!(", since {since}"),
        ("", until) => format!(", until {until}"),
        (since, until) => format!(", from {since} to {until}"),
    }
}

/// A property that entries can be filtered by, and the entries of each value, the most first.
struct SearchFacet<'a> {
    title: &'static str,
    /// The query parameter.
    name: &'static str,
    chosen: &'a str,
    counts: Vec<(&'a str, u64)>,
    /// Whether there may be more entries of each value, and more values.
    is_partial: bool,
}

/// The values of each property, with links that filter by them.
fn facet_list(filters: &FilterQuery, found: &CountedSearch, owners: &SessionOwners) -> Markup {
    html! {
        @let names = project_names(found);
        nav.facets aria-label="Narrow down" {
            @if has_filters(filters) { ul { li { a.no-filters href=(without_filters(filters)) { "Remove all filters ×" } } } }
            @for facet in search_facets(filters, found, owners).iter().filter(|facet| !facet.counts.is_empty()) {
                h2 { (facet.title) }
                ul {
                    @for (value, count) in facet.counts.iter().take(8) {
                        @let is_chosen = *value == facet.chosen;
                        @let at_least = if facet.is_partial { "at least " } else { "" };
                        li {
                            a href=(filters.address_with("/search", facet.name, if is_chosen { "" } else { value }))
                                aria-current=[is_chosen.then_some("true")] title={ (at_least) (count_of(*count, "entry")) }
                            {
                                span { (clean_text(names.name_in_folder(value))) } small { (exact_count(*count)) @if facet.is_partial { "+" } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// The short names of the projects of all sessions that were found.
fn project_names(found: &CountedSearch) -> ProjectNames {
    ProjectNames::new(found.groups.iter().filter_map(|group| group.project.as_deref()))
}

fn search_facets<'a>(
    filters: &'a FilterQuery,
    found: &'a CountedSearch,
    owners: &'a SessionOwners,
) -> [SearchFacet<'a>; 6] {
    let of_groups = |value: fn(&MatchGroup) -> Option<&str>| {
        count_values(found.groups.iter().map(|group| (value(group), group.entries)))
    };
    let of_tools = |value: fn(&ToolMatchGroup) -> Option<&str>| {
        count_values(found.tool_groups.iter().map(|group| (value(group), group.entries)))
    };
    let facet = |title, name, chosen, counts| SearchFacet {
        title,
        name,
        chosen,
        counts,
        is_partial: false,
    };
    let partial = |facet| SearchFacet { is_partial: found.has_more_tools, ..facet };
    let people = found
        .groups
        .iter()
        .map(|group| (owners.person_of(&group.agent, &group.session), group.entries));
    [
        facet("Person", "person", &filters.person, count_values(people)),
        facet("Agent", "agent", &filters.agent, of_groups(|group| Some(&group.agent))),
        facet("Project", "project", &filters.project, of_groups(|group| group.project.as_deref())),
        facet("Role", "role", &filters.role, of_groups(|group| Some(&group.role))),
        partial(facet("Tool", "tool", &filters.tool, of_tools(|group| group.tool.as_deref()))),
        partial(facet("Model", "model", &filters.model, of_tools(|group| group.model.as_deref()))),
    ]
}

/// The entries of each value, the most first.
fn count_values<'a>(values: impl Iterator<Item = (Option<&'a str>, u64)>) -> Vec<(&'a str, u64)> {
    let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
    for (value, entries) in values {
        value.into_iter().for_each(|value| *counts.entry(value).or_default() += entries);
    }
    let mut counts: Vec<_> = counts.into_iter().collect();
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts
}

/// What the hits need to be shown.
struct HitView<'a> {
    viewer: &'a PageViewer,
    filters: &'a FilterQuery,
    question: &'a Question,
    found: &'a CountedSearch,
    /// Whose sessions they are, on the page of a team.
    owners: &'a SessionOwners,
    projects: ProjectNames,
}

/// How much was found, and the hits of each session together.
fn hit_groups(view: &HitView<'_>) -> Markup {
    let found = view.found;
    let mut matches: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for group in &found.groups {
        *matches.entry((&group.agent, &group.session)).or_default() += group.entries;
    }
    let total: u64 = matches.values().sum();
    let mut sessions: Vec<(&SearchHit, Vec<&SearchHit>)> = Vec::new();
    for hit in &found.hits {
        let is_same = |one: &SearchHit| one.agent == hit.agent && one.session == hit.session;
        match sessions.iter_mut().find(|(first, _)| is_same(first)) {
            Some((_, hits)) => hits.push(hit),
            None => sessions.push((hit, vec![hit])),
        }
    }
    html! {
        p.found role="status" {
            (count_of(total, "entry")) " in " (count_of(matches.len() as u64, "session")) (clean_text(&period_suffix(view.filters)))
            @if matches.len() > sessions.len() { "; " (exact_count(sessions.len() as u64)) " of " (exact_count(matches.len() as u64)) " sessions are shown" }
        }
        @if found.has_more_tools { p.hint { "The counts of tools and models cover the first " (exact_count(MAX_LOOKED_UP as u64)) " entries." } }
        ol.hits {
            @for (first, hits) in &sessions {
                @let shown = &hits[..hits.len().min(MAX_SESSION_HITS)];
                @let count = matches.get(&(first.agent.as_str(), first.session.as_str())).copied().unwrap_or(0);
                li {
                    (view.session_line(first))
                    @for hit in shown { (view.hit_item(hit)) }
                    (view.more_link(first, count.saturating_sub(shown.len() as u64)))
                }
            }
        }
        (view.more_sessions(sessions.len(), matches.len()))
    }
}

impl HitView<'_> {
    /// The session of some hits.
    fn session_line(&self, hit: &SearchHit) -> Markup {
        let title = hit.title.as_deref().unwrap_or(hit.session.as_str());
        html! {
            .where {
                a href=(self.hit_address(hit)) { (clean_text(title)) }
                span.agent { (clean_text(&hit.agent)) }
                @if let Some(person) = self.owners.person_of(&hit.agent, hit.session.as_str()) { span title="Whose session it is" { (clean_text(person)) } }
                @if let Some(project) = &hit.project { span title=(clean_text(project)) { (clean_text(self.projects.name_in_folder(project))) } }
            }
        }
    }

    fn hit_address(&self, hit: &SearchHit) -> String {
        let address = session_address(&hit.agent, &hit.session);
        format!("{address}?marks={}#e{}", encode_query_text(&self.filters.q), hit.number)
    }

    fn hit_item(&self, hit: &SearchHit) -> Markup {
        html! {
            .hit {
                a.where href=(self.hit_address(hit)) {
                    span { (clean_text(&hit.heading())) }
                    @if let Some(at) = hit.time {
                        span { (at.in_zone(&self.viewer.zone).wall().strftime("%-d %b %Y, %H:%M")) }
                    }
                }
                pre {
                    @for line in self.matching_lines(hit, 3) { (marked_line(&line.text, &line.marks)) "\n" }
                }
            }
        }
    }

    /// The lines of a hit that match, without the envelope of a result.
    fn matching_lines(&self, hit: &SearchHit, max_lines: usize) -> Vec<MatchLine> {
        let limits = || LineLimits { max_lines, context_lines: 0 };
        let parsed = ResultText::parse(&hit.text);
        let is_result = hit.kind == EntryKind::ToolResult;
        let text = if is_result { parsed.output.as_ref() } else { &hit.text };
        let lines = self.question.matching_lines(text, limits());
        let is_marked = lines.iter().any(|line| !line.marks.is_empty());
        if is_marked { lines } else { self.question.matching_lines(&hit.text, limits()) }
    }

    /// The link to the same search with more sessions. A script adds them to the page.
    fn more_sessions(&self, shown: usize, all: usize) -> Markup {
        let more = all.saturating_sub(shown).min(PAGE_SESSIONS);
        let limit = shown + PAGE_SESSIONS;
        html! {
            @if more > 0 && limit <= MAX_SESSIONS {
                p.tools #more-hits {
                    a data-more="ol.hits" href={ (self.filters.address_of("/search")) "&limit=" (limit) } {
                        "Show " (exact_count(more as u64)) " more " @if more == 1 { "session" } @else { "sessions" }
                    }
                    span.hint { (exact_count(shown as u64)) " of " (exact_count(all as u64)) " sessions" }
                }
            } @else if more > 0 {
                p.hint { "Add a word or a filter to see the other " (count_of((all - shown) as u64, "session")) "." }
            }
        }
    }

    /// The link that opens the session and finds the same text in it.
    fn more_link(&self, hit: &SearchHit, more: u64) -> Markup {
        let line = self.matching_lines(hit, 1).into_iter().next();
        let word =
            line.and_then(|line| Some(line.text.get(line.marks.first()?.clone())?.to_owned()));
        let address = session_address(&hit.agent, &hit.session);
        html! {
            @if more > 0 && let Some(word) = word {
                a.more-hits href={ (address) "?find=" (encode_query_text(&word)) } {
                    (exact_count(more)) " more in this session"
                }
            }
        }
    }
}
