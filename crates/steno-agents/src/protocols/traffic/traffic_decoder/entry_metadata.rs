//! Metadata of entries decoded from an exchange, and notices about omitted bytes.

use serde_json::json;

use super::OpenExchange;
use crate::protocols::traffic::body_meter::MeasuredBody;
use crate::protocols::traffic::decoded_response::DecodedResponse;
use steno_model::entry::{Entry, EntryKind, Role};
use steno_model::json::{Object, Value};

/// A notice that part of a body was not kept, if so.
pub(super) fn omission_notice(
    what: &str,
    measured: &MeasuredBody,
    metadata: Object,
) -> Option<Entry> {
    let MeasuredBody { length, omitted, blake3, .. } = measured;
    let text = format!(
        "{omitted} of the {length} bytes of the {what} were not kept; all of them have the BLAKE3 hash {blake3}"
    );
    let mut entry = Entry::new(Role::System, EntryKind::Notice, text);
    entry.metadata = Some(metadata);
    (*omitted > 0).then_some(entry)
}

pub(super) fn error_entry(error: String, metadata: Object) -> Entry {
    let mut entry = Entry::new(Role::System, EntryKind::Error, error);
    entry.metadata = Some(metadata);
    entry
}

/// Metadata that a prompt and its answer share. The `exchange` field joins them.
pub(super) fn exchange_metadata(open: &OpenExchange) -> Object {
    let dialect = open.exchange.dialect();
    Object::from_iter([
        ("adapter".to_owned(), json!(dialect.adapter())),
        ("api".to_owned(), json!(dialect.name())),
        ("exchange".to_owned(), json!(open.id)),
    ])
}

/// Metadata of an answer.
pub(super) fn response_metadata(open: &OpenExchange, reply: &DecodedResponse) -> Object {
    let exchange = &open.exchange;
    let mut metadata = exchange_metadata(open);
    let mut add = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            metadata.insert(name.to_owned(), value);
        }
    };
    let milliseconds = |after: u64| json!(after as f64 / 1000.0);
    add("model", reply.model.as_deref().map(Value::from));
    add("response_id", reply.id.as_deref().map(Value::from));
    add("finish_reason", reply.finish_reason.as_deref().map(Value::from));
    add("status", exchange.status.filter(|status| *status >= 300).map(Value::from));
    add("attempt", open.retry.as_ref().map(|retry| retry.attempt.into()));
    let repeated = open.retry.as_ref().and_then(|retry| retry.previous_exchange.as_deref());
    add("retry_of", repeated.map(Value::from));
    let trailers = exchange.trailers.iter().map(|(name, value)| (name.clone(), json!(value)));
    let trailers: Object = trailers.collect();
    add("trailers", (!trailers.is_empty()).then(|| trailers.into()));
    let announced: Vec<u16> = exchange.informational.iter().map(|(status, _)| *status).collect();
    add("informational", (!announced.is_empty()).then(|| json!(announced)));
    add("first_byte_ms", exchange.chunks.first().map(|(after, _)| milliseconds(*after)));
    add("connection_error", reply.connection_error.as_deref().map(Value::from));
    add("unread_events", Some(reply.unread_events).filter(|count| *count > 0).map(Value::from));
    add("latency_ms", exchange.end.as_ref().map(|end| milliseconds(end.after_micros)));
    metadata
}
