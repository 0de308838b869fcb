//! The budgets of the cost page, and how much of each was spent.

use maud::{Markup, html};
use steno_store::amount::format_dollars;
use steno_store::cost::budget::BudgetLimits;

use crate::chart;
use crate::library::{CostAccounts, SessionLibrary};
use crate::render::plain::clean_text;
use crate::units::exact_count;
use crate::viewer::PageViewer;

/// The budgets and what was spent of them.
pub(crate) fn budget_list(
    library: &SessionLibrary,
    viewer: &PageViewer,
    accounts: &CostAccounts,
    budgets: &Result<BudgetLimits, String>,
) -> Markup {
    let limits = match budgets {
        Ok(limits) => limits,
        Err(reason) => {
            return html! { p.stale role="status" { "The budgets could not be read: " (clean_text(reason)) } };
        }
    };
    let here = viewer.local_now(&library.clock);
    let all = limits.check(&accounts.charges, &accounts.costs, &here);
    html! {
        @if !all.is_empty() {
            h2 { "Budgets " small { "of today and this month, whatever period is shown" } }
            ul.budgets aria-label="Budgets" {
                @for one in &all {
                    li.crossed[one.is_crossed()] title="What was spent of a budget in config.toml" {
                        b { (clean_text(budget_label(&one.name))) }
                        (chart::budget_bar(one.spent, one.limit))
                        span { (format_dollars(one.spent)) " of " (format_dollars(one.limit)) @if one.is_crossed() { ", " (times_crossed(one.spent, one.limit)) } }
                    }
                }
            }
        }
    }
}

/// How far a budget is crossed: `crossed` up to one and a half times, then `2.4 times` and `21 times`.
fn times_crossed(spent: f64, limit: f64) -> String {
    match spent / limit.max(1e-9) {
        ..1.5 => "crossed".to_owned(),
        times if times < 9.95 => format!("crossed {times:.1} times"),
        times => format!("crossed {} times", exact_count(times.round() as u64)),
    }
}

/// The name of a budget. Names of projects stay as they are.
fn budget_label(name: &str) -> &str {
    match name {
        "today" => "Today",
        "this month" => "This month",
        project => project,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_says_how_far_it_is_crossed() {
        let all = [6.0, 12.0, 105.0].map(|spent| times_crossed(spent, 5.0));
        assert_eq!(all, ["crossed", "crossed 2.4 times", "crossed 21 times"]);
    }
}
