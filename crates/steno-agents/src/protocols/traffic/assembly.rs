//! Assembles the body of a response, plain or streamed, into one JSON object.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::json;

use super::aws_event_stream::{is_aws_event_stream, read_events};
use super::decoded_response::DecodedResponse;
use super::dialect::ApiDialect;
use super::event_stream::{ServerSentEvent, ServerSentEvents, is_event_stream};
use super::gemini;
use super::translation::{EventTranslator, translate_answer};
use crate::decoding::json_fields::{list_field, object_field, text_field};
use crate::decoding::json_repair;
use crate::protocols::api_log::stream::ApiStreamAssembler;
use steno_model::json::{JsonStyle, Object, Value};

/// How much of a non-JSON body an error shows.
const MAX_EXCERPT_CHARS: usize = 2000;

/// Types of the events that end a stream.
const FINAL_EVENT_TYPES: [&str; 4] =
    ["message_stop", "response.completed", "response.incomplete", "response.failed"];

/// An assembled response and its errors.
#[derive(Debug, Default)]
pub(super) struct AssembledResponse {
    pub(super) object: Option<Object>,
    /// The response to a single call.
    pub(super) single_call: Option<Box<DecodedResponse>>,
    pub(super) error: Option<String>,
    /// Whether the model has finished. Later connection errors do not matter.
    pub(super) is_complete: bool,
    /// Whether the provider reported the error within a stream. It does not bill the response then.
    pub(super) is_failed_by_provider: bool,
    /// How many events failed to parse.
    pub(super) unread_events: u64,
}

/// Assembles a response body, translated into the API of [`ApiDialect::translation_target`].
pub(super) fn assemble_body(dialect: ApiDialect, body: &[u8]) -> AssembledResponse {
    if is_aws_event_stream(body) {
        return assemble_aws_events(dialect, body);
    }
    let mut assembler = StreamAssembler::new(dialect);
    match json_repair::parse_lenient::<Value>(body) {
        Ok(Value::Object(whole)) if !is_stream_event(dialect, &whole) => {
            let whole = Some(translate_answer(dialect, whole));
            return AssembledResponse {
                object: whole,
                is_complete: true,
                ..AssembledResponse::default()
            };
        }
        // Gemini streams an array unless the client asks for events.
        Ok(Value::Array(chunks)) => {
            chunks.into_iter().for_each(|chunk| assembler.push_value(chunk))
        }
        _ if is_event_stream(body) => {
            ServerSentEvents::new(body).for_each(|event| assembler.read_event(&event));
        }
        Err(_) if body.trim_ascii_start().starts_with(b"[") => {
            parse_cut_array(body).into_iter().for_each(|chunk| assembler.push_value(chunk));
        }
        _ if is_json_lines(dialect, body) => assembler.read_lines(body),
        _ if body.trim_ascii().is_empty() => return AssembledResponse::default(),
        _ => {
            let error = Some(format!("not JSON: {}", body_excerpt(body)));
            return AssembledResponse { error, ..AssembledResponse::default() };
        }
    }
    assembler.finish()
}

/// Whether an object is a stream event and not a whole response. A truncated stream of JSON lines may have only its
/// first line.
fn is_stream_event(dialect: ApiDialect, object: &Object) -> bool {
    match dialect {
        ApiDialect::OllamaChat | ApiDialect::OllamaGenerate => {
            object.get("done").is_some_and(|done| done != &Value::Bool(true))
        }
        ApiDialect::Cohere => object.contains_key("event_type"),
        _ => false,
    }
}

/// Whether a response is a stream of JSON lines.
fn is_json_lines(dialect: ApiDialect, body: &[u8]) -> bool {
    let streams_lines =
        matches!(dialect, ApiDialect::OllamaChat | ApiDialect::OllamaGenerate | ApiDialect::Cohere);
    streams_lines && body.trim_ascii_start().starts_with(b"{")
}

fn assemble_aws_events(dialect: ApiDialect, body: &[u8]) -> AssembledResponse {
    let mut assembler = StreamAssembler::new(dialect);
    let (events, _) = read_events(body);
    for event in events {
        match json_repair::parse_lenient::<Object>(event.payload) {
            Ok(payload) if event.is_error => {
                assembler.fail(format!("{}: {}", event.name, error_message(&payload)));
            }
            // An event of the invoked model's own stream.
            Ok(payload) if event.name == "chunk" => match decode_aws_chunk(&payload) {
                Some(chunk) => assembler.push_value(chunk),
                None => assembler.unread_events += 1,
            },
            Ok(payload) => {
                assembler.push_value(with_event_type(Value::Object(payload), event.name.as_bytes()))
            }
            Err(_) => assembler.unread_events += 1,
        }
    }
    assembler.finish()
}

fn decode_aws_chunk(payload: &Object) -> Option<Value> {
    let bytes = BASE64.decode(text_field(payload, "bytes")?).ok()?;
    json_repair::parse_lenient(&bytes).ok()
}

/// Assembles the events of a stream.
struct StreamAssembler {
    /// The API that the events are translated into.
    dialect: ApiDialect,
    translator: EventTranslator,
    stream: ApiStreamAssembler,
    /// The id of the first chunk.
    id: Option<Value>,
    object: Option<Object>,
    error: Option<String>,
    is_failed_by_provider: bool,
    has_ended: bool,
    unread_events: u64,
}

impl StreamAssembler {
    fn new(dialect: ApiDialect) -> Self {
        Self {
            dialect: dialect.translation_target(),
            translator: EventTranslator::new(dialect),
            stream: ApiStreamAssembler::default(),
            id: None,
            object: None,
            error: None,
            is_failed_by_provider: false,
            has_ended: false,
            unread_events: 0,
        }
    }

    /// Parses one server-sent event.
    fn read_event(&mut self, event: &ServerSentEvent) {
        let data = event.data.trim_ascii();
        if data == b"[DONE]" {
            self.has_ended = true;
            return;
        }
        if let Ok(value) = json_repair::parse_lenient(data) {
            return self.push_value(with_event_type(value, &event.name));
        }
        // Some servers omit the blank line between events. Then each line is an event.
        for line in data.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii) {
            match json_repair::parse_lenient(line) {
                _ if line.is_empty() => {}
                _ if line == b"[DONE]" => self.has_ended = true,
                Ok(value) => self.push_value(value),
                // A truncated event is not an error.
                Err(_) => self.unread_events += u64::from(event.is_complete),
            }
        }
    }

    fn push_value(&mut self, event: Value) {
        let Value::Object(event) = event else { return };
        let is_error = event.get("error").is_some_and(|error| !error.is_null());
        if text_field(&event, "type") == Some("error") || is_error {
            return self.fail(error_message(&event));
        }
        for event in self.translator.translate(event) {
            self.push_translated(event);
        }
    }

    fn fail(&mut self, error: String) {
        self.error = Some(error);
        self.is_failed_by_provider = true;
    }

    /// Reads a stream of JSON lines. The last line may be truncated.
    fn read_lines(&mut self, body: &[u8]) {
        let lines = body.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        let mut lines = lines.peekable();
        while let Some(line) = lines.next() {
            match json_repair::parse_lenient(line) {
                _ if line.is_empty() => {}
                Ok(value) => self.push_value(value),
                Err(_) => self.unread_events += u64::from(lines.peek().is_some()),
            }
        }
    }

    fn push_translated(&mut self, event: Object) {
        if self.dialect == ApiDialect::Generate {
            let whole = self.object.get_or_insert_with(Object::new);
            gemini::merge_chunk(whole, &event);
            self.has_ended = gemini::finish_reason(whole).is_some();
        } else if let Some(event) = self.normalize_event(event) {
            self.has_ended |=
                text_field(&event, "type").is_some_and(|kind| FINAL_EVENT_TYPES.contains(&kind));
            let done = self.stream.add_event(event);
            self.keep_first(done);
        }
    }

    /// Normalizes an event. Compatible servers omit the `object` field, or give each chunk its own id.
    fn normalize_event(&mut self, mut event: Object) -> Option<Object> {
        if self.dialect == ApiDialect::Chat && event.contains_key("choices") {
            let id = event.shift_remove("id").unwrap_or_default();
            let id = self.id.get_or_insert(id);
            if !id.is_null() {
                event.insert("id".to_owned(), id.clone());
            }
            event.insert("object".to_owned(), json!("chat.completion.chunk"));
        }
        ApiStreamAssembler::is_stream_event(&event).then_some(event)
    }

    fn keep_first(&mut self, done: Vec<Object>) {
        for whole in done {
            self.object.get_or_insert(whole);
        }
    }

    fn finish(mut self) -> AssembledResponse {
        let open = std::mem::take(&mut self.stream).finish();
        self.keep_first(open);
        self.has_ended |= self.object.as_ref().is_some_and(has_stop_reason);
        if !self.has_ended && self.error.is_none() {
            self.error = Some("the stream ended before its last event".to_owned());
        }
        let is_complete = self.has_ended && self.error.is_none();
        let Self { object: whole, error, is_failed_by_provider, unread_events, .. } = self;
        AssembledResponse {
            object: whole,
            single_call: None,
            error,
            is_complete,
            is_failed_by_provider,
            unread_events,
        }
    }
}

/// The complete items of a truncated array.
fn parse_cut_array(list: &[u8]) -> Vec<Value> {
    let mut items = Vec::new();
    let mut rest = list.trim_ascii_start().strip_prefix(b"[").unwrap_or_default();
    loop {
        let mut values = serde_json::Deserializer::from_slice(rest).into_iter();
        let Some(Ok(item)) = values.next() else { return items };
        items.push(item);
        rest = rest[values.byte_offset()..].trim_ascii_start();
        rest = rest.strip_prefix(b",").unwrap_or(rest);
    }
}

/// Adds the SSE event name as `type` if the event has none.
fn with_event_type(mut value: Value, name: &[u8]) -> Value {
    let name = std::str::from_utf8(name).unwrap_or_default();
    if let Value::Object(event) = &mut value
        && !["", "message"].contains(&name)
        && !event.contains_key("type")
    {
        event.insert("type".to_owned(), name.into());
    }
    value
}

/// Whether every choice has a stop reason.
fn has_stop_reason(whole: &Object) -> bool {
    let choices = list_field(whole, "choices");
    let has_stopped =
        |choice: &Value| choice.get("finish_reason").is_some_and(|reason| reason.is_string());
    let is_chat = !choices.is_empty() && choices.iter().all(has_stopped);
    is_chat || text_field(whole, "stop_reason").is_some_and(|reason| !reason.is_empty())
}

/// The message of an error object, or of an object with an `error` field.
pub(super) fn error_message(object: &Object) -> String {
    match object.get("error") {
        Some(Value::Object(error)) => message_text(error),
        Some(Value::String(error)) => error.clone(),
        _ => message_text(object),
    }
}

fn message_text(error: &Object) -> String {
    text_field(error, "message")
        .map_or_else(|| JsonStyle::COMPACT.print(&json!(error)), str::to_owned)
}

/// The error of a request with a failure status.
pub(super) fn refusal_message(status: u16, body: &[u8]) -> String {
    let message = match json_repair::parse_lenient::<Value>(body) {
        Ok(Value::Object(whole)) => error_message(&whole),
        // Gemini wraps stream errors in an array.
        Ok(Value::Array(list)) => {
            let first = list.first().and_then(Value::as_object);
            let error = first.filter(|first| object_field(first, "error").is_some());
            error.map_or_else(|| body_excerpt(body), error_message)
        }
        _ => body_excerpt(body),
    };
    if message.trim().is_empty() {
        format!("HTTP {status}")
    } else {
        format!("HTTP {status}: {message}")
    }
}

/// The start of a body, for an error message.
fn body_excerpt(body: &[u8]) -> String {
    // A character has at most four bytes.
    let start = &body[..body.len().min(4 * MAX_EXCERPT_CHARS)];
    String::from_utf8_lossy(start).chars().take(MAX_EXCERPT_CHARS).collect()
}
