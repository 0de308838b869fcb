//! Puts the body of an answer together to one JSON object, whether it came in one piece or as a stream.

use serde_json::json;

use super::dialect::Dialect;
use super::event_stream::{ServerSentEvent, ServerSentEvents, is_event_stream};
use super::gemini;
use crate::agent::api_log::stream::Stream;
use crate::agent::fields::{list, object, text};
use crate::agent::repair;
use crate::json::{Object, Style, Value};

/// How much of a body that is no JSON is shown in an error.
const SHOWN_CHARACTERS: usize = 2000;

/// The events that end a stream, by their type.
const LAST_EVENTS: [&str; 4] =
    ["message_stop", "response.completed", "response.incomplete", "response.failed"];

/// An answer in one piece, and what was wrong with it.
#[derive(Debug, Default)]
pub(super) struct AssembledAnswer {
    pub(super) whole: Option<Object>,
    pub(super) error: Option<String>,
    /// Whether the model has said all: what happens to the connection after that changes nothing.
    pub(super) is_complete: bool,
    /// Whether the provider has stated the error in the middle of a stream. It bills nothing then.
    pub(super) is_failed_by_provider: bool,
    /// How many events of a stream are no JSON.
    pub(super) unread_events: u64,
}

/// Assembles the body of an answer in a dialect.
pub(super) fn assemble(dialect: Dialect, body: &[u8]) -> AssembledAnswer {
    match repair::parse::<Value>(body) {
        Ok(Value::Object(whole)) => {
            AssembledAnswer { whole: Some(whole), is_complete: true, ..AssembledAnswer::default() }
        }
        // Gemini streams a list where nobody asks for events.
        Ok(Value::Array(chunks)) => {
            let mut assembler = StreamAssembler::new(dialect);
            chunks.into_iter().for_each(|chunk| assembler.take(chunk));
            assembler.finish()
        }
        _ if is_event_stream(body) => {
            let mut assembler = StreamAssembler::new(dialect);
            ServerSentEvents::new(body).for_each(|event| assembler.read(&event));
            assembler.finish()
        }
        Err(_) if body.trim_ascii_start().starts_with(b"[") => {
            let mut assembler = StreamAssembler::new(dialect);
            whole_items(body).into_iter().for_each(|chunk| assembler.take(chunk));
            assembler.finish()
        }
        _ if body.trim_ascii().is_empty() => AssembledAnswer::default(),
        _ => {
            let error = Some(format!("no JSON: {}", beginning(body)));
            AssembledAnswer { error, ..AssembledAnswer::default() }
        }
    }
}

/// The events of a stream while they are put together.
struct StreamAssembler {
    dialect: Dialect,
    stream: Stream,
    /// The id of the first chunk.
    id: Option<Value>,
    whole: Option<Object>,
    error: Option<String>,
    is_failed_by_provider: bool,
    has_ended: bool,
    unread_events: u64,
}

impl StreamAssembler {
    fn new(dialect: Dialect) -> Self {
        Self {
            dialect,
            stream: Stream::default(),
            id: None,
            whole: None,
            error: None,
            is_failed_by_provider: false,
            has_ended: false,
            unread_events: 0,
        }
    }

    /// Reads one server-sent event.
    fn read(&mut self, event: &ServerSentEvent) {
        let data = event.data.trim_ascii();
        if data == b"[DONE]" {
            self.has_ended = true;
            return;
        }
        if let Ok(value) = repair::parse(data) {
            return self.take(named(value, &event.name));
        }
        // Some servers leave out the blank line between events, each of which is a line of JSON then.
        for line in data.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii) {
            match repair::parse(line) {
                _ if line.is_empty() => {}
                _ if line == b"[DONE]" => self.has_ended = true,
                Ok(value) => self.take(value),
                // What a cut has left of an event is none.
                Err(_) => self.unread_events += u64::from(event.is_complete),
            }
        }
    }

    fn take(&mut self, event: Value) {
        let Value::Object(event) = event else { return };
        let is_error = event.get("error").is_some_and(|error| !error.is_null());
        if text(&event, "type") == Some("error") || is_error {
            self.error = Some(error_message(&event));
            self.is_failed_by_provider = true;
        } else if self.dialect == Dialect::Generate {
            let whole = self.whole.get_or_insert_with(Object::new);
            gemini::merge(whole, &event);
            self.has_ended = gemini::finish_reason(whole).is_some();
        } else if let Some(event) = self.event(event) {
            self.has_ended |= text(&event, "type").is_some_and(|kind| LAST_EVENTS.contains(&kind));
            let done = self.stream.event(event);
            self.keep(done);
        }
    }

    /// An event of a stream; compatible servers leave names out, or give each chunk an id of its own.
    fn event(&mut self, mut event: Object) -> Option<Object> {
        if self.dialect == Dialect::Chat && event.contains_key("choices") {
            let id = self.id.get_or_insert_with(|| event.get("id").cloned().unwrap_or_default());
            event.insert("id".to_owned(), id.clone());
            event.insert("object".to_owned(), json!("chat.completion.chunk"));
        }
        Stream::takes(&event).then_some(event)
    }

    fn keep(&mut self, done: Vec<Object>) {
        for whole in done {
            self.whole.get_or_insert(whole);
        }
    }

    fn finish(mut self) -> AssembledAnswer {
        let open = std::mem::take(&mut self.stream).finish();
        self.keep(open);
        self.has_ended |= self.whole.as_ref().is_some_and(states_stop);
        if !self.has_ended && self.error.is_none() {
            self.error = Some("the stream ended before its last event".to_owned());
        }
        let is_complete = self.has_ended && self.error.is_none();
        let Self { whole, error, is_failed_by_provider, unread_events, .. } = self;
        AssembledAnswer { whole, error, is_complete, is_failed_by_provider, unread_events }
    }
}

/// The items of a list that was cut, as far as they came.
fn whole_items(list: &[u8]) -> Vec<Value> {
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

/// An event that lacks a type has that of the field `event`, if there is one.
fn named(mut value: Value, name: &[u8]) -> Value {
    let name = std::str::from_utf8(name).unwrap_or_default();
    if let Value::Object(event) = &mut value
        && !["", "message"].contains(&name)
        && !event.contains_key("type")
    {
        event.insert("type".to_owned(), name.into());
    }
    value
}

/// Whether an answer says why the model stopped, in each of its choices.
fn states_stop(whole: &Object) -> bool {
    let choices = list(whole, "choices");
    let has_stopped =
        |choice: &Value| choice.get("finish_reason").is_some_and(|reason| reason.is_string());
    let is_chat = !choices.is_empty() && choices.iter().all(has_stopped);
    is_chat || text(whole, "stop_reason").is_some_and(|reason| !reason.is_empty())
}

/// What an object says that is an error, or has one.
pub(super) fn error_message(object: &Object) -> String {
    match object.get("error") {
        Some(Value::Object(error)) => message_of(error),
        Some(Value::String(error)) => error.clone(),
        _ => message_of(object),
    }
}

fn message_of(error: &Object) -> String {
    text(error, "message").map_or_else(|| Style::COMPACT.print(&json!(error)), str::to_owned)
}

/// What a server says about a request that it refused.
pub(super) fn refusal_message(status: u16, body: &[u8]) -> String {
    let said = match repair::parse::<Value>(body) {
        Ok(Value::Object(whole)) => error_message(&whole),
        // Gemini wraps even errors of streams into a list.
        Ok(Value::Array(list)) => {
            let first = list.first().and_then(Value::as_object);
            let error = first.filter(|first| object(first, "error").is_some());
            error.map_or_else(|| beginning(body), error_message)
        }
        _ => beginning(body),
    };
    format!("HTTP {status}: {said}")
}

/// The beginning of a body, for an error.
fn beginning(body: &[u8]) -> String {
    // A character has at most four bytes.
    let start = &body[..body.len().min(4 * SHOWN_CHARACTERS)];
    String::from_utf8_lossy(start).chars().take(SHOWN_CHARACTERS).collect()
}
