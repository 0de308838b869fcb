//! Puts the body of an answer together to one JSON object, whether it came in one piece or as a stream.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::json;

use super::aws_event_stream::{is_aws_event_stream, read_events};
use super::dialect::Dialect;
use super::event_stream::{ServerSentEvent, ServerSentEvents, is_event_stream};
use super::gemini;
use super::reply::Reply;
use super::translate::{EventTranslator, translate_answer};
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
    /// What came back from a call that is no conversation.
    pub(super) single_call: Option<Box<Reply>>,
    pub(super) error: Option<String>,
    /// Whether the model has said all: what happens to the connection after that changes nothing.
    pub(super) is_complete: bool,
    /// Whether the provider has stated the error in the middle of a stream. It bills nothing then.
    pub(super) is_failed_by_provider: bool,
    /// How many events of a stream are no JSON.
    pub(super) unread_events: u64,
}

/// Assembles the body of an answer in a dialect, in the words of the API into which that is translated.
pub(super) fn assemble(dialect: Dialect, body: &[u8]) -> AssembledAnswer {
    if is_aws_event_stream(body) {
        return assemble_aws_events(dialect, body);
    }
    let mut assembler = StreamAssembler::new(dialect);
    match repair::parse::<Value>(body) {
        Ok(Value::Object(whole)) if !is_event(dialect, &whole) => {
            let whole = Some(translate_answer(dialect, whole));
            return AssembledAnswer { whole, is_complete: true, ..AssembledAnswer::default() };
        }
        // Gemini streams a list where nobody asks for events.
        Ok(Value::Array(chunks)) => chunks.into_iter().for_each(|chunk| assembler.take(chunk)),
        _ if is_event_stream(body) => {
            ServerSentEvents::new(body).for_each(|event| assembler.read(&event));
        }
        Err(_) if body.trim_ascii_start().starts_with(b"[") => {
            whole_items(body).into_iter().for_each(|chunk| assembler.take(chunk));
        }
        _ if has_lines(dialect, body) => assembler.read_lines(body),
        _ if body.trim_ascii().is_empty() => return AssembledAnswer::default(),
        _ => {
            let error = Some(format!("no JSON: {}", beginning(body)));
            return AssembledAnswer { error, ..AssembledAnswer::default() };
        }
    }
    assembler.finish()
}

/// Whether an object is not the answer, but a piece of one: a stream of lines may have come to its first only.
fn is_event(dialect: Dialect, object: &Object) -> bool {
    match dialect {
        Dialect::OllamaChat | Dialect::OllamaGenerate => {
            object.get("done").is_some_and(|done| done != &Value::Bool(true))
        }
        Dialect::Cohere => object.contains_key("event_type"),
        _ => false,
    }
}

/// Whether an answer is a stream of lines of JSON.
fn has_lines(dialect: Dialect, body: &[u8]) -> bool {
    let streams_lines =
        matches!(dialect, Dialect::OllamaChat | Dialect::OllamaGenerate | Dialect::Cohere);
    streams_lines && body.trim_ascii_start().starts_with(b"{")
}

fn assemble_aws_events(dialect: Dialect, body: &[u8]) -> AssembledAnswer {
    let mut assembler = StreamAssembler::new(dialect);
    let (events, _) = read_events(body);
    for event in events {
        match repair::parse::<Object>(event.payload) {
            Ok(payload) if event.is_error => {
                assembler.fail(format!("{}: {}", event.name, error_message(&payload)));
            }
            // What a model streams that was invoked.
            Ok(payload) if event.name == "chunk" => match decode_chunk(&payload) {
                Some(chunk) => assembler.take(chunk),
                None => assembler.unread_events += 1,
            },
            Ok(payload) => assembler.take(named(Value::Object(payload), event.name.as_bytes())),
            Err(_) => assembler.unread_events += 1,
        }
    }
    assembler.finish()
}

fn decode_chunk(payload: &Object) -> Option<Value> {
    let bytes = BASE64.decode(text(payload, "bytes")?).ok()?;
    repair::parse(&bytes).ok()
}

/// The events of a stream while they are put together.
struct StreamAssembler {
    /// The API in whose words events are put together.
    dialect: Dialect,
    translator: EventTranslator,
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
            dialect: dialect.translated(),
            translator: EventTranslator::new(dialect),
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
            return self.fail(error_message(&event));
        }
        for event in self.translator.translate(event) {
            self.take_translated(event);
        }
    }

    fn fail(&mut self, error: String) {
        self.error = Some(error);
        self.is_failed_by_provider = true;
    }

    /// Reads a stream of lines of JSON. The last line may have been cut.
    fn read_lines(&mut self, body: &[u8]) {
        let lines = body.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        let mut lines = lines.peekable();
        while let Some(line) = lines.next() {
            match repair::parse(line) {
                _ if line.is_empty() => {}
                Ok(value) => self.take(value),
                Err(_) => self.unread_events += u64::from(lines.peek().is_some()),
            }
        }
    }

    fn take_translated(&mut self, event: Object) {
        if self.dialect == Dialect::Generate {
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
            let id = event.shift_remove("id").unwrap_or_default();
            let id = self.id.get_or_insert(id);
            if !id.is_null() {
                event.insert("id".to_owned(), id.clone());
            }
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
        AssembledAnswer {
            whole,
            single_call: None,
            error,
            is_complete,
            is_failed_by_provider,
            unread_events,
        }
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
    if said.trim().is_empty() { format!("HTTP {status}") } else { format!("HTTP {status}: {said}") }
}

/// The beginning of a body, for an error.
fn beginning(body: &[u8]) -> String {
    // A character has at most four bytes.
    let start = &body[..body.len().min(4 * SHOWN_CHARACTERS)];
    String::from_utf8_lossy(start).chars().take(SHOWN_CHARACTERS).collect()
}
