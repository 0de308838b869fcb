//! Counts the tokens of a thread. Codex writes running totals and repeats them, so the last one is the total.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::record::decode_raw;
use steno_model::entry::Usage;
use steno_model::name_hash::CompactNameSet;

/// The token counts of a thread so far.
#[derive(Default)]
pub(super) struct CodexTokenCounter {
    /// The last running total.
    total: Usage,
    /// The running total of the parent thread when this thread copied its history.
    copied: Usage,
    /// The sum over responses, for rollouts without running totals.
    responses: Usage,
    seen: CompactNameSet,
    /// The usage of entries so far.
    billed: Usage,
}

#[derive(Deserialize)]
struct CodexTokenCountEvent {
    #[serde(default)]
    info: Option<CodexTokenInfo>,
}

#[derive(Deserialize)]
struct CodexTokenInfo {
    #[serde(default)]
    total_token_usage: Option<CodexTokenCount>,
}

#[derive(Deserialize)]
struct CodexResponseUsage {
    #[serde(default)]
    response_id: Option<String>,
    usage: CodexTokenCount,
}

/// Cached input is part of input, reasoning part of output.
#[derive(Deserialize)]
struct CodexTokenCount {
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

impl CodexTokenCounter {
    /// Applies a `token_count` event. `is_copied` if it may be another thread's.
    pub(super) fn set_count(&mut self, event: &RawValue, is_copied: bool) {
        let count = decode_raw::<CodexTokenCountEvent>(event).and_then(|event| event.info);
        let Some(count) = count.and_then(|info| info.total_token_usage) else {
            return;
        };
        let usage = count.to_usage();
        if usage.is_empty() {
            return;
        }
        if is_copied {
            self.copied = usage;
        } else {
            self.total = usage;
        }
    }

    /// Adds a `token_usage_record`. Each response counts once.
    pub(super) fn add_response(&mut self, record: &RawValue) {
        let Some(response) = decode_raw::<CodexResponseUsage>(record) else {
            return;
        };
        if response.response_id.is_none_or(|id| self.seen.insert(&id)) {
            self.responses.add(&response.usage.to_usage());
        }
    }

    /// Usage without an entry so far.
    pub(super) fn unassigned_usage(&self) -> Usage {
        self.total().subtract(&self.billed)
    }

    /// Notes that an entry has this usage.
    pub(super) fn mark_assigned(&mut self, usage: &Usage) {
        self.billed.add(usage);
    }

    /// The usage of this thread, without that of the thread it copied.
    pub(super) fn total(&self) -> Usage {
        if self.total.is_empty() {
            return self.responses;
        }
        let (total, copied) = (&self.total, &self.copied);
        let includes_copied =
            total.prompt_tokens() >= copied.prompt_tokens() && total.output >= copied.output;
        if !includes_copied {
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

impl CodexTokenCount {
    fn to_usage(&self) -> Usage {
        // Bounded, so that sums of hostile counts cannot overflow.
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
