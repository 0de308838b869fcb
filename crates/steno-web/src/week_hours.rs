//! The chart of the hours of a week: a cell for each hour of each weekday, darker ones have more entries.

use maud::{Markup, html};

use crate::chart::round_hundredth;
use crate::units::{count_of, exact_count};

/// The names of weekdays, from Monday.
const WEEKDAYS: [&str; 7] =
    ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"];

/// The shades of cells with entries.
const SHADES: u64 = 4;

/// The heights of a cell and of its row, in pixels.
const CELL_HEIGHT: usize = 23;
const ROW_HEIGHT: usize = 26;

/// The hours whose labels a narrow screen has room for too.
const NARROW_HOURS: usize = 6;

/// How many entries each hour of each weekday has, from Monday at midnight.
pub(crate) struct WeekHours(pub(crate) [[u64; 24]; 7]);

impl WeekHours {
    /// Draws the cells, and the meaning of their shades.
    pub(crate) fn draw(&self) -> Markup {
        let height = WEEKDAYS.len() * ROW_HEIGHT;
        html! {
            figure.chart.week {
                figcaption { "entries in each hour of the week" }
                svg.axis height=(height + 20) aria-hidden="true" {
                    @for (day, name) in WEEKDAYS.iter().enumerate() {
                        text x="100%" y=(day * ROW_HEIGHT + 16) text-anchor="end" { (&name[..3]) }
                    }
                }
                svg.plot height=(height + 20) role="img" aria-label="Entries by weekday and hour" {
                    @for (day, hours) in self.0.iter().enumerate() {
                        @for (hour, count) in hours.iter().enumerate() { (self.cell(day, hour, *count)) }
                    }
                    @for hour in (0..24).step_by(3) {
                        text.wide-label[hour % NARROW_HOURS != 0] x={ (column(hour)) "%" } y=(height + 14) { (format!("{hour:02}:00")) }
                    }
                }
            }
            .chart-notes { (self.legend()) (self.busiest()) }
        }
    }

    fn cell(&self, day: usize, hour: usize, count: u64) -> Markup {
        let width = round_hundredth(column(1) * 0.92);
        html! {
            rect class={ "shade" (self.shade(count)) } x={ (column(hour)) "%" } y=(day * ROW_HEIGHT) width={ (width) "%" } height=(CELL_HEIGHT) rx="3" {
                title { (WEEKDAYS[day]) " " (hours_text(hour)) ": " (count_of(count, "entry")) }
            }
        }
    }

    fn most(&self) -> u64 {
        self.0.iter().flatten().copied().max().unwrap_or(0)
    }

    /// The shade of a cell: 0 without entries, then quarters of the most.
    fn shade(&self, count: u64) -> u64 {
        (count * SHADES).div_ceil(self.most().max(1))
    }

    /// How many entries the cells of each shade have.
    fn legend(&self) -> Markup {
        let most = self.most();
        let shades = (1..=SHADES)
            .map(|shade| (shade, most * (shade - 1) / SHADES + 1, most * shade / SHADES));
        html! {
            ul.legend aria-label="Entries by shade" {
                li { (shade_key(0)) "none" }
                @for (shade, first, last) in shades.filter(|(_, first, last)| first <= last) {
                    li { (shade_key(shade)) (exact_count(first)) @if first < last { "–" (exact_count(last)) } @if last == most { " entries" } }
                }
            }
        }
    }

    /// The hour with the most entries.
    fn busiest(&self) -> Markup {
        let most = self.most();
        let hours = || (0..WEEKDAYS.len()).flat_map(|day| (0..24).map(move |hour| (day, hour)));
        let busiest = hours().find(|(day, hour)| most > 0 && self.0[*day][*hour] == most);
        html! {
            @if let Some((day, hour)) = busiest {
                span { "Busiest: " b { (WEEKDAYS[day]) "s " (hours_text(hour)) } }
            }
        }
    }
}

/// Where the column of an hour begins, in percent of the width.
fn column(hour: usize) -> f64 {
    round_hundredth(hour as f64 * 100.0 / 24.0)
}

/// An hour as a period: `09:00–10:00`.
fn hours_text(hour: usize) -> String {
    format!("{hour:02}:00–{:02}:00", hour + 1)
}

fn shade_key(shade: u64) -> Markup {
    html! { svg.key viewBox="0 0 10 10" aria-hidden="true" { rect class={ "shade" (shade) } width="10" height="10" rx="2" {} } }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(counts: &[(usize, usize, u64)]) -> String {
        let mut hours = WeekHours([[0; 24]; 7]);
        counts.iter().for_each(|(day, hour, count)| hours.0[*day][*hour] = *count);
        hours.draw().0
    }

    #[test]
    fn hours_are_shaded_by_their_count() {
        let text = drawn(&[(0, 9, 8), (6, 23, 1)]);
        assert!(text.contains("<title>Monday 09:00–10:00: 8 entries</title>"), "{text}");
        assert!(text.contains("<title>Sunday 23:00–24:00: 1 entry</title>"), "{text}");
        let cells = text.split("<ul").next().unwrap();
        assert_eq!((cells.matches("shade4").count(), cells.matches("shade1").count()), (1, 1));
        assert!(text.contains("Busiest: <b>Mondays 09:00–10:00</b>"), "{text}");
    }

    #[test]
    fn the_legend_has_the_counts_of_each_shade() {
        let legend = |most| {
            let text = drawn(&[(0, 9, most)]);
            let items = text.split("<li>").skip(1).map(|item| item.split("</li>").next().unwrap());
            let shown: Vec<String> =
                items.map(|item| item.rsplit("</svg>").next().unwrap().to_owned()).collect();
            shown
        };
        assert_eq!(legend(100), ["none", "1–25", "26–50", "51–75", "76–100 entries"]);
        assert_eq!(legend(2), ["none", "1", "2 entries"]);
        assert_eq!(legend(0), ["none"]);
    }

    #[test]
    fn a_cell_has_the_shade_that_the_legend_says() {
        for most in [1, 2, 3, 5, 7, 100, 1397] {
            let hours = WeekHours({
                let mut counts = [[0; 24]; 7];
                counts[0][0] = most;
                counts
            });
            for shade in 1..=SHADES {
                for count in most * (shade - 1) / SHADES + 1..=most * shade / SHADES {
                    assert_eq!(hours.shade(count), shade, "{count} of {most}");
                }
            }
        }
    }
}
