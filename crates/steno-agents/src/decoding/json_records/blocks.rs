//! Decodes message blocks of Anthropic's API, also as stored by agents built on it.

use crate::decoding::entries::{tool_call, tool_result, unknown_entry};
use crate::decoding::json_fields::{list_field, object_field, text_field};
use crate::decoding::{attachment, json_records};
use steno_model::entry::{Entry, EntryKind, Role};
use steno_model::json::{Object, Value};

/// The entries of a message's content, which is a text or a list of blocks.
pub(crate) fn content_entries(message: &Object, role: &Role) -> Vec<Entry> {
    match message.get("content") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(_)) => {
            list_field(message, "content").iter().map(|block| block_entry(block, role)).collect()
        }
        Some(content) => {
            vec![Entry::new(role.clone(), EntryKind::Text, json_records::value_text(content))]
        }
    }
}

fn block_entry(value: &Value, role: &Role) -> Entry {
    let Some(block) = value.as_object() else {
        return Entry::new(role.clone(), EntryKind::Text, json_records::value_text(value));
    };
    let text_entry =
        |kind, field| Entry::new(role.clone(), kind, text_field(block, field).unwrap_or_default());
    match text_field(block, "type") {
        Some("text") => text_entry(EntryKind::Text, "text"),
        Some("thinking") => text_entry(EntryKind::Thinking, "thinking"),
        Some("tool_use") => {
            tool_call(text_field(block, "name"), text_field(block, "id"), block.get("input"))
        }
        Some("tool_result") => result_block_entry(block),
        Some("image") => Entry::new(role.clone(), EntryKind::Text, image_text(block)),
        _ => unknown_entry(block.clone()),
    }
}

/// Decodes a tool result. Amp nests it in the field `run`.
fn result_block_entry(block: &Object) -> Entry {
    let id = text_field(block, "tool_use_id").or_else(|| text_field(block, "toolUseID"));
    let Some(run) = object_field(block, "run") else {
        let failed = block.get("is_error").and_then(Value::as_bool) == Some(true);
        return tool_result(
            id,
            block.get("content").map(json_records::value_text).unwrap_or_default(),
            failed,
        );
    };
    let result = run.get("result").or_else(|| run.get("error")).unwrap_or(&Value::Null);
    let inner = ["content", "output"].iter().find_map(|field| result.get(*field));
    let failed = text_field(run, "status").is_some_and(|status| status != "done");
    tool_result(id, json_records::value_text(inner.unwrap_or(result)), failed)
}

fn image_text(block: &Object) -> String {
    let source = object_field(block, "source").unwrap_or(block);
    let mime =
        ["media_type", "mediaType", "mimeType"].iter().find_map(|name| text_field(source, name));
    match (
        text_field(source, "data"),
        text_field(source, "url").or_else(|| text_field(block, "sourcePath")),
    ) {
        (Some(data), _) => attachment::describe_base64(mime, data),
        (None, location) => {
            format!("[{}, {}]", mime.unwrap_or("image"), location.unwrap_or("not in the file"))
        }
    }
}
