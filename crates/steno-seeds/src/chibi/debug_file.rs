//! Lines of `requests.jsonl` and `response_meta.jsonl`: the requests to the model, and usage and cost of its
//! responses.

use steno_model::entry::{Entry, EntryError, EntryKind, Role, Usage};
use steno_model::json::{JsonStyle, Object, Value, sort_keys};
use steno_model::timestamp::Timestamp;

use super::line_conversion::chibi_fields_mut;

/// One of the two debug files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChibiDebugFile {
    /// Request bodies.
    Requests,
    /// Usage and model of responses.
    Responses,
}

impl ChibiDebugFile {
    /// Both files.
    pub const ALL: [ChibiDebugFile; 2] = [ChibiDebugFile::Requests, ChibiDebugFile::Responses];

    /// The file's name in a context's folder.
    pub fn file_name(self) -> &'static str {
        match self {
            ChibiDebugFile::Requests => "requests.jsonl",
            ChibiDebugFile::Responses => "response_meta.jsonl",
        }
    }

    fn payload_field(self) -> &'static str {
        match self {
            ChibiDebugFile::Requests => "request",
            ChibiDebugFile::Responses => "response",
        }
    }

    /// Detects the file that a record belongs to by its fields.
    pub(super) fn detect(object: &Object) -> Option<Self> {
        let stamped = object.get("timestamp").is_some_and(Value::is_number);
        Self::ALL
            .into_iter()
            .find(|file| stamped && object.get(file.payload_field()).is_some_and(Value::is_object))
    }

    /// Returns an error if a record does not belong into this file.
    pub(super) fn check_record(self, object: Object) -> Result<Object, EntryError> {
        if Self::detect(&object) == Some(self) {
            Ok(object)
        } else {
            Err(EntryError::MissingField(self.payload_field()))
        }
    }

    /// Renders a line of this file with sorted keys, as chibi's JSON values print.
    pub(crate) fn render_line(self, body: &Value, timestamp: i64) -> String {
        let mut object = Object::new();
        object.insert(self.payload_field().to_owned(), sort_keys(body));
        object.insert("timestamp".to_owned(), timestamp.into());
        JsonStyle::COMPACT.print(&object) + "\n"
    }
}

/// Converts a debug line to a notice, which keeps the whole line.
pub(super) fn entry_from_debug_line(object: Object) -> Result<Entry, EntryError> {
    let file = ChibiDebugFile::detect(&object).ok_or(EntryError::MissingField("request"))?;
    let mut entry = Entry::new(Role::System, EntryKind::Notice, "");
    entry.created_at = line_seconds(&object).and_then(Timestamp::from_unix);
    match file {
        ChibiDebugFile::Requests => {
            entry.model = object["request"]["model"].as_str().map(str::to_owned);
            entry.content = "request".to_owned();
        }
        ChibiDebugFile::Responses => {
            attach_response(&mut entry, &object);
            entry.content = "response".to_owned();
        }
    }
    let native = chibi_fields_mut(&mut entry);
    native.insert("file".to_owned(), file.file_name().into());
    native.insert("line".to_owned(), Value::Object(object));
    Ok(entry)
}

/// Copies model, id and tokens of a response line into an entry.
pub(super) fn attach_response(entry: &mut Entry, line: &Object) {
    let Some(response) = line.get("response") else {
        return;
    };
    let text = |field: &str| response.get(field).and_then(Value::as_str).map(str::to_owned);
    entry.model = text("model");
    entry.message_id = text("id");
    entry.usage = response.get("usage").and_then(Value::as_object).map(usage_from_object);
}

/// The cost in a response line, in dollars.
pub(super) fn response_cost(line: &Object) -> Option<f64> {
    line.get("response")?.get("usage")?.get("cost")?.as_f64()
}

/// The time of a debug line, in seconds.
pub(super) fn line_seconds(line: &Object) -> Option<i64> {
    line.get("timestamp")?.as_i64()
}

fn usage_from_object(usage: &Object) -> Usage {
    let count = |field: &str| usage.get(field).and_then(Value::as_u64).unwrap_or(0);
    let detail = |group: &str, field: &str| {
        let details = usage.get(group).and_then(|details| details.get(field));
        details.and_then(Value::as_u64).unwrap_or(0)
    };
    let cached = detail("prompt_tokens_details", "cached_tokens");
    Usage {
        input: count("prompt_tokens").saturating_sub(cached),
        cache_read: cached,
        cache_write: 0,
        output: count("completion_tokens"),
        reasoning: detail("completion_tokens_details", "reasoning_tokens"),
        ..Usage::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn keys_are_sorted_at_every_depth() {
        let line =
            ChibiDebugFile::Requests.render_line(&json!({"b": [{"z": 1, "a": 2}], "a": null}), 7);
        assert_eq!(line, "{\"request\":{\"a\":null,\"b\":[{\"a\":2,\"z\":1}]},\"timestamp\":7}\n");
    }

    #[test]
    fn usage_counts_cached_tokens_once() {
        let line = json!({"timestamp": 5, "response": {"id": "r", "model": "m", "usage": {
            "prompt_tokens": 100, "completion_tokens": 20, "cost": 0.5,
            "prompt_tokens_details": {"cached_tokens": 60},
            "completion_tokens_details": {"reasoning_tokens": 8}}}});
        let line = line.as_object().unwrap().clone();
        assert_eq!(response_cost(&line), Some(0.5));
        let entry = entry_from_debug_line(line).unwrap();
        let expected = Usage {
            input: 40,
            cache_read: 60,
            cache_write: 0,
            output: 20,
            reasoning: 8,
            ..Usage::default()
        };
        assert_eq!(entry.usage, Some(expected));
        assert_eq!((entry.model.as_deref(), entry.message_id.as_deref()), (Some("m"), Some("r")));
        assert_eq!(entry.created_at.unwrap().unix_seconds(), 5);
    }
}
