//! Decodes events, which Codex writes for display. Most repeat a response item and are skipped.

use crate::decoding::{entries, json_fields};
use steno_model::entry::{Entry, EntryKind, Role};
use steno_model::json::{JsonStyle, Object, Value};

/// Events that repeat a response item or another record, or that only report progress.
const REPEATED_EVENTS: [&str; 28] = [
    "agent_message",
    "agent_reasoning",
    "agent_reasoning_raw_content",
    "agent_reasoning_section_break",
    "context_compacted",
    "dynamic_tool_call_request",
    "dynamic_tool_call_response",
    "exec_command_begin",
    "exec_command_end",
    "guardian_assessment",
    "image_generation_begin",
    "image_generation_end",
    "item_completed",
    "item_started",
    "mcp_tool_call_begin",
    "mcp_tool_call_end",
    "patch_apply_begin",
    "patch_apply_end",
    "sub_agent_activity",
    "task_complete",
    "task_started",
    "thread_goal_updated",
    "thread_settings_applied",
    "turn_complete",
    "turn_started",
    "view_image_tool_call",
    "web_search_begin",
    "web_search_end",
];

/// Events with content that no response item has.
const NOTICE_EVENTS: [&str; 6] = [
    "turn_aborted",
    "thread_rolled_back",
    "entered_review_mode",
    "exited_review_mode",
    "undo_completed",
    "warning",
];

/// Whether the event repeats other records.
pub(super) fn is_repeated(kind: &str) -> bool {
    REPEATED_EVENTS.contains(&kind) || kind.starts_with("collab_")
}

/// Decodes an event into an entry.
pub(super) fn decode_event(kind: &str, event: Object) -> Entry {
    match kind {
        "error" | "stream_error" => event_entry(EntryKind::Error, event),
        _ if NOTICE_EVENTS.contains(&kind) => event_entry(EntryKind::Notice, event),
        _ => entries::unknown_entry(event),
    }
}

fn event_entry(kind: EntryKind, event: Object) -> Entry {
    let mut entry = Entry::new(Role::System, kind, event_text(&event));
    entry.metadata = Some(event);
    entry
}

fn event_text(event: &Object) -> String {
    let inner = event.get("error").and_then(|error| error.get("message")).and_then(Value::as_str);
    match json_fields::text_field(event, "message").or(inner) {
        Some(message) => message.to_owned(),
        None => {
            let rest = event.iter().filter(|(field, _)| *field != "turn_id");
            let rest: Object = rest.map(|(field, value)| (field.clone(), value.clone())).collect();
            JsonStyle::COMPACT.print(&rest)
        }
    }
}
