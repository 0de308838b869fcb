//! Tokens: what a message was billed, and what messages add up to.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::entry::Entry;

/// Tokens billed, in one set of names for all vendors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// Prompt tokens that no cache served.
    #[serde(default)]
    pub input: u64,
    /// Prompt tokens read from a cache.
    #[serde(default)]
    pub cache_read: u64,
    /// Prompt tokens written to a cache, for however long.
    #[serde(default)]
    pub cache_write: u64,
    /// The part of `cache_write` that is kept for five minutes, where the vendor tells.
    #[serde(default)]
    pub cache_write_5m: u64,
    /// The part of `cache_write` that is kept for an hour, where the vendor tells.
    #[serde(default)]
    pub cache_write_1h: u64,
    /// Answer tokens, reasoning included.
    #[serde(default)]
    pub output: u64,
    /// The part of `output` that was reasoning.
    #[serde(default)]
    pub reasoning: u64,
}

impl Usage {
    /// Adds another message's tokens.
    pub fn add(&mut self, other: &Usage) {
        self.combine(other, u64::saturating_add);
    }

    /// Takes the larger number of each kind: a message whose lines repeat a growing count.
    pub fn max(&mut self, other: &Usage) {
        self.combine(other, u64::max);
    }

    /// What is left of it after `other`, which is no larger.
    pub(crate) fn minus(mut self, other: &Usage) -> Usage {
        self.combine(other, u64::saturating_sub);
        self
    }

    fn combine(&mut self, other: &Usage, how: impl Fn(u64, u64) -> u64) {
        for (mine, theirs) in [
            (&mut self.input, other.input),
            (&mut self.cache_read, other.cache_read),
            (&mut self.cache_write, other.cache_write),
            (&mut self.cache_write_5m, other.cache_write_5m),
            (&mut self.cache_write_1h, other.cache_write_1h),
            (&mut self.output, other.output),
            (&mut self.reasoning, other.reasoning),
        ] {
            *mine = how(*mine, theirs);
        }
    }

    /// All tokens of the prompt, cached or not.
    pub fn prompt(&self) -> u64 {
        self.input.saturating_add(self.cache_read).saturating_add(self.cache_write)
    }

    /// Whether nothing was billed.
    pub fn is_empty(&self) -> bool {
        *self == Usage::default()
    }
}

/// Adds up tokens, each API message once: what several records of a message repeat, or let grow, is not added.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tally {
    messages: HashMap<String, Usage>,
    total: Usage,
}

impl Tally {
    /// Counts one more entry.
    pub fn count(&mut self, entry: &Entry) {
        let Some(usage) = &entry.usage else { return };
        let Some(message) = &entry.message_id else { return self.total.add(usage) };
        let counted = self.messages.entry(message.clone()).or_default();
        let mut grown = *counted;
        grown.max(usage);
        self.total.add(&grown.minus(counted));
        *counted = grown;
    }

    /// All tokens so far.
    pub fn total(&self) -> Usage {
        self.total
    }
}
