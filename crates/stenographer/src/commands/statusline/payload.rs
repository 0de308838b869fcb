//! Parses the JSON that an agent passes to its status line, and the end of the transcript it names.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;

use serde_json::Value;

/// Bytes read from the end of a transcript to find the last response.
const TAIL_BYTES: u64 = 256 << 10;

/// Context size of a model that reports none.
const DEFAULT_CONTEXT_TOKENS: u64 = 200_000;

/// Context size of a model with `[1m]` in its name.
const LONG_CONTEXT_TOKENS: u64 = 1_000_000;

/// The agent's payload. Missing fields and fields of another type are `None`.
#[derive(Debug, Default)]
pub(super) struct StatuslinePayload {
    pub(super) session: Option<String>,
    pub(super) model: Option<String>,
    /// Dollars, as calculated by the agent.
    pub(super) cost: Option<f64>,
    /// Milliseconds since the start of the session.
    pub(super) duration: Option<i64>,
    /// Used percentage of the plan's five-hour limit.
    pub(super) limit_percent: Option<f64>,
    /// When the limit resets, in milliseconds since 1970.
    pub(super) resets_at: Option<i64>,
    /// Used percentage of the context.
    context_percent: Option<f64>,
    context_tokens: u64,
    transcript: Option<PathBuf>,
}

impl StatuslinePayload {
    /// Parses the JSON of Claude Code.
    pub(super) fn parse(input: &[u8]) -> Self {
        let payload: Value = serde_json::from_slice(input).unwrap_or_default();
        let text = |value: &Value| {
            value.as_str().map(strip_control_characters).filter(|text| !text.is_empty())
        };
        let model = &payload["model"];
        let name = text(&model["id"]).unwrap_or_default();
        let limit = &payload["rate_limits"]["five_hour"];
        let context = &payload["context_window"];
        let usual =
            if name.contains("[1m]") { LONG_CONTEXT_TOKENS } else { DEFAULT_CONTEXT_TOKENS };
        let context_tokens = context["context_window_size"].as_u64().filter(|size| *size > 0);
        let context_tokens = context_tokens.unwrap_or(usual);
        let current = Some(&context["current_usage"]).and_then(prompt_tokens);
        Self {
            session: text(&payload["session_id"]),
            model: text(&model["display_name"])
                .or_else(|| text(model))
                .or(Some(name))
                .filter(|name| !name.is_empty()),
            cost: payload["cost"]["total_cost_usd"].as_f64(),
            duration: payload["cost"]["total_duration_ms"].as_i64(),
            limit_percent: limit["used_percentage"].as_f64(),
            resets_at: limit["resets_at"].as_i64().and_then(|seconds| seconds.checked_mul(1000)),
            context_percent: context["used_percentage"]
                .as_f64()
                .or(current.map(|tokens| percent_of(tokens, context_tokens))),
            context_tokens,
            transcript: payload["transcript_path"].as_str().map(PathBuf::from),
        }
    }

    /// Returns the used percentage and the size of the context. Falls back to the transcript.
    pub(super) fn context_usage(&self) -> Option<(f64, u64)> {
        let used = self
            .context_percent
            .or_else(|| Some(percent_of(self.last_prompt_tokens()?, self.context_tokens)));
        used.map(|used| (used, self.context_tokens))
    }

    /// Returns the tokens of the last prompt near the end of the transcript.
    fn last_prompt_tokens(&self) -> Option<u64> {
        let mut file = File::open(self.transcript.as_ref()?).ok()?;
        let size = file.metadata().ok()?.len();
        file.seek(SeekFrom::Start(size.saturating_sub(TAIL_BYTES))).ok()?;
        let mut tail = Vec::new();
        file.take(TAIL_BYTES).read_to_end(&mut tail).ok()?;
        let mut lines = tail.rsplit(|byte| *byte == b'\n');
        lines.find_map(|line| {
            let record: Value = serde_json::from_slice(line).ok()?;
            let own = record["isSidechain"] != true && record["type"] == "assistant";
            own.then(|| prompt_tokens(&record["message"]["usage"])).flatten()
        })
    }
}

/// Returns the tokens of a prompt, including cached ones.
fn prompt_tokens(usage: &Value) -> Option<u64> {
    let count = |name: &str| usage[name].as_u64();
    let cached = ["cache_creation_input_tokens", "cache_read_input_tokens"];
    let cached: u64 = cached.into_iter().filter_map(count).sum();
    Some(count("input_tokens")? + cached).filter(|tokens| *tokens > 0)
}

fn percent_of(tokens: u64, window: u64) -> f64 {
    tokens as f64 * 100.0 / window as f64
}

/// Removes control characters.
fn strip_control_characters(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}
