//! Reads Pi's sessions: a header, then one entry per line. Since version 2 the entries form a tree.
//!
//! All branches are read, in file order. Each answer has its cost.

mod decode;

#[cfg(test)]
mod tests;

use crate::agent::Agent;
use crate::agent::record_format::RecordFormat;
use crate::agent::resume::{FolderRule, ResumeRule};
use crate::decoding::file_head::FileHead;
use crate::decoding::json_lines::for_each_object;
use crate::decoding::session_emitter::SessionEmitter;
use crate::decoding::{entries, json_fields, json_records};
use crate::reader::file_tree::FileTree;
use crate::reader::{FormatError, FormatReader, ItemSink};
use steno_model::durable::FileError;
use steno_model::entry::{Entry, EntryKind, Role};
use steno_model::json::Object;
use steno_model::problem::Problem;
use steno_model::session::Session;
use steno_vault::SessionBundle;

/// The agent's name.
pub const AGENT_NAME: &str = "pi";

/// Finds and reads its sessions.
pub const READER: FormatReader =
    FormatReader { agent: AGENT_NAME, find: find_sessions, read: read_session };

/// What is known about Pi.
pub(crate) const AGENT: Agent = Agent {
    locations: |user| {
        let config = user.folder_or_default("PI_CODING_AGENT_DIR", ".pi/agent");
        let usual = [config.join("sessions"), user.home.join(".omp/agent/sessions")];
        usual.into_iter().chain(user.path_variable("PI_SESSIONS_DIR")).collect()
    },
    lines: Some(RecordFormat::by_head(recognises)),
    resume: Some(ResumeRule {
        program: "pi",
        arguments: &["--session", "{file}"],
        folder: FolderRule::Any,
    }),
    ..Agent::new("Pi", &READER)
};

fn find_sessions(tree: &FileTree) -> Result<Vec<SessionBundle>, FileError> {
    json_records::find_candidates(tree, recognises)
}

/// Whether a file starts as a session does.
pub fn recognises(head: &FileHead) -> bool {
    is_header(&head.scalar_fields())
}

fn is_header(fields: &Object) -> bool {
    let is_session = json_fields::text_field(fields, "type") == Some("session");
    is_session
        && ["id", "timestamp", "cwd"]
            .iter()
            .all(|field| json_fields::text_field(fields, field).is_some())
}

fn read_session(bundle: &SessionBundle, emit: ItemSink<'_>) -> Result<Session, FormatError> {
    let Some(source) = bundle.files.first() else {
        return Err(FormatError::Invalid(Problem::for_file(&bundle.root, "no file in it")));
    };
    let fields = FileHead::read(source)?.scalar_fields();
    let header_id = json_fields::text_field(&fields, "id").filter(|_| is_header(&fields));
    let mut emitter = SessionEmitter::new(
        AGENT_NAME,
        header_id.unwrap_or(json_records::session_stem(source)),
        emit,
    );
    for_each_object(source, |object, line| match object {
        Ok(object) => decode_record(&mut emitter, object, line),
        Err(problem) => emitter.emit_problem(problem),
    })?;
    Ok(emitter.session)
}

fn decode_record(emitter: &mut SessionEmitter<'_>, object: Object, line: u64) {
    let at = json_fields::time_field(&object, "timestamp");
    emitter.note_time(at);
    if json_fields::text_field(&object, "type") == Some("session") {
        return apply_header(&mut emitter.session, object);
    }
    // Entries of version 1 have no ids.
    let id = json_fields::text_field(&object, "id")
        .map_or_else(|| format!("line {line}"), str::to_owned);
    let parent = json_fields::text_field(&object, "parentId").map(str::to_owned);
    for mut entry in decode_entries(&mut emitter.session, object) {
        entry.created_at = at;
        entry.message_id = Some(id.clone());
        entry.parent_id.clone_from(&parent);
        emitter.emit_entry(entry);
    }
}

fn apply_header(session: &mut Session, object: Object) {
    session.project = json_fields::text_field(&object, "cwd").map(str::to_owned);
    session.parent = json_fields::text_field(&object, "parentSession").map(str::to_owned);
    if let Some(version) = object.get("version") {
        session.extra.insert("version".to_owned(), version.clone());
    }
}

fn decode_entries(session: &mut Session, object: Object) -> Vec<Entry> {
    let text = |field| json_fields::text_field(&object, field).unwrap_or_default();
    match text("type") {
        "message" => match json_fields::object_field(&object, "message") {
            Some(message) => decode::decode_message(session, message),
            None => vec![entries::unknown_entry(object)],
        },
        "compaction" => {
            let mut boundary = Entry::new(Role::System, EntryKind::Compaction, "");
            boundary.metadata = Some(without_field(&object, "summary"));
            vec![boundary, Entry::new(Role::User, EntryKind::Notice, text("summary"))]
        }
        "branch_summary" => vec![Entry::new(Role::User, EntryKind::Notice, text("summary"))],
        "custom_message" => {
            let content = object.get("content").map(json_records::value_text).unwrap_or_default();
            vec![Entry::new(Role::User, EntryKind::Notice, content)]
        }
        "model_change" => vec![setting_notice(&object, "model", text("modelId"))],
        "thinking_level_change" => vec![setting_notice(&object, "thinking", text("thinkingLevel"))],
        "session_info" => {
            session.title = json_fields::text_field(&object, "name").map(str::to_owned);
            vec![setting_notice(&object, "name", text("name"))]
        }
        "label" => vec![setting_notice(&object, "label", text("label"))],
        _ => vec![entries::unknown_entry(object)],
    }
}

/// The notice of a changed setting.
fn setting_notice(object: &Object, setting: &str, value: &str) -> Entry {
    let mut entry = Entry::new(Role::System, EntryKind::Notice, format!("{setting}: {value}"));
    entry.metadata = Some(object.clone());
    entry
}

fn without_field(object: &Object, field: &str) -> Object {
    let mut rest = object.clone();
    rest.shift_remove(field);
    rest
}
