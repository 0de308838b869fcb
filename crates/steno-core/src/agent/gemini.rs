//! Reads Gemini CLI's chats: one JSON document until 0.38, a log of messages to replay since 0.39.
//!
//! Rewound and replaced messages are not read. Subagents' chats are in a folder named after their session.

mod message;
pub(crate) mod parts;
mod replay;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use self::message::Messages;
use self::replay::Plan;
use super::fields;
use super::head::Head;
use super::record;
use super::resume::MARKER;
use super::telling::Telling;
use crate::durable::FileError;
use crate::entry::PRIMARY;
use crate::format::tree::Tree;
use crate::format::{Emit, FormatError, Reader};
use crate::json::Value;
use crate::problem::Problem;
use crate::session::Session;
use crate::sums::{SumMap, Sums};
use steno_vault::{Bundle, Source};

/// The agent's name.
pub const AGENT: &str = "gemini";

/// Finds and reads its sessions.
pub const READER: Reader =
    Reader { agent: AGENT, find, read: |bundle, emit| read_as(AGENT, bundle, emit) };

fn find(tree: &Tree) -> Result<Vec<Bundle>, FileError> {
    sessions(tree, recognises)
}

/// Whether a file starts as a chat of Gemini CLI does.
pub(crate) fn recognises(head: &Head) -> bool {
    is_chat(head) && !head.shows(r#""type":"qwen""#)
}

/// Whether a file starts like a chat of Gemini CLI or one of its forks.
pub(super) fn is_chat(head: &Head) -> bool {
    let fields = head.fields();
    let is_chat = fields.contains_key("sessionId") && fields.contains_key("projectHash");
    is_chat || (fields.contains_key("history") && head.shows(r#""role":"user","parts":["#))
}

/// Finds the chats in `tree` that match `is_wanted`, each with its subagents' chats and its older document.
pub(super) fn sessions(
    tree: &Tree,
    is_wanted: impl Fn(&Head) -> bool,
) -> Result<Vec<Bundle>, FileError> {
    let mut files = record::candidates(tree, &is_wanted)?;
    if let [file] = files.as_slice()
        && file.root == tree.root()
        && let Some(folder) = agents_folder(file)?
    {
        files.extend(record::candidates(&Tree::at(&folder)?, &is_wanted)?);
    }
    let mut bundles = grouped(files)?;
    bundles.iter_mut().for_each(add_marker);
    Ok(bundles)
}

/// Adds the file that names the project folder of the chats.
fn add_marker(bundle: &mut Bundle) {
    let chats = bundle.root.parent().filter(|folder| folder.file_name() == Some("chats".as_ref()));
    let marker = chats.map(|chats| chats.with_file_name(MARKER)).filter(|marker| marker.is_file());
    bundle.sources.extend(marker.map(|marker| Source::on_disk(MARKER, marker)));
}

/// The folder of a chat's subagents, if it exists.
fn agents_folder(chat: &Bundle) -> Result<Option<PathBuf>, FileError> {
    let name = session_id(&chat.sources[0])?;
    let is_plain = !name.is_empty() && !name.contains(['/', '\\']) && !name.starts_with('.');
    let folder = chat.root.with_file_name(name);
    Ok(Some(folder).filter(|folder| is_plain && folder.is_dir()))
}

/// Groups the files by session: a log before the document that it continues, then subagents' files.
fn grouped(mut files: Vec<Bundle>) -> Result<Vec<Bundle>, FileError> {
    files.sort_by_key(|file| file.root.components().count());
    let mut known: HashMap<PathBuf, usize> = HashMap::new();
    let mut bundles: Vec<Bundle> = Vec::new();
    for file in files {
        let session = file.root.with_file_name(session_id(&file.sources[0])?);
        let parent = file.root.parent().unwrap_or(Path::new(""));
        if let Some(at) = known.get(parent) {
            let folder = parent.file_name().unwrap_or_default().to_string_lossy();
            let name = format!("{folder}/{}", file.sources[0].name());
            bundles[*at].sources.push(Source::on_disk(name, &file.root));
        } else if let Some(at) = known.get(&session) {
            record::put_log_first(&mut bundles[*at], file);
        } else {
            known.insert(session, bundles.len());
            bundles.push(file);
        }
    }
    Ok(bundles)
}

fn session_id(source: &Source) -> Result<String, FileError> {
    let fields = Head::of(source)?.fields();
    Ok(fields::text(&fields, "sessionId").unwrap_or(record::stem(source)).to_owned())
}

/// Reads a chat of `agent`, which is Gemini CLI or one of its forks.
pub(super) fn read_as(
    agent: &str,
    bundle: &Bundle,
    emit: Emit<'_>,
) -> Result<Session, FormatError> {
    let files = bundle.sources.iter().filter(|source| source.name() != MARKER);
    let (agents, chats): (Vec<_>, Vec<_>) = files.partition(|source| source.name().contains('/'));
    let chats = parts_of_chat(chats);
    let Some(first) = chats.first() else {
        return Err(FormatError::Invalid(Problem::of(&bundle.root, "no file in it")));
    };
    let plan = Plan::of(first)?;
    let id = fields::text(&plan.header, "sessionId").unwrap_or(record::stem(first)).to_owned();
    let mut emitter = Telling::new(agent, &id, emit);
    describe(&mut emitter.session, &plan);
    emitter.session.project = project(bundle)?;
    let (mut messages, mut known, hasher) =
        (Messages::default(), SumMap::default(), Sums::default());
    let (mut plan, has_several) = (Some(plan), chats.len() > 1);
    for (number, chat) in chats.into_iter().enumerate() {
        let plan = plan.take().map_or_else(|| Plan::of(chat), Ok)?;
        plan.replay(chat, &mut emitter, |emitter, message| {
            let id = fields::text(&message, "id").filter(|_| has_several);
            let first = id.and_then(|id| known.put(hasher.short(id), number));
            // The log of a resumed chat begins with the messages of the log before.
            if first.is_none_or(|first| *first == number) {
                messages.tell(emitter, message);
            }
        })?;
    }
    emitter.session.subagent_files = agents.len() as u64;
    for source in agents {
        let plan = Plan::of(source)?;
        let id = fields::text(&plan.header, "sessionId").unwrap_or(record::stem(source));
        emitter.speaker = format!("subagent:{id}");
        tell(source, plan, &mut emitter)?;
    }
    emitter.speaker = PRIMARY.to_owned();
    Ok(emitter.session)
}

/// The files to read for the chat, in order: all logs, of which a resumed chat may have several, or else one document.
fn parts_of_chat(chats: Vec<&Source>) -> Vec<&Source> {
    let is_log = |source: &&Source| source.name().ends_with(".jsonl");
    let (mut logs, mut documents): (Vec<_>, Vec<_>) = chats.into_iter().partition(is_log);
    logs.sort_by_key(|source| source.name());
    documents.truncate(1);
    if logs.is_empty() { documents } else { logs }
}

fn tell(source: &Source, plan: Plan, emitter: &mut Telling<'_>) -> Result<(), FormatError> {
    let mut messages = Messages::default();
    plan.replay(source, emitter, |emitter, message| messages.tell(emitter, message))?;
    Ok(())
}

fn project(bundle: &Bundle) -> Result<Option<String>, FileError> {
    let Some(marker) = bundle.get(MARKER) else { return Ok(None) };
    let folder = String::from_utf8_lossy(&marker.bytes()?).trim().to_owned();
    Ok(Some(folder).filter(|folder| !folder.is_empty()))
}

/// Fills in the session from the chat's header.
fn describe(session: &mut Session, plan: &Plan) {
    session.title = fields::text(&plan.header, "summary").map(str::to_owned);
    for field in ["projectHash", "kind", "directories"] {
        if let Some(value) = plan.header.get(field).filter(|value| **value != Value::Null) {
            session.extra.insert(field.to_owned(), value.clone());
        }
    }
}
