//! The figures above the chart of costs: the total, what it was before, and tokens.

use jiff::ToSpan;
use maud::{Markup, html};
use steno_store::amount::{format_count, format_dollars};
use steno_store::cost::charge::ChargeTable;
use steno_store::cost::report::{ChargeSum, GroupBy};

use super::CostView;
use crate::chart;
use crate::cost_tables::{
    CACHE_READ_MEANING, CACHE_WRITE_MEANING, INPUT_MEANING, OUTPUT_MEANING, cached_share, short_day,
};
use crate::date_range::period_days;
use crate::filter_query::FilterQuery;
use crate::render::plain::clean_text;
use crate::units::{COST_EXPLANATION, count_of, exact_count};

impl CostView<'_> {
    /// The total and its parts.
    pub(super) fn total_figures(&self, total: &ChargeSum, selected: &[usize]) -> Markup {
        let tokens = total.tokens();
        let missing = UnpricedModels::of(&self.accounts.charges, total);
        let days = self.report_rows(GroupBy::Day, selected);
        let costs = days.iter().filter_map(|day| Some((day.sum.cost()?, day.key.as_deref()?)));
        let most = costs.max_by(|a, b| a.0.total_cmp(&b.0));
        let average =
            total.cost().filter(|_| !days.is_empty()).map(|cost| cost / days.len() as f64);
        html! {
            ul.figures {
                li title=(COST_EXPLANATION) { (total_cost(total, &missing)) (self.change(total)) }
                @if let Some(average) = average { li title="Total cost divided by the days on which models were used" { b { (format_dollars(average)) } small { "per active day" } } }
                @if let Some((cost, day)) = most { li title="The day that cost the most" { b { (format_dollars(cost)) } small { "most on a day, " (short_day(day)) } } }
                li title={ (count_of(tokens.input, "token")) ". " (INPUT_MEANING) } { b { (format_count(tokens.input)) } small { "tokens in, not cached" } }
                li title={ (count_of(tokens.cache_read, "token")) ". " (CACHE_READ_MEANING) } { b { (format_count(tokens.cache_read)) } small { "cache reads, in tokens" @if let Some(share) = cached_share(&tokens) { ", " (share) " of what was read" } } }
                li title={ (count_of(tokens.cache_write, "token")) ". " (CACHE_WRITE_MEANING) } { b { (format_count(tokens.cache_write)) } small { "cache writes, in tokens" } }
                li title={ (count_of(tokens.output, "token")) ". " (OUTPUT_MEANING) } { b { (format_count(tokens.output)) } small { "tokens out" } }
                li title="Sessions that used tokens" { b { (exact_count(total.sessions.len() as u64)) } small { "sessions with tokens" } }
            }
            @if !missing.named.is_empty() {
                p { small { "No price for " (clean_text(&missing.named.join(", "))) "; set one in " code { "config.toml" } "." } }
            }
            @if missing.has_unnamed {
                p { small { "Some messages name no model, so their cost is not known." } }
            }
        }
    }

    /// How much more or less was spent than in as many days before.
    fn change(&self, total: &ChargeSum) -> Markup {
        let compare = || -> Option<(f64, f64, i32)> {
            let Self { library, viewer, accounts, filters, .. } = *self;
            let today = viewer.today(&library.clock);
            let (first, last) = period_days(&accounts.filter, &viewer.zone, today)?;
            let days = (last - first).get_days() + 1;
            let since = first.checked_sub(days.days()).ok()?.to_string();
            let until = first.yesterday().ok()?.to_string();
            let before = FilterQuery { since, until, ..filters.clone() };
            let before =
                library.cost_accounts(before.to_filter(library, &viewer.zone).ok()?).ok()?;
            let selected: Vec<usize> = before.charges.select_charges(&before.filter).collect();
            let cost = before.charges.sum_charges(&before.costs, &selected).cost()?;
            Some((total.cost()?, cost, days))
        };
        html! {
            @if let Some((now, before, days)) = compare() && let Some(change) = change_text(now, before) {
                small.change title={ (format_dollars(before)) " in the " (count_of(u64::from(days.unsigned_abs()), "day")) " before" } { (change) }
            }
        }
    }
}

/// The models without a price.
struct UnpricedModels<'a> {
    /// In order of their names.
    named: Vec<&'a str>,
    /// Whether some messages name no model.
    has_unnamed: bool,
}

impl<'a> UnpricedModels<'a> {
    fn of(charges: &'a ChargeTable, sum: &ChargeSum) -> Self {
        let names = sum.unpriced.iter().map(|model| charges.models[*model].as_str());
        let (unnamed, mut named): (Vec<_>, Vec<_>) = names.partition(|name| name.is_empty());
        named.sort_unstable();
        Self { named, has_unnamed: !unnamed.is_empty() }
    }

    /// Which part of a cost is unknown: `2 models have no price`.
    fn describe(&self) -> String {
        match self.named.len() {
            0 => "some messages name no model".to_owned(),
            1 => "1 model has no price".to_owned(),
            count => format!("{} have no price", count_of(count as u64, "model")),
        }
    }
}

/// The known part of the total cost, and how many models have no price.
fn total_cost(total: &ChargeSum, unpriced: &UnpricedModels<'_>) -> Markup {
    let priceless = unpriced.describe();
    html! {
        @match total.cost() {
            Some(cost) if !total.unpriced.is_empty() => { b { (format_dollars(cost)) } small { "at least; " (priceless) } },
            Some(cost) => { b { (format_dollars(cost)) } small { "total cost" } },
            None => { b { "unknown" } small { "total cost; " (priceless) } },
        }
    }
}

/// A change of a cost: `26% more than before`; `None` if there was nothing before.
fn change_text(now: f64, before: f64) -> Option<String> {
    if before < 0.005 {
        return None;
    }
    let change = now / before - 1.0;
    Some(match change {
        change if change.abs() < 0.005 => "as much as before".to_owned(),
        change if change < 0.0 => format!("{} less than before", chart::share_text(-change)),
        change if change < 2.0 => format!("{} more than before", chart::share_text(change)),
        change => format!("{:.1} times as much as before", change + 1.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_a_share_of_what_was_before() {
        let shown = [(12.6, 10.0), (7.0, 10.0), (10.0, 10.0), (40.0, 10.0), (4.0, 0.0)];
        let shown = shown.map(|(now, before)| change_text(now, before));
        let all = [
            Some("26% more than before"),
            Some("30% less than before"),
            Some("as much as before"),
            Some("4.0 times as much as before"),
            None,
        ];
        assert_eq!(shown, all.map(|text| text.map(str::to_owned)));
    }
}
