//! Joins requests and responses to one conversation and emits each message once.

use blake3::Hash;

use super::{anthropic, chat};
use crate::decoding::entry_emitter::emit_next_entry;
use crate::decoding::json_fields::text_field;
use crate::decoding::{entries, usage};
use crate::protocols::responses::{self, content_text};
use crate::reader::ItemSink;
use steno_model::entry::{Entry, EntryKind, Role, Usage};
use steno_model::json::{JsonStyle, Object, Value};
use steno_model::name_hash::CompactNameSet;
use steno_model::numbering::EntryNumbering;
use steno_model::session::{Session, SessionId};
use steno_model::timestamp::Timestamp;

/// The conversation so far. Each point in it is identified by a hash over the message and all messages before it.
pub(crate) struct ApiConversation {
    session: Session,
    numbering: EntryNumbering,
    /// Hashes of all points that a request has reached.
    reached_points: CompactNameSet,
    /// Points after which the model responded. The next message of a later request repeats that response.
    answered_points: CompactNameSet,
    /// The point that the last request reached.
    current_point: Hash,
    /// Ids of the responses emitted so far.
    seen_responses: CompactNameSet,
    at: Option<Timestamp>,
}

impl ApiConversation {
    /// A conversation with this id.
    pub(crate) fn new(agent: &str, name: &str) -> Self {
        Self {
            session: Session::new(SessionId::for_native(agent, name), agent),
            numbering: EntryNumbering::new(agent, name),
            reached_points: CompactNameSet::default(),
            answered_points: CompactNameSet::default(),
            current_point: blake3::hash(b""),
            seen_responses: CompactNameSet::default(),
            at: None,
        }
    }

    /// The session, for facts outside of messages.
    pub(crate) fn session(&mut self) -> &mut Session {
        &mut self.session
    }

    /// Takes over the timestamp of a log record.
    pub(crate) fn note_time(&mut self, record: &Object) {
        let time =
            ["timestamp", "time", "created_at"].iter().find_map(|name| text_field(record, name));
        self.at = time.and_then(|at| at.parse().ok());
    }

    /// Sets the time of the following entries.
    pub(crate) fn set_time(&mut self, at: Option<Timestamp>) {
        self.at = at;
    }

    /// Adds a request and emits the messages that no earlier request had.
    pub(crate) fn add_request(&mut self, request: &Object, emit: ItemSink<'_>) {
        self.current_point = blake3::hash(b"");
        for field in ["system", "instructions"] {
            let system = request.get(field).map(content_text).unwrap_or_default();
            if !system.is_empty() && self.advance_point(system.as_bytes()) {
                self.emit_entry(Entry::new(Role::System, EntryKind::Text, system), emit);
            }
        }
        match request.get("messages").or(request.get("input")) {
            Some(Value::Array(messages)) => self.add_messages(messages, emit),
            Some(Value::String(text)) if self.advance_point(text.as_bytes()) => {
                self.emit_entry(Entry::new(Role::User, EntryKind::Text, text.as_str()), emit);
            }
            _ => {}
        }
    }

    /// Adds the messages of a request.
    pub(crate) fn add_messages(&mut self, messages: &[Value], emit: ItemSink<'_>) {
        for message in messages.iter().filter_map(Value::as_object) {
            let before = self.current_point;
            let is_new = self.advance_point(JsonStyle::COMPACT.print(message).as_bytes());
            let is_echo =
                self.answered_points.contains(before.as_bytes()) && is_model_answer(message);
            if is_new && is_echo {
                // A response may be repeated as several items, all of them known.
                self.answered_points.insert(self.current_point.as_bytes());
            } else if is_new {
                message_entries(message).into_iter().for_each(|entry| self.emit_entry(entry, emit));
            }
        }
    }

    /// Adds a whole response. A response with a known id is skipped.
    pub(crate) fn add_response(&mut self, response: &Object, emit: ItemSink<'_>) {
        let id = text_field(response, "id").map(str::to_owned);
        if id.as_ref().is_some_and(|id| !self.seen_responses.insert(id)) {
            return;
        }
        self.answered_points.insert(self.current_point.as_bytes());
        let created = response.get("created").or(response.get("created_at"));
        let created = created.and_then(Value::as_i64).and_then(Timestamp::from_unix);
        let stop = text_field(response, "stop_reason").or(finish_reason(response));
        self.session.stop_reason = stop.map(str::to_owned).or(self.session.stop_reason.take());
        let mut entries = response_entries(response);
        let usage = response_usage(response);
        if usage.is_some() && entries.is_empty() {
            entries.push(Entry::new(Role::Assistant, EntryKind::Text, ""));
        }
        if let Some(last) = entries.last_mut() {
            last.usage = usage;
        }
        for mut entry in entries {
            entry.created_at = created;
            entry.message_id.clone_from(&id);
            entry.model = text_field(response, "model").map(str::to_owned);
            self.emit_entry(entry, emit);
        }
    }

    /// Adds an entry other than a message.
    pub(crate) fn add_entry(&mut self, entry: Entry, emit: ItemSink<'_>) {
        self.emit_entry(entry, emit);
    }

    /// Returns the session.
    pub(crate) fn finish(self) -> Session {
        self.session
    }

    /// Advances by one message. Returns whether no request has reached this point before.
    fn advance_point(&mut self, message: &[u8]) -> bool {
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.current_point.as_bytes()).update(message);
        self.current_point = hasher.finalize();
        self.reached_points.insert(self.current_point.as_bytes())
    }

    fn emit_entry(&mut self, mut entry: Entry, emit: ItemSink<'_>) {
        entry.created_at = entry.created_at.or(self.at);
        emit_next_entry(entry, &mut self.numbering, emit);
    }
}

/// Whether a message or item of a request came from the model.
fn is_model_answer(message: &Object) -> bool {
    match text_field(message, "role") {
        Some(role) => role == "assistant",
        None => responses::item_entry(message).is_none_or(|entry| entry.role == Role::Assistant),
    }
}

fn message_entries(message: &Object) -> Vec<Entry> {
    if message.contains_key("type") {
        return responses::item_entry(message).into_iter().collect();
    }
    api_message_entries(message)
}

/// The entries of a message of Anthropic Messages or chat completions.
pub(crate) fn api_message_entries(message: &Object) -> Vec<Entry> {
    let anthropic = |block: &Value| {
        let kind = block.get("type").and_then(Value::as_str).unwrap_or_default();
        kind.starts_with("tool_") || kind.ends_with("thinking") || block.get("source").is_some()
    };
    match message.get("content") {
        Some(Value::Array(blocks)) if blocks.iter().any(anthropic) => {
            anthropic::message_entries(message)
        }
        _ => chat::message_entries(message),
    }
}

/// The entries of a whole response, or of an error response.
pub(crate) fn response_entries(response: &Object) -> Vec<Entry> {
    if let Some(Value::Object(error)) = response.get("error") {
        let message = text_field(error, "message")
            .map_or_else(|| JsonStyle::COMPACT.print(error), str::to_owned);
        return vec![Entry::new(Role::System, EntryKind::Error, message)];
    }
    match (response.get("output"), response.get("choices")) {
        (Some(Value::Array(items)), _) => {
            items.iter().filter_map(Value::as_object).flat_map(item_entries).collect()
        }
        (_, Some(Value::Array(_))) => chat::choice_entries(response),
        _ if response.contains_key("content") => anthropic::message_entries(response),
        _ => vec![entries::unknown_entry(response.clone())],
    }
}

/// The entries of an output item, with the result of a tool that the provider ran.
pub(crate) fn item_entries(item: &Object) -> Vec<Entry> {
    if text_field(item, "type") == Some("compaction") {
        return vec![Entry::new(Role::System, EntryKind::Compaction, "")];
    }
    let Some(entry) = responses::item_entry(item) else {
        return Vec::new();
    };
    let answer = item.get("outputs").or(item.get("output")).filter(|answer| !answer.is_null());
    let answer = answer.filter(|_| entry.kind == EntryKind::ToolCall).map(|answer| {
        let mut result =
            Entry::new(Role::Tool, EntryKind::ToolResult, JsonStyle::COMPACT.print(answer));
        result.tool_call_id.clone_from(&entry.tool_call_id);
        result.tool_name.clone_from(&entry.tool_name);
        result
    });
    [Some(entry), answer].into_iter().flatten().collect()
}

/// The finish reason of a completion.
pub(crate) fn finish_reason(response: &Object) -> Option<&str> {
    response.get("choices")?.get(0)?.get("finish_reason")?.as_str()
}

/// The usage of a response.
pub(crate) fn response_usage(response: &Object) -> Option<Usage> {
    let counts = response.get("usage")?.as_object()?;
    let is_openai = response.contains_key("object") || counts.contains_key("prompt_tokens");
    Some(if is_openai { usage::openai_usage(counts) } else { usage::anthropic_usage(counts) })
}
