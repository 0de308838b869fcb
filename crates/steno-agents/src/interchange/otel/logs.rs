//! Decodes events that agents report as OTLP logs: prompts, answers with usage, tool calls and errors.
//!
//! Gemini CLI reports each answer a second time by the GenAI conventions. The second report is skipped.

use std::collections::{HashSet, VecDeque};

use super::AGENT_NAME;
use super::log_record::{OtlpLogRecord, for_each_record};
use crate::decoding::entries::{tool_call, tool_result};
use crate::decoding::entry_emitter::EntryEmitter;
use crate::decoding::json_fields::{list_items, owned_text, plain_text, unpack_json};
use crate::reader::{FormatError, ItemSink};
use steno_model::durable::FileError;
use steno_model::entry::{Entry, EntryKind, Role, Usage};
use steno_model::json::Value;
use steno_model::problem::Problem;
use steno_model::session::{Session, SessionId};
use steno_vault::{SessionBundle, SessionFile};

/// Events that make no entry: they repeat others or only report progress.
const SILENT_EVENTS: [&str; 4] =
    ["api_request", "sse_event", "client.inference.operation.details", "tool_decision"];

/// The session ids of a file, in file order.
pub(super) fn list_sessions(source: &SessionFile) -> Result<Vec<String>, FileError> {
    let (mut sessions, mut seen) = (Vec::new(), HashSet::new());
    for_each_record(source, &mut |_| {}, &mut |record| {
        if seen.insert(record.session.clone()) {
            sessions.push(record.session);
        }
    })?;
    Ok(sessions)
}

/// Reads the session of a bundle, or the first session of the file.
pub(super) fn read_log_session(
    bundle: &SessionBundle,
    source: &SessionFile,
    emit: ItemSink<'_>,
) -> Result<Session, FormatError> {
    let id = match &bundle.key {
        Some(key) => Some(key.clone()),
        None => list_sessions(source)?.into_iter().next(),
    };
    let invalid = || FormatError::Invalid(Problem::for_file(source.path(), "no agent events"));
    let id = id.ok_or_else(invalid)?;
    let mut problems = Vec::new();
    let mut reports = LogEventReader::new(EntryEmitter::new(AGENT_NAME, &id, emit));
    for_each_record(source, &mut |item| problems.push(item), &mut |record| {
        if record.session == id {
            reports.add_record(&record);
        }
    })?;
    problems.into_iter().for_each(emit);
    let mut session = Session::new(SessionId::for_native(AGENT_NAME, &id), AGENT_NAME);
    session.native_id = Some(id);
    Ok(session)
}

/// Decodes events in file order.
struct LogEventReader<'a> {
    output: EntryEmitter<'a>,
    /// Number of records so far.
    count: u64,
    /// Whether the agent reports answers by its own events.
    has_answers: bool,
    /// Calls of answers with no result yet, as name and id.
    open_calls: VecDeque<(String, String)>,
}

impl<'a> LogEventReader<'a> {
    fn new(output: EntryEmitter<'a>) -> Self {
        Self { output, count: 0, has_answers: false, open_calls: VecDeque::new() }
    }

    fn add_record(&mut self, record: &OtlpLogRecord) {
        self.count += 1;
        let entries = match record.kind() {
            "user_prompt" => {
                vec![Entry::new(
                    Role::User,
                    EntryKind::Text,
                    record.text("prompt").unwrap_or_default(),
                )]
            }
            "api_error" => vec![Entry::new(Role::System, EntryKind::Error, error_text(record))],
            "tool_call" | "tool_result" => self.tool_entries(record),
            _ if is_answer_event(record) && !self.is_repeated(record) => {
                self.answer_entries(record)
            }
            kind if SILENT_EVENTS.contains(&kind) => return,
            _ => {
                let mut notice = Entry::new(Role::System, EntryKind::Notice, record.body.as_str());
                notice.metadata = Some(record.attributes.clone());
                vec![notice]
            }
        };
        for mut entry in entries {
            entry.created_at = record.at;
            self.output.emit_entry(entry);
        }
    }

    fn is_repeated(&self, record: &OtlpLogRecord) -> bool {
        record.program() == "gen_ai" && self.has_answers
    }

    fn answer_entries(&mut self, record: &OtlpLogRecord) -> Vec<Entry> {
        self.has_answers |= record.program() != "gen_ai";
        let mut entries = self.answer_parts(record);
        if entries.is_empty() {
            entries.push(Entry::new(Role::Assistant, EntryKind::Text, ""));
        }
        // Gemini CLI also asks a model to route the prompt. Such an answer is not shown to the user.
        let is_utility = record.text("role").is_some_and(|role| role.starts_with("utility"));
        let id = ["gen_ai.response.id", "request_id"].iter().find_map(|name| record.text(name));
        let id = id.map_or_else(|| format!("record {}", self.count), str::to_owned);
        let names = ["gen_ai.response.model", "gen_ai.request.model", "model"];
        let model = names.iter().find_map(|name| record.text(name)).map(str::to_owned);
        entries[0].usage = Some(event_usage(record));
        for entry in &mut entries {
            if is_utility && entry.kind == EntryKind::Text {
                entry.kind = EntryKind::Thinking;
            }
            entry.message_id = Some(id.clone());
            entry.model.clone_from(&model);
        }
        entries
    }

    /// The content of an answer, if it was recorded.
    fn answer_parts(&mut self, record: &OtlpLogRecord) -> Vec<Entry> {
        let parts = match record.text("response_text") {
            Some(text) => match serde_json::from_str::<Value>(text) {
                Ok(response) => gemini_parts(&response),
                Err(_) => return vec![Entry::new(Role::Assistant, EntryKind::Text, text)],
            },
            None => {
                let messages = record.attributes.get("gen_ai.output.messages").map(unpack_json);
                let messages = messages.unwrap_or_default();
                list_items(&messages)
                    .iter()
                    .flat_map(|it| list_items(&it["parts"]).to_vec())
                    .collect()
            }
        };
        let mut entries: Vec<Entry> = Vec::new();
        for part in &parts {
            let call = part.get("functionCall").or((part["type"] == "tool_call").then_some(part));
            if let Some(call) = call {
                entries.push(self.call_entry(call));
                continue;
            }
            let text = plain_text(part.get("text").or(part.get("content")).unwrap_or(&Value::Null));
            let is_thought = part["thought"] == true || part["type"] == "reasoning";
            let kind = if is_thought { EntryKind::Thinking } else { EntryKind::Text };
            match entries.last_mut().filter(|last| last.kind == kind) {
                Some(last) => last.content.push_str(&text),
                None if text.is_empty() => {}
                None => entries.push(Entry::new(Role::Assistant, kind, text)),
            }
        }
        entries
    }

    fn call_entry(&mut self, call: &Value) -> Entry {
        let name = plain_text(&call["name"]);
        let id = owned_text(&call["id"]);
        let id =
            id.unwrap_or_else(|| format!("record {} call {}", self.count, self.open_calls.len()));
        let input = call.get("args").or(call.get("arguments")).map(unpack_json);
        self.open_calls.push_back((name.clone(), id.clone()));
        tool_call(Some(&name), Some(&id), input.as_ref())
    }

    /// Decodes a tool run: the result of a known call, or else both call and result.
    fn tool_entries(&mut self, record: &OtlpLogRecord) -> Vec<Entry> {
        let name = record.text("function_name").or(record.text("tool_name")).unwrap_or_default();
        let known = self.open_calls.iter().position(|(called, _)| called == name);
        let known = known.and_then(|at| self.open_calls.remove(at)).map(|(_, id)| id);
        let stated_id = record.text("call_id").or(record.text("tool_use_id")).map(str::to_owned);
        let mut entries = Vec::new();
        let id = match known {
            Some(id) => id,
            None => {
                let id = stated_id.unwrap_or_else(|| format!("record {}", self.count));
                let inputs = ["function_args", "arguments", "tool_parameters", "tool_input"];
                let input = inputs.iter().find_map(|name| record.attributes.get(*name));
                let input = input.map(unpack_json);
                entries.push(tool_call(Some(name), Some(&id), input.as_ref()));
                id
            }
        };
        let is_failed =
            record.attributes.get("success").map(plain_text).as_deref() == Some("false");
        let output = record.text("output").map(str::to_owned);
        let content =
            output.unwrap_or_else(|| if is_failed { error_text(record) } else { String::new() });
        let mut result = tool_result(Some(&id), content, is_failed);
        result.tool_name = Some(name.to_owned());
        entries.push(result);
        entries
    }
}

/// Whether an event reports an answer of a model: it has usage or output.
fn is_answer_event(record: &OtlpLogRecord) -> bool {
    match record.kind() {
        "api_response" => true,
        "api_request" => record.count(&["output_tokens"]).is_some(),
        "sse_event" => record.text("event.kind") == Some("response.completed"),
        "client.inference.operation.details" => {
            record.count(&["gen_ai.usage.output_tokens"]).is_some()
                || record.attributes.contains_key("gen_ai.output.messages")
        }
        _ => false,
    }
}

/// The parts of a Gemini response, or of all chunks of a streamed one.
fn gemini_parts(response: &Value) -> Vec<Value> {
    let whole = std::slice::from_ref(response);
    let pieces = response.as_array().map_or(whole, Vec::as_slice);
    let parts = pieces.iter().flat_map(|piece| list_items(&piece["candidates"]).first());
    parts.flat_map(|candidate| list_items(&candidate["content"]["parts"]).to_vec()).collect()
}

fn error_text(record: &OtlpLogRecord) -> String {
    let names = ["error", "error.message", "error_message"];
    let message = names.iter().find_map(|name| record.attributes.get(*name)).map(plain_text);
    message.filter(|text| !text.is_empty()).unwrap_or_else(|| record.body.clone())
}

/// Parses usage. Input includes cached tokens except for Claude Code. Output includes reasoning except for Gemini.
fn event_usage(record: &OtlpLogRecord) -> Usage {
    let count = |names: &[&str]| record.count(names).unwrap_or(0).min(1 << 48);
    let input = count(&["input_token_count", "input_tokens", "gen_ai.usage.input_tokens"]);
    let output = count(&["output_token_count", "output_tokens", "gen_ai.usage.output_tokens"]);
    let cache_read = count(&[
        "cached_content_token_count",
        "cached_token_count",
        "cache_read_tokens",
        "gen_ai.usage.cache_read.input_tokens",
    ]);
    let cache_write = count(&["cache_creation_tokens", "gen_ai.usage.cache_creation.input_tokens"]);
    let reasoning = count(&[
        "thoughts_token_count",
        "reasoning_token_count",
        "gen_ai.usage.reasoning.output_tokens",
    ]);
    let is_gemini = record.attributes.contains_key("thoughts_token_count");
    let is_apart = record.program() == "claude_code";
    let served = if is_apart { 0 } else { cache_read + cache_write };
    Usage {
        input: input.saturating_sub(served) + count(&["tool_token_count"]) * u64::from(is_gemini),
        cache_read,
        cache_write,
        output: output + if is_gemini { reasoning } else { 0 },
        reasoning,
        ..Usage::default()
    }
}
