//! Converts entries of any format to turns.
//!
//! A message becomes a turn with one of devflow's four roles: `system`, `user`, `assistant`, `tool_result`. Tool
//! calls are added to the turn of their message, and results to their call. Data without a devflow field is stored in
//! the `metadata` of the turn and of the run, which devflow's reader ignores; in the shape of ADR-011 it is omitted.
//! A session that was read from a run gives the same run.

use std::collections::HashMap;

use super::AGENT_NAME;
use super::entries::{self, positional_call_id, role_and_kind};
use super::entry_patch::{PatchWriter, TurnParts, wrap_input};
use super::fields::LenientFields;
use super::run::{DevflowRun, RunMetadata, RunTurn, TurnToolCall};
use super::run_id::RunId;
use steno_model::entry::{Entry, EntryKind, Role};
use steno_model::json::{Object, Value};
use steno_model::session::{Session, SessionStatus, Transcript};
use steno_model::usage::Usage;
use steno_model::usage_tally::UsageTally;

/// Extra field of a session: the metadata of the run that it was read from.
pub(super) const METADATA_KEY: &str = "metadata";
/// Extra field of an entry: its turn's `durationMs`.
pub(super) const DURATION_KEY: &str = "durationMs";
/// Extra field of an entry: its turn's `id`, if it differs from the turn's position.
pub(super) const TURN_ID_KEY: &str = "id";
/// Extra field of a tool call: its unknown fields.
pub(super) const TOOL_CALL_KEY: &str = "toolCall";

/// Metadata field of a run: the session of another agent that it was written from.
pub(super) const SESSION_KEY: &str = "session";

impl From<&Transcript> for DevflowRun {
    /// Converts a transcript to a run. A session that was read from a run gives the same run.
    fn from(transcript: &Transcript) -> Self {
        let original = entries::original_session(&transcript.session)
            .map(|_| entries::restore_original(transcript.clone()));
        let transcript = original.as_ref().unwrap_or(transcript);
        let session = &transcript.session;
        let is_native = session.agent == AGENT_NAME;
        let mut fold = TurnBuilder { is_native, ..TurnBuilder::default() };
        for (index, entry) in transcript.entries.iter().enumerate() {
            fold.add_entry(index, entry);
        }
        let run_id = run_id_for_session(session);
        let mut turns = Vec::new();
        let mut patches = PatchWriter::new(&transcript.entries);
        for (position, TurnDraft { mut turn, parts, .. }) in fold.drafts.into_iter().enumerate() {
            if !is_native {
                let reads = entries::entries_from_turn(&run_id, position, &turn.as_printed());
                patches.write_patches(&mut turn, &parts, reads);
            }
            turns.push(turn);
        }
        let mut extra = Object::new();
        if is_native {
            extra.clone_from(&session.extra);
            extra.shift_remove(METADATA_KEY);
        }
        DevflowRun { run_id, metadata: build_metadata(session, &turns), turns, extra }
    }
}

/// The name of the run for a session.
pub(super) fn run_id_for_session(session: &Session) -> String {
    let native = session.native_id.as_deref().unwrap_or_default();
    if session.agent == AGENT_NAME && !native.is_empty() {
        return native.to_owned();
    }
    match session.started {
        Some(started) => RunId::build_name(started, &session.agent, session.id.as_str()),
        None => session.id.to_string(),
    }
}

fn build_metadata(session: &Session, turns: &[RunTurn]) -> RunMetadata {
    if let Some(Value::Object(kept)) = session.extra.get(METADATA_KEY)
        && session.agent == AGENT_NAME
    {
        let mut meta = RunMetadata::from_fields(&mut LenientFields::new(kept.clone()));
        if meta.turn_count == Some(turns.len() as u64) {
            meta.turn_count = None;
        }
        return meta;
    }
    let mut meta = RunMetadata {
        run_id: run_id_for_session(session),
        flow_id: session.agent.clone(),
        started_at: session.started,
        ended_at: session.ended,
        status: session.status.as_str().to_owned(),
        total_tokens_in: turns.iter().map(|turn| turn.tokens_in).sum(),
        total_tokens_out: turns.iter().map(|turn| turn.tokens_out).sum(),
        total_cost: session.totals.cost.unwrap_or(0.0),
        ..RunMetadata::default()
    };
    if session.status == SessionStatus::Failed {
        meta.error = session.stop_reason.clone().unwrap_or_default();
    }
    let known = serde_json::to_value(session).expect("a session has string keys only");
    meta.extra.insert(SESSION_KEY.to_owned(), known);
    meta
}

/// The turns so far, and the positions of their tool calls.
#[derive(Default)]
struct TurnBuilder {
    is_native: bool,
    drafts: Vec<TurnDraft>,
    calls: HashMap<String, CallPosition>,
    /// The call of the previous entry, if it has no id.
    unnamed: Option<CallPosition>,
    /// Counts the tokens of a message once, even if several entries state them.
    tally: UsageTally,
}

/// The index of a turn, and of a tool call in it.
#[derive(Clone, Copy)]
struct CallPosition {
    turn: usize,
    call: usize,
}

struct TurnDraft {
    turn: RunTurn,
    kind: EntryKind,
    message_id: Option<String>,
    source: String,
    parts: TurnParts,
}

impl TurnBuilder {
    fn add_entry(&mut self, index: usize, entry: &Entry) {
        let unnamed = self.unnamed.take();
        match entry.kind {
            EntryKind::ToolCall => self.add_call(index, entry),
            EntryKind::ToolResult => self.add_result(index, entry, unnamed),
            _ if entry.is_tool_error() => self.add_result(index, entry, unnamed),
            _ => self.begin_turn(Some(index), entry, &entry.content),
        }
    }

    /// Adds a tool result to its call, or to a turn of its own if there is none.
    fn add_result(&mut self, index: usize, entry: &Entry, unnamed: Option<CallPosition>) {
        let position = match &entry.tool_call_id {
            Some(id) => self.calls.get(id).copied(),
            None => unnamed,
        };
        match position {
            Some(position) if self.write_result(index, position, entry) => {
                self.unnamed = unnamed.filter(|_| entry.tool_call_id.is_none());
            }
            _ => self.begin_turn(Some(index), entry, &entry.content),
        }
    }

    /// Starts a turn with an entry. The entry's text becomes the turn's, unless `text` is `None`.
    fn begin_turn(&mut self, text: Option<usize>, entry: &Entry, content: &str) {
        let role = if self.is_native { native_role(entry) } else { nearest_role(entry) };
        let mut turn = RunTurn {
            id: self.drafts.len() as u64 + 1,
            content: content.to_owned(),
            timestamp: entry.created_at,
            ..RunTurn::default()
        };
        if self.is_native {
            add_native_fields(&mut turn.extra, &role, entry);
        }
        turn.role = role;
        self.drafts.push(TurnDraft {
            turn,
            kind: entry.kind,
            message_id: entry.message_id.clone(),
            source: entry.source.clone(),
            parts: TurnParts { text, calls: Vec::new() },
        });
        self.add_message_details(entry);
    }

    /// Adds an entry's message data to the last turn.
    fn add_message_details(&mut self, entry: &Entry) {
        let Some(TurnDraft { turn, .. }) = self.drafts.last_mut() else {
            return;
        };
        if let Some(usage) = &entry.usage {
            let billed =
                self.tally.count_message(entry.message_id.as_ref(), entry.created_at, usage);
            add_usage(turn, &billed, self.is_native);
        }
        if self.is_native {
            if !turn.extra.contains_key("model") {
                put_text(&mut turn.extra, "model", entry.model.as_deref());
            }
            let mut extra = entry.extra.clone();
            extra.shift_remove(TOOL_CALL_KEY);
            take_count(&mut extra, DURATION_KEY, &mut turn.duration_ms);
            take_count(&mut extra, TURN_ID_KEY, &mut turn.id);
            turn.extra.extend(extra);
        }
    }

    fn add_call(&mut self, index: usize, entry: &Entry) {
        if let Some(text) = entry.text_beside_call() {
            self.begin_turn(None, entry, text);
        } else if self.drafts.last().is_some_and(|draft| draft.accepts_call(entry)) {
            self.add_message_details(entry);
        } else {
            self.begin_turn(None, entry, "");
        }
        let last = self.drafts.len() - 1;
        let TurnDraft { turn, parts, .. } = &mut self.drafts[last];
        let position = CallPosition { turn: last, call: turn.tool_calls.len() };
        let mut call = self::tool_call_from_entry(entry);
        if self.is_native
            && let Some(Value::Object(fields)) = entry.extra.get(TOOL_CALL_KEY)
        {
            call.extra.extend(fields.clone());
        }
        match &entry.tool_call_id {
            Some(id) => {
                self.calls.insert(id.clone(), position);
                if *id != positional_call_id(turn.id, position.call) {
                    call.id.clone_from(id);
                }
            }
            None => self.unnamed = Some(position),
        }
        parts.calls.push([Some(index), None, None]);
        turn.tool_calls.push(call);
    }

    /// Writes a result into its call. Returns false if the result is empty or the call has one already.
    fn write_result(&mut self, index: usize, position: CallPosition, entry: &Entry) -> bool {
        let TurnDraft { turn, parts, .. } = &mut self.drafts[position.turn];
        let call = &mut turn.tool_calls[position.call];
        let is_error = entry.is_tool_error();
        let slot = if is_error { &mut call.error } else { &mut call.output };
        if entry.content.is_empty() || !slot.is_empty() {
            return false;
        }
        slot.clone_from(&entry.content);
        parts.calls[position.call][if is_error { 2 } else { 1 }] = Some(index);
        if let Some(usage) = &entry.usage {
            let billed =
                self.tally.count_message(entry.message_id.as_ref(), entry.created_at, usage);
            add_usage(turn, &billed, self.is_native);
        }
        true
    }
}

impl TurnDraft {
    /// Whether a tool call belongs to this turn: same message, or an assistant's turn if there are no message ids.
    fn accepts_call(&self, call: &Entry) -> bool {
        let is_message =
            matches!(self.kind, EntryKind::Text | EntryKind::ToolResult | EntryKind::ToolCall);
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
fn nearest_role(entry: &Entry) -> String {
    let role = match (entry.kind, &entry.role) {
        (EntryKind::ToolResult, _) => "tool_result",
        (EntryKind::ToolCall | EntryKind::Thinking, _) => "assistant",
        _ if entry.is_tool_error() => "tool_result",
        (EntryKind::Text, Role::User) => "user",
        (EntryKind::Text, Role::Assistant) => "assistant",
        (EntryKind::Text, Role::Tool) => "tool_result",
        (EntryKind::Text, Role::Other(name)) if name != "developer" => "user",
        _ => "system",
    };
    role.to_owned()
}

/// The original role of the turn that an entry was read from.
fn native_role(entry: &Entry) -> String {
    match entry.kind {
        EntryKind::Text => entry.role.to_string(),
        EntryKind::ToolCall => "assistant".to_owned(),
        kind => kind.to_string(),
    }
}

/// Adds the fields that earlier versions of Steno wrote next to those of a turn.
fn add_native_fields(extra: &mut Object, role: &str, entry: &Entry) {
    if role_and_kind(role).0 != entry.role {
        put_text(extra, "speaker", Some(entry.role.as_str()));
    }
    put_text(
        extra,
        "source",
        Some(entry.source.as_str()).filter(|source| *source != steno_model::entry::PRIMARY_SOURCE),
    );
    if entry.kind == EntryKind::ToolResult || entry.is_tool_error() {
        put_text(extra, "toolName", entry.tool_name.as_deref());
        put_text(extra, "toolCallId", entry.tool_call_id.as_deref());
        if entry.is_tool_error() {
            extra.insert("isError".to_owned(), Value::Bool(true));
        }
    }
}

/// Converts an entry to a call without an id. Arguments that are not an object are wrapped, because Go requires an
/// object.
fn tool_call_from_entry(entry: &Entry) -> TurnToolCall {
    let mut call = TurnToolCall {
        name: entry.tool_name.clone().unwrap_or_default(),
        ..TurnToolCall::default()
    };
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

fn add_usage(turn: &mut RunTurn, usage: &Usage, is_native: bool) {
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

fn put_text(fields: &mut Object, name: &str, value: Option<&str>) {
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
