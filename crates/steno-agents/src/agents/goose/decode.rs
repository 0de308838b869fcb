//! Decodes the content of a message, which is the same in the database and in the older files.

use crate::decoding::agent_message::AgentMessage;
use crate::decoding::attachment;
use crate::decoding::entries::{tool_call, tool_result};
use crate::decoding::entry_emitter::EntryEmitter;
use crate::decoding::json_fields::nonempty_text;
use steno_model::entry::{Entry, EntryKind, Role};
use steno_model::json::Value;
use steno_model::timestamp::Timestamp;

/// One message as Goose stores it.
pub(super) struct GooseMessage {
    pub(super) id: Option<String>,
    pub(super) role: String,
    pub(super) content: Vec<Value>,
    pub(super) metadata: Value,
    pub(super) created_at: Option<Timestamp>,
    pub(super) model: Option<String>,
}

impl GooseMessage {
    /// Emits the message's entries.
    pub(super) fn emit_entries(self, output: &mut EntryEmitter<'_>) {
        let mut message = AgentMessage {
            id: self.id,
            model: self.model,
            created_at: self.created_at,
            ..AgentMessage::default()
        };
        let role = Role::from(self.role);
        // No person wrote text that only the model sees, such as the summary of a compaction.
        let is_hidden = self.metadata.get("userVisible") == Some(&Value::Bool(false));
        let kind = if is_hidden { EntryKind::Notice } else { EntryKind::Text };
        for block in self.content {
            push_block(&mut message, &role, kind, block);
        }
        match role {
            Role::Assistant if !is_hidden => output.emit_answer(message),
            _ => output.emit_message(message),
        }
    }
}

fn push_block(message: &mut AgentMessage, role: &Role, kind: EntryKind, block: Value) {
    let text = |name| nonempty_text(&block, name).unwrap_or_default();
    match text("type") {
        "text" => message.add_text(role.clone(), kind, text("text")),
        "thinking" => message.add_text(Role::Assistant, EntryKind::Thinking, text("thinking")),
        "reasoning" => message.add_text(Role::Assistant, EntryKind::Thinking, text("text")),
        "redactedThinking" => message.add_text(Role::Assistant, EntryKind::Thinking, ""),
        "image" => message.add_text(role.clone(), EntryKind::Notice, describe_image(&block)),
        "toolRequest" | "frontendToolRequest" => message.push(tool_request_entry(&block)),
        "toolResponse" => message.push(tool_response_entry(&block)),
        "conversationCompacted" => {
            message.add_text(Role::System, EntryKind::Compaction, text("msg"))
        }
        "systemNotification" | "contextLengthExceeded" | "summarizationRequested" => {
            message.add_text(Role::System, EntryKind::Notice, text("msg"));
        }
        "toolConfirmationRequest" => {
            message.add_text(Role::System, EntryKind::Notice, text("prompt"))
        }
        _ => message.add_unknown(block),
    }
}

fn tool_request_entry(block: &Value) -> Entry {
    let call = block.get("toolCall").unwrap_or(&Value::Null);
    let value = call.get("value").unwrap_or(&Value::Null);
    let mut entry =
        tool_call(nonempty_text(value, "name"), nonempty_text(block, "id"), value.get("arguments"));
    if let Some(error) = nonempty_text(call, "error") {
        entry.metadata.get_or_insert_default().insert("error".to_owned(), error.into());
    }
    entry
}

/// The entry of a tool response: a list of blocks, in newer versions inside an object with `isError`.
fn tool_response_entry(block: &Value) -> Entry {
    let result = block.get("toolResult").unwrap_or(&Value::Null);
    let id = nonempty_text(block, "id");
    if let Some(error) = result.get("error") {
        let text = error.as_str().map_or_else(|| error.to_string(), str::to_owned);
        return tool_result(id, text, true);
    }
    let value = result.get("value").unwrap_or(&Value::Null);
    let blocks = value.get("content").unwrap_or(value).as_array();
    let texts: Vec<_> = blocks.into_iter().flatten().map(response_text).collect();
    tool_result(id, texts.join("\n"), value.get("isError") == Some(&Value::Bool(true)))
}

fn response_text(block: &Value) -> String {
    let resource = block.get("resource").and_then(|resource| nonempty_text(resource, "text"));
    match (nonempty_text(block, "text").or(resource), nonempty_text(block, "data")) {
        (Some(text), _) => text.to_owned(),
        (None, Some(_)) => describe_image(block),
        (None, None) => String::new(),
    }
}

fn describe_image(block: &Value) -> String {
    let mime = nonempty_text(block, "mimeType").or(nonempty_text(block, "mime_type"));
    attachment::describe_base64(mime, nonempty_text(block, "data").unwrap_or_default())
}
