//! Parses the usage of a message, in Anthropic's field names.

use serde::Deserialize;

use steno_model::entry::Usage;
use steno_model::json::scanner::{self, RawJson};

/// Parses the usage of a message. Malformed usage counts as zero.
///
/// Some versions write only the parts of the cache writes, and no total.
pub(super) fn parse_usage(raw: RawJson<'_>) -> Usage {
    let skimmed = scanner::parse_first_object(raw.0, usize::MAX).map(|(fields, _)| fields);
    let fields: ClaudeUsageFields =
        skimmed.unwrap_or_else(|| serde_json::from_str(raw.0).unwrap_or_default());
    let cache = fields.cache_creation.unwrap_or_default();
    let cache_write_5m = cache.ephemeral_5m_input_tokens.unwrap_or(0);
    let cache_write_1h = cache.ephemeral_1h_input_tokens.unwrap_or(0);
    let parts = cache_write_5m.saturating_add(cache_write_1h);
    let details = fields.output_tokens_details.unwrap_or_default();
    Usage {
        input: fields.input_tokens.unwrap_or(0),
        cache_read: fields.cache_read_input_tokens.unwrap_or(0),
        cache_write: fields.cache_creation_input_tokens.unwrap_or(0).max(parts),
        cache_write_5m,
        cache_write_1h,
        output: fields.output_tokens.unwrap_or(0),
        reasoning: details.thinking_tokens.unwrap_or(0),
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ClaudeUsageFields {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_input_tokens: Option<u64>,
    cache_creation_input_tokens: Option<u64>,
    cache_creation: Option<ClaudeCacheCreation>,
    output_tokens_details: Option<ClaudeOutputDetails>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ClaudeCacheCreation {
    ephemeral_5m_input_tokens: Option<u64>,
    ephemeral_1h_input_tokens: Option<u64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ClaudeOutputDetails {
    thinking_tokens: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Usage {
        parse_usage(RawJson(text))
    }

    #[test]
    fn parts_of_the_cache_writes_count_where_their_sum_is_missing() {
        let json = r#"{"input_tokens":1,"output_tokens":9,"cache_creation_input_tokens":0,
            "cache_creation":{"ephemeral_5m_input_tokens":3,"ephemeral_1h_input_tokens":null},
            "output_tokens_details":{"thinking_tokens":4},"service_tier":"x"}"#;
        let got = read(json);
        assert_eq!((got.input, got.output, got.reasoning), (1, 9, 4));
        assert_eq!((got.cache_write, got.cache_write_5m, got.cache_write_1h), (3, 3, 0));
    }

    #[test]
    fn ignores_values_that_are_no_numbers() {
        for odd in ["null", "5", r#"{"input_tokens":"many"}"#, r#"{"output_tokens":-1}"#] {
            assert!(read(odd).is_empty(), "{odd}");
        }
    }
}
