//! A calendar of the last year: one cell for each day, darker where more sessions were last active.
//!
//! The cells of one shade are one path, so that the calendar is small. A script shows the count under the pointer and
//! opens the day of a click; the date fields of the list do the same by keyboard.

use std::collections::BTreeMap;

use jiff::civil::Date;
use jiff::{Span, ToSpan};
use maud::{Markup, html};

use crate::units::count_of;

/// How many weeks the calendar shows.
const WEEKS: i32 = 53;

/// The distance between cells, and their size, in pixels.
const STEP: i32 = 15;
const CELL: i32 = 12;

/// The space for the names of days and months.
const LEFT: i32 = 30;
const TOP: i32 = 16;

/// How many shades there are.
const SHADES: usize = 5;

/// The calendar of the days on which sessions were last active.
pub(crate) fn activity_calendar(days: impl Iterator<Item = Date>, today: Date) -> Markup {
    let first = first_day(today);
    let mut counts: BTreeMap<Date, u32> = BTreeMap::new();
    days.filter(|day| *day >= first && *day <= today)
        .for_each(|day| *counts.entry(day).or_default() += 1);
    let most = counts.values().copied().max().unwrap_or(0);
    let list: Vec<String> = days_between(first, today)
        .map(|day| counts.get(&day).copied().unwrap_or(0).to_string())
        .collect();
    let total: u32 = counts.values().sum();
    html! {
        .calendar-line {
        svg #calendar .calendar viewBox={ "0 0 " (LEFT + WEEKS * STEP) " " (TOP + 7 * STEP) } preserveAspectRatio="xMaxYMid slice" role="img"
            data-first=(first) data-counts=(list.join(","))
            aria-label={ "Sessions by the day of their last activity, over the last year: " (total) " in all, at most " (most) " in a day" }
        {
            (month_names(first, today))
            @for (row, name) in [(0, "Mon"), (2, "Wed"), (4, "Fri")] {
                text x="0" y=(TOP + row * STEP + 10) { (name) }
            }
            @for shade in 0..SHADES {
                path class={ "shade" (shade) } d=(shade_path(first, today, &|day| shade_of(counts.get(&day).copied().unwrap_or(0)) == shade)) {}
            }
        }
        (calendar_notes(&counts))
        }
    }
}

/// The busiest day, and what the shades mean.
fn calendar_notes(counts: &BTreeMap<Date, u32>) -> Markup {
    let busiest = counts.iter().max_by_key(|(day, count)| (**count, **day));
    html! {
        ul.calendar-notes {
            li { b { (counts.len()) } " days with new sessions in the last year" }
            @if let Some((day, count)) = busiest {
                li { "Most on " (day.strftime("%-d %b %Y").to_string()) ": " b { (count_of(u64::from(*count), "session")) } }
            }
            li {
                "Sessions a day: "
                @for (shade, name) in ["0", "1", "2–3", "4–7", "8+"].iter().enumerate() {
                    svg.calendar-key viewBox="0 0 12 12" aria-hidden="true" { rect class={ "shade" (shade) } width="12" height="12" {} } (name) " "
                }
            }
        }
    }
}

/// The Monday at which the calendar begins.
fn first_day(today: Date) -> Date {
    let monday = today.saturating_sub(i32::from(today.weekday().to_monday_zero_offset()).days());
    monday.saturating_sub(Span::new().weeks(WEEKS - 1))
}

fn days_between(first: Date, last: Date) -> impl Iterator<Item = Date> {
    first.series(1.day()).take_while(move |day| *day <= last)
}

/// The shade of a day. The steps are fixed, so that one session a day never looks like many.
fn shade_of(count: u32) -> usize {
    match count {
        0 => 0,
        1 => 1,
        2..=3 => 2,
        4..=7 => 3,
        _ => 4,
    }
}

fn shade_path(first: Date, today: Date, has_shade: &dyn Fn(Date) -> bool) -> String {
    let cells = days_between(first, today).enumerate().filter(|(_, day)| has_shade(*day));
    let cell = |at: usize| {
        let (week, day) = (at as i32 / 7, at as i32 % 7);
        format!("M{} {}h{CELL}v{CELL}h-{CELL}z", LEFT + week * STEP, TOP + day * STEP)
    };
    cells.map(|(at, _)| cell(at)).collect()
}

fn month_names(first: Date, today: Date) -> Markup {
    let weeks = first.series(7.days()).take_while(|day| *day <= today).enumerate();
    // A month is named above its first whole week.
    let named = weeks.filter(|(_, monday)| monday.day() <= 7);
    html! {
        @for (week, monday) in named {
            text x=(LEFT + week as i32 * STEP) y="10" { (monday.strftime("%b").to_string()) }
        }
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    #[test]
    fn every_day_of_the_year_has_a_count() {
        let today = date(2026, 11, 16);
        let days = [date(2026, 11, 16), date(2026, 11, 16), date(2026, 11, 15), date(2024, 1, 1)];
        let text = activity_calendar(days.into_iter(), today).0;
        assert!(text.contains("data-first=\"2025-11-17\""), "{text}");
        assert!(text.contains(",0,1,2\""), "{text}");
        assert!(text.contains("3 in all, at most 2 in a day"), "{text}");
    }

    #[test]
    fn shades_grow_with_the_count() {
        assert_eq!([0, 1, 2, 3, 4, 7, 8, 100].map(shade_of), [0, 1, 2, 2, 3, 3, 4, 4]);
    }
}
