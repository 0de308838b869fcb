//! Tokens of a thread. Codex counts them up and repeats the count, so the last one is the total.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::record::decode;
use crate::entry::Usage;
use crate::sums::SumSet;

/// What was counted so far.
#[derive(Default)]
pub(super) struct Tokens {
    /// The last count.
    total: Usage,
    /// The count that another thread had reached when this one copied its history.
    copied: Usage,
    /// The sum over responses, for files without counts.
    responses: Usage,
    seen: SumSet,
    /// What entries have on them already.
    billed: Usage,
}

#[derive(Deserialize)]
struct TokenCount {
    #[serde(default)]
    info: Option<Info>,
}

#[derive(Deserialize)]
struct Info {
    #[serde(default)]
    total_token_usage: Option<Count>,
}

#[derive(Deserialize)]
struct ResponseUsage {
    #[serde(default)]
    response_id: Option<String>,
    usage: Count,
}

/// Cached input is part of input, reasoning part of output.
#[derive(Deserialize)]
struct Count {
    #[serde(default)]
    input_tokens: u64,
    #[serde(default)]
    cached_input_tokens: u64,
    #[serde(default)]
    cache_write_input_tokens: u64,
    #[serde(default)]
    output_tokens: u64,
    #[serde(default)]
    reasoning_output_tokens: u64,
}

impl Tokens {
    /// Takes a `token_count` event; `copied` if it may be another thread's.
    pub(super) fn count(&mut self, event: &RawValue, copied: bool) {
        let count = decode::<TokenCount>(event).and_then(|event| event.info);
        let Some(count) = count.and_then(|info| info.total_token_usage) else {
            return;
        };
        let usage = count.usage();
        if usage.is_empty() {
            return;
        }
        if copied {
            self.copied = usage;
        } else {
            self.total = usage;
        }
    }

    /// Takes a `token_usage_record`.
    pub(super) fn response(&mut self, record: &RawValue) {
        let Some(response) = decode::<ResponseUsage>(record) else {
            return;
        };
        if response.response_id.is_none_or(|id| self.seen.insert(&id)) {
            self.responses.add(&response.usage.usage());
        }
    }

    /// What no entry has on it yet.
    pub(super) fn owed(&self) -> Usage {
        self.total().minus(&self.billed)
    }

    /// Takes note of what an entry was given.
    pub(super) fn bill(&mut self, usage: &Usage) {
        self.billed.add(usage);
    }

    /// What this thread was billed.
    pub(super) fn total(&self) -> Usage {
        if self.total.is_empty() {
            return self.responses;
        }
        let (total, copied) = (&self.total, &self.copied);
        let goes_on = total.prompt() >= copied.prompt() && total.output >= copied.output;
        if !goes_on {
            return *total;
        }
        Usage {
            input: total.input.saturating_sub(copied.input),
            cache_read: total.cache_read.saturating_sub(copied.cache_read),
            cache_write: total.cache_write.saturating_sub(copied.cache_write),
            output: total.output - copied.output,
            reasoning: total.reasoning.saturating_sub(copied.reasoning),
            ..Usage::default()
        }
    }
}

impl Count {
    fn usage(&self) -> Usage {
        // Bounded so that sums of hostile numbers cannot overflow.
        let bounded = |count: u64| count.min(1 << 48);
        let (read, write) =
            (bounded(self.cached_input_tokens), bounded(self.cache_write_input_tokens));
        Usage {
            input: bounded(self.input_tokens).saturating_sub(read).saturating_sub(write),
            cache_read: read,
            cache_write: write,
            output: bounded(self.output_tokens),
            reasoning: bounded(self.reasoning_output_tokens),
            ..Usage::default()
        }
    }
}
