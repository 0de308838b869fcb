//! Counts entries that contain words by day, week or month, for the page and the API.

use std::collections::BTreeMap;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use steno_store::index::{EntryFilter, MatchTrend, SearchQuery};

use crate::chart_axis::ChartAxis;
use crate::date_range::period_days;
use crate::error::WebError;
use crate::filter_query::FilterQuery;
use crate::library::SessionLibrary;
use crate::period_step::{PeriodStep, StepDays};
use crate::viewer::PageViewer;

/// The most words that are counted at once: each has its colour.
const MAX_WORDS: usize = 6;

/// The words that are counted unless others are entered.
const EXAMPLE_WORDS: [&str; 3] = ["error", "test", "commit"];

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
    /// The step by which entries are counted.
    pub(crate) step: PeriodStep,
    /// The days that are counted.
    pub(crate) days: StepDays,
    pub(crate) words: Vec<WordTrend>,
    /// How many entries of all there are in each step, by its first day; empty unless counts are related to them.
    pub(crate) entries: BTreeMap<Date, u64>,
    /// Whether words were entered.
    pub(crate) is_asked: bool,
    /// Whether more words were entered than are counted.
    pub(crate) has_more_words: bool,
}

impl WordTrends {
    /// Counts the words of a query, one a line. `fits_chart` selects a larger step than the chosen one if a chart has no
    /// room for so many bars.
    pub(crate) fn count(
        library: &SessionLibrary,
        viewer: &PageViewer,
        filters: &FilterQuery,
        fits_chart: bool,
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
        let found_days =
            || counted().flat_map(|found| local_days(found, &viewer.zone)).map(|(day, _)| day);
        let (first, last) = match filter.since {
            Some(_) => (first, last),
            None => found_days().min().zip(found_days().max()).unwrap_or_default(),
        };
        let days = StepDays { first, last };
        let asked = PeriodStep::choose(&filters.by, first, last);
        let step = if fits_chart { asked.fit_to_chart(days.count()) } else { asked };
        for word in &mut words {
            if let Ok(found) = &word.found {
                word.steps = count_steps(found, step, &viewer.zone);
            }
        }
        let entries = match filters.per.as_str() {
            "entries" => count_entries(library, &filter, step, &viewer.zone)?,
            _ => BTreeMap::new(),
        };
        let has_more_words = shown.len() > MAX_WORDS;
        Ok(Self { step, days, words, entries, is_asked, has_more_words })
    }

    /// The axis of a chart of these words.
    pub(crate) fn axis(&self, by: &str) -> ChartAxis {
        let used: Vec<Date> =
            self.words.iter().flat_map(|word| word.steps.keys().copied()).collect();
        let StepDays { first, last } = self.days;
        ChartAxis::new(PeriodStep::choose(by, first, last), self.days, &used)
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
    step: PeriodStep,
    zone: &TimeZone,
) -> Result<BTreeMap<Date, u64>, WebError> {
    let all = library.query_index(|index| index.count_entries_over_time(filter))?;
    Ok(count_steps(&all, step, zone))
}

fn count_steps(found: &MatchTrend, step: PeriodStep, zone: &TimeZone) -> BTreeMap<Date, u64> {
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

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    #[test]
    fn counts_are_of_local_days_and_may_be_related_to_all_entries() {
        let noon = |day: i64| (day * 86_400_000 + 12 * 3_600_000, 2);
        let found = MatchTrend { entries: 4, sessions: 1, quarter_hours: vec![noon(0), noon(1)] };
        let steps = count_steps(&found, PeriodStep::Day, &TimeZone::UTC);
        assert_eq!(steps, BTreeMap::from([(date(1970, 1, 1), 2), (date(1970, 1, 2), 2)]));
        let word = WordTrend { word: "a".to_owned(), found: Ok(found), steps };
        let mut trends = WordTrends {
            step: PeriodStep::Day,
            days: StepDays { first: date(1970, 1, 1), last: date(1970, 1, 2) },
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
