//! Sums by day, session and the like: as a table, as JSON, as a drawing.

use serde_json::{Map, Value, json};
use steno_core::cost::charge::Charges;
use steno_core::cost::report::{By, Group, Row, Sum};

use super::chart::Chart;
use super::{Accounts, Args, Grouping, svg, write_svg};
use crate::amount;
use crate::error::CommandError;
use crate::scene::Scene;
use crate::ui::Ui;

/// What stands for a model that no record names.
const NO_MODEL: &str = "unknown";

/// Prints the sums.
pub(super) fn print(
    ui: &mut Ui,
    scene: &Scene,
    args: &Args,
    (accounts, by): (&Accounts, By),
) -> Result<(), CommandError> {
    let Accounts { charges, costs, filter } = accounts;
    let wanted: Vec<usize> = charges.select(filter).collect();
    let rows = charges.rows(costs, &wanted, &Group { by, zone: &scene.zone });
    let total = charges.total(costs, &wanted);
    if let Some(path) = &args.svg {
        let bars: Vec<_> =
            rows.iter().map(|row| (label(charges, args.by, row, 8), row.sum.cost())).collect();
        write_svg(scene, path, &svg::draw(args.by.name(), &bars))?;
    }
    if args.json {
        for row in &rows {
            print_json(ui, key(charges, args.by, row), (charges, &row.sum))?;
        }
        return print_json(ui, total_key(), (charges, &total));
    }
    if rows.is_empty() {
        ui.status("nothing was billed");
        return Ok(());
    }
    // A person types the beginning of an id; a pipe gets all of it.
    let shown = if ui.is_terminal() { 8 } else { usize::MAX };
    let mut chart = Chart::new(args.by.heading());
    rows.iter().for_each(|row| chart.line(label(charges, args.by, row, shown), &row.sum));
    chart.total(&total);
    print_chart(ui, &chart, (charges, &total))
}

/// Prints a table, and what has no price.
pub(super) fn print_chart(
    ui: &mut Ui,
    chart: &Chart,
    (charges, total): (&Charges, &Sum),
) -> Result<(), CommandError> {
    let text = chart.render(ui.width(), ui.is_terminal());
    ui.transcript_text(&text)?;
    if !total.unpriced.is_empty() {
        let models = unpriced(charges, total).join(", ");
        ui.status(format_args!("no price is known of: {models} (`config.toml` can state one)"));
    }
    Ok(())
}

/// Prints a row of JSON: what its charges have in common, then what they add up to.
pub(super) fn print_json(
    ui: &mut Ui,
    mut row: Map<String, Value>,
    (charges, sum): (&Charges, &Sum),
) -> Result<(), CommandError> {
    row.insert("tokens".to_owned(), serde_json::to_value(sum.tokens())?);
    row.insert("cost".to_owned(), json!(sum.cost().map(amount::rounded)));
    row.insert("unpriced".to_owned(), json!(unpriced(charges, sum)));
    row.insert("sessions".to_owned(), json!(sum.sessions.len()));
    serde_json::to_writer(ui.out(), &row)?;
    Ok(writeln!(ui.out())?)
}

/// What marks the row of the total.
pub(super) fn total_key() -> Map<String, Value> {
    Map::from_iter([("total".to_owned(), Value::Bool(true))])
}

/// The models of a sum whose cost is not known.
pub(crate) fn unpriced<'a>(charges: &'a Charges, sum: &Sum) -> Vec<&'a str> {
    let name = |model: &usize| match charges.models[*model].as_str() {
        "" => NO_MODEL,
        name => name,
    };
    let mut names: Vec<_> = sum.unpriced.iter().map(name).collect();
    names.sort_unstable();
    names
}

/// What tells a row from the others, in JSON.
fn key(charges: &Charges, by: Grouping, row: &Row) -> Map<String, Value> {
    let mut fields = Map::new();
    if by != Grouping::Session {
        fields.insert(by.name().to_owned(), json!(row.key));
        return fields;
    }
    for account in row.sum.sessions.iter().map(|at| &charges.accounts[*at]) {
        fields.insert("session".to_owned(), json!(account.session));
        fields.insert("agent".to_owned(), json!(account.agent));
        fields.insert("project".to_owned(), json!(account.project));
        fields.insert("title".to_owned(), json!(account.title));
    }
    fields
}

/// What tells a row from the others, for people; of an id so many characters.
fn label(charges: &Charges, by: Grouping, row: &Row, shown: usize) -> String {
    let account = row.sum.sessions.iter().map(|at| &charges.accounts[*at]).next();
    match account.filter(|_| by == Grouping::Session) {
        Some(account) => {
            let id: String = account.session.chars().take(shown).collect();
            let words = [Some(id.as_str()), account.title.as_deref()];
            words.into_iter().flatten().collect::<Vec<_>>().join(" ")
        }
        None => row.key.clone().unwrap_or_else(|| format!("no {}", by.name())),
    }
}

impl Grouping {
    fn heading(self) -> &'static str {
        match self {
            Grouping::Day => "DAY",
            Grouping::Week => "WEEK",
            Grouping::Month => "MONTH",
            Grouping::Session => "SESSION",
            Grouping::Project => "PROJECT",
            Grouping::Agent => "AGENT",
            Grouping::Model => "MODEL",
            Grouping::Thread => "THREAD",
            Grouping::Block => "BLOCK",
        }
    }
}
