//! An answer put together: plain or streamed, whole or cut.

use serde_json::json;

use super::body::{ANSWER_LIMIT, too_large};
use super::dialect::Dialect;
use super::exchange::Exchange;
use super::{gemini, request};
use crate::agent::api_log::stream::{self, Stream};
use crate::agent::api_log::{finish_reason, response_entries, response_usage};
use crate::agent::fields::{list, object, text};
use crate::agent::{repair, responses};
use crate::entry::{Entry, Usage};
use crate::json::{Object, Style, Value};

/// How much of a body that is no JSON is told as an error.
const SHOWN: usize = 2000;

/// What came back.
#[derive(Debug, Default)]
pub(super) struct Reply {
    /// What the model said, called and thought.
    pub(super) entries: Vec<Entry>,
    /// The provider's id of it.
    pub(super) id: Option<String>,
    pub(super) model: Option<String>,
    pub(super) finish_reason: Option<String>,
    pub(super) usage: Option<Usage>,
    /// The tokens in the provider's words.
    pub(super) stated_usage: Option<Value>,
    /// Items that a later request may refer to, by their ids.
    pub(super) items: Vec<(String, Option<Entry>)>,
    /// What went wrong.
    pub(super) error: Option<String>,
}

impl Reply {
    /// Puts together what came back in an exchange.
    pub(super) fn of(exchange: &Exchange) -> Self {
        let dialect = exchange.dialect();
        let Assembled { whole, error } = assemble_answer(exchange);
        let mut reply = whole.map(|whole| Self::whole(dialect, whole)).unwrap_or_default();
        let cut = match &exchange.end {
            Some(end) => end.error.clone(),
            None => Some("the recording ended in the middle of it".to_owned()),
        };
        // What broke the stream explains more than that it has no end.
        reply.error = cut.or(reply.error).or(error);
        reply
    }

    fn whole(dialect: Dialect, mut whole: Object) -> Self {
        let gemini = dialect == Dialect::Generate;
        let error = object(&whole, "error").map(message);
        if !gemini {
            // It is told apart from the entries.
            whole.shift_remove("error");
        }
        let whole = &whole;
        let mut entries = if gemini { gemini::entries(whole) } else { answered(whole) };
        entries.iter_mut().for_each(request::settle);
        let incomplete = whole.get("incomplete_details").and_then(|details| details.get("reason"));
        let reason = text(whole, "stop_reason")
            .or(if gemini { gemini::finish_reason(whole) } else { finish_reason(whole) })
            .or(incomplete.and_then(Value::as_str))
            .or(text(whole, "status"));
        let usage = if gemini { gemini::billed(whole) } else { response_usage(whole) };
        Self {
            entries,
            id: text(whole, "id").or(text(whole, "responseId")).map(str::to_owned),
            model: text(whole, "model").or(text(whole, "modelVersion")).map(str::to_owned),
            finish_reason: reason.map(str::to_owned),
            usage: usage.filter(|usage| !usage.is_empty()),
            stated_usage: whole.get("usage").or(whole.get("usageMetadata")).cloned(),
            items: items(whole),
            error,
        }
    }
}

/// Puts the body of an answer together.
fn assemble_answer(exchange: &Exchange) -> Assembled {
    let body = exchange.answer_body();
    let oversize = body.is_too_large.then(|| too_large("answer", ANSWER_LIMIT));
    let mut assembled = match exchange.status {
        Some(status) if !(200..300).contains(&status) => {
            Assembled { whole: None, error: Some(refusal(status, &body.bytes)) }
        }
        // Of a document, the beginning says nothing.
        Some(_) if body.is_too_large && !is_stream(&body.bytes) => Assembled::default(),
        Some(_) => assemble(exchange.dialect(), &body.bytes),
        None => Assembled::default(),
    };
    assembled.error = oversize.or(assembled.error);
    assembled
}

/// The entries of a response of Anthropic or OpenAI.
fn answered(whole: &Object) -> Vec<Entry> {
    if !["output", "choices", "content"].iter().any(|field| whole.contains_key(*field)) {
        return Vec::new();
    }
    response_entries(whole)
}

/// The items of a response that have ids; those of which only ciphertext came say nothing.
fn items(whole: &Object) -> Vec<(String, Option<Entry>)> {
    let items = list(whole, "output").iter().filter_map(Value::as_object);
    let named = items.filter_map(|item| {
        let mut entry = responses::entry(item);
        entry.iter_mut().for_each(request::settle);
        Some((text(item, "id")?.to_owned(), entry))
    });
    named.collect()
}

/// A response in one piece, and what was wrong with it.
#[derive(Default)]
struct Assembled {
    whole: Option<Object>,
    error: Option<String>,
}

fn assemble(dialect: Dialect, body: &[u8]) -> Assembled {
    match repair::parse::<Value>(body) {
        Ok(Value::Object(whole)) => Assembled { whole: Some(whole), error: None },
        // Gemini streams a list where nobody asks for events.
        Ok(Value::Array(chunks)) => {
            let mut events = Events::new(dialect);
            chunks.into_iter().for_each(|chunk| events.take(chunk));
            events.finish()
        }
        Ok(_) | Err(_) if is_stream(body) => {
            let mut events = Events::new(dialect);
            body.split(|byte| *byte == b'\n').for_each(|line| events.line(line));
            events.finish()
        }
        _ if body.trim_ascii().is_empty() => Assembled::default(),
        _ => Assembled { whole: None, error: Some(format!("no JSON: {}", shown(body))) },
    }
}

fn is_stream(body: &[u8]) -> bool {
    let body = body.trim_ascii_start();
    [&b"data:"[..], b"event:", b":", b"id:", b"retry:"].iter().any(|field| body.starts_with(field))
}

/// The events of a stream while they are put together.
struct Events {
    dialect: Dialect,
    stream: Stream,
    /// The id of the first chunk.
    id: Option<Value>,
    whole: Option<Object>,
    error: Option<String>,
    ended: bool,
}

impl Events {
    fn new(dialect: Dialect) -> Self {
        let stream = Stream::default();
        Self { dialect, stream, id: None, whole: None, error: None, ended: false }
    }

    fn line(&mut self, line: &[u8]) {
        if let Some(data) = line.trim_ascii().strip_prefix(b"data:") {
            self.ended |= data.trim_ascii() == b"[DONE]";
            if let Some(Ok(event)) = stream::data(line).map(repair::parse) {
                self.take(event);
            }
        }
    }

    fn take(&mut self, event: Value) {
        let Value::Object(event) = event else { return };
        if text(&event, "type") == Some("error") || event.contains_key("error") {
            let error = object(&event, "error").unwrap_or(&event);
            self.error = Some(message(error));
        } else if self.dialect == Dialect::Generate {
            let whole = self.whole.get_or_insert_with(Object::new);
            gemini::merge(whole, &event);
            self.ended = gemini::finish_reason(whole).is_some();
        } else if let Some(event) = self.event(event) {
            let ends =
                ["message_stop", "response.completed", "response.incomplete", "response.failed"];
            self.ended |= text(&event, "type").is_some_and(|kind| ends.contains(&kind));
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

    fn finish(mut self) -> Assembled {
        let open = std::mem::take(&mut self.stream).finish();
        self.keep(open);
        self.ended |= self.whole.as_ref().is_some_and(|whole| finish_reason(whole).is_some());
        if !self.ended && self.error.is_none() {
            self.error = Some("the stream ended before its last event".to_owned());
        }
        Assembled { whole: self.whole, error: self.error }
    }
}

/// What a server says about a request that it did not take.
fn refusal(status: u16, body: &[u8]) -> String {
    let said = match repair::parse::<Value>(body) {
        Ok(Value::Object(whole)) => match whole.get("error") {
            Some(Value::Object(error)) => message(error),
            Some(Value::String(error)) => error.clone(),
            _ => message(&whole),
        },
        // Gemini wraps even errors of streams into a list.
        Ok(Value::Array(list)) => {
            let error =
                list.first().and_then(|first| first.get("error")).and_then(Value::as_object);
            error.map_or_else(|| shown(body), message)
        }
        _ => shown(body),
    };
    format!("HTTP {status}: {said}")
}

fn message(error: &Object) -> String {
    text(error, "message").map_or_else(|| Style::COMPACT.print(&json!(error)), str::to_owned)
}

fn shown(body: &[u8]) -> String {
    // A character has at most four bytes.
    let start = &body[..body.len().min(4 * SHOWN)];
    String::from_utf8_lossy(start).chars().take(SHOWN).collect()
}
