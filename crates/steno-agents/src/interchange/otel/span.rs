//! Parses spans of OTLP JSON and converts their attributes to plain JSON.

use crate::decoding::json_fields::{as_count, list_items, owned_text, plain_text, unpack_json};
use steno_model::entry::Usage;
use steno_model::json::{Object, Value};
use steno_model::timestamp::Timestamp;

/// One operation of a trace.
pub(super) struct OtelSpan {
    pub(super) trace: String,
    pub(super) id: String,
    pub(super) parent: String,
    pub(super) start: Option<Timestamp>,
    pub(super) end: Option<Timestamp>,
    pub(super) attributes: Object,
    /// Events by name, each with its attributes.
    pub(super) events: Vec<(String, Object)>,
    /// The status message, if the operation failed.
    pub(super) error: Option<String>,
}

impl OtelSpan {
    /// Parses a span of an OTLP document.
    pub(super) fn from_json(span: &Value) -> Self {
        let events = list_items(&span["events"]).iter();
        let status = &span["status"];
        let failed = status["code"] == "STATUS_CODE_ERROR" || as_count(&status["code"]) == 2;
        Self {
            trace: plain_text(&span["traceId"]),
            id: plain_text(&span["spanId"]),
            parent: plain_text(&span["parentSpanId"]),
            start: parse_unix_nanos(&span["startTimeUnixNano"]),
            end: parse_unix_nanos(&span["endTimeUnixNano"]),
            attributes: attribute_fields(&span["attributes"]),
            events: events
                .map(|event| (plain_text(&event["name"]), attribute_fields(&event["attributes"])))
                .collect(),
            error: failed.then(|| plain_text(&status["message"])),
        }
    }

    /// Whether the span has GenAI attributes.
    pub(super) fn is_genai(&self) -> bool {
        self.attributes.keys().any(|key| key.starts_with("gen_ai."))
    }

    /// The agent that the span invokes.
    pub(super) fn invoked_agent(&self) -> Option<String> {
        let names = ["gen_ai.agent.id", "gen_ai.agent.name"];
        let name = || names.iter().find_map(|name| self.text(name));
        (self.operation() == "invoke_agent").then(|| name().unwrap_or_else(|| self.id.clone()))
    }

    pub(super) fn operation(&self) -> String {
        self.text("gen_ai.operation.name").unwrap_or_default()
    }

    pub(super) fn text(&self, key: &str) -> Option<String> {
        self.attributes.get(key).and_then(owned_text)
    }

    /// A structured attribute, also if it is JSON in a string.
    pub(super) fn value(&self, key: &str) -> Value {
        self.attributes.get(key).map(unpack_json).unwrap_or_default()
    }

    pub(super) fn model(&self) -> Option<String> {
        self.text("gen_ai.response.model").or_else(|| self.text("gen_ai.request.model"))
    }

    /// The usage of the span. Cached tokens are part of the input and are subtracted.
    pub(super) fn usage(&self) -> Option<Usage> {
        let token_count = |names: &[&str]| {
            let mut keys = names.iter().map(|name| format!("gen_ai.usage.{name}"));
            keys.find_map(|key| self.attributes.get(&key).map(as_count))
        };
        let input = token_count(&["input_tokens", "prompt_tokens"]);
        let output = token_count(&["output_tokens", "completion_tokens"]);
        let cache_read = token_count(&["cache_read.input_tokens"]).unwrap_or(0);
        let cache_write = token_count(&["cache_creation.input_tokens"]).unwrap_or(0);
        if input.is_none() && output.is_none() {
            return None;
        }
        Some(Usage {
            input: input.unwrap_or(0).saturating_sub(cache_read).saturating_sub(cache_write),
            cache_read,
            cache_write,
            output: output.unwrap_or(0),
            reasoning: token_count(&["reasoning.output_tokens"]).unwrap_or(0),
            ..Usage::default()
        })
    }
}

/// Parses nanoseconds since the Unix epoch, given as a number or as text.
pub(super) fn parse_unix_nanos(nanos: &Value) -> Option<Timestamp> {
    let nanos: i128 = plain_text(nanos).parse().ok().filter(|nanos| *nanos > 0)?;
    Some(Timestamp::from_instant(jiff::Timestamp::from_nanosecond(nanos).ok()?, 9))
}

/// Attributes as an object.
pub(super) fn attribute_fields(attributes: &Value) -> Object {
    let fields = list_items(attributes).iter();
    fields.map(|field| (plain_text(&field["key"]), plain_value(&field["value"]))).collect()
}

/// Converts a tagged OTLP value to a plain one. OTLP writes integers as strings.
fn plain_value(value: &Value) -> Value {
    let Some((tag, inner)) = value.as_object().and_then(|value| value.iter().next()) else {
        return Value::Null;
    };
    match tag.as_str() {
        "intValue" => plain_text(inner).parse::<i64>().map_or(Value::Null, Value::from),
        "arrayValue" => list_items(&inner["values"]).iter().map(plain_value).collect(),
        "kvlistValue" => attribute_fields(&inner["values"]).into(),
        _ => inner.clone(),
    }
}
