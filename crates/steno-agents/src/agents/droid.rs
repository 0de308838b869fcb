//! Reads sessions of Factory's droid: a start record, then one message per line. Usage is in a settings file beside it.
//!
//! Also reads the output of `droid exec --output-format stream-json`, which is another format.

mod stream;

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use crate::agent::Agent;
use crate::agent::nearby::NearbyRules;
use crate::agent::record_format::{ChatMessages, RecordFormat};
use crate::agent::resume::{FolderRule, ResumeRule};
use crate::decoding::file_head::FileHead;
use crate::decoding::json_lines::for_each_object;
use crate::decoding::json_records::{self, blocks};
use crate::decoding::session_emitter::SessionEmitter;
use crate::decoding::{entries, json_fields};
use crate::reader::file_tree::FileTree;
use crate::reader::{FormatError, FormatReader, ItemSink};
use steno_model::durable::FileError;
use steno_model::entry::{Entry, EntryKind, Role, Usage};
use steno_model::json::Object;
use steno_model::problem::Problem;
use steno_model::session::Session;
use steno_vault::{SessionBundle, SessionFile};

/// The agent's name.
pub const AGENT_NAME: &str = "droid";

/// Finds and reads its sessions.
pub const READER: FormatReader =
    FormatReader { agent: AGENT_NAME, find: find_sessions, read: read_session };

/// What is known about Factory droid.
pub(crate) const AGENT: Agent = Agent {
    locations: |user| vec![user.home.join(".factory/sessions")],
    nearby: NearbyRules { candidates: session_of_settings, ..NearbyRules::NONE },
    lines: Some(RecordFormat::by_head(recognises).with_messages(ChatMessages::Typed)),
    resume: Some(ResumeRule {
        program: "droid",
        arguments: &["--resume", "{id}"],
        folder: FolderRule::Own,
    }),
    ..Agent::new("Factory droid", &READER)
};

/// The session file that a file of settings belongs to.
fn session_of_settings(file: &Path, _root: &Path) -> Vec<PathBuf> {
    let name = file.file_name().and_then(|name| name.to_str()?.strip_suffix(".settings.json"));
    let session = name.map(|stem| file.with_file_name(format!("{stem}.jsonl")));
    session.into_iter().filter(|path| path.is_file()).collect()
}

/// The suffix of settings files.
const SETTINGS_SUFFIX: &str = ".settings.json";

fn find_sessions(tree: &FileTree) -> Result<Vec<SessionBundle>, FileError> {
    let mut bundles = json_records::find_candidates(tree, recognises)?;
    for bundle in &mut bundles {
        let settings = bundle.root.with_extension(&SETTINGS_SUFFIX[1..]);
        if settings.is_file() {
            let name = settings.file_name().unwrap_or_default().to_string_lossy().into_owned();
            bundle.files.push(SessionFile::on_disk(name, settings));
        }
    }
    Ok(bundles)
}

/// Whether a file starts as a session does, or as what `droid exec` prints.
pub fn recognises(head: &FileHead) -> bool {
    is_stored_session(head) || stream::is_stream(head)
}

fn is_stored_session(head: &FileHead) -> bool {
    json_fields::text_field(&head.scalar_fields(), "type") == Some("session_start")
}

fn read_session(bundle: &SessionBundle, emit: ItemSink<'_>) -> Result<Session, FormatError> {
    let is_settings = |source: &&SessionFile| source.name().ends_with(SETTINGS_SUFFIX);
    let Some(source) = bundle.files.iter().find(|source| !is_settings(source)) else {
        return Err(FormatError::Invalid(Problem::for_file(&bundle.root, "no session in it")));
    };
    let head = FileHead::read(source)?;
    if !is_stored_session(&head) && stream::is_stream(&head) {
        return stream::read_stream(source, emit);
    }
    let fields = head.scalar_fields();
    let record_id = json_fields::text_field(&fields, "id").filter(|_| is_stored_session(&head));
    let mut emitter = SessionEmitter::new(
        AGENT_NAME,
        record_id.unwrap_or(json_records::session_stem(source)),
        emit,
    );
    for_each_object(source, |object, line| match object {
        Ok(object) => decode_record(&mut emitter, object, line),
        Err(problem) => emitter.emit_problem(problem),
    })?;
    if let Some(settings) = bundle.files.iter().find(is_settings) {
        match json_records::read_object(settings)? {
            Ok(settings) => apply_settings(&mut emitter.session, &settings),
            Err(problem) => emitter.emit_problem(problem),
        }
    }
    Ok(emitter.session)
}

fn decode_record(emitter: &mut SessionEmitter<'_>, object: Object, line: u64) {
    let at = json_fields::time_field(&object, "timestamp");
    emitter.note_time(at);
    let id = json_fields::text_field(&object, "id")
        .map_or_else(|| format!("line {line}"), str::to_owned);
    let parent = json_fields::text_field(&object, "parentId").map(str::to_owned);
    let entries = match (
        json_fields::text_field(&object, "type"),
        json_fields::object_field(&object, "message"),
    ) {
        (Some("session_start"), _) => return apply_start(&mut emitter.session, &object),
        (Some("message"), Some(fields)) => decode_message(fields),
        (Some("compaction_state"), _) => compaction_entries(object),
        _ => vec![entries::unknown_entry(object)],
    };
    for mut entry in entries {
        entry.created_at = at;
        entry.message_id = Some(id.clone());
        entry.parent_id.clone_from(&parent);
        emitter.emit_entry(entry);
    }
}

fn apply_start(session: &mut Session, object: &Object) {
    let title = json_fields::text_field(object, "title")
        .or_else(|| json_fields::text_field(object, "sessionTitle"));
    session.title = title.map(str::to_owned);
    session.project = json_fields::text_field(object, "cwd").map(str::to_owned);
}

fn decode_message(message: &Object) -> Vec<Entry> {
    let role = Role::from(json_fields::text_field(message, "role").unwrap_or("user"));
    let mut entries = blocks::content_entries(message, &role);
    if role == Role::Assistant && entries.is_empty() {
        entries.push(Entry::new(Role::Assistant, EntryKind::Text, ""));
    }
    let is_user_only = json_fields::text_field(message, "visibility") == Some("user_only");
    let model = json_fields::text_field(message, "model").filter(|_| role == Role::Assistant);
    for entry in &mut entries {
        let is_reminder = role == Role::User && is_system_reminder(&entry.content);
        if entry.kind == EntryKind::Text && (is_user_only || is_reminder) {
            entry.kind = EntryKind::Notice;
        }
        entry.model = model.map(str::to_owned);
    }
    entries
}

/// Whether droid inserted a text before the prompt.
fn is_system_reminder(text: &str) -> bool {
    text.trim_start().starts_with("<system-reminder>")
}

fn compaction_entries(mut object: Object) -> Vec<Entry> {
    let summary = object.shift_remove("summary").map(|summary| json_records::value_text(&summary));
    let mut boundary = Entry::new(Role::System, EntryKind::Compaction, "");
    boundary.metadata = Some(object);
    vec![boundary, Entry::new(Role::User, EntryKind::Notice, summary.unwrap_or_default())]
}

/// Fills in the model and the usage of the whole session from the settings.
fn apply_settings(session: &mut Session, settings: &Object) {
    session.models.extend(json_fields::text_field(settings, "model").map(str::to_owned));
    let Some(tokens) = json_fields::object_field(settings, "tokenUsage") else { return };
    let count = |field| json_fields::count_field(tokens, field);
    session.totals.usage = Usage {
        input: count("inputTokens"),
        cache_read: count("cacheReadTokens"),
        cache_write: count("cacheCreationTokens"),
        output: count("outputTokens"),
        reasoning: count("thinkingTokens"),
        ..Usage::default()
    };
}
