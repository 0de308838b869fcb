//! Decodes one call of the proxy.

use serde_json::json;

use crate::decoding::json_fields::{text_field, timestamp_from_millis};
use crate::protocols::api_log::ApiConversation;
use crate::reader::ItemSink;
use steno_model::entry::{Entry, EntryKind, Role};
use steno_model::json::{Object, Value};
use steno_model::timestamp::Timestamp;

/// A logged call.
pub(super) struct LiteLlmCall(Object);

impl LiteLlmCall {
    /// Wraps the object. `None` if it is not a call.
    pub(super) fn from_json(value: Value) -> Option<Self> {
        let Value::Object(call) = value else {
            return None;
        };
        let named = text_field(&call, "id").or(text_field(&call, "request_id")).is_some();
        let is_call =
            named && text_field(&call, "call_type").is_some() && call.contains_key("startTime");
        is_call.then_some(Self(call))
    }

    /// The id of the call.
    pub(super) fn id(&self) -> &str {
        text_field(&self.0, "id").or(text_field(&self.0, "request_id")).unwrap_or_default()
    }

    /// The id that calls of one conversation share: the session id, else the trace id, else empty.
    pub(super) fn conversation_id(&self) -> &str {
        text_field(&self.0, "session_id").or(text_field(&self.0, "trace_id")).unwrap_or_default()
    }

    /// Adds the call to a conversation.
    pub(super) fn add_to_conversation(
        &self,
        conversation: &mut ApiConversation,
        emit: ItemSink<'_>,
    ) {
        let (started, ended) =
            (self.parse_time_field("startTime"), self.parse_time_field("endTime"));
        self.note_session(conversation, started, ended);
        conversation.set_time(started);
        let mut request = Object::new();
        if let Some(messages) = self.0.get("messages") {
            request.insert("messages".to_owned(), messages.clone());
        }
        conversation.add_request(&request, emit);
        conversation.set_time(ended.or(started));
        match text_field(&self.0, "error_str").filter(|error| !error.is_empty()) {
            Some(error) => {
                conversation.add_entry(Entry::new(Role::System, EntryKind::Error, error), emit)
            }
            None => conversation.add_response(&self.complete_response(), emit),
        }
    }

    fn note_session(
        &self,
        conversation: &mut ApiConversation,
        first: Option<Timestamp>,
        last: Option<Timestamp>,
    ) {
        let session = conversation.session();
        session.started = session.started.or(first);
        session.ended = last.or(session.ended);
        let cost = self.0.get("response_cost").or(self.0.get("spend")).and_then(Value::as_f64);
        if let Some(cost) = cost {
            session.totals.cost = Some(session.totals.cost.unwrap_or_default() + cost);
        }
    }

    /// The response, completed with the call's own model and counts.
    fn complete_response(&self) -> Object {
        let logged = self.0.get("response").and_then(Value::as_object);
        let mut response = logged.cloned().unwrap_or_default();
        let mut state = |field: &str, value: Value| {
            if response.get(field).is_none_or(Value::is_null) {
                response.insert(field.to_owned(), value);
            }
        };
        state("id", json!(self.id()));
        state("model", self.0.get("model").cloned().unwrap_or_default());
        if logged.is_none_or(Object::is_empty) {
            state("choices", json!([]));
        }
        let counts = ["prompt_tokens", "completion_tokens", "total_tokens"];
        let counts =
            counts.iter().filter_map(|name| Some(((*name).to_owned(), self.0.get(*name)?.clone())));
        state("usage", Value::Object(counts.collect()));
        response
    }

    /// Parses seconds since the Unix epoch, or a text.
    fn parse_time_field(&self, field: &str) -> Option<Timestamp> {
        match self.0.get(field)? {
            Value::String(text) => text.replacen(' ', "T", 1).parse().ok(),
            number => {
                let millis = (number.as_f64()? * 1000.0).round() as i64;
                timestamp_from_millis(millis)
            }
        }
    }
}
