//! Decodes the content of a message, which is the same in the database and in the older files.

use crate::agent::attachment;
use crate::agent::entries::{tool_call, tool_result};
use crate::agent::fields::filled;
use crate::agent::message::Message;
use crate::agent::output::Output;
use crate::entry::{Entry, Kind, Role};
use crate::json::Value;
use crate::timestamp::Timestamp;

/// One message as Goose stores it.
pub(super) struct Said {
    pub(super) id: Option<String>,
    pub(super) role: String,
    pub(super) content: Vec<Value>,
    pub(super) metadata: Value,
    pub(super) created_at: Option<Timestamp>,
    pub(super) model: Option<String>,
}

impl Said {
    /// Emits the message's entries.
    pub(super) fn hand_out(self, output: &mut Output<'_>) {
        let mut message = Message {
            id: self.id,
            model: self.model,
            created_at: self.created_at,
            ..Message::default()
        };
        let role = Role::from(self.role);
        // No person wrote text that only the model sees, such as the summary of a compaction.
        let is_hidden = self.metadata.get("userVisible") == Some(&Value::Bool(false));
        let kind = if is_hidden { Kind::Notice } else { Kind::Text };
        for block in self.content {
            add(&mut message, &role, kind, block);
        }
        match role {
            Role::Assistant if !is_hidden => output.answer(message),
            _ => output.message(message),
        }
    }
}

fn add(message: &mut Message, role: &Role, kind: Kind, block: Value) {
    let text = |name| filled(&block, name).unwrap_or_default();
    match text("type") {
        "text" => message.say(role.clone(), kind, text("text")),
        "thinking" => message.say(Role::Assistant, Kind::Thinking, text("thinking")),
        "reasoning" => message.say(Role::Assistant, Kind::Thinking, text("text")),
        "redactedThinking" => message.say(Role::Assistant, Kind::Thinking, ""),
        "image" => message.say(role.clone(), Kind::Notice, image(&block)),
        "toolRequest" | "frontendToolRequest" => message.push(request(&block)),
        "toolResponse" => message.push(response(&block)),
        "conversationCompacted" => message.say(Role::System, Kind::Compaction, text("msg")),
        "systemNotification" | "contextLengthExceeded" | "summarizationRequested" => {
            message.say(Role::System, Kind::Notice, text("msg"));
        }
        "toolConfirmationRequest" => message.say(Role::System, Kind::Notice, text("prompt")),
        _ => message.unknown(block),
    }
}

fn request(block: &Value) -> Entry {
    let call = block.get("toolCall").unwrap_or(&Value::Null);
    let value = call.get("value").unwrap_or(&Value::Null);
    let mut entry = tool_call(filled(value, "name"), filled(block, "id"), value.get("arguments"));
    if let Some(error) = filled(call, "error") {
        entry.metadata.get_or_insert_default().insert("error".to_owned(), error.into());
    }
    entry
}

/// The entry of a tool response: a list of blocks, in newer versions inside an object with `isError`.
fn response(block: &Value) -> Entry {
    let result = block.get("toolResult").unwrap_or(&Value::Null);
    let id = filled(block, "id");
    if let Some(error) = result.get("error") {
        let text = error.as_str().map_or_else(|| error.to_string(), str::to_owned);
        return tool_result(id, text, true);
    }
    let value = result.get("value").unwrap_or(&Value::Null);
    let blocks = value.get("content").unwrap_or(value).as_array();
    let texts: Vec<_> = blocks.into_iter().flatten().map(answer).collect();
    tool_result(id, texts.join("\n"), value.get("isError") == Some(&Value::Bool(true)))
}

fn answer(block: &Value) -> String {
    let resource = block.get("resource").and_then(|resource| filled(resource, "text"));
    match (filled(block, "text").or(resource), filled(block, "data")) {
        (Some(text), _) => text.to_owned(),
        (None, Some(_)) => image(block),
        (None, None) => String::new(),
    }
}

fn image(block: &Value) -> String {
    let mime = filled(block, "mimeType").or(filled(block, "mime_type"));
    attachment::media(mime, filled(block, "data").unwrap_or_default())
}
