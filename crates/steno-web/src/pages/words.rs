//! The page of words over time: how many entries contain each word, by day, week or month.

use axum::extract::Query;
use maud::{Markup, html};

use crate::app::WebApp;
use crate::chart::{self, BarChart, ChartBar, ChartStyle};
use crate::chart_axis::ChartAxis;
use crate::date_range::all_days_link;
use crate::error::WebError;
use crate::filter_query::FilterQuery;
use crate::period_step::{PeriodStep, StepDays};
use crate::render::plain::clean_text;
use crate::report_page::ReportPage;
use crate::units::{count_of, exact_count};
use crate::viewer::PageViewer;
use crate::word_trends::{WordTrend, WordTrends};

/// The address of the page.
const ADDRESS: &str = "/trends";

/// How many days are shown unless a period is chosen.
const DEFAULT_DAYS: i32 = 90;

/// The most bars that can be told apart. More are drawn as lines.
const MAX_BARS: usize = 240;

/// Whose entries can be selected: role and name.
const ROLES: [(&str, &str); 4] = [
    ("", "Said by anyone"),
    ("user", "Said by the user"),
    ("assistant", "Said or called by agents"),
    ("tool", "Results of tools"),
];

/// What is counted, in which entries, and that copies count once.
const COUNT_MEANING: &str = "Entries that contain it, however often: messages, tool calls and results. \
     An entry that several sessions share counts once, but the search lists it in each.";

/// The page of words over time.
pub(crate) async fn words_page(
    app: WebApp,
    viewer: PageViewer,
    Query(filters): Query<FilterQuery>,
) -> Result<Markup, WebError> {
    app.run_blocking(move |library| {
        let today = viewer.today(&library.clock);
        let filters = filters.with_default_period(DEFAULT_DAYS, today);
        let listing = library.session_listing()?;
        let zone = viewer.zone.iana_name().unwrap_or("zone of the server");
        let key = format!("words {:?} {zone} {today} {filters:?}", listing.edition);
        let report = library.cache_rendered_list(key, || {
            let trends = WordTrends::count(library, &viewer, &filters, true)?;
            let axis = trends.axis(&filters.by);
            Ok(WordView { trends: &trends, axis: &axis, filters: &filters }.report())
        })?;
        let (title, address, viewer, filters) = ("Words over time", ADDRESS, &viewer, &filters);
        ReportPage { title, address, library, viewer, filters, today }.with_content(&report)
    })
    .await
}

/// What the parts of the page need.
struct WordView<'a> {
    trends: &'a WordTrends,
    axis: &'a ChartAxis,
    filters: &'a FilterQuery,
}

impl WordView<'_> {
    fn report(&self) -> Markup {
        html! {
            .words {
                (self.word_form())
                div { (self.chart()) }
            }
            (self.word_table())
            (self.step_table())
        }
    }

    /// Where words are entered. The other filters stay as they are.
    fn word_form(&self) -> Markup {
        let filters = self.filters;
        let text: Vec<&str> = self.trends.words.iter().map(|word| word.word.as_str()).collect();
        let kept = [
            ("since", &filters.since),
            ("until", &filters.until),
            ("period", &filters.period),
            ("agent", &filters.agent),
            ("project", &filters.project),
            ("model", &filters.model),
            ("by", &filters.by),
            ("per", &filters.per),
        ];
        html! {
            form.word-form action=(ADDRESS) {
                label for="words" { "Words or phrases, one a line" }
                textarea #words name="q" rows="6" spellcheck="false" { (text.join("\n")) }
                select name="role" aria-label="Who said it" {
                    @for (role, name) in ROLES { option value=(role) selected[filters.role == role] { (name) } }
                }
                @for (name, value) in kept.iter().filter(|(_, value)| !value.is_empty()) { input type="hidden" name=(name) value=(value); }
                button.main { "Show" }
                p.hint {
                    @if self.trends.is_asked { "As in the search: " } @else { "These are examples; enter your own. " }
                    code { "\"a phrase\"" } ", " code { "pre*" } ", " code { "one OR other" } ", " code { "/regex/" }
                }
                @if self.trends.has_more_words { p.hint { "Only the first " (self.trends.words.len()) " are shown." } }
            }
        }
    }

    fn names(&self) -> Vec<String> {
        self.trends.words.iter().map(|word| word.word.clone()).collect()
    }

    fn is_relative(&self) -> bool {
        !self.trends.entries.is_empty()
    }

    fn unit(&self) -> String {
        let step = self.trends.step.name();
        self.axis.caption(&match self.is_relative() {
            true => format!("entries with the word, of 1,000 entries each {step}"),
            false => format!("entries with the word, each {step}"),
        })
    }

    fn format(&self) -> fn(f64) -> String {
        match self.is_relative() {
            true => |amount| format!("{amount:.1}"),
            false => |amount| exact_count(amount as u64),
        }
    }

    fn chart(&self) -> Markup {
        let (trends, steps) = (self.trends, self.axis.steps.len());
        let is_dense = steps * trends.words.len() > MAX_BARS && trends.words.len() > 1;
        let (bars, style): (Vec<ChartBar>, _) = match is_dense {
            true => ((0..steps).map(|at| self.column(at)).collect(), ChartStyle::Lines),
            false => (self.grouped_bars(), ChartStyle::Groups(trends.words.len())),
        };
        let (names, unit) = (self.names(), self.unit());
        let is_empty = trends.words.iter().all(|word| word.steps.is_empty());
        html! {
            .chart-notes {
                (self.tabs("Steps", "by", trends.step.name(), &PeriodStep::ALL.map(|step| (step.name(), step_tab(step)))))
                (self.tabs("What is counted", "per", if self.is_relative() { "entries" } else { "" }, &[("", "Entries"), ("entries", "Per 1,000 entries")]))
            }
            @if is_empty {
                .empty {
                    p { b { "No entry of this period contains these words" } }
                    p { (all_days_link(ADDRESS, self.filters)) ", enter other words, or choose fewer filters." }
                }
            } @else {
                (BarChart { title: "Entries with each word", unit: &unit, unknown: "", bars: &bars, format: self.format(), limits: &[], series: &names, style }.draw())
                .chart-notes { (chart::chart_legend(&names)) }
            }
        }
    }

    fn tabs(&self, label: &str, name: &str, chosen: &str, all: &[(&str, &str)]) -> Markup {
        html! {
            nav.tabs aria-label=(label) {
                @for (value, text) in all {
                    a href=(self.filters.address_with(ADDRESS, name, value)) aria-current=[(*value == chosen).then_some("true")] { (text) }
                }
            }
        }
    }

    fn grouped_bars(&self) -> Vec<ChartBar> {
        let words = 0..self.trends.words.len();
        let bars = |at: usize| words.clone().map(move |word| self.bar(at, word));
        (0..self.axis.steps.len()).flat_map(bars).collect()
    }

    /// The bar of a word in a step. It leads to the search.
    fn bar(&self, at: usize, series: usize) -> ChartBar {
        let (step, word) = (self.axis.steps[at], &self.trends.words[series]);
        let amount = self.trends.amount(word, step.first);
        let mut parts = vec![0.0; self.trends.words.len()];
        parts[series] = amount;
        let count = self.trends.entries_at(word, step.first);
        ChartBar {
            amount: Some(amount),
            link: (count > 0).then(|| self.search_address(word, Some(step))),
            note: if self.is_relative() { count_of(count, "entry") } else { String::new() },
            ..self.empty_bar(at, parts)
        }
    }

    /// A step of all words, for lines. It leads to the bars of this step.
    fn column(&self, at: usize) -> ChartBar {
        let step = self.axis.steps[at];
        let amounts = self.trends.words.iter().map(|word| self.trends.amount(word, step.first));
        let parts: Vec<f64> = amounts.collect();
        let (since, until, by) =
            (step.first.to_string(), step.last.to_string(), self.trends.step.name().to_owned());
        let zoomed =
            FilterQuery { since, until, by, period: String::new(), ..self.filters.clone() };
        ChartBar {
            amount: Some(parts.iter().copied().fold(0.0, f64::max)),
            link: Some(zoomed.address_of(ADDRESS)),
            ..self.empty_bar(at, parts)
        }
    }

    fn empty_bar(&self, at: usize, parts: Vec<f64>) -> ChartBar {
        ChartBar {
            name: self.axis.step.long_name(self.axis.steps[at].first),
            label: self.axis.label(at),
            parts,
            ..ChartBar::with_amount(None)
        }
    }

    /// The search for a word in the period, or in one step of it.
    fn search_address(&self, word: &WordTrend, step: Option<StepDays>) -> String {
        let empty = String::new;
        let (q, sort) = (word.word.clone(), "time".to_owned());
        let all = FilterQuery {
            q,
            sort,
            by: empty(),
            per: empty(),
            period: empty(),
            ..self.filters.clone()
        };
        match step {
            Some(StepDays { first, last }) => {
                let (since, until) = (first.to_string(), last.to_string());
                FilterQuery { since, until, ..all }.address_of("/search")
            }
            None => all.address_of("/search"),
        }
    }

    /// The words with their totals.
    fn word_table(&self) -> Markup {
        html! {
            h2 { "Words" }
            .wide-table tabindex="0" {
                table.sums {
                    thead {
                        tr {
                            th { "Word" } th title=(COUNT_MEANING) { "Entries" } th title="Sessions with at least one of these entries" { "Sessions" }
                            th title="The step with the most entries" { "Most" } th.minor title="Entries in the second half of the period, compared with the first half" { "2nd half against 1st" }
                        }
                    }
                    tbody { @for (at, word) in self.trends.words.iter().enumerate() { (self.word_row(at, word)) } }
                }
            }
        }
    }

    fn word_row(&self, at: usize, word: &WordTrend) -> Markup {
        html! {
            tr {
                td {
                    (chart::series_key(at)) a href=(self.search_address(word, None)) { (clean_text(&word.word)) }
                }
                @match &word.found {
                    Ok(found) => {
                        td title=(COUNT_MEANING) { (exact_count(found.entries)) }
                        td title="Sessions with at least one of these entries" { (exact_count(found.sessions)) }
                        td { (self.most_used(word)) }
                        td.minor { (self.change(word)) }
                    }
                    Err(error) => { td colspan="4" { (clean_text(error)) } }
                }
            }
        }
    }

    /// The step with the most entries.
    fn most_used(&self, word: &WordTrend) -> Markup {
        let most = word.steps.iter().rev().max_by_key(|(_, count)| **count);
        html! {
            @if let Some((first, count)) = most {
                span title={ (count_of(*count, "entry")) ", the most of any " (self.trends.step.name()) } {
                    (exact_count(*count)) ", " (lower_first(&self.trends.step.short_name(*first)))
                }
            }
        }
    }

    /// How the second half of the period compares with the first.
    fn change(&self, word: &WordTrend) -> Markup {
        let steps = &self.axis.steps;
        let sum = |steps: &[StepDays]| -> u64 {
            steps.iter().map(|step| self.trends.entries_at(word, step.first)).sum()
        };
        let half = steps.len() / 2;
        let (before, after) = (sum(&steps[..half]), sum(&steps[steps.len() - half..]));
        html! {
            @if half > 0 {
                span title={ (count_of(before, "entry")) " in the first half of the period, " (exact_count(after)) " in the second" } { (change_text(before, after)) }
            }
        }
    }

    /// All numbers, with the links of the bars.
    fn step_table(&self) -> Markup {
        let trends = self.trends;
        html! {
            details.section.step-table {
                summary { b { "All numbers" } span { "by " (trends.step.name()) ", each with the search that lists its entries" } }
                .wide-table tabindex="0" {
                    table.sums {
                        thead { tr { th { (step_tab(trends.step)) } @for word in &trends.words { th { (clean_text(&word.word)) } } } }
                        tbody {
                            @for step in self.axis.steps.iter().rev() {
                                tr {
                                    td { (trends.step.long_name(step.first)) }
                                    @for word in &trends.words { (self.step_cell(word, *step)) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }

    fn step_cell(&self, word: &WordTrend, step: StepDays) -> Markup {
        let count = self.trends.entries_at(word, step.first);
        html! {
            td title={ (count_of(count, "entry")) " with this word" } {
                @if count > 0 { a href=(self.search_address(word, Some(step))) { ((self.format())(self.trends.amount(word, step.first))) } } @else { "0" }
            }
        }
    }
}

fn step_tab(step: PeriodStep) -> &'static str {
    match step {
        PeriodStep::Day => "Day",
        PeriodStep::Week => "Week",
        PeriodStep::Month => "Month",
    }
}

/// `Week of` in the middle of a sentence. Names of days and months keep their capital letter.
fn lower_first(name: &str) -> String {
    name.strip_prefix("Week").map_or_else(|| name.to_owned(), |rest| format!("week{rest}"))
}

/// A change of a count: `26% more`, `half as often`.
fn change_text(before: u64, after: u64) -> String {
    match (before, after) {
        (0, 0) => "not used".to_owned(),
        (0, _) => "only in the 2nd".to_owned(),
        (_, 0) => "only in the 1st".to_owned(),
        (before, after) => match after as f64 / before as f64 {
            ratio if (ratio - 1.0).abs() < 0.005 => "as often".to_owned(),
            ratio if ratio < 0.005 => "over 99% less often".to_owned(),
            ratio if ratio < 1.0 => format!("{} less often", chart::share_text(1.0 - ratio)),
            ratio if ratio < 3.0 => format!("{} more often", chart::share_text(ratio - 1.0)),
            ratio => format!("{ratio:.1} times as often"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_a_share_of_the_first_half() {
        let all = [(0, 0), (0, 3), (3, 0), (10, 10), (10, 5), (10, 13), (10, 45), (1000, 1)];
        let shown = all.map(|(before, after)| change_text(before, after));
        let expected = [
            "not used",
            "only in the 2nd",
            "only in the 1st",
            "as often",
            "50% less often",
            "30% more often",
            "4.5 times as often",
            "over 99% less often",
        ];
        assert_eq!(shown, expected);
    }
}
