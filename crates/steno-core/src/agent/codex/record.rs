//! Parses one line of a rollout: `{timestamp, type, payload}`, or the item alone before version 0.32.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::json::{Object, Value, bounds};
use crate::timestamp::Timestamp;

/// One line. Its payload is not parsed yet.
pub(super) struct Record<'a> {
    pub(super) timestamp: Option<Timestamp>,
    pub(super) ordinal: Option<u64>,
    pub(super) body: Body<'a>,
}

/// The payload of a line, by its type.
pub(super) enum Body<'a> {
    Meta(&'a RawValue),
    Item(&'a RawValue),
    Event(&'a RawValue),
    TurnContext(&'a RawValue),
    Compacted(&'a RawValue),
    TokenUsage(&'a RawValue),
    /// A line with a role and without a type. No known version of Codex writes these.
    Spoken(&'a RawValue),
    /// State of the program, not part of the conversation.
    State,
    /// The whole line, of unknown type.
    Unknown(&'a RawValue),
}

/// Whether lines wrap their items in an envelope.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Layout {
    Wrapped,
    Bare,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default)]
    timestamp: Option<&'a RawValue>,
    #[serde(borrow, default)]
    ordinal: Option<&'a RawValue>,
    #[serde(borrow, default, rename = "type")]
    kind: Option<&'a RawValue>,
    #[serde(borrow, default)]
    payload: Option<&'a RawValue>,
}

/// The fields of a payload that identify it.
#[derive(Default, Deserialize)]
pub(super) struct Head {
    #[serde(default, rename = "type")]
    pub(super) kind: Option<String>,
    #[serde(default)]
    pub(super) turn_id: Option<String>,
}

/// Deserializes a raw value. None if it is not a `T`.
pub(super) fn decode<'a, T: Deserialize<'a>>(raw: &'a RawValue) -> Option<T> {
    serde_json::from_str(raw.get()).ok()
}

impl<'a> Record<'a> {
    /// Parses a line. The first line sets `layout`; later lines are parsed by it.
    pub(super) fn parse(
        bytes: &'a [u8],
        layout: &mut Option<Layout>,
    ) -> Result<Self, serde_json::Error> {
        let whole: &RawValue = serde_json::from_slice(bytes)?;
        let envelope: Envelope<'a> = serde_json::from_str(whole.get())?;
        let kind: Option<String> = envelope.kind.and_then(decode);
        let kind = kind.as_deref();
        let layout = *layout.get_or_insert(match envelope.payload {
            Some(_) => Layout::Wrapped,
            None => Layout::Bare,
        });
        let wrapped = envelope.payload.and_then(|payload| wrapped(kind?, payload));
        let wrapped =
            wrapped.filter(|body| layout == Layout::Wrapped || !matches!(body, Body::State));
        // Items without an envelope have no time of their own.
        let has_time = wrapped.is_some() || layout == Layout::Wrapped || kind.is_none();
        let body = wrapped.unwrap_or_else(|| match layout {
            Layout::Wrapped => Body::Unknown(whole),
            Layout::Bare => bare(kind, whole),
        });
        Ok(Self {
            timestamp: envelope.timestamp.filter(|_| has_time).and_then(moment),
            ordinal: envelope.ordinal.and_then(decode),
            body,
        })
    }

    /// The id of the turn that a record opens.
    pub(super) fn turn_id(&self) -> Option<String> {
        let head: Head = match self.body {
            Body::TurnContext(payload) => decode(payload)?,
            Body::Event(payload) => decode(payload)?,
            _ => return None,
        };
        let opens = match self.body {
            Body::Event(_) => matches!(head.kind.as_deref(), Some("task_started" | "turn_started")),
            _ => true,
        };
        head.turn_id.filter(|_| opens)
    }

    /// Whether a single line shows that Codex wrote it.
    pub(super) fn is_codex(line: &[u8]) -> bool {
        let Ok(Value::Object(object)) = bounds::from_slice(line) else {
            return false;
        };
        let kind = object.get("type").and_then(Value::as_str);
        match (kind, object.get("payload")) {
            (Some("session_meta" | "turn_context"), Some(Value::Object(_))) => true,
            (Some("response_item" | "event_msg"), Some(Value::Object(payload))) => {
                payload.get("type").is_some_and(Value::is_string)
            }
            (None, None) => is_bare_meta(&object) || is_spoken(&object),
            _ => false,
        }
    }
}

fn moment(raw: &RawValue) -> Option<Timestamp> {
    decode::<String>(raw)?.parse().ok()
}

fn wrapped<'a>(kind: &str, payload: &'a RawValue) -> Option<Body<'a>> {
    Some(match kind {
        "session_meta" => Body::Meta(payload),
        "response_item" => Body::Item(payload),
        "event_msg" => Body::Event(payload),
        "turn_context" => Body::TurnContext(payload),
        "compacted" => Body::Compacted(payload),
        "token_usage_record" => Body::TokenUsage(payload),
        _ => return state(kind),
    })
}

fn state<'a>(kind: &str) -> Option<Body<'a>> {
    let known = [
        "world_state",
        "inter_agent_communication",
        "inter_agent_communication_metadata",
        "security_risk_score",
    ];
    known.contains(&kind).then_some(Body::State)
}

fn bare<'a>(kind: Option<&str>, whole: &'a RawValue) -> Body<'a> {
    let Some(object) = decode::<Object>(whole) else {
        return Body::Unknown(whole);
    };
    match kind {
        Some(_) => Body::Item(whole),
        None if object.contains_key("record_type") => Body::State,
        None if is_bare_meta(&object) => Body::Meta(whole),
        None if object.contains_key("role") => Body::Spoken(whole),
        None => Body::Unknown(whole),
    }
}

fn is_bare_meta(object: &Object) -> bool {
    let text = |field| object.get(field).is_some_and(Value::is_string);
    let state = object.get("record_type").and_then(Value::as_str) == Some("state");
    state || (text("id") && text("timestamp") && object.contains_key("instructions"))
}

/// Whether a line has a role, text, model and time, and no other fields. Test data of other programs uses such lines
/// as Codex's.
fn is_spoken(object: &Object) -> bool {
    let fields = ["timestamp", "created_at", "role", "content", "message", "model"];
    let has = |field| object.get(field).is_some_and(Value::is_string);
    object.keys().all(|field| fields.contains(&field.as_str()))
        && (has("timestamp") || has("created_at"))
        && has("role")
        && has("model")
}
