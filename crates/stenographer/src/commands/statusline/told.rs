//! What an agent tells its status line, and the end of the transcript that it names.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;

use serde_json::Value;

/// How much of a transcript is read to find the last answer.
const TAIL: u64 = 256 << 10;

/// The context of a model that tells nothing else.
const WINDOW: u64 = 200_000;

/// The context of a model whose name says so.
const LONG_WINDOW: u64 = 1_000_000;

/// What an agent tells; whatever is missing or something else than it should be is not told.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) session: Option<String>,
    pub(super) model: Option<String>,
    /// Dollars, as the agent reckons.
    pub(super) cost: Option<f64>,
    /// Milliseconds since the session began.
    pub(super) duration: Option<i64>,
    /// How many percent of the plan's five hours are used.
    pub(super) limit: Option<f64>,
    /// When those five hours end, in milliseconds since 1970.
    pub(super) resets: Option<i64>,
    /// How many percent of the context are used.
    used: Option<f64>,
    window: u64,
    transcript: Option<PathBuf>,
}

impl Told {
    /// Reads what Claude Code tells as JSON.
    pub(super) fn parse(input: &[u8]) -> Self {
        let told: Value = serde_json::from_slice(input).unwrap_or_default();
        let text = |value: &Value| value.as_str().map(plain).filter(|text| !text.is_empty());
        let model = &told["model"];
        let name = text(&model["id"]).unwrap_or_default();
        let limit = &told["rate_limits"]["five_hour"];
        let context = &told["context_window"];
        let usual = if name.contains("[1m]") { LONG_WINDOW } else { WINDOW };
        let window = context["context_window_size"].as_u64().filter(|size| *size > 0);
        let window = window.unwrap_or(usual);
        let current = Some(&context["current_usage"]).and_then(prompt);
        Self {
            session: text(&told["session_id"]),
            model: text(&model["display_name"])
                .or_else(|| text(model))
                .or(Some(name))
                .filter(|name| !name.is_empty()),
            cost: told["cost"]["total_cost_usd"].as_f64(),
            duration: told["cost"]["total_duration_ms"].as_i64(),
            limit: limit["used_percentage"].as_f64(),
            resets: limit["resets_at"].as_i64().and_then(|seconds| seconds.checked_mul(1000)),
            used: context["used_percentage"]
                .as_f64()
                .or(current.map(|tokens| share(tokens, window))),
            window,
            transcript: told["transcript_path"].as_str().map(PathBuf::from),
        }
    }

    /// How many percent of how large a context are used; asks the transcript where the agent does not tell.
    pub(super) fn context(&self) -> Option<(f64, u64)> {
        let used = self.used.or_else(|| Some(share(self.last_prompt()?, self.window)));
        used.map(|used| (used, self.window))
    }

    /// The tokens of the last prompt in the transcript, if that is near its end.
    fn last_prompt(&self) -> Option<u64> {
        let mut file = File::open(self.transcript.as_ref()?).ok()?;
        let size = file.metadata().ok()?.len();
        file.seek(SeekFrom::Start(size.saturating_sub(TAIL))).ok()?;
        let mut tail = Vec::new();
        file.take(TAIL).read_to_end(&mut tail).ok()?;
        let mut lines = tail.rsplit(|byte| *byte == b'\n');
        lines.find_map(|line| {
            let record: Value = serde_json::from_slice(line).ok()?;
            let own = record["isSidechain"] != true && record["type"] == "assistant";
            own.then(|| prompt(&record["message"]["usage"])).flatten()
        })
    }
}

/// The tokens of a prompt, cached or not.
fn prompt(usage: &Value) -> Option<u64> {
    let count = |name: &str| usage[name].as_u64();
    let cached = ["cache_creation_input_tokens", "cache_read_input_tokens"];
    let cached: u64 = cached.into_iter().filter_map(count).sum();
    Some(count("input_tokens")? + cached).filter(|tokens| *tokens > 0)
}

fn share(tokens: u64, window: u64) -> f64 {
    tokens as f64 * 100.0 / window as f64
}

/// Text that stays on its line.
fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}
