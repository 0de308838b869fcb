//! Draws costs as an SVG bar chart.

use std::fmt::Write;

use crate::amount::{format_dollars, round_up_scale};
use crate::text_table::fit_label;

/// Edges of the chart area in a drawing of 960 by 360.
const CHART_LEFT: f64 = 70.0;
const CHART_RIGHT: f64 = 950.0;
const CHART_TOP: f64 = 40.0;
const CHART_BOTTOM: f64 = 290.0;

/// Maximum number of labels below the bars.
const MAX_LABELS: usize = 24;

/// Draws the cost of each group. A group without a known cost has no bar.
pub(super) fn draw_cost_chart(by: &str, bars: &[(String, Option<f64>)]) -> String {
    let largest = bars.iter().filter_map(|(_, cost)| *cost).fold(0.0, f64::max);
    let top = round_up_scale(largest);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 960 360\" font-family=\"sans-serif\" \
         font-size=\"11\">\n<rect width=\"960\" height=\"360\" fill=\"#fff\"/>\n\
         <text x=\"{CHART_LEFT}\" y=\"24\" font-size=\"15\">Cost by {by}</text>\n"
    );
    for step in 0..=4 {
        let share = f64::from(step) / 4.0;
        write_grid_line(&mut text, share, &format_dollars(top * share));
    }
    for (index, (label, cost)) in bars.iter().enumerate() {
        let share = cost.map_or(0.0, |cost| cost / top);
        write_bar(&mut text, &SvgBar { index, count: bars.len(), label, cost: *cost, share });
    }
    text.push_str("</svg>\n");
    text
}

/// Writes a grid line with its amount.
fn write_grid_line(text: &mut String, share: f64, label: &str) {
    let y = CHART_BOTTOM - share * (CHART_BOTTOM - CHART_TOP);
    let _ = writeln!(
        text,
        "<path d=\"M{CHART_LEFT} {y:.1}H{CHART_RIGHT}\" stroke=\"#ddd\"/>\
         <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#555\">{label}</text>",
        CHART_LEFT - 6.0,
        y + 4.0,
    );
}

/// One of `count` bars, with its cost and its share of the height.
struct SvgBar<'a> {
    index: usize,
    count: usize,
    label: &'a str,
    cost: Option<f64>,
    share: f64,
}

/// Writes one bar; its tooltip has the exact cost.
fn write_bar(text: &mut String, bar: &SvgBar<'_>) {
    let SvgBar { index, count, label, cost, share } = *bar;
    let step = (CHART_RIGHT - CHART_LEFT) / count as f64;
    let (x, width) = (CHART_LEFT + step * index as f64 + step * 0.1, step * 0.8);
    let amount = cost.map_or_else(|| "no price".to_owned(), format_dollars);
    let height = share * (CHART_BOTTOM - CHART_TOP);
    let _ = writeln!(
        text,
        "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" fill=\"#2f6fb3\">\
         <title>{}: {amount}</title></rect>",
        CHART_BOTTOM - height,
        escape_xml(label),
    );
    if index % count.div_ceil(MAX_LABELS) == 0 {
        let (x, y) = (x + width / 2.0, CHART_BOTTOM + 14.0);
        let _ = writeln!(
            text,
            "<text transform=\"translate({x:.1} {y}) rotate(-40)\" text-anchor=\"end\">{}</text>",
            escape_xml(&fit_label(label, 16)),
        );
    }
}

/// Escapes markup and drops control characters, which XML does not allow.
fn escape_xml(text: &str) -> String {
    let text: String = text.chars().filter(|c| !c.is_control()).collect();
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_is_as_high_as_its_share() {
        let bars = [("a<b".to_owned(), Some(5.0)), ("c".to_owned(), None)];
        insta::assert_snapshot!(draw_cost_chart("model", &bars), @r##"
        <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 960 360" font-family="sans-serif" font-size="11">
        <rect width="960" height="360" fill="#fff"/>
        <text x="70" y="24" font-size="15">Cost by model</text>
        <path d="M70 290.0H950" stroke="#ddd"/><text x="64" y="294.0" text-anchor="end" fill="#555">$0.00</text>
        <path d="M70 227.5H950" stroke="#ddd"/><text x="64" y="231.5" text-anchor="end" fill="#555">$1.25</text>
        <path d="M70 165.0H950" stroke="#ddd"/><text x="64" y="169.0" text-anchor="end" fill="#555">$2.50</text>
        <path d="M70 102.5H950" stroke="#ddd"/><text x="64" y="106.5" text-anchor="end" fill="#555">$3.75</text>
        <path d="M70 40.0H950" stroke="#ddd"/><text x="64" y="44.0" text-anchor="end" fill="#555">$5.00</text>
        <rect x="114.0" y="40.0" width="352.0" height="250.0" fill="#2f6fb3"><title>a&lt;b: $5.00</title></rect>
        <text transform="translate(290.0 304) rotate(-40)" text-anchor="end">a&lt;b</text>
        <rect x="554.0" y="290.0" width="352.0" height="0.0" fill="#2f6fb3"><title>c: no price</title></rect>
        <text transform="translate(730.0 304) rotate(-40)" text-anchor="end">c</text>
        </svg>
        "##);
    }
}
