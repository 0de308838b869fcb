//! The form that chooses the period of a report.

use jiff::ToSpan;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use maud::{Markup, html};
use steno_model::{Session, Timestamp};
use steno_store::index::EntryFilter;

use crate::addresses::distinct_name;
use crate::filter_query::{ALL_DAYS, FilterQuery};
use crate::render::plain::clean_text;
use crate::session_listing::SessionListing;

/// The periods that reports offer: name, and days before today.
const PERIODS: [(&str, i32); 4] =
    [("7 days", 6), ("30 days", 29), ("90 days", 89), ("1 year", 364)];

/// The periods, two dates, and filters by agent and project. `page` is the address of the report.
pub(crate) fn period_form(
    page: &str,
    filters: &FilterQuery,
    today: Date,
    listing: &SessionListing,
) -> Markup {
    let choices = |of: fn(&Session) -> Vec<&str>| {
        let mut all: Vec<&str> = listing.sessions.iter().flat_map(|one| of(&one.session)).collect();
        all.sort_unstable();
        all.dedup();
        all
    };
    html! {
        .period {
            nav.tabs aria-label="Period" {
                @let with = |since: String, period: &str| FilterQuery { since, until: String::new(), period: period.to_owned(), ..filters.clone() };
                @for (name, days) in PERIODS {
                    @let since = today.saturating_sub(jiff::Span::new().days(days)).to_string();
                    @let is_chosen = filters.since == since && filters.until.is_empty();
                    a href=(with(since, "").address_of(page)) aria-current=[is_chosen.then_some("true")] { (name) }
                }
                @let is_all = filters.since.is_empty() && filters.until.is_empty();
                a href=(with(String::new(), ALL_DAYS).address_of(page)) aria-current=[is_all.then_some("true")] { "All" }
            }
            @let set = [&filters.agent, &filters.project, &filters.model].into_iter().filter(|value| !value.is_empty()).count();
            button.fold-filters type="button" aria-expanded="false" { "Dates and filters" @if set > 0 { " (" (set) ")" } }
            form.dates action=(page) {
                @let kept = [("by", &filters.by), ("q", &filters.q), ("role", &filters.role), ("per", &filters.per)];
                @for (name, value) in kept.iter().filter(|(_, value)| !value.is_empty()) { input type="hidden" name=(name) value=(value); }
                // A form without dates asks for all days.
                input type="hidden" name="period" value=(ALL_DAYS);
                label { "From " input type="date" name="since" value=(filters.since); }
                label { "to " input type="date" name="until" value=(filters.until); }
                (choice("agent", "All agents", &filters.agent, &choices(|session| vec![&session.agent])))
                (choice("project", "All projects", &filters.project, &choices(|session| session.project.as_deref().into_iter().collect())))
                (choice("model", "All models", &filters.model, &choices(|session| session.models.iter().map(String::as_str).collect())))
                button { "Show" }
            }
        }
        (reversed_period_notice(page, filters))
    }
}

/// The dates of a period that ends before it begins, the first one first.
fn reversed_dates(filters: &FilterQuery) -> Option<(Date, Date)> {
    let day = |text: &str| text.trim().parse::<Date>().ok();
    let dates = day(&filters.until).zip(day(&filters.since));
    dates.filter(|(first, last)| first < last)
}

/// Whether a period ends before it begins, so that nothing is in it.
pub(crate) fn is_reversed_period(filters: &FilterQuery) -> bool {
    reversed_dates(filters).is_some()
}

/// Says that a period ends before it begins, with a link to the dates the other way round.
pub(crate) fn reversed_period_notice(page: &str, filters: &FilterQuery) -> Markup {
    html! {
        @if let Some((first, last)) = reversed_dates(filters) {
            @let (since, until) = (first.to_string(), last.to_string());
            p.stale role="status" {
                "The period ends before it begins. "
                a href=(FilterQuery { since, until, ..filters.clone() }.address_of(page)) { "Show " (first) " to " (last) }
            }
        }
    }
}

/// A link to all days of a report, for a period without anything.
pub(crate) fn all_days_link(page: &str, filters: &FilterQuery) -> Markup {
    let (since, until, period) = (String::new(), String::new(), ALL_DAYS.to_owned());
    let all = FilterQuery { since, until, period, ..filters.clone() };
    html! { a href=(all.address_of(page)) { "Show all days" } }
}

/// The days that a period covers, also those without anything; `None` if it has no begin.
pub(crate) fn period_days(
    filter: &EntryFilter,
    zone: &TimeZone,
    today: Date,
) -> Option<(Date, Date)> {
    let wall = |at: Timestamp| at.in_zone(zone).wall();
    let first = wall(filter.since?).date();
    // A period ends at the midnight after its last day.
    let last = |until| wall(until).saturating_sub(1.millisecond()).date();
    Some((first, filter.until.map_or(today, last).max(first)))
}

fn choice(name: &str, all: &str, chosen: &str, values: &[&str]) -> Markup {
    html! {
        select name=(name) aria-label=(name) {
            option value="" { (all) }
            @if !chosen.is_empty() && !values.contains(&chosen) { option value=(chosen) selected { (clean_text(chosen)) } }
            @for value in values { option value=(value) selected[*value == chosen] { (clean_text(distinct_name(value, values))) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    #[test]
    fn a_period_covers_its_days() {
        let filter = |since: Option<&str>, until: Option<&str>| EntryFilter {
            since: since.map(|at| at.parse().expect("the time is valid")),
            until: until.map(|at| at.parse().expect("the time is valid")),
            ..EntryFilter::default()
        };
        let days = |filter: &EntryFilter| period_days(filter, &TimeZone::UTC, date(2026, 1, 20));
        let (since, until) = (Some("2026-01-05T00:00:00Z"), Some("2026-01-08T00:00:00Z"));
        assert_eq!(days(&filter(since, until)), Some((date(2026, 1, 5), date(2026, 1, 7))));
        assert_eq!(days(&filter(since, None)), Some((date(2026, 1, 5), date(2026, 1, 20))));
        assert_eq!(days(&filter(None, until)), None);
    }
}
