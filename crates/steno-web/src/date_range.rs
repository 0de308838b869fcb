//! The form that chooses the period of a report.

use jiff::civil::Date;
use maud::{Markup, html};

use crate::addresses::last_segment;
use crate::filter_query::FilterQuery;
use crate::library::SessionListing;
use crate::render::plain::clean_text;

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
    let choices = |of: fn(&steno_model::Session) -> Option<&str>| {
        let mut all: Vec<&str> =
            listing.sessions.iter().filter_map(|one| of(&one.session)).collect();
        all.sort_unstable();
        all.dedup();
        all
    };
    html! {
        .period {
            nav.tabs aria-label="Period" {
                @for (name, days) in PERIODS {
                    @let since = today.saturating_sub(jiff::Span::new().days(days)).to_string();
                    @let is_chosen = filters.since == since && filters.until.is_empty();
                    a href=(FilterQuery { until: String::new(), ..filters.clone() }.address_with(page, "since", &since))
                        aria-current=[is_chosen.then_some("true")] { (name) }
                }
                @let is_all = filters.since.is_empty() && filters.until.is_empty();
                a href=(FilterQuery { until: String::new(), ..filters.clone() }.address_with(page, "since", ""))
                    aria-current=[is_all.then_some("true")] { "All" }
            }
            form.dates action=(page) {
                @for (name, value) in [("by", &filters.by), ("model", &filters.model)] {
                    @if !value.is_empty() { input type="hidden" name=(name) value=(value); }
                }
                label { "From " input type="date" name="since" value=(filters.since); }
                label { "to " input type="date" name="until" value=(filters.until); }
                (choice("agent", "All agents", &filters.agent, &choices(|session| Some(&session.agent))))
                (choice("project", "All projects", &filters.project, &choices(|session| session.project.as_deref())))
                button { "Show" }
            }
        }
    }
}

fn choice(name: &str, all: &str, chosen: &str, values: &[&str]) -> Markup {
    html! {
        select name=(name) aria-label=(name) {
            option value="" { (all) }
            @if !chosen.is_empty() && !values.contains(&chosen) { option value=(chosen) selected { (clean_text(chosen)) } }
            @for value in values { option value=(value) selected[*value == chosen] { (clean_text(last_segment(value))) } }
        }
    }
}
