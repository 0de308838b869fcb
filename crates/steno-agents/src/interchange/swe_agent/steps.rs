//! Decodes the steps of a run without stored messages.

use super::history::command_entry;
use crate::decoding::entry_emitter::EntryEmitter;
use crate::decoding::json_fields::{owned_text, plain_text};
use steno_model::entry::{Entry, EntryKind, Role};
use steno_model::json::Value;

/// Emits thought, action and observation of the step at `index`.
pub(super) fn emit_step(index: usize, step: &Value, output: &mut EntryEmitter<'_>) {
    let message_id = Some(format!("step-{index}"));
    let thought = owned_text(&step["thought"]).or_else(|| owned_text(&step["response"]));
    if let Some(thought) = thought.filter(|text| !text.trim().is_empty()) {
        let mut entry = Entry::new(Role::Assistant, EntryKind::Text, thought);
        entry.message_id.clone_from(&message_id);
        output.emit_entry(entry);
    }
    let Some(action) = owned_text(&step["action"]).filter(|text| !text.trim().is_empty()) else {
        return;
    };
    let mut call = command_entry(&action, format!("action-{index}"));
    let mut result =
        Entry::new(Role::Tool, EntryKind::ToolResult, plain_text(&step["observation"]));
    result.tool_name.clone_from(&call.tool_name);
    result.tool_call_id.clone_from(&call.tool_call_id);
    call.message_id = message_id;
    output.emit_entry(call);
    output.emit_entry(result);
}
