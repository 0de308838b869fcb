//! Converts turns to entries.
//!
//! A turn gives one entry with its role, and for each tool call a call and a result, all with one message id. The
//! result of a failed call has `is_error` in its metadata. An assistant turn that only calls tools gives no text
//! entry. A call without an id gets one from its position. The session's `extra` keeps the run's complete metadata. A
//! run that was written from a session of another agent gives that session back.

use super::AGENT_NAME;
use super::decode::DecodedRun;
use super::encode::RunFileShape;
use super::entry_patch::{
    PatchedEntry, WRAPPED_FIELD, apply_patches, has_text_entry, take_patches,
};
use super::run::{DevflowRun, RunTurn, TurnToolCall};
use super::turns::{DURATION_KEY, METADATA_KEY, SESSION_KEY, TOOL_CALL_KEY, TURN_ID_KEY};
use steno_model::entry::{Entry, EntryKind, Role, Usage};
use steno_model::json::{JsonStyle, Object, Value};
use steno_model::numbering::EntryNumbering;
use steno_model::session::{Session, SessionId, Transcript};

/// Converts a run to a transcript.
pub(super) fn transcript_from_run(decoded: DecodedRun) -> Transcript {
    let DecodedRun { run, problems } = decoded;
    let mut transcript = match foreign_session(&run.metadata.extra) {
        Some(session) => foreign_transcript(&run, session),
        None => native_transcript(&run),
    };
    transcript.problems = problems;
    transcript
}

/// Returns the transcript of the original session, if the run was written from a session of another agent.
pub(super) fn restore_original(transcript: Transcript) -> Transcript {
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
    let is_run = session.agent == AGENT_NAME;
    foreign_session(session.extra.get(METADATA_KEY).filter(|_| is_run)?.as_object()?)
}

fn native_transcript(run: &DevflowRun) -> Transcript {
    let mut transcript = Transcript::new(session_from_run(run));
    let mut numbering = EntryNumbering::new(AGENT_NAME, &run.run_id);
    for (position, turn) in run.turns.iter().enumerate() {
        for mut entry in entries_from_turn(&run.run_id, position, turn) {
            numbering.assign_number(&mut entry);
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
    let Value::Object(known) = metadata.get(SESSION_KEY)?.clone() else {
        return None;
    };
    let native_id = known.get("native_id").and_then(Value::as_str).map(str::to_owned);
    let usage = known.get("totals").and_then(|totals| totals.get("usage")).cloned();
    let subagent_files = known.get("subagent_files").and_then(Value::as_u64).unwrap_or(0);
    let mut session =
        Session::from_object(known).ok().filter(|session| session.agent != AGENT_NAME)?;
    session.native_id = native_id;
    session.subagent_files = subagent_files;
    session.totals.usage = serde_json::from_value(usage?).ok()?;
    Some(session)
}

/// Restores the entries of another agent from turns. The session is the run's own.
fn foreign_transcript(run: &DevflowRun, original: Session) -> Transcript {
    let mut found = Vec::new();
    for (position, turn) in run.turns.iter().enumerate() {
        let (plain, patches) = take_patches(turn);
        found.extend(apply_patches(entries_from_turn(&run.run_id, position, &plain), patches));
    }
    let mut placed: Vec<_> =
        found.into_iter().enumerate().map(|(at, it)| (it.index.unwrap_or(at), it)).collect();
    placed.sort_by_key(|(at, _)| *at);
    let stated = original.totals.usage;
    let mut numbering = EntryNumbering::new(&original.agent, original.id.as_str());
    let Session { id, agent, native_id, extra, .. } = session_from_run(run);
    let mut transcript = Transcript::new(Session { id, agent, native_id, extra, ..original });
    for (_, PatchedEntry { mut entry, sequence, .. }) in placed {
        numbering.assign_number(&mut entry);
        entry.sequence = sequence.unwrap_or(entry.sequence);
        transcript.push(entry);
    }
    transcript.session.totals.usage = stated;
    transcript
}

fn session_from_run(run: &DevflowRun) -> Session {
    let meta = &run.metadata;
    let mut session = Session::new(SessionId::for_native(AGENT_NAME, &run.run_id), AGENT_NAME);
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
    session
        .extra
        .insert(METADATA_KEY.to_owned(), Value::Object(run.metadata_object(RunFileShape::Shipped)));
    session
}

/// Converts the turn at index `position` of its run.
pub(super) fn entries_from_turn(run_id: &str, position: usize, turn: &RunTurn) -> Vec<Entry> {
    let mut entries = Vec::new();
    if has_text_entry(turn) {
        let (role, kind) = role_and_kind(&turn.role);
        entries.push(Entry::new(role, kind, turn.content.as_str()));
    }
    for (index, call) in turn.tool_calls.iter().enumerate() {
        push_call_entries(&mut entries, call, call_id(turn.id, index, call));
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
        describe_first_entry(first, turn, fields);
        if turn.id != position as u64 + 1 && !first.extra.contains_key(TURN_ID_KEY) {
            first.extra.insert(TURN_ID_KEY.to_owned(), turn.id.into());
        }
    }
    entries
}

/// The role and kind of an entry for a turn's role.
pub(super) fn role_and_kind(role: &str) -> (Role, EntryKind) {
    match role {
        "system" => (Role::System, EntryKind::Text),
        "user" => (Role::User, EntryKind::Text),
        "assistant" => (Role::Assistant, EntryKind::Text),
        "tool" => (Role::Tool, EntryKind::Text),
        "tool_result" => (Role::Tool, EntryKind::ToolResult),
        "thinking" => (Role::Assistant, EntryKind::Thinking),
        "compaction" => (Role::System, EntryKind::Compaction),
        "error" => (Role::System, EntryKind::Error),
        "notice" => (Role::System, EntryKind::Notice),
        "other" => (Role::System, EntryKind::Other),
        other => (Role::Other(other.to_owned()), EntryKind::Text),
    }
}

/// Copies the turn's own fields to its first entry.
fn describe_first_entry(entry: &mut Entry, turn: &RunTurn, mut fields: Object) {
    if let Some(speaker) = take_text(&mut fields, "speaker") {
        entry.role = Role::from(speaker);
    }
    entry.model = take_text(&mut fields, "model");
    if matches!(entry.kind, EntryKind::ToolResult | EntryKind::Error) {
        entry.tool_name = take_text(&mut fields, "toolName");
        entry.tool_call_id = take_text(&mut fields, "toolCallId");
        if fields.get("isError") == Some(&Value::Bool(true)) {
            fields.shift_remove("isError");
            entry.metadata = Some(error_flag());
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
        entry.extra.insert(DURATION_KEY.to_owned(), turn.duration_ms.into());
    }
}

fn push_call_entries(entries: &mut Vec<Entry>, call: &TurnToolCall, id: String) {
    let mut fields = call.extra.clone();
    let wrapped = fields.get(WRAPPED_FIELD) == Some(&Value::Bool(true));
    let input = match &call.input {
        Some(input) if wrapped && input.contains_key("value") => {
            fields.shift_remove(WRAPPED_FIELD);
            input.get("value").cloned()
        }
        input => input.clone().map(Value::Object),
    };
    let text = input.as_ref().map(|input| JsonStyle::COMPACT.print(input));
    let mut entry = Entry::new(Role::Assistant, EntryKind::ToolCall, text.unwrap_or_default());
    entry.tool_input = input;
    if !fields.is_empty() {
        entry.extra.insert(TOOL_CALL_KEY.to_owned(), Value::Object(fields));
    }
    entries.push(entry);
    let first = entries.len() - 1;
    if !call.output.is_empty() {
        entries.push(Entry::new(Role::Tool, EntryKind::ToolResult, call.output.as_str()));
    }
    if !call.error.is_empty() {
        let mut entry = Entry::new(Role::Tool, EntryKind::ToolResult, call.error.as_str());
        entry.metadata = Some(error_flag());
        entries.push(entry);
    }
    for entry in &mut entries[first..] {
        entry.tool_name = Some(call.name.clone());
        entry.tool_call_id = Some(id.clone());
    }
}

fn call_id(turn: u64, index: usize, call: &TurnToolCall) -> String {
    if call.id.is_empty() { positional_call_id(turn, index) } else { call.id.clone() }
}

/// The id of a call without one, made from its position.
pub(super) fn positional_call_id(turn: u64, index: usize) -> String {
    format!("turn-{turn}-call-{}", index + 1)
}

/// The metadata of a failed tool result.
fn error_flag() -> Object {
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
