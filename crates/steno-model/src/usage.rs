//! Token usage of messages. [`crate::usage_tally`] sums it up.

use serde::{Deserialize, Serialize};

use crate::timestamp::Timestamp;

/// Billed tokens, with the same fields for all vendors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Usage {
    /// Prompt tokens not served from a cache.
    #[serde(default)]
    pub input: u64,
    /// Prompt tokens read from a cache.
    #[serde(default)]
    pub cache_read: u64,
    /// Prompt tokens written to a cache, for any duration.
    #[serde(default)]
    pub cache_write: u64,
    /// The part of `cache_write` cached for five minutes, if the vendor reports it.
    #[serde(default)]
    pub cache_write_5m: u64,
    /// The part of `cache_write` cached for an hour, if the vendor reports it.
    #[serde(default)]
    pub cache_write_1h: u64,
    /// Output tokens, including reasoning.
    #[serde(default)]
    pub output: u64,
    /// The part of `output` spent on reasoning.
    #[serde(default)]
    pub reasoning: u64,
}

impl Usage {
    /// Adds another message's tokens.
    pub fn add(&mut self, other: &Usage) {
        self.combine(other, u64::saturating_add);
    }

    /// Raises each field to the larger value, for messages with several records and growing counts.
    pub fn raise_to(&mut self, other: &Usage) {
        self.combine(other, u64::max);
    }

    /// Raises each field to the larger value, and returns the difference.
    pub(crate) fn raise_and_diff(&mut self, other: &Usage) -> Usage {
        let before = *self;
        self.raise_to(other);
        self.subtract(&before)
    }

    /// Subtracts `other`, saturating at zero.
    pub fn subtract(mut self, other: &Usage) -> Usage {
        self.combine(other, u64::saturating_sub);
        self
    }

    /// All fields, in order.
    pub fn numbers(&self) -> [u64; 7] {
        let Self { input, cache_read, cache_write, cache_write_5m, cache_write_1h, .. } = *self;
        [
            input,
            cache_read,
            cache_write,
            cache_write_5m,
            cache_write_1h,
            self.output,
            self.reasoning,
        ]
    }

    /// The inverse of [`Usage::numbers`].
    pub fn from_numbers(numbers: [u64; 7]) -> Self {
        let [input, cache_read, cache_write, cache_write_5m, cache_write_1h, output, reasoning] =
            numbers;
        Self { input, cache_read, cache_write, cache_write_5m, cache_write_1h, output, reasoning }
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

    /// All prompt tokens, cached or not.
    pub fn prompt_tokens(&self) -> u64 {
        self.input.saturating_add(self.cache_read).saturating_add(self.cache_write)
    }

    /// Whether all fields are zero.
    pub fn is_empty(&self) -> bool {
        *self == Usage::default()
    }
}

/// Minimum length of a globally unique message id.
pub(crate) const MIN_UNIQUE_LENGTH: usize = 16;

/// The key of a message across all sessions; `None` if another message may have the same id.
///
/// An API's own message id is the same in the agent's file and in recorded API traffic.
pub fn message_key(agent: &str, message: &str, at: Option<Timestamp>) -> Option<String> {
    if message.len() >= MIN_UNIQUE_LENGTH {
        return Some(message.to_owned());
    }
    at.map(|at| format!("{agent}\n{message}\n{at}"))
}
