//! Reads Mistral Vibe's sessions: one folder each, with a log of messages and a metadata file.
//!
//! Before version 2.0, both were one document, `session_<time>_<id>.json`. Messages have no times; usage is that of the
//! whole session.

#[cfg(test)]
mod tests;

use std::path::Path;

use crate::agent::Agent;
use crate::agent::record_format::RecordFormat;
use crate::decoding::file_head::FileHead;
use crate::decoding::json_fields::{self, list_field, object_field, text_field};
use crate::decoding::json_lines::for_each_object;
use crate::decoding::record_list::RecordList;
use crate::decoding::session_emitter::SessionEmitter;
use crate::decoding::{entries, json_records};
use crate::reader::file_tree::FileTree;
use crate::reader::{FormatError, FormatReader, ItemSink};
use steno_model::durable::FileError;
use steno_model::entry::{Entry, EntryKind, Role, Usage};
use steno_model::json::{Object, Value};
use steno_model::problem::Problem;
use steno_model::session::Session;
use steno_vault::{SessionBundle, SessionFile};

/// The agent's name.
pub const AGENT_NAME: &str = "vibe";

/// Finds and reads its sessions.
pub const READER: FormatReader =
    FormatReader { agent: AGENT_NAME, find: find_sessions, read: read_session };

/// What is known about Mistral Vibe.
pub(crate) const AGENT: Agent = Agent {
    locations: |user| vec![user.folder_or_default("VIBE_HOME", ".vibe").join("logs/session")],
    document: Some(RecordFormat::by_head(recognises_document)),
    ..Agent::new("Mistral Vibe", &READER)
};

/// The log of messages.
const MESSAGES_FILE: &str = "messages.jsonl";

/// The file with a session's metadata.
const META_FILE: &str = "meta.json";

fn find_sessions(tree: &FileTree) -> Result<Vec<SessionBundle>, FileError> {
    let mut bundles = Vec::new();
    for file in tree.files() {
        if file.ends_with(MESSAGES_FILE) {
            let bundle = bundle_session(file);
            if is_message_log(
                &FileHead::read(&bundle.files[0])?,
                bundle.file_named(META_FILE).is_some(),
            ) {
                bundles.push(bundle);
            }
        } else if file.extension().is_some_and(|extension| extension == "json") {
            let bundle = SessionBundle::from_file(file);
            if recognises_document(&FileHead::read_document(&bundle.files[0])?) {
                bundles.push(bundle);
            }
        }
    }
    Ok(bundles)
}

/// Bundles a log with its metadata file.
fn bundle_session(log: &Path) -> SessionBundle {
    let mut bundle = SessionBundle::from_file(log);
    let meta = log.with_file_name(META_FILE);
    if meta.is_file() {
        bundle.files.push(SessionFile::on_disk(META_FILE, &meta));
    }
    bundle
}

fn is_message_log(head: &FileHead, has_metadata: bool) -> bool {
    let fields = head.scalar_fields();
    let role = text_field(&fields, "role").unwrap_or_default();
    matches!(role, "user" | "assistant" | "tool")
        && fields.contains_key("content")
        && (has_metadata || fields.contains_key("message_id"))
}

/// Whether a file is a session of a version before 2.0.
pub fn recognises_document(head: &FileHead) -> bool {
    let meta = head.field_start("metadata");
    head.field_start("messages").is_some()
        && meta
            .is_some_and(|meta| meta.contains("\"session_id\"") && meta.contains("\"start_time\""))
}

fn read_session(bundle: &SessionBundle, emit: ItemSink<'_>) -> Result<Session, FormatError> {
    let Some(log) = bundle.files.iter().find(|source| source.name() != META_FILE) else {
        return Err(FormatError::Invalid(Problem::for_file(&bundle.root, "no messages in it")));
    };
    if log.name().ends_with(".json") {
        return read_document(log, emit);
    }
    let meta = bundle.file_named(META_FILE).map(json_records::read_object).transpose()?;
    let folder = log.path().parent().and_then(Path::file_name).map(|name| name.to_string_lossy());
    let meta_id = meta.as_ref().and_then(|meta| text_field(meta.as_ref().ok()?, "session_id"));
    let id = meta_id.map(str::to_owned).or(folder.map(|folder| folder.into_owned()));
    let mut emitter = SessionEmitter::new(AGENT_NAME, &id.unwrap_or_default(), emit);
    match &meta {
        Some(Ok(meta)) => apply_meta(&mut emitter, meta),
        Some(Err(problem)) => emitter.emit_problem(problem.clone()),
        None => {}
    }
    for_each_object(log, |message, line| match message {
        Ok(message) => decode_message(&mut emitter, &message, line),
        Err(problem) => emitter.emit_problem(problem),
    })?;
    Ok(emitter.session)
}

fn read_document(source: &SessionFile, emit: ItemSink<'_>) -> Result<Session, FormatError> {
    let mut listing = match RecordList::open(source, &["messages"])? {
        Ok(listing) => listing,
        Err(problem) => return Err(FormatError::Invalid(problem)),
    };
    let document = std::mem::take(&mut listing.fields);
    let none = Object::new();
    let meta = object_field(&document, "metadata").unwrap_or(&none);
    let id = text_field(meta, "session_id").unwrap_or(json_records::session_stem(source));
    let mut emitter = SessionEmitter::new(AGENT_NAME, id, emit);
    apply_meta(&mut emitter, meta);
    let mut number = 0;
    listing.for_each_record(|message| {
        number += 1;
        let reason = match message {
            Ok(Value::Object(message)) => return decode_message(&mut emitter, &message, number),
            Ok(_) => "not a JSON object".to_owned(),
            Err(reason) => reason,
        };
        emitter
            .emit_problem(Problem::for_file(source.path(), format!("message {number}: {reason}")));
    })?;
    Ok(emitter.session)
}

/// Fills in the session from its metadata.
fn apply_meta(emitter: &mut SessionEmitter<'_>, meta: &Object) {
    emitter.note_time(json_fields::time_field(meta, "start_time"));
    emitter.note_time(json_fields::time_field(meta, "end_time"));
    let session = &mut emitter.session;
    let owned = |object: &Object, name: &str| {
        text_field(object, name).filter(|text| !text.is_empty()).map(str::to_owned)
    };
    session.title = owned(meta, "title");
    session.branch = owned(meta, "git_branch");
    session.parent = owned(meta, "parent_session_id");
    let environment = object_field(meta, "environment");
    session.project = environment.and_then(|environment| owned(environment, "working_directory"));
    let config = object_field(meta, "config").or(object_field(meta, "agent_config"));
    session.models.extend(config.and_then(|config| owned(config, "active_model")));
    if let Some(stats) = object_field(meta, "stats") {
        session.totals.usage = Usage {
            input: json_fields::count_field(stats, "session_prompt_tokens"),
            output: json_fields::count_field(stats, "session_completion_tokens"),
            ..Usage::default()
        };
        let cost = stats.get("session_cost").and_then(Value::as_f64);
        session.totals.cost = cost.filter(|cost| *cost > 0.0);
    }
}

fn decode_message(emitter: &mut SessionEmitter<'_>, message: &Object, line: u64) {
    let id =
        text_field(message, "message_id").map_or_else(|| format!("line {line}"), str::to_owned);
    let role = Role::from(text_field(message, "role").unwrap_or("assistant"));
    let model = emitter.session.models.first().cloned().filter(|_| role == Role::Assistant);
    for mut entry in message_entries(message, &role) {
        entry.message_id = Some(id.clone());
        entry.model.clone_from(&model);
        emitter.emit_entry(entry);
    }
}

fn message_entries(message: &Object, role: &Role) -> Vec<Entry> {
    let content = message.get("content").map(json_records::value_text).unwrap_or_default();
    if *role == Role::Tool {
        let mut result = entries::tool_result(text_field(message, "tool_call_id"), content, false);
        result.tool_name = text_field(message, "name").map(str::to_owned);
        return vec![result];
    }
    let mut entries = Vec::new();
    let thought =
        message.get("reasoning_content").map(json_records::value_text).unwrap_or_default();
    if !thought.is_empty() {
        entries.push(Entry::new(Role::Assistant, EntryKind::Thinking, thought));
    }
    let calls = list_field(message, "tool_calls");
    if !content.is_empty() || (calls.is_empty() && entries.is_empty()) {
        // Vibe also injects messages with the role `user`.
        let is_injected = message.get("injected").and_then(Value::as_bool) == Some(true);
        let kind = if is_injected { EntryKind::Notice } else { EntryKind::Text };
        entries.push(Entry::new(role.clone(), kind, content));
    }
    for call in calls.iter().filter_map(Value::as_object) {
        let function = object_field(call, "function").unwrap_or(call);
        let input = function.get("arguments").map(json_fields::unpack_json);
        entries.push(entries::tool_call(
            text_field(function, "name"),
            text_field(call, "id"),
            input.as_ref(),
        ));
    }
    entries
}
