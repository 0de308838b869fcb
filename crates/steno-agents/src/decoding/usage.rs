//! Converts token counts of each API to [`Usage`].

use crate::decoding::json_fields::count_field;
use steno_model::entry::Usage;
use steno_model::json::{Object, Value};

/// Usage of Anthropic Messages: cached tokens are not part of the input.
///
/// The cost of a compaction is only in its iteration, and is added.
pub(crate) fn anthropic_usage(usage: &Object) -> Usage {
    let mut total = anthropic_counts(usage);
    if let Some(Value::Array(iterations)) = usage.get("iterations") {
        let objects = iterations.iter().filter_map(Value::as_object);
        for iteration in objects {
            if iteration.get("type").and_then(Value::as_str) == Some("compaction") {
                total.add(&anthropic_counts(iteration));
            }
        }
    }
    total
}

fn anthropic_counts(usage: &Object) -> Usage {
    let kept = usage.get("cache_creation").and_then(Value::as_object);
    let kept = |name| kept.map(|kept| count_field(kept, name)).unwrap_or_default();
    let (short, long) = (kept("ephemeral_5m_input_tokens"), kept("ephemeral_1h_input_tokens"));
    Usage {
        input: count_field(usage, "input_tokens"),
        cache_read: count_field(usage, "cache_read_input_tokens"),
        cache_write: count_field(usage, "cache_creation_input_tokens").max(short + long),
        cache_write_5m: short,
        cache_write_1h: long,
        output: count_field(usage, "output_tokens"),
        reasoning: 0,
    }
}

/// Usage of OpenAI's APIs: cached tokens are part of the input, reasoning is part of the output.
pub(crate) fn openai_usage(usage: &Object) -> Usage {
    let either = |first, second| count_field(usage, first).max(count_field(usage, second));
    let detail = |names: [&str; 2], name| {
        let details = names.iter().filter_map(|names| usage.get(*names)?.as_object());
        details.map(|details| count_field(details, name)).max().unwrap_or_default()
    };
    let cache_read = detail(["prompt_tokens_details", "input_tokens_details"], "cached_tokens");
    // A field of OpenRouter, for models with paid cache writes.
    let cache_write =
        detail(["prompt_tokens_details", "input_tokens_details"], "cache_write_tokens");
    let output_details = ["completion_tokens_details", "output_tokens_details"];
    Usage {
        input: either("prompt_tokens", "input_tokens").saturating_sub(cache_read + cache_write),
        cache_read,
        cache_write,
        output: either("completion_tokens", "output_tokens"),
        reasoning: detail(output_details, "reasoning_tokens"),
        ..Usage::default()
    }
}

/// Usage of Gemini's API: cached tokens are part of the prompt, thoughts are not part of the candidates.
pub(crate) fn gemini_usage(usage: &Object) -> Usage {
    let prompt =
        count_field(usage, "promptTokenCount") + count_field(usage, "toolUsePromptTokenCount");
    let cache_read = count_field(usage, "cachedContentTokenCount");
    let reasoning = count_field(usage, "thoughtsTokenCount");
    Usage {
        input: prompt.saturating_sub(cache_read),
        cache_read,
        output: count_field(usage, "candidatesTokenCount") + reasoning,
        reasoning,
        ..Usage::default()
    }
}

/// Usage as Cline and Copilot state it: input includes cache reads and writes.
pub(crate) fn inclusive_usage(usage: &Object) -> Usage {
    let (cache_read, cache_write) =
        (count_field(usage, "cacheReadTokens"), count_field(usage, "cacheWriteTokens"));
    Usage {
        input: count_field(usage, "inputTokens")
            .saturating_sub(cache_read)
            .saturating_sub(cache_write),
        cache_read,
        cache_write,
        output: count_field(usage, "outputTokens"),
        reasoning: count_field(usage, "reasoningTokens"),
        ..Usage::default()
    }
}
