//! Gemini CLI: a chat as one JSON document (until 0.38), or as a log of messages to replay (since 0.39).
//!
//! What was rewound or replaced is not told. Subagents' chats stand in a folder named after their session.

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

/// Whether a file starts as a chat of Gemini CLI, or of one that was made from it, does.
pub(super) fn is_chat(head: &Head) -> bool {
    let fields = head.fields();
    let chat = fields.contains_key("sessionId") && fields.contains_key("projectHash");
    chat || (fields.contains_key("history") && head.shows(r#""role":"user","parts":["#))
}

/// The chats at or below `path` that are wanted, each with its subagents' and with its older copy.
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

/// Adds the file beside the chats that says which folder they are about.
fn add_marker(bundle: &mut Bundle) {
    let chats = bundle.root.parent().filter(|folder| folder.file_name() == Some("chats".as_ref()));
    let marker = chats.map(|chats| chats.with_file_name(MARKER)).filter(|marker| marker.is_file());
    bundle.sources.extend(marker.map(|marker| Source::on_disk(MARKER, marker)));
}

/// The folder in which the subagents of a chat stand, if it has any.
fn agents_folder(chat: &Bundle) -> Result<Option<PathBuf>, FileError> {
    let name = session_id(&chat.sources[0])?;
    let plain = !name.is_empty() && !name.contains(['/', '\\']) && !name.starts_with('.');
    let folder = chat.root.with_file_name(name);
    Ok(Some(folder).filter(|folder| plain && folder.is_dir()))
}

/// Puts files of one session together: a log before the document that it continues, then subagents' files.
fn grouped(mut files: Vec<Bundle>) -> Result<Vec<Bundle>, FileError> {
    files.sort_by_key(|file| file.root.components().count());
    let mut known: HashMap<PathBuf, usize> = HashMap::new();
    let mut bundles: Vec<Bundle> = Vec::new();
    for file in files {
        let place = file.root.with_file_name(session_id(&file.sources[0])?);
        let parent = file.root.parent().unwrap_or(Path::new(""));
        if let Some(at) = known.get(parent) {
            let folder = parent.file_name().unwrap_or_default().to_string_lossy();
            let name = format!("{folder}/{}", file.sources[0].name());
            bundles[*at].sources.push(Source::on_disk(name, &file.root));
        } else if let Some(at) = known.get(&place) {
            record::put_log_first(&mut bundles[*at], file);
        } else {
            known.insert(place, bundles.len());
            bundles.push(file);
        }
    }
    Ok(bundles)
}

fn session_id(source: &Source) -> Result<String, FileError> {
    let fields = Head::of(source)?.fields();
    Ok(fields::text(&fields, "sessionId").unwrap_or(record::stem(source)).to_owned())
}

/// Reads a chat that `agent` wrote.
pub(super) fn read_as(
    agent: &str,
    bundle: &Bundle,
    emit: Emit<'_>,
) -> Result<Session, FormatError> {
    let told = bundle.sources.iter().filter(|source| source.name() != MARKER);
    let (agents, chats): (Vec<_>, Vec<_>) = told.partition(|source| source.name().contains('/'));
    let chats = parts_of_chat(chats);
    let Some(first) = chats.first() else {
        return Err(FormatError::Invalid(Problem::of(&bundle.root, "no file in it")));
    };
    let plan = Plan::of(first)?;
    let id = fields::text(&plan.header, "sessionId").unwrap_or(record::stem(first)).to_owned();
    let mut telling = Telling::new(agent, &id, emit);
    describe(&mut telling.session, &plan);
    telling.session.project = project(bundle)?;
    let (mut messages, mut known, sums) = (Messages::default(), SumMap::default(), Sums::default());
    let (mut plan, has_several) = (Some(plan), chats.len() > 1);
    for (number, chat) in chats.into_iter().enumerate() {
        let plan = plan.take().map_or_else(|| Plan::of(chat), Ok)?;
        plan.replay(chat, &mut telling, |telling, message| {
            let id = fields::text(&message, "id").filter(|_| has_several);
            let first = id.and_then(|id| known.put(sums.short(id), number));
            // A chat that is resumed begins a log with what it was told before.
            if first.is_none_or(|first| *first == number) {
                messages.tell(telling, message);
            }
        })?;
    }
    telling.session.subagent_files = agents.len() as u64;
    for source in agents {
        let plan = Plan::of(source)?;
        let id = fields::text(&plan.header, "sessionId").unwrap_or(record::stem(source));
        telling.speaker = format!("subagent:{id}");
        tell(source, plan, &mut telling)?;
    }
    telling.speaker = PRIMARY.to_owned();
    Ok(telling.session)
}

/// The files that tell the chat, in their order: all logs, of which a resumed chat may have several, or else one document.
fn parts_of_chat(chats: Vec<&Source>) -> Vec<&Source> {
    let is_log = |source: &&Source| source.name().ends_with(".jsonl");
    let (mut logs, mut documents): (Vec<_>, Vec<_>) = chats.into_iter().partition(is_log);
    logs.sort_by_key(|source| source.name());
    documents.truncate(1);
    if logs.is_empty() { documents } else { logs }
}

fn tell(source: &Source, plan: Plan, telling: &mut Telling<'_>) -> Result<(), FormatError> {
    let mut messages = Messages::default();
    plan.replay(source, telling, |telling, message| messages.tell(telling, message))?;
    Ok(())
}

fn project(bundle: &Bundle) -> Result<Option<String>, FileError> {
    let Some(marker) = bundle.get(MARKER) else { return Ok(None) };
    let folder = String::from_utf8_lossy(&marker.bytes()?).trim().to_owned();
    Ok(Some(folder).filter(|folder| !folder.is_empty()))
}

/// Fills in what the header says about the session.
fn describe(session: &mut Session, plan: &Plan) {
    session.title = fields::text(&plan.header, "summary").map(str::to_owned);
    for field in ["projectHash", "kind", "directories"] {
        if let Some(value) = plan.header.get(field).filter(|value| **value != Value::Null) {
            session.extra.insert(field.to_owned(), value.clone());
        }
    }
}
