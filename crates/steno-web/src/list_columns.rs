//! The columns of the session list, and their headings, which sort it.

use maud::{Markup, html};

use crate::list_filter::ListFilter;
use crate::list_order::SortKey;
use crate::units::COST_EXPLANATION;

/// A column of the list.
struct ListColumn {
    class: &'static str,
    heading: &'static str,
    explanation: &'static str,
    /// What its heading sorts by.
    sort: Option<SortKey>,
}

const fn column(
    class: &'static str,
    heading: &'static str,
    explanation: &'static str,
    sort: Option<SortKey>,
) -> ListColumn {
    ListColumn { class, heading, explanation, sort }
}

/// The columns of the list.
const COLUMNS: [ListColumn; 9] = [
    column(
        "last",
        "Last active",
        "When the session was last active, in your time zone",
        Some(SortKey::LastActive),
    ),
    column("title", "Session", "The title, or the first line of the first prompt", None),
    column("by", "Agent", "The program that ran the session", None),
    column("project", "Project", "The folder that the agent worked in", None),
    column("model", "Model", "The first model; the tooltip lists all", None),
    column(
        "num",
        "Entries",
        "Messages, tool calls and results, and notices",
        Some(SortKey::Entries),
    ),
    column("num duration", "Duration", "From the first entry to the last", Some(SortKey::Duration)),
    column("num tokens", "Tokens", "Tokens that the model read and wrote", Some(SortKey::Tokens)),
    column("num", "Cost", COST_EXPLANATION, Some(SortKey::Cost)),
];

/// The headings of the columns. Those of numbers and times sort the list.
pub(crate) fn column_headings(query: &ListFilter, has_people: bool) -> Markup {
    let order = query.order();
    html! {
        nav.columns-head aria-label="Sort the list" {
            @for column in &COLUMNS {
                @let heading = if has_people && column.class == "by" { "Person" } else { column.heading };
                @match column.sort {
                    None => span class=(column.class) title=(column.explanation) aria-hidden="true" { (heading) },
                    Some(key) => {
                        @let next = order.toggled(key);
                        @let is_current = order.key == key;
                        a class=(column.class) aria-current=[is_current.then_some("true")]
                            href=(query.address_with(&[("sort", next.to_parameter().as_str())]))
                            title={ (column.explanation) ". Sort: " (next.name()) }
                        {
                            (heading)
                            @if is_current { span.arrow role="img" aria-label={ "sorted: " (order.name()) } { @if order.is_reversed { "▲" } @else { "▼" } } }
                        }
                    }
                }
            }
        }
    }
}
