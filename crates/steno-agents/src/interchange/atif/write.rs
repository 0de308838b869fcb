//! Renders a transcript as an ATIF trajectory (Harbor's Agent Trajectory Interchange Format), which the reader
//! can parse.

use serde_json::json;

use super::{CACHE_WRITE_FIELD, MESSAGE_ID_FIELD};
use steno_model::entry::{Entry, EntryKind, PRIMARY_SOURCE, Role};
use steno_model::json::{JsonStyle, Object, Value};
use steno_model::session::Transcript;
use steno_model::usage::{Usage, message_key};

/// The ATIF version.
const ATIF_VERSION: &str = "ATIF-v1.7";

/// Renders the trajectory as one JSON document. Each subagent is a nested trajectory.
pub fn render_atif(transcript: &Transcript) -> String {
    let session = &transcript.session;
    let mut document = trajectory_object(transcript, PRIMARY_SOURCE, session.id.as_str());
    let usage = &session.totals.usage;
    document.insert(
        "final_metrics".to_owned(),
        json!({
            "total_prompt_tokens": usage.prompt_tokens(),
            "total_completion_tokens": usage.output,
            "total_cached_tokens": usage.cache_read,
            "total_cost_usd": session.totals.cost,
            "extra": {CACHE_WRITE_FIELD: usage.cache_write},
            "total_steps": document["steps"].as_array().map_or(0, Vec::len),
        }),
    );
    let mut subagents: Vec<&str> = Vec::new();
    for entry in &transcript.entries {
        if entry.source != PRIMARY_SOURCE && !subagents.contains(&entry.source.as_str()) {
            subagents.push(&entry.source);
        }
    }
    if !subagents.is_empty() {
        let inner = subagents.iter().map(|source| {
            let id = source.strip_prefix("subagent:").unwrap_or(source);
            Value::Object(trajectory_object(transcript, source, id))
        });
        document.insert("subagent_trajectories".to_owned(), inner.collect());
    }
    JsonStyle::PRETTY.print(&document) + "\n"
}

fn trajectory_object(transcript: &Transcript, source: &str, id: &str) -> Object {
    let name = if source == PRIMARY_SOURCE { "session_id" } else { "trajectory_id" };
    let session = &transcript.session;
    let mut steps: Vec<Value> = Vec::new();
    let mut entries = transcript.entries.iter().filter(|entry| entry.source == source).peekable();
    while let Some(first) = entries.next() {
        let mut together = vec![first];
        while let Some(next) = entries.next_if(|next| belongs_to_step(together.last(), next)) {
            together.push(next);
        }
        steps.push(step_object(steps.len() + 1, &together));
    }
    let mut document = Object::new();
    document.insert("schema_version".to_owned(), json!(ATIF_VERSION));
    document.insert(name.to_owned(), json!(id));
    document.insert(
        "agent".to_owned(),
        json!({"name": session.agent, "version": "unknown", "model_name": session.models.first()}),
    );
    document.insert("steps".to_owned(), Value::Array(steps));
    document
}

/// Whether an entry continues the step of the entry before it: further output of the model, or tool results.
fn belongs_to_step(last: Option<&&Entry>, next: &Entry) -> bool {
    let rank = |entry: &Entry| match entry.kind {
        EntryKind::Thinking => Some(0),
        EntryKind::Text if entry.role == Role::Assistant => Some(1),
        EntryKind::ToolCall => Some(2),
        EntryKind::ToolResult => Some(3),
        _ => None,
    };
    let Some((before, after)) = last.and_then(|last| Some((rank(last)?, rank(next)?))) else {
        return false;
    };
    let message =
        |entry: &Entry| entry.message_id.clone().filter(|_| entry.role == Role::Assistant);
    let messages = last.and_then(|last| message(last)).zip(message(next));
    let is_same = messages.is_none_or(|(before, after)| before == after);
    is_same && (after > before || (after == before && after >= 2))
}

fn step_object(number: usize, entries: &[&Entry]) -> Value {
    let mut step = Object::new();
    let mut add = |name: &str, value: Value| _ = step.insert(name.to_owned(), value);
    add("step_id", json!(number));
    if let Some(at) = entries.iter().find_map(|entry| entry.created_at) {
        add("timestamp", json!(at.to_string()));
    }
    let of_kind = |kind: EntryKind| entries.iter().filter(move |entry| entry.kind == kind);
    let is_agent = entries.iter().any(|entry| matches!(entry.role, Role::Assistant | Role::Tool));
    let source = match entries[0].role {
        _ if is_agent => "agent",
        Role::User => "user",
        _ => "system",
    };
    add("source", json!(source));
    let texts = entries.iter().filter(|entry| {
        !matches!(entry.kind, EntryKind::Thinking | EntryKind::ToolCall | EntryKind::ToolResult)
    });
    let texts = texts
        .map(|entry| entry.content.as_str())
        .chain(of_kind(EntryKind::ToolCall).filter_map(|call| call.text_beside_call()));
    add("message", json!(texts.collect::<Vec<_>>().join("\n")));
    if is_agent {
        step.extend(agent_fields(entries));
    }
    Value::Object(step)
}

/// Fields that only an agent's step has.
fn agent_fields(entries: &[&Entry]) -> Object {
    let mut step = Object::new();
    let mut add = |name: &str, value: Value| _ = step.insert(name.to_owned(), value);
    let of_kind = |kind: EntryKind| entries.iter().filter(move |entry| entry.kind == kind);
    if let Some(thought) = of_kind(EntryKind::Thinking).next() {
        add("reasoning_content", json!(thought.content));
    }
    if let Some(model) = entries.iter().find_map(|entry| entry.model.as_ref()) {
        add("model_name", json!(model));
    }
    let calls: Vec<Value> = of_kind(EntryKind::ToolCall).map(|entry| call_object(entry)).collect();
    if !calls.is_empty() {
        add("tool_calls", Value::Array(calls));
    }
    let result =
        |entry: &&Entry| json!({"source_call_id": entry.tool_call_id, "content": entry.content});
    let results: Vec<Value> = of_kind(EntryKind::ToolResult).map(result).collect();
    if !results.is_empty() {
        add("observation", json!({"results": results}));
    }
    if let Some(usage) = entries.iter().find_map(|entry| entry.usage.as_ref()) {
        add("metrics", metrics_object(usage));
    }
    if let Some(id) = unique_message_id(entries) {
        add("extra", json!({MESSAGE_ID_FIELD: id}));
    }
    step
}

/// The id of the API message with the usage of a step, so that a copy of the message is recognized where the trajectory is
/// read again. An id that is not unique would be taken for that of another message.
fn unique_message_id<'a>(entries: &[&'a Entry]) -> Option<&'a String> {
    let billed = entries.iter().find(|entry| entry.usage.is_some())?;
    billed.message_id.as_ref().filter(|id| message_key("", id, None).is_some())
}

fn call_object(entry: &Entry) -> Value {
    let arguments = entry.tool_input.clone().unwrap_or_else(|| json!({"text": entry.content}));
    let arguments = if arguments.is_object() { arguments } else { json!({"input": arguments}) };
    json!({
        "tool_call_id": entry.tool_call_id.as_deref().unwrap_or_default(),
        "function_name": entry.tool_name.as_deref().unwrap_or("unknown"),
        "arguments": arguments,
    })
}

fn metrics_object(usage: &Usage) -> Value {
    json!({
        "prompt_tokens": usage.prompt_tokens(),
        "completion_tokens": usage.output,
        "cached_tokens": usage.cache_read,
        "extra": {
            CACHE_WRITE_FIELD: usage.cache_write,
            "reasoning_output_tokens": usage.reasoning,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interchange::atif::READER;
    use crate::reader;
    use steno_model::session::Session;
    use steno_vault::{SessionBundle, SessionFile};

    fn entry(role: Role, kind: EntryKind, content: &str) -> Entry {
        let mut entry = Entry::new(role, kind, content);
        entry.created_at = "2026-01-05T09:15:32Z".parse().ok();
        entry
    }

    fn read_back(written: &Transcript) -> Transcript {
        let path = "/trial/trajectory.json";
        let bytes = render_atif(written).into_bytes();
        let source = SessionFile::in_memory("trajectory.json", path, bytes);
        reader::read_transcript(&READER, &SessionBundle::new(path, vec![source])).unwrap()
    }

    #[test]
    fn the_usage_of_subagents_alone_is_read_back() {
        let mut written = Transcript::new(Session::new("first".parse().unwrap(), "demo"));
        written.push(entry(Role::User, EntryKind::Text, "Look"));
        let mut answer = entry(Role::Assistant, EntryKind::Text, "Done");
        answer.source = "subagent:t2".to_owned();
        let usage =
            Usage { input: 10, cache_read: 60, cache_write: 30, output: 9, ..Usage::default() };
        answer.usage = Some(usage);
        written.push(answer);
        written.session.totals.usage = usage;
        assert_eq!(read_back(&written).session.totals.usage, usage);
    }

    #[test]
    fn a_trajectory_can_be_read_back() {
        let mut written = Transcript::new(Session::new("first".parse().unwrap(), "demo"));
        written.push(entry(Role::System, EntryKind::Text, "You are"));
        written.push(entry(Role::User, EntryKind::Text, "Look"));
        written.push(entry(Role::Assistant, EntryKind::Thinking, "Hm"));
        let mut call = entry(Role::Assistant, EntryKind::ToolCall, "");
        (call.tool_name, call.tool_call_id) = (Some("ls".to_owned()), Some("c1".to_owned()));
        call.tool_input = Some(json!({"path": "."}));
        call.model = Some("m1".to_owned());
        call.message_id = Some("msg_01AbCdEfGhIjKlMnOpQr".to_owned());
        call.usage = Some(Usage { input: 10, cache_read: 60, output: 9, ..Usage::default() });
        written.push(call);
        let mut result = entry(Role::Tool, EntryKind::ToolResult, "a.rs");
        result.tool_call_id = Some("c1".to_owned());
        written.push(result);
        let mut inner = entry(Role::User, EntryKind::Text, "Do");
        inner.source = "subagent:t2".to_owned();
        written.push(inner);
        let read = read_back(&written);
        let summarize = |transcript: &Transcript| -> Vec<_> {
            let lines = transcript.entries.iter().map(|entry| {
                let Entry { role, kind, content, source, tool_input, usage, .. } = entry;
                format!("{role} {kind} {content} {source} {tool_input:?} {usage:?}")
            });
            let mut lines: Vec<_> = lines.collect();
            lines.sort();
            lines
        };
        assert_eq!(read.session.native_id.as_deref(), Some("first"));
        let billed = read.entries.iter().find(|entry| entry.usage.is_some()).unwrap();
        assert_eq!(billed.message_id.as_deref(), Some("msg_01AbCdEfGhIjKlMnOpQr"));
        assert_eq!(read.entries[0].message_id.as_deref(), Some("step-1"), "no message of an API");
        assert_eq!(read.session.totals.usage, written.session.totals.usage);
        // A step's usage is on its first entry.
        let plain = |lines: Vec<String>| -> Vec<String> {
            lines
                .iter()
                .map(|line| line.split(" Some(Usage").next().unwrap().replace(" None", ""))
                .collect()
        };
        assert_eq!(plain(summarize(&read)), plain(summarize(&written)));
    }
}
