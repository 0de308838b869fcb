//! Decodes one rollout, line by line, into entries and a session.

use std::path::Path;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::inherited::{self, Inherited};
use super::prompt::{self, Origin, Prompts};
use super::record::{Body, Head, Layout, Record, decode};
use super::tokens::Tokens;
use super::waiting::{self, Waiting};
use super::{AGENT, event};
use crate::agent::ids::Ids;
use crate::agent::{entries, fields, repair, responses};
use crate::entry::{Entry, Kind, Numbering, Role};
use crate::format::{Emit, Item, entries_to};
use crate::json::{Object, Value};
use crate::lines::Line;
use crate::problem::{Problem, json_reason};
use crate::session::{Session, SessionId};
use crate::timestamp::Timestamp;

/// Response items that repeat a `compacted` record.
const COMPACTION_ITEMS: [&str; 3] = ["compaction", "context_compaction", "compaction_trigger"];

pub(super) struct Reading<'a> {
    path: &'a Path,
    emit: Emit<'a>,
    layout: Option<Layout>,
    prompts: Prompts,
    inherited: Option<Inherited>,
    tokens: Tokens,
    waiting: Waiting,
    /// Whether token counts precede the items of their response.
    counts_come_first: bool,
    session: Session,
    numbering: Option<Numbering>,
    model: Option<String>,
    messages: Ids,
    /// The number of the current line.
    number: u64,
}

impl<'a> Reading<'a> {
    pub(super) fn new(path: &'a Path, origin: Origin, emit: Emit<'a>) -> Self {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = name.split(".jsonl").next().unwrap_or_default();
        Self {
            path,
            emit,
            layout: None,
            prompts: Prompts::new(origin),
            inherited: None,
            tokens: Tokens::default(),
            waiting: Waiting::default(),
            counts_come_first: false,
            session: Session::new(SessionId::for_native(AGENT, name), AGENT),
            numbering: None,
            model: None,
            messages: Ids::default(),
            number: 0,
        }
    }

    pub(super) fn line(&mut self, line: Result<Line, Problem>) {
        let line = match line {
            Ok(line) => line,
            Err(problem) => return (self.emit)(Item::Problem(problem)),
        };
        self.number = line.number;
        match Record::parse(&repair::without_halves(line.bytes), &mut self.layout) {
            Ok(record) => self.record(&record),
            Err(error) => self.report(&error),
        }
    }

    fn report(&mut self, error: &serde_json::Error) {
        (self.emit)(Item::Problem(Problem::at(self.path, self.number, json_reason(error))));
    }

    /// Parses a payload as an object. Anything else is reported as a problem.
    fn object(&mut self, payload: &RawValue) -> Option<Object> {
        serde_json::from_str(payload.get()).map_err(|error| self.report(&error)).ok()
    }

    pub(super) fn finish(mut self) -> Session {
        self.release();
        self.bill_last_answer();
        self.waiting.release(&mut entries_to(self.emit));
        self.session.totals.usage = self.tokens.total();
        self.session
    }

    fn record(&mut self, record: &Record<'_>) {
        let is_copied = self.inherited.as_mut().is_some_and(|inherited| inherited.holds(record));
        if let Body::Event(event) = record.body
            && decode::<Head>(event).is_some_and(|head| head.kind.as_deref() == Some("token_count"))
        {
            let is_early = self.inherited.as_ref().is_some_and(|part| part.may_count(record));
            self.tokens.count(event, is_copied || is_early);
            self.bill();
        }
        if is_copied {
            return self.note_origin(record);
        }
        self.note_time(record.timestamp);
        match record.body {
            Body::Meta(meta) => self.meta(meta, record.timestamp),
            Body::Item(item) => self.item(item, record.timestamp),
            Body::Event(event) => self.event(event, record.timestamp),
            Body::TurnContext(context) => self.turn_context(context),
            Body::Compacted(compacted) => self.compacted(compacted, record.timestamp),
            Body::TokenUsage(usage) => {
                self.tokens.response(usage);
                self.bill();
            }
            Body::Spoken(line) => self.spoken(line, record.timestamp),
            Body::State => {}
            Body::Unknown(line) => self.unknown(line, record.timestamp),
        }
    }

    /// Sets the parent of a fork from the copied `session_meta`, if its own does not name the parent.
    fn note_origin(&mut self, record: &Record<'_>) {
        if let (Body::Meta(meta), None) = (&record.body, &self.session.parent) {
            self.session.parent = inherited::thread_id(meta);
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
    fn meta(&mut self, meta: &RawValue, at: Option<Timestamp>) {
        if self.inherited.is_some() {
            return;
        }
        self.inherited = Some(Inherited::new(meta, at));
        let Some(meta) = self.object(meta) else {
            return;
        };
        let text = |field| fields::text(&meta, field).map(str::to_owned);
        let session = &mut self.session;
        session.native_id = text("id");
        if let Some(id) = &session.native_id {
            session.id = SessionId::for_native(AGENT, id);
        }
        session.project = text("cwd");
        self.counts_come_first = text("cli_version").is_some_and(|it| counts_come_first(&it));
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

    fn item(&mut self, item: &RawValue, at: Option<Timestamp>) {
        let Some(item) = self.object(item) else {
            return;
        };
        if fields::text(&item, "type").is_some_and(|kind| COMPACTION_ITEMS.contains(&kind)) {
            return;
        }
        let Some(mut entry) = responses::entry(&item) else {
            return;
        };
        entry.created_at = at;
        // Each item is a message of its own.
        entry.message_id = entry.message_id.map(|id| self.messages.own(&id));
        if (&entry.role, entry.kind) == (&Role::User, Kind::Text) {
            if let Some(ready) = self.prompts.message(entry) {
                self.show(ready);
            }
        } else {
            self.say(entry);
        }
    }

    fn event(&mut self, event: &RawValue, at: Option<Timestamp>) {
        let kind = decode::<Head>(event).and_then(|head| head.kind).unwrap_or_default();
        let prompt = match kind.as_str() {
            "token_count" => return,
            "thread_name_updated" => return self.rename(event),
            "user_message" => message_of(event).map(|text| (Origin::Events, text)),
            "item_completed" => prompt::user_message(event).map(|text| (Origin::Items, text)),
            _ => None,
        };
        if let Some((origin, text)) = prompt {
            for mut entry in self.prompts.told(origin, text) {
                entry.created_at = entry.created_at.or(at);
                self.show(entry);
            }
        } else if !event::is_repeated(&kind)
            && let Some(object) = self.object(event)
        {
            let mut entry = event::entry(&kind, object);
            entry.created_at = at;
            self.say(entry);
        }
    }

    fn rename(&mut self, event: &RawValue) {
        let event: Object = decode(event).unwrap_or_default();
        let thread = fields::text(&event, "thread_id");
        if thread.is_none() || thread == self.session.native_id.as_deref() {
            self.session.title = fields::text(&event, "thread_name").map(str::to_owned);
        }
    }

    fn turn_context(&mut self, context: &RawValue) {
        #[derive(Deserialize)]
        struct TurnContext {
            model: String,
        }
        let Some(TurnContext { model }) = decode(context) else {
            return;
        };
        if !self.session.models.contains(&model) {
            self.session.models.push(model.clone());
        }
        self.model = Some(model);
    }

    fn compacted(&mut self, compacted: &RawValue, at: Option<Timestamp>) {
        let mut boundary = Entry::new(Role::System, Kind::Compaction, "");
        boundary.created_at = at;
        self.say(boundary);
        if let Some(summary) = message_of(compacted).filter(|summary| !summary.is_empty()) {
            let mut summary = Entry::new(Role::User, Kind::Notice, summary);
            summary.created_at = at;
            self.say(summary);
        }
    }

    fn spoken(&mut self, line: &RawValue, at: Option<Timestamp>) {
        let Some(line) = self.object(line) else {
            return;
        };
        let mut entry = entries::unknown(line.clone());
        entry.role = Role::from(fields::text(&line, "role").unwrap_or_default());
        let content = line.get("content").or(line.get("message"));
        entry.content = content.map(responses::content_text).unwrap_or_default();
        entry.created_at = at;
        self.say(entry);
    }

    fn unknown(&mut self, line: &RawValue, at: Option<Timestamp>) {
        if let Some(line) = self.object(line) {
            let mut entry = entries::unknown(line.clone());
            entry.created_at = at;
            self.say(entry);
        }
    }

    /// Emits the pending user message, which has no event, and then `entry`.
    fn say(&mut self, entry: Entry) {
        self.release();
        self.show(entry);
    }

    fn release(&mut self) {
        if let Some(message) = self.prompts.release() {
            self.show(message);
        }
    }

    fn show(&mut self, mut entry: Entry) {
        if entry.role == Role::Assistant {
            entry.model.clone_from(&self.model);
        }
        let session = self.session.native_id.as_deref().unwrap_or(self.session.id.as_str());
        let numbering = self.numbering.get_or_insert_with(|| Numbering::new(AGENT, session));
        numbering.assign(&mut entry);
        if self.counts_come_first && waiting::is_answer(&entry) {
            let unassigned = self.tokens.owed();
            if !unassigned.is_empty() {
                entry.usage.get_or_insert_default().add(&unassigned);
                self.tokens.bill(&unassigned);
            }
        }
        self.waiting.take(entry, &mut entries_to(self.emit));
    }

    /// Assigns newly counted tokens to their answer, unless the answer comes after its count.
    fn bill(&mut self) {
        if !self.counts_come_first {
            self.bill_last_answer();
        }
    }

    fn bill_last_answer(&mut self) {
        let unassigned = self.tokens.owed();
        if !unassigned.is_empty() && self.waiting.bill(&unassigned) {
            self.tokens.bill(&unassigned);
        }
    }
}

/// Whether this version of Codex writes `token_count` before the items of the response, as 0.34 to 0.55 do.
fn counts_come_first(version: &str) -> bool {
    let mut numbers = version.split(['.', '-']).map(str::parse::<u32>);
    let (Some(Ok(0)), Some(Ok(minor))) = (numbers.next(), numbers.next()) else { return false };
    (34..=55).contains(&minor)
}

fn message_of(payload: &RawValue) -> Option<String> {
    #[derive(Deserialize)]
    struct Message {
        message: String,
    }
    decode::<Message>(payload).map(|payload| payload.message)
}
