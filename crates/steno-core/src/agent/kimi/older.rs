//! Reads sessions of the Kimi CLI before Kimi Code: a folder with an event log and the model's context.
//!
//! The log is complete, so the context is read only if there is no log.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::wire::blocks;
use super::{AGENT, STATE};
use crate::agent::entries;
use crate::agent::fields::{self, from_millis, object, text};
use crate::agent::head::Head;
use crate::agent::json_lines::each_object;
use crate::agent::record;
use crate::agent::telling::Telling;
use crate::durable::FileError;
use crate::entry::{Entry, Kind, PRIMARY, Role, Usage};
use crate::format::{Emit, FormatError};
use crate::json::{Object, Value};
use crate::session::Session;
use steno_vault::{Bundle, Source};

/// The event log.
const LOG: &str = "wire.jsonl";

/// Events that only mark the beginning or end of others, or serve display.
const SILENT: [&str; 8] = [
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
pub(super) fn recognises(head: &Head) -> bool {
    let Some(first) = head.objects().next() else { return false };
    let is_header = text(&first, "type") == Some("metadata")
        && first.contains_key("protocol_version")
        && !first.contains_key("created_at");
    let message = object(&first, "message");
    let is_event = first.contains_key("timestamp")
        && message.is_some_and(|message| object(message, "payload").is_some());
    is_header || is_event || head.objects().take(3).any(|record| is_mark(&record))
}

/// Whether a record of the context is a marker, not a message.
fn is_mark(record: &Object) -> bool {
    let role = text(record, "role").unwrap_or_default();
    matches!(role, "_checkpoint" | "_usage" | "_system_prompt")
}

/// The session folder of a log or context. A subagent's files are in a subfolder.
pub(super) fn session_folder(file: &Path) -> Option<PathBuf> {
    let name = file.file_name()?.to_str()?;
    let is_named = name == LOG || (name.starts_with("context") && name.ends_with(".jsonl"));
    let folder = file.parent().filter(|_| is_named)?;
    let above = folder.parent().filter(|above| above.ends_with("subagents"));
    above.map_or(Some(folder), Path::parent).map(Path::to_owned)
}

/// Whether a session is the older CLI's.
pub(super) fn is_older(bundle: &Bundle) -> Result<bool, FileError> {
    let Some(main) = main_source(bundle) else { return Ok(false) };
    Ok(recognises(&Head::of(main)?))
}

fn main_source(bundle: &Bundle) -> Option<&Source> {
    let plain = || bundle.sources.iter().filter(|source| !source.name().contains('/'));
    let log = plain().find(|source| source.name() == LOG);
    log.or_else(|| plain().rfind(|source| source.name() != STATE))
}

/// Reads a session.
pub(super) fn read(bundle: &Bundle, emit: Emit<'_>) -> Result<Session, FormatError> {
    let main = main_source(bundle).ok_or_else(|| super::no_log(bundle))?;
    let folder = main.path().parent().and_then(Path::file_name).map(|name| name.to_string_lossy());
    let id = folder.map_or_else(|| record::stem(main).to_owned(), |name| name.into_owned());
    let mut emitter = Telling::new(AGENT, &id, emit);
    if let Some(state) = bundle.get(STATE) {
        match record::document(state)? {
            Ok(state) => super::describe(&mut emitter.session, &state),
            Err(problem) => emitter.problem(problem),
        }
    }
    let mut events = Events { emitter: &mut emitter, steps: BTreeMap::new(), count: 0 };
    each_object(main, |record, line| match record {
        Ok(record) => events.record(record, line),
        Err(problem) => events.emitter.problem(problem),
    })?;
    events.end();
    Ok(emitter.session)
}

/// Decodes events. Entries are held until the end of their step.
struct Events<'t, 'a> {
    emitter: &'t mut Telling<'a>,
    /// The current step of each source.
    steps: BTreeMap<String, Step>,
    /// The number of steps so far.
    count: u64,
}

#[derive(Default)]
struct Step {
    entries: Vec<Entry>,
    /// The arguments of the last call, as far as they were read.
    arguments: Option<String>,
}

impl Events<'_, '_> {
    fn record(&mut self, record: Object, line: u64) {
        let seconds = record.get("timestamp").and_then(Value::as_f64);
        let at = seconds.and_then(|seconds| from_millis((seconds * 1000.0) as i64));
        self.emitter.time(at);
        match object(&record, "message").filter(|message| message.contains_key("payload")) {
            Some(message) => self.event(PRIMARY, message),
            None if text(&record, "type") == Some("metadata") => {}
            None => self.context(&record),
        }
        for entry in self.steps.values_mut().flat_map(|step| &mut step.entries) {
            entry.created_at = entry.created_at.or(at);
            entry.message_id.get_or_insert_with(|| format!("line {line}"));
        }
    }

    fn event(&mut self, source: &str, event: &Object) {
        let none = Object::new();
        let payload = object(event, "payload").unwrap_or(&none);
        match text(event, "type").unwrap_or_default() {
            "TurnBegin" | "SteerInput" => {
                self.end_step(source);
                let input = payload.get("user_input").cloned().unwrap_or_default();
                self.say(source, parts(input, &Role::User));
            }
            "StepBegin" => self.end_step(source),
            "StepInterrupted" => {
                self.say(source, vec![Entry::new(Role::User, Kind::Notice, "step interrupted")]);
            }
            "ContentPart" => self.content(source, payload),
            "ToolCall" => self.call(source, payload),
            "ToolCallPart" => {
                let more = text(payload, "arguments_part").unwrap_or_default();
                let step = self.steps.entry(source.to_owned()).or_default();
                step.arguments.get_or_insert_default().push_str(more);
            }
            "ToolResult" => self.say(source, vec![result(payload)]),
            "StatusUpdate" => self.status(source, payload),
            "CompactionBegin" => {
                self.say(source, vec![Entry::new(Role::System, Kind::Compaction, "")]);
            }
            "SubagentEvent" => self.subagent(payload),
            kind if SILENT.contains(&kind) => {}
            _ => self.say(source, vec![entries::unknown(event.clone())]),
        }
    }

    fn subagent(&mut self, payload: &Object) {
        let call = || text(payload, "parent_tool_call_id").or(text(payload, "task_tool_call_id"));
        let name = text(payload, "agent_id").or_else(call).unwrap_or_default();
        if let Some(event) = object(payload, "event") {
            self.event(&format!("subagent:{name}"), event);
        }
    }

    /// Adds a chunk of an answer. Chunks of the same kind are joined.
    fn content(&mut self, source: &str, payload: &Object) {
        let mut entries = parts(Value::Array(vec![payload.clone().into()]), &Role::Assistant);
        let step = self.steps.entry(source.to_owned()).or_default();
        if let (Some(last), [next]) = (step.entries.last_mut(), entries.as_slice())
            && last.role == Role::Assistant
            && last.kind == next.kind
            && matches!(next.kind, Kind::Text | Kind::Thinking)
        {
            last.content.push_str(&next.content);
            entries.clear();
        }
        self.say(source, entries);
    }

    fn call(&mut self, source: &str, payload: &Object) {
        let none = Object::new();
        let function = object(payload, "function").unwrap_or(&none);
        let call = entries::tool_call(text(function, "name"), text(payload, "id"), None);
        self.say(source, vec![call]);
        let arguments = text(function, "arguments").unwrap_or_default().to_owned();
        self.steps.entry(source.to_owned()).or_default().arguments = Some(arguments);
    }

    /// Assigns the usage of a step to its first assistant entry.
    fn status(&mut self, source: &str, payload: &Object) {
        let Some(tokens) = object(payload, "token_usage") else { return };
        let step = self.steps.entry(source.to_owned()).or_default();
        if !step.entries.iter().any(|entry| entry.role == Role::Assistant) {
            step.entries.push(Entry::new(Role::Assistant, Kind::Text, ""));
        }
        let mut answers = step.entries.iter_mut().filter(|entry| entry.role == Role::Assistant);
        if let Some(answer) = answers.next() {
            answer.usage = Some(usage(tokens));
        }
    }

    /// Decodes a message of the model's context.
    fn context(&mut self, record: &Object) {
        self.end_step(PRIMARY);
        let content = record.get("content").cloned().unwrap_or_default();
        let role = Role::from(text(record, "role").unwrap_or("user"));
        if is_mark(record) {
            return;
        }
        if role == Role::Tool {
            let id = text(record, "tool_call_id");
            return self.say(PRIMARY, vec![entries::tool_result(id, said(&content), false)]);
        }
        self.say(PRIMARY, parts(content, &role));
        for call in fields::list(record, "tool_calls").iter().filter_map(Value::as_object) {
            self.call(PRIMARY, call);
        }
    }

    fn say(&mut self, source: &str, entries: Vec<Entry>) {
        let step = self.steps.entry(source.to_owned()).or_default();
        if !entries.is_empty() {
            step.end_call();
        }
        step.entries.extend(entries);
    }

    /// Emits the entries of a step. The assistant entries are one message.
    fn end_step(&mut self, source: &str) {
        let Some(mut step) = self.steps.remove(source) else { return };
        step.end_call();
        self.count += 1;
        let name = format!("step {}", self.count);
        let before = std::mem::replace(&mut self.emitter.speaker, source.to_owned());
        for mut entry in step.entries {
            if entry.role == Role::Assistant {
                entry.message_id = Some(name.clone());
            }
            self.emitter.entry(entry);
        }
        self.emitter.speaker = before;
    }

    fn end(&mut self) {
        for source in self.steps.keys().cloned().collect::<Vec<_>>() {
            self.end_step(&source);
        }
    }
}

impl Step {
    /// Sets the arguments of the last call.
    fn end_call(&mut self) {
        let Some(arguments) = self.arguments.take() else { return };
        let mut calls = self.entries.iter_mut().rev();
        if let Some(call) = calls.find(|entry| entry.kind == Kind::ToolCall) {
            call.tool_input = Some(fields::unpacked(&Value::String(arguments)));
        }
    }
}

/// Decodes content, which is a text or a list of parts.
fn parts(content: Value, role: &Role) -> Vec<Entry> {
    match content {
        Value::Array(content) => blocks(&content, role, true),
        Value::Null => Vec::new(),
        content => vec![Entry::new(role.clone(), Kind::Text, fields::plain(&content))],
    }
}

fn said(content: &Value) -> String {
    let parts = parts(content.clone(), &Role::Tool);
    parts.into_iter().map(|part| part.content).collect::<Vec<_>>().join("\n")
}

fn result(payload: &Object) -> Entry {
    let none = Object::new();
    let value = object(payload, "return_value").or(object(payload, "result")).unwrap_or(&none);
    let output = said(value.get("output").unwrap_or(&Value::Null));
    let message = text(value, "message").unwrap_or_default();
    let content = if output.is_empty() { message.to_owned() } else { output };
    let is_error = value.get("is_error").and_then(Value::as_bool) == Some(true);
    entries::tool_result(text(payload, "tool_call_id"), content, is_error)
}

fn usage(tokens: &Object) -> Usage {
    let count = |field| fields::count(tokens, field);
    Usage {
        input: count("input_other"),
        cache_read: count("input_cache_read"),
        cache_write: count("input_cache_creation"),
        output: count("output"),
        ..Usage::default()
    }
}
