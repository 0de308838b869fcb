//! Charts as SVG: bars over time, and shares.
//!
//! Positions across are percentages, so that labels keep their size on every screen.

use crate::render::plain::{clean_text, visible_text};
use maud::{Markup, html};

/// The height of a chart, and where its bars begin and end.
const HEIGHT: f64 = 220.0;
const TOP: f64 = 18.0;
const BOTTOM: f64 = 196.0;

/// How many labels fit below the bars on a wide screen, and how many of them a narrow one leaves out.
const MAX_LABELS: usize = 12;
const NARROW_STEP: usize = 3;

/// The most bars of a chart whose last label has room on both sides of its bar, also on a narrow screen.
const MAX_MIDDLE_LABELS: usize = 8;

/// Where the middle of a text may be at most, in percent of the chart, also on a narrow screen.
const RIGHT_EDGE: f64 = 96.0;

/// A chart of bars.
pub(crate) struct BarChart<'a> {
    /// What it shows.
    pub(crate) title: &'a str,
    /// What the numbers of the axis are: `entries per day`.
    pub(crate) unit: &'a str,
    /// What the tooltip of a bar without an amount says.
    pub(crate) unknown: &'a str,
    /// The bars, from left to right.
    pub(crate) bars: &'a [ChartBar],
    /// Writes an amount with its unit.
    pub(crate) format: fn(f64) -> String,
    /// Lines at some amounts, with their names.
    pub(crate) limits: &'a [(String, f64)],
    /// The names of the parts of bars; empty if bars have none.
    pub(crate) series: &'a [String],
    /// How the amounts are drawn.
    pub(crate) style: ChartStyle,
}

/// How the amounts of a chart are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChartStyle {
    /// A bar for each; its parts lie on each other.
    Bars,
    /// So many bars beside each other, one for each series, share a label.
    Groups(usize),
    /// A line for each series, through the parts of the bars, for more bars than can be told apart.
    Lines,
}

/// A bar of a chart.
pub(crate) struct ChartBar {
    /// The whole name, for the tooltip.
    pub(crate) name: String,
    /// The name below the bar; empty for one between labels.
    pub(crate) label: String,
    /// The amount, if it is known.
    pub(crate) amount: Option<f64>,
    /// Where a click leads. The table below a chart has the same links for the keyboard.
    pub(crate) link: Option<String>,
    /// The amount of each series, from bottom to top; empty for a bar of one colour.
    pub(crate) parts: Vec<f64>,
    /// More about the amount, for the tooltip; may be empty.
    pub(crate) note: String,
}

impl ChartBar {
    /// A bar without a name.
    pub(crate) fn with_amount(amount: Option<f64>) -> Self {
        let (name, label, note) = (String::new(), String::new(), String::new());
        Self { name, label, amount, link: None, parts: Vec::new(), note }
    }
}

impl BarChart<'_> {
    /// Draws the chart.
    pub(crate) fn draw(&self) -> Markup {
        let amounts = self.bars.iter().filter_map(|bar| bar.amount);
        let limits = self.limits.iter().map(|(_, at)| *at);
        let top = self.whole_top(scale_top(amounts.chain(limits).fold(0.0, f64::max)));
        let quarters = [0.0, 0.25, 0.5, 0.75, 1.0].map(|part| top * part);
        let height = |amount: f64| BOTTOM - amount / top * (BOTTOM - TOP);
        html! {
            figure.chart {
                figcaption { (self.unit) }
                svg.axis height=(HEIGHT) aria-hidden="true" {
                    @for (amount, label) in quarters.iter().zip(axis_labels(&quarters.map(self.format))) {
                        text x="100%" y=(round_tenth(height(*amount)) + 4.0) text-anchor="end" { (label) }
                    }
                }
                svg.plot height=(HEIGHT) role="img" aria-label=(self.title) {
                    @for amount in quarters {
                        @let y = round_tenth(height(amount));
                        line.grid x1="0" x2="100%" y1=(y) y2=(y) {}
                    }
                    @if self.style == ChartStyle::Lines { (self.draw_lines(&height)) }
                    @for (at, bar) in self.bars.iter().enumerate() { (self.draw_bar(at, bar, height(bar.amount.unwrap_or(0.0)))) }
                    @for label in self.placed_labels() { (label.draw()) }
                    (self.highest_amount(&height))
                    @for (name, amount) in self.limits {
                        @let y = round_tenth(height(*amount));
                        line.limit x1="0" x2="100%" y1=(y) y2=(y) {}
                        @let (x, anchor) = if self.is_right_end_lower() { ("99.5%", "end") } else { ("0.5%", "start") };
                        text.limit x=(x) y=(y - 4.0) text-anchor=(anchor) { (clean_text(name)) ": " ((self.format)(*amount)) }
                    }
                }
            }
        }
    }

    /// The top of a scale of counts is a multiple of four, so that its quarters are counts, too.
    fn whole_top(&self, top: f64) -> f64 {
        let is_count = (self.format)(0.5) == (self.format)(0.0);
        if is_count { (top / 4.0).ceil() * 4.0 } else { top }
    }

    /// Whether the bars at the right end are lower than those at the left, so that a label there hides less.
    fn is_right_end_lower(&self) -> bool {
        let near = self.bars.len().div_ceil(6);
        let highest =
            |bars: &[ChartBar]| bars.iter().filter_map(|bar| bar.amount).fold(0.0, f64::max);
        highest(&self.bars[self.bars.len() - near..]) < highest(&self.bars[..near])
    }

    fn draw_bar(&self, at: usize, bar: &ChartBar, y: f64) -> Markup {
        let BarPlace { left, step, width } = self.bar_place(at);
        let middle = left + step / 2.0;
        let parts = match bar.parts.iter().any(|part| *part > 0.0) && !self.series.is_empty() {
            _ if self.style == ChartStyle::Lines => Vec::new(),
            true => stack_parts(&bar.parts, BOTTOM - y),
            false => vec![StackedPart { bottom: 0.0, height: (BOTTOM - y).max(0.0) }],
        };
        html! {
            @let (x, width) = (round_hundredth(middle - width / 2.0), round_hundredth(width));
            @for (at, part) in parts.iter().enumerate().filter(|(_, part)| part.height > 0.0) {
                rect class={ "bar s" (at) } x={ (x) "%" } y=(round_tenth(BOTTOM - part.bottom - part.height)) width={ (width) "%" }
                    height=(round_tenth(part.height)) rx="2" {}
            }
            // The whole column has the tooltip and the link, so that low bars can be pointed at, too.
            rect.column x={ (round_hundredth(left)) "%" } y="0" width={ (round_hundredth(step)) "%" } height=(BOTTOM) data-href=[&bar.link] {
                title { (self.tooltip(bar)) }
            }
        }
    }

    /// Where a bar and its column are. A tenth of each group is left free between it and the next.
    fn bar_place(&self, at: usize) -> BarPlace {
        let group_step = 100.0 / self.count_groups() as f64;
        let group = self.group();
        if group == 1 {
            let width = (group_step * 0.78).min(8.0);
            return BarPlace { left: group_step * at as f64, step: group_step, width };
        }
        let step = group_step.min(16.0) * 0.9 / group as f64;
        let middle = group_step * ((at / group) as f64 + 0.5);
        let left = middle + step * ((at % group) as f64 - group as f64 / 2.0);
        BarPlace { left, step, width: step * 0.9 }
    }

    /// How many bars share a label.
    fn group(&self) -> usize {
        if let ChartStyle::Groups(bars) = self.style { bars.max(1) } else { 1 }
    }

    fn count_groups(&self) -> usize {
        self.bars.len().div_ceil(self.group()).max(1)
    }

    /// A line for each series. Its box is stretched to the width of the chart.
    fn draw_lines(&self, height: &dyn Fn(f64) -> f64) -> Markup {
        let points = |series: usize| -> String {
            let amount = |bar: &ChartBar| bar.parts.get(series).copied().unwrap_or(0.0);
            let ys = self.bars.iter().map(|bar| round_tenth(height(amount(bar))));
            ys.enumerate().map(|(at, y)| format!("{},{y} ", at as f64 + 0.5)).collect()
        };
        html! {
            svg width="100%" height=(HEIGHT) viewBox={ "0 0 " (self.bars.len()) " " (HEIGHT) } preserveAspectRatio="none" {
                @for series in 0..self.series.len() {
                    polyline class={ "curve s" (series) } points=(points(series).trim_end()) vector-effect="non-scaling-stroke" {}
                }
            }
        }
    }

    /// The labels that have room. They are counted from the end, so that the newest one is always shown.
    fn placed_labels(&self) -> Vec<PlacedLabel<'_>> {
        let groups = self.count_groups();
        let named = self.bars.iter().step_by(self.group()).enumerate();
        let named: Vec<_> = named.filter(|(_, bar)| !bar.label.is_empty()).collect();
        let every = named.len().div_ceil(MAX_LABELS).max(1);
        let mut placed = Vec::new();
        for (from_end, (group, bar)) in named.into_iter().rev().step_by(every).enumerate() {
            placed.push(PlacedLabel {
                text: &bar.label,
                middle: 100.0 / groups as f64 * (group as f64 + 0.5),
                // At the right edge of a chart of narrow bars, it would leave the chart.
                may_leave: groups > MAX_MIDDLE_LABELS,
                is_wide: !from_end.is_multiple_of(NARROW_STEP),
            });
        }
        placed
    }

    /// The amount of the highest bar, above it.
    fn highest_amount(&self, height: &dyn Fn(f64) -> f64) -> Markup {
        let bars = self.bars.iter().enumerate().filter_map(|(at, bar)| Some((at, bar.amount?)));
        let highest = bars.max_by(|a, b| a.1.total_cmp(&b.1)).filter(|(_, amount)| *amount > 0.0);
        let is_shown = self.style == ChartStyle::Bars && self.bars.len() > 1;
        html! {
            @if let Some((at, amount)) = highest.filter(|_| is_shown) {
                @let BarPlace { left, step, .. } = self.bar_place(at);
                @let middle = left + step / 2.0;
                // At the left, it would meet the amounts of the axis.
                @let (x, anchor) = if middle < 100.0 - RIGHT_EDGE { (0.0, "start") } else { anchor_at(middle, true) };
                text.highest x={ (x) "%" } y=(round_tenth(height(amount)) - 5.0) text-anchor=(anchor) { ((self.format)(amount)) }
            }
        }
    }

    /// The name and the amount of a bar, then a line for each part, the largest first.
    fn tooltip(&self, bar: &ChartBar) -> String {
        let amount = bar.amount.map_or_else(|| self.unknown.to_owned(), self.format);
        let name = visible_text(&bar.name);
        // A line goes through each part, and a bar beside others has one.
        let mut text = match (self.style, bar.parts.iter().position(|part| *part > 0.0)) {
            (ChartStyle::Lines, _) => name.into_owned(),
            (ChartStyle::Groups(_), Some(series)) => {
                format!("{}\n{name}: {amount}", visible_text(&self.series[series]))
            }
            _ => format!("{name}: {amount}"),
        };
        let mut parts: Vec<(&String, f64)> = self
            .series
            .iter()
            .zip(bar.parts.iter().copied())
            .filter(|(_, part)| *part > 0.0 && self.group() == 1)
            .collect();
        parts.sort_by(|a, b| b.1.total_cmp(&a.1));
        for (name, part) in parts {
            text += &format!("\n{} {}", visible_text(name), (self.format)(part));
        }
        if !bar.note.is_empty() {
            text += &format!("\n{}", bar.note);
        }
        text
    }
}

/// Where the column of a bar begins, and how wide it and the bar are, in percent of the chart.
struct BarPlace {
    left: f64,
    step: f64,
    width: f64,
}

/// A label below a group of bars.
struct PlacedLabel<'a> {
    text: &'a str,
    /// Its middle, in percent of the chart.
    middle: f64,
    /// Whether it would leave the chart at its right edge.
    may_leave: bool,
    /// Whether only a wide screen has room for it.
    is_wide: bool,
}

impl PlacedLabel<'_> {
    fn draw(&self) -> Markup {
        let (x, anchor) = anchor_at(self.middle, self.may_leave);
        let middle = round_tenth(self.middle);
        html! {
            line.grid.wide-label[self.is_wide] x1={ (middle) "%" } x2={ (middle) "%" } y1=(BOTTOM) y2=(BOTTOM + 5.0) {}
            text.wide-label[self.is_wide] x={ (x) "%" } y=(BOTTOM + 18.0) text-anchor=(anchor) { (clean_text(self.text)) }
        }
    }
}

/// Where a text with its middle at `middle` is, so that it stays in the chart. At the left it has the room of the axis.
fn anchor_at(middle: f64, may_leave: bool) -> (f64, &'static str) {
    match may_leave && middle > RIGHT_EDGE {
        true => (100.0, "end"),
        false => (round_tenth(middle), "middle"),
    }
}

/// A part of a bar, in pixels from the bottom of the bar.
struct StackedPart {
    bottom: f64,
    height: f64,
}

/// The parts of a bar with a height, from bottom to top.
fn stack_parts(amounts: &[f64], height: f64) -> Vec<StackedPart> {
    let total: f64 = amounts.iter().sum::<f64>().max(1e-9);
    let mut bottom = 0.0;
    let part = |amount: &f64| {
        let part = StackedPart { bottom, height: amount / total * height };
        bottom += part.height;
        part
    };
    amounts.iter().map(part).collect()
}

/// One bar that counts divide, in the colours of [`chart_legend`].
pub(crate) fn divided_bar(counts: &[usize]) -> Markup {
    let amounts: Vec<f64> = counts.iter().map(|count| *count as f64).collect();
    html! {
        svg.divided viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true" {
            @for (at, part) in stack_parts(&amounts, 100.0).into_iter().enumerate() {
                rect class={ "bar s" (at) } x=(round_tenth(part.bottom)) width=(round_tenth(part.height)) height="10" {}
            }
        }
    }
}

/// The colours of the series of a chart.
pub(crate) fn chart_legend(names: &[String]) -> Markup {
    html! {
        ul.legend {
            @for (at, name) in names.iter().enumerate() {
                li { (series_key(at)) (clean_text(name)) }
            }
        }
    }
}

/// The colour of a series.
pub(crate) fn series_key(at: usize) -> Markup {
    html! { svg.key viewBox="0 0 10 10" aria-hidden="true" { rect class={ "bar s" (at) } width="10" height="10" rx="2" {} } }
}

/// A share in percent.
pub(crate) fn share_text(share: f64) -> String {
    if share > 0.0 && share < 0.005 { "<1%".to_owned() } else { format!("{:.0}%", share * 100.0) }
}

/// A share, as a bar in a table.
pub(crate) fn share_bar(share: f64) -> Markup {
    html! {
        svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true" {
            rect width=(round_tenth(share.clamp(0.0, 1.0) * 100.0)) height="8" rx="2" {}
        }
    }
}

/// What was spent of a budget, as a bar with a mark at the limit.
pub(crate) fn budget_bar(spent: f64, limit: f64) -> Markup {
    let whole = spent.max(limit).max(1e-9);
    let percent = |amount: f64| round_tenth(amount / whole * 100.0);
    html! {
        svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true" {
            rect width=(percent(spent)) height="8" rx="2" {}
            @if spent > limit { path d={ "M" (percent(limit)) " 0v8" } vector-effect="non-scaling-stroke" {} }
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

/// Amounts of a scale with equal decimals and without needless zeros: `$0`, `$2.50`, `$5.00`, and `0`, `4k`, `8k`.
fn axis_labels(amounts: &[String]) -> Vec<String> {
    let decimals_of = |amount: &String| {
        let fraction = amount.split_once('.').map_or("", |(_, rest)| rest);
        fraction.trim_end_matches(|unit: char| !unit.is_ascii_digit()).trim_end_matches('0').len()
    };
    let most = amounts.iter().map(decimals_of).max().unwrap_or(0);
    let label = |amount: &String| {
        let Some((whole, rest)) = amount.split_once('.') else { return amount.clone() };
        let unit = rest.trim_start_matches(|digit: char| digit.is_ascii_digit());
        let digits = &rest[..rest.len() - unit.len()];
        let is_zero = !amount.contains(|digit: char| ('1'..='9').contains(&digit));
        // Cents have two digits.
        let decimals = if amount.starts_with('$') && most > 0 { 2 } else { most };
        match decimals {
            0 => format!("{whole}{unit}"),
            _ if is_zero => format!("{whole}{unit}"),
            _ => format!("{whole}.{digits:0<decimals$.decimals$}{unit}"),
        }
    };
    amounts.iter().map(label).collect()
}

pub(crate) fn round_tenth(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}

pub(crate) fn round_hundredth(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use steno_store::amount::format_dollars;

    use super::*;

    #[test]
    fn a_bar_has_a_tooltip_and_some_have_labels() {
        let bars: Vec<ChartBar> = (0..30)
            .map(|at| ChartBar {
                name: format!("<day {at}>"),
                label: at.to_string(),
                ..ChartBar::with_amount(Some(f64::from(at)))
            })
            .collect();
        let limits = [("Budget".to_owned(), 45.0)];
        let chart = BarChart {
            title: "Cost",
            unit: "US dollars a day",
            unknown: "no price",
            bars: &bars,
            format: format_dollars,
            limits: &limits,
            series: &[],
            style: ChartStyle::Bars,
        };
        let text = chart.draw().0;
        assert!(text.contains("<title>&lt;day 7&gt;: $7.00</title>"), "{text}");
        assert_eq!(text.matches("text-anchor=\"middle\"").count(), 9, "{text}");
        assert!(text.contains("x=\"100%\" y=\"214\" text-anchor=\"end\">29<"), "{text}");
        assert_eq!(text.matches("<text class=\"wide-label\"").count(), 6, "{text}");
        assert!(text.contains("text-anchor=\"end\">$29.00</text>"), "{text}");
        assert!(text.contains("Budget: $45.00") && text.contains(">$60</text>"), "{text}");
    }

    #[test]
    fn a_scale_is_hardly_higher_than_the_largest_bar() {
        let tops = [0.0, 0.9, 1.0, 2.15, 215.0, 5400.0].map(scale_top);
        assert_eq!(tops.map(|top| top.round()), [1.0, 1.0, 1.0, 2.0, 240.0, 6000.0]);
    }

    #[test]
    fn a_scale_has_equal_decimals_and_no_needless_zeros() {
        let labels = |all: [&str; 3]| axis_labels(&all.map(str::to_owned));
        assert_eq!(labels(["$0.00", "$2,500.00", "$5,000.00"]), ["$0", "$2,500", "$5,000"]);
        assert_eq!(labels(["$0.00", "$2.50", "$5.00"]), ["$0", "$2.50", "$5.00"]);
        assert_eq!(labels(["0", "2.50k", "10.0k"]), ["0", "2.5k", "10.0k"]);
        assert_eq!(labels(["0", "4.00k", "8.00k"]), ["0", "4k", "8k"]);
        assert_eq!(labels(["0", "300", "400"]), ["0", "300", "400"]);
        assert_eq!(labels(["0.0%", "1.5%", "3.0%"]), ["0%", "1.5%", "3.0%"]);
        assert_eq!(labels(["0.0%", "2.0%", "4.0%"]), ["0%", "2%", "4%"]);
    }

    #[test]
    fn parts_of_a_bar_lie_on_each_other() {
        let bars = [ChartBar {
            name: "Monday".to_owned(),
            label: "Mon".to_owned(),
            amount: Some(4.0),
            link: None,
            parts: vec![3.0, 0.0, 1.0],
            note: "2 sessions".to_owned(),
        }];
        let series = ["a<b".to_owned(), "none".to_owned(), "others".to_owned()];
        let chart = BarChart {
            title: "Cost",
            unit: "US dollars a day",
            unknown: "no price",
            bars: &bars,
            format: format_dollars,
            limits: &[],
            series: &series,
            style: ChartStyle::Bars,
        };
        let text = chart.draw().0;
        let tooltip = "<title>Monday: $4.00\na&lt;b $3.00\nothers $1.00\n2 sessions</title>";
        assert!(text.contains(tooltip), "{text}");
        assert!(text.contains("bar s2") && !text.contains("bar s1"), "{text}");
        let heights = stack_parts(&bars[0].parts, 100.0);
        let heights: Vec<_> = heights.iter().map(|part| (part.bottom, part.height)).collect();
        assert_eq!(heights, [(0.0, 75.0), (75.0, 0.0), (75.0, 25.0)]);
    }

    #[test]
    fn bars_of_a_group_are_beside_each_other_and_share_a_label() {
        let bar = |at: usize| ChartBar {
            name: format!("bar {at}"),
            label: format!("week {}", at / 2),
            amount: Some(1.0),
            link: None,
            parts: if at.is_multiple_of(2) { vec![1.0, 0.0] } else { vec![0.0, 1.0] },
            note: String::new(),
        };
        let bars: Vec<ChartBar> = (0..4).map(bar).collect();
        let series = ["a".to_owned(), "b".to_owned()];
        let chart = BarChart {
            title: "Words",
            unit: "entries a week",
            unknown: "",
            bars: &bars,
            format: |amount| format!("{amount}"),
            limits: &[],
            series: &series,
            style: ChartStyle::Groups(2),
        };
        let lefts: Vec<f64> = (0..4).map(|at| chart.bar_place(at).left.round()).collect();
        assert_eq!(lefts, [18.0, 25.0, 68.0, 75.0]);
        let text = chart.draw().0;
        assert_eq!(text.matches(">week ").count(), 2, "{text}");
        assert!(text.contains("<title>b\nbar 3: 1</title>"), "{text}");
        assert_eq!((text.matches("bar s0").count(), text.matches("bar s1").count()), (2, 2));
    }

    #[test]
    fn lines_go_through_the_parts_of_bars() {
        let bar = |at: usize| ChartBar {
            name: format!("day {at}"),
            label: String::new(),
            amount: Some(4.0),
            link: None,
            parts: vec![4.0, at as f64],
            note: String::new(),
        };
        let bars: Vec<ChartBar> = (0..2).map(bar).collect();
        let series = ["<a>".to_owned(), "b".to_owned()];
        let chart = BarChart {
            title: "Words",
            unit: "entries a day",
            unknown: "",
            bars: &bars,
            format: |amount| format!("{amount}"),
            limits: &[],
            series: &series,
            style: ChartStyle::Lines,
        };
        let text = chart.draw().0;
        assert!(text.contains("class=\"curve s1\" points=\"0.5,196 1.5,151.5\""), "{text}");
        assert!(text.contains("<title>day 1\n&lt;a&gt; 4\nb 1</title>"), "{text}");
        assert_eq!(text.matches("class=\"bar").count(), 0, "{text}");
    }

    #[test]
    fn a_scale_of_counts_has_no_fractions() {
        let bars = [ChartBar {
            name: "Monday".to_owned(),
            label: "Mon".to_owned(),
            amount: Some(2.0),
            link: None,
            parts: Vec::new(),
            note: String::new(),
        }];
        let format = |amount| format!("{}", amount as u64);
        let text = BarChart {
            title: "Sessions",
            unit: "sessions",
            unknown: "",
            bars: &bars,
            format,
            limits: &[],
            series: &[],
            style: ChartStyle::Bars,
        }
        .draw()
        .0;
        let labels: Vec<&str> =
            text.split("\"end\">").skip(1).filter_map(|one| one.split('<').next()).collect();
        assert_eq!(labels, ["0", "1", "2", "3", "4"]);
    }

    #[test]
    fn shares_are_whole_percents() {
        assert_eq!([0.0, 0.001, 0.014, 1.0].map(share_text), ["0%", "<1%", "1%", "100%"]);
    }
}
