//! Prints costs by day, session or another key: as a table, as JSON or as an SVG chart.

use std::collections::HashSet;

use serde_json::{Map, Value};
use steno_store::cost::charge::ChargeTable;
use steno_store::cost::report::{ChargeSum, GroupBy, ReportGroup, ReportRow};
use steno_store::index::{Index, ListedSession, SessionFilter};
use steno_store::view::json_rows::cost as answer;

use super::cost_table::CostTable;
use super::{CostGrouping, CostReport, PricedCharges, svg, write_svg};
use crate::commands::list::MIN_ID_CHARS;
use crate::error::CommandError;
use crate::session_store::SessionStore;
use crate::ui::{Ui, count_noun};

/// Prints the costs.
pub(super) fn print_rows(
    ui: &mut Ui,
    report: &CostReport<'_>,
    by: GroupBy,
) -> Result<(), CommandError> {
    let CostReport { env, args, priced, .. } = *report;
    let PricedCharges { charges, costs, filter } = priced;
    let selected: Vec<usize> = charges.select_charges(filter).collect();
    let rows = charges.report_rows(costs, &selected, &ReportGroup { by, zone: &env.zone });
    let total = charges.sum_charges(costs, &selected);
    if let Some(path) = &args.svg {
        let bars: Vec<_> = rows
            .iter()
            .map(|row| (row_label(charges, args.by, row, &|_| 8), row.sum.cost()))
            .collect();
        write_svg(env, path, &svg::draw_cost_chart(args.by.noun(), &bars))?;
    }
    if args.json {
        for row in &rows {
            print_json(
                ui,
                answer::row_key(charges, by, row),
                PricedSum { charges, sum: &row.sum },
            )?;
        }
        return print_json(ui, answer::total_key(), PricedSum { charges, sum: &total });
    }
    if rows.is_empty() {
        return report.explain_nothing(ui);
    }
    // A terminal gets ids as short as they are unique, a pipe whole ids.
    let is_by_session = by == GroupBy::Session && !args.no_index;
    // A read-only store may have its index in the memory of the query only.
    let index = is_by_session.then(|| SessionStore::new(env).index().ok()).flatten();
    let is_terminal = ui.is_terminal();
    let id_length = |session: &str| match session.parse() {
        _ if !is_terminal => usize::MAX,
        Ok(id) => {
            let length = index.as_ref().and_then(|index| index.distinct_length(&id).ok());
            length.unwrap_or(MIN_ID_CHARS).max(MIN_ID_CHARS)
        }
        Err(_) => usize::MAX,
    };
    let mut table = CostTable::new(args.by.heading());
    for row in &rows {
        table.add_row(row_label(charges, args.by, row, &id_length), &row.sum);
    }
    table.add_total(&total);
    if let Some(index) = &index {
        report_sessions_without_row(ui, report, index, &rows)?;
    }
    print_table(ui, &table, PricedSum { charges, sum: &total })
}

/// Says how many sessions of `steno list` have no row, and why.
fn report_sessions_without_row(
    ui: &mut Ui,
    report: &CostReport<'_>,
    index: &Index,
    rows: &[ReportRow],
) -> Result<(), CommandError> {
    let filter = &report.priced.filter;
    let accounts = &report.priced.charges.accounts;
    let shown = rows.iter().flat_map(|row| &row.sum.sessions).map(|at| &accounts[*at]);
    let shown: HashSet<(&str, &str)> =
        shown.map(|account| (account.agent.as_str(), account.session.as_str())).collect();
    let store = SessionStore::new(report.env);
    let (mut listed, mut unstated, mut elsewhere) = (0, 0, 0);
    let sessions = SessionFilter { scope: filter.clone(), ..SessionFilter::default() };
    index.each_session(&sessions, None, &mut |ListedSession { session, problem }| {
        let entries = session.totals.entries;
        let is_hidden = problem.is_some() && entries == 0
            || store.vault.is_empty_recording(&session.agent, &session.id, entries);
        listed += u64::from(!is_hidden);
        if !is_hidden && !shown.contains(&(session.agent.as_str(), session.id.as_str())) {
            let has_usage = !session.totals.usage.is_empty();
            *(if has_usage { &mut elsewhere } else { &mut unstated }) += 1_u64;
        }
    })?;
    let all = count_noun(listed, "session");
    if unstated > 0 {
        ui.status(format_args!("{unstated} of {all} state no usage and have no row"));
    }
    if elsewhere > 0 {
        let is_part = filter.since.is_some() || filter.until.is_some() || filter.model.is_some();
        let outside = if is_part { ", or used none in this selection" } else { "" };
        ui.status(format_args!(
            "{elsewhere} of {all} have no row because their messages are counted in others{outside}"
        ));
    }
    Ok(())
}

/// A sum and the charges it is made of.
pub(super) struct PricedSum<'a> {
    pub(super) charges: &'a ChargeTable,
    pub(super) sum: &'a ChargeSum,
}

/// Prints the table, and the models without a price.
pub(super) fn print_table(
    ui: &mut Ui,
    table: &CostTable,
    total: PricedSum<'_>,
) -> Result<(), CommandError> {
    let text = table.render(ui.width(), ui.is_terminal());
    ui.listing_text(&text)?;
    let unpriced = total.sum.unpriced.iter().map(|model| total.charges.models[*model].as_str());
    let (unnamed, mut named): (Vec<&str>, Vec<&str>) = unpriced.partition(|name| name.is_empty());
    named.sort_unstable();
    if !named.is_empty() {
        ui.status(format_args!("no price for {}; set one in config.toml", named.join(", ")));
    }
    if !unnamed.is_empty() {
        ui.status("some messages name no model, so their cost is not known");
    }
    Ok(())
}

/// Prints one JSON row: the key of its charges, then their totals.
pub(super) fn print_json(
    ui: &mut Ui,
    key: Map<String, Value>,
    sum: PricedSum<'_>,
) -> Result<(), CommandError> {
    serde_json::to_writer(ui.out(), &answer::sum_object(key, sum.charges, sum.sum))?;
    Ok(writeln!(ui.out())?)
}

/// Returns the label of a row, with at most `id_length` characters of an id.
fn row_label(
    charges: &ChargeTable,
    by: CostGrouping,
    row: &ReportRow,
    id_length: &dyn Fn(&str) -> usize,
) -> String {
    let account = row.sum.sessions.iter().map(|at| &charges.accounts[*at]).next();
    match account.filter(|_| by == CostGrouping::Session) {
        Some(account) => {
            let shown = id_length(&account.session);
            let id: String = account.session.chars().take(shown).collect();
            let words = [Some(id.as_str()), account.title.as_deref()];
            words.into_iter().flatten().collect::<Vec<_>>().join(" ")
        }
        None => row.key.clone().unwrap_or_else(|| format!("no {}", by.noun())),
    }
}

impl CostGrouping {
    fn heading(self) -> &'static str {
        match self {
            CostGrouping::Day => "DAY",
            CostGrouping::Week => "WEEK",
            CostGrouping::Month => "MONTH",
            CostGrouping::Session => "SESSION",
            CostGrouping::Project => "PROJECT",
            CostGrouping::Agent => "AGENT",
            CostGrouping::Model => "MODEL",
            CostGrouping::Thread => "THREAD",
            CostGrouping::Person => "PERSON",
            CostGrouping::Block => "BLOCK",
        }
    }
}
