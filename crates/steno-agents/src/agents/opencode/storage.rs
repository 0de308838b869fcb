//! Reads the tree of JSON files, with one file per session, message and part.
//!
//! A session is `session/<project>/<id>.json` with `message/` and `part/` beside `session/`. In the oldest versions it
//! is `session/info/<id>.json` with `message/` and `part/<id>/` beside `info/`. Parts may also be directly in `part/`;
//! then only a field of the part names its message. If the session file is missing, the messages in `message/<id>/`
//! are read without it.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::decoding::json_fields::nonempty_text;
use crate::decoding::json_repair::parse_lenient;
use crate::reader::{FormatError, ItemSink};
use steno_model::json::Value;
use steno_model::problem::Problem;
use steno_model::session::Session;
use steno_vault::{SessionBundle, SessionFile};

use super::decode::OpenCodeConversation;
use super::side_files::{OpenCodeSideFiles, read_text_field};

/// The size limit of session and message files when searching, in bytes.
const MAX_INFO_BYTES: u64 = 4 << 20;

/// Bundles the session of a session file. Returns its id too; none if `file` is not a session file.
pub(super) fn bundle_session(
    file: &Path,
    beside: &mut OpenCodeSideFiles,
) -> Option<(String, SessionBundle)> {
    let folder = file.parent()?;
    let is_oldest = folder.ends_with("info");
    if !is_oldest && !folder.parent()?.ends_with("session") {
        return None;
    }
    let base = if is_oldest { folder.parent()? } else { folder.parent()?.parent()? };
    if !is_json(file) || fs::metadata(file).ok()?.len() > MAX_INFO_BYTES {
        return None;
    }
    let info: Value = serde_json::from_slice(&fs::read(file).ok()?).ok()?;
    let id =
        nonempty_text(&info, "id").filter(|_| info.get("time").is_some_and(Value::is_object))?;
    if !is_file_name(id)
        || nonempty_text(&info, "version").or(nonempty_text(&info, "title")).is_none()
    {
        return None;
    }
    let mut bundle = SessionBundle::new(base, vec![file_relative_to(base, file)?]);
    let parts = if is_oldest { base.join("part").join(id) } else { base.join("part") };
    add_messages(&mut bundle, id, &parts, beside);
    let others = beside.list_session_files(base, file, id);
    bundle.files.extend(others.iter().filter_map(|file| file_relative_to(base, file)));
    Some((id.to_owned(), bundle))
}

/// Bundles the session of a message file, if the session has no session file. Returns its id too.
pub(super) fn bundle_from_message(
    file: &Path,
    beside: &mut OpenCodeSideFiles,
) -> Option<(String, SessionBundle)> {
    let folder = file.parent()?;
    let base = folder.parent().filter(|messages| messages.ends_with("message"))?.parent()?;
    let id = folder.file_name()?.to_str()?;
    if !is_json(file) || !is_message(file, id) || has_session_file(base, id) {
        return None;
    }
    let mut bundle = SessionBundle::new(base, Vec::new());
    let oldest = base.join("part").join(id);
    let parts = if oldest.is_dir() { oldest } else { base.join("part") };
    add_messages(&mut bundle, id, &parts, beside);
    Some((id.to_owned(), bundle))
}

/// Whether a file holds a message of the session `id`.
fn is_message(file: &Path, id: &str) -> bool {
    let is_small = fs::metadata(file).is_ok_and(|file| file.len() <= MAX_INFO_BYTES);
    let bytes = is_small.then(|| fs::read(file).ok()).flatten();
    let Some(Ok(message)) = bytes.map(|bytes| parse_lenient::<Value>(&bytes)) else { return false };
    let is_of_session = match nonempty_text(&message, "sessionID") {
        Some(session) => session == id,
        None => {
            id.starts_with("ses_")
                && (message["time"].is_object() || !message["metadata"].is_null())
        }
    };
    is_of_session && matches!(nonempty_text(&message, "role"), Some("user" | "assistant"))
}

fn has_session_file(base: &Path, id: &str) -> bool {
    let name = format!("{id}.json");
    let projects = fs::read_dir(base.join("session")).into_iter().flatten().flatten();
    base.join("info").join(&name).is_file()
        || projects.map(|project| project.path().join(&name)).any(|file| file.is_file())
}

/// Adds the messages of the session `id` to its bundle, each with its parts.
fn add_messages(
    bundle: &mut SessionBundle,
    id: &str,
    parts: &Path,
    beside: &mut OpenCodeSideFiles,
) {
    let base = bundle.root.clone();
    bundle.key = Some(id.to_owned());
    // Messages with the same id share their parts.
    let mut known_parts = HashSet::new();
    for message in list_json_files(&base.join("message").join(id)) {
        bundle.files.extend(file_relative_to(&base, &message));
        let mut files = list_parts(parts, &message);
        files.retain(|part| known_parts.insert(part.clone()));
        bundle.files.extend(files.iter().filter_map(|part| file_relative_to(&base, part)));
    }
    let flat = beside.flat_parts(parts, id);
    bundle.files.extend(flat.iter().filter_map(|file| file_relative_to(&base, file)));
}

/// Whether a bundle comes from the tree: it has a session or message file.
pub(super) fn is_storage_tree(bundle: &SessionBundle) -> bool {
    let folders = ["session", "info", "message"];
    bundle.files.iter().any(|source| {
        source.name().contains('/') && folders.iter().any(|folder| is_in_folder(source, folder))
    })
}

/// Reads one session, one message at a time.
pub(super) fn read_tree(
    bundle: &SessionBundle,
    emit: ItemSink<'_>,
) -> Result<Session, FormatError> {
    let is_info =
        |source: &&SessionFile| is_in_folder(source, "session") || is_in_folder(source, "info");
    let main = bundle.files.iter().find(is_info);
    let info = match main {
        Some(main) => parse_record(main)?.map_err(FormatError::Invalid)?,
        None => serde_json::json!({"id": bundle.key}),
    };
    let mut conversation = OpenCodeConversation::new(&info, emit);
    let current = without_deleted_files(bundle, main);
    let mut messages: Vec<_> =
        current.files.iter().filter(|s| is_in_folder(s, "message")).collect();
    messages.sort_by(|a, b| a.name().cmp(b.name()));
    let files = OpenCodePartFiles::from_bundle(&current)?;
    for source in messages {
        match parse_record(source)? {
            Ok(mut message) => {
                let parts = load_parts(&mut message, source, &files)?;
                let (parts, problems): (Vec<_>, Vec<_>) =
                    parts.into_iter().partition(Result::is_ok);
                problems
                    .into_iter()
                    .filter_map(Result::err)
                    .for_each(|p| conversation.report_problem(p));
                conversation.push_message(&message, parts.into_iter().flatten().collect());
            }
            Err(problem) => conversation.report_problem(problem),
        }
    }
    Ok(conversation.finish())
}

/// The bundle without files that OpenCode deleted, such as undone messages. If the session file itself is deleted, all
/// files stay.
fn without_deleted_files(bundle: &SessionBundle, main: Option<&SessionFile>) -> SessionBundle {
    let mut current = bundle.clone();
    let is_whole = main.is_none_or(SessionFile::is_gone);
    current.files.retain(|source| is_whole || !source.is_gone());
    current
}

/// Loads the parts of a message. The oldest versions keep them inside the message.
fn load_parts(
    message: &mut Value,
    source: &SessionFile,
    files: &OpenCodePartFiles<'_>,
) -> Result<Vec<Result<Value, Problem>>, FormatError> {
    if let Some(Value::Array(inside)) = message.get_mut("parts") {
        return Ok(std::mem::take(inside).into_iter().map(Ok).collect());
    }
    let stem = Path::new(source.name()).file_stem().unwrap_or_default().to_string_lossy();
    let id = nonempty_text(message, "id").unwrap_or(&stem);
    let in_folder = files.by_folder.get(id).into_iter().flatten();
    let mut files: Vec<_> =
        in_folder.chain(files.by_message.get(id).into_iter().flatten()).copied().collect();
    files.sort_by_key(|file| file.name().rsplit('/').next());
    files.into_iter().map(parse_record).collect()
}

/// The files of all parts of a session.
struct OpenCodePartFiles<'a> {
    /// By folder name, which may be a message id.
    by_folder: HashMap<&'a str, Vec<&'a SessionFile>>,
    /// Parts outside of message folders, by the message id in the part.
    by_message: HashMap<String, Vec<&'a SessionFile>>,
}

impl<'a> OpenCodePartFiles<'a> {
    fn from_bundle(bundle: &'a SessionBundle) -> Result<Self, FormatError> {
        let mut files = Self { by_folder: HashMap::new(), by_message: HashMap::new() };
        for source in bundle.files.iter().filter(|source| is_in_folder(source, "part")) {
            files.by_folder.entry(folder_name(source)).or_default().push(source);
            // An unreadable part names no message, so there is none to report it with.
            if !is_in_message_folder(source)
                && let Ok(part) = parse_record(source)?
                && let Some(message) = nonempty_text(&part, "messageID")
            {
                files.by_message.entry(message.to_owned()).or_default().push(source);
            }
        }
        Ok(files)
    }
}

/// Whether a part is in a folder named after its message.
fn is_in_message_folder(part: &SessionFile) -> bool {
    let folder = folder_name(part);
    folder != "part" && !folder.starts_with("ses_")
}

/// Lists the part files of a message. The message file is opened for its id only if no folder has its file name.
fn list_parts(parts: &Path, message: &Path) -> Vec<PathBuf> {
    let stem = message.file_stem().unwrap_or_default();
    let folder = parts.join(stem);
    if folder.is_dir() {
        return list_json_files(&folder);
    }
    let id = read_text_field(message, "id").filter(|id| is_file_name(id));
    id.map(|id| list_json_files(&parts.join(id))).unwrap_or_default()
}

/// Parses the record in a file. A malformed record is a problem; an unreadable file is an error.
fn parse_record(source: &SessionFile) -> Result<Result<Value, Problem>, FormatError> {
    let bytes = source.read_bytes()?;
    Ok(match parse_lenient::<Value>(&bytes) {
        Ok(record) if record.is_object() => Ok(record),
        Ok(_) => Err(Problem::for_file(source.path(), "not a JSON object")),
        Err(reason) => Err(Problem::for_file(source.path(), reason)),
    })
}

fn is_in_folder(source: &SessionFile, folder: &str) -> bool {
    source.name().split('/').next() == Some(folder)
}

fn folder_name(source: &SessionFile) -> &str {
    source.name().rsplit('/').nth(1).unwrap_or_default()
}

/// Whether an id from a file is safe as a file name: it cannot lead out of its folder.
fn is_file_name(id: &str) -> bool {
    !id.contains(['/', '\\', '\0']) && !matches!(id, "" | "." | "..")
}

fn list_json_files(folder: &Path) -> Vec<PathBuf> {
    let Ok(listing) = fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<_> = listing.flatten().map(|item| item.path()).collect();
    files.retain(|file| file.is_file() && is_json(file));
    files.sort();
    files
}

fn is_json(file: &Path) -> bool {
    file.extension().is_some_and(|end| end == "json")
}

fn file_relative_to(base: &Path, file: &Path) -> Option<SessionFile> {
    let parts = file.strip_prefix(base).ok()?.iter();
    let parts: Vec<_> = parts.map(|part| part.to_string_lossy()).collect();
    Some(SessionFile::on_disk(parts.join("/"), file))
}
