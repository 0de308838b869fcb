//! The start page: a dense list of sessions by the day of their last activity, with facets, totals and a calendar of activity.

use std::collections::BTreeSet;

use axum::extract::Query;
use jiff::civil::Date;
use maud::{Markup, html};
use steno_model::Session;
use steno_store::amount::{format_count, format_dollars};
use steno_store::index::ListedSession;

use crate::activity_calendar::activity_calendar;
use crate::addresses::{session_address, short_model, short_path};
use crate::app::WebApp;
use crate::error::WebError;
use crate::filter_query::encode_query_text;
use crate::heading;
use crate::library::SessionLibrary;
use crate::list_columns::column_headings;
use crate::list_filter::{
    FacetValue, IgnoredCondition, LIST_FACETS, ListFilter, ListMatcher, date_ranges,
};
use crate::live::edition_id;
use crate::page::{self, PageHead};
use crate::project_names::ProjectNames;
use crate::render::plain::clean_text;
use crate::session_listing::SessionListing;
use crate::session_person::session_person;
use crate::units::{COST_EXPLANATION, count_of, exact_count, explain_tokens};
use crate::viewer::PageViewer;

/// How many sessions are listed at first.
const PAGE_SESSIONS: usize = 100;

/// On how many days there must be sessions for the calendar to be open at first.
const MIN_CALENDAR_DAYS: usize = 8;

/// The start page.
pub(crate) async fn home_page(
    app: WebApp,
    viewer: PageViewer,
    Query(query): Query<ListFilter>,
) -> Result<Markup, WebError> {
    app.run_blocking(move |library| {
        library.query_index(|_| Ok(()))?;
        let state = edition_id(&library.index_edition());
        let body = html! {
            main #main .home {
                h1.unseen { "Sessions" }
                #sessions data-state=(state) { (session_list_view(library, &viewer, &query)?) }
            }
        };
        Ok(PageHead::new("Sessions", "/").viewed_by(&viewer).skips_to("#list").with_main(&body))
    })
    .await
}

/// The list of sessions without the page, for updates.
pub(crate) async fn session_list(
    app: WebApp,
    viewer: PageViewer,
    Query(query): Query<ListFilter>,
) -> Result<Markup, WebError> {
    app.run_blocking(move |library| session_list_view(library, &viewer, &query)).await
}

fn session_list_view(
    library: &SessionLibrary,
    viewer: &PageViewer,
    query: &ListFilter,
) -> Result<Markup, WebError> {
    let listing = library.session_listing()?;
    let notices = html! {
        (page::stale_notice(library.index_notice().as_deref()))
        (page::damage_notice(&library.damage_warnings()?))
    };
    let view = SessionListView { library, viewer, query, listing: &listing };
    // A period may begin some hours ago, so its list changes all the time.
    if !query.since.is_empty() || !query.until.is_empty() {
        return view.list_with_facets(&notices);
    }
    let (edition, today) = (listing.edition, viewer.today(&library.clock));
    let zone = viewer.zone.iana_name().unwrap_or("zone of the server");
    let key = format!("{edition:?} {zone} {today} {query:?} {}", notices.0);
    library.cache_rendered_list(key, || view.list_with_facets(&notices))
}

/// What the parts of the list need.
struct SessionListView<'a> {
    library: &'a SessionLibrary,
    viewer: &'a PageViewer,
    query: &'a ListFilter,
    listing: &'a SessionListing,
}

/// A number with its noun. Beside a title on a wide screen, a sign is in place of the noun, so that the title has the room.
fn badge_text(sign: &str, text: &str) -> Markup {
    let (number, noun) = text.split_once(' ').unwrap_or((text, ""));
    html! { span.sign aria-hidden="true" { (sign) } (number) span.noun { " " (noun) } }
}

impl SessionListView<'_> {
    /// The filters and the sessions that they leave, with totals.
    fn list_with_facets(&self, notices: &Markup) -> Result<Markup, WebError> {
        let sessions = &self.listing.sessions;
        let matcher = self.query.to_matcher(&self.viewer.local_now(&self.library.clock))?;
        let matcher = matcher.with_failures(&self.listing.failures);
        let undated: Vec<&ListedSession> = sessions
            .iter()
            .filter(|one| matcher.matches(&one.session, IgnoredCondition::Dates))
            .collect();
        let matching = matcher.sorted_sessions(self.listing, self.query.order());
        Ok(html! {
            nav.facets aria-label="Filter sessions" {
                .filter-line { (self.filter_box()) button #facets-open type="button" aria-expanded="false" { "Filters" } }
                (self.chosen_conditions())
                (self.date_facet(&undated))
                (self.errors_facet(&matcher))
                @for facet in &LIST_FACETS {
                    (self.facet_values(facet.title, facet.name, &matcher.count_facet(facet, sessions.iter().map(|one| &one.session))))
                }
            }
            #list .listed tabindex="-1" {
                (notices)
                @if !matching.is_empty() { (self.overview(&matching, &undated)) }
                (self.day_groups(&matching))
            }
        })
    }

    fn filter_box(&self) -> Markup {
        html! {
            input #filter data-server type="search" value=(self.query.filter) autocomplete="off"
                placeholder="Filter sessions" aria-label="Filter by title, agent, project, branch, model or id"
                title="Words in the title, agent, project, branch, model or id. Press / to type here, and Ctrl-K to search in the sessions.";
        }
    }

    /// The conditions that are set, each with a link that removes it.
    fn chosen_conditions(&self) -> Markup {
        let fields = self.query.fields();
        let set = fields.iter().filter(|(_, value)| !value.trim().is_empty());
        html! {
            @if !self.query.is_empty() {
                ul.chosen {
                    @for (name, value) in set {
                        li {
                            a href=(self.query.address_with(&[(name, "")])) title="Remove this filter" {
                                span { @match *name {
                                    "errors" => "with errors",
                                    "filter" => { "text: " (clean_text(value)) },
                                    "project" => { "project: " (clean_text(self.listing.projects.name_in_folder(value))) },
                                    _ => { (name) ": " (clean_text(short_path(value))) },
                                } } " ×"
                            }
                        }
                    }
                    li { a href="/" { "Clear all" } }
                }
            }
        }
    }

    fn date_facet(&self, undated: &[&ListedSession]) -> Markup {
        let today = self.viewer.today(&self.library.clock);
        let now = self.viewer.local_now(&self.library.clock);
        let count = |since: &str, until: &str| {
            let (since, until) = (since.to_owned(), until.to_owned());
            let period = ListFilter { since, until, ..ListFilter::default() };
            let sessions = undated.iter().map(|one| &one.session);
            ListMatcher::count_in_period(&period, sessions, &now).unwrap_or(0)
        };
        html! {
            h2 { "Date" }
            ul {
                @for (name, since, until) in date_ranges(today) {
                    @let (from, to) = (since.to_string(), until.to_string());
                    @let is_chosen = self.query.since == from && self.query.until == to;
                    li {
                        a href=(self.query.address_with(&if is_chosen { [("since", ""), ("until", "")] } else { [("since", &from), ("until", &to)] }))
                            aria-current=[is_chosen.then_some("true")]
                        {
                            span { (name) } small { (exact_count(count(&from, &to) as u64)) }
                        }
                    }
                }
            }
            (self.date_form())
        }
    }

    /// The facet of sessions with errors.
    fn errors_facet(&self, matcher: &ListMatcher<'_>) -> Markup {
        let sessions = self.listing.sessions.iter().map(|one| &one.session);
        let others = sessions.filter(|one| matcher.matches(one, IgnoredCondition::Errors));
        let count = others.filter(|one| matcher.has_errors(one)).count();
        let is_chosen = !self.query.errors.is_empty();
        html! {
            @if count > 0 || is_chosen {
                h2 { "Quality" }
                ul {
                    li {
                        a href=(self.query.address_with(&[("errors", if is_chosen { "" } else { "true" })]))
                            aria-current=[is_chosen.then_some("true")] title="Sessions with errors or failed tool calls"
                        {
                            span { "With errors" } small { (exact_count(count as u64)) }
                        }
                    }
                }
            }
        }
    }

    fn date_form(&self) -> Markup {
        html! {
            form.dates action="/" {
                @let order = self.query.order().to_parameter();
                @let kept = self.query.fields().into_iter().chain([("sort", order.as_str())]);
                @for (name, value) in kept.filter(|(name, value)| !["since", "until"].contains(name) && !value.is_empty()) {
                    input type="hidden" name=(name) value=(value);
                }
                label { "From " input type="date" name="since" value=(self.query.since); }
                label { "to " input type="date" name="until" value=(self.query.until); }
                button { "Show" }
            }
        }
    }

    fn facet_values(&self, title: &str, name: &str, values: &[FacetValue<'_>]) -> Markup {
        html! {
            @if !values.is_empty() {
                h2 { (title) }
                ul {
                    @for one in values {
                        @let is_chosen = self.query.value(name) == one.value;
                        li {
                            a href=(self.query.address_with(&[(name, if is_chosen { "" } else { one.value })]))
                                aria-current=[is_chosen.then_some("true")] title=(clean_text(one.value))
                            {
                                span { (clean_text(self.facet_label(name, one.value))) }
                                small { (exact_count(one.sessions as u64)) }
                            }
                        }
                    }
                }
            }
        }
    }

    /// What the page calls a value of a facet.
    fn facet_label<'a>(&self, name: &str, value: &'a str) -> &'a str {
        match name {
            "model" => short_model(value),
            "project" => self.listing.projects.name_in_folder(value),
            _ => short_path(value),
        }
    }

    /// The totals, and the calendar of activity, which can be folded.
    fn overview(&self, matching: &[&ListedSession], undated: &[&ListedSession]) -> Markup {
        let totals = self.listing.sum_sessions(matching.iter().map(|one| &one.session));
        let copied = match totals.copies {
            0 => String::new(),
            copies => format!(
                ". {} that resumed and forked sessions copied from others are not counted again",
                count_of(copies, "entry")
            ),
        };
        let projects: BTreeSet<_> =
            matching.iter().filter_map(|one| one.session.project.as_deref()).collect();
        let days: Vec<Date> =
            undated.iter().filter_map(|one| last_active_day(&one.session, self.viewer)).collect();
        let active_days = days.iter().collect::<BTreeSet<_>>().len();
        html! {
            details #overview .overview open[active_days >= MIN_CALENDAR_DAYS] {
                summary {
                    span.totals role="status" {
                        b { (count_of(totals.sessions, "session")) }
                        @if totals.empty_sessions > 0 { span title="Sessions in the list that have no entries" { (exact_count(totals.empty_sessions)) " without entries" } }
                        span { (count_of(projects.len() as u64, "project")) }
                        span title={ "Messages, tool calls and results, and notices" (copied) } { (count_of(totals.entries, "entry")) }
                        span title={ (explain_tokens(&totals.usage)) ". A message that several sessions have counts once" } { (format_count(totals.usage.prompt_tokens().saturating_add(totals.usage.output))) " tokens" }
                        span title=(COST_EXPLANATION) { (format_dollars(totals.cost)) @if totals.has_unknown_cost { "+?" } }
                    }
                }
                (activity_calendar(days.into_iter(), self.viewer.today(&self.library.clock)))
            }
            @if !self.query.model.is_empty() {
                p.hint { "Of whole sessions, also what other models did in them. " a href={ "/cost?period=all&model=" (encode_query_text(&self.query.model)) } { "Cost of this model" } }
            }
        }
    }

    fn day_groups(&self, matching: &[&ListedSession]) -> Markup {
        let limit = self.query.limit.unwrap_or(PAGE_SESSIONS);
        let shown = &matching[..matching.len().min(limit)];
        let day = |one: &ListedSession| last_active_day(&one.session, self.viewer);
        let more = (matching.len() - shown.len()).min(PAGE_SESSIONS);
        let has_people = shown.iter().any(|one| session_person(&one.session).is_some());
        html! {
            @if matching.is_empty() { (self.empty_list()) }
            @else { (column_headings(self.query, has_people)) }
            @if !shown.is_empty() {
                ul class={ "rows by-" (self.query.order().to_parameter().trim_start_matches('-')) } {
                    @for sessions in shown.chunk_by(|a, b| day(a) == day(b)) {
                        @for (at, one) in sessions.iter().enumerate() {
                            li.new-day[at == 0] { (self.session_row(one)) }
                        }
                    }
                }
            }
            @if more > 0 {
                p.tools { a #more-sessions data-more="ul.rows" href=(self.address_with_limit(limit + PAGE_SESSIONS)) { "Show " (more) " of " (exact_count((matching.len() - shown.len()) as u64)) " more" } }
            }
        }
    }

    fn address_with_limit(&self, limit: usize) -> String {
        let address = self.query.address_with(&[]);
        format!("{address}{}limit={limit}", if address.contains('?') { '&' } else { '?' })
    }

    fn empty_list(&self) -> Markup {
        html! {
            .empty role="status" {
                @if self.listing.sessions.is_empty() {
                    p { b { "No sessions yet" } }
                    p { "Run " code { "steno sync" } " to import the sessions of the agents on this machine. This page then shows them by itself." }
                } @else {
                    p { b { "No session matches these filters" } }
                    p { a href="/" { "Clear all filters" } " or " a href={ "/search?q=" (encode_query_text(&self.query.filter)) } { "search in the text of all sessions" } "." }
                }
            }
        }
    }

    fn session_row(&self, one: &ListedSession) -> Markup {
        let session = &one.session;
        let key = (session.agent.clone(), session.id.to_string());
        let usage = &session.totals.usage;
        let failures = self.listing.failures.get(&key);
        html! {
            a.row href=(session_address(&session.agent, &session.id)) data-entries=(session.totals.entries) {
                (self.time_cell(session))
                span.title {
                    span { (heading::session_title(session)) }
                    (heading::status_badge(session.status))
                    @if session.parent.is_some() { small.subagents title="Another session started this one, or it was forked from one" { "from another session" } }
                    @if session.subagent_files > 0 { small.subagents title={ (count_of(session.subagent_files, "subagent")) " with files of their own; the session shows them below the calls that started them" } { (badge_text("↳", &count_of(session.subagent_files, "subagent"))) } }
                    @if let Some(failures) = failures { small.errors title=(count_of(*failures, "error")) { (badge_text("✕", &count_of(*failures, "error"))) } }
                    @if let Some(problem) = &one.problem { small.errors { (clean_text(problem)) } }
                }
                @match session_person(session) {
                    Some(person) => span.by title={ (clean_text(person)) ", " (clean_text(&session.agent)) } { (clean_text(person)) " " small { (heading::agent_label(session)) } },
                    None => span.by { (heading::agent_label(session)) },
                }
                (project_cell(session, &self.listing.projects))
                span.model title=(clean_text(&session.models.join(", "))) { @if let Some(model) = session.models.first() { (clean_text(short_model(model))) } }
                span.num { (exact_count(session.totals.entries)) span.unit { @if session.totals.entries == 1 { " entry" } @else { " entries" } } }
                span.num.duration title="From the first entry to the last" { (heading::session_duration(session).unwrap_or_default()) }
                span.num.tokens title=(explain_tokens(usage)) { @if !usage.is_empty() { (format_count(usage.prompt_tokens().saturating_add(usage.output))) span.unit { " tokens" } } }
                span.num.cost { (self.listing.cost_text(session)) }
            }
        }
    }

    fn time_cell(&self, session: &Session) -> Markup {
        let clock = |at| self.viewer.format_time(at);
        let last = session.ended.or(session.started).map(|at| at.in_zone(&self.viewer.zone).wall());
        let began = session.started.map(|at| format!("Started {}", clock(at)));
        let ended = session.ended.map(|at| format!(", last active {}", clock(at)));
        html! {
            @let tooltip = format!("{}{}", began.unwrap_or_default(), ended.unwrap_or_default());
            span.day-name title=(tooltip) {
                (last.map_or_else(|| "No date".to_owned(), |last| day_name(last.date(), self.viewer.today(&self.library.clock))))
            }
            span.when title=(tooltip) { @if let Some(last) = last { (last.strftime("%H:%M")) } }
        }
    }
}

fn project_cell(session: &Session, names: &ProjectNames) -> Markup {
    let branch = heading::branch_name(session).map(|branch| format!(" on branch {branch}"));
    html! {
        span.project title={ (clean_text(session.project.as_deref().unwrap_or_default())) (clean_text(&branch.unwrap_or_default())) } {
            @if let Some(project) = &session.project { (clean_text(names.name(project))) }
            @if let Some(branch) = heading::branch_name(session) { small { " " (clean_text(branch)) } }
        }
    }
}

/// The day on which a session was last active.
fn last_active_day(session: &Session, viewer: &PageViewer) -> Option<Date> {
    Some(session.ended.or(session.started)?.in_zone(&viewer.zone).wall().date())
}

/// A day of the list: `Mon 16 Nov`, and with the year if it is another one.
fn day_name(day: Date, today: Date) -> String {
    let format = if day.year() == today.year() { "%a %-d %b" } else { "%-d %b %Y" };
    day.strftime(format).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_of_other_years_have_a_year() {
        let day = |year| jiff::civil::date(year, 11, 16);
        assert_eq!(day_name(day(2026), day(2026)), "Mon 16 Nov");
        assert_eq!(day_name(day(2025), day(2026)), "16 Nov 2025");
    }
}
