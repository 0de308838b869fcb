//! Turns: a turn starts with a prompt and ends with a stop reason and token usage.

use super::super::STOP_REASON;
use super::{Fold, about};
use crate::agent::fields;
use crate::entry::{Entry, Kind, Role, Usage};
use crate::json::{Object, Value};

impl Fold {
    /// Ends the current turn. `result` is the agent's response, if there is one.
    pub(super) fn end_turn(&mut self, result: Option<&Object>) {
        self.open = None;
        let begin = self.turn.take();
        let Some(result) = result else { return };
        let reason = fields::text(result, "stopReason");
        self.facts.stop_reason = reason.map(str::to_owned);
        let begin = begin.unwrap_or(self.entries.len());
        self.bill(begin, result);
        if let Some(meta) = result.get("_meta")
            && let Some(last) = self.last_answer(begin)
        {
            let metadata = self.entries[last].metadata.get_or_insert_default();
            metadata.insert("turn_meta".to_owned(), meta.clone());
        }
        if let Some(reason) = reason.filter(|reason| *reason != "end_turn") {
            self.end_notice(reason);
            return;
        }
        // A turn without an answer keeps its stop reason on the prompt.
        let last = self.last_answer(begin).or((begin < self.entries.len()).then_some(begin));
        if let Some(last) = last {
            let metadata = self.entries[last].metadata.get_or_insert_default();
            metadata.extend(reason.map(|reason| (STOP_REASON.to_owned(), reason.into())));
        }
    }

    /// Adds a notice for a turn that did not end normally.
    pub(super) fn end_notice(&mut self, reason: &str) -> usize {
        let text = format!("turn ended: {reason}");
        self.notice(Role::System, text, about(STOP_REASON, reason))
    }

    /// Sets the turn's usage on its last answer, and the model on all of its entries.
    fn bill(&mut self, begin: usize, result: &Object) {
        let meta = fields::object(result, "_meta");
        let quota = meta.and_then(|meta| fields::object(meta, "quota"));
        let models = quota.map_or(&[][..], |quota| fields::list(quota, "model_usage"));
        if let [one] = models
            && let Some(model) = one.get("model").and_then(Value::as_str)
        {
            let answers = self.entries[begin..].iter_mut();
            for entry in answers.filter(|entry| entry.role == Role::Assistant) {
                entry.model = Some(model.to_owned());
            }
        }
        let counted = quota.and_then(|quota| fields::object(quota, "token_count"));
        let usage = fields::object(result, "usage").map(tokens);
        let usage = usage.or_else(|| counted.map(tokens)).filter(|usage| !usage.is_empty());
        let Some(usage) = usage.or_else(|| self.told_beside(begin)) else { return };
        let last = self
            .last_answer(begin)
            .unwrap_or_else(|| self.push(Entry::new(Role::Assistant, Kind::Text, "")));
        self.entries[last].usage = Some(usage);
    }

    /// The usage of agents that report it only in `_meta` of their messages.
    fn told_beside(&self, begin: usize) -> Option<Usage> {
        let mut all = Usage::default();
        for entry in &self.entries[begin..] {
            let meta = entry.metadata.as_ref().and_then(|metadata| metadata.get("_meta"));
            let metas = match meta {
                Some(Value::Array(metas)) => metas.as_slice(),
                Some(one) => std::slice::from_ref(one),
                None => &[],
            };
            let counts = metas.iter().filter_map(|meta| meta.get("usage")?.as_object());
            counts.for_each(|counts| all.add(&tokens(counts)));
        }
        Some(all).filter(|all| !all.is_empty())
    }

    fn last_answer(&self, begin: usize) -> Option<usize> {
        let is_answer = |entry: &Entry| {
            entry.role == Role::Assistant
                && matches!(entry.kind, Kind::Text | Kind::Thinking | Kind::ToolCall)
        };
        (begin..self.entries.len()).rev().find(|at| is_answer(&self.entries[*at]))
    }
}

/// Parses token counts. If the total shows that cached tokens are part of the input, they are subtracted from it.
fn tokens(counts: &Object) -> Usage {
    let count = |names: [&str; 2]| names.iter().map(|name| fields::count(counts, name)).max();
    let count = |camel, snake| count([camel, snake]).unwrap_or(0);
    let input = count("inputTokens", "input_tokens");
    let output = count("outputTokens", "output_tokens");
    let cache_read = count("cachedReadTokens", "cached_read_tokens");
    let cache_write = count("cachedWriteTokens", "cached_write_tokens");
    let reasoning = count("thoughtTokens", "thought_tokens");
    let total = count("totalTokens", "total_tokens");
    let is_part = total > 0 && total < input + output + cache_read + cache_write;
    let is_reasoning_apart = total > 0 && total >= input + output + cache_read + reasoning;
    let apart = if is_reasoning_apart { reasoning } else { 0 };
    let cached = if is_part { cache_read + cache_write } else { 0 };
    Usage {
        input: input.saturating_sub(cached),
        cache_read,
        cache_write,
        output: output + apart,
        reasoning,
        ..Usage::default()
    }
}
