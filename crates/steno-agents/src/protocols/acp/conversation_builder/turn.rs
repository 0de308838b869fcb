//! Turns: a turn starts with a prompt and ends with a stop reason and token usage.

use super::super::STOP_REASON_KEY;
use super::{AcpConversationBuilder, single_field};
use crate::decoding::json_fields;
use steno_model::entry::{Entry, EntryKind, Role, Usage};
use steno_model::json::{Object, Value};

impl AcpConversationBuilder {
    /// Ends the current turn. `result` is the agent's response, if there is one.
    pub(super) fn end_turn(&mut self, result: Option<&Object>) {
        self.open_message = None;
        let begin = self.turn_start.take();
        let Some(result) = result else { return };
        let reason = json_fields::text_field(result, "stopReason");
        self.facts.stop_reason = reason.map(str::to_owned);
        let begin = begin.unwrap_or(self.entries.len());
        self.add_usage(begin, result);
        if let Some(meta) = result.get("_meta")
            && let Some(last) = self.last_answer_index(begin)
        {
            let metadata = self.entries[last].metadata.get_or_insert_default();
            metadata.insert("turn_meta".to_owned(), meta.clone());
        }
        if let Some(reason) = reason.filter(|reason| *reason != "end_turn") {
            self.add_end_notice(reason);
            return;
        }
        // A turn without an answer keeps its stop reason on the prompt.
        let last = self.last_answer_index(begin).or((begin < self.entries.len()).then_some(begin));
        if let Some(last) = last {
            let metadata = self.entries[last].metadata.get_or_insert_default();
            metadata.extend(reason.map(|reason| (STOP_REASON_KEY.to_owned(), reason.into())));
        }
    }

    /// Adds a notice for a turn that did not end normally.
    pub(super) fn add_end_notice(&mut self, reason: &str) -> usize {
        let text = format!("turn ended: {reason}");
        self.add_notice(Role::System, text, single_field(STOP_REASON_KEY, reason))
    }

    /// Sets the turn's usage on its last answer, and the model on all of its entries.
    fn add_usage(&mut self, begin: usize, result: &Object) {
        let meta = json_fields::object_field(result, "_meta");
        let quota = meta.and_then(|meta| json_fields::object_field(meta, "quota"));
        let models = quota.map_or(&[][..], |quota| json_fields::list_field(quota, "model_usage"));
        if let [one] = models
            && let Some(model) = one.get("model").and_then(Value::as_str)
        {
            let answers = self.entries[begin..].iter_mut();
            for entry in answers.filter(|entry| entry.role == Role::Assistant) {
                entry.model = Some(model.to_owned());
            }
        }
        let counted = quota.and_then(|quota| json_fields::object_field(quota, "token_count"));
        let usage = json_fields::object_field(result, "usage").map(parse_usage);
        let usage = usage.or_else(|| counted.map(parse_usage)).filter(|usage| !usage.is_empty());
        let Some(usage) = usage.or_else(|| self.usage_from_meta(begin)) else { return };
        let last = self
            .last_answer_index(begin)
            .unwrap_or_else(|| self.push_entry(Entry::new(Role::Assistant, EntryKind::Text, "")));
        self.entries[last].usage = Some(usage);
    }

    /// The usage of agents that report it only in `_meta` of their messages.
    fn usage_from_meta(&self, begin: usize) -> Option<Usage> {
        let mut all = Usage::default();
        for entry in &self.entries[begin..] {
            let meta = entry.metadata.as_ref().and_then(|metadata| metadata.get("_meta"));
            let metas = match meta {
                Some(Value::Array(metas)) => metas.as_slice(),
                Some(one) => std::slice::from_ref(one),
                None => &[],
            };
            let counts = metas.iter().filter_map(|meta| meta.get("usage")?.as_object());
            counts.for_each(|counts| all.add(&parse_usage(counts)));
        }
        Some(all).filter(|all| !all.is_empty())
    }

    fn last_answer_index(&self, begin: usize) -> Option<usize> {
        let is_answer = |entry: &Entry| {
            entry.role == Role::Assistant
                && matches!(entry.kind, EntryKind::Text | EntryKind::Thinking | EntryKind::ToolCall)
        };
        (begin..self.entries.len()).rev().find(|at| is_answer(&self.entries[*at]))
    }
}

/// Parses token counts. If the total shows that cached tokens are part of the input, they are subtracted from it.
fn parse_usage(counts: &Object) -> Usage {
    let count =
        |names: [&str; 2]| names.iter().map(|name| json_fields::count_field(counts, name)).max();
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
