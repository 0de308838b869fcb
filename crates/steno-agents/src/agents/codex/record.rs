//! Parses one line of a rollout: `{timestamp, type, payload}`, or the item alone before version 0.32.

use serde::Deserialize;
use serde_json::value::RawValue;

use steno_model::json::{Object, Value, value_limit};
use steno_model::timestamp::Timestamp;

/// One line. Its payload is not parsed yet.
pub(super) struct CodexRolloutLine<'a> {
    pub(super) timestamp: Option<Timestamp>,
    pub(super) ordinal: Option<u64>,
    pub(super) body: CodexLineBody<'a>,
}

/// The payload of a line, by its type.
pub(super) enum CodexLineBody<'a> {
    Meta(&'a RawValue),
    Item(&'a RawValue),
    Event(&'a RawValue),
    TurnContext(&'a RawValue),
    Compacted(&'a RawValue),
    TokenUsage(&'a RawValue),
    /// A line with a role and without a type. No known version of Codex writes these.
    BareMessage(&'a RawValue),
    /// State of the program, not part of the conversation.
    State,
    /// The whole line, of unknown type.
    Unknown(&'a RawValue),
}

/// Whether lines wrap their items in an envelope.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CodexLineLayout {
    Wrapped,
    Bare,
}

#[derive(Deserialize)]
struct CodexLineEnvelope<'a> {
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
pub(super) struct CodexPayloadHead {
    #[serde(default, rename = "type")]
    pub(super) kind: Option<String>,
    #[serde(default)]
    pub(super) turn_id: Option<String>,
}

/// Deserializes a raw value. None if it is not a `T`.
pub(super) fn decode_raw<'a, T: Deserialize<'a>>(raw: &'a RawValue) -> Option<T> {
    serde_json::from_str(raw.get()).ok()
}

impl<'a> CodexRolloutLine<'a> {
    /// Parses a line. The first line sets `layout`; later lines are parsed by it.
    pub(super) fn parse(
        bytes: &'a [u8],
        layout: &mut Option<CodexLineLayout>,
    ) -> Result<Self, serde_json::Error> {
        let whole: &RawValue = serde_json::from_slice(bytes)?;
        let envelope: CodexLineEnvelope<'a> = serde_json::from_str(whole.get())?;
        let kind: Option<String> = envelope.kind.and_then(decode_raw);
        let kind = kind.as_deref();
        let layout = *layout.get_or_insert(match envelope.payload {
            Some(_) => CodexLineLayout::Wrapped,
            None => CodexLineLayout::Bare,
        });
        let wrapped = envelope.payload.and_then(|payload| wrapped_body(kind?, payload));
        let wrapped = wrapped.filter(|body| {
            layout == CodexLineLayout::Wrapped || !matches!(body, CodexLineBody::State)
        });
        // Items without an envelope have no time of their own.
        let has_time = wrapped.is_some() || layout == CodexLineLayout::Wrapped || kind.is_none();
        let body = wrapped.unwrap_or_else(|| match layout {
            CodexLineLayout::Wrapped => CodexLineBody::Unknown(whole),
            CodexLineLayout::Bare => bare_body(kind, whole),
        });
        Ok(Self {
            timestamp: envelope.timestamp.filter(|_| has_time).and_then(parse_time),
            ordinal: envelope.ordinal.and_then(decode_raw),
            body,
        })
    }

    /// The id of the turn that a record opens.
    pub(super) fn turn_id(&self) -> Option<String> {
        let head: CodexPayloadHead = match self.body {
            CodexLineBody::TurnContext(payload) => decode_raw(payload)?,
            CodexLineBody::Event(payload) => decode_raw(payload)?,
            _ => return None,
        };
        let opens = match self.body {
            CodexLineBody::Event(_) => {
                matches!(head.kind.as_deref(), Some("task_started" | "turn_started"))
            }
            _ => true,
        };
        head.turn_id.filter(|_| opens)
    }

    /// Whether a single line shows that Codex wrote it.
    pub(super) fn is_codex_line(line: &[u8]) -> bool {
        let Ok(Value::Object(object)) = value_limit::parse_limited(line) else {
            return false;
        };
        let kind = object.get("type").and_then(Value::as_str);
        match (kind, object.get("payload")) {
            (Some("session_meta" | "turn_context"), Some(Value::Object(_))) => true,
            (Some("response_item" | "event_msg"), Some(Value::Object(payload))) => {
                payload.get("type").is_some_and(Value::is_string)
            }
            (None, None) => is_bare_meta(&object) || is_bare_message(&object),
            _ => false,
        }
    }
}

fn parse_time(raw: &RawValue) -> Option<Timestamp> {
    decode_raw::<String>(raw)?.parse().ok()
}

fn wrapped_body<'a>(kind: &str, payload: &'a RawValue) -> Option<CodexLineBody<'a>> {
    Some(match kind {
        "session_meta" => CodexLineBody::Meta(payload),
        "response_item" => CodexLineBody::Item(payload),
        "event_msg" => CodexLineBody::Event(payload),
        "turn_context" => CodexLineBody::TurnContext(payload),
        "compacted" => CodexLineBody::Compacted(payload),
        "token_usage_record" => CodexLineBody::TokenUsage(payload),
        _ => return state_body(kind),
    })
}

fn state_body<'a>(kind: &str) -> Option<CodexLineBody<'a>> {
    let known = [
        "world_state",
        "inter_agent_communication",
        "inter_agent_communication_metadata",
        "security_risk_score",
    ];
    known.contains(&kind).then_some(CodexLineBody::State)
}

fn bare_body<'a>(kind: Option<&str>, whole: &'a RawValue) -> CodexLineBody<'a> {
    let Some(object) = decode_raw::<Object>(whole) else {
        return CodexLineBody::Unknown(whole);
    };
    match kind {
        Some(_) => CodexLineBody::Item(whole),
        None if object.contains_key("record_type") => CodexLineBody::State,
        None if is_bare_meta(&object) => CodexLineBody::Meta(whole),
        None if object.contains_key("role") => CodexLineBody::BareMessage(whole),
        None => CodexLineBody::Unknown(whole),
    }
}

fn is_bare_meta(object: &Object) -> bool {
    let text = |field| object.get(field).is_some_and(Value::is_string);
    let state = object.get("record_type").and_then(Value::as_str) == Some("state");
    state || (text("id") && text("timestamp") && object.contains_key("instructions"))
}

/// Whether a line has a role, text, model and time, and no other fields. Test data of other programs uses such lines
/// as Codex's.
fn is_bare_message(object: &Object) -> bool {
    let fields = ["timestamp", "created_at", "role", "content", "message", "model"];
    let has = |field| object.get(field).is_some_and(Value::is_string);
    object.keys().all(|field| fields.contains(&field.as_str()))
        && (has("timestamp") || has("created_at"))
        && has("role")
        && has("model")
}
