//! Decodes message blocks of Anthropic's API, also as stored by agents built on it.

use crate::agent::attachment;
use crate::agent::entries::{tool_call, tool_result, unknown};
use crate::agent::fields::{list, object, text};
use crate::agent::record;
use crate::entry::{Entry, Kind, Role};
use crate::json::{Object, Value};

/// The entries of a message's content, which is a text or a list of blocks.
pub(crate) fn entries(message: &Object, role: &Role) -> Vec<Entry> {
    match message.get("content") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(_)) => {
            list(message, "content").iter().map(|block| entry(block, role)).collect()
        }
        Some(content) => vec![Entry::new(role.clone(), Kind::Text, record::said(content))],
    }
}

fn entry(value: &Value, role: &Role) -> Entry {
    let Some(block) = value.as_object() else {
        return Entry::new(role.clone(), Kind::Text, record::said(value));
    };
    let text_entry =
        |kind, field| Entry::new(role.clone(), kind, text(block, field).unwrap_or_default());
    match text(block, "type") {
        Some("text") => text_entry(Kind::Text, "text"),
        Some("thinking") => text_entry(Kind::Thinking, "thinking"),
        Some("tool_use") => tool_call(text(block, "name"), text(block, "id"), block.get("input")),
        Some("tool_result") => result(block),
        Some("image") => Entry::new(role.clone(), Kind::Text, image(block)),
        _ => unknown(block.clone()),
    }
}

/// Decodes a tool result. Amp nests it in the field `run`.
fn result(block: &Object) -> Entry {
    let id = text(block, "tool_use_id").or_else(|| text(block, "toolUseID"));
    let Some(run) = object(block, "run") else {
        let failed = block.get("is_error").and_then(Value::as_bool) == Some(true);
        return tool_result(id, block.get("content").map(record::said).unwrap_or_default(), failed);
    };
    let result = run.get("result").or_else(|| run.get("error")).unwrap_or(&Value::Null);
    let inner = ["content", "output"].iter().find_map(|field| result.get(*field));
    let failed = text(run, "status").is_some_and(|status| status != "done");
    tool_result(id, record::said(inner.unwrap_or(result)), failed)
}

fn image(block: &Object) -> String {
    let source = object(block, "source").unwrap_or(block);
    let mime = ["media_type", "mediaType", "mimeType"].iter().find_map(|name| text(source, name));
    match (text(source, "data"), text(source, "url").or_else(|| text(block, "sourcePath"))) {
        (Some(data), _) => attachment::media(mime, data),
        (None, location) => {
            format!("[{}, {}]", mime.unwrap_or("image"), location.unwrap_or("not in the file"))
        }
    }
}
