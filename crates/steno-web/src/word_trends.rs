//! Counts entries that contain words by day, week or month, for the page and the API.

use std::collections::BTreeMap;

use jiff::ToSpan;
use jiff::civil::{Date, Weekday};
use jiff::tz::TimeZone;
use steno_store::index::{EntryFilter, MatchTrend, SearchQuery};

use crate::date_range::period_days;
use crate::error::WebError;
use crate::filter_query::FilterQuery;
use crate::library::SessionLibrary;
use crate::viewer::PageViewer;

/// The most words that are counted at once: each has its colour.
const MAX_WORDS: usize = 6;

/// The words that are counted unless others are entered.
const EXAMPLE_WORDS: [&str; 3] = ["error", "test", "commit"];

/// The most days of a period that is divided by days, and by weeks, unless the steps are chosen.
const MAX_DAYS: i32 = 31;
const MAX_WEEK_DAYS: i32 = 400;

/// The most steps that are drawn.
const MAX_STEPS: usize = 370;

/// How a period is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TrendStep {
    Day,
    Week,
    Month,
}

impl TrendStep {
    pub(crate) const ALL: [Self; 3] = [Self::Day, Self::Week, Self::Month];

    /// The value of `by`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Week => "week",
            Self::Month => "month",
        }
    }

    /// The step that was chosen, or one whose bars fit in a chart.
    fn choose(by: &str, first: Date, last: Date) -> Self {
        let chosen = Self::ALL.into_iter().find(|step| step.name() == by);
        chosen.unwrap_or(match (last - first).get_days() {
            ..MAX_DAYS => Self::Day,
            MAX_DAYS..MAX_WEEK_DAYS => Self::Week,
            _ => Self::Month,
        })
    }

    /// The first day of the step that contains a day. Weeks begin on Mondays.
    fn first_day(self, day: Date) -> Date {
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
}

/// The entries that contain a word, or match a query, in each step.
pub(crate) struct WordTrend {
    /// The query.
    pub(crate) word: String,
    /// How many entries match, in how many sessions; an error if it is no query.
    pub(crate) found: Result<MatchTrend, String>,
    /// The entries of each step, by its first day.
    pub(crate) steps: BTreeMap<Date, u64>,
}

/// The words of a page over time.
pub(crate) struct WordTrends {
    pub(crate) step: TrendStep,
    /// The first and the last day of each step that is shown. Those at the ends may be cut by the period.
    pub(crate) steps: Vec<(Date, Date)>,
    pub(crate) words: Vec<WordTrend>,
    /// How many entries of all there are in each step, by its first day; empty unless counts are related to them.
    pub(crate) entries: BTreeMap<Date, u64>,
    /// Whether words were entered.
    pub(crate) is_asked: bool,
    /// Whether more words were entered than are counted.
    pub(crate) has_more_words: bool,
}

impl WordTrends {
    /// Counts the words of a query, one a line.
    pub(crate) fn count(
        library: &SessionLibrary,
        viewer: &PageViewer,
        filters: &FilterQuery,
    ) -> Result<Self, WebError> {
        let asked = split_words(&filters.q);
        let is_asked = !asked.is_empty();
        let shown = if is_asked { asked } else { EXAMPLE_WORDS.map(str::to_owned).to_vec() };
        let filter = filters.to_filter(library, &viewer.zone)?;
        let mut words = Vec::new();
        for word in shown.iter().take(MAX_WORDS) {
            let found = count_word(library, filters, &viewer.zone, word)?;
            words.push(WordTrend { word: word.clone(), found, steps: BTreeMap::new() });
        }
        let (first, last) =
            period_days(&filter, &viewer.zone, viewer.today(&library.clock)).unwrap_or_default();
        let counted = || words.iter().filter_map(|word| word.found.as_ref().ok());
        let days =
            || counted().flat_map(|found| local_days(found, &viewer.zone)).map(|(day, _)| day);
        let (first, last) = match filter.since {
            Some(_) => (first, last),
            None => days().min().zip(days().max()).unwrap_or_default(),
        };
        let step = TrendStep::choose(&filters.by, first, last);
        for word in &mut words {
            if let Ok(found) = &word.found {
                word.steps = count_steps(found, step, &viewer.zone);
            }
        }
        let entries = match filters.per.as_str() {
            "entries" => count_entries(library, &filter, step, &viewer.zone)?,
            _ => BTreeMap::new(),
        };
        let steps = steps_between(step, first, last);
        let has_more_words = shown.len() > MAX_WORDS;
        Ok(Self { step, steps, words, entries, is_asked, has_more_words })
    }

    /// How many entries contain a word in the step of a day.
    pub(crate) fn entries_at(&self, word: &WordTrend, day: Date) -> u64 {
        word.steps.get(&self.step.first_day(day)).copied().unwrap_or(0)
    }

    /// The amount of the step of a day: entries, or entries of each thousand.
    pub(crate) fn amount(&self, word: &WordTrend, day: Date) -> f64 {
        let count = self.entries_at(word, day) as f64;
        if self.entries.is_empty() {
            return count;
        }
        let all = self.entries.get(&self.step.first_day(day)).copied().unwrap_or(0);
        count * 1000.0 / all.max(1) as f64
    }
}

/// The words, one a line, each once.
fn split_words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
        if !words.iter().any(|known| known == line) {
            words.push(line.to_owned());
        }
    }
    words
}

/// Counts one word. A text that is no query is an error of its own, so that the other words are shown.
fn count_word(
    library: &SessionLibrary,
    filters: &FilterQuery,
    zone: &TimeZone,
    word: &str,
) -> Result<Result<MatchTrend, String>, WebError> {
    let query = match SearchQuery::parse(word) {
        Ok(query) => query,
        Err(error) => return Ok(Err(error.to_string())),
    };
    let search = filters.search_request(library, zone, &query)?;
    Ok(Ok(library.query_index(|index| index.count_matches_over_time(&search))?))
}

fn count_entries(
    library: &SessionLibrary,
    filter: &EntryFilter,
    step: TrendStep,
    zone: &TimeZone,
) -> Result<BTreeMap<Date, u64>, WebError> {
    let all = library.query_index(|index| index.count_entries_over_time(filter))?;
    Ok(count_steps(&all, step, zone))
}

fn count_steps(found: &MatchTrend, step: TrendStep, zone: &TimeZone) -> BTreeMap<Date, u64> {
    let mut steps: BTreeMap<Date, u64> = BTreeMap::new();
    for (day, entries) in local_days(found, zone) {
        *steps.entry(step.first_day(day)).or_default() += entries;
    }
    steps
}

fn local_days(found: &MatchTrend, zone: &TimeZone) -> Vec<(Date, u64)> {
    let local = |at: i64| Some(jiff::Timestamp::from_millisecond(at).ok()?.to_zoned(zone.clone()));
    let day = |(at, entries): &(i64, u64)| Some((local(*at)?.date(), *entries));
    found.quarter_hours.iter().filter_map(day).collect()
}

/// The steps of a period, the last ones if there are too many.
fn steps_between(step: TrendStep, first: Date, last: Date) -> Vec<(Date, Date)> {
    let mut steps = Vec::new();
    let mut start = step.first_day(first);
    while start <= last {
        steps.push((start.max(first), step.last_day(start).min(last)));
        match step.last_day(start).checked_add(1.day()) {
            Ok(next) => start = next,
            Err(_) => break,
        }
    }
    let kept = steps.len().saturating_sub(MAX_STEPS);
    steps.split_off(kept)
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    #[test]
    fn a_period_is_divided_and_its_ends_are_cut() {
        let weeks = steps_between(TrendStep::Week, date(2026, 1, 7), date(2026, 1, 20));
        let expected = [
            (date(2026, 1, 7), date(2026, 1, 11)),
            (date(2026, 1, 12), date(2026, 1, 18)),
            (date(2026, 1, 19), date(2026, 1, 20)),
        ];
        assert_eq!(weeks, expected);
        let months = steps_between(TrendStep::Month, date(2025, 12, 31), date(2026, 2, 1));
        assert_eq!(months.len(), 3);
        assert_eq!(months[1], (date(2026, 1, 1), date(2026, 1, 31)));
        assert_eq!(
            steps_between(TrendStep::Day, date(2020, 1, 1), date(2026, 1, 1)).len(),
            MAX_STEPS
        );
    }

    #[test]
    fn the_steps_fit_the_period_unless_they_are_chosen() {
        let step = |by: &str, days: i32| {
            TrendStep::choose(by, date(2026, 1, 1), date(2026, 1, 1).saturating_add(days.days()))
        };
        assert_eq!([6, 89, 900].map(|days| step("", days).name()), ["day", "week", "month"]);
        assert_eq!(step("day", 900), TrendStep::Day);
        assert_eq!(TrendStep::Week.long_name(date(2026, 1, 5)), "Week of 5 January 2026");
    }

    #[test]
    fn counts_are_of_local_days_and_may_be_related_to_all_entries() {
        let noon = |day: i64| (day * 86_400_000 + 12 * 3_600_000, 2);
        let found = MatchTrend { entries: 4, sessions: 1, quarter_hours: vec![noon(0), noon(1)] };
        let steps = count_steps(&found, TrendStep::Day, &TimeZone::UTC);
        assert_eq!(steps, BTreeMap::from([(date(1970, 1, 1), 2), (date(1970, 1, 2), 2)]));
        let word = WordTrend { word: "a".to_owned(), found: Ok(found), steps };
        let mut trends = WordTrends {
            step: TrendStep::Day,
            steps: Vec::new(),
            words: Vec::new(),
            entries: BTreeMap::new(),
            is_asked: true,
            has_more_words: false,
        };
        assert_eq!(trends.amount(&word, date(1970, 1, 1)), 2.0);
        trends.entries = BTreeMap::from([(date(1970, 1, 1), 400)]);
        assert_eq!(trends.amount(&word, date(1970, 1, 1)), 5.0);
        assert_eq!(trends.amount(&word, date(1970, 1, 3)), 0.0);
    }

    #[test]
    fn each_line_is_a_word() {
        assert_eq!(split_words(" error \n\n\"a phrase\"\nerror\n"), ["error", "\"a phrase\""]);
    }
}
