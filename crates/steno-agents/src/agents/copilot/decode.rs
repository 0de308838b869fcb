//! Decodes one event log, line by line, into entries and a session.

use std::path::Path;

use super::AGENT_NAME;
use super::usage::CopilotTokenCounter;
use crate::decoding::entries::{self, unknown_entry};
use crate::decoding::json_fields::text_field;
use crate::decoding::json_repair;
use crate::decoding::shared_texts::SharedTexts;
use crate::protocols::responses::parse_arguments;
use crate::reader::{ItemSink, ReaderItem};
use steno_model::entry::{Entry, EntryKind, PRIMARY_SOURCE, Role};
use steno_model::json::{JsonStyle, Object, Value};
use steno_model::lines::InputLine;
use steno_model::numbering::EntryNumbering;
use steno_model::problem::Problem;
use steno_model::session::{Session, SessionId, SessionStatus};
use steno_model::timestamp::Timestamp;

/// Events that only report progress or repeat other events.
const SKIPPED_EVENTS: [&str; 19] = [
    "session.start",
    "session.resume",
    "session.model_change",
    "session.mode_changed",
    "session.context_changed",
    "session.auto_mode_resolved",
    "session.usage_checkpoint",
    "session.usage_info",
    "session.idle",
    "session.compaction_start",
    "session.shutdown",
    "session.usage_record",
    "session.title_changed",
    "assistant.turn_start",
    "assistant.turn_end",
    "assistant.intent",
    "tool.execution_progress",
    "hook.start",
    "hook.end",
];

pub(super) struct CopilotEventDecoder<'a> {
    path: &'a Path,
    emit: ItemSink<'a>,
    session: Session,
    numbering: Option<EntryNumbering>,
    tokens: CopilotTokenCounter,
    /// Tool names, by source and call id.
    calls: SharedTexts,
    /// The last thought with an event of its own.
    thought: Option<String>,
    /// The id of the last answer.
    message: Option<String>,
}

/// The fields that all entries of an event share.
struct CopilotEvent {
    kind: String,
    data: Object,
    source: String,
    at: Option<Timestamp>,
    parent: Option<String>,
}

impl<'a> CopilotEventDecoder<'a> {
    pub(super) fn new(path: &'a Path, emit: ItemSink<'a>) -> Self {
        let folder = path.parent().and_then(Path::file_name);
        let name = match path.file_stem() {
            Some(stem) if stem == "events" => folder,
            stem => stem,
        };
        let name = name.unwrap_or_default().to_string_lossy();
        Self {
            path,
            emit,
            session: Session::new(SessionId::for_native(AGENT_NAME, &name), AGENT_NAME),
            numbering: None,
            tokens: CopilotTokenCounter::default(),
            calls: SharedTexts::default(),
            thought: None,
            message: None,
        }
    }

    pub(super) fn decode_line(&mut self, line: Result<InputLine, Problem>) {
        let parsed = line.and_then(|line| {
            json_repair::parse_lenient(&line.bytes)
                .map_err(|reason| Problem::at_line(self.path, line.number, reason))
        });
        match parsed {
            Ok(record) => self.decode_record(record),
            Err(problem) => (self.emit)(ReaderItem::Problem(problem)),
        }
    }

    pub(super) fn finish(mut self) -> Session {
        self.session.totals.usage = self.tokens.total();
        self.session
    }

    fn decode_record(&mut self, record: Object) {
        let event = CopilotEvent::new(&record);
        self.note_event(&event);
        let data = &event.data;
        match event.kind.as_str() {
            "session.start" => self.apply_start(data),
            "session.title_changed" => {
                self.session.title = text_field(data, "title").map(str::to_owned)
            }
            "session.usage_record" => self.tokens.add_call(data),
            "session.shutdown" => self.apply_shutdown(data),
            "user.message" => self.decode_user_message(&event),
            "assistant.message" => self.decode_assistant_message(&event),
            "assistant.reasoning" => self.decode_reasoning(&event),
            "tool.execution_start" => self.decode_tool_start(&event),
            "tool.execution_complete" => self.decode_tool_complete(&event),
            "session.compaction_complete" => self.decode_compaction(&event),
            "session.error" => self.push_system_entry(&event, EntryKind::Error),
            "abort" => self.push_system_entry(&event, EntryKind::Notice),
            kind if SKIPPED_EVENTS.contains(&kind) => {}
            kind if is_notice(kind) => self.push_system_entry(&event, EntryKind::Notice),
            _ => self.emit_entry(&event, unknown_entry(record.clone())),
        }
    }

    fn note_event(&mut self, event: &CopilotEvent) {
        let session = &mut self.session;
        if let Some(model) = text_field(&event.data, "model")
            && !session.models.iter().any(|known| known == model)
        {
            session.models.push(model.to_owned());
        }
        let Some(at) = event.at else {
            return;
        };
        if session.started.is_none_or(|started| at.instant() < started.instant()) {
            session.started = Some(at);
        }
        if session.ended.is_none_or(|ended| at.instant() > ended.instant()) {
            session.ended = Some(at);
        }
    }

    fn apply_start(&mut self, data: &Object) {
        let session = &mut self.session;
        session.native_id = text_field(data, "sessionId").map(str::to_owned);
        if let Some(id) = &session.native_id {
            session.id = SessionId::for_native(AGENT_NAME, id);
        }
        if let Some(Value::Object(context)) = data.get("context") {
            session.project = text_field(context, "cwd").map(str::to_owned);
            session.branch = text_field(context, "branch").map(str::to_owned);
        }
        for field in ["copilotVersion", "producer"] {
            if let Some(value) = data.get(field) {
                session.extra.insert(field.to_owned(), value.clone());
            }
        }
    }

    fn apply_shutdown(&mut self, data: &Object) {
        self.tokens.add_shutdown(data);
        let shutdown_type = text_field(data, "shutdownType");
        self.session.stop_reason = shutdown_type.map(str::to_owned);
        let is_error = shutdown_type == Some("error");
        self.session.status =
            if is_error { SessionStatus::Failed } else { SessionStatus::Completed };
    }

    /// Decodes a user message. A message that a skill or another program injected becomes a notice.
    fn decode_user_message(&mut self, event: &CopilotEvent) {
        let is_injected = text_field(&event.data, "source").is_some_and(|source| source != "user");
        let kind = if is_injected { EntryKind::Notice } else { EntryKind::Text };
        let mut content = text_field(&event.data, "content").unwrap_or_default().to_owned();
        if let Some(Value::Array(attachments)) = event.data.get("attachments") {
            for attachment in attachments {
                let path = attachment.get("path").or(attachment.get("displayName"));
                let path = path.and_then(Value::as_str).unwrap_or("attachment");
                content.push_str(&format!("\n[{path}]"));
            }
        }
        self.emit_entry(event, Entry::new(Role::User, kind, content));
    }

    fn decode_assistant_message(&mut self, event: &CopilotEvent) {
        let data = &event.data;
        // Messages without an id cannot be distinguished and count as one.
        let id = text_field(data, "messageId").unwrap_or("unnamed");
        self.tokens.add_message(id, data);
        let thought = text_field(data, "reasoningText").filter(|thought| !thought.is_empty());
        let emitted = self.thought.take();
        let mut entries = Vec::new();
        if let Some(thought) = thought.filter(|thought| emitted.as_deref() != Some(thought)) {
            entries.push(Entry::new(Role::Assistant, EntryKind::Thinking, thought));
        }
        if let Some(content) = text_field(data, "content").filter(|content| !content.is_empty()) {
            entries.push(Entry::new(Role::Assistant, EntryKind::Text, content));
        }
        if let Some(Value::Array(requests)) = data.get("toolRequests") {
            let requests = requests.iter().filter_map(Value::as_object);
            entries.extend(requests.filter_map(|request| self.first_tool_call(event, request)));
        }
        if entries.is_empty() && self.message.as_deref() != Some(id) {
            // All content may be encrypted, or its calls were emitted before.
            entries.push(Entry::new(Role::Assistant, EntryKind::Text, ""));
        }
        self.message = Some(id.to_owned());
        for mut entry in entries {
            entry.message_id = Some(id.to_owned());
            self.emit_entry(event, entry);
        }
    }

    fn decode_reasoning(&mut self, event: &CopilotEvent) {
        let thought = text_field(&event.data, "content").unwrap_or_default();
        self.thought = Some(thought.to_owned());
        self.emit_entry(event, Entry::new(Role::Assistant, EntryKind::Thinking, thought));
    }

    fn decode_tool_start(&mut self, event: &CopilotEvent) {
        if let Some(call) = self.first_tool_call(event, &event.data) {
            self.emit_entry(event, call);
        }
    }

    /// Decodes a tool call. None if it was emitted before.
    fn first_tool_call(&mut self, event: &CopilotEvent, request: &Object) -> Option<Entry> {
        let id = text_field(request, "toolCallId")?;
        let name =
            text_field(request, "name").or(text_field(request, "toolName")).unwrap_or_default();
        let key = event.call_key(id);
        let is_emitted = self.calls.get(&key).is_some();
        self.calls.set(&key, name);
        if is_emitted {
            return None;
        }
        let mut call = Entry::new(Role::Assistant, EntryKind::ToolCall, "");
        call.tool_name = Some(name.to_owned());
        call.tool_call_id = Some(id.to_owned());
        call.tool_input = match request.get("arguments") {
            Some(Value::String(arguments)) => Some(parse_arguments(arguments)),
            other => other.cloned(),
        };
        Some(call)
    }

    fn decode_tool_complete(&mut self, event: &CopilotEvent) {
        let data = &event.data;
        let is_error = data.get("success") == Some(&Value::Bool(false));
        let answer = data.get("result").or(data.get("error")).unwrap_or(&Value::Null);
        let mut result = Entry::new(Role::Tool, EntryKind::ToolResult, result_text(answer));
        result.tool_call_id = text_field(data, "toolCallId").map(str::to_owned);
        if let Some(id) = &result.tool_call_id {
            result.tool_name = self.calls.get(&event.call_key(id)).map(str::to_owned);
        }
        if is_error {
            result.metadata = Some(entries::failure_metadata());
        }
        self.emit_entry(event, result);
    }

    fn decode_compaction(&mut self, event: &CopilotEvent) {
        self.emit_entry(event, Entry::new(Role::System, EntryKind::Compaction, ""));
        if let Some(summary) =
            text_field(&event.data, "summaryContent").filter(|text| !text.is_empty())
        {
            self.emit_entry(event, Entry::new(Role::User, EntryKind::Notice, summary));
        }
    }

    fn push_system_entry(&mut self, event: &CopilotEvent, kind: EntryKind) {
        let message = text_field(&event.data, "message").or(text_field(&event.data, "content"));
        let content = match message {
            Some(message) => message.to_owned(),
            None => format!("{} {}", event.kind, JsonStyle::COMPACT.print(&event.data)),
        };
        let mut entry = Entry::new(Role::System, kind, content);
        entry.metadata = Some(event.data.clone());
        self.emit_entry(event, entry);
    }

    fn emit_entry(&mut self, event: &CopilotEvent, mut entry: Entry) {
        entry.source.clone_from(&event.source);
        entry.created_at = event.at;
        entry.parent_id.clone_from(&event.parent);
        if entry.role == Role::Assistant {
            entry.model = text_field(&event.data, "model").map(str::to_owned);
        }
        let session = self.session.native_id.as_deref().unwrap_or(self.session.id.as_str());
        let numbering =
            self.numbering.get_or_insert_with(|| EntryNumbering::new(AGENT_NAME, session));
        numbering.assign_number(&mut entry);
        (self.emit)(ReaderItem::Entry(Box::new(entry)));
    }
}

impl CopilotEvent {
    fn new(record: &Object) -> Self {
        let data = record.get("data").and_then(Value::as_object).cloned().unwrap_or_default();
        let agent = text_field(record, "agentId").or(text_field(&data, "parentToolCallId"));
        Self {
            kind: text_field(record, "type").unwrap_or_default().to_owned(),
            source: match agent {
                Some(agent) => format!("subagent:{agent}"),
                None => PRIMARY_SOURCE.to_owned(),
            },
            at: text_field(record, "timestamp").and_then(|at| at.parse().ok()),
            parent: text_field(record, "parentId").map(str::to_owned),
            data,
        }
    }

    /// The key of a call in `calls`: its source and id.
    fn call_key(&self, id: &str) -> String {
        format!("{}\n{id}", self.source)
    }
}

fn is_notice(kind: &str) -> bool {
    let notices = [
        "session.info",
        "session.warning",
        "session.truncation",
        "session.snapshot_rewind",
        "skill.invoked",
    ];
    notices.contains(&kind) || kind.starts_with("system.") || kind.starts_with("subagent.")
}

fn result_text(answer: &Value) -> String {
    let inner = answer.get("content").or(answer.get("message"));
    match inner.unwrap_or(answer) {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => JsonStyle::COMPACT.print(other),
    }
}
