//! Tokens: what a message was billed, and what messages add up to.

mod tally;

use serde::{Deserialize, Serialize};

pub use self::tally::{Ledger, Tally};
use crate::timestamp::Timestamp;

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

    /// Takes the larger number of each kind, and tells what that added.
    fn grow(&mut self, other: &Usage) -> Usage {
        let before = *self;
        self.max(other);
        self.minus(&before)
    }

    /// What is left of it after `other`, which is no larger.
    pub fn minus(mut self, other: &Usage) -> Usage {
        self.combine(other, u64::saturating_sub);
        self
    }

    /// All numbers, in the order of the fields.
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

    /// The tokens whose [`Usage::numbers`] these are.
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

    /// All tokens of the prompt, cached or not.
    pub fn prompt(&self) -> u64 {
        self.input.saturating_add(self.cache_read).saturating_add(self.cache_write)
    }

    /// Whether nothing was billed.
    pub fn is_empty(&self) -> bool {
        *self == Usage::default()
    }
}

/// The length from which an id is long enough to be one of its kind in the world.
const UNIQUE: usize = 16;

/// What names a message in all sources; nothing where another message may have the same name.
///
/// An API's own id is the same whoever tells of it: the agent's file and the gateway through which the agent asked.
pub fn key(agent: &str, message: &str, at: Option<Timestamp>) -> Option<String> {
    if message.len() >= UNIQUE {
        return Some(message.to_owned());
    }
    at.map(|at| format!("{agent}\n{message}\n{at}"))
}
