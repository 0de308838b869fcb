//! Tells from one JSON object alone which system wrote it.

use super::weakincentives::claude;
use super::{chibi, devflow, weakincentives};
use crate::entry::{Entry, EntryError, Kind, Role};
use crate::json::{Object, Style, Value};

/// Whose record an object is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A line of a context, inbox or debug file.
    Chibi,
    /// A turn of a run.
    Devflow,
    /// A `TranscriptEntry` or log record that our own reader would not read as well.
    Weakincentives,
    /// A line of Claude Code.
    Claude,
    /// An entry of ours; weakincentives' are too, as far as they go.
    Entry,
}

impl Shape {
    /// The shape of an object, if it is one that we know.
    pub fn of(object: &Object) -> Option<Self> {
        if chibi::recognises(object) {
            Some(Shape::Chibi)
        } else if devflow::recognises(object) {
            Some(Shape::Devflow)
        } else if is_weakincentives(object) {
            Some(Shape::Weakincentives)
        } else if object.contains_key("role") {
            Some(Shape::Entry)
        } else if claude::recognises(object) {
            Some(Shape::Claude)
        } else {
            None
        }
    }
}

/// The entries in one record of any shape that we know; an unknown one is kept whole as kind `other`.
pub fn entries(object: Object) -> Result<Vec<Entry>, EntryError> {
    match Shape::of(&object) {
        Some(Shape::Chibi) => chibi::entries(object),
        Some(Shape::Devflow) => devflow::entries(object),
        Some(Shape::Weakincentives) => weakincentives::entries(object),
        Some(Shape::Claude) => claude::entries(object),
        Some(Shape::Entry) => Entry::from_object(object).map(|entry| vec![entry]),
        None => Ok(vec![unknown(object)]),
    }
}

/// Whether the object is marked as weakincentives', or holds what its writer folded into `metadata`.
fn is_weakincentives(object: &Object) -> bool {
    let folded = object.get("metadata").is_some_and(|metadata| metadata.get("steno").is_some());
    let text = |field| object.get(field).is_some_and(Value::is_string);
    let coerced = !text("content") || text("sequence");
    let marked =
        object.contains_key("__type__") || object.contains_key("event") || folded || coerced;
    let snapshot = object.contains_key("slices");
    (marked || snapshot) && !object.contains_key("kind") && weakincentives::recognises(object)
}

fn unknown(object: Object) -> Entry {
    let mut entry = Entry::new(Role::System, Kind::Other, Style::COMPACT.print(&object));
    entry.metadata = Some(object);
    entry
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(text: &str) -> Option<Shape> {
        match serde_json::from_str(text).unwrap() {
            Value::Object(object) => Shape::of(&object),
            _ => None,
        }
    }

    #[test]
    fn every_system_is_told_from_a_line() {
        let chibi =
            r#"{"id":"a","timestamp":1,"from":"u","to":"c","content":"x","entry_type":"message"}"#;
        let turn = r#"{"id":1,"role":"user","content":"x","timestamp":"2026-01-05T09:15:32Z"}"#;
        let typed = r#"{"__type__":"weakincentives.transcript:TranscriptEntry","role":"user","content":"x",
            "created_at":"2026-01-05T09:15:32+00:00","sequence":0}"#;
        let claude =
            r#"{"type":"user","uuid":"u","sessionId":"s","message":{"role":"user","content":"x"}}"#;
        assert_eq!(shape(chibi), Some(Shape::Chibi));
        assert_eq!(shape(turn), Some(Shape::Devflow));
        assert_eq!(shape(typed), Some(Shape::Weakincentives));
        assert_eq!(shape(claude), Some(Shape::Claude));
        assert_eq!(shape(r#"{"role":"user","content":"x"}"#), Some(Shape::Entry));
        assert_eq!(shape(r#"{"anything":"else"}"#), None);
    }

    #[test]
    fn each_shape_gives_its_entries() {
        let read = |text: &str| match serde_json::from_str(text).unwrap() {
            Value::Object(object) => entries(object).unwrap(),
            _ => panic!("not an object"),
        };
        let turn = r#"{"id":2,"role":"assistant","content":"I look","timestamp":"2026-01-05T09:15:32Z",
            "toolCalls":[{"name":"ls","input":{},"output":"a"}]}"#;
        let kinds: Vec<Kind> = read(turn).iter().map(|entry| entry.kind).collect();
        assert_eq!(kinds, [Kind::Text, Kind::ToolCall, Kind::ToolResult]);
        let unknown = read(r#"{"n":1.50}"#);
        assert_eq!((unknown[0].kind, unknown[0].content.as_str()), (Kind::Other, r#"{"n":1.50}"#));
    }
}
