//! Days, weeks and months that a period is divided by, for charts and tables.

use jiff::ToSpan;
use jiff::civil::{Date, Weekday};
use steno_store::cost::report::GroupBy;

/// The most days of a period that is divided by days, and by weeks, unless the steps are chosen.
const MAX_DAYS: i32 = 31;
const MAX_WEEK_DAYS: i32 = 400;

/// The same for a chart with one bar a step.
const MAX_BAR_DAYS: usize = 120;
const MAX_WEEK_BAR_DAYS: usize = 800;

/// The most bars of a chart whose steps are chosen.
const MAX_CHOSEN_BARS: usize = 370;

/// The days of a step of a period. A step at its end may be cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StepDays {
    pub(crate) first: Date,
    pub(crate) last: Date,
}

impl StepDays {
    /// How many days these are.
    pub(crate) fn count(self) -> usize {
        usize::try_from((self.last - self.first).get_days()).map_or(0, |days| days + 1)
    }
}

/// How a period is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PeriodStep {
    Day,
    Week,
    Month,
}

impl PeriodStep {
    pub(crate) const ALL: [Self; 3] = [Self::Day, Self::Week, Self::Month];

    /// The value of `by`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
        }
    }

    /// The group of a report with these steps.
    pub(crate) fn group(self) -> GroupBy {
        match self {
            Self::Day => GroupBy::Day,
            Self::Week => GroupBy::Week,
            Self::Month => GroupBy::Month,
        }
    }

    /// The step that was chosen, or one whose bars fit in a chart.
    pub(crate) fn choose(by: &str, first: Date, last: Date) -> Self {
        let chosen = Self::ALL.into_iter().find(|step| step.name() == by);
        chosen.unwrap_or(match (last - first).get_days() {
            ..MAX_DAYS => Self::Day,
            MAX_DAYS..MAX_WEEK_DAYS => Self::Week,
            _ => Self::Month,
        })
    }

    /// The step whose bars are easy to tell apart in a chart of so many days.
    pub(crate) fn for_bars(days: StepDays) -> Self {
        match days.count() {
            ..MAX_BAR_DAYS => Self::Day,
            MAX_BAR_DAYS..MAX_WEEK_BAR_DAYS => Self::Week,
            _ => Self::Month,
        }
    }

    /// This step, or a larger one if a chart has no room for its bars in so many days.
    pub(crate) fn fit_to_chart(self, days: usize) -> Self {
        match self {
            Self::Day if days > MAX_CHOSEN_BARS => Self::Week.fit_to_chart(days),
            Self::Week if days > 7 * MAX_CHOSEN_BARS => Self::Month,
            fitting => fitting,
        }
    }

    /// The first day of the step that contains a day. Weeks begin on Mondays.
    pub(crate) fn first_day(self, day: Date) -> Date {
        match self {
            Self::Day => day,
            Self::Week => {
                day.saturating_sub(i64::from(day.weekday().since(Weekday::Monday)).days())
            }
            Self::Month => day.first_of_month(),
        }
    }

    /// The last day of the step that begins on a day.
    fn last_day(self, first: Date) -> Date {
        match self {
            Self::Day => first,
            Self::Week => first.saturating_add(6.days()),
            Self::Month => first.last_of_month(),
        }
    }

    /// The name of the step that begins on a day: `Week of 5 January 2026`.
    pub(crate) fn long_name(self, first: Date) -> String {
        let format = match self {
            Self::Day => "%A, %-d %B %Y",
            Self::Week => "Week of %-d %B %Y",
            Self::Month => "%B %Y",
        };
        first.strftime(format).to_string()
    }

    /// The label of the step in a chart.
    pub(crate) fn label(self, first: Date) -> String {
        first.strftime(if self == Self::Month { "%b %Y" } else { "%-d %b" }).to_string()
    }

    /// The name of the step in a table: `Mon, 5 Jan 2026`, `Week of 5 Jan 2026`.
    pub(crate) fn short_name(self, first: Date) -> String {
        let format = match self {
            Self::Day => "%a, %-d %b %Y",
            Self::Week => "Week of %-d %b %Y",
            Self::Month => "%B %Y",
        };
        first.strftime(format).to_string()
    }

    /// The first day of the next step.
    pub(crate) fn next(self, first: Date) -> Option<Date> {
        self.last_day(first).checked_add(1.day()).ok()
    }

    /// How many steps a period has.
    pub(crate) fn count_steps(self, period: StepDays) -> usize {
        let whole = StepDays { first: self.first_day(period.first), last: period.last };
        match self {
            Self::Day => whole.count(),
            Self::Week => whole.count().div_ceil(7),
            Self::Month => self.divide(period).len(),
        }
    }

    /// The steps of a period.
    pub(crate) fn divide(self, period: StepDays) -> Vec<StepDays> {
        let StepDays { first, last } = period;
        let mut steps = Vec::new();
        let mut start = Some(self.first_day(first));
        while let Some(day) = start.filter(|day| *day <= last) {
            steps.push(StepDays { first: day.max(first), last: self.last_day(day).min(last) });
            start = self.next(day);
        }
        steps
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    fn days(first: Date, last: Date) -> StepDays {
        StepDays { first, last }
    }

    #[test]
    fn a_period_is_divided_and_its_ends_are_cut() {
        let weeks = PeriodStep::Week.divide(days(date(2026, 1, 7), date(2026, 1, 20)));
        let expected = [
            days(date(2026, 1, 7), date(2026, 1, 11)),
            days(date(2026, 1, 12), date(2026, 1, 18)),
            days(date(2026, 1, 19), date(2026, 1, 20)),
        ];
        assert_eq!(weeks, expected);
        let january = days(date(2026, 1, 7), date(2026, 1, 20));
        assert_eq!(PeriodStep::ALL.map(|step| step.count_steps(january)), [14, 3, 1]);
        let months = PeriodStep::Month.divide(days(date(2025, 12, 31), date(2026, 2, 1)));
        assert_eq!(months.len(), 3);
        assert_eq!(months[1], days(date(2026, 1, 1), date(2026, 1, 31)));
        assert_eq!(days(date(2025, 12, 31), date(2026, 2, 1)).count(), 33);
    }

    #[test]
    fn the_steps_fit_the_period_unless_they_are_chosen() {
        let step = |by: &str, days: i32| {
            PeriodStep::choose(by, date(2026, 1, 1), date(2026, 1, 1).saturating_add(days.days()))
        };
        assert_eq!([6, 89, 900].map(|days| step("", days).name()), ["day", "week", "month"]);
        assert_eq!(step("day", 900), PeriodStep::Day);
        let last = |count: i32| date(2026, 1, 1).saturating_add(count.days());
        let bars = [0, 89, 365, 2000]
            .map(|count| PeriodStep::for_bars(days(date(2026, 1, 1), last(count))).name());
        assert_eq!(bars, ["day", "day", "week", "month"]);
        assert_eq!(PeriodStep::Week.long_name(date(2026, 1, 5)), "Week of 5 January 2026");
    }
}
