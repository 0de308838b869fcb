//! Messages from other contexts, and how they are prepended to a prompt.

use serde::Serialize;
use uuid::Uuid;

use super::line_conversion::chibi_fields_mut;
use super::unix_second::UnixSecond;
use steno_model::entry::{Entry, EntryError, EntryKind, Role, take_string};
use steno_model::json::{JsonStyle, Object, Value};

/// The file's name in a context's folder.
pub(super) const INBOX_FILE: &str = "inbox.jsonl";

/// One line of `inbox.jsonl`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InboxMessage {
    /// A UUID, in all that chibi wrote.
    pub id: String,
    /// Seconds since the Unix epoch.
    pub timestamp: UnixSecond,
    /// The sending context.
    pub from: String,
    /// The receiving context.
    pub to: String,
    /// The text.
    pub content: String,
}

impl InboxMessage {
    /// Parses a message. All five fields are required.
    pub fn from_object(mut object: Object) -> Result<Self, EntryError> {
        let mut text =
            |field| take_string(&mut object, field)?.ok_or(EntryError::MissingField(field));
        Ok(Self {
            id: text("id")?,
            from: text("from")?,
            to: text("to")?,
            content: text("content")?,
            timestamp: UnixSecond::take_from(&mut object)?,
        })
    }

    /// Renders the message as chibi does, with a final newline.
    pub fn to_line(&self) -> String {
        JsonStyle::COMPACT.print(self) + "\n"
    }
}

/// Prepends messages to a prompt. The result is what the model receives and what the user's entry stores.
pub fn prepend_messages(messages: &[InboxMessage], prompt: &str) -> String {
    if messages.is_empty() {
        return prompt.to_owned();
    }
    let mut text = "--- INBOX MESSAGES ---\n".to_owned();
    for message in messages {
        text.push_str(&format!("[From: {}] {}\n", message.from, message.content));
    }
    text + "--- END INBOX ---\n\n" + prompt
}

/// Converts an undelivered message to a notice, which keeps the whole line.
pub(super) fn entry_from_inbox_line(object: Object) -> Result<Entry, EntryError> {
    let message = InboxMessage::from_object(object.clone())?;
    let mut entry = Entry::new(Role::User, EntryKind::Notice, message.content);
    entry.created_at = message.timestamp.to_timestamp();
    entry.entry_id = Uuid::parse_str(&message.id).unwrap_or_default();
    let native = chibi_fields_mut(&mut entry);
    native.insert("file".to_owned(), INBOX_FILE.into());
    native.insert("line".to_owned(), Value::Object(object));
    Ok(entry)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn puts_messages_before_the_prompt() {
        let message = |from: &str, content: &str| InboxMessage {
            id: "i".to_owned(),
            timestamp: 1.into(),
            from: from.to_owned(),
            to: "default".to_owned(),
            content: content.to_owned(),
        };
        assert_eq!(prepend_messages(&[], "Go"), "Go");
        assert_eq!(
            prepend_messages(&[message("main", "one"), message("b", "two\nlines")], "Go"),
            "--- INBOX MESSAGES ---\n[From: main] one\n[From: b] two\nlines\n--- END INBOX ---\n\nGo"
        );
        assert_eq!(
            message("a", "x").to_line(),
            "{\"id\":\"i\",\"timestamp\":1,\"from\":\"a\",\"to\":\"default\",\"content\":\"x\"}\n"
        );
    }
}
