//! Decodes the messages of a session into entries, and collects the session's metadata.

use crate::agent::fields::{as_count, filled, moment};
use crate::agent::ids::Ids;
use crate::agent::message::Message;
use crate::agent::output::Output;
use crate::entry::{Entry, Kind, Role, Usage};
use crate::format::Emit;
use crate::json::{Object, Value};
use crate::problem::Problem;
use crate::session::{Session, SessionId};
use crate::timestamp::Timestamp;

use super::{AGENT, part};

/// Fields of a session's record that map to fields of [`Session`].
const KNOWN: [&str; 5] = ["id", "title", "directory", "parentID", "time"];

/// Decodes the messages of one session.
pub(super) struct Conversation<'a> {
    session: Session,
    output: Output<'a>,
    ids: Ids,
    /// Makes call ids unique: each tool part is a call of its own, even if ids repeat.
    calls: Ids,
    /// Whether a compaction was emitted and its summary has not been read yet.
    is_compacting: bool,
}

impl<'a> Conversation<'a> {
    /// Starts a session from its record `info`.
    pub(super) fn new(info: &Value, emit: Emit<'a>) -> Self {
        let id = filled(info, "id").unwrap_or_default();
        let mut session = Session::new(SessionId::for_native(AGENT, id), AGENT);
        session.native_id = filled(info, "id").map(str::to_owned);
        session.title = filled(info, "title").map(str::to_owned);
        session.project = filled(info, "directory").map(str::to_owned);
        session.parent = filled(info, "parentID").map(str::to_owned);
        session.extra = rest(info);
        let output = Output::new(AGENT, id, emit);
        Self { session, output, ids: Ids::default(), calls: Ids::default(), is_compacting: false }
    }

    /// Decodes a message with its parts.
    pub(super) fn message(&mut self, info: &Value, parts: Vec<Value>) {
        self.note_times(info);
        if self.session.project.is_none() {
            let folder = info.get("path").and_then(|path| filled(path, "cwd"));
            self.session.project = folder.map(str::to_owned);
        }
        match info.get("role").and_then(Value::as_str) {
            Some("user") => self.prompt(info, parts),
            Some("assistant") => self.answer(info, parts),
            _ => self.unknown(info, parts),
        }
    }

    /// Reports a record that could not be read.
    pub(super) fn problem(&mut self, problem: Problem) {
        self.output.problem(problem);
    }

    /// Returns the session.
    pub(super) fn finish(self) -> Session {
        self.session
    }

    fn prompt(&mut self, info: &Value, parts: Vec<Value>) {
        let mut message = self.begin(info);
        for part in parts {
            self.is_compacting |= part.get("type").and_then(Value::as_str) == Some("compaction");
            part::of_user(&mut message, part);
        }
        self.output.message(message);
    }

    fn answer(&mut self, info: &Value, parts: Vec<Value>) {
        let mut message = self.begin(info);
        message.usage = info.get("tokens").map(usage);
        if info.get("summary") == Some(&Value::Bool(true))
            && !std::mem::take(&mut self.is_compacting)
        {
            // Old versions write a summary without a `compaction` part.
            message.say(Role::System, Kind::Compaction, "");
        }
        for mut part in parts {
            if let Some(Value::String(id)) = part.get_mut("callID") {
                *id = self.calls.own(id);
            }
            part::of_assistant(&mut message, part);
        }
        if let Some(error) = info.get("error").filter(|error| !error.is_null()) {
            message.push(part::error(error));
        }
        if let Some(cost) = info.get("cost").and_then(Value::as_f64) {
            *self.session.totals.cost.get_or_insert(0.0) += cost;
        }
        if let Some(reason) = filled(info, "finish") {
            self.session.stop_reason = Some(reason.to_owned());
        }
        self.output.answer(message);
    }

    fn unknown(&mut self, info: &Value, parts: Vec<Value>) {
        let mut message = self.begin(info);
        message.unknown(info.clone());
        parts.into_iter().for_each(|part| message.unknown(part));
        self.output.message(message);
    }

    fn begin(&mut self, info: &Value) -> Message {
        Message {
            id: filled(info, "id").map(|id| self.ids.own(id)),
            parent: filled(info, "parentID").map(str::to_owned),
            model: model(info),
            created_at: time(info.get("time"), "created"),
            ..Message::default()
        }
    }

    fn note_times(&mut self, info: &Value) {
        let Session { started, ended, .. } = &mut self.session;
        for at in ["created", "completed"].into_iter().filter_map(|n| time(info.get("time"), n)) {
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
pub(super) fn time(times: Option<&Value>, name: &str) -> Option<Timestamp> {
    moment(times?.get(name)?)
}

/// Sets the entry's time from a field of a `time` object, if the part has one.
pub(super) fn timed(mut entry: Entry, times: Option<&Value>, name: &str) -> Entry {
    entry.created_at = time(times, name);
    entry
}

/// The model as `provider/model`, as OpenCode writes it.
fn model(info: &Value) -> Option<String> {
    let ids = if info.get("modelID").is_some() { info } else { info.get("model")? };
    let model = filled(ids, "modelID")?;
    Some(match filled(ids, "providerID") {
        Some(provider) => format!("{provider}/{model}"),
        None => model.to_owned(),
    })
}

fn usage(tokens: &Value) -> Usage {
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

fn rest(info: &Value) -> Object {
    let Value::Object(fields) = info else { return Object::new() };
    let unknown = fields.iter().filter(|(name, _)| !KNOWN.contains(&name.as_str()));
    unknown.map(|(name, value)| (name.clone(), value.clone())).collect()
}
