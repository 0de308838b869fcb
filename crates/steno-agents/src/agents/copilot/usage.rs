//! Counts the tokens of a session. Each process writes its total on shutdown; a crashed process writes none.
//!
//! In newer versions, the total includes earlier processes of the session; in older ones it does not. The usage of
//! single calls and messages since the last total shows which it is.

use crate::decoding::{json_fields, usage};
use steno_model::entry::Usage;
use steno_model::json::{Object, Value};
use steno_model::name_hash::CompactNameSet;

/// The usage of a session so far.
#[derive(Default)]
pub(super) struct CopilotTokenCounter {
    /// The usage of all ended processes.
    ended: Usage,
    /// The last total that a process wrote.
    last_total: Usage,
    /// The usage of the running process's calls, if the version records calls.
    calls: Usage,
    /// Output tokens of the running process's messages. Old versions record nothing else before shutdown.
    message_output: u64,
    /// Messages and calls counted so far.
    seen: CompactNameSet,
}

impl CopilotTokenCounter {
    /// Adds the data of `assistant.message`. A message in several events repeats its count, and is counted once.
    pub(super) fn add_message(&mut self, id: &str, data: &Object) {
        let output = json_fields::count_field(data, "outputTokens");
        if output > 0 && self.seen.insert(("message", id)) {
            self.message_output = self.message_output.saturating_add(output);
        }
    }

    /// Adds the data of `session.usage_record`, one per call of the model.
    pub(super) fn add_call(&mut self, data: &Object) {
        let Some(Value::Object(call)) = data.get("usage") else {
            return;
        };
        let id = call.get("apiCallId").and_then(Value::as_str);
        if id.is_none_or(|id| self.seen.insert(("call", id))) {
            self.calls.add(&usage::inclusive_usage(call));
        }
    }

    /// Adds the data of `session.shutdown`, which has the process's total.
    pub(super) fn add_shutdown(&mut self, data: &Object) {
        let snapshot = data.get("accountingSnapshot").and_then(Value::as_object);
        let metrics = snapshot.and_then(|snapshot| snapshot.get("modelMetrics"));
        let mut total = Usage::default();
        if let Some(Value::Object(models)) = metrics.or(data.get("modelMetrics")) {
            for model in models.values().filter_map(|model| model.get("usage")?.as_object()) {
                total.add(&usage::inclusive_usage(model));
            }
        }
        self.end_process(total);
    }

    /// The usage of all processes.
    pub(super) fn total(mut self) -> Usage {
        self.end_process(Usage::default());
        self.ended
    }

    /// Ends the running process with its total, which is empty if the process crashed.
    fn end_process(&mut self, total: Usage) {
        let messages = Usage { output: self.message_output, ..Usage::default() };
        let counted = if self.calls.is_empty() { messages } else { self.calls };
        if continues_total(&total, &self.last_total, counted.output) {
            self.ended = self.ended.subtract(&self.last_total);
        }
        self.ended.add(if total.is_empty() { &counted } else { &total });
        if !total.is_empty() {
            self.last_total = total;
        }
        (self.calls, self.message_output) = (Usage::default(), 0);
    }
}

/// Whether a total includes the total before it.
///
/// It does if the difference of both is closer to the output tokens counted since than the total itself is.
fn continues_total(total: &Usage, before: &Usage, counted: u64) -> bool {
    let may_include = !before.is_empty()
        && total.prompt_tokens() >= before.prompt_tokens()
        && total.output >= before.output;
    may_include && (total.output - before.output).abs_diff(counted) < total.output.abs_diff(counted)
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
        let mut tokens = CopilotTokenCounter::default();
        tokens.add_call(&call("a", 30));
        tokens.add_shutdown(&sum(100, 30));
        tokens.add_call(&call("b", 35));
        tokens.add_shutdown(&sum(200, 65));
        tokens.add_shutdown(&sum(200, 65));
        tokens.add_call(&call("c", 5));
        let total = tokens.total();
        assert_eq!((total.prompt_tokens(), total.output), (300, 70));
    }

    #[test]
    fn sums_that_begin_anew_add_up() {
        let mut tokens = CopilotTokenCounter::default();
        tokens.add_message("a", &object(json!({"outputTokens": 30})));
        tokens.add_shutdown(&sum(100, 30));
        tokens.add_message("b", &object(json!({"outputTokens": 65})));
        tokens.add_shutdown(&sum(200, 65));
        let total = tokens.total();
        assert_eq!((total.prompt_tokens(), total.output), (300, 95));
    }
}
