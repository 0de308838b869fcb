//! Charts as SVG: bars over time, hours of the week, and a share of the largest value.
//!
//! Positions across are percentages, so that labels keep their size on every screen.

use crate::render::plain::{clean_text, visible_text};
use maud::{Markup, html};

/// The height of a chart, and where its bars begin and end.
const HEIGHT: f64 = 220.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 196.0;

/// How many labels fit below the bars on a wide screen, and how many of them a narrow one leaves out.
const MAX_LABELS: usize = 12;
const NARROW_STEP: usize = 3;

/// A chart of bars.
pub(crate) struct BarChart<'a> {
    /// What it shows.
    pub(crate) title: &'a str,
    /// The bars, from left to right.
    pub(crate) bars: &'a [ChartBar],
    /// Writes an amount with its unit.
    pub(crate) format: fn(f64) -> String,
    /// Lines at some amounts, with their names.
    pub(crate) limits: &'a [(String, f64)],
}

/// A bar of a chart.
pub(crate) struct ChartBar {
    /// The whole name, for the tooltip.
    pub(crate) name: String,
    /// The name below the bar.
    pub(crate) label: String,
    /// The amount, if it is known.
    pub(crate) amount: Option<f64>,
}

impl BarChart<'_> {
    /// Draws the chart.
    pub(crate) fn draw(&self) -> Markup {
        let amounts = self.bars.iter().filter_map(|bar| bar.amount);
        let limits = self.limits.iter().map(|(_, at)| *at);
        let top = scale_top(amounts.chain(limits).fold(0.0, f64::max));
        let height = |amount: f64| BOTTOM - amount / top * (BOTTOM - TOP);
        html! {
            figure.chart {
                svg.axis height=(HEIGHT) aria-hidden="true" {
                    @for quarter in 0..=4 {
                        @let amount = top * f64::from(quarter) / 4.0;
                        text x="100%" y=(round_tenth(height(amount)) + 4.0) text-anchor="end" { (axis_label(&(self.format)(amount))) }
                    }
                }
                svg.plot height=(HEIGHT) role="img" aria-label=(self.title) {
                    @for quarter in 0..=4 {
                        @let y = round_tenth(height(top * f64::from(quarter) / 4.0));
                        line.grid x1="0" x2="100%" y1=(y) y2=(y) {}
                    }
                    @for (at, bar) in self.bars.iter().enumerate() { (self.draw_bar(at, bar, height(bar.amount.unwrap_or(0.0)))) }
                    @for (name, amount) in self.limits {
                        @let y = round_tenth(height(*amount));
                        line.limit x1="0" x2="100%" y1=(y) y2=(y) {}
                        text.limit x="4" y=(y - 4.0) { (clean_text(name)) ": " ((self.format)(*amount)) }
                    }
                }
            }
        }
    }

    fn draw_bar(&self, at: usize, bar: &ChartBar, y: f64) -> Markup {
        let step = 100.0 / self.bars.len().max(1) as f64;
        let width = (step * 0.78).min(8.0);
        let middle = step * (at as f64 + 0.5);
        let every = self.bars.len().div_ceil(MAX_LABELS).max(1);
        let amount = bar.amount.map_or("no price".to_owned(), self.format);
        html! {
            rect.bar x={ (round_tenth(middle - width / 2.0)) "%" } y=(round_tenth(y)) width={ (round_tenth(width)) "%" }
                height=(round_tenth((BOTTOM - y).max(0.0))) rx="2"
            {
                title { (clean_text(&bar.name)) ": " (amount) }
            }
            @if at.is_multiple_of(every) {
                text.wide-label[!(at / every).is_multiple_of(NARROW_STEP)] x={ (round_tenth(middle)) "%" } y=(BOTTOM + 17.0) text-anchor="middle" { (clean_text(&bar.label)) }
            }
        }
    }
}

/// The names of weekdays, from Monday.
const WEEKDAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];

/// The entries of each hour of the week, from Monday at midnight: darker cells have more.
pub(crate) fn week_hours_chart(title: &str, counts: &[[u64; 24]; 7]) -> Markup {
    let most = counts.iter().flatten().copied().max().unwrap_or(0).max(1);
    let shade = |count: u64| match count {
        0 => 0,
        _ => ((count as f64 / most as f64 * 4.0).ceil() as usize).clamp(1, 4),
    };
    html! {
        figure.chart {
            svg.punch viewBox="0 0 784 232" role="img" aria-label=(title) {
                @for (day, hours) in counts.iter().enumerate() {
                    text x="0" y=(20 + day * 30) { (WEEKDAYS[day]) }
                    @for (hour, count) in hours.iter().enumerate() {
                        rect class={ "shade" (shade(*count)) } x=(60 + hour * 30) y=(day * 30) width="27" height="27" rx="4" {
                            title { (WEEKDAYS[day]) " " (format!("{hour:02}:00")) ": " (count) " entries" }
                        }
                    }
                }
                @for hour in (0..24).step_by(3) { text x=(60 + hour * 30) y="228" { (format!("{hour:02}:00")) } }
            }
        }
    }
}

/// A share of the largest value, as a bar in a table.
pub(crate) fn share_bar(share: f64) -> Markup {
    html! {
        svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true" {
            rect width=(round_tenth(share.clamp(0.0, 1.0) * 100.0)) height="8" rx="2" {}
        }
    }
}

/// The top of a scale, whose quarters are round numbers.
fn scale_top(largest: f64) -> f64 {
    if largest <= 0.0 {
        return 1.0;
    }
    let power = 10f64.powf(largest.log10().floor());
    let steps = [1.0, 1.2, 1.6, 2.0, 2.4, 3.2, 4.0, 6.0, 8.0, 10.0].map(|step| step * power);
    steps.into_iter().find(|step| *step >= largest).unwrap_or(largest)
}

/// An amount of a scale without needless zeros: `$5,000` for `$5,000.00`, `8k` for `8.00k`.
fn axis_label(amount: &str) -> String {
    let Some((whole, rest)) = amount.split_once('.') else { return amount.to_owned() };
    match rest.trim_start_matches('0') {
        unit if unit.starts_with(|first: char| first.is_ascii_digit()) => amount.to_owned(),
        unit => format!("{whole}{unit}"),
    }
}

fn round_tenth(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}

/// The last segment of a name, cut to fit below a bar.
pub(crate) fn short_label(name: &str) -> String {
    let name = name.rsplit('/').next().unwrap_or(name);
    let short: String = name.chars().take(14).collect();
    visible_text(&short).into_owned()
}

#[cfg(test)]
mod tests {
    use steno_store::view::amount::format_dollars;

    use super::*;

    #[test]
    fn a_bar_has_a_tooltip_and_some_have_labels() {
        let bars: Vec<ChartBar> = (0..30)
            .map(|at| ChartBar {
                name: format!("<day {at}>"),
                label: at.to_string(),
                amount: Some(f64::from(at)),
            })
            .collect();
        let limits = [("Budget".to_owned(), 45.0)];
        let chart =
            BarChart { title: "Cost", bars: &bars, format: format_dollars, limits: &limits };
        let text = chart.draw().0;
        assert!(text.contains("<title>&lt;day 7&gt;: $7.00</title>"), "{text}");
        assert_eq!(text.matches("text-anchor=\"middle\"").count(), 10, "{text}");
        assert_eq!(text.matches("class=\"wide-label\"").count(), 6, "{text}");
        assert!(text.contains("Budget: $45.00") && text.contains(">$60</text>"), "{text}");
    }

    #[test]
    fn a_scale_is_hardly_higher_than_the_largest_bar() {
        let tops = [0.0, 0.9, 1.0, 2.15, 215.0, 5400.0].map(scale_top);
        assert_eq!(tops.map(|top| top.round()), [1.0, 1.0, 1.0, 2.0, 240.0, 6000.0]);
    }

    #[test]
    fn a_scale_has_no_needless_zeros() {
        let all = ["$5,000.00", "$2.50", "8.00k", "16.5k", "400"];
        assert_eq!(all.map(axis_label), ["$5,000", "$2.50", "8k", "16.5k", "400"]);
    }

    #[test]
    fn hours_are_shaded_by_their_count() {
        let mut counts = [[0; 24]; 7];
        (counts[0][9], counts[6][23]) = (8, 1);
        let text = week_hours_chart("Hours", &counts).0;
        assert!(text.contains("<title>Mon 09:00: 8 entries</title>"), "{text}");
        assert_eq!((text.matches("shade4").count(), text.matches("shade1").count()), (1, 1));
    }
}
