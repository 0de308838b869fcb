//! What costs consist of: projects, models, agents, kinds of tokens, and the most expensive sessions.

use maud::{Markup, html};
use steno_store::amount::format_cost;
use steno_store::cost::report::{GroupBy, ReportRow};

use super::CostView;
use crate::addresses::distinct_name;
use crate::chart;
use crate::cost_tables::{SessionCost, session_table, token_cost_table};
use crate::library::CostAccounts;
use crate::render::plain::clean_text;
use crate::units::{COST_EXPLANATION, exact_count};

/// How many projects, models and agents are listed below a chart.
const MAX_BREAKDOWN_ROWS: usize = 6;

/// How many of the most expensive sessions are listed below a chart.
const MAX_TOP_SESSIONS: usize = 10;

/// All rows of a breakdown.
struct BreakdownTotals<'a> {
    cost: f64,
    keys: &'a [&'a str],
}

impl CostView<'_> {
    /// Which projects, models and agents cost the most, with links that filter by them, and what each kind of token cost.
    pub(super) fn breakdowns(&self, selected: &[usize]) -> Markup {
        let CostAccounts { charges, costs, .. } = self.accounts;
        let tokens = charges.sum_charges(costs, selected).tokens();
        let kinds = charges.token_costs(&self.library.prices, selected);
        let groups = [
            ("Projects", GroupBy::Project),
            ("Models", GroupBy::Model),
            ("Agents", GroupBy::Agent),
        ];
        let people = self.library.serves_team().then_some(("People", GroupBy::Person));
        html! {
            .breakdowns {
                @for (title, by) in groups.into_iter().chain(people) { (self.breakdown(title, by, selected)) }
                section { h2 { "Kinds of tokens" } (token_cost_table(&tokens, &kinds)) }
            }
        }
    }

    fn breakdown(&self, title: &str, by: GroupBy, selected: &[usize]) -> Markup {
        let rows = self.report_rows(by, selected);
        let cost: f64 = rows.iter().filter_map(|row| row.sum.cost()).sum();
        let keys: Vec<&str> = rows.iter().filter_map(|row| row.key.as_deref()).collect();
        html! {
            section {
                h2 { (title) }
                table.sums { tbody {
                    @for row in rows.iter().take(MAX_BREAKDOWN_ROWS) { (self.breakdown_row(by, row, &BreakdownTotals { cost, keys: &keys })) }
                } }
                @if rows.len() > MAX_BREAKDOWN_ROWS {
                    p.hint { a href=(self.filters.address_with("/cost", "by", by.name())) { "All " (exact_count(rows.len() as u64)) " " (title.to_lowercase()) } }
                }
            }
        }
    }

    /// The sessions that cost the most.
    pub(super) fn top_sessions(&self, selected: &[usize]) -> Markup {
        let rows = self.report_rows(GroupBy::Session, selected);
        html! {
            h2 { "Most expensive sessions" }
            (self.session_costs(&rows[..rows.len().min(MAX_TOP_SESSIONS)], selected))
            @if rows.len() > MAX_TOP_SESSIONS {
                p.hint { a href=(self.filters.address_with("/cost", "by", GroupBy::Session.name())) { "All " (exact_count(rows.len() as u64)) " sessions" } }
            }
        }
    }

    pub(super) fn session_costs(&self, rows: &[ReportRow], selected: &[usize]) -> Markup {
        let CostAccounts { charges, costs, .. } = self.accounts;
        let total = charges.sum_charges(costs, selected).cost().unwrap_or(0.0);
        let row = |row: &'_ ReportRow| row.sum.sessions.iter().next().copied();
        let shown: Vec<SessionCost<'_>> = rows
            .iter()
            .filter_map(|one| {
                Some(SessionCost { account: &charges.accounts[row(one)?], sum: &one.sum })
            })
            .collect();
        session_table(&shown, total, self.viewer)
    }

    fn breakdown_row(&self, by: GroupBy, row: &ReportRow, all: &BreakdownTotals<'_>) -> Markup {
        let share = row.sum.cost().unwrap_or(0.0) / all.cost.max(1e-9);
        html! {
            tr {
                td title=(clean_text(row.key.as_deref().unwrap_or_default())) {
                    @match row.key.as_deref().filter(|key| !key.is_empty()) {
                        Some(key) => a href=(self.filters.address_with("/cost", by.name(), key)) { (clean_text(distinct_name(key, all.keys))) },
                        None => { "no " (by.name()) },
                    }
                }
                td title=(COST_EXPLANATION) { (format_cost(&row.sum)) }
                td.percent title="Share of the total cost" { (chart::share_text(share)) }
                td.share { (chart::share_bar(share)) }
            }
        }
    }
}
