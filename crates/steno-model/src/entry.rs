//! The entry: one thing said or done in a session.
//!
//! In JSON, an entry has the ten fields of weakincentives' `TranscriptEntry`, then Steno's. Unknown fields stay in
//! [`Entry::extra`] and are written back.

mod fields;

use std::fmt;

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use uuid::Uuid;

use self::fields::{
    integer_field, object_field, string_field, timestamp_field, usage_field, uuid_field,
};
pub use self::fields::{take_object, take_string, take_timestamp, take_u64};
use crate::json::{Object, Value};
use crate::timestamp::Timestamp;
pub use crate::usage::Usage;

/// The source of everything that a session's main agent produces.
pub const PRIMARY_SOURCE: &str = "primary";

/// One thing said or done: text, thought, tool call, tool result, compaction, error or notice.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// Who produced it.
    pub role: Role,
    /// The text, the tool's arguments or the tool's output.
    pub content: String,
    /// When it was produced, if the format has times.
    pub created_at: Option<Timestamp>,
    /// The called tool.
    pub tool_name: Option<String>,
    /// Links a tool result to its call.
    pub tool_call_id: Option<String>,
    /// The structured arguments of a tool call.
    pub tool_input: Option<Value>,
    /// Further data from the provider.
    pub metadata: Option<Object>,
    /// Unique and stable: reading the same bytes again yields the same id.
    pub entry_id: Uuid,
    /// `primary`, or `subagent:<id>`.
    pub source: String,
    /// Counts up by one per source.
    pub sequence: u64,
    /// What the entry is.
    pub kind: EntryKind,
    /// The model that produced it.
    pub model: Option<String>,
    /// Shared by all entries of one API message.
    pub message_id: Option<String>,
    /// The record that this one follows, by the agent's own id.
    pub parent_id: Option<String>,
    /// Billed tokens of the message, on one of its entries only.
    pub usage: Option<Usage>,
    /// Fields of the record without a field above.
    pub extra: Object,
}

/// Who produced an entry.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Instructions to the model.
    System,
    /// The user, or a program in the user's place.
    User,
    /// The model.
    Assistant,
    /// A tool's result.
    Tool,
    /// A role that only the record's format has.
    Other(String),
}

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// Text of a message.
    Text,
    /// Reasoning of the model.
    Thinking,
    /// A tool call.
    ToolCall,
    /// The result of a tool call.
    ToolResult,
    /// The agent compacted its context here.
    Compaction,
    /// An error.
    Error,
    /// A message of the program, not of a participant.
    Notice,
    /// A record of unknown kind, kept whole.
    Other,
}

/// Why a record is not an entry.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntryError {
    /// A required field is missing.
    #[error("missing field: {0}")]
    MissingField(&'static str),
    /// A field has the wrong type.
    #[error("field {field}: expected {expected}")]
    WrongType {
        /// The field's name.
        field: &'static str,
        /// The expected type.
        expected: &'static str,
    },
    /// An unknown role, with the error message of weakincentives.
    #[error("role: expected one of ['system', 'user', 'assistant', 'tool']")]
    UnknownRole,
    /// The line is a JSON number, string or array.
    #[error("not a JSON object")]
    NotAnObject,
}

impl Entry {
    /// An entry without id and number; [`EntryNumbering::assign_number`](crate::numbering::EntryNumbering::assign_number) sets both.
    pub fn new(role: Role, kind: EntryKind, content: impl Into<String>) -> Self {
        Self {
            role,
            content: content.into(),
            created_at: None,
            tool_name: None,
            tool_call_id: None,
            tool_input: None,
            metadata: None,
            entry_id: Uuid::nil(),
            source: PRIMARY_SOURCE.to_owned(),
            sequence: 0,
            kind,
            model: None,
            message_id: None,
            parent_id: None,
            usage: None,
            extra: Object::new(),
        }
    }

    /// Parses Steno's JSON, or weakincentives', which has a subset of its fields.
    ///
    /// A missing `entry_id` stays nil. A missing `kind` is inferred from role and tool fields.
    pub fn from_object(object: Object) -> Result<Self, EntryError> {
        let mut entry = Entry::new(Role::System, EntryKind::Text, "");
        let (mut role, mut content, mut kind) = (None, None, None);
        // One pass over the fields: looking up each known field would cost more than parsing.
        for (name, value) in object {
            match name.as_str() {
                "role" => role = string_field("role", value)?,
                "content" => content = string_field("content", value)?,
                "created_at" => entry.created_at = timestamp_field("created_at", value)?,
                "tool_name" => entry.tool_name = string_field("tool_name", value)?,
                "tool_call_id" => entry.tool_call_id = string_field("tool_call_id", value)?,
                "tool_input" => entry.tool_input = Some(value).filter(|input| !input.is_null()),
                "metadata" => entry.metadata = object_field("metadata", value)?,
                "entry_id" => entry.entry_id = uuid_field("entry_id", value)?,
                "source" => {
                    if let Some(source) = string_field("source", value)? {
                        entry.source = source;
                    }
                }
                "sequence" => entry.sequence = integer_field("sequence", value)?.unwrap_or(0),
                "kind" => kind = string_field("kind", value)?,
                "model" => entry.model = string_field("model", value)?,
                "message_id" => entry.message_id = string_field("message_id", value)?,
                "parent_id" => entry.parent_id = string_field("parent_id", value)?,
                "usage" => entry.usage = usage_field("usage", value)?,
                _ => drop(entry.extra.insert(name, value)),
            }
        }
        entry.role = role.ok_or(EntryError::MissingField("role"))?.into();
        entry.content = match content {
            Some(content) => content,
            None if entry.tool_input.is_some() => String::new(),
            None => return Err(EntryError::MissingField("content")),
        };
        entry.kind = match kind {
            Some(name) => entry.kind_from_name(name),
            None => entry.implied_kind(),
        };
        Ok(entry)
    }

    /// Removes what JSON would not preserve: a null tool input, and extra fields with names of known fields.
    pub fn normalize(&mut self) {
        self.tool_input.take_if(|input| input.is_null());
        if !self.extra.is_empty() {
            ENTRY_FIELD_NAMES.iter().for_each(|name| drop(self.extra.shift_remove(*name)));
        }
    }

    /// The entry as a JSON object with all fields, in order.
    pub fn to_object(&self) -> Object {
        match serde_json::to_value(self) {
            Ok(Value::Object(object)) => object,
            _ => unreachable!("an entry serialises to an object"),
        }
    }

    /// The kind with this name. An unknown name is stored in the metadata.
    fn kind_from_name(&mut self, name: String) -> EntryKind {
        match serde_json::from_value(Value::String(name.clone())) {
            Ok(kind) => kind,
            Err(_) => {
                self.metadata
                    .get_or_insert_default()
                    .insert("kind".to_owned(), Value::String(name));
                EntryKind::Other
            }
        }
    }

    /// A short heading: `user`, `assistant thinking`, `tool call Read`.
    pub fn heading(&self) -> String {
        self.kind.heading(self.role.as_str(), self.tool_name.as_deref())
    }

    /// The text beside a tool call: the content, unless it only repeats the arguments.
    pub fn text_beside_call(&self) -> Option<&str> {
        let input = self.tool_input.as_ref().filter(|_| self.kind == EntryKind::ToolCall)?;
        let repeats =
            serde_json::from_str::<Value>(&self.content).is_ok_and(|value| value == *input);
        Some(self.content.as_str()).filter(|text| !text.is_empty() && !repeats)
    }

    /// Whether the entry reports a failed tool call.
    pub fn is_tool_error(&self) -> bool {
        let yes = Some(&Value::Bool(true));
        let marked = self.metadata.as_ref().is_some_and(|metadata| metadata.get("is_error") == yes);
        marked
            || self.extra.get("is_error") == yes
            || (self.kind == EntryKind::Error && self.tool_call_id.is_some())
    }

    /// The kind implied by role and tool fields, for formats without kinds.
    pub fn implied_kind(&self) -> EntryKind {
        match self.role {
            Role::Tool => EntryKind::ToolResult,
            Role::Assistant if self.tool_name.is_some() || self.tool_input.is_some() => {
                EntryKind::ToolCall
            }
            _ => EntryKind::Text,
        }
    }
}

/// The JSON names of all entry fields, weakincentives' ten first. Extra fields must not use them.
pub const ENTRY_FIELD_NAMES: [&str; 15] = [
    "role",
    "content",
    "created_at",
    "tool_name",
    "tool_call_id",
    "tool_input",
    "metadata",
    "entry_id",
    "source",
    "sequence",
    "kind",
    "model",
    "message_id",
    "parent_id",
    "usage",
];

impl Serialize for Entry {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("role", &self.role)?;
        map.serialize_entry("content", &self.content)?;
        map.serialize_entry("created_at", &self.created_at)?;
        map.serialize_entry("tool_name", &self.tool_name)?;
        map.serialize_entry("tool_call_id", &self.tool_call_id)?;
        map.serialize_entry("tool_input", &self.tool_input)?;
        map.serialize_entry("metadata", &self.metadata)?;
        map.serialize_entry("entry_id", &self.entry_id.hyphenated().to_string())?;
        map.serialize_entry("source", &self.source)?;
        map.serialize_entry("sequence", &self.sequence)?;
        map.serialize_entry("kind", &self.kind)?;
        map.serialize_entry("model", &self.model)?;
        map.serialize_entry("message_id", &self.message_id)?;
        map.serialize_entry("parent_id", &self.parent_id)?;
        map.serialize_entry("usage", &self.usage)?;
        for (key, value) in &self.extra {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

impl Role {
    /// The role's name in JSON.
    pub fn as_str(&self) -> &str {
        match self {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
            Role::Other(name) => name,
        }
    }
}

impl From<String> for Role {
    fn from(name: String) -> Self {
        match name.as_str() {
            "system" => Role::System,
            "user" => Role::User,
            "assistant" => Role::Assistant,
            "tool" => Role::Tool,
            _ => Role::Other(name),
        }
    }
}

impl From<&str> for Role {
    fn from(name: &str) -> Self {
        Role::from(name.to_owned())
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl Serialize for Role {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl EntryKind {
    /// The kind with this name, or [`EntryKind::Other`] if it is unknown.
    pub fn from_name(name: &str) -> Self {
        serde_json::from_value(Value::String(name.to_owned())).unwrap_or(EntryKind::Other)
    }

    /// The kind's name in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            EntryKind::Text => "text",
            EntryKind::Thinking => "thinking",
            EntryKind::ToolCall => "tool_call",
            EntryKind::ToolResult => "tool_result",
            EntryKind::Compaction => "compaction",
            EntryKind::Error => "error",
            EntryKind::Notice => "notice",
            EntryKind::Other => "other",
        }
    }

    /// A short heading for an entry of this kind.
    pub fn heading(self, role: &str, tool: Option<&str>) -> String {
        let mut words = match self {
            EntryKind::Text => role.to_owned(),
            EntryKind::ToolCall | EntryKind::ToolResult => self.to_string().replace('_', " "),
            kind => format!("{role} {kind}"),
        };
        if let Some(name) = tool {
            words.push(' ');
            words.push_str(name);
        }
        words
    }
}

impl fmt::Display for EntryKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> Object {
        match value {
            Value::Object(object) => object,
            _ => panic!("not an object"),
        }
    }

    #[test]
    fn unknown_fields_survive() {
        let given = json!({"role": "user", "content": "hi", "mood": {"a": [1.0]}, "kind": "text"});
        let entry = Entry::from_object(object(given)).unwrap();
        let again = Entry::from_object(entry.to_object()).unwrap();
        assert_eq!(again, entry);
        assert_eq!(again.to_object()["mood"], json!({"a": [1.0]}));
    }

    #[test]
    fn derives_the_kind_from_role_and_tool() {
        let call = json!({"role": "assistant", "tool_name": "Read", "tool_input": {"path": "x"}});
        assert_eq!(Entry::from_object(object(call)).unwrap().kind, EntryKind::ToolCall);
        let result = json!({"role": "tool", "content": "x"});
        assert_eq!(Entry::from_object(object(result)).unwrap().kind, EntryKind::ToolResult);
    }

    #[test]
    fn missing_and_wrong_fields_are_named() {
        let error = |value| Entry::from_object(object(value)).unwrap_err().to_string();
        assert_eq!(error(json!({"content": "x"})), "missing field: role");
        assert_eq!(error(json!({"role": "user"})), "missing field: content");
        assert_eq!(
            error(json!({"role": "user", "content": 5})),
            "field content: expected a string"
        );
        assert_eq!(
            error(json!({"role": "user", "content": "", "created_at": "soon"})),
            "field created_at: expected a timestamp"
        );
    }
}
