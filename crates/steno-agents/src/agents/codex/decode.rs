//! Decodes one rollout, line by line, into entries and a session.

use std::path::Path;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::inherited_history::{self, InheritedHistory};
use super::pending_entries::{self, CodexPendingEntries};
use super::prompt::{self, CodexPromptMarker, CodexPromptMatcher};
use super::record::{
    CodexLineBody, CodexLineLayout, CodexPayloadHead, CodexRolloutLine, decode_raw,
};
use super::usage::CodexTokenCounter;
use super::{AGENT_NAME, event};
use crate::decoding::message_ids::UniqueMessageIds;
use crate::decoding::tool_names::CalledToolNames;
use crate::decoding::{entries, json_fields, json_repair};
use crate::protocols::responses;
use crate::reader::{ItemSink, ReaderItem, entry_sink};
use steno_model::entry::{Entry, EntryKind, Role};
use steno_model::json::{Object, Value};
use steno_model::lines::InputLine;
use steno_model::numbering::EntryNumbering;
use steno_model::problem::{Problem, json_error_reason};
use steno_model::session::{Session, SessionId};
use steno_model::timestamp::Timestamp;

/// Response items that repeat a `compacted` record.
const COMPACTION_ITEMS: [&str; 3] = ["compaction", "context_compaction", "compaction_trigger"];

pub(super) struct CodexRolloutDecoder<'a> {
    path: &'a Path,
    emit: ItemSink<'a>,
    layout: Option<CodexLineLayout>,
    prompts: CodexPromptMatcher,
    inherited: Option<InheritedHistory>,
    tokens: CodexTokenCounter,
    waiting: CodexPendingEntries,
    /// Whether token counts precede the items of their response.
    counts_come_first: bool,
    session: Session,
    numbering: Option<EntryNumbering>,
    model: Option<String>,
    messages: UniqueMessageIds,
    tool_names: CalledToolNames,
    /// The number of the current line.
    number: u64,
}

impl<'a> CodexRolloutDecoder<'a> {
    pub(super) fn new(path: &'a Path, origin: CodexPromptMarker, emit: ItemSink<'a>) -> Self {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = name.split(".jsonl").next().unwrap_or_default();
        Self {
            path,
            emit,
            layout: None,
            prompts: CodexPromptMatcher::new(origin),
            inherited: None,
            tokens: CodexTokenCounter::default(),
            waiting: CodexPendingEntries::default(),
            counts_come_first: false,
            session: Session::new(SessionId::for_native(AGENT_NAME, name), AGENT_NAME),
            numbering: None,
            model: None,
            messages: UniqueMessageIds::default(),
            tool_names: CalledToolNames::default(),
            number: 0,
        }
    }

    pub(super) fn decode_line(&mut self, line: Result<InputLine, Problem>) {
        let line = match line {
            Ok(line) => line,
            Err(problem) => return (self.emit)(ReaderItem::Problem(problem)),
        };
        self.number = line.number;
        match CodexRolloutLine::parse(
            &json_repair::replace_lone_surrogates(line.bytes),
            &mut self.layout,
        ) {
            Ok(record) => self.decode_record(&record),
            Err(error) => self.report_error(&error),
        }
    }

    fn report_error(&mut self, error: &serde_json::Error) {
        (self.emit)(ReaderItem::Problem(Problem::at_line(
            self.path,
            self.number,
            json_error_reason(error),
        )));
    }

    /// Parses a payload as an object. Anything else is reported as a problem.
    fn parse_object(&mut self, payload: &RawValue) -> Option<Object> {
        serde_json::from_str(payload.get()).map_err(|error| self.report_error(&error)).ok()
    }

    pub(super) fn finish(mut self) -> Session {
        self.flush_pending_prompt();
        self.assign_usage_to_answer();
        self.waiting.release_all(&mut entry_sink(self.emit));
        self.session.totals.usage = self.tokens.total();
        self.session
    }

    fn decode_record(&mut self, record: &CodexRolloutLine<'_>) {
        let is_copied =
            self.inherited.as_mut().is_some_and(|inherited| inherited.is_copied(record));
        if let CodexLineBody::Event(event) = record.body
            && decode_raw::<CodexPayloadHead>(event)
                .is_some_and(|head| head.kind.as_deref() == Some("token_count"))
        {
            let is_early =
                self.inherited.as_ref().is_some_and(|part| part.may_be_billed_elsewhere(record));
            self.tokens.set_count(event, is_copied || is_early);
            self.assign_usage();
        }
        if is_copied {
            return self.note_origin(record);
        }
        self.note_time(record.timestamp);
        match record.body {
            CodexLineBody::Meta(meta) => self.apply_meta(meta, record.timestamp),
            CodexLineBody::Item(item) => self.decode_item(item, record.timestamp),
            CodexLineBody::Event(event) => self.decode_event(event, record.timestamp),
            CodexLineBody::TurnContext(context) => self.apply_turn_context(context),
            CodexLineBody::Compacted(compacted) => {
                self.decode_compaction(compacted, record.timestamp)
            }
            CodexLineBody::TokenUsage(usage) => {
                self.tokens.add_response(usage);
                self.assign_usage();
            }
            CodexLineBody::BareMessage(line) => self.decode_bare_message(line, record.timestamp),
            CodexLineBody::State => {}
            CodexLineBody::Unknown(line) => self.decode_unknown(line, record.timestamp),
        }
    }

    /// Sets the parent of a fork from the copied `session_meta`, if its own does not name the parent.
    fn note_origin(&mut self, record: &CodexRolloutLine<'_>) {
        if let (CodexLineBody::Meta(meta), None) = (&record.body, &self.session.parent) {
            self.session.parent = inherited_history::thread_id(meta);
        }
    }

    fn note_time(&mut self, at: Option<Timestamp>) {
        let Some(at) = at else {
            return;
        };
        let (started, ended) = (&mut self.session.started, &mut self.session.ended);
        if started.is_none_or(|started| at.instant() < started.instant()) {
            *started = Some(at);
        }
        if ended.is_none_or(|ended| at.instant() > ended.instant()) {
            *ended = Some(at);
        }
    }

    /// Applies the first `session_meta`. Later ones repeat it, or were copied from other threads.
    fn apply_meta(&mut self, meta: &RawValue, at: Option<Timestamp>) {
        if self.inherited.is_some() {
            return;
        }
        self.inherited = Some(InheritedHistory::new(meta, at));
        let Some(meta) = self.parse_object(meta) else {
            return;
        };
        let text = |field| json_fields::text_field(&meta, field).map(str::to_owned);
        let session = &mut self.session;
        session.native_id = text("id");
        if let Some(id) = &session.native_id {
            session.id = SessionId::for_native(AGENT_NAME, id);
        }
        session.project = text("cwd");
        self.counts_come_first = text("cli_version").is_some_and(|it| has_early_counts(&it));
        let git = meta.get("git").and_then(|git| git.get("branch"));
        session.branch = git.and_then(Value::as_str).map(str::to_owned);
        session.parent = text("forked_from_id").or(text("parent_thread_id"));
        for field in ["cli_version", "originator", "source", "thread_source", "history_mode", "git"]
        {
            if let Some(value) = meta.get(field).filter(|value| !value.is_null()) {
                session.extra.insert(field.to_owned(), value.clone());
            }
        }
    }

    fn decode_item(&mut self, item: &RawValue, at: Option<Timestamp>) {
        let Some(item) = self.parse_object(item) else {
            return;
        };
        if json_fields::text_field(&item, "type")
            .is_some_and(|kind| COMPACTION_ITEMS.contains(&kind))
        {
            return;
        }
        let Some(mut entry) = responses::item_entry(&item) else {
            return;
        };
        entry.created_at = at;
        // Each item is a message of its own.
        entry.message_id = entry.message_id.map(|id| self.messages.make_unique(&id));
        if (&entry.role, entry.kind) == (&Role::User, EntryKind::Text) {
            if let Some(ready) = self.prompts.push_message(entry) {
                self.emit_entry(ready);
            }
        } else {
            self.push_entry(entry);
        }
    }

    fn decode_event(&mut self, event: &RawValue, at: Option<Timestamp>) {
        let kind =
            decode_raw::<CodexPayloadHead>(event).and_then(|head| head.kind).unwrap_or_default();
        let prompt = match kind.as_str() {
            "token_count" => return,
            "thread_name_updated" => return self.apply_title(event),
            "user_message" => message_text(event).map(|text| (CodexPromptMarker::Events, text)),
            "item_completed" => {
                prompt::user_message_text(event).map(|text| (CodexPromptMarker::Items, text))
            }
            _ => None,
        };
        if let Some((origin, text)) = prompt {
            for mut entry in self.prompts.push_event(origin, text) {
                entry.created_at = entry.created_at.or(at);
                self.emit_entry(entry);
            }
        } else if !event::is_repeated(&kind)
            && let Some(object) = self.parse_object(event)
        {
            let mut entry = event::decode_event(&kind, object);
            entry.created_at = at;
            self.push_entry(entry);
        }
    }

    fn apply_title(&mut self, event: &RawValue) {
        let event: Object = decode_raw(event).unwrap_or_default();
        let thread = json_fields::text_field(&event, "thread_id");
        if thread.is_none() || thread == self.session.native_id.as_deref() {
            self.session.title = json_fields::text_field(&event, "thread_name").map(str::to_owned);
        }
    }

    fn apply_turn_context(&mut self, context: &RawValue) {
        #[derive(Deserialize)]
        struct CodexTurnContext {
            model: String,
        }
        let Some(CodexTurnContext { model }) = decode_raw(context) else {
            return;
        };
        if !self.session.models.contains(&model) {
            self.session.models.push(model.clone());
        }
        self.model = Some(model);
    }

    fn decode_compaction(&mut self, compacted: &RawValue, at: Option<Timestamp>) {
        let mut boundary = Entry::new(Role::System, EntryKind::Compaction, "");
        boundary.created_at = at;
        self.push_entry(boundary);
        if let Some(summary) = message_text(compacted).filter(|summary| !summary.is_empty()) {
            let mut summary = Entry::new(Role::User, EntryKind::Notice, summary);
            summary.created_at = at;
            self.push_entry(summary);
        }
    }

    fn decode_bare_message(&mut self, line: &RawValue, at: Option<Timestamp>) {
        let Some(line) = self.parse_object(line) else {
            return;
        };
        let mut entry = entries::unknown_entry(line.clone());
        entry.role = Role::from(json_fields::text_field(&line, "role").unwrap_or_default());
        let content = line.get("content").or(line.get("message"));
        entry.content = content.map(responses::content_text).unwrap_or_default();
        entry.created_at = at;
        self.push_entry(entry);
    }

    fn decode_unknown(&mut self, line: &RawValue, at: Option<Timestamp>) {
        if let Some(line) = self.parse_object(line) {
            let mut entry = entries::unknown_entry(line.clone());
            entry.created_at = at;
            self.push_entry(entry);
        }
    }

    /// Emits the pending user message, which has no event, and then `entry`.
    fn push_entry(&mut self, entry: Entry) {
        self.flush_pending_prompt();
        self.emit_entry(entry);
    }

    fn flush_pending_prompt(&mut self) {
        if let Some(message) = self.prompts.take_pending() {
            self.emit_entry(message);
        }
    }

    fn emit_entry(&mut self, mut entry: Entry) {
        self.tool_names.name_tool(&mut entry);
        if entry.role == Role::Assistant {
            entry.model.clone_from(&self.model);
        }
        let session = self.session.native_id.as_deref().unwrap_or(self.session.id.as_str());
        let numbering =
            self.numbering.get_or_insert_with(|| EntryNumbering::new(AGENT_NAME, session));
        numbering.assign_number(&mut entry);
        if self.counts_come_first && pending_entries::is_answer(&entry) {
            let unassigned = self.tokens.unassigned_usage();
            if !unassigned.is_empty() {
                entry.usage.get_or_insert_default().add(&unassigned);
                self.tokens.mark_assigned(&unassigned);
            }
        }
        self.waiting.push_entry(entry, &mut entry_sink(self.emit));
    }

    /// Assigns newly counted tokens to their answer, unless the answer comes after its count.
    fn assign_usage(&mut self) {
        if !self.counts_come_first {
            self.assign_usage_to_answer();
        }
    }

    fn assign_usage_to_answer(&mut self) {
        let unassigned = self.tokens.unassigned_usage();
        if !unassigned.is_empty() && self.waiting.add_usage(&unassigned) {
            self.tokens.mark_assigned(&unassigned);
        }
    }
}

/// Whether this version of Codex writes `token_count` before the items of the response, as 0.34 to 0.55 do.
fn has_early_counts(version: &str) -> bool {
    let mut numbers = version.split(['.', '-']).map(str::parse::<u32>);
    let (Some(Ok(0)), Some(Ok(minor))) = (numbers.next(), numbers.next()) else { return false };
    (34..=55).contains(&minor)
}

fn message_text(payload: &RawValue) -> Option<String> {
    #[derive(Deserialize)]
    struct CodexMessagePayload {
        message: String,
    }
    decode_raw::<CodexMessagePayload>(payload).map(|payload| payload.message)
}
