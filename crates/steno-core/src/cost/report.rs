//! Sums charges by day, session, model and other keys.

use std::collections::{BTreeSet, HashMap, HashSet};

use jiff::tz::TimeZone;

use super::charge::{Charge, Charges};
use crate::usage::Usage;

/// The key to group charges by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
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
}

impl By {
    /// The name of the key.
    pub fn name(self) -> &'static str {
        match self {
            By::Day => "day",
            By::Week => "week",
            By::Month => "month",
            By::Session => "session",
            By::Project => "project",
            By::Agent => "agent",
            By::Model => "model",
            By::Thread => "thread",
        }
    }
}

/// The sum of some charges.
#[derive(Clone, Debug, Default)]
pub struct Sum {
    tokens: [i64; 7],
    dollars: f64,
    priced: bool,
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
pub struct Row {
    /// The group's key; `None` if unknown.
    pub key: Option<String>,
    /// The group's sum.
    pub sum: Sum,
}

impl Sum {
    /// Adds a charge with this cost.
    pub fn add(&mut self, charge: &Charge, cost: Option<f64>) {
        for (sum, tokens) in self.tokens.iter_mut().zip(charge.tokens) {
            *sum = sum.saturating_add(tokens);
        }
        match cost {
            Some(cost) => {
                self.dollars += cost;
                self.priced |= charge.tokens != [0; 7] || cost > 0.0;
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
        (self.priced || self.unpriced.is_empty()).then_some(self.dollars)
    }
}

impl Charges {
    /// The sum of these charges.
    pub fn total(&self, costs: &[Option<f64>], selected: &[usize]) -> Sum {
        let mut sum = Sum::default();
        selected.iter().for_each(|at| sum.add(&self.all[*at], costs[*at]));
        sum
    }

    /// The sums of these charges by group: times in order, other keys by cost.
    pub fn rows(&self, costs: &[Option<f64>], selected: &[usize], group: &Group<'_>) -> Vec<Row> {
        let mut row_indexes: HashMap<Option<String>, usize> = HashMap::new();
        let mut rows: Vec<Row> = Vec::new();
        let mut days = HashMap::new();
        for at in selected {
            let charge = &self.all[*at];
            let key = self.key(charge, group, &mut days);
            let row = *row_indexes.entry(key).or_insert_with_key(|key| {
                rows.push(Row { key: key.clone(), sum: Sum::default() });
                rows.len() - 1
            });
            rows[row].sum.add(charge, costs[*at]);
        }
        let cost = |row: &Row| row.sum.cost().unwrap_or(0.0);
        match group.by {
            By::Day | By::Week | By::Month => rows.sort_by(|a, b| a.key.cmp(&b.key)),
            _ => rows.sort_by(|a, b| cost(b).total_cmp(&cost(a)).then_with(|| a.key.cmp(&b.key))),
        }
        rows
    }

    fn key(&self, charge: &Charge, group: &Group<'_>, days: &mut Days) -> Option<String> {
        let account = &self.accounts[charge.account];
        match group.by {
            By::Day | By::Week | By::Month => {
                let quarter = charge.first?.div_euclid(super::charge::QUARTER);
                days.entry(quarter).or_insert_with(|| group.date(charge.first)).clone()
            }
            // Two agents may use the same session id.
            By::Session => Some(format!("{}\n{}", account.agent, account.session)),
            By::Project => account.project.clone(),
            By::Agent => Some(account.agent.clone()),
            By::Model => Some(self.models[charge.model].clone()).filter(|name| !name.is_empty()),
            By::Thread => account.thread.clone(),
        }
    }
}

/// The date key of each quarter of an hour.
type Days = HashMap<i64, Option<String>>;

/// The key to group by, and the time zone of its days.
#[derive(Clone, Debug)]
pub struct Group<'a> {
    /// The key.
    pub by: By,
    /// The time zone for days, weeks and months.
    pub zone: &'a TimeZone,
}

impl Group<'_> {
    fn date(&self, at: Option<i64>) -> Option<String> {
        let date = self.zone.to_datetime(jiff::Timestamp::from_millisecond(at?).ok()?).date();
        Some(match self.by {
            By::Month => date.strftime("%Y-%m").to_string(),
            By::Week => {
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
    use crate::cost::Prices;
    use crate::cost::charge::{Account, Mode};

    fn charges(times: &[&str]) -> Charges {
        let mut charges = Charges::default();
        charges.accounts.push(Account::default());
        let model = charges.model("claude-opus-4-5");
        for time in times {
            let at = time.parse::<jiff::Timestamp>().unwrap().as_millisecond();
            let (first, last, tokens) = (Some(at), Some(at), [1, 0, 0, 0, 0, 0, 0]);
            charges.all.push(Charge { account: 0, model, band: 0, first, last, tokens });
        }
        charges
    }

    fn keys(charges: &Charges, by: By, zone: &str) -> Vec<(String, u64)> {
        let zone = TimeZone::get(zone).unwrap();
        let costs = charges.costs(&Prices::bundled(), Mode::Auto);
        let all: Vec<usize> = (0..charges.all.len()).collect();
        let rows = charges.rows(&costs, &all, &Group { by, zone: &zone });
        rows.iter().map(|row| (row.key.clone().unwrap(), row.sum.tokens().input)).collect()
    }

    #[test]
    fn a_day_is_the_day_of_its_zone() {
        let charges =
            charges(&["2026-01-04T18:29:59Z", "2026-01-04T18:30:00Z", "2026-02-01T00:00:00Z"]);
        let day = |key: &str, count| (key.to_owned(), count);
        assert_eq!(keys(&charges, By::Day, "UTC"), [day("2026-01-04", 2), day("2026-02-01", 1)]);
        let kolkata = [day("2026-01-04", 1), day("2026-01-05", 1), day("2026-02-01", 1)];
        assert_eq!(keys(&charges, By::Day, "Asia/Kolkata"), kolkata);
        let weeks = [day("2025-12-29", 2), day("2026-01-26", 1)];
        assert_eq!(keys(&charges, By::Week, "UTC"), weeks);
        let months = [day("2026-01", 3)];
        assert_eq!(keys(&charges, By::Month, "America/New_York"), months);
    }

    #[test]
    fn what_has_no_price_costs_an_unknown_sum() {
        let mut charges = charges(&["2026-01-04T18:00:00Z"]);
        charges.all[0].model = charges.model("x");
        let costs = charges.costs(&Prices::bundled(), Mode::Auto);
        let sum = charges.total(&costs, &[0]);
        assert_eq!((sum.cost(), sum.unpriced.len()), (None, 1));
        assert_eq!(charges.total(&costs, &[]).cost(), Some(0.0));
    }
}
