//! Chats of VS Code, including Copilot: a JSON document or, since 1.109, a log of changes to one.
//!
//! Before March 2025 the documents were in the editor's database. Those of Void still are. An exported chat is a
//! document without a session id. A request has the prompt, the answer and its tool calls.

mod mutation;
mod replay;
mod request;
mod stored;
mod void_threads;

#[cfg(test)]
mod tests;

use std::collections::HashMap;

use self::replay::Replay;
use super::fields;
use super::head::Head;
use super::listing::Listing;
use super::record;
use super::telling::Telling;
use crate::durable::FileError;
use crate::format::tree::Tree;
use crate::format::{Emit, FormatError, Item, Reader};
use crate::json::{Object, Value};
use crate::problem::Problem;
use crate::session::Session;
use steno_vault::Schema;
use steno_vault::sqlite;
use steno_vault::{Bundle, Source};

/// The agent's name.
pub const AGENT: &str = "vscode-chat";

/// Finds and reads chats.
pub const READER: Reader = Reader { agent: AGENT, find, read };

/// The schemas of its databases.
pub(super) const SCHEMAS: [&Schema; 2] = [&stored::SCHEMA, &void_threads::SCHEMA];

/// The file that names the workspace folder.
const WORKSPACE: &str = "workspace.json";

/// The field of a chat with its requests.
const LISTED: &str = "requests";

/// Other fields of a chat to read.
const STATED: [&str; 4] = ["sessionId", "creationDate", "lastMessageDate", "customTitle"];

fn find(tree: &Tree) -> Result<Vec<Bundle>, FileError> {
    let mut known: HashMap<_, usize> = HashMap::new();
    let mut bundles: Vec<Bundle> = Vec::new();
    for chat in record::candidates(tree, recognises)? {
        // The log continues the document of the same name.
        let at = *known.entry(chat.root.with_extension("")).or_insert(bundles.len());
        match bundles.get_mut(at) {
            Some(bundle) => record::put_log_first(bundle, chat),
            None => bundles.push(chat),
        }
    }
    for bundle in &mut bundles {
        let workspace = bundle.root.ancestors().nth(2).map(|folder| folder.join(WORKSPACE));
        let workspace = workspace.filter(|workspace| workspace.is_file());
        bundle.sources.extend(workspace.map(|path| Source::on_disk(WORKSPACE, path)));
    }
    for file in tree.files().iter().filter(|file| sqlite::is_database(file)) {
        bundles.extend(stored::find_chats(file));
    }
    Ok(bundles)
}

/// Whether a file starts as a chat does: as a document or as a log of changes.
pub(crate) fn recognises(head: &Head) -> bool {
    recognises_document(head) || is_log(head)
}

/// Whether a file starts as a chat that is one document.
pub(crate) fn recognises_document(head: &Head) -> bool {
    let fields = head.fields();
    fields.contains_key("requests")
        && (fields.contains_key("responderUsername") || fields.contains_key("initialLocation"))
}

fn is_log(head: &Head) -> bool {
    let fields = head.fields();
    let first = fields.get("kind").and_then(Value::as_u64) == Some(0) && fields.contains_key("v");
    first && (head.shows(r#""responderUsername":"#) || head.shows(r#""initialLocation":"#))
}

fn read(bundle: &Bundle, emit: Emit<'_>) -> Result<Session, FormatError> {
    if sqlite::holds_database(bundle)? {
        return stored::read(bundle, emit);
    }
    let mut chats: Vec<_> =
        bundle.sources.iter().filter(|source| source.name() != WORKSPACE).collect();
    chats.sort_by_key(|source| !source.name().ends_with(".jsonl"));
    let Some(chat) = chats.first() else {
        return Err(FormatError::Invalid(Problem::of(&bundle.root, "no chat")));
    };
    let mut requests = requests(chat, emit)?;
    let chat_fields = requests.as_mut().map(Requests::stated).unwrap_or_default();
    let id = fields::text(&chat_fields, "sessionId").unwrap_or(record::stem(chat));
    let mut emitter = Telling::new(AGENT, id, emit);
    describe(&mut emitter, &chat_fields, bundle)?;
    let bad = |reason: &str| Problem::of(chat.path(), format!("request: {reason}"));
    let mut emit_request = |request: Result<Value, Problem>| match request {
        Ok(Value::Object(request)) => request::tell(&mut emitter, &request),
        Ok(_) => emitter.problem(bad("not a JSON object")),
        Err(problem) => emitter.problem(problem),
    };
    match requests {
        Some(Requests::Listed(document)) => {
            document.each(|request| emit_request(request.map_err(|reason| bad(&reason))))?;
        }
        Some(Requests::Replayed(replay)) => replay.each(emit_request)?,
        None => {}
    }
    Ok(emitter.session)
}

/// The requests of a chat, still unread.
enum Requests<'s> {
    Listed(Listing<'s>),
    Replayed(Replay<'s>),
}

impl Requests<'_> {
    /// Takes the fields beside the requests.
    fn stated(&mut self) -> Object {
        match self {
            Self::Listed(document) => std::mem::take(&mut document.fields),
            Self::Replayed(replay) => std::mem::take(&mut replay.stated),
        }
    }
}

/// Opens the requests of a file. Errors are emitted as problems.
fn requests<'s>(chat: &'s Source, emit: Emit<'_>) -> Result<Option<Requests<'s>>, FileError> {
    if is_log(&Head::of(chat)?) {
        return Ok(Some(Requests::Replayed(Replay::of(chat, emit)?)));
    }
    match Listing::of(chat, &[LISTED])? {
        Ok(document) => Ok(Some(Requests::Listed(document))),
        Err(problem) => {
            emit(Item::Problem(problem));
            Ok(None)
        }
    }
}

fn describe(emitter: &mut Telling<'_>, state: &Object, bundle: &Bundle) -> Result<(), FileError> {
    emitter.time(fields::time(state, "creationDate"));
    emitter.time(fields::time(state, "lastMessageDate"));
    emitter.session.title = fields::text(state, "customTitle").map(str::to_owned);
    describe_project(emitter, bundle)
}

/// Sets the project to the folder in `workspace.json`.
fn describe_project(emitter: &mut Telling<'_>, bundle: &Bundle) -> Result<(), FileError> {
    let Some(workspace) = bundle.get(WORKSPACE) else { return Ok(()) };
    match record::document(workspace)? {
        Ok(workspace) => {
            let uri = fields::text(&workspace, "folder");
            let uri = uri.or_else(|| fields::text(&workspace, "configuration"));
            emitter.session.project =
                uri.map(|uri| uri.strip_prefix("file://").unwrap_or(uri).to_owned());
        }
        Err(problem) => emitter.problem(problem),
    }
    Ok(())
}
