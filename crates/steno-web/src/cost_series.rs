//! Divides the cost of each day, week or month by project, model or agent, for a chart of stacked bars.

use std::collections::HashMap;

use jiff::tz::TimeZone;
use steno_store::amount::format_dollars;
use steno_store::cost::charge::{ChargeTable, UsageCharge};
use steno_store::cost::report::{GroupBy, ReportGroup};

use crate::addresses::distinct_name;

/// How many series have a colour of their own.
const MAX_SERIES: usize = 7;

/// The names of the series, and what each cost in each period.
#[derive(Default)]
pub(crate) struct CostSeries {
    pub(crate) names: Vec<String>,
    amounts: HashMap<String, Vec<f64>>,
}

/// What to divide.
pub(crate) struct SeriesRequest<'a> {
    pub(crate) charges: &'a ChargeTable,
    pub(crate) costs: &'a [Option<f64>],
    /// The charges to divide, by index.
    pub(crate) selected: &'a [usize],
    pub(crate) zone: &'a TimeZone,
}

impl CostSeries {
    /// Divides the costs of each period by project, model or agent: the dearest, and all others.
    pub(crate) fn new(request: &SeriesRequest<'_>, period: GroupBy, by: GroupBy) -> Self {
        let SeriesRequest { charges, costs, selected, zone } = *request;
        let rows = charges.report_rows(costs, selected, &ReportGroup { by, zone });
        let keys: Vec<Option<&str>> = rows.iter().map(|row| row.key.as_deref()).collect();
        let has_others = keys.len() > MAX_SERIES;
        let top = &keys[..keys.len().min(MAX_SERIES)];
        let known: Vec<&str> = keys.iter().flatten().copied().collect();
        let name = |key: &Option<&str>| {
            key.map_or_else(
                || format!("no {}", by.name()),
                |key| distinct_name(key, &known).to_owned(),
            )
        };
        let mut names: Vec<String> = top.iter().map(name).collect();
        names.extend(has_others.then(|| "others".to_owned()));
        let mut amounts: HashMap<String, Vec<f64>> = HashMap::new();
        for series in 0..names.len() {
            let is_part = |at: &&usize| {
                let key = charge_key(charges, &charges.charges[**at], by);
                top.iter().position(|one| *one == key).unwrap_or(MAX_SERIES) == series
            };
            let part: Vec<usize> = selected.iter().filter(is_part).copied().collect();
            for row in charges.report_rows(costs, &part, &ReportGroup { by: period, zone }) {
                let parts = amounts.entry(row.key.unwrap_or_default()).or_default();
                parts.resize(names.len(), 0.0);
                parts[series] = row.sum.cost().unwrap_or(0.0);
            }
        }
        Self { names, amounts }
    }

    /// The names of the series, each with what it cost in all periods.
    pub(crate) fn names_with_totals(&self) -> Vec<String> {
        let total = |at: usize| -> f64 { self.amounts.values().map(|parts| parts[at]).sum() };
        let name = |(at, name): (usize, &String)| format!("{name} {}", format_dollars(total(at)));
        self.names.iter().enumerate().map(name).collect()
    }

    /// What each series cost in a period.
    pub(crate) fn parts_of(&self, period: &str) -> Vec<f64> {
        self.amounts.get(period).cloned().unwrap_or_default()
    }
}

/// The project, model or agent of a charge.
fn charge_key<'a>(charges: &'a ChargeTable, charge: &UsageCharge, by: GroupBy) -> Option<&'a str> {
    match by {
        GroupBy::Model => {
            Some(charges.models[charge.model].as_str()).filter(|name| !name.is_empty())
        }
        GroupBy::Agent => Some(charges.accounts[charge.account].agent.as_str()),
        _ => charges.accounts[charge.account].project.as_deref(),
    }
}
