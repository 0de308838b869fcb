//! The `[keep]` table of `config.toml`.

use steno_store::forget::RetentionRules;
use toml_edit::{Item, Table};

use super::Config;
use crate::error::CommandError;

/// Shown with errors of retention.
pub(crate) const RETENTION_EXAMPLE: &str = "0 days keep sessions forever:\n  [keep]\n  days = 365\n  \
     agents = { codex = 90 }\n  projects = { acme = 30 }";

impl Config {
    /// Returns how long sessions are kept; forever if nothing is set.
    pub(crate) fn retention(&self) -> Result<RetentionRules, CommandError> {
        let settings = self.parse_toml()?;
        self.parse_retention(&settings).map_err(|error| error.hint(RETENTION_EXAMPLE))
    }

    fn parse_retention(&self, settings: &Table) -> Result<RetentionRules, CommandError> {
        let mut rules = RetentionRules::default();
        for (name, item) in self.table_entries(settings, "keep")? {
            match name {
                "days" => rules.days = Some(self.parse_days(name, item)?),
                "agents" => rules.agents = self.parse_named_days(name, item)?,
                "projects" => rules.projects = self.parse_named_days(name, item)?,
                _ => {
                    let reason = format!("unknown setting {name}; one of: days, agents, projects");
                    return Err(self.error_at(item.span(), &reason));
                }
            }
        }
        Ok(rules)
    }

    fn parse_named_days(
        &self,
        name: &str,
        item: &Item,
    ) -> Result<Vec<(String, u32)>, CommandError> {
        let table = item.as_table_like();
        let table =
            table.ok_or_else(|| self.error_at(item.span(), &format!("{name} is not a table")))?;
        let days =
            |(name, item): (&str, &Item)| Ok((name.to_owned(), self.parse_days(name, item)?));
        table.iter().map(days).collect()
    }

    fn parse_days(&self, name: &str, item: &Item) -> Result<u32, CommandError> {
        let days = item.as_integer().and_then(|days| u32::try_from(days).ok());
        days.ok_or_else(|| self.error_at(item.span(), &format!("{name} is not a number of days")))
    }
}
