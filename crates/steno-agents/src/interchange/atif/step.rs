//! Decodes the steps of a trajectory: messages, tool calls and results.

use std::path::Path;

use super::{CACHE_WRITE_FIELD, MESSAGE_ID_FIELD};
use crate::decoding::entry_emitter::EntryEmitter;
use crate::decoding::json_fields::{as_count, list_items, owned_text, plain_text};
use steno_model::entry::{Entry, EntryError, EntryKind, Role, Usage};
use steno_model::json::{Object, Value};
use steno_model::problem::Problem;
use steno_model::timestamp::Timestamp;

/// Reads the steps of one trajectory and sums up their cost.
pub(super) struct AtifStepReader<'a> {
    path: &'a Path,
    source: String,
    model: Option<String>,
    /// Number of steps read.
    count: usize,
    /// Whether any step states its usage.
    pub(super) has_usage: bool,
    /// Sum of the costs that steps state, in dollars.
    pub(super) cost: Option<f64>,
}

impl<'a> AtifStepReader<'a> {
    /// A reader for the steps of `source` in `trajectory`.
    pub(super) fn new(path: &'a Path, source: String, trajectory: &Value) -> Self {
        let model = owned_text(&trajectory["agent"]["model_name"]);
        Self { path, source, model, count: 0, has_usage: false, cost: None }
    }

    /// Reads the next step.
    pub(super) fn read_step(
        &mut self,
        step: Result<&Value, String>,
        output: &mut EntryEmitter<'_>,
    ) {
        let reason = match step {
            Ok(step) if step.is_object() => {
                self.emit_step(self.count, step, output);
                None
            }
            Ok(_) => Some(EntryError::NotAnObject.to_string()),
            Err(reason) => Some(reason),
        };
        self.count += 1;
        if let Some(reason) = reason {
            let reason = format!("step {}: {reason}", self.count);
            output.emit_problem(Problem::for_file(self.path, reason));
        }
    }

    fn emit_step(&mut self, index: usize, step: &Value, output: &mut EntryEmitter<'_>) {
        let is_copied = step["is_copied_context"].as_bool() == Some(true);
        let mut entries = match step["source"].as_str() {
            Some("agent") => answer_entries(step),
            Some("user") => {
                vec![Entry::new(Role::User, EntryKind::Text, message_text(&step["message"]))]
            }
            Some("system") => {
                vec![Entry::new(Role::System, EntryKind::Text, message_text(&step["message"]))]
            }
            _ => vec![unknown_step_entry(step)],
        };
        if !is_copied {
            entries[0].usage = self.add_cost(&step["metrics"]);
        }
        entries.extend(list_items(&step["observation"]["results"]).iter().map(tool_result_entry));
        let at = step["timestamp"].as_str().and_then(|time| time.parse().ok());
        for mut entry in entries {
            if is_copied {
                entry.kind = EntryKind::Notice;
            }
            output.emit_entry(self.complete_entry(entry, index, step, at));
        }
    }

    fn complete_entry(
        &self,
        mut entry: Entry,
        index: usize,
        step: &Value,
        at: Option<Timestamp>,
    ) -> Entry {
        entry.created_at = at;
        entry.source.clone_from(&self.source);
        let message = owned_text(&step["extra"][MESSAGE_ID_FIELD]);
        entry.message_id = Some(message.unwrap_or_else(|| format!("step-{}", index + 1)));
        if entry.role == Role::Assistant && entry.kind != EntryKind::Notice {
            entry.model = owned_text(&step["model_name"]).or_else(|| self.model.clone());
        }
        entry
    }

    fn add_cost(&mut self, metrics: &Value) -> Option<Usage> {
        if let Some(cost) = metrics["cost_usd"].as_f64() {
            *self.cost.get_or_insert_default() += cost;
        }
        let usage = step_usage(metrics);
        self.has_usage |= usage.is_some();
        usage
    }
}

fn answer_entries(step: &Value) -> Vec<Entry> {
    let thought = owned_text(&step["reasoning_content"]).filter(|text| !text.is_empty());
    let mut entries: Vec<_> = thought
        .map(|thought| Entry::new(Role::Assistant, EntryKind::Thinking, thought))
        .into_iter()
        .collect();
    let message = message_text(&step["message"]);
    let calls = list_items(&step["tool_calls"]);
    if !message.is_empty() || (entries.is_empty() && calls.is_empty()) {
        entries.push(Entry::new(Role::Assistant, EntryKind::Text, message));
    }
    entries.extend(calls.iter().map(tool_call_entry));
    entries
}

fn tool_call_entry(call: &Value) -> Entry {
    let mut entry = Entry::new(Role::Assistant, EntryKind::ToolCall, "");
    entry.tool_call_id = owned_text(&call["tool_call_id"]);
    entry.tool_name = owned_text(&call["function_name"]);
    entry.tool_input = call.get("arguments").cloned();
    entry
}

fn tool_result_entry(result: &Value) -> Entry {
    let mut entry = Entry::new(Role::Tool, EntryKind::ToolResult, message_text(&result["content"]));
    entry.tool_call_id = owned_text(&result["source_call_id"]);
    let key = "subagent_trajectory_ref";
    entry.metadata = result
        .get(key)
        .filter(|reference| !reference.is_null())
        .map(|reference| Object::from_iter([(key.to_owned(), reference.clone())]));
    entry
}

fn unknown_step_entry(step: &Value) -> Entry {
    let mut entry = Entry::new(Role::System, EntryKind::Other, message_text(&step["message"]));
    entry.metadata = step.as_object().cloned();
    entry
}

/// The text of a message. Images and audio are named by their file paths.
fn message_text(content: &Value) -> String {
    let Value::Array(parts) = content else { return plain_text(content) };
    let parts = parts.iter().map(|part| match owned_text(&part["text"]) {
        Some(text) => text,
        None => {
            let kind = plain_text(&part["source"]["media_type"]);
            format!("[{kind}, {}]", plain_text(&part["source"]["path"]))
        }
    });
    parts.collect::<Vec<_>>().join("\n")
}

/// The usage of a step. Cached tokens are part of the prompt tokens and are subtracted.
fn step_usage(metrics: &Value) -> Option<Usage> {
    if metrics["prompt_tokens"].is_null() && metrics["completion_tokens"].is_null() {
        return None;
    }
    let extra = &metrics["extra"];
    let cache_read = as_count(&metrics["cached_tokens"]);
    let cache_write = as_count(&extra[CACHE_WRITE_FIELD]);
    let prompt = as_count(&metrics["prompt_tokens"]);
    Some(Usage {
        input: prompt.saturating_sub(cache_read).saturating_sub(cache_write),
        cache_read,
        cache_write,
        output: as_count(&metrics["completion_tokens"]),
        reasoning: as_count(&extra["reasoning_output_tokens"]),
        ..Usage::default()
    })
}
