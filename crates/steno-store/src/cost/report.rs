//! Sums charges by day, session, model and other keys.

use std::collections::{BTreeSet, HashMap, HashSet};

use jiff::tz::TimeZone;

use super::PriceTable;
use super::charge::{ChargeTable, CostMode, UsageCharge};
use steno_model::usage::Usage;

/// The key to group charges by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupBy {
    /// The day of a message.
    Day,
    /// The week, named by its Monday.
    Week,
    /// The month.
    Month,
    /// The session.
    Session,
    /// The session's project folder.
    Project,
    /// The agent.
    Agent,
    /// The model.
    Model,
    /// The session's thread.
    Thread,
    /// The session's owner, in the record of a team.
    Person,
}

impl GroupBy {
    /// The name of the key.
    pub fn name(self) -> &'static str {
        match self {
            GroupBy::Day => "day",
            GroupBy::Week => "week",
            GroupBy::Month => "month",
            GroupBy::Session => "session",
            GroupBy::Project => "project",
            GroupBy::Agent => "agent",
            GroupBy::Model => "model",
            GroupBy::Thread => "thread",
            GroupBy::Person => "person",
        }
    }
}

/// The sum of some charges.
#[derive(Clone, Debug, Default)]
pub struct ChargeSum {
    tokens: [i64; 7],
    dollars: f64,
    has_priced: bool,
    /// Models without a known price.
    pub unpriced: BTreeSet<usize>,
    /// Indexes of the accounts.
    pub sessions: HashSet<usize>,
    /// Time of the first message, in milliseconds since 1970.
    pub first: Option<i64>,
    /// Time of the last message.
    pub last: Option<i64>,
}

/// One row of a report.
#[derive(Clone, Debug)]
pub struct ReportRow {
    /// The group's key; `None` if unknown.
    pub key: Option<String>,
    /// The group's sum.
    pub sum: ChargeSum,
}

impl ChargeSum {
    /// Adds a charge with this cost.
    pub fn add_charge(&mut self, charge: &UsageCharge, cost: Option<f64>) {
        for (sum, tokens) in self.tokens.iter_mut().zip(charge.tokens) {
            *sum = sum.saturating_add(tokens);
        }
        match cost {
            Some(cost) => {
                self.dollars += cost;
                self.has_priced |= charge.tokens != [0; 7] || cost > 0.0;
            }
            None => _ = self.unpriced.insert(charge.model),
        }
        self.sessions.insert(charge.account);
        self.first = [self.first, charge.first].into_iter().flatten().min();
        self.last = [self.last, charge.last].into_iter().flatten().max();
    }

    /// The tokens.
    pub fn tokens(&self) -> Usage {
        Usage::from_numbers(self.tokens.map(|number| u64::try_from(number).unwrap_or(0)))
    }

    /// The known part of the cost in dollars; `None` if all of it is unknown.
    pub fn cost(&self) -> Option<f64> {
        (self.has_priced || self.unpriced.is_empty()).then_some(self.dollars)
    }
}

impl ChargeTable {
    /// The cost of all charges; `None` if a price is not known, or if there are neither tokens nor a reported cost.
    pub fn total_cost(&self, prices: &PriceTable) -> Option<f64> {
        let costs = self.charge_costs(prices, CostMode::Auto);
        let sum = self.sum_charges(&costs, &Vec::from_iter(0..costs.len()));
        let is_reported = self.accounts.iter().any(|account| account.reported_cost.is_some());
        let is_known = sum.unpriced.is_empty() && (is_reported || !sum.tokens().is_empty());
        sum.cost().filter(|_| is_known)
    }

    /// The sum of these charges.
    pub fn sum_charges(&self, costs: &[Option<f64>], selected: &[usize]) -> ChargeSum {
        let mut sum = ChargeSum::default();
        selected.iter().for_each(|at| sum.add_charge(&self.charges[*at], costs[*at]));
        sum
    }

    /// The sums of these charges by group: times in order, other keys by cost.
    pub fn report_rows(
        &self,
        costs: &[Option<f64>],
        selected: &[usize],
        group: &ReportGroup<'_>,
    ) -> Vec<ReportRow> {
        let mut row_indexes: HashMap<Option<String>, usize> = HashMap::new();
        let mut rows: Vec<ReportRow> = Vec::new();
        let mut days = HashMap::new();
        for at in selected {
            let charge = &self.charges[*at];
            let key = self.group_key(charge, group, &mut days);
            let row = *row_indexes.entry(key).or_insert_with_key(|key| {
                rows.push(ReportRow { key: key.clone(), sum: ChargeSum::default() });
                rows.len() - 1
            });
            rows[row].sum.add_charge(charge, costs[*at]);
        }
        let cost = |row: &ReportRow| row.sum.cost().unwrap_or(0.0);
        match group.by {
            GroupBy::Day | GroupBy::Week | GroupBy::Month => rows.sort_by(|a, b| a.key.cmp(&b.key)),
            _ => rows.sort_by(|a, b| cost(b).total_cmp(&cost(a)).then_with(|| a.key.cmp(&b.key))),
        }
        rows
    }

    fn group_key(
        &self,
        charge: &UsageCharge,
        group: &ReportGroup<'_>,
        days: &mut QuarterDates,
    ) -> Option<String> {
        let account = &self.accounts[charge.account];
        match group.by {
            GroupBy::Day | GroupBy::Week | GroupBy::Month => {
                let quarter = charge.first?.div_euclid(super::charge::QUARTER_HOUR_MS);
                days.entry(quarter).or_insert_with(|| group.date_key(charge.first)).clone()
            }
            // Two agents may use the same session id.
            GroupBy::Session => Some(format!("{}\n{}", account.agent, account.session)),
            GroupBy::Project => account.project.clone(),
            GroupBy::Agent => Some(account.agent.clone()),
            GroupBy::Model => {
                Some(self.models[charge.model].clone()).filter(|name| !name.is_empty())
            }
            GroupBy::Thread => account.thread.clone(),
            GroupBy::Person => account.person.clone(),
        }
    }
}

/// The date key of each quarter of an hour.
type QuarterDates = HashMap<i64, Option<String>>;

/// The key to group by, and the time zone of its days.
#[derive(Clone, Debug)]
pub struct ReportGroup<'a> {
    /// The key.
    pub by: GroupBy,
    /// The time zone for days, weeks and months.
    pub zone: &'a TimeZone,
}

impl ReportGroup<'_> {
    fn date_key(&self, at: Option<i64>) -> Option<String> {
        let date = self.zone.to_datetime(jiff::Timestamp::from_millisecond(at?).ok()?).date();
        Some(match self.by {
            GroupBy::Month => date.strftime("%Y-%m").to_string(),
            GroupBy::Week => {
                let since_monday = date.weekday().to_monday_zero_offset();
                date.checked_sub(jiff::Span::new().days(since_monday)).ok()?.to_string()
            }
            _ => date.to_string(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::PriceTable;
    use crate::cost::charge::{CostMode, SessionAccount};

    fn charges(times: &[&str]) -> ChargeTable {
        let mut charges = ChargeTable::default();
        charges.accounts.push(SessionAccount::default());
        let model = charges.model_index("claude-opus-4-5");
        for time in times {
            let at = time.parse::<jiff::Timestamp>().unwrap().as_millisecond();
            let (first, last, tokens) = (Some(at), Some(at), [1, 0, 0, 0, 0, 0, 0]);
            charges.charges.push(UsageCharge { account: 0, model, band: 0, first, last, tokens });
        }
        charges
    }

    fn keys(charges: &ChargeTable, by: GroupBy, zone: &str) -> Vec<(String, u64)> {
        let zone = TimeZone::get(zone).unwrap();
        let costs = charges.charge_costs(&PriceTable::bundled(), CostMode::Auto);
        let all: Vec<usize> = (0..charges.charges.len()).collect();
        let rows = charges.report_rows(&costs, &all, &ReportGroup { by, zone: &zone });
        rows.iter().map(|row| (row.key.clone().unwrap(), row.sum.tokens().input)).collect()
    }

    #[test]
    fn a_day_is_the_day_of_its_zone() {
        let charges =
            charges(&["2026-01-04T18:29:59Z", "2026-01-04T18:30:00Z", "2026-02-01T00:00:00Z"]);
        let day = |key: &str, count| (key.to_owned(), count);
        assert_eq!(
            keys(&charges, GroupBy::Day, "UTC"),
            [day("2026-01-04", 2), day("2026-02-01", 1)]
        );
        let kolkata = [day("2026-01-04", 1), day("2026-01-05", 1), day("2026-02-01", 1)];
        assert_eq!(keys(&charges, GroupBy::Day, "Asia/Kolkata"), kolkata);
        let weeks = [day("2025-12-29", 2), day("2026-01-26", 1)];
        assert_eq!(keys(&charges, GroupBy::Week, "UTC"), weeks);
        let months = [day("2026-01", 3)];
        assert_eq!(keys(&charges, GroupBy::Month, "America/New_York"), months);
    }

    #[test]
    fn charges_without_a_price_have_an_unknown_cost() {
        let mut charges = charges(&["2026-01-04T18:00:00Z"]);
        charges.charges[0].model = charges.model_index("x");
        let costs = charges.charge_costs(&PriceTable::bundled(), CostMode::Auto);
        let sum = charges.sum_charges(&costs, &[0]);
        assert_eq!((sum.cost(), sum.unpriced.len()), (None, 1));
        assert_eq!(charges.sum_charges(&costs, &[]).cost(), Some(0.0));
    }
}
