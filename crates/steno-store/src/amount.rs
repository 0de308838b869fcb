//! Formats amounts for people: short token counts and dollars, bars, and one-line curves.

use crate::cost::report::ChargeSum;

/// A count in at most five characters: `265`, `89.7k`, `3.49M`, `4.32B`.
pub fn format_count(number: u64) -> String {
    let mut scaled = number as f64;
    for unit in ["", "k", "M", "B", "T"] {
        // A value that rounds up to 1000 belongs to the next unit.
        if scaled < 999.5 || unit == "T" {
            let digits = match scaled {
                _ if unit.is_empty() => 0,
                scaled if scaled < 9.995 => 2,
                scaled if scaled < 99.95 => 1,
                _ => 0,
            };
            return format!("{scaled:.digits$}{unit}");
        }
        scaled /= 1000.0;
    }
    number.to_string()
}

/// Dollars and cents. What is less than half a cent is `<$0.01`: only nothing is `$0.00`.
pub fn format_dollars(cost: f64) -> String {
    if cost > 0.0 && cost < 0.005 {
        return "<$0.01".to_owned();
    }
    // A sum of nothing can be -0.0.
    let cost = cost + 0.0;
    let cents = format!("{cost:.2}");
    let (whole, cents) = cents.split_once('.').unwrap_or((&cents, "00"));
    let grouped: String = whole
        .chars()
        .enumerate()
        .flat_map(|(at, digit)| {
            let comma = at > 0 && (whole.len() - at).is_multiple_of(3);
            comma.then_some(',').into_iter().chain([digit])
        })
        .collect();
    format!("${grouped}.{cents}")
}

/// The cost of a sum: `?` if unknown, with the suffix `+?` if only part of it is known.
pub fn format_cost(sum: &ChargeSum) -> String {
    match sum.cost() {
        None => "?".to_owned(),
        Some(cost) if sum.unpriced.is_empty() => format_dollars(cost),
        Some(cost) => format!("{}+?", format_dollars(cost)),
    }
}

/// Rounds a number for JSON, to hide floating-point noise.
pub fn round_for_json(number: f64) -> f64 {
    (number * 1e10).round() / 1e10
}

/// A bar of at most `width` columns for a share of the maximum.
pub fn render_bar(share: f64, width: usize) -> String {
    const PARTS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (share.clamp(0.0, 1.0) * width as f64 * 8.0).round() as usize;
    let eighths = if share > 0.0 { eighths.max(1) } else { 0 };
    format!("{}{}", "█".repeat(eighths / 8), PARTS[eighths % 8])
}

/// The next of 1, 2, 5, 10, 20 and so on, for the scale of a chart.
pub fn round_up_scale(largest: f64) -> f64 {
    if largest <= 0.0 {
        return 1.0;
    }
    let power = 10f64.powf(largest.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * power);
    steps.into_iter().find(|step| *step >= largest).unwrap_or(largest)
}

/// A one-line curve.
pub fn render_curve(values: &[f64]) -> String {
    const STEPS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let top = values.iter().copied().fold(0.0, f64::max);
    let step = |value: &f64| match *value {
        value if value > 0.0 => STEPS[((value / top * 8.0).ceil() as usize).clamp(1, 8) - 1],
        _ => ' ',
    };
    values.iter().map(step).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_take_five_characters() {
        let all = [0, 999, 1000, 9_994, 9_995, 99_949, 99_950, 999_499, 999_500, 3_487_568];
        let shown =
            ["0", "999", "1.00k", "9.99k", "10.0k", "99.9k", "100k", "999k", "1.00M", "3.49M"];
        assert_eq!(all.map(format_count), shown);
        assert_eq!([4_320_000_000, u64::MAX].map(format_count), ["4.32B", "18446744T"]);
    }

    #[test]
    fn dollars_are_grouped() {
        let shown = ["$0.00", "$0.01", "$999.99", "$1,000.00", "$1,234,567.80"];
        assert_eq!([-0.0, 0.001, 0.005].map(format_dollars), ["$0.00", "<$0.01", "$0.01"]);
        assert_eq!([0.0, 0.009, 999.99, 1000.0, 1_234_567.8].map(format_dollars), shown);
    }

    #[test]
    fn bars_and_curves_show_small_values() {
        assert_eq!(
            [0.0, 0.001, 0.5, 1.0].map(|share| render_bar(share, 4)),
            ["", "▏", "██", "████"]
        );
        assert_eq!(render_curve(&[0.0, 0.1, 4.0, 8.0]), " ▁▄█");
        assert_eq!(render_curve(&[0.0, 0.0]), "  ");
    }

    #[test]
    fn scales_can_be_read() {
        assert_eq!(
            [0.0, 0.7, 1.0, 3.0, 12.0, 51.0].map(round_up_scale),
            [1.0, 1.0, 1.0, 5.0, 20.0, 100.0]
        );
    }
}
