//! The `[budget]` table of `config.toml`.

use steno_store::cost::budget::BudgetLimits;
use toml_edit::{Item, Table};

use super::Config;
use crate::error::CommandError;

/// Shown with errors of budgets.
pub(crate) const BUDGET_EXAMPLE: &str =
    "budgets are dollars:\n  [budget]\n  day = 20\n  month = 300\n  projects = { harbor = 50 }";

impl Config {
    /// Returns the budgets; empty if none is set.
    pub(crate) fn budgets(&self) -> Result<BudgetLimits, CommandError> {
        let settings = self.parse_toml()?;
        self.parse_budgets(&settings).map_err(|error| error.hint(BUDGET_EXAMPLE))
    }

    fn parse_budgets(&self, settings: &Table) -> Result<BudgetLimits, CommandError> {
        let mut limits = BudgetLimits::default();
        for (name, item) in self.table_entries(settings, "budget")? {
            match name {
                "day" => limits.day = Some(self.parse_dollars(name, item)?),
                "month" => limits.month = Some(self.parse_dollars(name, item)?),
                "projects" => limits.projects = self.parse_projects(item)?,
                _ => {
                    let reason = format!("unknown budget {name}; one of: day, month, projects");
                    return Err(self.error_at(item.span(), &reason));
                }
            }
        }
        Ok(limits)
    }

    fn parse_projects(&self, item: &Item) -> Result<Vec<(String, f64)>, CommandError> {
        let table = item.as_table_like();
        let table = table.ok_or_else(|| self.error_at(item.span(), "projects is not a table"))?;
        let limit =
            |(name, item): (&str, &Item)| Ok((name.to_owned(), self.parse_dollars(name, item)?));
        table.iter().map(limit).collect()
    }

    fn parse_dollars(&self, name: &str, item: &Item) -> Result<f64, CommandError> {
        let whole = item.as_integer().map(|number| number as f64);
        let dollars = item.as_float().or(whole).filter(|limit| limit.is_finite() && *limit >= 0.0);
        dollars.ok_or_else(|| {
            self.error_at(item.span(), &format!("{name} is not an amount in dollars"))
        })
    }
}
