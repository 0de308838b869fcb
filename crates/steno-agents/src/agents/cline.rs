//! Reads the tasks of Cline and Roo Code, one folder each.
//!
//! `ui_messages.json` is what the user saw: prompts, answers, tools, usage and times. If it is missing,
//! `api_conversation_history.json`, which is what the model saw, is read instead. Both are JSON arrays that Cline
//! rewrites as a whole. Newer versions have another format, which `sdk` reads.

mod api;
mod sdk;
mod tools;
mod ui;

use std::path::{Path, PathBuf};

use crate::agent::Agent;
use crate::agent::nearby::NearbyRules;
use crate::agent::user_folders::UserFolders;
use crate::decoding::document;
use crate::decoding::entry_emitter::EntryEmitter;
use crate::decoding::file_head::FileHead;
use crate::decoding::json_fields::{list_items, owned_text};
use crate::decoding::record_list::RecordList;
use crate::reader::file_tree::FileTree;
use crate::reader::{FormatError, FormatReader, ItemSink};
use steno_model::durable::FileError;
use steno_model::entry::EntryError;
use steno_model::json::{Object, Value};
use steno_model::problem::Problem;
use steno_model::session::{Session, SessionId};
use steno_vault::{SessionBundle, SessionFile};

/// The agent's name.
pub const AGENT_NAME: &str = "cline";

/// Finds and reads its sessions.
pub const READER: FormatReader =
    FormatReader { agent: AGENT_NAME, find: find_sessions, read: read_session };

/// What is known about Cline, and Roo Code, which is built from it.
pub(crate) const AGENT: Agent = Agent {
    locations: session_locations,
    nearby: NearbyRules {
        session_folder_files: &[UI_MESSAGES_FILE, API_HISTORY_FILE],
        session_folder_file: Some(sdk::main_file_name),
        ..NearbyRules::NONE
    },
    ..Agent::new("Cline and Roo Code", &READER)
};

fn session_locations(user: &UserFolders<'_>) -> Vec<PathBuf> {
    let data = user.path_variable("CLINE_DATA_DIR");
    let data = data.unwrap_or_else(|| user.folder_or_default("CLINE_DIR", ".cline").join("data"));
    let sessions = user.path_variable("CLINE_SESSION_DATA_DIR");
    let mut paths = vec![data.join("tasks"), sessions.unwrap_or_else(|| data.join("sessions"))];
    for editor in user.editor_folders() {
        let global = editor.join("globalStorage");
        paths.push(global.join("saoudrizwan.claude-dev/tasks"));
        paths.push(global.join("rooveterinaryinc.roo-cline/tasks"));
    }
    paths
}

const UI_MESSAGES_FILE: &str = "ui_messages.json";
const API_HISTORY_FILE: &str = "api_conversation_history.json";

/// Optional files with metadata of the task.
const TASK_METADATA_FILE: &str = "task_metadata.json";
const HISTORY_ITEM_FILE: &str = "history_item.json";

fn find_sessions(tree: &FileTree) -> Result<Vec<SessionBundle>, FileError> {
    if !tree.is_folder() {
        let path = tree.root();
        let name = path.file_name().unwrap_or_default();
        let is_ours = name == UI_MESSAGES_FILE || name == API_HISTORY_FILE;
        let Some(folder) = path.parent() else { return Ok(Vec::new()) };
        let task = if is_ours { bundle_task(folder)? } else { None };
        let session =
            sdk::bundle_session(folder)?.filter(|session| session.files[0].path() == path);
        return Ok(task.into_iter().chain(session).collect());
    }
    let mut bundles = Vec::new();
    let is_mark = |name: &str| {
        name == UI_MESSAGES_FILE || name == API_HISTORY_FILE || sdk::is_messages_file(name)
    };
    for folder in tree.folders_containing(is_mark) {
        bundles.extend(bundle_task(folder)?);
        bundles.extend(sdk::bundle_session(folder)?);
    }
    Ok(bundles)
}

/// Bundles the task in `folder`. None if its files are not Cline's.
fn bundle_task(folder: &Path) -> Result<Option<SessionBundle>, FileError> {
    let mut sources = Vec::new();
    for name in [UI_MESSAGES_FILE, API_HISTORY_FILE] {
        let path = folder.join(name);
        if path.is_file() {
            let source = SessionFile::on_disk(name, path);
            if is_task_file(name, &FileHead::read_document(&source)?) {
                sources.push(source);
            }
        }
    }
    if sources.is_empty() {
        return Ok(None);
    }
    let metadata = [TASK_METADATA_FILE, HISTORY_ITEM_FILE].map(|name| (name, folder.join(name)));
    let metadata = metadata.into_iter().filter(|(_, path)| path.is_file());
    sources.extend(metadata.map(|(name, path)| SessionFile::on_disk(name, path)));
    Ok(Some(SessionBundle::new(folder, sources)))
}

fn is_task_file(name: &str, head: &FileHead) -> bool {
    let Some(item) = head.first_item() else { return false };
    match name {
        UI_MESSAGES_FILE => item.field_start("ts").is_some() && item.field_start("type").is_some(),
        _ => item.field_start("role").is_some(),
    }
}

fn read_session(bundle: &SessionBundle, emit: ItemSink<'_>) -> Result<Session, FormatError> {
    if sdk::is_sdk_session(bundle) {
        return sdk::read_sdk_session(bundle, emit);
    }
    let native_id = bundle.root.file_name().unwrap_or(bundle.root.as_os_str());
    let native_id = native_id.to_string_lossy().into_owned();
    let mut output = EntryEmitter::new(AGENT_NAME, &native_id, emit);
    let mut session = Session::new(SessionId::for_native(AGENT_NAME, &native_id), AGENT_NAME);
    session.native_id = Some(native_id);
    if let Some(source) = bundle.file_named(UI_MESSAGES_FILE) {
        let mut screen = ui::ClineUiDecoder::new(&mut output);
        for_each_message(source, |index, message| match message {
            Ok(message) => screen.decode_message(index, &message),
            Err(problem) => screen.output.emit_problem(problem),
        })?;
        session.totals.cost = screen.finish();
    } else if let Some(source) = bundle.file_named(API_HISTORY_FILE) {
        for_each_message(source, |index, message| match message {
            Ok(message) => api::decode_message(index, &message, &mut output),
            Err(problem) => output.emit_problem(problem),
        })?;
    } else {
        return Err(FormatError::Invalid(Problem::for_file(&bundle.root, "no messages in it")));
    }
    apply_task_files(bundle, &mut session, &mut output);
    Ok(session)
}

/// Passes each object of the array in `source` to `take` with its index. Any other item is a problem.
fn for_each_message(
    source: &SessionFile,
    mut take: impl FnMut(usize, Result<Object, Problem>),
) -> Result<(), FormatError> {
    let listing = RecordList::open(source, &[])?.map_err(FormatError::Invalid)?;
    let mut index = 0;
    listing.for_each_record(|item| {
        let object = match item {
            Ok(Value::Object(object)) => Ok(object),
            Ok(_) => Err(EntryError::NotAnObject.to_string()),
            Err(reason) => Err(reason),
        };
        let bad = |why| Problem::for_file(source.path(), format!("message {}: {why}", index + 1));
        take(index, object.map_err(bad));
        index += 1;
    })?;
    Ok(())
}

/// Fills in the session from the metadata files. A malformed file is reported as a problem.
fn apply_task_files(bundle: &SessionBundle, session: &mut Session, output: &mut EntryEmitter<'_>) {
    for source in
        [TASK_METADATA_FILE, HISTORY_ITEM_FILE].iter().filter_map(|name| bundle.file_named(name))
    {
        let metadata = match document::parse_document(source) {
            Ok(metadata) => metadata,
            Err(FormatError::Invalid(problem)) => {
                output.emit_problem(problem);
                continue;
            }
            Err(FormatError::File(error)) => {
                output.emit_problem(Problem::for_file(source.path(), error));
                continue;
            }
        };
        for used in list_items(&metadata["model_usage"]) {
            session.models.extend(owned_text(&used["model_id"]));
        }
        let folder = [&metadata["workspace"], &metadata["cwdOnTaskInitialization"]];
        session.project = folder.into_iter().find_map(owned_text).or(session.project.take());
        session.parent = owned_text(&metadata["parentTaskId"]).or(session.parent.take());
    }
}

#[cfg(test)]
mod tests;
