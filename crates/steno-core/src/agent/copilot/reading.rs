//! Decodes one event log, line by line, into entries and a session.

use std::path::Path;

use super::AGENT;
use super::tokens::Tokens;
use crate::agent::entries;
use crate::agent::entries::unknown;
use crate::agent::fields::text;
use crate::agent::repair;
use crate::agent::responses::structured;
use crate::agent::texts::Texts;
use crate::entry::{Entry, Kind, Numbering, PRIMARY, Role};
use crate::format::{Emit, Item};
use crate::json::{Object, Style, Value};
use crate::lines::Line;
use crate::problem::Problem;
use crate::session::{Session, SessionId, Status};
use crate::timestamp::Timestamp;

/// Events that only report progress or repeat other events.
const PASSED_OVER: [&str; 19] = [
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

pub(super) struct Reading<'a> {
    path: &'a Path,
    emit: Emit<'a>,
    session: Session,
    numbering: Option<Numbering>,
    tokens: Tokens,
    /// Tool names, by source and call id.
    calls: Texts,
    /// The last thought with an event of its own.
    thought: Option<String>,
    /// The id of the last answer.
    message: Option<String>,
}

/// The fields that all entries of an event share.
struct Event {
    kind: String,
    data: Object,
    source: String,
    at: Option<Timestamp>,
    parent: Option<String>,
}

impl<'a> Reading<'a> {
    pub(super) fn new(path: &'a Path, emit: Emit<'a>) -> Self {
        let folder = path.parent().and_then(Path::file_name);
        let name = match path.file_stem() {
            Some(stem) if stem == "events" => folder,
            stem => stem,
        };
        let name = name.unwrap_or_default().to_string_lossy();
        Self {
            path,
            emit,
            session: Session::new(SessionId::for_native(AGENT, &name), AGENT),
            numbering: None,
            tokens: Tokens::default(),
            calls: Texts::default(),
            thought: None,
            message: None,
        }
    }

    pub(super) fn line(&mut self, line: Result<Line, Problem>) {
        let parsed = line.and_then(|line| {
            repair::parse(&line.bytes).map_err(|reason| Problem::at(self.path, line.number, reason))
        });
        match parsed {
            Ok(record) => self.record(record),
            Err(problem) => (self.emit)(Item::Problem(problem)),
        }
    }

    pub(super) fn finish(mut self) -> Session {
        self.session.totals.usage = self.tokens.total();
        self.session
    }

    fn record(&mut self, record: Object) {
        let event = Event::new(&record);
        self.note(&event);
        let data = &event.data;
        match event.kind.as_str() {
            "session.start" => self.start(data),
            "session.title_changed" => self.session.title = text(data, "title").map(str::to_owned),
            "session.usage_record" => self.tokens.call(data),
            "session.shutdown" => self.shutdown(data),
            "user.message" => self.user_message(&event),
            "assistant.message" => self.assistant_message(&event),
            "assistant.reasoning" => self.reasoning(&event),
            "tool.execution_start" => self.tool_start(&event),
            "tool.execution_complete" => self.tool_complete(&event),
            "session.compaction_complete" => self.compaction(&event),
            "session.error" => self.tell(&event, Kind::Error),
            "abort" => self.tell(&event, Kind::Notice),
            kind if PASSED_OVER.contains(&kind) => {}
            kind if is_notice(kind) => self.tell(&event, Kind::Notice),
            _ => self.show(&event, unknown(record.clone())),
        }
    }

    fn note(&mut self, event: &Event) {
        let session = &mut self.session;
        if let Some(model) = text(&event.data, "model")
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

    fn start(&mut self, data: &Object) {
        let session = &mut self.session;
        session.native_id = text(data, "sessionId").map(str::to_owned);
        if let Some(id) = &session.native_id {
            session.id = SessionId::for_native(AGENT, id);
        }
        if let Some(Value::Object(context)) = data.get("context") {
            session.project = text(context, "cwd").map(str::to_owned);
            session.branch = text(context, "branch").map(str::to_owned);
        }
        for field in ["copilotVersion", "producer"] {
            if let Some(value) = data.get(field) {
                session.extra.insert(field.to_owned(), value.clone());
            }
        }
    }

    fn shutdown(&mut self, data: &Object) {
        self.tokens.shutdown(data);
        let shutdown_type = text(data, "shutdownType");
        self.session.stop_reason = shutdown_type.map(str::to_owned);
        let is_error = shutdown_type == Some("error");
        self.session.status = if is_error { Status::Failed } else { Status::Completed };
    }

    /// Decodes a user message. A message that a skill or another program injected becomes a notice.
    fn user_message(&mut self, event: &Event) {
        let is_injected = text(&event.data, "source").is_some_and(|source| source != "user");
        let kind = if is_injected { Kind::Notice } else { Kind::Text };
        let mut content = text(&event.data, "content").unwrap_or_default().to_owned();
        if let Some(Value::Array(attachments)) = event.data.get("attachments") {
            for attachment in attachments {
                let path = attachment.get("path").or(attachment.get("displayName"));
                let path = path.and_then(Value::as_str).unwrap_or("attachment");
                content.push_str(&format!("\n[{path}]"));
            }
        }
        self.show(event, Entry::new(Role::User, kind, content));
    }

    fn assistant_message(&mut self, event: &Event) {
        let data = &event.data;
        // Messages without an id cannot be distinguished and count as one.
        let id = text(data, "messageId").unwrap_or("unnamed");
        self.tokens.message(id, data);
        let thought = text(data, "reasoningText").filter(|thought| !thought.is_empty());
        let emitted = self.thought.take();
        let mut entries = Vec::new();
        if let Some(thought) = thought.filter(|thought| emitted.as_deref() != Some(thought)) {
            entries.push(Entry::new(Role::Assistant, Kind::Thinking, thought));
        }
        if let Some(content) = text(data, "content").filter(|content| !content.is_empty()) {
            entries.push(Entry::new(Role::Assistant, Kind::Text, content));
        }
        if let Some(Value::Array(requests)) = data.get("toolRequests") {
            let requests = requests.iter().filter_map(Value::as_object);
            entries.extend(requests.filter_map(|request| self.call(event, request)));
        }
        if entries.is_empty() && self.message.as_deref() != Some(id) {
            // All content may be encrypted, or its calls were emitted before.
            entries.push(Entry::new(Role::Assistant, Kind::Text, ""));
        }
        self.message = Some(id.to_owned());
        for mut entry in entries {
            entry.message_id = Some(id.to_owned());
            self.show(event, entry);
        }
    }

    fn reasoning(&mut self, event: &Event) {
        let thought = text(&event.data, "content").unwrap_or_default();
        self.thought = Some(thought.to_owned());
        self.show(event, Entry::new(Role::Assistant, Kind::Thinking, thought));
    }

    fn tool_start(&mut self, event: &Event) {
        if let Some(call) = self.call(event, &event.data) {
            self.show(event, call);
        }
    }

    /// Decodes a tool call. None if it was emitted before.
    fn call(&mut self, event: &Event, request: &Object) -> Option<Entry> {
        let id = text(request, "toolCallId")?;
        let name = text(request, "name").or(text(request, "toolName")).unwrap_or_default();
        let key = event.call_key(id);
        let is_emitted = self.calls.get(&key).is_some();
        self.calls.set(&key, name);
        if is_emitted {
            return None;
        }
        let mut call = Entry::new(Role::Assistant, Kind::ToolCall, "");
        call.tool_name = Some(name.to_owned());
        call.tool_call_id = Some(id.to_owned());
        call.tool_input = match request.get("arguments") {
            Some(Value::String(arguments)) => Some(structured(arguments)),
            other => other.cloned(),
        };
        Some(call)
    }

    fn tool_complete(&mut self, event: &Event) {
        let data = &event.data;
        let is_error = data.get("success") == Some(&Value::Bool(false));
        let answer = data.get("result").or(data.get("error")).unwrap_or(&Value::Null);
        let mut result = Entry::new(Role::Tool, Kind::ToolResult, answer_text(answer));
        result.tool_call_id = text(data, "toolCallId").map(str::to_owned);
        if let Some(id) = &result.tool_call_id {
            result.tool_name = self.calls.get(&event.call_key(id)).map(str::to_owned);
        }
        if is_error {
            result.metadata = Some(entries::failure());
        }
        self.show(event, result);
    }

    fn compaction(&mut self, event: &Event) {
        self.show(event, Entry::new(Role::System, Kind::Compaction, ""));
        if let Some(summary) = text(&event.data, "summaryContent").filter(|text| !text.is_empty()) {
            self.show(event, Entry::new(Role::User, Kind::Notice, summary));
        }
    }

    fn tell(&mut self, event: &Event, kind: Kind) {
        let message = text(&event.data, "message").or(text(&event.data, "content"));
        let content = match message {
            Some(message) => message.to_owned(),
            None => format!("{} {}", event.kind, Style::COMPACT.print(&event.data)),
        };
        let mut entry = Entry::new(Role::System, kind, content);
        entry.metadata = Some(event.data.clone());
        self.show(event, entry);
    }

    fn show(&mut self, event: &Event, mut entry: Entry) {
        entry.source.clone_from(&event.source);
        entry.created_at = event.at;
        entry.parent_id.clone_from(&event.parent);
        if entry.role == Role::Assistant {
            entry.model = text(&event.data, "model").map(str::to_owned);
        }
        let session = self.session.native_id.as_deref().unwrap_or(self.session.id.as_str());
        let numbering = self.numbering.get_or_insert_with(|| Numbering::new(AGENT, session));
        numbering.assign(&mut entry);
        (self.emit)(Item::Entry(Box::new(entry)));
    }
}

impl Event {
    fn new(record: &Object) -> Self {
        let data = record.get("data").and_then(Value::as_object).cloned().unwrap_or_default();
        let agent = text(record, "agentId").or(text(&data, "parentToolCallId"));
        Self {
            kind: text(record, "type").unwrap_or_default().to_owned(),
            source: match agent {
                Some(agent) => format!("subagent:{agent}"),
                None => PRIMARY.to_owned(),
            },
            at: text(record, "timestamp").and_then(|at| at.parse().ok()),
            parent: text(record, "parentId").map(str::to_owned),
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

fn answer_text(answer: &Value) -> String {
    let inner = answer.get("content").or(answer.get("message"));
    match inner.unwrap_or(answer) {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => Style::COMPACT.print(other),
    }
}
