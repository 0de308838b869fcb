//! Decodes the messages of a session into entries, and collects the session's metadata.

use crate::decoding::agent_message::AgentMessage;
use crate::decoding::entry_emitter::EntryEmitter;
use crate::decoding::json_fields::{as_count, nonempty_text, parse_time};
use crate::decoding::message_ids::UniqueMessageIds;
use crate::reader::ItemSink;
use steno_model::entry::{Entry, EntryKind, Role, Usage};
use steno_model::json::{Object, Value};
use steno_model::problem::Problem;
use steno_model::session::{Session, SessionId};
use steno_model::timestamp::Timestamp;

use super::{AGENT_NAME, part};

/// Fields of a session's record that map to fields of [`Session`].
const MAPPED_FIELDS: [&str; 5] = ["id", "title", "directory", "parentID", "time"];

/// Decodes the messages of one session.
pub(super) struct OpenCodeConversation<'a> {
    session: Session,
    output: EntryEmitter<'a>,
    ids: UniqueMessageIds,
    /// Makes call ids unique: each tool part is a call of its own, even if ids repeat.
    calls: UniqueMessageIds,
    /// Whether a compaction was emitted and its summary has not been read yet.
    is_compacting: bool,
}

impl<'a> OpenCodeConversation<'a> {
    /// Starts a session from its record `info`.
    pub(super) fn new(info: &Value, emit: ItemSink<'a>) -> Self {
        let id = nonempty_text(info, "id").unwrap_or_default();
        let mut session = Session::new(SessionId::for_native(AGENT_NAME, id), AGENT_NAME);
        session.native_id = nonempty_text(info, "id").map(str::to_owned);
        session.title = nonempty_text(info, "title").map(str::to_owned);
        session.project = nonempty_text(info, "directory").map(str::to_owned);
        session.parent = nonempty_text(info, "parentID").map(str::to_owned);
        session.extra = unmapped_fields(info);
        let output = EntryEmitter::new(AGENT_NAME, id, emit);
        Self {
            session,
            output,
            ids: UniqueMessageIds::default(),
            calls: UniqueMessageIds::default(),
            is_compacting: false,
        }
    }

    /// Decodes a message with its parts.
    pub(super) fn push_message(&mut self, info: &Value, parts: Vec<Value>) {
        self.note_times(info);
        if self.session.project.is_none() {
            let folder = info.get("path").and_then(|path| nonempty_text(path, "cwd"));
            self.session.project = folder.map(str::to_owned);
        }
        match info.get("role").and_then(Value::as_str) {
            Some("user") => self.decode_user(info, parts),
            Some("assistant") => self.decode_assistant(info, parts),
            _ => self.decode_unknown(info, parts),
        }
    }

    /// Reports a record that could not be read.
    pub(super) fn report_problem(&mut self, problem: Problem) {
        self.output.emit_problem(problem);
    }

    /// Returns the session.
    pub(super) fn finish(self) -> Session {
        self.session
    }

    fn decode_user(&mut self, info: &Value, parts: Vec<Value>) {
        let mut message = self.start_message(info);
        for part in parts {
            self.is_compacting |= part.get("type").and_then(Value::as_str) == Some("compaction");
            part::decode_user_part(&mut message, part);
        }
        self.output.emit_message(message);
    }

    fn decode_assistant(&mut self, info: &Value, parts: Vec<Value>) {
        let mut message = self.start_message(info);
        // A message that cost nothing was aborted, or copied from the session of another agent.
        message.usage = info.get("tokens").map(parse_usage).filter(|usage| !usage.is_empty());
        if info.get("summary") == Some(&Value::Bool(true))
            && !std::mem::take(&mut self.is_compacting)
        {
            // Old versions write a summary without a `compaction` part.
            message.add_text(Role::System, EntryKind::Compaction, "");
        }
        for mut part in parts {
            if let Some(Value::String(id)) = part.get_mut("callID") {
                *id = self.calls.make_unique(id);
            }
            part::decode_assistant_part(&mut message, part);
        }
        if let Some(error) = info.get("error").filter(|error| !error.is_null()) {
            message.push(part::error_entry(error));
        }
        if let Some(cost) = info.get("cost").and_then(Value::as_f64) {
            *self.session.totals.cost.get_or_insert(0.0) += cost;
        }
        if let Some(reason) = nonempty_text(info, "finish") {
            self.session.stop_reason = Some(reason.to_owned());
        }
        self.output.emit_answer(message);
    }

    fn decode_unknown(&mut self, info: &Value, parts: Vec<Value>) {
        let mut message = self.start_message(info);
        message.add_unknown(info.clone());
        parts.into_iter().for_each(|part| message.add_unknown(part));
        self.output.emit_message(message);
    }

    fn start_message(&mut self, info: &Value) -> AgentMessage {
        AgentMessage {
            id: nonempty_text(info, "id").map(|id| self.ids.make_unique(id)),
            parent: nonempty_text(info, "parentID").map(str::to_owned),
            model: model_name(info),
            created_at: parse_time_field(info.get("time"), "created"),
            ..AgentMessage::default()
        }
    }

    fn note_times(&mut self, info: &Value) {
        let Session { started, ended, .. } = &mut self.session;
        for at in ["created", "completed"]
            .into_iter()
            .filter_map(|n| parse_time_field(info.get("time"), n))
        {
            if started.is_none_or(|started| at.instant() < started.instant()) {
                *started = Some(at);
            }
            if ended.is_none_or(|ended| at.instant() > ended.instant()) {
                *ended = Some(at);
            }
        }
    }
}

/// Parses a field of a `time` object, in milliseconds.
pub(super) fn parse_time_field(times: Option<&Value>, name: &str) -> Option<Timestamp> {
    parse_time(times?.get(name)?)
}

/// Sets the entry's time from a field of a `time` object, if the part has one.
pub(super) fn with_time(mut entry: Entry, times: Option<&Value>, name: &str) -> Entry {
    entry.created_at = parse_time_field(times, name);
    entry
}

/// The model as `provider/model`, as OpenCode writes it.
fn model_name(info: &Value) -> Option<String> {
    let ids = if info.get("modelID").is_some() { info } else { info.get("model")? };
    let model = nonempty_text(ids, "modelID")?;
    Some(match nonempty_text(ids, "providerID") {
        Some(provider) => format!("{provider}/{model}"),
        None => model.to_owned(),
    })
}

fn parse_usage(tokens: &Value) -> Usage {
    let count = |value: Option<&Value>| value.map_or(0, as_count);
    let cache = tokens.get("cache");
    let reasoning = count(tokens.get("reasoning"));
    Usage {
        input: count(tokens.get("input")),
        cache_read: count(cache.and_then(|cache| cache.get("read"))),
        cache_write: count(cache.and_then(|cache| cache.get("write"))),
        output: count(tokens.get("output")).saturating_add(reasoning),
        reasoning,
        ..Usage::default()
    }
}

fn unmapped_fields(info: &Value) -> Object {
    let Value::Object(fields) = info else { return Object::new() };
    let unknown = fields.iter().filter(|(name, _)| !MAPPED_FIELDS.contains(&name.as_str()));
    unknown.map(|(name, value)| (name.clone(), value.clone())).collect()
}
