//! Reads Amp's threads: one JSON document each, with the usage of each answer and sometimes a ledger of all calls.
//!
//! Usage comes from the answers. The ledger is used only for answers without usage.

#[cfg(test)]
mod tests;

use std::collections::HashMap;

use crate::agent::Agent;
use crate::agent::record_format::RecordFormat;
use crate::agent::resume::{FolderRule, ResumeRule};
use crate::decoding::file_head::FileHead;
use crate::decoding::json_fields;
use crate::decoding::json_records::{self, blocks};
use crate::decoding::record_list::RecordList;
use crate::decoding::session_emitter::SessionEmitter;
use crate::reader::file_tree::FileTree;
use crate::reader::{FormatError, FormatReader, ItemSink};
use steno_model::durable::FileError;
use steno_model::entry::{Entry, EntryKind, Role, Usage};
use steno_model::json::{Object, Value};
use steno_model::problem::Problem;
use steno_model::session::Session;
use steno_model::timestamp::Timestamp;
use steno_vault::SessionBundle;

/// The agent's name.
pub const AGENT_NAME: &str = "amp";

/// Finds and reads its sessions.
pub const READER: FormatReader =
    FormatReader { agent: AGENT_NAME, find: find_sessions, read: read_session };

/// What is known about Amp.
pub(crate) const AGENT: Agent = Agent {
    locations: |user| {
        let data = user.path_variable("AMP_DATA_DIR");
        let data = data.unwrap_or_else(|| user.data_folder().join("amp"));
        let editors = user.editor_folders().into_iter();
        let extensions =
            editors.map(|editor| editor.join("globalStorage/sourcegraph.amp/threads3"));
        [data.join("threads")].into_iter().chain(extensions).collect()
    },
    document: Some(RecordFormat::by_head(recognises)),
    resume: Some(ResumeRule {
        program: "amp",
        arguments: &["threads", "continue", "{id}"],
        folder: FolderRule::Any,
    }),
    ..Agent::new("Amp", &READER)
};

fn find_sessions(tree: &FileTree) -> Result<Vec<SessionBundle>, FileError> {
    json_records::find_candidates(tree, recognises)
}

/// Whether a file starts as a thread does.
pub fn recognises(head: &FileHead) -> bool {
    let fields = head.scalar_fields();
    let has_thread_id =
        json_fields::text_field(&fields, "id").is_some_and(|id| id.starts_with("T-"));
    has_thread_id && fields.contains_key("v") && fields.contains_key("created")
}

fn read_session(bundle: &SessionBundle, emit: ItemSink<'_>) -> Result<Session, FormatError> {
    let Some(source) = bundle.files.first() else {
        return Err(FormatError::Invalid(Problem::for_file(&bundle.root, "no file in it")));
    };
    let mut listing = match RecordList::open(source, &["messages"])? {
        Ok(listing) => listing,
        Err(problem) => {
            let mut emitter =
                SessionEmitter::new(AGENT_NAME, json_records::session_stem(source), emit);
            emitter.emit_problem(problem);
            return Ok(emitter.session);
        }
    };
    let thread = std::mem::take(&mut listing.fields);
    let id = json_fields::text_field(&thread, "id").unwrap_or(json_records::session_stem(source));
    let mut emitter = SessionEmitter::new(AGENT_NAME, id, emit);
    apply_thread(&mut emitter, &thread);
    let ledger = AmpUsageLedger::from_thread(&thread);
    ledger.times.iter().for_each(|at| emitter.note_time(Some(*at)));
    let mut number = 0;
    listing.for_each_record(|message| {
        number += 1;
        let reason = match message {
            Ok(Value::Object(message)) => return decode_message(&mut emitter, &message, &ledger),
            Ok(_) => "not a JSON object".to_owned(),
            Err(reason) => reason,
        };
        emitter
            .emit_problem(Problem::for_file(source.path(), format!("message {number}: {reason}")));
    })?;
    Ok(emitter.session)
}

/// Fills in the session from the thread's metadata.
fn apply_thread(emitter: &mut SessionEmitter<'_>, thread: &Object) {
    emitter.note_time(json_fields::time_field(thread, "created"));
    let session = &mut emitter.session;
    session.title = json_fields::text_field(thread, "title").map(str::to_owned);
    let initial = json_fields::object_field(thread, "env")
        .and_then(|env| json_fields::object_field(env, "initial"));
    let trees = initial.map_or(&[][..], |initial| json_fields::list_field(initial, "trees"));
    let Some(tree) = trees.first().and_then(Value::as_object) else { return };
    let folder = json_fields::text_field(tree, "uri");
    session.project = folder.map(|uri| uri.strip_prefix("file://").unwrap_or(uri).to_owned());
    let branch = json_fields::object_field(tree, "repository")
        .and_then(|it| json_fields::text_field(it, "ref"));
    session.branch = branch.map(|name| name.strip_prefix("refs/heads/").unwrap_or(name).to_owned());
}

fn decode_message(emitter: &mut SessionEmitter<'_>, message: &Object, ledger: &AmpUsageLedger<'_>) {
    let id = message.get("messageId").map(json_records::value_text);
    let role = Role::from(json_fields::text_field(message, "role").unwrap_or("user"));
    let mut entries = blocks::content_entries(message, &role);
    let mut at = json_fields::object_field(message, "meta")
        .and_then(|meta| json_fields::time_field(meta, "sentAt"));
    emitter.note_time(at);
    if role == Role::Assistant {
        if entries.is_empty() {
            entries.push(Entry::new(Role::Assistant, EntryKind::Text, ""));
        }
        let call = ledger.find_call(id.as_deref());
        let own = json_fields::object_field(message, "usage");
        let model =
            [own, call].into_iter().flatten().find_map(|it| json_fields::text_field(it, "model"));
        at = [own, call]
            .into_iter()
            .flatten()
            .find_map(|it| json_fields::time_field(it, "timestamp"));
        entries.iter_mut().for_each(|entry| entry.model = model.map(str::to_owned));
        entries[0].usage = match own {
            Some(tokens) => Some(parse_usage(tokens)),
            None => call.map(parse_ledger_usage),
        };
    }
    for mut entry in entries {
        entry.created_at = at;
        entry.message_id.clone_from(&id);
        emitter.emit_entry(entry);
    }
}

/// The model calls in the ledger, by the id of the message that each produced.
struct AmpUsageLedger<'a> {
    calls: HashMap<String, &'a Object>,
    /// The times of all calls. Answers may have no times.
    times: Vec<Timestamp>,
}

impl<'a> AmpUsageLedger<'a> {
    fn from_thread(thread: &'a Object) -> Self {
        let events = json_fields::object_field(thread, "usageLedger");
        let events = events.map_or(&[][..], |ledger| json_fields::list_field(ledger, "events"));
        let times = events
            .iter()
            .filter_map(|event| json_fields::time_field(event.as_object()?, "timestamp"));
        let times = times.collect();
        let calls = events.iter().filter_map(|event| {
            let event = event.as_object()?;
            let is_inference = json_fields::text_field(event, "operationType") == Some("inference");
            is_inference
                .then(|| Some((json_records::value_text(event.get("toMessageId")?), event)))?
        });
        Self { calls: calls.collect(), times }
    }

    fn find_call(&self, message_id: Option<&str>) -> Option<&'a Object> {
        self.calls.get(message_id?).copied()
    }
}

fn parse_usage(tokens: &Object) -> Usage {
    let count = |field| json_fields::count_field(tokens, field);
    Usage {
        input: count("inputTokens"),
        cache_read: count("cacheReadInputTokens"),
        cache_write: count("cacheCreationInputTokens"),
        output: count("outputTokens"),
        ..Usage::default()
    }
}

/// Parses the usage of a ledger event, which counts neither cache reads nor cache writes.
fn parse_ledger_usage(event: &Object) -> Usage {
    let count = |field| {
        json_fields::object_field(event, "tokens")
            .map_or(0, |it| json_fields::count_field(it, field))
    };
    Usage { input: count("input"), output: count("output"), ..Usage::default() }
}
