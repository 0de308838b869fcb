//! The state of reading one rollout, from its first line to the session that it tells of.

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

/// Response items that mark what `compacted` records tell.
const COMPACTION_ITEMS: [&str; 3] = ["compaction", "context_compaction", "compaction_trigger"];

pub(super) struct Reading<'a> {
    path: &'a Path,
    emit: Emit<'a>,
    layout: Option<Layout>,
    prompts: Prompts,
    inherited: Option<Inherited>,
    tokens: Tokens,
    waiting: Waiting,
    /// Whether tokens are counted before the items of their response, not after.
    counts_come_first: bool,
    session: Session,
    numbering: Option<Numbering>,
    model: Option<String>,
    messages: Ids,
    /// The line that is being read.
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

    /// The object that a payload is; reported where it is none.
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
        let copied = self.inherited.as_mut().is_some_and(|inherited| inherited.holds(record));
        if let Body::Event(event) = record.body
            && decode::<Head>(event).is_some_and(|head| head.kind.as_deref() == Some("token_count"))
        {
            let early = self.inherited.as_ref().is_some_and(|part| part.may_count(record));
            self.tokens.count(event, copied || early);
            self.bill();
        }
        if copied {
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

    /// A fork that does not name its origin begins with the `session_meta` of it.
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

    /// The first one counts: later ones repeat it, or were copied from other threads.
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
            if let Some(shown) = self.prompts.message(entry) {
                self.show(shown);
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
        let mut seam = Entry::new(Role::System, Kind::Compaction, "");
        seam.created_at = at;
        self.say(seam);
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

    /// Shows an entry after the message that waited for its event.
    fn say(&mut self, entry: Entry) {
        self.release();
        self.show(entry);
    }

    fn release(&mut self) {
        if let Some(waiting) = self.prompts.release() {
            self.show(waiting);
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
            let owed = self.tokens.owed();
            if !owed.is_empty() {
                entry.usage.get_or_insert_default().add(&owed);
                self.tokens.bill(&owed);
            }
        }
        self.waiting.take(entry, &mut entries_to(self.emit));
    }

    /// Gives what was counted since the last time to its answer, unless that is still to come.
    fn bill(&mut self) {
        if !self.counts_come_first {
            self.bill_last_answer();
        }
    }

    fn bill_last_answer(&mut self) {
        let owed = self.tokens.owed();
        if !owed.is_empty() && self.waiting.bill(&owed) {
            self.tokens.bill(&owed);
        }
    }
}

/// Whether this version of Codex writes `token_count` before the items of the response: 0.34 to 0.55 do.
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
