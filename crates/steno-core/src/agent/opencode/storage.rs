//! Reads the tree of JSON files, with one file per session, message and part.
//!
//! A session is `session/<project>/<id>.json` with `message/` and `part/` beside `session/`. In the oldest versions it
//! is `session/info/<id>.json` with `message/` and `part/<id>/` beside `info/`. Parts may also be directly in `part/`;
//! then only a field of the part names its message. If the session file is missing, the messages in `message/<id>/`
//! are read without it.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::agent::fields::filled;
use crate::agent::repair::parse;
use crate::format::{Emit, FormatError};
use crate::json::Value;
use crate::problem::Problem;
use crate::session::Session;
use steno_vault::{Bundle, Source};

use super::beside::{Beside, stated};
use super::conversation::Conversation;

/// The size limit of session and message files when searching, in bytes.
const INFO_LIMIT: u64 = 4 << 20;

/// Bundles the session of a session file. Returns its id too; none if `file` is not a session file.
pub(super) fn session(file: &Path, beside: &mut Beside) -> Option<(String, Bundle)> {
    let folder = file.parent()?;
    let is_oldest = folder.ends_with("info");
    if !is_oldest && !folder.parent()?.ends_with("session") {
        return None;
    }
    let base = if is_oldest { folder.parent()? } else { folder.parent()?.parent()? };
    if !is_json(file) || fs::metadata(file).ok()?.len() > INFO_LIMIT {
        return None;
    }
    let info: Value = serde_json::from_slice(&fs::read(file).ok()?).ok()?;
    let id = filled(&info, "id").filter(|_| info.get("time").is_some_and(Value::is_object))?;
    if !is_file_name(id) || filled(&info, "version").or(filled(&info, "title")).is_none() {
        return None;
    }
    let mut bundle = Bundle::new(base, vec![named(base, file)?]);
    let parts = if is_oldest { base.join("part").join(id) } else { base.join("part") };
    add_messages(&mut bundle, id, &parts, beside);
    let others = beside.others(base, file, id);
    bundle.sources.extend(others.iter().filter_map(|file| named(base, file)));
    Some((id.to_owned(), bundle))
}

/// Bundles the session of a message file, if the session has no session file. Returns its id too.
pub(super) fn session_of_message(file: &Path, beside: &mut Beside) -> Option<(String, Bundle)> {
    let folder = file.parent()?;
    let base = folder.parent().filter(|messages| messages.ends_with("message"))?.parent()?;
    let id = folder.file_name()?.to_str()?;
    if !is_json(file) || !is_message(file, id) || has_session_file(base, id) {
        return None;
    }
    let mut bundle = Bundle::new(base, Vec::new());
    let oldest = base.join("part").join(id);
    let parts = if oldest.is_dir() { oldest } else { base.join("part") };
    add_messages(&mut bundle, id, &parts, beside);
    Some((id.to_owned(), bundle))
}

/// Whether a file holds a message of the session `id`.
fn is_message(file: &Path, id: &str) -> bool {
    let is_small = fs::metadata(file).is_ok_and(|file| file.len() <= INFO_LIMIT);
    let bytes = is_small.then(|| fs::read(file).ok()).flatten();
    let Some(Ok(message)) = bytes.map(|bytes| parse::<Value>(&bytes)) else { return false };
    let is_of_session = match filled(&message, "sessionID") {
        Some(session) => session == id,
        None => {
            id.starts_with("ses_")
                && (message["time"].is_object() || !message["metadata"].is_null())
        }
    };
    is_of_session && matches!(filled(&message, "role"), Some("user" | "assistant"))
}

fn has_session_file(base: &Path, id: &str) -> bool {
    let name = format!("{id}.json");
    let projects = fs::read_dir(base.join("session")).into_iter().flatten().flatten();
    base.join("info").join(&name).is_file()
        || projects.map(|project| project.path().join(&name)).any(|file| file.is_file())
}

/// Adds the messages of the session `id` to its bundle, each with its parts.
fn add_messages(bundle: &mut Bundle, id: &str, parts: &Path, beside: &mut Beside) {
    let base = bundle.root.clone();
    bundle.key = Some(id.to_owned());
    // Messages with the same id share their parts.
    let mut known_parts = HashSet::new();
    for message in listed(&base.join("message").join(id)) {
        bundle.sources.extend(named(&base, &message));
        let mut files = parts_of(parts, &message);
        files.retain(|part| known_parts.insert(part.clone()));
        bundle.sources.extend(files.iter().filter_map(|part| named(&base, part)));
    }
    let flat = beside.flat_parts(parts, id);
    bundle.sources.extend(flat.iter().filter_map(|file| named(&base, file)));
}

/// Whether a bundle comes from the tree: it has a session or message file.
pub(super) fn is_tree(bundle: &Bundle) -> bool {
    let folders = ["session", "info", "message"];
    bundle.sources.iter().any(|source| {
        source.name().contains('/') && folders.iter().any(|folder| is_below(source, folder))
    })
}

/// Reads one session, one message at a time.
pub(super) fn read(bundle: &Bundle, emit: Emit<'_>) -> Result<Session, FormatError> {
    let is_info = |source: &&Source| is_below(source, "session") || is_below(source, "info");
    let main = bundle.sources.iter().find(is_info);
    let info = match main {
        Some(main) => record(main)?.map_err(FormatError::Invalid)?,
        None => serde_json::json!({"id": bundle.key}),
    };
    let mut conversation = Conversation::new(&info, emit);
    let current = there(bundle, main);
    let mut messages: Vec<_> = current.sources.iter().filter(|s| is_below(s, "message")).collect();
    messages.sort_by(|a, b| a.name().cmp(b.name()));
    let files = PartFiles::of(&current)?;
    for source in messages {
        match record(source)? {
            Ok(mut message) => {
                let parts = parts(&mut message, source, &files)?;
                let (parts, problems): (Vec<_>, Vec<_>) =
                    parts.into_iter().partition(Result::is_ok);
                problems.into_iter().filter_map(Result::err).for_each(|p| conversation.problem(p));
                conversation.message(&message, parts.into_iter().flatten().collect());
            }
            Err(problem) => conversation.problem(problem),
        }
    }
    Ok(conversation.finish())
}

/// The bundle without files that OpenCode deleted, such as undone messages. If the session file itself is deleted, all
/// files stay.
fn there(bundle: &Bundle, main: Option<&Source>) -> Bundle {
    let mut current = bundle.clone();
    let is_whole = main.is_none_or(Source::is_gone);
    current.sources.retain(|source| is_whole || !source.is_gone());
    current
}

/// Loads the parts of a message. The oldest versions keep them inside the message.
fn parts(
    message: &mut Value,
    source: &Source,
    files: &PartFiles<'_>,
) -> Result<Vec<Result<Value, Problem>>, FormatError> {
    if let Some(Value::Array(inside)) = message.get_mut("parts") {
        return Ok(std::mem::take(inside).into_iter().map(Ok).collect());
    }
    let stem = Path::new(source.name()).file_stem().unwrap_or_default().to_string_lossy();
    let id = filled(message, "id").unwrap_or(&stem);
    let in_folder = files.by_folder.get(id).into_iter().flatten();
    let mut files: Vec<_> =
        in_folder.chain(files.by_message.get(id).into_iter().flatten()).copied().collect();
    files.sort_by_key(|file| file.name().rsplit('/').next());
    files.into_iter().map(record).collect()
}

/// The files of all parts of a session.
struct PartFiles<'a> {
    /// By folder name, which may be a message id.
    by_folder: HashMap<&'a str, Vec<&'a Source>>,
    /// Parts outside of message folders, by the message id in the part.
    by_message: HashMap<String, Vec<&'a Source>>,
}

impl<'a> PartFiles<'a> {
    fn of(bundle: &'a Bundle) -> Result<Self, FormatError> {
        let mut files = Self { by_folder: HashMap::new(), by_message: HashMap::new() };
        for source in bundle.sources.iter().filter(|source| is_below(source, "part")) {
            files.by_folder.entry(folder(source)).or_default().push(source);
            // An unreadable part names no message, so there is none to report it with.
            if !names_message(source)
                && let Ok(part) = record(source)?
                && let Some(message) = filled(&part, "messageID")
            {
                files.by_message.entry(message.to_owned()).or_default().push(source);
            }
        }
        Ok(files)
    }
}

/// Whether a part is in a folder named after its message.
fn names_message(part: &Source) -> bool {
    let folder = folder(part);
    folder != "part" && !folder.starts_with("ses_")
}

/// Lists the part files of a message. The message file is opened for its id only if no folder has its file name.
fn parts_of(parts: &Path, message: &Path) -> Vec<PathBuf> {
    let stem = message.file_stem().unwrap_or_default();
    let folder = parts.join(stem);
    if folder.is_dir() {
        return listed(&folder);
    }
    let id = stated(message, "id").filter(|id| is_file_name(id));
    id.map(|id| listed(&parts.join(id))).unwrap_or_default()
}

/// Parses the record in a file. A malformed record is a problem; an unreadable file is an error.
fn record(source: &Source) -> Result<Result<Value, Problem>, FormatError> {
    let bytes = source.bytes()?;
    Ok(match parse::<Value>(&bytes) {
        Ok(record) if record.is_object() => Ok(record),
        Ok(_) => Err(Problem::of(source.path(), "not a JSON object")),
        Err(reason) => Err(Problem::of(source.path(), reason)),
    })
}

fn is_below(source: &Source, folder: &str) -> bool {
    source.name().split('/').next() == Some(folder)
}

fn folder(source: &Source) -> &str {
    source.name().rsplit('/').nth(1).unwrap_or_default()
}

/// Whether an id from a file is safe as a file name: it cannot lead out of its folder.
fn is_file_name(id: &str) -> bool {
    !id.contains(['/', '\\', '\0']) && !matches!(id, "" | "." | "..")
}

fn listed(folder: &Path) -> Vec<PathBuf> {
    let Ok(listing) = fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<_> = listing.flatten().map(|item| item.path()).collect();
    files.retain(|file| file.is_file() && is_json(file));
    files.sort();
    files
}

fn is_json(file: &Path) -> bool {
    file.extension().is_some_and(|end| end == "json")
}

fn named(base: &Path, file: &Path) -> Option<Source> {
    let parts = file.strip_prefix(base).ok()?.iter();
    let parts: Vec<_> = parts.map(|part| part.to_string_lossy()).collect();
    Some(Source::on_disk(parts.join("/"), file))
}
