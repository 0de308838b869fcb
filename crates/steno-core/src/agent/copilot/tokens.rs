//! Tokens of a session. Each process of it states its own sum when it ends; one that crashed never does.

use std::collections::HashSet;

use crate::agent::{fields, usage};
use crate::entry::Usage;
use crate::json::{Object, Value};

/// What was billed so far.
#[derive(Default)]
pub(super) struct Tokens {
    /// The sums of the processes that ended.
    ended: Usage,
    /// Calls of the process that still runs, where each is recorded.
    calls: Usage,
    /// Answer tokens of that process's messages: all that old versions tell before the end.
    answers: u64,
    seen: HashSet<String>,
}

impl Tokens {
    /// Takes the data of `assistant.message`, whose pieces repeat their count.
    pub(super) fn message(&mut self, id: &str, data: &Object) {
        let answer = fields::count(data, "outputTokens");
        if answer > 0 && self.seen.insert(id.to_owned()) {
            self.answers = self.answers.saturating_add(answer);
        }
    }

    /// Takes the data of `session.usage_record`, one per call of the model.
    pub(super) fn call(&mut self, data: &Object) {
        let Some(Value::Object(call)) = data.get("usage") else {
            return;
        };
        let id = call.get("apiCallId").and_then(Value::as_str);
        if id.is_none_or(|id| self.seen.insert(format!("call {id}"))) {
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
        let best = [stated, self.calls, answers].into_iter().find(|usage| !usage.is_empty());
        self.ended.add(&best.unwrap_or_default());
        (self.calls, self.answers) = (Usage::default(), 0);
    }
}
