//! Sums by day, session and the like: as a table, as JSON, as a drawing.

use serde_json::{Map, Value};
use steno_core::cost::charge::Charges;
use steno_core::cost::report::{By, Group, Row, Sum};
use steno_core::view::answer::cost as answer;

use super::cost_table::CostTable;
use super::{Args, CostGrouping, PricedCharges, svg, write_svg};
use crate::error::CommandError;
use crate::process_environment::ProcessEnvironment;
use crate::ui::Ui;

/// Prints the sums.
pub(super) fn print_rows(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &Args,
    (accounts, by): (&PricedCharges, By),
) -> Result<(), CommandError> {
    let PricedCharges { charges, costs, filter } = accounts;
    let wanted: Vec<usize> = charges.select(filter).collect();
    let rows = charges.rows(costs, &wanted, &Group { by, zone: &env.zone });
    let total = charges.total(costs, &wanted);
    if let Some(path) = &args.svg {
        let bars: Vec<_> =
            rows.iter().map(|row| (row_label(charges, args.by, row, 8), row.sum.cost())).collect();
        write_svg(env, path, &svg::draw_cost_chart(args.by.noun(), &bars))?;
    }
    if args.json {
        for row in &rows {
            print_json(ui, answer::row_key(charges, by, row), (charges, &row.sum))?;
        }
        return print_json(ui, answer::total_key(), (charges, &total));
    }
    if rows.is_empty() {
        ui.status("nothing was billed");
        return Ok(());
    }
    // A person types the beginning of an id; a pipe gets all of it.
    let shown = if ui.is_terminal() { 8 } else { usize::MAX };
    let mut chart = CostTable::new(args.by.heading());
    rows.iter().for_each(|row| chart.add_row(row_label(charges, args.by, row, shown), &row.sum));
    chart.add_total(&total);
    print_chart(ui, &chart, (charges, &total))
}

/// Prints a table, and what has no price.
pub(super) fn print_chart(
    ui: &mut Ui,
    chart: &CostTable,
    (charges, total): (&Charges, &Sum),
) -> Result<(), CommandError> {
    let text = chart.render(ui.width(), ui.is_terminal());
    ui.listing_text(&text)?;
    if !total.unpriced.is_empty() {
        let models = answer::unpriced(charges, total).join(", ");
        ui.status(format_args!("no price is known of: {models} (`config.toml` can state one)"));
    }
    Ok(())
}

/// Prints a row of JSON: what its charges have in common, then what they add up to.
pub(super) fn print_json(
    ui: &mut Ui,
    key: Map<String, Value>,
    (charges, sum): (&Charges, &Sum),
) -> Result<(), CommandError> {
    serde_json::to_writer(ui.out(), &answer::sum(key, charges, sum))?;
    Ok(writeln!(ui.out())?)
}

/// What tells a row from the others, for people; of an id so many characters.
fn row_label(charges: &Charges, by: CostGrouping, row: &Row, shown: usize) -> String {
    let account = row.sum.sessions.iter().map(|at| &charges.accounts[*at]).next();
    match account.filter(|_| by == CostGrouping::Session) {
        Some(account) => {
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
            CostGrouping::Block => "BLOCK",
        }
    }
}
