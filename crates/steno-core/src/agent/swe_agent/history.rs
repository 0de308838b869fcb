//! Decodes the messages of a run, in the roles that the model saw.

use super::super::fields::{as_count, from_millis, items, plain, string, unpacked};
use super::super::output::Output;
use crate::agent::attachment;
use crate::entry::{Entry, EntryError, Kind, Role, Usage};
use crate::json::{Object, Value};

/// Decodes messages in order.
pub(super) struct History<'a, 'b> {
    pub(super) output: &'a mut Output<'b>,
    /// Ids of calls without a result yet.
    open_calls: Vec<String>,
    answered: bool,
}

impl<'a, 'b> History<'a, 'b> {
    pub(super) fn new(output: &'a mut Output<'b>) -> Self {
        Self { output, open_calls: Vec::new(), answered: false }
    }

    /// Decodes the message at `index`.
    pub(super) fn message(&mut self, index: usize, message: &Value) -> Result<(), String> {
        if !message.is_object() {
            return Err(EntryError::NotAnObject.to_string());
        }
        let text = text(&message["content"]);
        let is_demo = message["is_demo"].as_bool() == Some(true);
        match message["role"].as_str().unwrap_or_default() {
            role if is_demo => self.push(message, Entry::new(role.into(), Kind::Notice, text)),
            "system" => self.push(message, Entry::new(Role::System, Kind::Text, text)),
            "assistant" => self.answer(index, message, text),
            "tool" => self.result(message, text),
            "user" if !self.open_calls.is_empty() => self.result(message, text),
            // User messages after the first answer come from the program.
            "user" if self.answered => {
                self.push(message, Entry::new(Role::User, Kind::Notice, text))
            }
            "user" => self.push(message, Entry::new(Role::User, Kind::Text, text)),
            _ => self.unknown(message, text),
        }
        Ok(())
    }

    fn answer(&mut self, index: usize, message: &Value, content: String) {
        self.answered = true;
        self.open_calls.clear();
        let mut entries: Vec<Entry> = thoughts(message)
            .map(|thought| Entry::new(Role::Assistant, Kind::Thinking, thought))
            .collect();
        let calls = calls(index, message, &content);
        let text = message["thought"].as_str().filter(|_| !calls.is_empty()).unwrap_or(&content);
        if !text.trim().is_empty() || (calls.is_empty() && entries.is_empty()) {
            entries.push(Entry::new(Role::Assistant, Kind::Text, text));
        }
        entries.extend(calls);
        let response = &message["extra"]["response"];
        entries[0].usage = usage(&response["usage"]);
        for mut entry in entries {
            entry.model = string(&response["model"]);
            entry.message_id = Some(format!("message-{index}"));
            self.open_calls.extend(entry.tool_call_id.clone());
            self.push(message, entry);
        }
    }

    fn result(&mut self, message: &Value, text: String) {
        let stated_id = items(&message["tool_call_ids"]).first().or(message.get("tool_call_id"));
        let id = stated_id.and_then(string).or_else(|| self.open_calls.first().cloned());
        self.open_calls.retain(|open| Some(open) != id.as_ref());
        let mut entry = Entry::new(Role::Tool, Kind::ToolResult, text);
        entry.tool_call_id = id;
        self.push(message, entry);
    }

    fn unknown(&mut self, message: &Value, text: String) {
        let mut entry = Entry::new(Role::System, Kind::Other, text);
        entry.metadata = message.as_object().cloned();
        self.push(message, entry);
    }

    fn push(&mut self, message: &Value, mut entry: Entry) {
        let seconds = &message["extra"]["timestamp"];
        entry.created_at = seconds.as_f64().and_then(|seconds| from_millis((seconds * 1e3) as i64));
        self.output.entry(entry);
    }
}

/// The text of a message with a string or a list of parts as content.
fn text(content: &Value) -> String {
    let Value::Array(parts) = content else { return plain(content) };
    let parts = parts.iter().map(|part| match part["image_url"]["url"].as_str() {
        Some(url) => attachment::url("image", url),
        None => part["text"].as_str().map_or_else(|| part.to_string(), str::to_owned),
    });
    parts.collect::<Vec<_>>().join("\n")
}

fn thoughts(message: &Value) -> impl Iterator<Item = String> {
    let blocks = items(&message["thinking_blocks"]).iter();
    let blocks = blocks.filter_map(|block| string(&block["thinking"]));
    let reasoning = string(&message["reasoning_content"]).filter(|text| !text.is_empty());
    let mut thoughts: Vec<_> = blocks.collect();
    if thoughts.is_empty() {
        thoughts.extend(reasoning);
    }
    thoughts.into_iter()
}

/// The tool calls of an answer: those stated, or else the command parsed from its text.
fn calls(index: usize, message: &Value, content: &str) -> Vec<Entry> {
    let tool_calls = items(&message["tool_calls"]);
    if !tool_calls.is_empty() {
        return tool_calls.iter().map(stated_call).collect();
    }
    let actions: Vec<String> = match items(&message["extra"]["actions"]) {
        [] => string(&message["action"]).or_else(|| fenced_command(content)).into_iter().collect(),
        actions => actions.iter().filter_map(|action| string(&action["command"])).collect(),
    };
    let actions = actions.iter().filter(|action| !action.trim().is_empty()).enumerate();
    actions.map(|(part, action)| command(action, format!("action-{index}.{part}"))).collect()
}

fn stated_call(call: &Value) -> Entry {
    let mut entry = Entry::new(Role::Assistant, Kind::ToolCall, "");
    entry.tool_call_id = string(&call["id"]);
    entry.tool_name = string(&call["function"]["name"]);
    entry.tool_input = Some(unpacked(&call["function"]["arguments"]));
    entry
}

/// A tool call for a command line. Its first word is the tool name.
pub(super) fn command(line: &str, id: String) -> Entry {
    let mut entry = Entry::new(Role::Assistant, Kind::ToolCall, "");
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
fn usage(counts: &Value) -> Option<Usage> {
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
