//! The bars of a chart of days, weeks or months, also of those without anything.

use jiff::civil::Date;

use crate::chart::ChartBar;
use crate::period_step::PeriodStep;

/// The most days of a chart, with those that cost nothing.
pub(crate) const MAX_DAYS: usize = 370;

/// Adds the days of a period that cost nothing, and those between others, so that the axis shows all days.
pub(crate) fn fill_days(bars: Vec<ChartBar>, period: Option<(Date, Date)>) -> Vec<ChartBar> {
    fill_steps(PeriodStep::Day, bars, period)
}

/// The same for weeks and months. Each bar has the first day of its step as its name, or `2026-01` for a month.
pub(crate) fn fill_steps(
    step: PeriodStep,
    bars: Vec<ChartBar>,
    period: Option<(Date, Date)>,
) -> Vec<ChartBar> {
    let mut filled: Vec<ChartBar> = Vec::new();
    let mut next: Option<Date> = period.map(|(first, _)| step.first_day(first));
    let missing = |next: Option<Date>, until: Date| {
        let days = std::iter::successors(next, |day| step.next(*day));
        days.take_while(move |day| *day < until).map(|day| step_bar(step, day, Some(0.0)))
    };
    for bar in bars {
        let Some(day) = parse_step(&bar.name) else {
            filled.push(bar);
            continue;
        };
        filled.extend(missing(next, day));
        let ChartBar { amount, link, parts, note, .. } = bar;
        filled.push(ChartBar { link, parts, note, ..step_bar(step, day, amount) });
        next = step.next(day);
    }
    if let Some((_, last)) = period {
        filled.extend(last.tomorrow().into_iter().flat_map(|end| missing(next, end)));
    }
    let first = filled.len().saturating_sub(MAX_DAYS);
    filled.split_off(first)
}

/// The first day of a step by its name in a report: `2026-01-05`, or `2026-01` for a month.
pub(crate) fn parse_step(name: &str) -> Option<Date> {
    name.parse().or_else(|_| format!("{name}-01").parse()).ok()
}

/// The bar of a day.
pub(crate) fn day_bar(day: Date, amount: Option<f64>) -> ChartBar {
    step_bar(PeriodStep::Day, day, amount)
}

/// The bar of the step that begins on a day.
pub(crate) fn step_bar(step: PeriodStep, day: Date, amount: Option<f64>) -> ChartBar {
    ChartBar {
        name: step.long_name(day),
        label: step.label(day),
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

    #[test]
    fn the_axis_has_all_weeks_and_months() {
        let bar = |name: &str| ChartBar {
            name: name.to_owned(),
            ..step_bar(PeriodStep::Day, date(2026, 1, 1), Some(2.0))
        };
        let shown = |step, bars: Vec<ChartBar>, period| -> Vec<String> {
            fill_steps(step, bars, period).into_iter().map(|bar| bar.label).collect()
        };
        let weeks = vec![bar("2025-12-29"), bar("2026-01-12")];
        let period = Some((date(2025, 12, 30), date(2026, 1, 20)));
        assert_eq!(shown(PeriodStep::Week, weeks, period), ["29 Dec", "5 Jan", "12 Jan", "19 Jan"]);
        let months = vec![bar("2025-11"), bar("2026-01")];
        assert_eq!(shown(PeriodStep::Month, months, None), ["Nov 2025", "Dec 2025", "Jan 2026"]);
    }
}
