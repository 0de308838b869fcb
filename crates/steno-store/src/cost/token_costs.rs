//! What each kind of token costs by list prices, and what the same prompts would cost without a cache.

use super::PriceTable;
use super::charge::{ChargeTable, CostMode};

/// Costs in dollars, calculated from tokens and prices. Charges of models without a price are left out.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TokenCosts {
    /// Prompt tokens that no cache had.
    pub input: f64,
    /// Prompt tokens read from a cache.
    pub cache_read: f64,
    /// Prompt tokens written to a cache.
    pub cache_write: f64,
    /// Tokens that the model wrote.
    pub output: f64,
    /// All prompt tokens at the price of uncached ones.
    pub prompt_without_cache: f64,
}

impl TokenCosts {
    /// How much less the prompts cost than without a cache; negative if writing to it cost more than it saved.
    pub fn saved_by_cache(&self) -> f64 {
        self.prompt_without_cache - self.input - self.cache_read - self.cache_write
    }
}

impl ChargeTable {
    /// The costs of these charges by kind of token.
    pub fn token_costs(&self, prices: &PriceTable, selected: &[usize]) -> TokenCosts {
        let sum_of = |keep: fn([i64; 7]) -> [i64; 7]| -> f64 {
            let charges = selected.iter().map(|at| self.charges[*at].clone());
            let charges = charges.map(|mut charge| {
                charge.tokens = keep(charge.tokens);
                charge
            });
            let mut part = Self::default();
            part.models.clone_from(&self.models);
            part.charges.extend(charges);
            part.charge_costs(prices, CostMode::Calculate).into_iter().flatten().sum()
        };
        TokenCosts {
            input: sum_of(|[input, ..]| [input, 0, 0, 0, 0, 0, 0]),
            cache_read: sum_of(|[_, read, ..]| [0, read, 0, 0, 0, 0, 0]),
            cache_write: sum_of(|[_, _, write, short, hour, ..]| [0, 0, write, short, hour, 0, 0]),
            output: sum_of(|[.., output, reasoning]| [0, 0, 0, 0, 0, output, reasoning]),
            prompt_without_cache: sum_of(|[input, read, write, ..]| {
                [input.saturating_add(read).saturating_add(write), 0, 0, 0, 0, 0, 0]
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::charge::{SessionAccount, SummedUsage};

    fn table() -> ChargeTable {
        let account = SessionAccount::default();
        let mut table = ChargeTable::default();
        table.accounts.push(account);
        let million = 1_000_000;
        let usage = |tokens| SummedUsage { band: 0, first: None, last: None, tokens };
        table.add_usage(0, "claude-sonnet-4-5", usage([million, 0, 0, 0, 0, 0, 0]));
        let cached = [0, 10 * million, million, million, 0, million, 0];
        table.add_usage(0, "claude-sonnet-4-5", usage(cached));
        table.add_usage(0, "no-such-model", usage([million, million, 0, 0, 0, 0, 0]));
        table
    }

    #[test]
    fn kinds_add_up_to_the_cost_and_a_cache_saves_the_rest() {
        let (table, prices) = (table(), PriceTable::bundled());
        let costs = table.token_costs(&prices, &[0, 1, 2]);
        let shown = [costs.input, costs.cache_read, costs.cache_write, costs.output];
        assert_eq!(shown.map(|cost| format!("{cost:.2}")), ["3.00", "3.00", "3.75", "15.00"]);
        let all: f64 = table.charge_costs(&prices, CostMode::Calculate).into_iter().flatten().sum();
        assert!((shown.iter().sum::<f64>() - all).abs() < 1e-9);
        assert!((costs.prompt_without_cache - 36.0).abs() < 1e-9, "{costs:?}");
        assert!((costs.saved_by_cache() - 26.25).abs() < 1e-9, "{costs:?}");
        assert_eq!(table.token_costs(&prices, &[]), TokenCosts::default());
    }
}
