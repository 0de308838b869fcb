//! Decodes a message of a chat into entries.

use crate::decoding::session_emitter::SessionEmitter;
use crate::decoding::{entries, json_fields};
use crate::protocols::gemini_parts;
use steno_model::entry::{Entry, EntryKind, Role, Usage};
use steno_model::json::{Object, Value};
use steno_model::name_hash::CompactNameSet;

/// Prefixes of commands and injected context among user messages.
pub(super) const NON_PROMPT_PREFIXES: [&str; 5] =
    ["/", "?", "<session_context>", "<hook_context>", "<continued_session "];

/// Decodes messages, and tracks which tool results were emitted.
#[derive(Debug, Default)]
pub(super) struct GeminiMessageDecoder {
    emitted_results: CompactNameSet,
}

impl GeminiMessageDecoder {
    /// Decodes a message and emits its entries.
    pub(super) fn decode_message(&mut self, emitter: &mut SessionEmitter<'_>, message: Object) {
        let at = json_fields::time_field(&message, "timestamp");
        emitter.note_time(at);
        let mut entries = match json_fields::text_field(&message, "type") {
            Some("user") => self.decode_user(&message),
            Some("gemini" | "qwen") => self.decode_model(&message),
            Some("info" | "warning") => notice_entries(&message, EntryKind::Notice),
            Some("error") => notice_entries(&message, EntryKind::Error),
            _ => vec![entries::unknown_entry(message.clone())],
        };
        let id = json_fields::text_field(&message, "id");
        for entry in &mut entries {
            entry.message_id = id.map(str::to_owned);
            entry.created_at = entry.created_at.or(at);
        }
        entries.into_iter().for_each(|entry| emitter.emit_entry(entry));
    }

    fn decode_user(&mut self, message: &Object) -> Vec<Entry> {
        let content = message.get("content").unwrap_or(&Value::Null);
        let is_prompt = is_prompt(&gemini_parts::joined_text(content));
        let mut entries = gemini_parts::decode_parts(content, &Role::User);
        // Tool results are also part of the calls, and emitted there.
        entries.retain(|entry| entry.kind != EntryKind::ToolResult || self.is_first_result(entry));
        for entry in entries.iter_mut().filter(|entry| entry.kind == EntryKind::Text && !is_prompt)
        {
            entry.kind = EntryKind::Notice;
        }
        entries
    }

    fn decode_model(&mut self, message: &Object) -> Vec<Entry> {
        let mut entries: Vec<_> = json_fields::list_field(message, "thoughts")
            .iter()
            .filter_map(thinking_entry)
            .collect();
        let content = message.get("content").unwrap_or(&Value::Null);
        entries.extend(gemini_parts::decode_parts(content, &Role::Assistant));
        for call in
            json_fields::list_field(message, "toolCalls").iter().filter_map(Value::as_object)
        {
            entries.extend(self.decode_tool_call(call));
        }
        if !entries.iter().any(|entry| entry.role == Role::Assistant) {
            entries.insert(0, Entry::new(Role::Assistant, EntryKind::Text, ""));
        }
        let model = json_fields::text_field(message, "model");
        for entry in entries.iter_mut().filter(|entry| entry.role == Role::Assistant) {
            entry.model = model.map(str::to_owned);
        }
        if let Some(first) = entries.first_mut() {
            first.usage = json_fields::object_field(message, "tokens").map(parse_usage);
        }
        entries
    }

    /// Decodes a tool call and its result.
    fn decode_tool_call(&mut self, call: &Object) -> Vec<Entry> {
        let (name, id) =
            (json_fields::text_field(call, "name"), json_fields::text_field(call, "id"));
        let mut request = entries::tool_call(name, id, call.get("args"));
        request.created_at = json_fields::time_field(call, "timestamp");
        let Some(result) = call.get("result").filter(|result| !result.is_null()) else {
            return vec![request];
        };
        let texts = gemini_parts::decode_parts(result, &Role::Tool);
        let texts: Vec<_> = texts.into_iter().map(|entry| entry.content).collect();
        let is_error =
            matches!(json_fields::text_field(call, "status"), Some("error" | "cancelled"));
        let mut result = entries::tool_result(id, texts.join("\n"), is_error);
        result.tool_name = name.map(str::to_owned);
        result.created_at = request.created_at;
        self.is_first_result(&result);
        vec![request, result]
    }

    /// Whether this is the first result of its call. Notes it as emitted.
    fn is_first_result(&mut self, result: &Entry) -> bool {
        result.tool_call_id.as_ref().is_none_or(|id| self.emitted_results.insert(id))
    }
}

fn is_prompt(text: &str) -> bool {
    let text = text.trim_start();
    !text.is_empty() && !NON_PROMPT_PREFIXES.iter().any(|start| text.starts_with(start))
}

fn thinking_entry(thought: &Value) -> Option<Entry> {
    let thought = thought.as_object()?;
    let texts = ["subject", "description"]
        .iter()
        .filter_map(|field| json_fields::text_field(thought, field));
    let text = texts.filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n");
    let mut entry = Entry::new(Role::Assistant, EntryKind::Thinking, text);
    entry.created_at = json_fields::time_field(thought, "timestamp");
    Some(entry)
}

fn notice_entries(message: &Object, kind: EntryKind) -> Vec<Entry> {
    let content = message.get("content").unwrap_or(&Value::Null);
    vec![Entry::new(Role::System, kind, gemini_parts::joined_text(content))]
}

/// Parses usage. Gemini includes cached tokens in `input`, but not thoughts in `output`.
fn parse_usage(tokens: &Object) -> Usage {
    let count = |field| json_fields::count_field(tokens, field);
    Usage {
        input: count("input").saturating_sub(count("cached")) + count("tool"),
        cache_read: count("cached"),
        output: count("output") + count("thoughts"),
        reasoning: count("thoughts"),
        ..Usage::default()
    }
}
