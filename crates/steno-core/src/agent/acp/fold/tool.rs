//! Tools: everything that is told of one, by announcements, updates and requests for permission, is one call and
//! one result.

use std::collections::HashMap;

use super::super::block;
use super::Fold;
use super::saying::note;
use super::terminal::Terminal;
use crate::agent::entries;
use crate::agent::fields;
use crate::entry::{Entry, Kind, Role};
use crate::json::{Object, Value};

/// A tool that was called.
#[derive(Clone, Debug)]
pub(super) struct Tool {
    call: usize,
    result: Option<usize>,
    content: Value,
    output: Value,
    /// Output that comes in pieces beside the updates.
    pieces: String,
}

impl Tool {
    /// The same where its entries stand elsewhere; nothing where its call is gone.
    pub(super) fn moved(self, places: &HashMap<usize, usize>) -> Option<Self> {
        let call = *places.get(&self.call)?;
        let result = self.result.and_then(|at| places.get(&at).copied());
        Some(Self { call, result, ..self })
    }
}

/// The fields of a tool call that are kept beside it.
const BESIDE: [&str; 4] = ["title", "kind", "status", "locations"];

impl Fold {
    /// Takes what is told of a tool; what is told last holds, and what is not told stays.
    pub(super) fn tool(&mut self, update: &Object) {
        let Some(id) = fields::text(update, "toolCallId") else {
            self.other(update.clone());
            return;
        };
        self.open = None;
        let mut tool = match self.tools.remove(id) {
            Some(tool) => tool,
            None => self.called(id),
        };
        let empties = self.is_version_2();
        let told = |field: &str| update.get(field).filter(|value| empties || !value.is_null());
        if let Some(content) = told("content") {
            tool.content = content.clone();
        }
        if let Some(output) = told("rawOutput") {
            tool.output = output.clone();
        }
        if let Some(meta) = told("_meta") {
            tool.pieces.push_str(piece(meta));
        }
        let call = &mut self.entries[tool.call];
        describe(call, update);
        if let Some(parent) = update.get("_meta").and_then(parent) {
            call.source = format!("subagent:{parent}");
        }
        let is_done = matches!(fields::text(update, "status"), Some("completed" | "failed"));
        self.tools.insert(id.to_owned(), tool);
        if is_done {
            self.show_result(id);
        }
    }

    /// Adds a piece of a tool's content.
    pub(super) fn tool_piece(&mut self, update: &Object) {
        let Some(id) = fields::text(update, "toolCallId") else { return };
        let piece = Object::from_iter([("toolCallId".to_owned(), id.into())]);
        self.tool(&piece);
        if let (Some(tool), Some(content)) = (self.tools.get_mut(id), update.get("content")) {
            match &mut tool.content {
                Value::Array(all) => all.push(content.clone()),
                other => *other = Value::Array(vec![content.clone()]),
            }
        }
    }

    fn called(&mut self, id: &str) -> Tool {
        let call = self.push(entries::tool_call(None, Some(id), None));
        let pieces = String::new();
        Tool { call, result: None, content: Value::Null, output: Value::Null, pieces }
    }

    /// Writes down what a tool has answered by now.
    pub(super) fn show_result(&mut self, id: &str) {
        let Some(mut tool) = self.tools.remove(id) else { return };
        let text = self.output(&tool);
        let call = &self.entries[tool.call];
        let (name, source) = (call.tool_name.clone(), call.source.clone());
        let status = call.metadata.as_ref().and_then(|about| about.get("status")).cloned();
        let at = match tool.result {
            Some(at) => at,
            None => self.push(Entry::new(Role::Tool, Kind::ToolResult, "")),
        };
        tool.result = Some(at);
        let failed = status.as_ref().and_then(Value::as_str) == Some("failed");
        let mut result = entries::tool_result(Some(id), text, failed);
        result.created_at = self.at.or(self.entries[at].created_at);
        (result.tool_name, result.source) = (name, source);
        if let Some(terminal) = self.terminal_of(&tool) {
            let about = result.metadata.get_or_insert_default();
            about.insert("terminal".to_owned(), terminal.about.clone().into());
        }
        self.entries[at] = result;
        self.tools.insert(id.to_owned(), tool);
    }

    /// Settles all tools, in the order in which they were called.
    pub(super) fn settle_tools(&mut self) {
        let called = self.tools.iter().map(|(id, tool)| (tool.call, id.clone()));
        let mut called: Vec<_> = called.collect();
        called.sort();
        called.iter().for_each(|(_, id)| self.settle_tool(id));
    }

    /// A tool that never ended: what it has answered is shown, and its state is no longer to come.
    fn settle_tool(&mut self, id: &str) {
        let Some(tool) = self.tools.get(id) else { return };
        let about = self.entries[tool.call].metadata.get_or_insert_default();
        let status = about.get("status").and_then(Value::as_str);
        if tool.result.is_none() && matches!(status, None | Some("pending" | "in_progress")) {
            let cancelled = self.facts.stop_reason.as_deref() == Some("cancelled");
            let status = if cancelled { "cancelled" } else { "unknown" };
            about.insert("status".to_owned(), status.into());
        }
        if tool.result.is_some() || !self.output(tool).is_empty() {
            self.at = self.entries[tool.result.unwrap_or(tool.call)].created_at;
            self.show_result(id);
        }
    }

    /// The terminal that a tool shows, where something is told of it besides its output.
    fn terminal_of(&self, tool: &Tool) -> Option<&Terminal> {
        let mut parts = fields::items(&tool.content).iter().filter_map(Value::as_object);
        let id = parts.find_map(|part| fields::text(part, "terminalId"))?;
        self.terminals.get(id).filter(|terminal| !terminal.about.is_empty())
    }

    /// What a tool answered, from wherever its agent puts that.
    fn output(&self, tool: &Tool) -> String {
        let mut text = String::new();
        for part in fields::items(&tool.content) {
            let Some(object) = part.as_object() else { continue };
            let said = match fields::text(object, "type") {
                Some("content") => object.get("content").map(block::texts).unwrap_or_default(),
                Some("diff") => block::diff(object),
                Some("terminal") => {
                    let id = fields::text(object, "terminalId").unwrap_or_default();
                    self.terminals.get(id).map(Terminal::text).unwrap_or_default()
                }
                _ => block::text(part),
            };
            if !text.is_empty() && !text.ends_with('\n') {
                text.push('\n');
            }
            text.push_str(&said);
        }
        [text, tool.pieces.clone()]
            .into_iter()
            .find(|text| !text.is_empty())
            .unwrap_or_else(|| fields::plain(&tool.output))
    }
}

/// Fills in what an update says of a call.
fn describe(call: &mut Entry, update: &Object) {
    let told = |field: &str| update.get(field).filter(|value| !value.is_null());
    if let Some(input) = told("rawInput") {
        call.tool_input = Some(input.clone());
    }
    let about = call.metadata.get_or_insert_default();
    for field in BESIDE {
        about.extend(told(field).map(|value| (field.to_owned(), value.clone())));
    }
    if let Some(meta) = told("_meta") {
        note(about, meta);
    }
    let named = update.get("_meta").and_then(|meta| meta.get("claudeCode")?.get("toolName"));
    let named = told("name").or(named).and_then(Value::as_str).map(str::to_owned);
    let stated = |field| about.get(field).and_then(Value::as_str).map(str::to_owned);
    let is_guess = call.tool_name == stated("kind") || call.tool_name == stated("title");
    if named.is_some() {
        call.tool_name = named;
    } else if call.tool_name.is_none() || is_guess {
        call.tool_name = stated("kind").or(stated("title"));
    }
}

/// A piece of a terminal's output.
fn piece(meta: &Value) -> &str {
    let delta = meta.get("terminal_output_delta").or(meta.get("terminal_output"));
    delta.and_then(|delta| delta.get("data")?.as_str()).unwrap_or_default()
}

/// The call of the subagent that a tool was called by.
fn parent(meta: &Value) -> Option<&str> {
    meta.get("claudeCode")?.get("parentToolUseId")?.as_str()
}
