//! From entries to turns, whatever format the entries came from.
//!
//! What is said becomes a turn of its role. Tool calls fold into the turn of their message, and
//! results into their call. What devflow has no role for is a turn whose role is the entry's kind
//! (`thinking`, `compaction`, `error`, `notice`, `other`); an empty or unmatched result is a
//! `tool_result` turn. What devflow has no field for is written in fields that its reader ignores
//! (`model`, `source`, `speaker`, `toolCallId`...), and not at all in the shape of ADR-011.

use std::collections::HashMap;

use super::AGENT;
use super::entries::{meaning, place_id};
use super::fields::Fields;
use super::run::{Run, RunMeta, ToolCall, Turn};
use super::run_id::RunId;
use crate::entry::{Entry, Kind, PRIMARY, Usage};
use crate::json::{Object, Value};
use crate::session::{Session, Status, Transcript};

/// Where a session keeps the metadata of the run that it was read from.
pub(super) const METADATA: &str = "metadata";
/// Where an entry keeps its turn's `durationMs`.
pub(super) const DURATION: &str = "durationMs";
/// Where an entry keeps its turn's `id`, when it is not the turn's place.
pub(super) const TURN_ID: &str = "id";
/// Where a tool call keeps fields that devflow does not know.
pub(super) const TOOL_CALL: &str = "toolCall";

impl From<&Transcript> for Run {
    /// The transcript as a run; one that was read from a run comes back as it was.
    fn from(transcript: &Transcript) -> Self {
        let session = &transcript.session;
        let mut fold = Fold { native: session.agent == AGENT, ..Fold::default() };
        for entry in &transcript.entries {
            fold.add(entry);
        }
        let turns: Vec<_> = fold.drafts.into_iter().map(|draft| draft.turn).collect();
        let mut extra = Object::new();
        if session.agent == AGENT {
            extra.clone_from(&session.extra);
            extra.shift_remove(METADATA);
        }
        Run { run_id: run_id(session), metadata: metadata(session, &turns), turns, extra }
    }
}

/// The name of the run that a session is written as.
pub(super) fn run_id(session: &Session) -> String {
    let native = session.native_id.as_deref().unwrap_or_default();
    if session.agent == AGENT && !native.is_empty() {
        return native.to_owned();
    }
    match session.started {
        Some(started) => RunId::name(started, &session.agent, session.id.as_str()),
        None => session.id.to_string(),
    }
}

fn metadata(session: &Session, turns: &[Turn]) -> RunMeta {
    if let Some(Value::Object(kept)) = session.extra.get(METADATA)
        && session.agent == AGENT
    {
        let mut meta = RunMeta::take(&mut Fields::new(kept.clone()));
        if meta.turn_count == Some(turns.len() as u64) {
            meta.turn_count = None;
        }
        return meta;
    }
    let mut meta = RunMeta {
        run_id: run_id(session),
        flow_id: session.agent.clone(),
        started_at: session.started,
        ended_at: session.ended,
        status: session.status.as_str().to_owned(),
        total_tokens_in: turns.iter().map(|turn| turn.tokens_in).sum(),
        total_tokens_out: turns.iter().map(|turn| turn.tokens_out).sum(),
        total_cost: session.totals.cost.unwrap_or(0.0),
        ..RunMeta::default()
    };
    let mut stop = session.stop_reason.as_deref();
    if session.status == Status::Failed {
        meta.error = stop.take().unwrap_or_default().to_owned();
    }
    let extra = &mut meta.extra;
    put(extra, "sessionId", Some(session.id.as_str()));
    put(extra, "project", session.project.as_deref());
    put(extra, "branch", session.branch.as_deref());
    put(extra, "title", session.title.as_deref());
    put(extra, "thread", session.thread.as_deref());
    put(extra, "parent", session.parent.as_deref());
    put(extra, "stopReason", stop);
    meta
}

/// The turns so far, and where the tool calls in them are.
#[derive(Default)]
struct Fold {
    native: bool,
    drafts: Vec<Draft>,
    calls: HashMap<String, (usize, usize)>,
    /// The call that the entry before made or answered, when it has no id.
    unnamed: Option<(usize, usize)>,
}

struct Draft {
    turn: Turn,
    message_id: Option<String>,
    source: String,
}

impl Fold {
    fn add(&mut self, entry: &Entry) {
        let unnamed = self.unnamed.take();
        match entry.kind {
            Kind::ToolCall => self.add_call(entry),
            Kind::ToolResult => self.add_result(entry, unnamed),
            _ if entry.is_tool_error() => self.add_result(entry, unnamed),
            _ => self.begin(entry, &entry.content),
        }
    }

    /// Puts a tool's answer into its call, or into a turn of its own where there is none.
    fn add_result(&mut self, entry: &Entry, unnamed: Option<(usize, usize)>) {
        let place = match &entry.tool_call_id {
            Some(id) => self.calls.get(id).copied(),
            None => unnamed,
        };
        match place {
            Some(place) if self.answer(place, entry) => {
                self.unnamed = unnamed.filter(|_| entry.tool_call_id.is_none());
            }
            _ => self.begin(entry, &entry.content),
        }
    }

    /// Begins a turn with an entry.
    fn begin(&mut self, entry: &Entry, content: &str) {
        let role = role_of(entry);
        let mut turn = Turn {
            id: self.drafts.len() as u64 + 1,
            content: content.to_owned(),
            timestamp: entry.created_at,
            ..Turn::default()
        };
        let extra = &mut turn.extra;
        if meaning(&role).0 != entry.role {
            put(extra, "speaker", Some(entry.role.as_str()));
        }
        put(extra, "source", Some(entry.source.as_str()).filter(|source| *source != PRIMARY));
        if entry.kind == Kind::ToolResult || entry.is_tool_error() {
            put(extra, "toolName", entry.tool_name.as_deref());
            put(extra, "toolCallId", entry.tool_call_id.as_deref());
            if entry.is_tool_error() {
                extra.insert("isError".to_owned(), Value::Bool(true));
            }
        }
        turn.role = role;
        self.drafts.push(Draft {
            turn,
            message_id: entry.message_id.clone(),
            source: entry.source.clone(),
        });
        self.describe(entry);
    }

    /// Adds to the last turn what an entry tells about its message.
    fn describe(&mut self, entry: &Entry) {
        let Some(Draft { turn, .. }) = self.drafts.last_mut() else {
            return;
        };
        if let Some(usage) = &entry.usage {
            add_usage(turn, usage);
        }
        if !turn.extra.contains_key("model") {
            put(&mut turn.extra, "model", entry.model.as_deref());
        }
        if self.native {
            let mut extra = entry.extra.clone();
            extra.shift_remove(TOOL_CALL);
            let count = |value: Option<Value>| value.and_then(|value| value.as_u64());
            turn.duration_ms = count(extra.shift_remove(DURATION)).unwrap_or(turn.duration_ms);
            turn.id = count(extra.shift_remove(TURN_ID)).unwrap_or(turn.id);
            turn.extra.extend(extra);
        }
    }

    fn add_call(&mut self, entry: &Entry) {
        if let Some(said) = entry.said_with_call() {
            self.begin(entry, said);
        } else if self.drafts.last().is_some_and(|draft| draft.takes(entry)) {
            self.describe(entry);
        } else {
            self.begin(entry, "");
        }
        let turns = self.drafts.len() - 1;
        let turn = &mut self.drafts[turns].turn;
        let place = (turns, turn.tool_calls.len());
        let mut call = self::call(entry);
        if self.native
            && let Some(Value::Object(fields)) = entry.extra.get(TOOL_CALL)
        {
            call.extra.extend(fields.clone());
        }
        match &entry.tool_call_id {
            Some(id) => {
                self.calls.insert(id.clone(), place);
                if *id != place_id(turn.id, place.1) {
                    call.id.clone_from(id);
                }
            }
            None => self.unnamed = Some(place),
        }
        turn.tool_calls.push(call);
    }

    /// Writes a result into its call; whether there was room.
    fn answer(&mut self, (turn, call): (usize, usize), entry: &Entry) -> bool {
        let turn = &mut self.drafts[turn].turn;
        let call = &mut turn.tool_calls[call];
        let slot = if entry.is_tool_error() { &mut call.error } else { &mut call.output };
        if entry.content.is_empty() || !slot.is_empty() {
            return false;
        }
        slot.clone_from(&entry.content);
        if let Some(usage) = &entry.usage {
            add_usage(turn, usage);
        }
        true
    }
}

impl Draft {
    /// Whether a tool call belongs to this turn: one message, or no message ids and an assistant's
    /// turn.
    fn takes(&self, call: &Entry) -> bool {
        let (_, kind) = meaning(&self.turn.role);
        let said = matches!(kind, Kind::Text | Kind::ToolResult);
        let same = match (&self.message_id, &call.message_id) {
            (Some(mine), Some(its)) => mine == its,
            (None, None) => self.turn.role == "assistant",
            _ => false,
        };
        said && same && self.source == call.source
    }
}

fn role_of(entry: &Entry) -> String {
    match entry.kind {
        Kind::Text => entry.role.to_string(),
        Kind::ToolCall => "assistant".to_owned(),
        kind => kind.to_string(),
    }
}

/// The call without its id. Arguments that are no object are wrapped, for Go reads nothing else.
fn call(entry: &Entry) -> ToolCall {
    let mut call =
        ToolCall { name: entry.tool_name.clone().unwrap_or_default(), ..ToolCall::default() };
    let parsed = || serde_json::from_str(&entry.content).ok();
    let text = || Value::String(entry.content.clone());
    let input = match &entry.tool_input {
        Some(input) => Some(input.clone()),
        None if entry.content.is_empty() => None,
        None => Some(parsed().filter(Value::is_object).unwrap_or_else(text)),
    };
    call.input = match input {
        None | Some(Value::Null) => None,
        Some(Value::Object(object)) => Some(object),
        Some(other) => {
            call.extra.insert("wrapped".to_owned(), Value::Bool(true));
            Some(Object::from_iter([("value".to_owned(), other)]))
        }
    };
    call
}

fn add_usage(turn: &mut Turn, usage: &Usage) {
    turn.tokens_in += usage.input;
    turn.tokens_out += usage.output;
    let others = [
        ("cacheReadTokens", usage.cache_read),
        ("cacheWriteTokens", usage.cache_write),
        ("cacheWrite5mTokens", usage.cache_write_5m),
        ("cacheWrite1hTokens", usage.cache_write_1h),
        ("reasoningTokens", usage.reasoning),
    ];
    for (name, count) in others.into_iter().filter(|(_, count)| *count != 0) {
        let before = turn.extra.get(name).and_then(Value::as_u64).unwrap_or(0);
        turn.extra.insert(name.to_owned(), (before + count).into());
    }
}

fn put(fields: &mut Object, name: &str, value: Option<&str>) {
    if let Some(value) = value {
        fields.insert(name.to_owned(), Value::from(value));
    }
}
