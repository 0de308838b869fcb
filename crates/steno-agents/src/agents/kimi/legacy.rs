//! Reads sessions of the Kimi CLI before Kimi Code: a folder with an event log and the model's context.
//!
//! The log is complete, so the context is read only if there is no log.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::decode::decode_blocks;
use super::{AGENT_NAME, STATE_FILE};
use crate::decoding::file_head::FileHead;
use crate::decoding::json_fields::{self, object_field, text_field, timestamp_from_millis};
use crate::decoding::json_lines::for_each_object;
use crate::decoding::session_emitter::SessionEmitter;
use crate::decoding::{entries, json_records};
use crate::reader::{FormatError, ItemSink};
use steno_model::durable::FileError;
use steno_model::entry::{Entry, EntryKind, PRIMARY_SOURCE, Role, Usage};
use steno_model::json::{Object, Value};
use steno_model::session::Session;
use steno_vault::{SessionBundle, SessionFile};

/// The event log.
const LOG_FILE: &str = "wire.jsonl";

/// Events that only mark the beginning or end of others, or serve display.
const SKIPPED_EVENTS: [&str; 8] = [
    "TurnEnd",
    "CompactionEnd",
    "MCPLoadingBegin",
    "MCPLoadingEnd",
    "HookTriggered",
    "HookResolved",
    "ApprovalRequest",
    "ApprovalRequestResolved",
];

/// Whether a file begins like an event log or a context of the older CLI.
pub(super) fn is_legacy_log(head: &FileHead) -> bool {
    let Some(first) = head.line_objects().next() else { return false };
    let is_header = text_field(&first, "type") == Some("metadata")
        && first.contains_key("protocol_version")
        && !first.contains_key("created_at");
    let message = object_field(&first, "message");
    let is_event = first.contains_key("timestamp")
        && message.is_some_and(|message| object_field(message, "payload").is_some());
    is_header || is_event || head.line_objects().take(3).any(|record| is_context_marker(&record))
}

/// Whether a record of the context is a marker, not a message.
fn is_context_marker(record: &Object) -> bool {
    let role = text_field(record, "role").unwrap_or_default();
    matches!(role, "_checkpoint" | "_usage" | "_system_prompt")
}

/// The session folder of a log or context. A subagent's files are in a subfolder.
pub(super) fn session_folder(file: &Path) -> Option<PathBuf> {
    let name = file.file_name()?.to_str()?;
    let is_named = name == LOG_FILE || (name.starts_with("context") && name.ends_with(".jsonl"));
    let folder = file.parent().filter(|_| is_named)?;
    let above = folder.parent().filter(|above| above.ends_with("subagents"));
    above.map_or(Some(folder), Path::parent).map(Path::to_owned)
}

/// Whether a session is the older CLI's.
pub(super) fn is_legacy_session(bundle: &SessionBundle) -> Result<bool, FileError> {
    let Some(main) = main_file(bundle) else { return Ok(false) };
    Ok(is_legacy_log(&FileHead::read(main)?))
}

fn main_file(bundle: &SessionBundle) -> Option<&SessionFile> {
    let plain = || bundle.files.iter().filter(|source| !source.name().contains('/'));
    let log = plain().find(|source| source.name() == LOG_FILE);
    log.or_else(|| plain().rfind(|source| source.name() != STATE_FILE))
}

/// Reads a session.
pub(super) fn read_legacy_session(
    bundle: &SessionBundle,
    emit: ItemSink<'_>,
) -> Result<Session, FormatError> {
    let main = main_file(bundle).ok_or_else(|| super::missing_log_error(bundle))?;
    let folder = main.path().parent().and_then(Path::file_name).map(|name| name.to_string_lossy());
    let id = folder
        .map_or_else(|| json_records::session_stem(main).to_owned(), |name| name.into_owned());
    let mut emitter = SessionEmitter::new(AGENT_NAME, &id, emit);
    if let Some(state) = bundle.file_named(STATE_FILE) {
        match json_records::read_object(state)? {
            Ok(state) => super::apply_state(&mut emitter.session, &state),
            Err(problem) => emitter.emit_problem(problem),
        }
    }
    let mut events = KimiLegacyDecoder { emitter: &mut emitter, steps: BTreeMap::new(), count: 0 };
    for_each_object(main, |record, line| match record {
        Ok(record) => events.decode_record(record, line),
        Err(problem) => events.emitter.emit_problem(problem),
    })?;
    events.end_all_steps();
    Ok(emitter.session)
}

/// Decodes events. Entries are held until the end of their step.
struct KimiLegacyDecoder<'t, 'a> {
    emitter: &'t mut SessionEmitter<'a>,
    /// The current step of each source.
    steps: BTreeMap<String, KimiLegacyStep>,
    /// The number of steps so far.
    count: u64,
}

#[derive(Default)]
struct KimiLegacyStep {
    entries: Vec<Entry>,
    /// The arguments of the last call, as far as they were read.
    arguments: Option<String>,
}

impl KimiLegacyDecoder<'_, '_> {
    fn decode_record(&mut self, record: Object, line: u64) {
        let seconds = record.get("timestamp").and_then(Value::as_f64);
        let at = seconds.and_then(|seconds| timestamp_from_millis((seconds * 1000.0) as i64));
        self.emitter.note_time(at);
        match object_field(&record, "message").filter(|message| message.contains_key("payload")) {
            Some(message) => self.decode_event(PRIMARY_SOURCE, message),
            None if text_field(&record, "type") == Some("metadata") => {}
            None => self.decode_context_message(&record),
        }
        for entry in self.steps.values_mut().flat_map(|step| &mut step.entries) {
            entry.created_at = entry.created_at.or(at);
            entry.message_id.get_or_insert_with(|| format!("line {line}"));
        }
    }

    fn decode_event(&mut self, source: &str, event: &Object) {
        let none = Object::new();
        let payload = object_field(event, "payload").unwrap_or(&none);
        match text_field(event, "type").unwrap_or_default() {
            "TurnBegin" | "SteerInput" => {
                self.end_step(source);
                let input = payload.get("user_input").cloned().unwrap_or_default();
                self.push_entries(source, decode_parts(input, &Role::User));
            }
            "StepBegin" => self.end_step(source),
            "StepInterrupted" => {
                self.push_entries(
                    source,
                    vec![Entry::new(Role::User, EntryKind::Notice, "step interrupted")],
                );
            }
            "ContentPart" => self.push_content(source, payload),
            "ToolCall" => self.push_call(source, payload),
            "ToolCallPart" => {
                let more = text_field(payload, "arguments_part").unwrap_or_default();
                let step = self.steps.entry(source.to_owned()).or_default();
                step.arguments.get_or_insert_default().push_str(more);
            }
            "ToolResult" => self.push_entries(source, vec![decode_tool_result(payload)]),
            "StatusUpdate" => self.apply_status(source, payload),
            "CompactionBegin" => {
                self.push_entries(
                    source,
                    vec![Entry::new(Role::System, EntryKind::Compaction, "")],
                );
            }
            "SubagentEvent" => self.decode_subagent_event(payload),
            kind if SKIPPED_EVENTS.contains(&kind) => {}
            _ => self.push_entries(source, vec![entries::unknown_entry(event.clone())]),
        }
    }

    fn decode_subagent_event(&mut self, payload: &Object) {
        let call = || {
            text_field(payload, "parent_tool_call_id").or(text_field(payload, "task_tool_call_id"))
        };
        let name = text_field(payload, "agent_id").or_else(call).unwrap_or_default();
        if let Some(event) = object_field(payload, "event") {
            self.decode_event(&format!("subagent:{name}"), event);
        }
    }

    /// Adds a chunk of an answer. Chunks of the same kind are joined.
    fn push_content(&mut self, source: &str, payload: &Object) {
        let mut entries =
            decode_parts(Value::Array(vec![payload.clone().into()]), &Role::Assistant);
        let step = self.steps.entry(source.to_owned()).or_default();
        if let (Some(last), [next]) = (step.entries.last_mut(), entries.as_slice())
            && last.role == Role::Assistant
            && last.kind == next.kind
            && matches!(next.kind, EntryKind::Text | EntryKind::Thinking)
        {
            last.content.push_str(&next.content);
            entries.clear();
        }
        self.push_entries(source, entries);
    }

    fn push_call(&mut self, source: &str, payload: &Object) {
        let none = Object::new();
        let function = object_field(payload, "function").unwrap_or(&none);
        let call =
            entries::tool_call(text_field(function, "name"), text_field(payload, "id"), None);
        self.push_entries(source, vec![call]);
        let arguments = text_field(function, "arguments").unwrap_or_default().to_owned();
        self.steps.entry(source.to_owned()).or_default().arguments = Some(arguments);
    }

    /// Assigns the usage of a step to its first assistant entry.
    fn apply_status(&mut self, source: &str, payload: &Object) {
        let Some(tokens) = object_field(payload, "token_usage") else { return };
        let step = self.steps.entry(source.to_owned()).or_default();
        if !step.entries.iter().any(|entry| entry.role == Role::Assistant) {
            step.entries.push(Entry::new(Role::Assistant, EntryKind::Text, ""));
        }
        let mut answers = step.entries.iter_mut().filter(|entry| entry.role == Role::Assistant);
        if let Some(answer) = answers.next() {
            answer.usage = Some(parse_usage(tokens));
        }
    }

    /// Decodes a message of the model's context.
    fn decode_context_message(&mut self, record: &Object) {
        self.end_step(PRIMARY_SOURCE);
        let content = record.get("content").cloned().unwrap_or_default();
        let role = Role::from(text_field(record, "role").unwrap_or("user"));
        if is_context_marker(record) {
            return;
        }
        if role == Role::Tool {
            let id = text_field(record, "tool_call_id");
            return self.push_entries(
                PRIMARY_SOURCE,
                vec![entries::tool_result(id, parts_text(&content), false)],
            );
        }
        self.push_entries(PRIMARY_SOURCE, decode_parts(content, &role));
        for call in
            json_fields::list_field(record, "tool_calls").iter().filter_map(Value::as_object)
        {
            self.push_call(PRIMARY_SOURCE, call);
        }
    }

    fn push_entries(&mut self, source: &str, entries: Vec<Entry>) {
        let step = self.steps.entry(source.to_owned()).or_default();
        if !entries.is_empty() {
            step.finish_call();
        }
        step.entries.extend(entries);
    }

    /// Emits the entries of a step. The assistant entries are one message.
    fn end_step(&mut self, source: &str) {
        let Some(mut step) = self.steps.remove(source) else { return };
        step.finish_call();
        self.count += 1;
        let name = format!("step {}", self.count);
        let before = std::mem::replace(&mut self.emitter.source, source.to_owned());
        for mut entry in step.entries {
            if entry.role == Role::Assistant {
                entry.message_id = Some(name.clone());
            }
            self.emitter.emit_entry(entry);
        }
        self.emitter.source = before;
    }

    fn end_all_steps(&mut self) {
        for source in self.steps.keys().cloned().collect::<Vec<_>>() {
            self.end_step(&source);
        }
    }
}

impl KimiLegacyStep {
    /// Sets the arguments of the last call.
    fn finish_call(&mut self) {
        let Some(arguments) = self.arguments.take() else { return };
        let mut calls = self.entries.iter_mut().rev();
        if let Some(call) = calls.find(|entry| entry.kind == EntryKind::ToolCall) {
            call.tool_input = Some(json_fields::unpack_json(&Value::String(arguments)));
        }
    }
}

/// Decodes content, which is a text or a list of parts.
fn decode_parts(content: Value, role: &Role) -> Vec<Entry> {
    match content {
        Value::Array(content) => decode_blocks(&content, role, true),
        Value::Null => Vec::new(),
        content => {
            vec![Entry::new(role.clone(), EntryKind::Text, json_fields::plain_text(&content))]
        }
    }
}

fn parts_text(content: &Value) -> String {
    let parts = decode_parts(content.clone(), &Role::Tool);
    parts.into_iter().map(|part| part.content).collect::<Vec<_>>().join("\n")
}

fn decode_tool_result(payload: &Object) -> Entry {
    let none = Object::new();
    let value =
        object_field(payload, "return_value").or(object_field(payload, "result")).unwrap_or(&none);
    let output = parts_text(value.get("output").unwrap_or(&Value::Null));
    let message = text_field(value, "message").unwrap_or_default();
    let content = if output.is_empty() { message.to_owned() } else { output };
    let is_error = value.get("is_error").and_then(Value::as_bool) == Some(true);
    entries::tool_result(text_field(payload, "tool_call_id"), content, is_error)
}

fn parse_usage(tokens: &Object) -> Usage {
    let count = |field| json_fields::count_field(tokens, field);
    Usage {
        input: count("input_other"),
        cache_read: count("input_cache_read"),
        cache_write: count("input_cache_creation"),
        output: count("output"),
        ..Usage::default()
    }
}
