//! Renders JSON as Go's `encoding/json` prints devflow's types: field order, omitted zeros, sorted maps.

use serde_json::Number;

use super::run::{DevflowRun, RunMetadata, RunTurn, TurnToolCall};
use steno_model::json::{JsonStyle, Object, Value, format_go_float};
use steno_model::timestamp::Timestamp;

/// The published shape that is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RunFileShape {
    /// The shape that devflow writes: `metadata` has `runId` and `turnCount`, and unknown fields are kept.
    #[default]
    Shipped,
    /// Exactly ADR-011: only the fields of its type definitions.
    Adr011,
}

/// Go's text for a time that was never set.
const GO_ZERO_TIME: &str = "0001-01-01T00:00:00Z";

impl DevflowRun {
    /// Renders `transcript.json`, without a final newline.
    pub fn to_json(&self, shape: RunFileShape) -> String {
        JsonStyle::GO_INDENT.print(&self.to_object(shape))
    }

    /// Renders `metadata.json`, without a final newline.
    pub fn metadata_json(&self, shape: RunFileShape) -> String {
        JsonStyle::GO_INDENT.print(&self.metadata_object(shape))
    }

    /// The metadata with the run's name and number of turns.
    pub fn metadata_object(&self, shape: RunFileShape) -> Object {
        let mut meta = self.metadata.clone();
        if meta.run_id.is_empty() {
            meta.run_id.clone_from(&self.run_id);
        }
        if !meta.extra.contains_key("turnCount") {
            meta.turn_count = Some(self.turn_count());
        }
        meta.to_object(shape)
    }

    fn to_object(&self, shape: RunFileShape) -> Object {
        let turns = self.turns.iter().map(|turn| turn.to_object(shape));
        let mut out = FieldWriter::new(shape, &self.extra);
        out.put_always("runId", self.run_id.as_str());
        out.put_always("metadata", self.metadata_object(shape));
        out.put_always("turns", turns.map(Value::Object).collect::<Vec<_>>());
        out.finish()
    }
}

impl RunMetadata {
    /// Converts the metadata to a JSON object.
    pub fn to_object(&self, shape: RunFileShape) -> Object {
        let mut out = FieldWriter::new(shape, &self.extra);
        if shape == RunFileShape::Shipped {
            out.put_text("runId", &self.run_id);
        }
        out.put_always("flowId", self.flow_id.as_str());
        out.put_text("nodeId", &self.node_id);
        out.put_unless_zero("input", sort_keys(&self.input).into());
        out.put_always("startedAt", format_time(self.started_at));
        out.put_unless_zero("endedAt", format_time(self.ended_at).into());
        out.put_always("status", self.status.as_str());
        out.put_always("totalTokensIn", self.total_tokens_in);
        out.put_always("totalTokensOut", self.total_tokens_out);
        out.put_always("totalCost", float_value(self.total_cost));
        if shape == RunFileShape::Shipped {
            out.put_always("turnCount", self.turn_count.unwrap_or(0));
        }
        out.put_text("error", &self.error);
        out.finish()
    }
}

impl RunTurn {
    /// Converts the turn to a JSON object.
    pub fn to_object(&self, shape: RunFileShape) -> Object {
        let calls = self.tool_calls.iter().map(|call| call.to_object(shape));
        let mut out = FieldWriter::new(shape, &self.extra);
        out.put_always("id", self.id);
        out.put_always("role", self.role.as_str());
        out.put_always("content", self.content.as_str());
        out.put_count("tokensIn", self.tokens_in);
        out.put_count("tokensOut", self.tokens_out);
        out.put_always("timestamp", format_time(self.timestamp));
        out.put_unless_zero("toolCalls", calls.map(Value::Object).collect());
        out.put_count("durationMs", self.duration_ms);
        out.finish()
    }
}

impl RunTurn {
    /// The turn as it is parsed back after printing: trailing zeros of its time are gone.
    pub(super) fn as_printed(&self) -> Self {
        let timestamp = self.timestamp.map(|at| at.to_rfc3339_nano().parse().unwrap_or(at));
        Self { timestamp, ..self.clone() }
    }
}

impl TurnToolCall {
    /// Converts the call to a JSON object.
    pub fn to_object(&self, shape: RunFileShape) -> Object {
        let mut out = FieldWriter::new(shape, &self.extra);
        out.put_text("id", &self.id);
        out.put_always("name", self.name.as_str());
        out.put_always("input", self.input.as_ref().map(sort_keys));
        out.put_text("output", &self.output);
        out.put_text("error", &self.error);
        out.finish()
    }
}

/// Sorts the keys bytewise at every depth, as Go does for a map.
pub(super) fn sort_keys(object: &Object) -> Object {
    let mut pairs: Vec<_> = object.iter().collect();
    pairs.sort_by_key(|(key, _)| key.as_bytes());
    pairs.into_iter().map(|(key, value)| (key.clone(), sort_value_keys(value))).collect()
}

fn sort_value_keys(value: &Value) -> Value {
    match value {
        Value::Object(object) => Value::Object(sort_keys(object)),
        Value::Array(items) => Value::Array(items.iter().map(sort_value_keys).collect()),
        other => other.clone(),
    }
}

pub(super) fn format_time(at: Option<Timestamp>) -> String {
    at.map_or_else(|| GO_ZERO_TIME.to_owned(), |at| at.to_rfc3339_nano())
}

/// Formats a number as Go does. Infinity and NaN become zero.
pub(super) fn float_value(value: f64) -> Value {
    let number = format_go_float(value).parse::<Number>();
    Value::Number(number.unwrap_or_else(|_| Number::from(0)))
}

/// Adds fields to an object in the order of the calls.
///
/// If a field's original value did not fit its type, such as a negative count, the original is written.
struct FieldWriter<'a> {
    shape: RunFileShape,
    /// Unknown fields, and original values that did not fit.
    extra: &'a Object,
    object: Object,
}

impl<'a> FieldWriter<'a> {
    fn new(shape: RunFileShape, extra: &'a Object) -> Self {
        Self { shape, extra, object: Object::new() }
    }

    fn put_always(&mut self, name: &str, value: impl Into<Value>) {
        let value = value.into();
        let kept = self
            .extra
            .get(name)
            .filter(|kept| is_zero_value(&value) || is_same_number(kept, &value));
        self.object.insert(name.to_owned(), kept.cloned().unwrap_or(value));
    }

    fn put_unless_zero(&mut self, name: &str, value: Value) {
        if !is_zero_value(&value) || self.extra.contains_key(name) {
            self.put_always(name, value);
        }
    }

    fn put_text(&mut self, name: &str, value: &str) {
        self.put_unless_zero(name, value.into());
    }

    fn put_count(&mut self, name: &str, value: u64) {
        self.put_unless_zero(name, value.into());
    }

    fn finish(mut self) -> Object {
        if self.shape == RunFileShape::Shipped {
            for (name, value) in self.extra {
                self.object.entry(name.clone()).or_insert_with(|| value.clone());
            }
        }
        self.object
    }
}

/// Whether a value equals an absent one.
fn is_zero_value(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty() || text == GO_ZERO_TIME,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

/// Whether two numbers are equal, regardless of their text.
fn is_same_number(kept: &Value, value: &Value) -> bool {
    kept.is_number() && kept.as_f64() == value.as_f64()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn maps_are_sorted_bytewise_at_every_depth() {
        let Value::Object(object) = json!({"é": 1, "b": {"z": 1, "a": [{"y": 1, "x": 2}]}, "B": 2})
        else {
            panic!("not an object");
        };
        assert_eq!(
            JsonStyle::COMPACT.print(&sort_keys(&object)),
            r#"{"B":2,"b":{"a":[{"x":2,"y":1}],"z":1},"é":1}"#
        );
    }

    #[test]
    fn zeros_are_omitted_where_go_omits_them() {
        let call = TurnToolCall { name: "noop".to_owned(), ..TurnToolCall::default() };
        let turn = RunTurn { id: 1, tool_calls: vec![call], ..RunTurn::default() };
        assert_eq!(
            JsonStyle::COMPACT.print(&turn.to_object(RunFileShape::Shipped)),
            r#"{"id":1,"role":"","content":"","timestamp":"0001-01-01T00:00:00Z","toolCalls":[{"name":"noop","input":null}]}"#
        );
    }

    #[test]
    fn a_running_run_has_no_end() {
        let run = DevflowRun { run_id: "r".to_owned(), ..DevflowRun::default() };
        assert!(!run.to_json(RunFileShape::Shipped).contains("endedAt"));
        assert!(run.to_json(RunFileShape::Shipped).contains("\"turns\": []"));
        assert!(!run.to_json(RunFileShape::Adr011).contains("turnCount"));
    }

    #[test]
    fn costs_that_json_cannot_hold_are_zero() {
        assert_eq!(float_value(f64::NAN).to_string(), "0");
        assert_eq!(float_value(1e-7).to_string(), "1e-7");
        assert_eq!(float_value(12.0).to_string(), "12");
    }
}
