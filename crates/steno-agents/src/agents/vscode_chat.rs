//! Chats of VS Code, including Copilot: a JSON document or, since 1.109, a log of changes to one.
//!
//! Before March 2025 the documents were in the editor's database. Those of Void still are. An exported chat is a
//! document without a session id. A request has the prompt, the answer and its tool calls.

mod decode;
mod mutation;
mod replay;
mod stored;
mod void_threads;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::PathBuf;

use self::replay::ChatLogReplay;
use crate::agent::Agent;
use crate::agent::nearby::NearbyRules;
use crate::agent::record_format::RecordFormat;
use crate::agent::user_folders::UserFolders;
use crate::decoding::file_head::FileHead;
use crate::decoding::record_list::RecordList;
use crate::decoding::session_emitter::SessionEmitter;
use crate::decoding::{json_fields, json_records};
use crate::reader::file_tree::FileTree;
use crate::reader::{FormatError, FormatReader, ItemSink, ReaderItem};
use steno_model::durable::FileError;
use steno_model::json::{Object, Value};
use steno_model::problem::Problem;
use steno_model::session::Session;
use steno_vault::{DatabaseSchema, SessionBundle, SessionFile, sqlite};

/// The agent's name.
pub const AGENT_NAME: &str = "vscode-chat";

/// Finds and reads chats.
pub const READER: FormatReader =
    FormatReader { agent: AGENT_NAME, find: find_sessions, read: read_session };

/// What is known about the chats of VS Code and editors built from it.
pub(crate) const AGENT: Agent = Agent {
    locations: session_locations,
    nearby: NearbyRules {
        shared_folders: &["chatSessions"],
        describes_folder: |file| file.ends_with(WORKSPACE_FILE),
        ..NearbyRules::NONE
    },
    lines: Some(RecordFormat::by_head(recognises)),
    document: Some(RecordFormat::by_head(recognises_document)),
    database_schemas: &SCHEMAS,
    ..Agent::new("Chats of VS Code and editors built from it", &READER)
};

fn session_locations(user: &UserFolders<'_>) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for editor in user.editor_folders() {
        paths.push(editor.join("workspaceStorage"));
        let global = editor.join("globalStorage");
        for name in ["state.vscdb", "emptyWindowChatSessions", "transferredChatSessions"] {
            paths.push(global.join(name));
        }
    }
    paths
}

/// The schemas of its databases.
const SCHEMAS: [&DatabaseSchema; 2] = [&stored::SCHEMA, &void_threads::SCHEMA];

/// The file that names the workspace folder.
const WORKSPACE_FILE: &str = "workspace.json";

/// The field of a chat with its requests.
const REQUESTS_FIELD: &str = "requests";

/// Other fields of a chat to read.
const READ_FIELDS: [&str; 4] = ["sessionId", "creationDate", "lastMessageDate", "customTitle"];

fn find_sessions(tree: &FileTree) -> Result<Vec<SessionBundle>, FileError> {
    let mut known: HashMap<_, usize> = HashMap::new();
    let mut bundles: Vec<SessionBundle> = Vec::new();
    for chat in json_records::find_candidates(tree, recognises)? {
        // The log continues the document of the same name.
        let at = *known.entry(chat.root.with_extension("")).or_insert(bundles.len());
        match bundles.get_mut(at) {
            Some(bundle) => json_records::put_log_first(bundle, chat),
            None => bundles.push(chat),
        }
    }
    for bundle in &mut bundles {
        let workspace = bundle.root.ancestors().nth(2).map(|folder| folder.join(WORKSPACE_FILE));
        let workspace = workspace.filter(|workspace| workspace.is_file());
        bundle.files.extend(workspace.map(|path| SessionFile::on_disk(WORKSPACE_FILE, path)));
    }
    for file in tree.files().iter().filter(|file| sqlite::is_sqlite_file(file)) {
        bundles.extend(stored::find_chats(file));
    }
    Ok(bundles)
}

/// Whether a file starts as a chat does: as a document or as a log of changes.
pub fn recognises(head: &FileHead) -> bool {
    recognises_document(head) || is_chat_log(head)
}

/// Whether a file starts as a chat that is one document.
pub fn recognises_document(head: &FileHead) -> bool {
    let fields = head.scalar_fields();
    fields.contains_key("requests")
        && (fields.contains_key("responderUsername") || fields.contains_key("initialLocation"))
}

fn is_chat_log(head: &FileHead) -> bool {
    let fields = head.scalar_fields();
    let first = fields.get("kind").and_then(Value::as_u64) == Some(0) && fields.contains_key("v");
    first
        && (head.contains_json(r#""responderUsername":"#)
            || head.contains_json(r#""initialLocation":"#))
}

fn read_session(bundle: &SessionBundle, emit: ItemSink<'_>) -> Result<Session, FormatError> {
    if sqlite::holds_sqlite_file(bundle)? {
        return stored::read_stored_chat(bundle, emit);
    }
    let mut chats: Vec<_> =
        bundle.files.iter().filter(|source| source.name() != WORKSPACE_FILE).collect();
    chats.sort_by_key(|source| !source.name().ends_with(".jsonl"));
    let Some(chat) = chats.first() else {
        return Err(FormatError::Invalid(Problem::for_file(&bundle.root, "no chat")));
    };
    let mut requests = open_requests(chat, emit)?;
    let chat_fields = requests.as_mut().map(ChatRequests::take_fields).unwrap_or_default();
    let id = json_fields::text_field(&chat_fields, "sessionId")
        .unwrap_or(json_records::session_stem(chat));
    let mut emitter = SessionEmitter::new(AGENT_NAME, id, emit);
    describe_chat(&mut emitter, &chat_fields, bundle)?;
    let bad = |reason: &str| Problem::for_file(chat.path(), format!("request: {reason}"));
    let mut emit_request = |request: Result<Value, Problem>| match request {
        Ok(Value::Object(request)) => decode::emit_request(&mut emitter, &request),
        Ok(_) => emitter.emit_problem(bad("not a JSON object")),
        Err(problem) => emitter.emit_problem(problem),
    };
    match requests {
        Some(ChatRequests::Listed(document)) => {
            document
                .for_each_record(|request| emit_request(request.map_err(|reason| bad(&reason))))?;
        }
        Some(ChatRequests::Replayed(replay)) => replay.for_each_request(emit_request)?,
        None => {}
    }
    Ok(emitter.session)
}

/// The requests of a chat, still unread.
enum ChatRequests<'s> {
    Listed(RecordList<'s>),
    Replayed(ChatLogReplay<'s>),
}

impl ChatRequests<'_> {
    /// Takes the fields beside the requests.
    fn take_fields(&mut self) -> Object {
        match self {
            Self::Listed(document) => std::mem::take(&mut document.fields),
            Self::Replayed(replay) => std::mem::take(&mut replay.fields),
        }
    }
}

/// Opens the requests of a file. Errors are emitted as problems.
fn open_requests<'s>(
    chat: &'s SessionFile,
    emit: ItemSink<'_>,
) -> Result<Option<ChatRequests<'s>>, FileError> {
    if is_chat_log(&FileHead::read(chat)?) {
        return Ok(Some(ChatRequests::Replayed(ChatLogReplay::read_log(chat, emit)?)));
    }
    match RecordList::open(chat, &[REQUESTS_FIELD])? {
        Ok(document) => Ok(Some(ChatRequests::Listed(document))),
        Err(problem) => {
            emit(ReaderItem::Problem(problem));
            Ok(None)
        }
    }
}

fn describe_chat(
    emitter: &mut SessionEmitter<'_>,
    state: &Object,
    bundle: &SessionBundle,
) -> Result<(), FileError> {
    emitter.note_time(json_fields::time_field(state, "creationDate"));
    emitter.note_time(json_fields::time_field(state, "lastMessageDate"));
    emitter.session.title = json_fields::text_field(state, "customTitle").map(str::to_owned);
    describe_project(emitter, bundle)
}

/// Sets the project to the folder in `workspace.json`.
fn describe_project(
    emitter: &mut SessionEmitter<'_>,
    bundle: &SessionBundle,
) -> Result<(), FileError> {
    let Some(workspace) = bundle.file_named(WORKSPACE_FILE) else { return Ok(()) };
    match json_records::read_object(workspace)? {
        Ok(workspace) => {
            let uri = json_fields::text_field(&workspace, "folder");
            let uri = uri.or_else(|| json_fields::text_field(&workspace, "configuration"));
            emitter.session.project =
                uri.map(|uri| uri.strip_prefix("file://").unwrap_or(uri).to_owned());
        }
        Err(problem) => emitter.emit_problem(problem),
    }
    Ok(())
}
