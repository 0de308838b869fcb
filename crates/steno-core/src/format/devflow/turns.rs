//! Converts entries of any format to turns.
//!
//! A message becomes a turn with one of devflow's four roles: `system`, `user`, `assistant`, `tool_result`. Tool
//! calls are added to the turn of their message, and results to their call. Data without a devflow field is stored in
//! the `metadata` of the turn and of the run, which devflow's reader ignores; in the shape of ADR-011 it is omitted.
//! A session that was read from a run gives the same run.

use std::collections::HashMap;

use super::AGENT;
use super::entries::{self, meaning, place_id};
use super::entry_patch::{PatchWriter, TurnParts, wrap_input};
use super::fields::Fields;
use super::run::{Run, RunMeta, ToolCall, Turn};
use super::run_id::RunId;
use crate::entry::{Entry, Kind, Role};
use crate::json::{Object, Value};
use crate::session::{Session, Status, Transcript};
use crate::usage::{Tally, Usage};

/// Extra field of a session: the metadata of the run that it was read from.
pub(super) const METADATA: &str = "metadata";
/// Extra field of an entry: its turn's `durationMs`.
pub(super) const DURATION: &str = "durationMs";
/// Extra field of an entry: its turn's `id`, if it differs from the turn's position.
pub(super) const TURN_ID: &str = "id";
/// Extra field of a tool call: its unknown fields.
pub(super) const TOOL_CALL: &str = "toolCall";

/// Metadata field of a run: the session of another agent that it was written from.
pub(super) const SESSION: &str = "session";

impl From<&Transcript> for Run {
    /// Converts a transcript to a run. A session that was read from a run gives the same run.
    fn from(transcript: &Transcript) -> Self {
        let original = entries::original_session(&transcript.session)
            .map(|_| entries::give_back(transcript.clone()));
        let transcript = original.as_ref().unwrap_or(transcript);
        let session = &transcript.session;
        let is_native = session.agent == AGENT;
        let mut fold = Fold { is_native, ..Fold::default() };
        for (index, entry) in transcript.entries.iter().enumerate() {
            fold.add(index, entry);
        }
        let run_id = run_id(session);
        let mut turns = Vec::new();
        let mut patches = PatchWriter::new(&transcript.entries);
        for (position, Draft { mut turn, parts, .. }) in fold.drafts.into_iter().enumerate() {
            if !is_native {
                let reads = entries::entries(&run_id, position, &turn.as_printed());
                patches.describe(&mut turn, &parts, reads);
            }
            turns.push(turn);
        }
        let mut extra = Object::new();
        if is_native {
            extra.clone_from(&session.extra);
            extra.shift_remove(METADATA);
        }
        Run { run_id, metadata: metadata(session, &turns), turns, extra }
    }
}

/// The name of the run for a session.
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
    if session.status == Status::Failed {
        meta.error = session.stop_reason.clone().unwrap_or_default();
    }
    let known = serde_json::to_value(session).expect("a session has string keys only");
    meta.extra.insert(SESSION.to_owned(), known);
    meta
}

/// The turns so far, and the positions of their tool calls.
#[derive(Default)]
struct Fold {
    is_native: bool,
    drafts: Vec<Draft>,
    calls: HashMap<String, CallPosition>,
    /// The call of the previous entry, if it has no id.
    unnamed: Option<CallPosition>,
    /// Counts the tokens of a message once, even if several entries state them.
    tally: Tally,
}

/// The index of a turn, and of a tool call in it.
#[derive(Clone, Copy)]
struct CallPosition {
    turn: usize,
    call: usize,
}

struct Draft {
    turn: Turn,
    kind: Kind,
    message_id: Option<String>,
    source: String,
    parts: TurnParts,
}

impl Fold {
    fn add(&mut self, index: usize, entry: &Entry) {
        let unnamed = self.unnamed.take();
        match entry.kind {
            Kind::ToolCall => self.add_call(index, entry),
            Kind::ToolResult => self.add_result(index, entry, unnamed),
            _ if entry.is_tool_error() => self.add_result(index, entry, unnamed),
            _ => self.begin(Some(index), entry, &entry.content),
        }
    }

    /// Adds a tool result to its call, or to a turn of its own if there is none.
    fn add_result(&mut self, index: usize, entry: &Entry, unnamed: Option<CallPosition>) {
        let position = match &entry.tool_call_id {
            Some(id) => self.calls.get(id).copied(),
            None => unnamed,
        };
        match position {
            Some(position) if self.answer(index, position, entry) => {
                self.unnamed = unnamed.filter(|_| entry.tool_call_id.is_none());
            }
            _ => self.begin(Some(index), entry, &entry.content),
        }
    }

    /// Starts a turn with an entry. The entry's text becomes the turn's, unless `text` is `None`.
    fn begin(&mut self, text: Option<usize>, entry: &Entry, content: &str) {
        let role = if self.is_native { native_role(entry) } else { role_of(entry) };
        let mut turn = Turn {
            id: self.drafts.len() as u64 + 1,
            content: content.to_owned(),
            timestamp: entry.created_at,
            ..Turn::default()
        };
        if self.is_native {
            describe_native(&mut turn.extra, &role, entry);
        }
        turn.role = role;
        self.drafts.push(Draft {
            turn,
            kind: entry.kind,
            message_id: entry.message_id.clone(),
            source: entry.source.clone(),
            parts: TurnParts { text, calls: Vec::new() },
        });
        self.describe(entry);
    }

    /// Adds an entry's message data to the last turn.
    fn describe(&mut self, entry: &Entry) {
        let Some(Draft { turn, .. }) = self.drafts.last_mut() else {
            return;
        };
        if let Some(usage) = &entry.usage {
            let billed = self.tally.bill(entry.message_id.as_ref(), entry.created_at, usage);
            add_usage(turn, &billed, self.is_native);
        }
        if self.is_native {
            if !turn.extra.contains_key("model") {
                put(&mut turn.extra, "model", entry.model.as_deref());
            }
            let mut extra = entry.extra.clone();
            extra.shift_remove(TOOL_CALL);
            take_count(&mut extra, DURATION, &mut turn.duration_ms);
            take_count(&mut extra, TURN_ID, &mut turn.id);
            turn.extra.extend(extra);
        }
    }

    fn add_call(&mut self, index: usize, entry: &Entry) {
        if let Some(text) = entry.said_with_call() {
            self.begin(None, entry, text);
        } else if self.drafts.last().is_some_and(|draft| draft.takes(entry)) {
            self.describe(entry);
        } else {
            self.begin(None, entry, "");
        }
        let last = self.drafts.len() - 1;
        let Draft { turn, parts, .. } = &mut self.drafts[last];
        let position = CallPosition { turn: last, call: turn.tool_calls.len() };
        let mut call = self::call(entry);
        if self.is_native
            && let Some(Value::Object(fields)) = entry.extra.get(TOOL_CALL)
        {
            call.extra.extend(fields.clone());
        }
        match &entry.tool_call_id {
            Some(id) => {
                self.calls.insert(id.clone(), position);
                if *id != place_id(turn.id, position.call) {
                    call.id.clone_from(id);
                }
            }
            None => self.unnamed = Some(position),
        }
        parts.calls.push([Some(index), None, None]);
        turn.tool_calls.push(call);
    }

    /// Writes a result into its call. Returns false if the result is empty or the call has one already.
    fn answer(&mut self, index: usize, position: CallPosition, entry: &Entry) -> bool {
        let Draft { turn, parts, .. } = &mut self.drafts[position.turn];
        let call = &mut turn.tool_calls[position.call];
        let is_error = entry.is_tool_error();
        let slot = if is_error { &mut call.error } else { &mut call.output };
        if entry.content.is_empty() || !slot.is_empty() {
            return false;
        }
        slot.clone_from(&entry.content);
        parts.calls[position.call][if is_error { 2 } else { 1 }] = Some(index);
        if let Some(usage) = &entry.usage {
            let billed = self.tally.bill(entry.message_id.as_ref(), entry.created_at, usage);
            add_usage(turn, &billed, self.is_native);
        }
        true
    }
}

impl Draft {
    /// Whether a tool call belongs to this turn: same message, or an assistant's turn if there are no message ids.
    fn takes(&self, call: &Entry) -> bool {
        let is_message = matches!(self.kind, Kind::Text | Kind::ToolResult | Kind::ToolCall);
        // An empty assistant text in a turn with calls would not be read back.
        let is_lost = self.parts.text.is_some()
            && self.turn.role == "assistant"
            && self.turn.content.is_empty();
        let same = match (&self.message_id, &call.message_id) {
            (Some(mine), Some(its)) => mine == its,
            (None, None) => self.turn.role == "assistant",
            _ => false,
        };
        is_message && same && self.source == call.source && !is_lost
    }
}

/// The closest of devflow's four roles.
fn role_of(entry: &Entry) -> String {
    let role = match (entry.kind, &entry.role) {
        (Kind::ToolResult, _) => "tool_result",
        (Kind::ToolCall | Kind::Thinking, _) => "assistant",
        _ if entry.is_tool_error() => "tool_result",
        (Kind::Text, Role::User) => "user",
        (Kind::Text, Role::Assistant) => "assistant",
        (Kind::Text, Role::Tool) => "tool_result",
        (Kind::Text, Role::Other(name)) if name != "developer" => "user",
        _ => "system",
    };
    role.to_owned()
}

/// The original role of the turn that an entry was read from.
fn native_role(entry: &Entry) -> String {
    match entry.kind {
        Kind::Text => entry.role.to_string(),
        Kind::ToolCall => "assistant".to_owned(),
        kind => kind.to_string(),
    }
}

/// Adds the fields that earlier versions of Steno wrote next to those of a turn.
fn describe_native(extra: &mut Object, role: &str, entry: &Entry) {
    if meaning(role).0 != entry.role {
        put(extra, "speaker", Some(entry.role.as_str()));
    }
    put(
        extra,
        "source",
        Some(entry.source.as_str()).filter(|source| *source != crate::entry::PRIMARY),
    );
    if entry.kind == Kind::ToolResult || entry.is_tool_error() {
        put(extra, "toolName", entry.tool_name.as_deref());
        put(extra, "toolCallId", entry.tool_call_id.as_deref());
        if entry.is_tool_error() {
            extra.insert("isError".to_owned(), Value::Bool(true));
        }
    }
}

/// Converts an entry to a call without an id. Arguments that are not an object are wrapped, because Go requires an
/// object.
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
    wrap_input(&mut call, input);
    call
}

fn add_usage(turn: &mut Turn, usage: &Usage, is_native: bool) {
    turn.tokens_in += usage.input;
    turn.tokens_out += usage.output;
    if !is_native {
        return;
    }
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

/// Takes a count out of fields. An invalid count stays there and sets `count` to zero.
fn take_count(fields: &mut Object, name: &str, count: &mut u64) {
    match fields.get(name).map(Value::as_u64) {
        Some(Some(stated)) => {
            fields.shift_remove(name);
            *count = stated;
        }
        Some(None) => *count = 0,
        None => {}
    }
}
