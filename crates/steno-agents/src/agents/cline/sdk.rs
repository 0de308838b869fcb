//! Reads sessions of Cline's newer runtime: `<id>/<id>.messages.json`, beside a manifest and subagents' messages.
//!
//! Text that a person typed is in a tag. Prompt tokens include cache reads and writes.

use std::path::Path;

use super::AGENT_NAME;
use crate::decoding::file_head::FileHead;
use crate::decoding::json_fields::{self, text_field};
use crate::decoding::json_records::{self, blocks};
use crate::decoding::record_list::RecordList;
use crate::decoding::session_emitter::SessionEmitter;
use crate::decoding::usage;
use crate::reader::{FormatError, ItemSink, file_tree};
use steno_model::durable::FileError;
use steno_model::entry::{Entry, EntryKind, PRIMARY_SOURCE, Role};
use steno_model::json::{Object, Value};
use steno_model::problem::Problem;
use steno_model::session::Session;
use steno_vault::{SessionBundle, SessionFile};

/// The suffix of files of messages.
const MESSAGES_SUFFIX: &str = ".messages.json";

/// The tags around text that a person typed.
const USER_TEXT_TAGS: [&str; 2] = ["<user_input", "<user_command"];

/// Whether `name` is that of a file of messages.
pub(super) fn is_messages_file(name: &str) -> bool {
    name.ends_with(MESSAGES_SUFFIX)
}

/// Bundles the session in `folder`. None if its files are not Cline's.
pub(super) fn bundle_session(folder: &Path) -> Result<Option<SessionBundle>, FileError> {
    let Some(id) = folder.file_name().and_then(|name| name.to_str()) else { return Ok(None) };
    let main = main_file_name(id);
    if !folder.join(&main).is_file() {
        return Ok(None);
    }
    let source = SessionFile::on_disk(main.as_str(), folder.join(&main));
    if !is_messages_document(&FileHead::read_document(&source)?) {
        return Ok(None);
    }
    let metadata = [format!("{id}.json"), format!("{id}.compaction.json")];
    let mut sources = vec![source];
    for file in
        file_tree::list_file_paths(folder)?.into_iter().filter(|file| file.parent() == Some(folder))
    {
        let Some(name) = file.file_name().and_then(|name| name.to_str()) else { continue };
        if name != main && (is_messages_file(name) || metadata.iter().any(|known| known == name)) {
            sources.push(SessionFile::on_disk(name, &file));
        }
    }
    Ok(Some(SessionBundle::new(folder, sources)))
}

/// The name of a session's main file of messages.
pub(super) fn main_file_name(id: &str) -> String {
    format!("{id}{MESSAGES_SUFFIX}")
}

/// Whether a bundle is a session of the newer runtime.
pub(super) fn is_sdk_session(bundle: &SessionBundle) -> bool {
    bundle.files.iter().any(|source| source.name().ends_with(MESSAGES_SUFFIX))
}

fn is_messages_document(head: &FileHead) -> bool {
    ["agent", "sessionId", "messages"].iter().all(|field| head.field_start(field).is_some())
}

/// Reads the session's own messages, then its subagents' messages.
pub(super) fn read_sdk_session(
    bundle: &SessionBundle,
    emit: ItemSink<'_>,
) -> Result<Session, FormatError> {
    let id = bundle.root.file_name().unwrap_or(bundle.root.as_os_str()).to_string_lossy();
    let mut emitter = SessionEmitter::new(AGENT_NAME, &id, emit);
    let main = main_file_name(&id);
    let (own, others): (Vec<_>, Vec<_>) = bundle
        .files
        .iter()
        .filter(|source| source.name().ends_with(MESSAGES_SUFFIX))
        .partition(|source| source.name() == main);
    for source in own {
        decode_file(source, &mut emitter)?;
    }
    emitter.session.subagent_files = others.len() as u64;
    for source in others {
        let agent = source.name().strip_suffix(MESSAGES_SUFFIX).unwrap_or_default();
        emitter.source = format!("subagent:{agent}");
        decode_file(source, &mut emitter)?;
    }
    emitter.source = PRIMARY_SOURCE.to_owned();
    if let Some(manifest) = bundle.file_named(&format!("{id}.json")) {
        match json_records::read_object(manifest)? {
            Ok(manifest) => apply_manifest(&mut emitter, &manifest),
            Err(problem) => emitter.emit_problem(problem),
        }
    }
    Ok(emitter.session)
}

/// Fills in the session from the manifest.
fn apply_manifest(emitter: &mut SessionEmitter<'_>, manifest: &Object) {
    emitter.note_time(json_fields::time_field(manifest, "started_at"));
    emitter.note_time(json_fields::time_field(manifest, "ended_at"));
    let session = &mut emitter.session;
    session.project =
        text_field(manifest, "cwd").or(text_field(manifest, "workspace_root")).map(str::to_owned);
    let title =
        json_fields::object_field(manifest, "metadata").and_then(|it| text_field(it, "title"));
    session.title = title.map(str::to_owned);
}

fn decode_file(source: &SessionFile, emitter: &mut SessionEmitter<'_>) -> Result<(), FormatError> {
    let listing = match RecordList::open(source, &["messages"])? {
        Ok(listing) => listing,
        Err(problem) => {
            emitter.emit_problem(problem);
            return Ok(());
        }
    };
    let (mut number, mut is_tagged) = (0, None);
    listing.for_each_record(|message| {
        number += 1;
        let reason = match message {
            Ok(Value::Object(message)) => {
                let entries = decode_message(&message, &mut is_tagged);
                return emit_message(emitter, &message, entries);
            }
            Ok(_) => "not a JSON object".to_owned(),
            Err(reason) => reason,
        };
        emitter
            .emit_problem(Problem::for_file(source.path(), format!("message {number}: {reason}")));
    })?;
    Ok(())
}

/// Decodes a message into entries. The first user message shows whether typed text is in tags.
fn decode_message(message: &Object, is_tagged: &mut Option<bool>) -> Vec<Entry> {
    let role = Role::from(text_field(message, "role").unwrap_or("user"));
    let mut entries = blocks::content_entries(message, &role);
    if role == Role::Assistant {
        if entries.is_empty() {
            entries.push(Entry::new(Role::Assistant, EntryKind::Text, ""));
        }
        return entries;
    }
    let has_tag = |entry: &Entry| USER_TEXT_TAGS.iter().any(|tag| entry.content.contains(tag));
    let is_text = |entry: &&Entry| entry.kind == EntryKind::Text;
    let has_typed = entries.iter().filter(is_text).any(has_tag);
    let is_tagged = *is_tagged.get_or_insert(has_typed);
    let has_result = entries.iter().any(|entry| entry.kind == EntryKind::ToolResult);
    let is_prompt = if is_tagged { has_typed } else { !has_result };
    for entry in entries.iter_mut().filter(|entry| entry.kind == EntryKind::Text && !is_prompt) {
        entry.kind = EntryKind::Notice;
    }
    entries
}

fn emit_message(emitter: &mut SessionEmitter<'_>, message: &Object, mut entries: Vec<Entry>) {
    let at = json_fields::time_field(message, "ts");
    emitter.note_time(at);
    if let Some(metrics) = json_fields::object_field(message, "metrics") {
        if let Some(first) = entries.iter_mut().find(|entry| entry.role == Role::Assistant) {
            first.usage = Some(usage::inclusive_usage(metrics));
        }
        if let Some(cost) = metrics.get("cost").and_then(Value::as_f64) {
            *emitter.session.totals.cost.get_or_insert(0.0) += cost;
        }
    }
    let model = json_fields::object_field(message, "modelInfo").and_then(|it| text_field(it, "id"));
    for mut entry in entries {
        entry.created_at = at;
        entry.message_id = text_field(message, "id").map(str::to_owned);
        if entry.role == Role::Assistant {
            entry.model = model.map(str::to_owned);
        }
        emitter.emit_entry(entry);
    }
}
