//! Logs of model APIs: requests, responses and streams of Anthropic Messages, OpenAI chat completions and Responses.
//!
//! A file is one JSON document, JSON Lines, or the lines of an event stream with or without the `data:` prefix.
//! Stream events are assembled to whole messages. Each request repeats the conversation, so only its new messages
//! become entries.

pub(crate) mod anthropic;
pub(crate) mod chat;
mod conversation;
mod open_response;
mod probe;
pub(crate) mod stream;

pub(crate) use conversation::{
    Conversation, finish_reason, item_entries, response_entries, response_usage, said_entries,
};
pub(crate) use probe::is_parameter;

use uuid::Uuid;

use crate::agent::json_lines::JsonLines;
use crate::agent::{document, repair};
use crate::durable::FileError;
use crate::entry::Entry;
use crate::format::tree::Tree;
use crate::format::{Emit, FormatError, Item, Reader};
use crate::json::{Object, Value};
use crate::problem::Problem;
use crate::session::Session;
use steno_vault::{Bundle, Source};
use stream::Stream;

/// The agent's name.
pub const AGENT: &str = "api-log";

/// Finds and reads API logs.
pub const READER: Reader = Reader { agent: AGENT, find, read };

fn find(tree: &Tree) -> Result<Vec<Bundle>, FileError> {
    let bundles = tree.files().iter().map(|file| Bundle::file(file));
    Ok(bundles.filter(|bundle| recognises(&bundle.sources[0])).collect())
}

/// Whether a file is a log of calls to a model's API.
pub(crate) fn recognises(source: &Source) -> bool {
    probe::is_log(source)
}

fn read(bundle: &Bundle, emit: Emit<'_>) -> Result<Session, FormatError> {
    let source = document::only_source(bundle)?;
    if probe::has_lines(source)? {
        let first = JsonLines::of(source)?.flatten().next();
        let mut conversation =
            Conversation::new(AGENT, &name(&first.map(|line| line.bytes).unwrap_or_default()));
        read_lines(source, &mut conversation, emit)?;
        Ok(conversation.finish())
    } else {
        let bytes = source.bytes()?;
        let mut conversation = Conversation::new(AGENT, &name(&bytes));
        read_document(source, &bytes, &mut conversation, emit);
        Ok(conversation.finish())
    }
}

/// Derives a session id from the hash of the first record, because a log has no id of its own.
fn name(first: &[u8]) -> String {
    blake3::hash(first).to_hex()[..32].to_owned()
}

fn read_document(source: &Source, bytes: &[u8], conversation: &mut Conversation, emit: Emit<'_>) {
    match repair::parse(bytes) {
        Ok(Value::Object(object)) => record(&object, conversation, emit),
        Ok(Value::Array(records)) => {
            for object in records.iter().filter_map(Value::as_object) {
                record(object, conversation, emit);
            }
        }
        Ok(_) => emit(Item::Problem(Problem::of(source.path(), "not a JSON object"))),
        Err(reason) => emit(Item::Problem(Problem::of(source.path(), reason))),
    }
}

fn read_lines(
    source: &Source,
    conversation: &mut Conversation,
    emit: Emit<'_>,
) -> Result<(), FormatError> {
    let mut stream = Stream::default();
    for line in JsonLines::of(source)? {
        let line = match line {
            Ok(line) => line,
            Err(problem) => {
                emit(Item::Problem(problem));
                continue;
            }
        };
        let Some(json) = stream::data(&line.bytes) else {
            continue;
        };
        match repair::parse::<Object>(json) {
            Ok(object) if Stream::takes(&object) => {
                for message in stream.event(object) {
                    conversation.response(&message, emit);
                }
            }
            Ok(object) => record(&object, conversation, emit),
            Err(reason) => {
                emit(Item::Problem(Problem::at(source.path(), line.number, reason)));
            }
        }
    }
    for message in stream.finish() {
        conversation.response(&message, emit);
    }
    Ok(())
}

/// Reads a request, a response, or an object with both.
fn record(object: &Object, conversation: &mut Conversation, emit: Emit<'_>) {
    let part = |name| object.get(name).and_then(Value::as_object);
    if probe::is_request(object) {
        conversation.request(object, emit);
    } else if part("request").or(part("response")).is_some() {
        conversation.note_time(object);
        if let Some(request) = part("request") {
            conversation.request(part_body(request), emit);
        }
        if let Some(response) = part("response") {
            conversation.response(part_body(response), emit);
        }
    } else {
        conversation.response(object, emit);
    }
}

/// Whether an object is an API response, or a pair of request and response.
pub(crate) fn is_exchange(object: &Object) -> bool {
    let part = |name| object.get(name).and_then(Value::as_object).map(part_body);
    probe::is_response(object)
        || part("request").is_some_and(probe::is_request)
        || part("response").is_some_and(probe::is_response)
}

/// The entries of such an object, without entry ids and sequence numbers.
pub(crate) fn exchange_entries(object: &Object) -> Vec<Entry> {
    let mut entries = Vec::new();
    record(object, &mut Conversation::new(AGENT, ""), &mut |item| {
        if let Item::Entry(mut entry) = item {
            (entry.entry_id, entry.sequence) = (Uuid::nil(), 0);
            entries.push(*entry);
        }
    });
    entries
}

/// The JSON body of a request or response. Loggers that also store headers put it in the field `body`.
fn part_body(part: &Object) -> &Object {
    part.get("body").and_then(Value::as_object).unwrap_or(part)
}

#[cfg(test)]
mod tests;
