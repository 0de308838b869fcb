//! Renders JSON as Go's `encoding/json` prints devflow's types: field order, omitted zeros, sorted maps.

use serde_json::Number;

use super::run::{Run, RunMeta, ToolCall, Turn};
use crate::json::{Object, Style, Value, go_float};
use crate::timestamp::Timestamp;

/// The published shape that is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Shape {
    /// The shape that devflow writes: `metadata` has `runId` and `turnCount`, and unknown fields are kept.
    #[default]
    Shipped,
    /// Exactly ADR-011: only the fields of its type definitions.
    Adr011,
}

/// Go's text for a time that was never set.
const ZERO_TIME: &str = "0001-01-01T00:00:00Z";

impl Run {
    /// Renders `transcript.json`, without a final newline.
    pub fn to_json(&self, shape: Shape) -> String {
        Style::GO_INDENT.print(&self.to_object(shape))
    }

    /// Renders `metadata.json`, without a final newline.
    pub fn metadata_json(&self, shape: Shape) -> String {
        Style::GO_INDENT.print(&self.metadata_object(shape))
    }

    /// The metadata with the run's name and number of turns.
    pub fn metadata_object(&self, shape: Shape) -> Object {
        let mut meta = self.metadata.clone();
        if meta.run_id.is_empty() {
            meta.run_id.clone_from(&self.run_id);
        }
        if !meta.extra.contains_key("turnCount") {
            meta.turn_count = Some(self.turn_count());
        }
        meta.to_object(shape)
    }

    fn to_object(&self, shape: Shape) -> Object {
        let turns = self.turns.iter().map(|turn| turn.to_object(shape));
        let mut out = Writer::new(shape, &self.extra);
        out.always("runId", self.run_id.as_str());
        out.always("metadata", self.metadata_object(shape));
        out.always("turns", turns.map(Value::Object).collect::<Vec<_>>());
        out.finish()
    }
}

impl RunMeta {
    /// Converts the metadata to a JSON object.
    pub fn to_object(&self, shape: Shape) -> Object {
        let mut out = Writer::new(shape, &self.extra);
        if shape == Shape::Shipped {
            out.text("runId", &self.run_id);
        }
        out.always("flowId", self.flow_id.as_str());
        out.text("nodeId", &self.node_id);
        out.unless_zero("input", sorted(&self.input).into());
        out.always("startedAt", time(self.started_at));
        out.unless_zero("endedAt", time(self.ended_at).into());
        out.always("status", self.status.as_str());
        out.always("totalTokensIn", self.total_tokens_in);
        out.always("totalTokensOut", self.total_tokens_out);
        out.always("totalCost", float(self.total_cost));
        if shape == Shape::Shipped {
            out.always("turnCount", self.turn_count.unwrap_or(0));
        }
        out.text("error", &self.error);
        out.finish()
    }
}

impl Turn {
    /// Converts the turn to a JSON object.
    pub fn to_object(&self, shape: Shape) -> Object {
        let calls = self.tool_calls.iter().map(|call| call.to_object(shape));
        let mut out = Writer::new(shape, &self.extra);
        out.always("id", self.id);
        out.always("role", self.role.as_str());
        out.always("content", self.content.as_str());
        out.count("tokensIn", self.tokens_in);
        out.count("tokensOut", self.tokens_out);
        out.always("timestamp", time(self.timestamp));
        out.unless_zero("toolCalls", calls.map(Value::Object).collect());
        out.count("durationMs", self.duration_ms);
        out.finish()
    }
}

impl Turn {
    /// The turn as it is parsed back after printing: trailing zeros of its time are gone.
    pub(super) fn as_printed(&self) -> Self {
        let timestamp = self.timestamp.map(|at| at.to_rfc3339_nano().parse().unwrap_or(at));
        Self { timestamp, ..self.clone() }
    }
}

impl ToolCall {
    /// Converts the call to a JSON object.
    pub fn to_object(&self, shape: Shape) -> Object {
        let mut out = Writer::new(shape, &self.extra);
        out.text("id", &self.id);
        out.always("name", self.name.as_str());
        out.always("input", self.input.as_ref().map(sorted));
        out.text("output", &self.output);
        out.text("error", &self.error);
        out.finish()
    }
}

/// Sorts the keys bytewise at every depth, as Go does for a map.
pub(super) fn sorted(object: &Object) -> Object {
    let mut pairs: Vec<_> = object.iter().collect();
    pairs.sort_by_key(|(key, _)| key.as_bytes());
    pairs.into_iter().map(|(key, value)| (key.clone(), sorted_value(value))).collect()
}

fn sorted_value(value: &Value) -> Value {
    match value {
        Value::Object(object) => Value::Object(sorted(object)),
        Value::Array(items) => Value::Array(items.iter().map(sorted_value).collect()),
        other => other.clone(),
    }
}

pub(super) fn time(at: Option<Timestamp>) -> String {
    at.map_or_else(|| ZERO_TIME.to_owned(), |at| at.to_rfc3339_nano())
}

/// Formats a number as Go does. Infinity and NaN become zero.
pub(super) fn float(value: f64) -> Value {
    let number = go_float(value).parse::<Number>();
    Value::Number(number.unwrap_or_else(|_| Number::from(0)))
}

/// Adds fields to an object in the order of the calls.
///
/// If a field's original value did not fit its type, such as a negative count, the original is written.
struct Writer<'a> {
    shape: Shape,
    /// Unknown fields, and original values that did not fit.
    extra: &'a Object,
    object: Object,
}

impl<'a> Writer<'a> {
    fn new(shape: Shape, extra: &'a Object) -> Self {
        Self { shape, extra, object: Object::new() }
    }

    fn always(&mut self, name: &str, value: impl Into<Value>) {
        let value = value.into();
        let kept = self.extra.get(name).filter(|kept| is_zero(&value) || is_same(kept, &value));
        self.object.insert(name.to_owned(), kept.cloned().unwrap_or(value));
    }

    fn unless_zero(&mut self, name: &str, value: Value) {
        if !is_zero(&value) || self.extra.contains_key(name) {
            self.always(name, value);
        }
    }

    fn text(&mut self, name: &str, value: &str) {
        self.unless_zero(name, value.into());
    }

    fn count(&mut self, name: &str, value: u64) {
        self.unless_zero(name, value.into());
    }

    fn finish(mut self) -> Object {
        if self.shape == Shape::Shipped {
            for (name, value) in self.extra {
                self.object.entry(name.clone()).or_insert_with(|| value.clone());
            }
        }
        self.object
    }
}

/// Whether a value equals an absent one.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty() || text == ZERO_TIME,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

/// Whether two numbers are equal, regardless of their text.
fn is_same(kept: &Value, value: &Value) -> bool {
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
            Style::COMPACT.print(&sorted(&object)),
            r#"{"B":2,"b":{"a":[{"x":2,"y":1}],"z":1},"é":1}"#
        );
    }

    #[test]
    fn zeros_are_omitted_where_go_omits_them() {
        let call = ToolCall { name: "noop".to_owned(), ..ToolCall::default() };
        let turn = Turn { id: 1, tool_calls: vec![call], ..Turn::default() };
        assert_eq!(
            Style::COMPACT.print(&turn.to_object(Shape::Shipped)),
            r#"{"id":1,"role":"","content":"","timestamp":"0001-01-01T00:00:00Z","toolCalls":[{"name":"noop","input":null}]}"#
        );
    }

    #[test]
    fn a_running_run_has_no_end() {
        let run = Run { run_id: "r".to_owned(), ..Run::default() };
        assert!(!run.to_json(Shape::Shipped).contains("endedAt"));
        assert!(run.to_json(Shape::Shipped).contains("\"turns\": []"));
        assert!(!run.to_json(Shape::Adr011).contains("turnCount"));
    }

    #[test]
    fn costs_that_json_cannot_say_are_zero() {
        assert_eq!(float(f64::NAN).to_string(), "0");
        assert_eq!(float(1e-7).to_string(), "1e-7");
        assert_eq!(float(12.0).to_string(), "12");
    }
}
