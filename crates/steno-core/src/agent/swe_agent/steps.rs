//! Decodes the steps of a run without stored messages.

use super::super::fields::{plain, string};
use super::super::output::Output;
use super::history::command;
use crate::entry::{Entry, Kind, Role};
use crate::json::Value;

/// Emits thought, action and observation of the step at `index`.
pub(super) fn step(index: usize, step: &Value, output: &mut Output<'_>) {
    let message_id = Some(format!("step-{index}"));
    let thought = string(&step["thought"]).or_else(|| string(&step["response"]));
    if let Some(thought) = thought.filter(|text| !text.trim().is_empty()) {
        let mut entry = Entry::new(Role::Assistant, Kind::Text, thought);
        entry.message_id.clone_from(&message_id);
        output.entry(entry);
    }
    let Some(action) = string(&step["action"]).filter(|text| !text.trim().is_empty()) else {
        return;
    };
    let mut call = command(&action, format!("action-{index}"));
    let mut result = Entry::new(Role::Tool, Kind::ToolResult, plain(&step["observation"]));
    result.tool_name.clone_from(&call.tool_name);
    result.tool_call_id.clone_from(&call.tool_call_id);
    call.message_id = message_id;
    output.entry(call);
    output.entry(result);
}
