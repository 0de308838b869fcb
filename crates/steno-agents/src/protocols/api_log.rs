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
    ApiConversation, api_message_entries, finish_reason, item_entries, response_entries,
    response_usage,
};
pub(crate) use probe::is_request_parameter;

use uuid::Uuid;

use crate::agent::Agent;
use crate::agent::record_format::RecordFormat;
use crate::decoding::json_lines::JsonLines;
use crate::decoding::{document, json_repair};
use crate::reader::file_tree::FileTree;
use crate::reader::{FormatError, FormatReader, ItemSink, ReaderItem};
use steno_model::durable::FileError;
use steno_model::entry::Entry;
use steno_model::json::{Object, Value};
use steno_model::problem::Problem;
use steno_model::session::Session;
use steno_vault::{SessionBundle, SessionFile};
use stream::ApiStreamAssembler;

/// The agent's name.
pub const AGENT_NAME: &str = "api-log";

/// Finds and reads API logs.
pub const READER: FormatReader =
    FormatReader { agent: AGENT_NAME, find: find_sessions, read: read_session };

/// What is known about logs of model APIs.
pub(crate) const AGENT: Agent = Agent {
    lines: Some(RecordFormat::by_records(|source| Ok(recognises(source))).with_api_calls()),
    ..Agent::new("Anthropic and OpenAI API logs", &READER)
};

fn find_sessions(tree: &FileTree) -> Result<Vec<SessionBundle>, FileError> {
    let bundles = tree.files().iter().map(|file| SessionBundle::from_file(file));
    Ok(bundles.filter(|bundle| recognises(&bundle.files[0])).collect())
}

/// Whether a file is a log of calls to a model's API.
pub fn recognises(source: &SessionFile) -> bool {
    probe::is_api_log(source)
}

fn read_session(bundle: &SessionBundle, emit: ItemSink<'_>) -> Result<Session, FormatError> {
    let source = document::only_file(bundle)?;
    if probe::has_lines(source)? {
        let first = JsonLines::open(source)?.flatten().next();
        let mut conversation = ApiConversation::new(
            AGENT_NAME,
            &derive_log_id(&first.map(|line| line.bytes).unwrap_or_default()),
        );
        read_lines(source, &mut conversation, emit)?;
        Ok(conversation.finish())
    } else {
        let bytes = source.read_bytes()?;
        let mut conversation = ApiConversation::new(AGENT_NAME, &derive_log_id(&bytes));
        read_document(source, &bytes, &mut conversation, emit);
        Ok(conversation.finish())
    }
}

/// Derives a session id from the hash of the first record, because a log has no id of its own.
fn derive_log_id(first: &[u8]) -> String {
    blake3::hash(first).to_hex()[..32].to_owned()
}

fn read_document(
    source: &SessionFile,
    bytes: &[u8],
    conversation: &mut ApiConversation,
    emit: ItemSink<'_>,
) {
    match json_repair::parse_lenient(bytes) {
        Ok(Value::Object(object)) => read_record(&object, conversation, emit),
        Ok(Value::Array(records)) => {
            for object in records.iter().filter_map(Value::as_object) {
                read_record(object, conversation, emit);
            }
        }
        Ok(_) => emit(ReaderItem::Problem(Problem::for_file(source.path(), "not a JSON object"))),
        Err(reason) => emit(ReaderItem::Problem(Problem::for_file(source.path(), reason))),
    }
}

fn read_lines(
    source: &SessionFile,
    conversation: &mut ApiConversation,
    emit: ItemSink<'_>,
) -> Result<(), FormatError> {
    let mut stream = ApiStreamAssembler::default();
    for line in JsonLines::open(source)? {
        let line = match line {
            Ok(line) => line,
            Err(problem) => {
                emit(ReaderItem::Problem(problem));
                continue;
            }
        };
        let Some(json) = stream::event_data(&line.bytes) else {
            continue;
        };
        match json_repair::parse_lenient::<Object>(json) {
            Ok(object) if ApiStreamAssembler::is_stream_event(&object) => {
                for message in stream.add_event(object) {
                    conversation.add_response(&message, emit);
                }
            }
            Ok(object) => read_record(&object, conversation, emit),
            Err(reason) => {
                emit(ReaderItem::Problem(Problem::at_line(source.path(), line.number, reason)));
            }
        }
    }
    for message in stream.finish() {
        conversation.add_response(&message, emit);
    }
    Ok(())
}

/// Reads a request, a response, or an object with both.
fn read_record(object: &Object, conversation: &mut ApiConversation, emit: ItemSink<'_>) {
    let part = |name| object.get(name).and_then(Value::as_object);
    if probe::is_api_request(object) {
        conversation.add_request(object, emit);
    } else if part("request").or(part("response")).is_some() {
        conversation.note_time(object);
        if let Some(request) = part("request") {
            conversation.add_request(part_body(request), emit);
        }
        if let Some(response) = part("response") {
            conversation.add_response(part_body(response), emit);
        }
    } else {
        conversation.add_response(object, emit);
    }
}

/// Whether an object is an API response, or a pair of request and response.
pub fn is_api_exchange(object: &Object) -> bool {
    let part = |name| object.get(name).and_then(Value::as_object).map(part_body);
    probe::is_api_response(object)
        || part("request").is_some_and(probe::is_api_request)
        || part("response").is_some_and(probe::is_api_response)
}

/// The entries of such an object, without entry ids and sequence numbers.
pub fn exchange_entries(object: &Object) -> Vec<Entry> {
    let mut entries = Vec::new();
    read_record(object, &mut ApiConversation::new(AGENT_NAME, ""), &mut |item| {
        if let ReaderItem::Entry(mut entry) = item {
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
