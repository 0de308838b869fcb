//! Tool calls. Announcements, updates and permission requests of one tool call are merged into one call entry and one
//! result entry.

use std::collections::HashSet;

use super::super::content_block;
use super::AcpConversationBuilder;
use super::terminal::AcpTerminal;
use crate::decoding::{entries, json_fields};
use steno_model::entry::Entry;
use steno_model::json::{Object, Value};

/// State of a tool call.
#[derive(Clone, Debug)]
pub(super) struct AcpToolCall {
    call: usize,
    result: Option<usize>,
    content: Value,
    output: Value,
    /// Output that arrives in `_meta` of the updates.
    streamed_output: String,
}

impl AcpToolCall {
    /// The tool call without a repeated result. `None` if the call itself is repeated.
    pub(super) fn without_repeated(self, repeated: &HashSet<usize>) -> Option<Self> {
        let result = self.result.filter(|at| !repeated.contains(at));
        (!repeated.contains(&self.call)).then_some(Self { result, ..self })
    }
}

/// Fields of a tool call kept in the metadata of its entry.
const CALL_METADATA_FIELDS: [&str; 4] = ["title", "kind", "status", "locations"];

impl AcpConversationBuilder {
    /// Applies an update. Its fields replace earlier ones, missing fields stay.
    pub(super) fn update_tool(&mut self, update: &Object) {
        let Some(id) = json_fields::text_field(update, "toolCallId") else {
            self.add_unknown(update.clone());
            return;
        };
        self.open_message = None;
        let mut tool = match self.tools.remove(id) {
            Some(tool) => tool,
            None => self.start_tool(id),
        };
        let empties = self.is_version_2();
        let field_value =
            |field: &str| update.get(field).filter(|value| empties || !value.is_null());
        if let Some(content) = field_value("content") {
            tool.content = content.clone();
        }
        if let Some(output) = field_value("rawOutput") {
            tool.output = output.clone();
        }
        if let Some(meta) = field_value("_meta") {
            tool.streamed_output.push_str(terminal_output_delta(meta));
        }
        let call = &mut self.entries[tool.call];
        describe_call(call, update);
        if let Some(meta) = update.get("_meta").filter(|meta| !meta.is_null()) {
            self.note_meta(tool.call, meta);
        }
        name_tool(&mut self.entries[tool.call], update);
        let call = &mut self.entries[tool.call];
        if let Some(parent) = update.get("_meta").and_then(parent_tool_call) {
            call.source = format!("subagent:{parent}");
        }
        let is_done =
            matches!(json_fields::text_field(update, "status"), Some("completed" | "failed"));
        self.tools.insert(id.to_owned(), tool);
        if is_done {
            self.add_result(id);
        }
    }

    /// Appends a chunk to the content of a tool call.
    pub(super) fn append_tool_content(&mut self, update: &Object) {
        let Some(id) = json_fields::text_field(update, "toolCallId") else { return };
        let piece = Object::from_iter([("toolCallId".to_owned(), id.into())]);
        self.update_tool(&piece);
        if let (Some(tool), Some(content)) = (self.tools.get_mut(id), update.get("content")) {
            match &mut tool.content {
                Value::Array(all) => all.push(content.clone()),
                other => *other = Value::Array(vec![content.clone()]),
            }
        }
    }

    fn start_tool(&mut self, id: &str) -> AcpToolCall {
        let call = self.push_entry(entries::tool_call(None, Some(id), None));
        let pieces = String::new();
        AcpToolCall {
            call,
            result: None,
            content: Value::Null,
            output: Value::Null,
            streamed_output: pieces,
        }
    }

    /// Adds an empty result entry when the tool first reports its end. `fill_results` writes the text after the last
    /// line, because any update may still change it.
    fn add_result(&mut self, id: &str) {
        let Some(tool) = self.tools.get(id) else { return };
        let at = tool.result.unwrap_or_else(|| {
            let result = entries::tool_result(Some(id), String::new(), false);
            self.push_entry(result)
        });
        let entry = &mut self.entries[at];
        entry.created_at = self.at.or(entry.created_at);
        if let Some(tool) = self.tools.get_mut(id) {
            tool.result = Some(at);
        }
    }

    /// Fills in the text of all results, in the order of the calls.
    pub(super) fn fill_results(&mut self) {
        let mut shown_terminals = HashSet::new();
        for id in self.tool_ids_in_call_order() {
            if let Some(tool) = self.tools.remove(&id) {
                self.fill_result(&id, &tool, &mut shown_terminals);
            }
        }
    }

    fn fill_result(&mut self, id: &str, tool: &AcpToolCall, shown_terminals: &mut HashSet<String>) {
        let Some(at) = tool.result else { return };
        let text = self.tool_output(tool, shown_terminals);
        let call = &self.entries[tool.call];
        let status = call.metadata.as_ref().and_then(|about| about.get("status"));
        let failed = status.and_then(Value::as_str) == Some("failed");
        let mut result = entries::tool_result(Some(id), text, failed);
        result.created_at = self.entries[at].created_at;
        (result.tool_name, result.source) = (call.tool_name.clone(), call.source.clone());
        if let Some(terminal) = self.described_terminal(tool) {
            let about = result.metadata.get_or_insert_default();
            about.insert("terminal".to_owned(), terminal.details.clone().into());
        }
        self.entries[at] = result;
    }

    /// Finishes all tool calls, in the order of the calls.
    pub(super) fn finish_tools(&mut self) {
        let now = self.at;
        self.tool_ids_in_call_order().iter().for_each(|id| self.finish_tool(id));
        self.at = now;
    }

    /// The ids of all tool calls, in the order of the calls.
    fn tool_ids_in_call_order(&self) -> Vec<String> {
        let called = self.tools.iter().map(|(id, tool)| (tool.call, id));
        let mut called: Vec<_> = called.collect();
        called.sort_unstable();
        called.into_iter().map(|(_, id)| id.clone()).collect()
    }

    /// Finishes a tool call that reported no end: sets a final status and adds a result if there is output.
    fn finish_tool(&mut self, id: &str) {
        let Some(tool) = self.tools.get(id) else { return };
        let about = self.entries[tool.call].metadata.get_or_insert_default();
        let status = about.get("status").and_then(Value::as_str);
        if tool.result.is_none() && matches!(status, None | Some("pending" | "in_progress")) {
            let cancelled = self.facts.stop_reason.as_deref() == Some("cancelled");
            let status = if cancelled { "cancelled" } else { "unknown" };
            about.insert("status".to_owned(), status.into());
        }
        if tool.result.is_none() && self.has_tool_output(tool) {
            self.at = self.entries[tool.call].created_at;
            self.add_result(id);
        }
    }

    /// The terminal that a tool call shows, if more than its output is known.
    fn described_terminal(&self, tool: &AcpToolCall) -> Option<&AcpTerminal> {
        let mut parts = json_fields::list_items(&tool.content).iter().filter_map(Value::as_object);
        let id = parts.find_map(|part| json_fields::text_field(part, "terminalId"))?;
        self.terminals.get(id).filter(|terminal| !terminal.details.is_empty())
    }

    /// The output of a tool call, from whichever field its agent uses.
    fn tool_output(&self, tool: &AcpToolCall, shown_terminals: &mut HashSet<String>) -> String {
        let mut text = String::new();
        for part in json_fields::list_items(&tool.content).iter().filter(|part| part.is_object()) {
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            match self.shown_terminal(part) {
                Some((id, terminal))
                    if terminal.is_long() && !shown_terminals.insert(id.to_owned()) =>
                {
                    text.push_str("(this terminal is shown above)");
                }
                Some((_, terminal)) => text.push_str(&terminal.text()),
                None => text.push_str(&tool_part_text(part)),
            }
        }
        if !text.is_empty() {
            return text;
        }
        let pieces = Some(tool.streamed_output.clone()).filter(|pieces| !pieces.is_empty());
        pieces.unwrap_or_else(|| json_fields::plain_text(&tool.output))
    }

    /// Whether a tool call has any output.
    fn has_tool_output(&self, tool: &AcpToolCall) -> bool {
        let parts = json_fields::list_items(&tool.content).iter().filter(|part| part.is_object());
        let mut is_empty = parts.map(|part| match self.shown_terminal(part) {
            Some((_, terminal)) => terminal.is_empty(),
            None => tool_part_text(part).is_empty(),
        });
        !is_empty.all(|is_empty| is_empty)
            || !tool.streamed_output.is_empty()
            || !json_fields::plain_text(&tool.output).is_empty()
    }

    /// The terminal that a part of a tool call's content refers to, and its id.
    fn shown_terminal<'a>(&'a self, part: &'a Value) -> Option<(&'a str, &'a AcpTerminal)> {
        let object = part
            .as_object()
            .filter(|part| json_fields::text_field(part, "type") == Some("terminal"))?;
        let id = json_fields::text_field(object, "terminalId")?;
        Some((id, self.terminals.get(id)?))
    }
}

/// The text of a part of a tool call's content. Empty for an unknown terminal.
fn tool_part_text(part: &Value) -> String {
    let Some(object) = part.as_object() else { return String::new() };
    match json_fields::text_field(object, "type") {
        Some("content") => {
            object.get("content").map(content_block::blocks_text).unwrap_or_default()
        }
        Some("diff") => content_block::diff_text(object),
        Some("terminal") => String::new(),
        _ => content_block::block_text(part),
    }
}

/// Copies the fields of an update into the call entry.
fn describe_call(call: &mut Entry, update: &Object) {
    let field_value = |field: &str| update.get(field).filter(|value| !value.is_null());
    if let Some(input) = field_value("rawInput") {
        call.tool_input = Some(input.clone());
    }
    let about = call.metadata.get_or_insert_default();
    for field in CALL_METADATA_FIELDS {
        about.extend(field_value(field).map(|value| (field.to_owned(), value.clone())));
    }
}

/// Sets the tool's name: the stated name, else its kind, else its title.
fn name_tool(call: &mut Entry, update: &Object) {
    let field_value = |field: &str| update.get(field).filter(|value| !value.is_null());
    let about = call.metadata.get_or_insert_default();
    let named = update.get("_meta").and_then(meta_tool_name);
    let named =
        field_value("name").and_then(Value::as_str).or(named).filter(|name| !name.is_empty());
    let named = named.map(str::to_owned);
    let metadata_text = |field| about.get(field).and_then(Value::as_str).map(str::to_owned);
    let is_guess =
        call.tool_name == metadata_text("kind") || call.tool_name == metadata_text("title");
    if named.is_some() {
        call.tool_name = named;
    } else if call.tool_name.is_none() || is_guess {
        call.tool_name = metadata_text("kind").or(metadata_text("title"));
    }
}

/// The tool name in `_meta`, at the top level or inside an agent's own object.
fn meta_tool_name(meta: &Value) -> Option<&str> {
    let mut objects = std::iter::once(meta).chain(meta.as_object()?.values());
    objects.find_map(|object| object.get("toolName").or(object.get("tool_name"))?.as_str())
}

/// A chunk of terminal output in `_meta`.
fn terminal_output_delta(meta: &Value) -> &str {
    let delta = meta.get("terminal_output_delta").or(meta.get("terminal_output"));
    delta.and_then(|delta| delta.get("data")?.as_str()).unwrap_or_default()
}

/// The id of the tool call that started the subagent which made this call.
fn parent_tool_call(meta: &Value) -> Option<&str> {
    meta.get("claudeCode")?.get("parentToolUseId")?.as_str()
}
