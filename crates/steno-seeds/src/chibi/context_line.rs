//! One line of `context.jsonl`, as chibi's structs serialize it.
//!
//! Fields are in chibi's order; unknown fields follow at the end.

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::unix_second::UnixSecond;
use steno_model::entry::{EntryError, take_object, take_string};
use steno_model::json::{JsonStyle, Object};

/// One record of a context or a transcript.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ContextLine {
    /// A UUID, in all that chibi wrote.
    pub id: String,
    /// Seconds since the Unix epoch.
    pub timestamp: UnixSecond,
    /// A user, a context or a tool.
    pub from: String,
    /// A context, `user` or a tool.
    pub to: String,
    /// The message, the tool's arguments or the tool's result.
    pub content: String,
    /// `message`, `tool_call`, `tool_result`, `compaction` and others.
    pub entry_type: String,
    /// A compaction's summary and other data.
    pub metadata: Option<Object>,
    /// Links a tool result to its call.
    pub tool_call_id: Option<String>,
    /// `user`, `agent` or `system`; only late releases write it.
    pub role: Option<String>,
    /// Whether the message ends the turn; only late releases write it.
    pub flow_control: Option<bool>,
    /// Unknown fields.
    pub extra: Object,
}

impl ContextLine {
    /// Parses a record. The first six fields are required.
    pub fn from_object(mut object: Object) -> Result<Self, EntryError> {
        let mut text =
            |field| take_string(&mut object, field)?.ok_or(EntryError::MissingField(field));
        let mut line = ContextLine {
            id: text("id")?,
            from: text("from")?,
            to: text("to")?,
            content: text("content")?,
            entry_type: text("entry_type")?,
            ..ContextLine::default()
        };
        line.timestamp = UnixSecond::take_from(&mut object)?;
        line.metadata = take_object(&mut object, "metadata")?;
        line.tool_call_id = take_string(&mut object, "tool_call_id")?;
        line.role = take_string(&mut object, "role")?;
        line.flow_control = match object.shift_remove("flow_control") {
            None | Some(serde_json::Value::Null) => None,
            Some(value) => Some(value.as_bool().ok_or(EntryError::WrongType {
                field: "flow_control",
                expected: "true or false",
            })?),
        };
        line.extra = object;
        Ok(line)
    }

    /// Renders the record as chibi does, with a final newline.
    pub fn to_line(&self) -> String {
        JsonStyle::COMPACT.print(self) + "\n"
    }
}

impl Serialize for ContextLine {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &self.id)?;
        map.serialize_entry("timestamp", &self.timestamp)?;
        map.serialize_entry("from", &self.from)?;
        map.serialize_entry("to", &self.to)?;
        map.serialize_entry("content", &self.content)?;
        map.serialize_entry("entry_type", &self.entry_type)?;
        if let Some(metadata) = &self.metadata {
            map.serialize_entry("metadata", metadata)?;
        }
        if let Some(id) = &self.tool_call_id {
            map.serialize_entry("tool_call_id", id)?;
        }
        if let Some(role) = &self.role {
            map.serialize_entry("role", role)?;
        }
        if let Some(flow_control) = &self.flow_control {
            map.serialize_entry("flow_control", flow_control)?;
        }
        for (key, value) in &self.extra {
            map.serialize_entry(key, value)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Result<ContextLine, EntryError> {
        ContextLine::from_object(serde_json::from_str(text).unwrap())
    }

    #[test]
    fn every_field_comes_back_in_chibis_order() {
        let text = concat!(
            r#"{"id":"a","timestamp":1705123456,"from":"ünï","to":"default","content":"</a>\n\u0001","#,
            r#""entry_type":"message","metadata":{"summary":"s"},"tool_call_id":"t","role":"user","#,
            r#""flow_control":true,"mood":{"x":1.0}}"#,
            "\n"
        );
        assert_eq!(line(text).unwrap().to_line(), text);
        let shuffled =
            r#"{"to":"c","entry_type":"x","content":"","from":"b","timestamp":0,"id":"a"}"#;
        assert_eq!(
            line(shuffled).unwrap().to_line(),
            "{\"id\":\"a\",\"timestamp\":0,\"from\":\"b\",\"to\":\"c\",\"content\":\"\",\"entry_type\":\"x\"}\n"
        );
    }

    #[test]
    fn rejects_lines_that_chibi_rejects() {
        let error = |text: &str| line(text).unwrap_err().to_string();
        assert_eq!(error(r#"{"id":"a"}"#), "missing field: from");
        let rest = r#""id":"a","from":"b","to":"c","content":"","entry_type":"message""#;
        let soon = error(&format!("{{\"timestamp\":\"soon\",{rest}}}"));
        assert_eq!(soon, "field timestamp: expected a number");
    }

    #[test]
    fn times_keep_their_text() {
        for timestamp in ["-1", "1.50", "18446744073709551615", "-9e+99"] {
            let text = format!(
                "{{\"id\":\"a\",\"timestamp\":{timestamp},\"from\":\"b\",\"to\":\"c\",\"content\":\"\",\"entry_type\":\"message\"}}\n"
            );
            let read = line(&text).unwrap();
            assert_eq!(read.to_line(), text);
            let entry = super::super::line_conversion::entry_from_line(read);
            assert_eq!(
                super::super::line_conversion::line_from_entry(&entry, "c", 0).to_line(),
                text
            );
        }
    }
}
