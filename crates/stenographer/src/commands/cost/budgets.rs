//! Compares what was spent with the budgets in `config.toml`.

use serde_json::json;
use steno_model::moment::LocalNow;
use steno_store::amount::{format_dollars, round_for_json};
use steno_store::cost::budget::{BudgetUse, UnknownProject};

use super::CostReport;
use crate::config::BUDGET_EXAMPLE;
use crate::error::{CommandError, CommandExit};
use crate::ui::Ui;

/// Prints each budget and what was spent of it. Fails if one is crossed.
pub(super) fn check_budgets(
    ui: &mut Ui,
    report: &CostReport<'_>,
) -> Result<CommandExit, CommandError> {
    let all = budget_uses(report);
    if all.is_empty() {
        let error = CommandError::user("config.toml has no budgets");
        return Err(error.hint(BUDGET_EXAMPLE));
    }
    let accounts = &report.priced.charges.accounts;
    let folders: Vec<&str> = accounts.iter().filter_map(|one| one.project.as_deref()).collect();
    for unknown in report.budgets.unknown_projects(&folders) {
        ui.warning(describe_unknown_project(&unknown));
    }
    for one in &all {
        if report.args.json {
            let (limit, spent) = (round_for_json(one.limit), round_for_json(one.spent));
            let row = json!({"budget": one.name, "limit": limit, "spent": spent, "crossed": one.is_crossed()});
            writeln!(ui.out(), "{row}")?;
        } else {
            writeln!(ui.out(), "{}", describe_budget(one))?;
        }
    }
    let is_crossed = all.iter().any(BudgetUse::is_crossed);
    Ok(if is_crossed { CommandExit::Failed } else { CommandExit::Done })
}

/// Says that a budget is for a project without sessions.
pub(crate) fn describe_unknown_project(unknown: &UnknownProject<'_>) -> String {
    let UnknownProject { name, nearest } = unknown;
    format!("[budget] projects: no session has the project {name}; the nearest is {nearest}")
}

/// Warns of each budget that is crossed.
pub(super) fn report_crossed(ui: &mut Ui, report: &CostReport<'_>) {
    for one in budget_uses(report).iter().filter(|one| one.is_crossed()) {
        ui.warning(format_args!("over budget: {}", describe_budget(one)));
    }
}

fn budget_uses(report: &CostReport<'_>) -> Vec<BudgetUse> {
    let here = LocalNow { now: report.env.clock.now(), zone: &report.env.zone };
    report.budgets.check(&report.priced.charges, &report.priced.costs, &here)
}

fn describe_budget(one: &BudgetUse) -> String {
    let state = if one.is_crossed() { " (crossed)" } else { "" };
    format!("{}: {} of {}{state}", one.name, format_dollars(one.spent), format_dollars(one.limit))
}
