//! Reads Mistral Vibe's sessions: one folder each, with a log of messages and a metadata file.
//!
//! Before version 2.0, both were one document, `session_<time>_<id>.json`. Messages have no times; usage is that of the
//! whole session.

#[cfg(test)]
mod tests;

use std::path::Path;

use super::entries;
use super::fields::{self, list, object, text};
use super::head::Head;
use super::json_lines::each_object;
use super::listing::Listing;
use super::record;
use super::telling::Telling;
use crate::durable::FileError;
use crate::entry::{Entry, Kind, Role, Usage};
use crate::format::tree::Tree;
use crate::format::{Emit, FormatError, Reader};
use crate::json::{Object, Value};
use crate::problem::Problem;
use crate::session::Session;
use steno_vault::{Bundle, Source};

/// The agent's name.
pub const AGENT: &str = "vibe";

/// Finds and reads its sessions.
pub const READER: Reader = Reader { agent: AGENT, find, read };

/// The log of messages.
const MESSAGES: &str = "messages.jsonl";

/// The file with a session's metadata.
const META: &str = "meta.json";

fn find(tree: &Tree) -> Result<Vec<Bundle>, FileError> {
    let mut bundles = Vec::new();
    for file in tree.files() {
        if file.ends_with(MESSAGES) {
            let bundle = session_bundle(file);
            if is_log(&Head::of(&bundle.sources[0])?, bundle.get(META).is_some()) {
                bundles.push(bundle);
            }
        } else if file.extension().is_some_and(|extension| extension == "json") {
            let bundle = Bundle::file(file);
            if recognises_document(&Head::of_document(&bundle.sources[0])?) {
                bundles.push(bundle);
            }
        }
    }
    Ok(bundles)
}

/// Bundles a log with its metadata file.
fn session_bundle(log: &Path) -> Bundle {
    let mut bundle = Bundle::file(log);
    let meta = log.with_file_name(META);
    if meta.is_file() {
        bundle.sources.push(Source::on_disk(META, &meta));
    }
    bundle
}

fn is_log(head: &Head, has_metadata: bool) -> bool {
    let fields = head.fields();
    let role = text(&fields, "role").unwrap_or_default();
    matches!(role, "user" | "assistant" | "tool")
        && fields.contains_key("content")
        && (has_metadata || fields.contains_key("message_id"))
}

/// Whether a file is a session of a version before 2.0.
pub(crate) fn recognises_document(head: &Head) -> bool {
    let meta = head.field("metadata");
    head.field("messages").is_some()
        && meta
            .is_some_and(|meta| meta.contains("\"session_id\"") && meta.contains("\"start_time\""))
}

fn read(bundle: &Bundle, emit: Emit<'_>) -> Result<Session, FormatError> {
    let Some(log) = bundle.sources.iter().find(|source| source.name() != META) else {
        return Err(FormatError::Invalid(Problem::of(&bundle.root, "no messages in it")));
    };
    if log.name().ends_with(".json") {
        return read_document(log, emit);
    }
    let meta = bundle.get(META).map(record::document).transpose()?;
    let folder = log.path().parent().and_then(Path::file_name).map(|name| name.to_string_lossy());
    let meta_id = meta.as_ref().and_then(|meta| text(meta.as_ref().ok()?, "session_id"));
    let id = meta_id.map(str::to_owned).or(folder.map(|folder| folder.into_owned()));
    let mut emitter = Telling::new(AGENT, &id.unwrap_or_default(), emit);
    match &meta {
        Some(Ok(meta)) => describe(&mut emitter, meta),
        Some(Err(problem)) => emitter.problem(problem.clone()),
        None => {}
    }
    each_object(log, |message, line| match message {
        Ok(message) => tell(&mut emitter, &message, line),
        Err(problem) => emitter.problem(problem),
    })?;
    Ok(emitter.session)
}

fn read_document(source: &Source, emit: Emit<'_>) -> Result<Session, FormatError> {
    let mut listing = match Listing::of(source, &["messages"])? {
        Ok(listing) => listing,
        Err(problem) => return Err(FormatError::Invalid(problem)),
    };
    let document = std::mem::take(&mut listing.fields);
    let none = Object::new();
    let meta = object(&document, "metadata").unwrap_or(&none);
    let id = text(meta, "session_id").unwrap_or(record::stem(source));
    let mut emitter = Telling::new(AGENT, id, emit);
    describe(&mut emitter, meta);
    let mut number = 0;
    listing.each(|message| {
        number += 1;
        let reason = match message {
            Ok(Value::Object(message)) => return tell(&mut emitter, &message, number),
            Ok(_) => "not a JSON object".to_owned(),
            Err(reason) => reason,
        };
        emitter.problem(Problem::of(source.path(), format!("message {number}: {reason}")));
    })?;
    Ok(emitter.session)
}

/// Fills in the session from its metadata.
fn describe(emitter: &mut Telling<'_>, meta: &Object) {
    emitter.time(fields::time(meta, "start_time"));
    emitter.time(fields::time(meta, "end_time"));
    let session = &mut emitter.session;
    let owned = |object: &Object, name: &str| {
        text(object, name).filter(|text| !text.is_empty()).map(str::to_owned)
    };
    session.title = owned(meta, "title");
    session.branch = owned(meta, "git_branch");
    session.parent = owned(meta, "parent_session_id");
    let environment = object(meta, "environment");
    session.project = environment.and_then(|environment| owned(environment, "working_directory"));
    let config = object(meta, "config").or(object(meta, "agent_config"));
    session.models.extend(config.and_then(|config| owned(config, "active_model")));
    if let Some(stats) = object(meta, "stats") {
        session.totals.usage = Usage {
            input: fields::count(stats, "session_prompt_tokens"),
            output: fields::count(stats, "session_completion_tokens"),
            ..Usage::default()
        };
        let cost = stats.get("session_cost").and_then(Value::as_f64);
        session.totals.cost = cost.filter(|cost| *cost > 0.0);
    }
}

fn tell(emitter: &mut Telling<'_>, message: &Object, line: u64) {
    let id = text(message, "message_id").map_or_else(|| format!("line {line}"), str::to_owned);
    let role = Role::from(text(message, "role").unwrap_or("assistant"));
    let model = emitter.session.models.first().cloned().filter(|_| role == Role::Assistant);
    for mut entry in message_entries(message, &role) {
        entry.message_id = Some(id.clone());
        entry.model.clone_from(&model);
        emitter.entry(entry);
    }
}

fn message_entries(message: &Object, role: &Role) -> Vec<Entry> {
    let content = message.get("content").map(record::said).unwrap_or_default();
    if *role == Role::Tool {
        let mut result = entries::tool_result(text(message, "tool_call_id"), content, false);
        result.tool_name = text(message, "name").map(str::to_owned);
        return vec![result];
    }
    let mut entries = Vec::new();
    let thought = message.get("reasoning_content").map(record::said).unwrap_or_default();
    if !thought.is_empty() {
        entries.push(Entry::new(Role::Assistant, Kind::Thinking, thought));
    }
    let calls = list(message, "tool_calls");
    if !content.is_empty() || (calls.is_empty() && entries.is_empty()) {
        // Vibe also injects messages with the role `user`.
        let is_injected = message.get("injected").and_then(Value::as_bool) == Some(true);
        let kind = if is_injected { Kind::Notice } else { Kind::Text };
        entries.push(Entry::new(role.clone(), kind, content));
    }
    for call in calls.iter().filter_map(Value::as_object) {
        let function = object(call, "function").unwrap_or(call);
        let input = function.get("arguments").map(fields::unpacked);
        entries.push(entries::tool_call(text(function, "name"), text(call, "id"), input.as_ref()));
    }
    entries
}
