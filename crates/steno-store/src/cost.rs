//! Prices of models, and the cost of one API message.
//!
//! Prices are data: `cost/prices.jsonl`, in dollars per million tokens, each with source and date. The user's prices
//! override them. A model without a price has an unknown cost, never zero.

pub(crate) mod bill;
pub mod billing_block;
pub mod budget;
pub mod charge;
pub mod file_charges;
mod model_name;
pub mod report;
pub mod token_costs;

use std::collections::HashMap;

use serde::Deserialize;

use steno_model::usage::Usage;

const BUNDLED_PRICES: &str = include_str!("cost/prices.jsonl");

/// Prompt lengths above which some vendor charges more. Messages are summed per band.
pub const PROMPT_BANDS: [u64; 4] = [0, 100_000, 200_000, 272_000];

/// The index in [`PROMPT_BANDS`] for a prompt length.
pub(crate) fn prompt_band(prompt: u64) -> usize {
    PROMPT_BANDS.iter().rposition(|above| prompt > *above).unwrap_or(0)
}

/// Dollars per million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub struct TokenRates {
    /// Applies to requests with a longer prompt than this.
    #[serde(default)]
    pub above: u64,
    /// Uncached prompt tokens.
    pub input: f64,
    /// Output tokens.
    pub output: f64,
    /// Prompt tokens read from a cache; as `input` if missing.
    #[serde(default)]
    pub cache_read: Option<f64>,
    /// Prompt tokens written to a cache for five minutes; as `input` if missing.
    #[serde(default)]
    pub cache_write_5m: Option<f64>,
    /// Prompt tokens written to a cache for an hour; as `cache_write_5m` if missing.
    #[serde(default)]
    pub cache_write_1h: Option<f64>,
}

/// The price of one model.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct ModelPrice {
    /// The model's name, without a date.
    pub model: String,
    /// The rates; those for longer prompts come later.
    pub rates: Vec<TokenRates>,
    /// Where the price was found.
    #[serde(default)]
    pub source: String,
    /// When the price was found.
    #[serde(default)]
    pub date: String,
}

/// Prices by model.
#[derive(Clone, Debug, Default)]
pub struct PriceTable {
    models: HashMap<String, ModelPrice>,
    aliases: HashMap<String, String>,
}

impl PriceTable {
    /// The bundled prices.
    pub fn bundled() -> Self {
        let lines = BUNDLED_PRICES.lines().map(serde_json::from_str);
        Self::new(lines.map(|price| price.expect("our own table can be read")))
    }

    /// A table of these prices.
    pub fn new(prices: impl IntoIterator<Item = ModelPrice>) -> Self {
        let models = prices.into_iter().map(|price| (price.model.clone(), price)).collect();
        Self { models, aliases: HashMap::new() }
    }

    /// Adds prices. They replace existing ones.
    pub fn override_with(&mut self, prices: impl IntoIterator<Item = ModelPrice>) {
        self.models.extend(Self::new(prices).models);
    }

    /// Gives a model the price of another.
    pub fn add_alias(&mut self, model: impl Into<String>, like: impl Into<String>) {
        self.aliases.insert(model.into(), like.into());
    }

    /// The price of a model in any spelling: with a date, a provider or a release, with dots or dashes in the version,
    /// and with the version before or after the family (`claude-4.5-sonnet`).
    ///
    /// Only parts that do not affect the price are stripped from a name. A model with a merely similar name may have
    /// another price.
    pub fn find_price(&self, model: &str) -> Option<&ModelPrice> {
        let model = self.aliases.get(model).map_or(model, String::as_str);
        let spellings = model_name::name_spellings(model);
        spellings.iter().find_map(|name| self.models.get(name))
    }
}

impl ModelPrice {
    /// The cost of one API message in dollars. A long prompt raises the price of the whole message.
    pub fn message_cost(&self, usage: &Usage) -> Option<f64> {
        self.cost_at_prompt(usage.prompt_tokens(), usage.numbers().map(|number| number as f64))
    }

    /// The cost of messages with prompts in one of [`PROMPT_BANDS`].
    pub(crate) fn band_cost(&self, band: usize, tokens: [i64; 7]) -> Option<f64> {
        let above = PROMPT_BANDS.get(band).copied().unwrap_or(u64::MAX - 1);
        self.cost_at_prompt(above + 1, tokens.map(|number| number as f64))
    }

    fn cost_at_prompt(&self, prompt: u64, tokens: [f64; 7]) -> Option<f64> {
        let is_long = |rates: &&TokenRates| rates.above > 0 && prompt > rates.above;
        let rates = self.rates.iter().rfind(is_long).or(self.rates.first())?;
        let [input, cache_read, cache_write, _, hour, output, _] = tokens;
        let short_write = rates.cache_write_5m.unwrap_or(rates.input);
        let long_write = rates.cache_write_1h.unwrap_or(short_write);
        let hour = hour.min(cache_write.max(0.0));
        let parts = [
            (input, rates.input),
            (cache_read, rates.cache_read.unwrap_or(rates.input)),
            (cache_write - hour, short_write),
            (hour, long_write),
            (output, rates.output),
        ];
        Some(parts.iter().map(|(tokens, rate)| tokens * rate).sum::<f64>() / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn price(model: &str) -> Option<ModelPrice> {
        PriceTable::bundled().find_price(model).cloned()
    }

    #[test]
    fn finds_model_names_with_prefix_and_suffix() {
        let plain = price("claude-sonnet-4-5").unwrap();
        for name in [
            "claude-sonnet-4-5-20250929",
            "anthropic/claude-sonnet-4-5",
            "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
            "claude-sonnet-4-5@20250929",
            "claude-sonnet-4-5-20250929[1m]",
            "claude-sonnet-4.5",
            "copilot/claude-sonnet-4.5",
            "openrouter/anthropic/claude-sonnet-4.5",
            "anthropic:claude-sonnet-4-5",
            "global.anthropic.claude-sonnet-4-5-20250929-v1:0",
            "vertex_ai/claude-sonnet-4-5@20250929",
            "claude-4.5-sonnet",
            "Claude-Sonnet-4.5",
        ] {
            assert_eq!(price(name).unwrap(), plain, "{name}");
        }
        assert_eq!(price("gpt-5-2025-08-07"), price("gpt-5"));
        assert_eq!(price("models/gemini-2.5-pro"), price("gemini-2.5-pro"));
        assert_eq!(price("deepseek-v4-pro").unwrap().model, "deepseek-v4-pro");
        assert_eq!(price("claude-opus-4.8").unwrap().model, "claude-opus-4-8");
        assert_eq!(price("claude-3.5-sonnet").unwrap().model, "claude-3-5-sonnet");
        assert_eq!(price("claude-3-7-sonnet-latest").unwrap().model, "claude-3-7-sonnet");
        assert_eq!(price("gpt-5@2025-08-07"), price("gpt-5"));
        assert_eq!(price("gpt-4-1").unwrap().model, "gpt-4.1");
        assert_eq!(price("moonshotai.kimi-k2.5").unwrap().model, "kimi-k2.5");
        assert_eq!(price("zai/glm-4.6").unwrap().model, "glm-4.6");
    }

    #[test]
    fn unknown_models_have_no_price() {
        for name in [
            "",
            "claude",
            "claude-sonnet-4-5-turbo",
            "gpt-5-2025",
            "é-20250101",
            "claude-opus-4.9",
            "anthropic/claude-sonnet-4.5:free",
            "claude-5.4-sonnet",
            "anthropic.",
            "gpt-4.5",
        ] {
            assert_eq!(price(name), None, "{name}");
        }
    }

    #[test]
    fn every_kind_of_token_has_its_rate() {
        let opus = price("claude-opus-4-5").unwrap();
        let million = 1_000_000;
        let usage = Usage {
            input: 100_000,
            cache_read: million,
            cache_write: 300_000,
            cache_write_5m: 200_000,
            cache_write_1h: 100_000,
            output: 10_000,
            reasoning: 9_000,
        };
        let due = 0.5 + 0.5 + 0.2 * 6.25 + 0.1 * 10.0 + 0.25;
        let cost = opus.message_cost(&usage).unwrap();
        assert!((cost - due).abs() < 1e-9, "{cost}");
    }

    #[test]
    fn a_long_prompt_costs_more_as_a_whole() {
        let pro = price("gemini-2.5-pro").unwrap();
        let asked =
            |input, cache_read| Usage { input, cache_read, output: 1000, ..Usage::default() };
        assert!((pro.message_cost(&asked(200_000, 0)).unwrap() - (0.25 + 0.01)).abs() < 1e-9);
        assert!(
            (pro.message_cost(&asked(100_000, 100_001)).unwrap() - (0.25 + 0.025_000_25 + 0.015))
                .abs()
                < 1e-9
        );
    }

    #[test]
    fn messages_are_added_up_between_all_lengths_that_matter() {
        let known = PriceTable::bundled();
        let lengths = known.models.values().flat_map(|price| &price.rates).map(|rates| rates.above);
        for above in lengths {
            assert!(PROMPT_BANDS.contains(&above), "{above}");
        }
        let haiku = price("claude-haiku-5-5").unwrap();
        let usage = Usage { input: 100_001, ..Usage::default() };
        let sum = haiku.band_cost(prompt_band(usage.prompt_tokens()), [100_001, 0, 0, 0, 0, 0, 0]);
        assert_eq!(sum, haiku.message_cost(&usage));
        assert_eq!(
            (prompt_band(0), prompt_band(100_000), prompt_band(100_001), prompt_band(999_999)),
            (0, 0, 1, 3)
        );
    }

    #[test]
    fn a_model_can_have_the_price_of_another() {
        let mut prices = PriceTable::bundled();
        prices.add_alias("our-proxy", "claude-opus-4-5");
        assert_eq!(prices.find_price("our-proxy"), prices.find_price("claude-opus-4-5-20251101"));
    }

    #[test]
    fn prices_of_the_user_come_first() {
        let own = r#"{"model":"claude-opus-4-5","rates":[{"input":1,"output":2}]}"#;
        let mut prices = PriceTable::bundled();
        prices.override_with([serde_json::from_str(own).unwrap()]);
        let usage = Usage { input: 1_000_000, output: 1_000_000, ..Usage::default() };
        assert!(
            (prices.find_price("claude-opus-4-5").unwrap().message_cost(&usage).unwrap() - 3.0)
                .abs()
                < 1e-9
        );
    }
}
