//! Whether an agent may have lost what it was told of its thread, because its context was shortened or soon will be.

use serde_json::Value;
use steno_core::json::Object;

/// When an agent is told of its thread again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// The part of the context that may be used.
    pub share: f64,
    /// Of an agent that tells no usage: estimated tokens since it was told last.
    pub tokens: u64,
    /// Of an agent that tells no usage: prompts since it was told last.
    pub rounds: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { share: 0.9, tokens: 100_000, rounds: 10 }
    }
}

/// Letters that are about one token.
const LETTERS: u64 = 4;

/// What is known of an agent's context.
#[derive(Clone, Debug)]
pub struct Guard {
    limits: Limits,
    /// Tokens in the context, where the agent tells.
    used: Option<f64>,
    /// The context is nearly full, or was shortened.
    is_due: bool,
    /// Letters that were said since the agent was told of its thread.
    letters: u64,
    rounds: u64,
}

impl Guard {
    /// An agent that was told nothing yet.
    pub fn new(limits: Limits) -> Self {
        Self { limits, used: None, is_due: false, letters: 0, rounds: 0 }
    }

    /// Takes what the agent tells.
    pub fn hear(&mut self, update: &Object) {
        match update.get("sessionUpdate").and_then(Value::as_str) {
            Some("usage_update") => self.usage(update),
            Some("compaction_update") => {
                let status = update.get("status").and_then(Value::as_str);
                self.is_due |= status != Some("failed");
            }
            _ => {
                let said = ["content", "rawInput", "rawOutput"].iter();
                let said = said.filter_map(|field| update.get(*field));
                self.letters += said.map(letters).sum::<u64>();
            }
        }
    }

    /// The agent is given a prompt.
    pub fn prompted(&mut self, text: &str) {
        self.letters += text.len() as u64;
        self.rounds += 1;
    }

    /// The agent was told of its thread.
    pub fn given(&mut self) {
        (self.is_due, self.letters, self.rounds) = (false, 0, 0);
    }

    /// Whether the next prompt has to tell of the thread again.
    pub fn needs_context(&self) -> bool {
        let is_long = self.letters / LETTERS >= self.limits.tokens;
        let is_estimated = self.used.is_none() && (is_long || self.rounds >= self.limits.rounds);
        self.is_due || is_estimated
    }

    fn usage(&mut self, update: &Object) {
        let number = |field| update.get(field).and_then(Value::as_f64);
        let (Some(used), size) = (number("used"), number("size")) else { return };
        // What is suddenly half of what it was has been shortened.
        let is_shortened = self.used.is_some_and(|before| used < before / 2.0);
        let is_full = size.is_some_and(|size| size > 0.0 && used / size > self.limits.share);
        self.is_due |= is_shortened || is_full;
        self.used = Some(used);
    }
}

/// Letters in all texts of a value.
fn letters(value: &Value) -> u64 {
    match value {
        Value::String(text) => text.len() as u64,
        Value::Array(items) => items.iter().map(letters).sum(),
        Value::Object(fields) => fields.values().map(letters).sum(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn hear(guard: &mut Guard, update: Value) {
        guard.hear(update.as_object().unwrap());
    }

    fn usage(guard: &mut Guard, used: u64) {
        hear(guard, json!({ "sessionUpdate": "usage_update", "used": used, "size": 1000 }));
    }

    #[test]
    fn a_context_that_is_nearly_full_is_due() {
        let mut guard = Guard::new(Limits::default());
        usage(&mut guard, 900);
        assert!(!guard.needs_context());
        usage(&mut guard, 901);
        assert!(guard.needs_context());
        guard.given();
        assert!(!guard.needs_context());
    }

    #[test]
    fn a_context_that_was_shortened_is_due() {
        let mut guard = Guard::new(Limits::default());
        usage(&mut guard, 800);
        usage(&mut guard, 300);
        assert!(guard.needs_context());
        guard.given();
        hear(&mut guard, json!({ "sessionUpdate": "compaction_update", "status": "completed" }));
        assert!(guard.needs_context());
    }

    #[test]
    fn one_that_tells_nothing_is_estimated() {
        let limits = Limits { tokens: 10, rounds: 3, ..Limits::default() };
        let mut guard = Guard::new(limits);
        (0..3).for_each(|_| guard.prompted("go"));
        assert!(guard.needs_context());
        guard.given();
        let content = json!({ "type": "text", "text": "x".repeat(40) });
        hear(&mut guard, json!({ "sessionUpdate": "agent_message_chunk", "content": content }));
        assert!(guard.needs_context());
        usage(&mut guard, 1);
        assert!(!guard.needs_context(), "one that tells is believed");
    }
}
