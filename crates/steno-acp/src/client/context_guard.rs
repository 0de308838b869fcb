//! Estimates whether an agent has lost the context of its thread, because its context window was compacted or nearly
//! is.

use serde_json::Value;
use steno_model::json::Object;

/// When an agent gets the context of its thread again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ContextLimits {
    /// The share of the context window that may be used.
    pub share: f64,
    /// For an agent that reports no usage: estimated tokens since it last got the context.
    pub tokens: u64,
    /// For an agent that reports no usage: prompts since it last got the context.
    pub rounds: u64,
}

impl Default for ContextLimits {
    fn default() -> Self {
        Self { share: 0.9, tokens: 100_000, rounds: 10 }
    }
}

/// Roughly how many letters make one token.
const LETTERS_PER_TOKEN: u64 = 4;

/// What is known about an agent's context window.
#[derive(Clone, Debug)]
pub struct ContextGuard {
    limits: ContextLimits,
    /// Tokens in the context window, if the agent reports them.
    used: Option<f64>,
    /// Whether the context window is nearly full, or was compacted.
    is_due: bool,
    /// Letters of all messages since the agent last got the context.
    letters: u64,
    rounds: u64,
}

impl ContextGuard {
    /// The state of an agent without any messages.
    pub fn new(limits: ContextLimits) -> Self {
        Self { limits, used: None, is_due: false, letters: 0, rounds: 0 }
    }

    /// Counts a notification of the agent.
    pub fn note_update(&mut self, update: &Object) {
        match update.get("sessionUpdate").and_then(Value::as_str) {
            Some("usage_update") => self.note_usage(update),
            Some("compaction_update") => {
                let status = update.get("status").and_then(Value::as_str);
                self.is_due |= status != Some("failed");
            }
            _ => {
                let texts = ["content", "rawInput", "rawOutput"].iter();
                let texts = texts.filter_map(|field| update.get(*field));
                self.letters += texts.map(count_letters).sum::<u64>();
            }
        }
    }

    /// Counts a prompt to the agent.
    pub fn note_prompt(&mut self, text: &str) {
        self.letters += text.len() as u64;
        self.rounds += 1;
    }

    /// Resets the counts, because the agent got the context.
    pub fn note_context_given(&mut self) {
        (self.is_due, self.letters, self.rounds) = (false, 0, 0);
    }

    /// Whether the next prompt should include the context.
    pub fn needs_context(&self) -> bool {
        let is_long = self.letters / LETTERS_PER_TOKEN >= self.limits.tokens;
        let is_estimated = self.used.is_none() && (is_long || self.rounds >= self.limits.rounds);
        self.is_due || is_estimated
    }

    fn note_usage(&mut self, update: &Object) {
        let number = |field| update.get(field).and_then(Value::as_f64);
        let (Some(used), size) = (number("used"), number("size")) else { return };
        // Usage that drops to less than half means compaction.
        let is_shortened = self.used.is_some_and(|before| used < before / 2.0);
        let is_full = size.is_some_and(|size| size > 0.0 && used / size > self.limits.share);
        self.is_due |= is_shortened || is_full;
        self.used = Some(used);
    }
}

/// The letters in all strings of a value.
fn count_letters(value: &Value) -> u64 {
    match value {
        Value::String(text) => text.len() as u64,
        Value::Array(items) => items.iter().map(count_letters).sum(),
        Value::Object(fields) => fields.values().map(count_letters).sum(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn hear(guard: &mut ContextGuard, update: Value) {
        guard.note_update(update.as_object().unwrap());
    }

    fn usage(guard: &mut ContextGuard, used: u64) {
        hear(guard, json!({ "sessionUpdate": "usage_update", "used": used, "size": 1000 }));
    }

    #[test]
    fn a_nearly_full_context_is_due() {
        let mut guard = ContextGuard::new(ContextLimits::default());
        usage(&mut guard, 900);
        assert!(!guard.needs_context());
        usage(&mut guard, 901);
        assert!(guard.needs_context());
        guard.note_context_given();
        assert!(!guard.needs_context());
    }

    #[test]
    fn a_compacted_context_is_due() {
        let mut guard = ContextGuard::new(ContextLimits::default());
        usage(&mut guard, 800);
        usage(&mut guard, 300);
        assert!(guard.needs_context());
        guard.note_context_given();
        hear(&mut guard, json!({ "sessionUpdate": "compaction_update", "status": "completed" }));
        assert!(guard.needs_context());
    }

    #[test]
    fn usage_is_estimated_if_not_reported() {
        let limits = ContextLimits { tokens: 10, rounds: 3, ..ContextLimits::default() };
        let mut guard = ContextGuard::new(limits);
        (0..3).for_each(|_| guard.note_prompt("go"));
        assert!(guard.needs_context());
        guard.note_context_given();
        let content = json!({ "type": "text", "text": "x".repeat(40) });
        hear(&mut guard, json!({ "sessionUpdate": "agent_message_chunk", "content": content }));
        assert!(guard.needs_context());
        usage(&mut guard, 1);
        assert!(!guard.needs_context(), "one that tells is believed");
    }
}
