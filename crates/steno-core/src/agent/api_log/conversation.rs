//! Joins requests and responses to one conversation and emits each message once.

use blake3::Hash;

use super::{anthropic, chat};
use crate::agent::fields::text;
use crate::agent::responses::{self, content_text};
use crate::agent::{entries, usage};
use crate::entry::{Entry, Kind, Numbering, Role, Usage};
use crate::format::{Emit, Item};
use crate::json::{Object, Style, Value};
use crate::session::{Session, SessionId};
use crate::sums::SumSet;
use crate::timestamp::Timestamp;

/// The conversation so far. Each point in it is identified by a hash over the message and all messages before it.
pub(crate) struct Conversation {
    session: Session,
    numbering: Numbering,
    /// Hashes of all points that a request has reached.
    told: SumSet,
    /// Points after which the model responded. The next message of a later request repeats that response.
    answered: SumSet,
    /// The point that the last request reached.
    point: Hash,
    /// Ids of the responses emitted so far.
    responses: SumSet,
    at: Option<Timestamp>,
}

impl Conversation {
    /// A conversation with this id.
    pub(crate) fn new(agent: &str, name: &str) -> Self {
        Self {
            session: Session::new(SessionId::for_native(agent, name), agent),
            numbering: Numbering::new(agent, name),
            told: SumSet::default(),
            answered: SumSet::default(),
            point: blake3::hash(b""),
            responses: SumSet::default(),
            at: None,
        }
    }

    /// The session, for facts outside of messages.
    pub(crate) fn session(&mut self) -> &mut Session {
        &mut self.session
    }

    /// Takes over the timestamp of a log record.
    pub(crate) fn note_time(&mut self, record: &Object) {
        let time = ["timestamp", "time", "created_at"].iter().find_map(|name| text(record, name));
        self.at = time.and_then(|at| at.parse().ok());
    }

    /// Sets the time of the following entries.
    pub(crate) fn set_time(&mut self, at: Option<Timestamp>) {
        self.at = at;
    }

    /// Adds a request and emits the messages that no earlier request had.
    pub(crate) fn request(&mut self, request: &Object, emit: Emit<'_>) {
        self.point = blake3::hash(b"");
        for field in ["system", "instructions"] {
            let system = request.get(field).map(content_text).unwrap_or_default();
            if !system.is_empty() && self.reach(system.as_bytes()) {
                self.show(Entry::new(Role::System, Kind::Text, system), emit);
            }
        }
        match request.get("messages").or(request.get("input")) {
            Some(Value::Array(messages)) => self.messages(messages, emit),
            Some(Value::String(text)) if self.reach(text.as_bytes()) => {
                self.show(Entry::new(Role::User, Kind::Text, text.as_str()), emit);
            }
            _ => {}
        }
    }

    /// Adds the messages of a request.
    pub(crate) fn messages(&mut self, messages: &[Value], emit: Emit<'_>) {
        for message in messages.iter().filter_map(Value::as_object) {
            let before = self.point;
            let is_new = self.reach(Style::COMPACT.print(message).as_bytes());
            let is_echo = self.answered.contains(before.as_bytes()) && is_answer(message);
            if is_new && is_echo {
                // A response may be repeated as several items, all of them known.
                self.answered.insert(self.point.as_bytes());
            } else if is_new {
                message_entries(message).into_iter().for_each(|entry| self.show(entry, emit));
            }
        }
    }

    /// Adds a whole response. A response with a known id is skipped.
    pub(crate) fn response(&mut self, response: &Object, emit: Emit<'_>) {
        let id = text(response, "id").map(str::to_owned);
        if id.as_ref().is_some_and(|id| !self.responses.insert(id)) {
            return;
        }
        self.answered.insert(self.point.as_bytes());
        let created = response.get("created").or(response.get("created_at"));
        let created = created.and_then(Value::as_i64).and_then(Timestamp::from_unix);
        let stop = text(response, "stop_reason").or(finish_reason(response));
        self.session.stop_reason = stop.map(str::to_owned).or(self.session.stop_reason.take());
        let mut entries = response_entries(response);
        let usage = response_usage(response);
        if usage.is_some() && entries.is_empty() {
            entries.push(Entry::new(Role::Assistant, Kind::Text, ""));
        }
        if let Some(last) = entries.last_mut() {
            last.usage = usage;
        }
        for mut entry in entries {
            entry.created_at = created;
            entry.message_id.clone_from(&id);
            entry.model = text(response, "model").map(str::to_owned);
            self.show(entry, emit);
        }
    }

    /// Adds an entry other than a message.
    pub(crate) fn say(&mut self, entry: Entry, emit: Emit<'_>) {
        self.show(entry, emit);
    }

    /// Returns the session.
    pub(crate) fn finish(self) -> Session {
        self.session
    }

    /// Advances by one message. Returns whether no request has reached this point before.
    fn reach(&mut self, message: &[u8]) -> bool {
        let mut hasher = blake3::Hasher::new();
        hasher.update(self.point.as_bytes()).update(message);
        self.point = hasher.finalize();
        self.told.insert(self.point.as_bytes())
    }

    fn show(&mut self, mut entry: Entry, emit: Emit<'_>) {
        entry.created_at = entry.created_at.or(self.at);
        self.numbering.assign(&mut entry);
        emit(Item::Entry(Box::new(entry)));
    }
}

/// Whether a message or item of a request came from the model.
fn is_answer(message: &Object) -> bool {
    match text(message, "role") {
        Some(role) => role == "assistant",
        None => responses::entry(message).is_none_or(|entry| entry.role == Role::Assistant),
    }
}

fn message_entries(message: &Object) -> Vec<Entry> {
    if message.contains_key("type") {
        return responses::entry(message).into_iter().collect();
    }
    said_entries(message)
}

/// The entries of a message of Anthropic Messages or chat completions.
pub(crate) fn said_entries(message: &Object) -> Vec<Entry> {
    let anthropic = |block: &Value| {
        let kind = block.get("type").and_then(Value::as_str).unwrap_or_default();
        kind.starts_with("tool_") || kind.ends_with("thinking") || block.get("source").is_some()
    };
    match message.get("content") {
        Some(Value::Array(blocks)) if blocks.iter().any(anthropic) => anthropic::entries(message),
        _ => chat::entries(message),
    }
}

/// The entries of a whole response, or of an error response.
pub(crate) fn response_entries(response: &Object) -> Vec<Entry> {
    if let Some(Value::Object(error)) = response.get("error") {
        let message =
            text(error, "message").map_or_else(|| Style::COMPACT.print(error), str::to_owned);
        return vec![Entry::new(Role::System, Kind::Error, message)];
    }
    match (response.get("output"), response.get("choices")) {
        (Some(Value::Array(items)), _) => {
            items.iter().filter_map(Value::as_object).flat_map(item_entries).collect()
        }
        (_, Some(Value::Array(_))) => chat::choices(response),
        _ if response.contains_key("content") => anthropic::entries(response),
        _ => vec![entries::unknown(response.clone())],
    }
}

/// The entries of an output item, with the result of a tool that the provider ran.
pub(crate) fn item_entries(item: &Object) -> Vec<Entry> {
    if text(item, "type") == Some("compaction") {
        return vec![Entry::new(Role::System, Kind::Compaction, "")];
    }
    let Some(entry) = responses::entry(item) else {
        return Vec::new();
    };
    let answer = item.get("outputs").or(item.get("output")).filter(|answer| !answer.is_null());
    let answer = answer.filter(|_| entry.kind == Kind::ToolCall).map(|answer| {
        let mut result = Entry::new(Role::Tool, Kind::ToolResult, Style::COMPACT.print(answer));
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
    Some(if is_openai { usage::openai(counts) } else { usage::anthropic(counts) })
}
