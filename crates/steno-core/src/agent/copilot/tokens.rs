//! Tokens of a session. Each process states a sum when it ends; one that crashed never does.
//!
//! Newer versions go on with the sum of the process before, older ones begin anew: what was told since shows which it is.

use crate::agent::{fields, usage};
use crate::entry::Usage;
use crate::json::{Object, Value};
use crate::sums::SumSet;

/// What was billed so far.
#[derive(Default)]
pub(super) struct Tokens {
    /// What the processes that ended add up to.
    ended: Usage,
    /// The last sum that one stated.
    stated: Usage,
    /// Calls of the process that still runs, where each is recorded.
    calls: Usage,
    /// Answer tokens of that process's messages: all that old versions tell before the end.
    answers: u64,
    /// Messages and calls that were met.
    seen: SumSet,
}

impl Tokens {
    /// Takes the data of `assistant.message`, whose pieces repeat their count.
    pub(super) fn message(&mut self, id: &str, data: &Object) {
        let answer = fields::count(data, "outputTokens");
        if answer > 0 && self.seen.insert(("message", id)) {
            self.answers = self.answers.saturating_add(answer);
        }
    }

    /// Takes the data of `session.usage_record`, one per call of the model.
    pub(super) fn call(&mut self, data: &Object) {
        let Some(Value::Object(call)) = data.get("usage") else {
            return;
        };
        let id = call.get("apiCallId").and_then(Value::as_str);
        if id.is_none_or(|id| self.seen.insert(("call", id))) {
            self.calls.add(&usage::inclusive(call));
        }
    }

    /// Takes the data of `session.shutdown`.
    pub(super) fn shutdown(&mut self, data: &Object) {
        let snapshot = data.get("accountingSnapshot").and_then(Value::as_object);
        let metrics = snapshot.and_then(|snapshot| snapshot.get("modelMetrics"));
        let mut stated = Usage::default();
        if let Some(Value::Object(models)) = metrics.or(data.get("modelMetrics")) {
            for model in models.values().filter_map(|model| model.get("usage")?.as_object()) {
                stated.add(&usage::inclusive(model));
            }
        }
        self.end(stated);
    }

    /// What all processes were billed.
    pub(super) fn total(mut self) -> Usage {
        self.end(Usage::default());
        self.ended
    }

    fn end(&mut self, stated: Usage) {
        let answers = Usage { output: self.answers, ..Usage::default() };
        let told = if self.calls.is_empty() { answers } else { self.calls };
        if goes_on(&stated, &self.stated, told.output) {
            self.ended = self.ended.minus(&self.stated);
        }
        self.ended.add(if stated.is_empty() { &told } else { &stated });
        if !stated.is_empty() {
            self.stated = stated;
        }
        (self.calls, self.answers) = (Usage::default(), 0);
    }
}

/// Whether a sum includes the one before it: without that, it is nearer to the answer tokens that were told since.
fn goes_on(sum: &Usage, before: &Usage, told: u64) -> bool {
    let includes =
        !before.is_empty() && sum.prompt() >= before.prompt() && sum.output >= before.output;
    includes && (sum.output - before.output).abs_diff(told) < sum.output.abs_diff(told)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Object {
        value.as_object().cloned().unwrap_or_default()
    }

    fn sum(input: u64, output: u64) -> Object {
        let usage = json!({"inputTokens": input, "outputTokens": output, "cacheReadTokens": 10});
        object(json!({"modelMetrics": {"m": {"usage": usage}}}))
    }

    fn call(id: &str, output: u64) -> Object {
        object(json!({"usage": {"apiCallId": id, "inputTokens": 100, "outputTokens": output}}))
    }

    #[test]
    fn a_sum_that_goes_on_counts_once() {
        let mut tokens = Tokens::default();
        tokens.call(&call("a", 30));
        tokens.shutdown(&sum(100, 30));
        tokens.call(&call("b", 35));
        tokens.shutdown(&sum(200, 65));
        tokens.shutdown(&sum(200, 65));
        tokens.call(&call("c", 5));
        let total = tokens.total();
        assert_eq!((total.prompt(), total.output), (300, 70));
    }

    #[test]
    fn sums_that_begin_anew_add_up() {
        let mut tokens = Tokens::default();
        tokens.message("a", &object(json!({"outputTokens": 30})));
        tokens.shutdown(&sum(100, 30));
        tokens.message("b", &object(json!({"outputTokens": 65})));
        tokens.shutdown(&sum(200, 65));
        let total = tokens.total();
        assert_eq!((total.prompt(), total.output), (300, 95));
    }
}
