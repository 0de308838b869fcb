//! Converts turns to entries.
//!
//! A turn gives one entry with its role, and for each tool call a call and a result, all with one message id. The
//! result of a failed call has `is_error` in its metadata. An assistant turn that only calls tools gives no text
//! entry. A call without an id gets one from its position. The session's `extra` keeps the run's complete metadata. A
//! run that was written from a session of another agent gives that session back.

use super::AGENT;
use super::decode::Decoded;
use super::encode::Shape;
use super::entry_patch::{PatchedEntry, WRAPPED, apply_patches, reads_as_text, take_patches};
use super::run::{Run, ToolCall, Turn};
use super::turns::{DURATION, METADATA, SESSION, TOOL_CALL, TURN_ID};
use crate::entry::{Entry, Kind, Numbering, Role, Usage};
use crate::format::native;
use crate::json::{Object, Style, Value};
use crate::session::{Session, SessionId, Transcript};

/// Converts a run to a transcript.
pub(super) fn transcript(decoded: Decoded) -> Transcript {
    let Decoded { run, problems } = decoded;
    let mut transcript = match foreign_session(&run.metadata.extra) {
        Some(session) => foreign_transcript(&run, session),
        None => native_transcript(&run),
    };
    transcript.problems = problems;
    transcript
}

/// Returns the transcript of the original session, if the run was written from a session of another agent.
pub(super) fn give_back(transcript: Transcript) -> Transcript {
    let Some(session) = original_session(&transcript.session) else {
        return transcript;
    };
    let stated = session.totals.usage;
    let mut original = Transcript::new(session);
    transcript.entries.into_iter().for_each(|entry| original.push(entry));
    original.session.totals.usage = stated;
    original.problems = transcript.problems;
    original.notes = transcript.notes;
    original
}

/// Returns the original session of another agent, if this session was read from a run written from it.
pub(super) fn original_session(session: &Session) -> Option<Session> {
    let is_run = session.agent == AGENT;
    foreign_session(session.extra.get(METADATA).filter(|_| is_run)?.as_object()?)
}

fn native_transcript(run: &Run) -> Transcript {
    let mut transcript = Transcript::new(session(run));
    let mut numbering = Numbering::new(AGENT, &run.run_id);
    for (position, turn) in run.turns.iter().enumerate() {
        for mut entry in entries(&run.run_id, position, turn) {
            numbering.assign(&mut entry);
            transcript.push(entry);
        }
    }
    // The stated totals may be larger than the sum of the turns, but never smaller.
    let stated = &run.metadata;
    let usage = &mut transcript.session.totals.usage;
    usage.input = usage.input.max(stated.total_tokens_in);
    usage.output = usage.output.max(stated.total_tokens_out);
    transcript
}

/// The session of another agent in a run's metadata.
fn foreign_session(metadata: &Object) -> Option<Session> {
    let Value::Object(known) = metadata.get(SESSION)?.clone() else {
        return None;
    };
    let native_id = known.get("native_id").and_then(Value::as_str).map(str::to_owned);
    let usage = known.get("totals").and_then(|totals| totals.get("usage")).cloned();
    let subagent_files = known.get("subagent_files").and_then(Value::as_u64).unwrap_or(0);
    let mut session = native::session_from(known).ok().filter(|session| session.agent != AGENT)?;
    session.native_id = native_id;
    session.subagent_files = subagent_files;
    session.totals.usage = serde_json::from_value(usage?).ok()?;
    Some(session)
}

/// Restores the entries of another agent from turns. The session is the run's own.
fn foreign_transcript(run: &Run, original: Session) -> Transcript {
    let mut found = Vec::new();
    for (position, turn) in run.turns.iter().enumerate() {
        let (plain, patches) = take_patches(turn);
        found.extend(apply_patches(entries(&run.run_id, position, &plain), patches));
    }
    let mut placed: Vec<_> =
        found.into_iter().enumerate().map(|(at, it)| (it.index.unwrap_or(at), it)).collect();
    placed.sort_by_key(|(at, _)| *at);
    let stated = original.totals.usage;
    let mut numbering = Numbering::new(&original.agent, original.id.as_str());
    let Session { id, agent, native_id, extra, .. } = session(run);
    let mut transcript = Transcript::new(Session { id, agent, native_id, extra, ..original });
    for (_, PatchedEntry { mut entry, sequence, .. }) in placed {
        numbering.assign(&mut entry);
        entry.sequence = sequence.unwrap_or(entry.sequence);
        transcript.push(entry);
    }
    transcript.session.totals.usage = stated;
    transcript
}

fn session(run: &Run) -> Session {
    let meta = &run.metadata;
    let mut session = Session::new(SessionId::for_native(AGENT, &run.run_id), AGENT);
    session.native_id = Some(run.run_id.clone());
    session.started = meta.started_at;
    session.ended = meta.ended_at;
    session.status = meta.known_status();
    session.stop_reason = Some(meta.error.clone()).filter(|error| !error.is_empty());
    session.totals.cost = Some(meta.total_cost).filter(|cost| *cost != 0.0);
    let mut fields = meta.extra.clone();
    session.project = take_text(&mut fields, "project");
    session.branch = take_text(&mut fields, "branch");
    session.title = take_text(&mut fields, "title");
    session.thread = take_text(&mut fields, "thread");
    session.parent = take_text(&mut fields, "parent");
    if session.stop_reason.is_none() {
        session.stop_reason = take_text(&mut fields, "stopReason");
    }
    session.extra.clone_from(&run.extra);
    session.extra.insert(METADATA.to_owned(), Value::Object(run.metadata_object(Shape::Shipped)));
    session
}

/// Converts the turn at index `position` of its run.
pub(super) fn entries(run_id: &str, position: usize, turn: &Turn) -> Vec<Entry> {
    let mut entries = Vec::new();
    if reads_as_text(turn) {
        let (role, kind) = meaning(&turn.role);
        entries.push(Entry::new(role, kind, turn.content.as_str()));
    }
    for (index, call) in turn.tool_calls.iter().enumerate() {
        push_call(&mut entries, call, call_id(turn.id, index, call));
    }
    let mut fields = turn.extra.clone();
    let source = take_text(&mut fields, "source");
    for entry in &mut entries {
        entry.created_at = turn.timestamp;
        entry.message_id = Some(format!("{run_id}/{}", position + 1));
        if let Some(source) = &source {
            entry.source.clone_from(source);
        }
    }
    if let Some(first) = entries.first_mut() {
        describe(first, turn, fields);
        if turn.id != position as u64 + 1 && !first.extra.contains_key(TURN_ID) {
            first.extra.insert(TURN_ID.to_owned(), turn.id.into());
        }
    }
    entries
}

/// The role and kind of an entry for a turn's role.
pub(super) fn meaning(role: &str) -> (Role, Kind) {
    match role {
        "system" => (Role::System, Kind::Text),
        "user" => (Role::User, Kind::Text),
        "assistant" => (Role::Assistant, Kind::Text),
        "tool" => (Role::Tool, Kind::Text),
        "tool_result" => (Role::Tool, Kind::ToolResult),
        "thinking" => (Role::Assistant, Kind::Thinking),
        "compaction" => (Role::System, Kind::Compaction),
        "error" => (Role::System, Kind::Error),
        "notice" => (Role::System, Kind::Notice),
        "other" => (Role::System, Kind::Other),
        other => (Role::Other(other.to_owned()), Kind::Text),
    }
}

/// Copies the turn's own fields to its first entry.
fn describe(entry: &mut Entry, turn: &Turn, mut fields: Object) {
    if let Some(speaker) = take_text(&mut fields, "speaker") {
        entry.role = Role::from(speaker);
    }
    entry.model = take_text(&mut fields, "model");
    if matches!(entry.kind, Kind::ToolResult | Kind::Error) {
        entry.tool_name = take_text(&mut fields, "toolName");
        entry.tool_call_id = take_text(&mut fields, "toolCallId");
        if fields.get("isError") == Some(&Value::Bool(true)) {
            fields.shift_remove("isError");
            entry.metadata = Some(error_mark());
        }
    }
    let usage = Usage {
        input: turn.tokens_in,
        output: turn.tokens_out,
        cache_read: take_count(&mut fields, "cacheReadTokens"),
        cache_write: take_count(&mut fields, "cacheWriteTokens"),
        cache_write_5m: take_count(&mut fields, "cacheWrite5mTokens"),
        cache_write_1h: take_count(&mut fields, "cacheWrite1hTokens"),
        reasoning: take_count(&mut fields, "reasoningTokens"),
    };
    entry.usage = Some(usage).filter(|usage| !usage.is_empty());
    entry.extra.extend(fields);
    if turn.duration_ms != 0 {
        entry.extra.insert(DURATION.to_owned(), turn.duration_ms.into());
    }
}

fn push_call(entries: &mut Vec<Entry>, call: &ToolCall, id: String) {
    let mut fields = call.extra.clone();
    let wrapped = fields.get(WRAPPED) == Some(&Value::Bool(true));
    let input = match &call.input {
        Some(input) if wrapped && input.contains_key("value") => {
            fields.shift_remove(WRAPPED);
            input.get("value").cloned()
        }
        input => input.clone().map(Value::Object),
    };
    let text = input.as_ref().map(|input| Style::COMPACT.print(input));
    let mut entry = Entry::new(Role::Assistant, Kind::ToolCall, text.unwrap_or_default());
    entry.tool_input = input;
    if !fields.is_empty() {
        entry.extra.insert(TOOL_CALL.to_owned(), Value::Object(fields));
    }
    entries.push(entry);
    let first = entries.len() - 1;
    if !call.output.is_empty() {
        entries.push(Entry::new(Role::Tool, Kind::ToolResult, call.output.as_str()));
    }
    if !call.error.is_empty() {
        let mut entry = Entry::new(Role::Tool, Kind::ToolResult, call.error.as_str());
        entry.metadata = Some(error_mark());
        entries.push(entry);
    }
    for entry in &mut entries[first..] {
        entry.tool_name = Some(call.name.clone());
        entry.tool_call_id = Some(id.clone());
    }
}

fn call_id(turn: u64, index: usize, call: &ToolCall) -> String {
    if call.id.is_empty() { place_id(turn, index) } else { call.id.clone() }
}

/// The id of a call without one, made from its position.
pub(super) fn place_id(turn: u64, index: usize) -> String {
    format!("turn-{turn}-call-{}", index + 1)
}

/// The metadata of a failed tool result.
fn error_mark() -> Object {
    Object::from_iter([("is_error".to_owned(), Value::Bool(true))])
}

fn take_text(fields: &mut Object, name: &str) -> Option<String> {
    let text = fields.get(name)?.as_str()?.to_owned();
    fields.shift_remove(name);
    Some(text)
}

fn take_count(fields: &mut Object, name: &str) -> u64 {
    let Some(count) = fields.get(name).and_then(Value::as_u64) else {
        return 0;
    };
    fields.shift_remove(name);
    count
}
