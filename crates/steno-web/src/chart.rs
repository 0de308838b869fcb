//! Charts as SVG: bars over time, and a share of the largest value.

use maud::{Markup, html};
use steno_store::view::amount::{format_dollars, round_up_scale};

use crate::render::plain::{clean_text, visible_text};

/// The size of a chart, and the area of its bars.
const WIDTH: f64 = 960.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 930.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 200.0;

/// How many labels fit below the bars.
const MAX_LABELS: usize = 12;

/// A bar for each group: its name, and its cost if the price is known.
pub(crate) fn bar_chart(title: &str, all: &[(String, Option<f64>)]) -> Markup {
    let top = round_up_scale(all.iter().filter_map(|(_, cost)| *cost).fold(0.0, f64::max));
    let step = (RIGHT - LEFT) / all.len().max(1) as f64;
    let width = (step * 0.78).min(64.0);
    html! {
        figure.chart {
            svg viewBox={ "0 0 " (WIDTH) " 232" } role="img" aria-label=(title) {
                @for quarter in 0..=4 {
                    @let share = f64::from(quarter) / 4.0;
                    @let y = BOTTOM - share * (BOTTOM - TOP);
                    path.grid d={ "M" (LEFT) " " (y) "H" (RIGHT) } {}
                    text x=(LEFT - 8.0) y=(y + 4.0) text-anchor="end" { (format_dollars(top * share)) }
                }
                @for (at, (name, cost)) in all.iter().enumerate() {
                    @let height = cost.unwrap_or(0.0) / top * (BOTTOM - TOP);
                    @let x = LEFT + step * (at as f64 + 0.5);
                    rect.bar x=(round_tenth(x - width / 2.0)) y=(round_tenth(BOTTOM - height))
                        width=(round_tenth(width)) height=(round_tenth(height)) rx="2"
                    {
                        title { (clean_text(name)) ": " (cost.map_or("no price".to_owned(), format_dollars)) }
                    }
                    @if at % all.len().div_ceil(MAX_LABELS) == 0 {
                        text x=(round_tenth(x)) y=(BOTTOM + 18.0) text-anchor="middle" { (short_label(name)) }
                    }
                }
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

fn round_tenth(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}

fn short_label(name: &str) -> String {
    let name = name.rsplit('/').next().unwrap_or(name);
    let short: String = name.chars().take(14).collect();
    visible_text(&short).into_owned()
}
