//! Decodes the messages of a run, in the roles that the model saw.

use crate::decoding::attachment;
use crate::decoding::entry_emitter::EntryEmitter;
use crate::decoding::json_fields::{
    as_count, list_items, owned_text, plain_text, timestamp_from_millis, unpack_json,
};
use steno_model::entry::{Entry, EntryError, EntryKind, Role, Usage};
use steno_model::json::{Object, Value};

/// Decodes messages in order.
pub(super) struct SweAgentHistory<'a, 'b> {
    pub(super) output: &'a mut EntryEmitter<'b>,
    /// Ids of calls without a result yet.
    open_calls: Vec<String>,
    answered: bool,
}

impl<'a, 'b> SweAgentHistory<'a, 'b> {
    pub(super) fn new(output: &'a mut EntryEmitter<'b>) -> Self {
        Self { output, open_calls: Vec::new(), answered: false }
    }

    /// Decodes the message at `index`.
    pub(super) fn add_message(&mut self, index: usize, message: &Value) -> Result<(), String> {
        if !message.is_object() {
            return Err(EntryError::NotAnObject.to_string());
        }
        let text = content_text(&message["content"]);
        let is_demo = message["is_demo"].as_bool() == Some(true);
        match message["role"].as_str().unwrap_or_default() {
            role if is_demo => {
                self.emit_entry(message, Entry::new(role.into(), EntryKind::Notice, text))
            }
            "system" => self.emit_entry(message, Entry::new(Role::System, EntryKind::Text, text)),
            "assistant" => self.add_answer(index, message, text),
            "tool" => self.add_result(message, text),
            "user" if !self.open_calls.is_empty() => self.add_result(message, text),
            // User messages after the first answer come from the program.
            "user" if self.answered => {
                self.emit_entry(message, Entry::new(Role::User, EntryKind::Notice, text))
            }
            "user" => self.emit_entry(message, Entry::new(Role::User, EntryKind::Text, text)),
            _ => self.add_unknown(message, text),
        }
        Ok(())
    }

    fn add_answer(&mut self, index: usize, message: &Value, content: String) {
        self.answered = true;
        self.open_calls.clear();
        let mut entries: Vec<Entry> = message_thoughts(message)
            .map(|thought| Entry::new(Role::Assistant, EntryKind::Thinking, thought))
            .collect();
        let calls = message_calls(index, message, &content);
        let text = message["thought"].as_str().filter(|_| !calls.is_empty()).unwrap_or(&content);
        if !text.trim().is_empty() || (calls.is_empty() && entries.is_empty()) {
            entries.push(Entry::new(Role::Assistant, EntryKind::Text, text));
        }
        entries.extend(calls);
        let response = &message["extra"]["response"];
        entries[0].usage = response_usage(&response["usage"]);
        for mut entry in entries {
            entry.model = owned_text(&response["model"]);
            entry.message_id = Some(format!("message-{index}"));
            self.open_calls.extend(entry.tool_call_id.clone());
            self.emit_entry(message, entry);
        }
    }

    fn add_result(&mut self, message: &Value, text: String) {
        let stated_id =
            list_items(&message["tool_call_ids"]).first().or(message.get("tool_call_id"));
        let id = stated_id.and_then(owned_text).or_else(|| self.open_calls.first().cloned());
        self.open_calls.retain(|open| Some(open) != id.as_ref());
        let mut entry = Entry::new(Role::Tool, EntryKind::ToolResult, text);
        entry.tool_call_id = id;
        self.emit_entry(message, entry);
    }

    fn add_unknown(&mut self, message: &Value, text: String) {
        let mut entry = Entry::new(Role::System, EntryKind::Other, text);
        entry.metadata = message.as_object().cloned();
        self.emit_entry(message, entry);
    }

    fn emit_entry(&mut self, message: &Value, mut entry: Entry) {
        let seconds = &message["extra"]["timestamp"];
        entry.created_at =
            seconds.as_f64().and_then(|seconds| timestamp_from_millis((seconds * 1e3) as i64));
        self.output.emit_entry(entry);
    }
}

/// The text of a message with a string or a list of parts as content.
fn content_text(content: &Value) -> String {
    let Value::Array(parts) = content else { return plain_text(content) };
    let parts = parts.iter().map(|part| match part["image_url"]["url"].as_str() {
        Some(url) => attachment::describe_url("image", url),
        None => part["text"].as_str().map_or_else(|| part.to_string(), str::to_owned),
    });
    parts.collect::<Vec<_>>().join("\n")
}

fn message_thoughts(message: &Value) -> impl Iterator<Item = String> {
    let blocks = list_items(&message["thinking_blocks"]).iter();
    let blocks = blocks.filter_map(|block| owned_text(&block["thinking"]));
    let reasoning = owned_text(&message["reasoning_content"]).filter(|text| !text.is_empty());
    let mut thoughts: Vec<_> = blocks.collect();
    if thoughts.is_empty() {
        thoughts.extend(reasoning);
    }
    thoughts.into_iter()
}

/// The tool calls of an answer: those stated, or else the command parsed from its text.
fn message_calls(index: usize, message: &Value, content: &str) -> Vec<Entry> {
    let tool_calls = list_items(&message["tool_calls"]);
    if !tool_calls.is_empty() {
        return tool_calls.iter().map(tool_call_entry).collect();
    }
    let actions: Vec<String> = match list_items(&message["extra"]["actions"]) {
        [] => {
            owned_text(&message["action"]).or_else(|| fenced_command(content)).into_iter().collect()
        }
        actions => actions.iter().filter_map(|action| owned_text(&action["command"])).collect(),
    };
    let actions = actions.iter().filter(|action| !action.trim().is_empty()).enumerate();
    actions.map(|(part, action)| command_entry(action, format!("action-{index}.{part}"))).collect()
}

fn tool_call_entry(call: &Value) -> Entry {
    let mut entry = Entry::new(Role::Assistant, EntryKind::ToolCall, "");
    entry.tool_call_id = owned_text(&call["id"]);
    entry.tool_name = owned_text(&call["function"]["name"]);
    entry.tool_input = Some(unpack_json(&call["function"]["arguments"]));
    entry
}

/// A tool call for a command line. Its first word is the tool name.
pub(super) fn command_entry(line: &str, id: String) -> Entry {
    let mut entry = Entry::new(Role::Assistant, EntryKind::ToolCall, "");
    entry.tool_name = line.split_whitespace().next().map(str::to_owned);
    entry.tool_call_id = Some(id);
    entry.tool_input = Some(Object::from_iter([("command".to_owned(), line.into())]).into());
    entry
}

/// The command that mini-swe-agent parses from an answer: the only `bash` block.
fn fenced_command(content: &str) -> Option<String> {
    let (_, rest) = content.split_once("```bash\n")?;
    let (command, rest) = rest.split_once("\n```")?;
    (!rest.contains("```bash\n")).then(|| command.to_owned())
}

/// Parses OpenAI's counts. Cached tokens are part of the prompt tokens and are subtracted.
fn response_usage(counts: &Value) -> Option<Usage> {
    let counts = counts.as_object().map(|_| counts)?;
    let cache_read = as_count(&counts["prompt_tokens_details"]["cached_tokens"]);
    Some(Usage {
        input: as_count(&counts["prompt_tokens"]).saturating_sub(cache_read),
        cache_read,
        output: as_count(&counts["completion_tokens"]),
        reasoning: as_count(&counts["completion_tokens_details"]["reasoning_tokens"]),
        ..Usage::default()
    })
}
