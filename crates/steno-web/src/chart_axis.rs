//! The axis of a chart over time: the days, weeks or months of a whole period, also those without anything.

use std::collections::BTreeMap;

use jiff::civil::Date;

use crate::chart::ChartBar;
use crate::period_step::{PeriodStep, StepDays};
use crate::units::exact_count;

/// The most steps of an axis. A longer one has only the steps that have something.
const MAX_STEPS: usize = 600;

/// The most days of an axis with days as labels. A longer one names months.
const MAX_NAMED_DAYS: usize = 100;

/// The steps of a period, from left to right.
pub(crate) struct ChartAxis {
    pub(crate) step: PeriodStep,
    pub(crate) steps: Vec<StepDays>,
    /// The days of the period.
    days: StepDays,
    /// The step that was asked for, if it has too many bars.
    asked: Option<PeriodStep>,
    /// Whether steps without anything are left out.
    has_gaps: bool,
}

impl ChartAxis {
    /// The axis of a period, divided by the step that was asked for unless a chart has no room for so many bars. `used`
    /// has the days that have something.
    pub(crate) fn new(asked: PeriodStep, days: StepDays, used: &[Date]) -> Self {
        let step = asked.fit_to_chart(days.count());
        let mut steps = step.divide(days);
        let has_gaps = steps.len() > MAX_STEPS;
        if has_gaps {
            let mut firsts: Vec<Date> = used.iter().map(|day| step.first_day(*day)).collect();
            firsts.sort_unstable();
            steps.retain(|one| firsts.binary_search(&step.first_day(one.first)).is_ok());
        }
        let asked = (step != asked).then_some(asked);
        Self { step, steps, days, asked, has_gaps }
    }

    /// A bar for each step, with what `amounts` has of it by its first day, and else with the amount `none`.
    pub(crate) fn fill(
        &self,
        mut amounts: BTreeMap<Date, ChartBar>,
        none: Option<f64>,
    ) -> Vec<ChartBar> {
        let bar = |(at, days): (usize, &StepDays)| {
            let first = self.step.first_day(days.first);
            let known = amounts.remove(&first);
            let empty = || ChartBar::with_amount(none);
            ChartBar {
                name: self.step.long_name(first),
                label: self.label(at),
                ..known.unwrap_or_else(empty)
            }
        };
        self.steps.iter().enumerate().map(bar).collect()
    }

    /// The label below a step; empty for one within a month whose first step has the label.
    pub(crate) fn label(&self, at: usize) -> String {
        let first = self.step.first_day(self.steps[at].first);
        if self.step == PeriodStep::Month || self.days.count() <= MAX_NAMED_DAYS {
            return self.step.label(first);
        }
        let month = |days: &StepDays| days.first.first_of_month();
        let before = at.checked_sub(1).map(|at| month(&self.steps[at]));
        let here = month(&self.steps[at]);
        // The first step of a period may be the end of a month, whose label would meet the next one.
        let is_late = before.is_none() && self.steps[at].first.day() > 20;
        match before == Some(here) || is_late {
            true => String::new(),
            false => PeriodStep::Month.label(here),
        }
    }

    /// What the chart shows, with its period: `US dollars a week, 9 June 2025 to 19 November 2026`.
    pub(crate) fn caption(&self, unit: &str) -> String {
        let day = |day: Date| day.strftime("%-d %b %Y").to_string();
        let mut text = format!("{unit}, {} to {}", day(self.days.first), day(self.days.last));
        if let Some(asked) = self.asked {
            let count = exact_count(asked.count_steps(self.days) as u64);
            text +=
                &format!(" (by {}: {count} {}s are too many bars)", self.step.name(), asked.name());
        }
        if self.has_gaps {
            text += &format!("; {}s without any are left out", self.step.name());
        }
        text
    }
}

/// The first and the last of some days.
pub(crate) fn span_of(days: &[Date]) -> Option<StepDays> {
    Some(StepDays { first: *days.iter().min()?, last: *days.iter().max()? })
}

/// The first day of a step by its name in a report: `2026-01-05`, or `2026-01` for a month.
pub(crate) fn parse_step(name: &str) -> Option<Date> {
    name.parse().or_else(|_| format!("{name}-01").parse()).ok()
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    fn axis(step: PeriodStep, first: Date, last: Date) -> ChartAxis {
        ChartAxis::new(step, StepDays { first, last }, &[first, last])
    }

    fn labels(axis: &ChartAxis) -> Vec<String> {
        (0..axis.steps.len()).map(|at| axis.label(at)).filter(|label| !label.is_empty()).collect()
    }

    #[test]
    fn an_axis_has_all_steps_of_the_period() {
        let days = axis(PeriodStep::Day, date(2026, 1, 4), date(2026, 1, 7));
        assert_eq!(labels(&days), ["4 Jan", "5 Jan", "6 Jan", "7 Jan"]);
        let monday = BTreeMap::from([(date(2026, 1, 5), ChartBar::with_amount(Some(2.0)))]);
        let bars = days.fill(monday, Some(0.0));
        let shown: Vec<_> = bars.iter().map(|bar| (bar.name.as_str(), bar.amount)).collect();
        assert_eq!(
            shown[..2],
            [("Sunday, 4 January 2026", Some(0.0)), ("Monday, 5 January 2026", Some(2.0))]
        );
        let weeks = axis(PeriodStep::Week, date(2025, 12, 30), date(2026, 1, 20));
        assert_eq!(labels(&weeks), ["29 Dec", "5 Jan", "12 Jan", "19 Jan"]);
        let months = axis(PeriodStep::Month, date(2025, 11, 9), date(2026, 1, 1));
        assert_eq!(labels(&months), ["Nov 2025", "Dec 2025", "Jan 2026"]);
        assert_eq!(days.caption("dollars a day"), "dollars a day, 4 Jan 2026 to 7 Jan 2026");
    }

    #[test]
    fn a_long_axis_names_months() {
        let days = axis(PeriodStep::Day, date(2026, 1, 25), date(2026, 5, 20));
        assert_eq!(labels(&days), ["Feb 2026", "Mar 2026", "Apr 2026", "May 2026"]);
        let weeks = axis(PeriodStep::Week, date(2025, 12, 10), date(2026, 3, 31));
        assert_eq!(labels(&weeks), ["Dec 2025", "Jan 2026", "Feb 2026", "Mar 2026"]);
    }

    #[test]
    fn a_period_with_too_many_days_is_divided_by_weeks_or_months_and_says_so() {
        let two_years = axis(PeriodStep::Day, date(2024, 1, 1), date(2025, 12, 31));
        assert_eq!((two_years.step, two_years.steps.len()), (PeriodStep::Week, 105));
        assert_eq!(
            two_years.caption("dollars a week"),
            "dollars a week, 1 Jan 2024 to 31 Dec 2025 (by week: 731 days are too many bars)"
        );
        let weeks = axis(PeriodStep::Week, date(2014, 1, 1), date(2025, 12, 31));
        assert_eq!((weeks.step, weeks.steps.len()), (PeriodStep::Month, 144));
        let damaged = axis(PeriodStep::Day, date(1, 1, 1), date(2025, 12, 31));
        assert_eq!((damaged.step, damaged.steps.len()), (PeriodStep::Month, 2));
        assert!(damaged.caption("").ends_with("; months without any are left out"));
    }
}
