//! The bars of a chart of days, also of days without anything.

use jiff::ToSpan;
use jiff::civil::Date;

use crate::chart::ChartBar;

/// The most days of a chart, with those that cost nothing.
pub(crate) const MAX_DAYS: usize = 370;

/// Adds the days of a period that cost nothing, and those between others, so that the axis shows all days.
pub(crate) fn fill_days(bars: Vec<ChartBar>, period: Option<(Date, Date)>) -> Vec<ChartBar> {
    let mut filled: Vec<ChartBar> = Vec::new();
    let mut next: Option<Date> = period.map(|(first, _)| first);
    for bar in bars {
        let Ok(day) = bar.name.parse::<Date>() else {
            filled.push(bar);
            continue;
        };
        let missing =
            next.into_iter().flat_map(|next| next.series(1.day()).take_while(|at| *at < day));
        filled.extend(missing.map(|day| day_bar(day, Some(0.0))));
        let ChartBar { amount, link, parts, note, .. } = bar;
        filled.push(ChartBar { link, parts, note, ..day_bar(day, amount) });
        next = day.checked_add(1.day()).ok();
    }
    if let Some((next, (_, last))) = next.zip(period) {
        let missing = next.series(1.day()).take_while(|at| *at <= last);
        filled.extend(missing.map(|day| day_bar(day, Some(0.0))));
    }
    let first = filled.len().saturating_sub(MAX_DAYS);
    filled.split_off(first)
}

/// The bar of a day.
pub(crate) fn day_bar(day: Date, amount: Option<f64>) -> ChartBar {
    let (name, label) = (day.strftime("%A, %-d %B %Y"), day.strftime("%-d %b"));
    ChartBar {
        name: name.to_string(),
        label: label.to_string(),
        amount,
        link: None,
        parts: Vec::new(),
        note: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    #[test]
    fn the_axis_has_all_days_of_the_period() {
        let bars = || {
            ["2026-01-05", "2026-01-07"]
                .map(|day| ChartBar {
                    name: day.to_owned(),
                    label: String::new(),
                    amount: Some(2.0),
                    link: None,
                    parts: Vec::new(),
                    note: String::new(),
                })
                .into_iter()
                .collect()
        };
        let labels =
            |bars: Vec<ChartBar>| bars.into_iter().map(|bar| bar.label).collect::<Vec<_>>();
        assert_eq!(labels(fill_days(bars(), None)), ["5 Jan", "6 Jan", "7 Jan"]);
        let period = Some((date(2026, 1, 4), date(2026, 1, 8)));
        let all = ["4 Jan", "5 Jan", "6 Jan", "7 Jan", "8 Jan"];
        assert_eq!(labels(fill_days(bars(), period)), all);
    }
}
