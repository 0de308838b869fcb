//! Decodes a message of a chat into entries.

use super::parts;
use crate::agent::entries;
use crate::agent::fields;
use crate::agent::telling::Telling;
use crate::entry::{Entry, Kind, Role, Usage};
use crate::json::{Object, Value};
use crate::sums::SumSet;

/// Prefixes of commands and injected context among user messages.
const NOT_PROMPTS: [&str; 4] = ["/", "?", "<session_context>", "<hook_context>"];

/// Decodes messages, and tracks which tool results were emitted.
#[derive(Debug, Default)]
pub(super) struct Messages {
    emitted_results: SumSet,
}

impl Messages {
    /// Decodes a message and emits its entries.
    pub(super) fn tell(&mut self, emitter: &mut Telling<'_>, message: Object) {
        let at = fields::time(&message, "timestamp");
        emitter.time(at);
        let mut entries = match fields::text(&message, "type") {
            Some("user") => self.user(&message),
            Some("gemini" | "qwen") => self.answer(&message),
            Some("info" | "warning") => notice(&message, Kind::Notice),
            Some("error") => notice(&message, Kind::Error),
            _ => vec![entries::unknown(message.clone())],
        };
        let id = fields::text(&message, "id");
        for entry in &mut entries {
            entry.message_id = id.map(str::to_owned);
            entry.created_at = entry.created_at.or(at);
        }
        entries.into_iter().for_each(|entry| emitter.entry(entry));
    }

    fn user(&mut self, message: &Object) -> Vec<Entry> {
        let content = message.get("content").unwrap_or(&Value::Null);
        let is_prompt = is_prompt(&parts::text(content));
        let mut entries = parts::entries(content, &Role::User);
        // Tool results are also part of the calls, and emitted there.
        entries.retain(|entry| entry.kind != Kind::ToolResult || self.is_news(entry));
        for entry in entries.iter_mut().filter(|entry| entry.kind == Kind::Text && !is_prompt) {
            entry.kind = Kind::Notice;
        }
        entries
    }

    fn answer(&mut self, message: &Object) -> Vec<Entry> {
        let mut entries: Vec<_> =
            fields::list(message, "thoughts").iter().filter_map(thought).collect();
        let content = message.get("content").unwrap_or(&Value::Null);
        entries.extend(parts::entries(content, &Role::Assistant));
        for call in fields::list(message, "toolCalls").iter().filter_map(Value::as_object) {
            entries.extend(self.call(call));
        }
        if !entries.iter().any(|entry| entry.role == Role::Assistant) {
            entries.insert(0, Entry::new(Role::Assistant, Kind::Text, ""));
        }
        let model = fields::text(message, "model");
        for entry in entries.iter_mut().filter(|entry| entry.role == Role::Assistant) {
            entry.model = model.map(str::to_owned);
        }
        if let Some(first) = entries.first_mut() {
            first.usage = fields::object(message, "tokens").map(usage);
        }
        entries
    }

    /// Decodes a tool call and its result.
    fn call(&mut self, call: &Object) -> Vec<Entry> {
        let (name, id) = (fields::text(call, "name"), fields::text(call, "id"));
        let mut request = entries::tool_call(name, id, call.get("args"));
        request.created_at = fields::time(call, "timestamp");
        let Some(result) = call.get("result").filter(|result| !result.is_null()) else {
            return vec![request];
        };
        let texts = parts::entries(result, &Role::Tool);
        let texts: Vec<_> = texts.into_iter().map(|entry| entry.content).collect();
        let is_error = matches!(fields::text(call, "status"), Some("error" | "cancelled"));
        let mut result = entries::tool_result(id, texts.join("\n"), is_error);
        result.tool_name = name.map(str::to_owned);
        result.created_at = request.created_at;
        self.is_news(&result);
        vec![request, result]
    }

    /// Whether this is the first result of its call. Notes it as emitted.
    fn is_news(&mut self, result: &Entry) -> bool {
        result.tool_call_id.as_ref().is_none_or(|id| self.emitted_results.insert(id))
    }
}

fn is_prompt(text: &str) -> bool {
    let text = text.trim_start();
    !text.is_empty() && !NOT_PROMPTS.iter().any(|start| text.starts_with(start))
}

fn thought(thought: &Value) -> Option<Entry> {
    let thought = thought.as_object()?;
    let texts = ["subject", "description"].iter().filter_map(|field| fields::text(thought, field));
    let text = texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n");
    let mut entry = Entry::new(Role::Assistant, Kind::Thinking, text);
    entry.created_at = fields::time(thought, "timestamp");
    Some(entry)
}

fn notice(message: &Object, kind: Kind) -> Vec<Entry> {
    let content = message.get("content").unwrap_or(&Value::Null);
    vec![Entry::new(Role::System, kind, parts::text(content))]
}

/// Parses usage. Gemini includes cached tokens in `input`, but not thoughts in `output`.
fn usage(tokens: &Object) -> Usage {
    let count = |field| fields::count(tokens, field);
    Usage {
        input: count("input").saturating_sub(count("cached")) + count("tool"),
        cache_read: count("cached"),
        output: count("output") + count("thoughts"),
        reasoning: count("thoughts"),
        ..Usage::default()
    }
}
