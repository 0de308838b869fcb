//! Reads agent transcripts: one JSON object per line with a role and a message.
//!
//! A transcript is a single file, or a file in its own folder with the files of its subagents in `subagents/`.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::agent::entries::{tool_call, tool_result};
use crate::agent::fields::filled;
use crate::agent::json_lines::each_object;
use crate::agent::message::Message;
use crate::agent::output::Output;
use crate::entry::{Entry, Kind, PRIMARY, Role};
use crate::format::{Emit, FormatError, Item};
use crate::json::Value;
use crate::lines::{Line, Lines};
use crate::problem::Problem;
use crate::session::{Session, SessionId};
use steno_vault::{Bundle, Source};

use super::{AGENT, prompt};

const SUBAGENTS: &str = "subagents";

/// Longest first line to probe, in bytes.
const HEAD: usize = 1 << 20;

/// The first line of a transcript. It has no field `type`.
#[derive(Deserialize)]
struct Head {
    role: String,
    message: Content,
    r#type: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Content {
    #[serde(rename = "content")]
    _content: IgnoredAny,
}

/// Whether the first line of a file is that of a transcript.
pub(super) fn is_transcript(file: &Path) -> bool {
    recognises(&Bundle::file(file).sources[0])
}

/// As [`is_transcript`], wherever the bytes of the file are.
pub(super) fn recognises(source: &Source) -> bool {
    let Ok(input) = source.open() else { return false };
    let line = Lines::with_limit(input, HEAD).read();
    let Ok(Some(Line { bytes, .. })) = line else { return false };
    if bytes.first() != Some(&b'{') {
        return false;
    }
    let mut heads = serde_json::Deserializer::from_slice(&bytes).into_iter::<Head>();
    heads.next().is_some_and(|head| {
        let Ok(head) = head else { return false };
        let Head { role, message: Content { .. }, r#type } = head;
        r#type.is_none() && matches!(role.as_str(), "user" | "assistant")
    })
}

/// Subagent files found together with their session. Each folder is listed once.
#[derive(Default)]
pub(super) struct SubagentFiles {
    by_folder: HashMap<PathBuf, HashSet<PathBuf>>,
}

impl SubagentFiles {
    /// Whether a file belongs to a subagent of a session at or below `path`.
    pub(super) fn is_owned(&mut self, file: &Path, path: &Path) -> bool {
        let Some(folder) = file.parent().filter(|folder| folder.ends_with(SUBAGENTS)) else {
            return false;
        };
        let Some(above) = folder.parent().filter(|above| above.starts_with(path)) else {
            return false;
        };
        if !self.by_folder.contains_key(folder) {
            let owned = listed(above).iter().flat_map(|main| owned_by(main)).collect();
            self.by_folder.insert(folder.to_owned(), owned);
        }
        self.by_folder.get(folder).is_some_and(|owned| owned.contains(file))
    }
}

/// Bundles a session with its subagents.
pub(super) fn bundle(file: &Path) -> Bundle {
    let mut bundle = Bundle::file(file);
    for subagent in owned_by(file) {
        let name = subagent.file_name().unwrap_or_default().to_string_lossy();
        bundle.sources.push(Source::on_disk(format!("{SUBAGENTS}/{name}"), &subagent));
    }
    bundle
}

/// The subagent files of a session that is the only one in its folder or has the folder's name.
fn owned_by(file: &Path) -> Vec<PathBuf> {
    let Some(folder) = file.parent() else { return Vec::new() };
    let subagents = folder.join(SUBAGENTS);
    let is_named = file.file_stem() == folder.file_name();
    if !subagents.is_dir() || (!is_named && !is_only_one(file, folder)) {
        return Vec::new();
    }
    listed(&subagents).into_iter().filter(|file| is_transcript(file)).collect()
}

/// Whether a folder has no other JSON Lines file. Listing stops at the first other one.
fn is_only_one(file: &Path, folder: &Path) -> bool {
    let Ok(listing) = fs::read_dir(folder) else { return false };
    let mut files = listing.flatten().map(|item| item.path()).filter(|file| is_lines(file));
    files.all(|other| other == file)
}

fn listed(folder: &Path) -> Vec<PathBuf> {
    let Ok(listing) = fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<_> = listing.flatten().map(|item| item.path()).collect();
    files.retain(|file| is_lines(file));
    files.sort();
    files
}

fn is_lines(file: &Path) -> bool {
    file.extension().is_some_and(|end| end == "jsonl") && file.is_file()
}

/// Reads one session, then its subagents.
pub(super) fn read(bundle: &Bundle, emit: Emit<'_>) -> Result<Session, FormatError> {
    let is_main = |source: &&Source| !source.name().starts_with(SUBAGENTS);
    let Some(main) = bundle.sources.iter().find(is_main) else {
        return Err(FormatError::Invalid(Problem::of(&bundle.root, "no transcript")));
    };
    let id = stem(main);
    let mut session = Session::new(SessionId::for_native(AGENT, &id), AGENT);
    session.native_id = Some(id.clone());
    read_file(main, PRIMARY, &mut Output::new(AGENT, &id, &mut *emit))?;
    for source in bundle.sources.iter().filter(|source| !is_main(source)) {
        session.subagent_files += 1;
        let speaker = format!("subagent:{}", stem(source));
        let mut emit_as_subagent = |item| match item {
            Item::Entry(mut entry) => {
                entry.source.clone_from(&speaker);
                emit(Item::Entry(entry));
            }
            problem => emit(problem),
        };
        let name = format!("{id}/{}", stem(source));
        read_file(source, &speaker, &mut Output::new(AGENT, &name, &mut emit_as_subagent))?;
    }
    Ok(session)
}

fn stem(source: &Source) -> String {
    source.path().file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

fn read_file(source: &Source, speaker: &str, output: &mut Output<'_>) -> Result<(), FormatError> {
    each_object(source, |record, line| match record {
        Ok(record) => take(Value::Object(record), format!("{speaker} line {line}"), output),
        Err(problem) => output.problem(problem),
    })?;
    Ok(())
}

fn take(record: Value, id: String, output: &mut Output<'_>) {
    let model = filled(&record, "model").map(str::to_owned);
    let mut message = Message { id: Some(id), model, ..Message::default() };
    let role = Role::from(filled(&record, "role").unwrap_or_default());
    let content = record.get("message").and_then(|message| message.get("content"));
    match (&role, content) {
        (Role::User | Role::Assistant, Some(Value::String(text))) => {
            prompt::say(&mut message, &role, text);
        }
        (Role::User | Role::Assistant, Some(Value::Array(blocks))) => {
            blocks.iter().for_each(|block| add(&mut message, &role, block));
        }
        _ if filled(&record, "type") == Some("turn_ended") => message.push(turn_ended(&record)),
        _ => message.unknown(record),
    }
    match role {
        Role::Assistant => output.answer(message),
        _ => output.message(message),
    }
}

fn add(message: &mut Message, role: &Role, block: &Value) {
    let field = |name| filled(block, name).unwrap_or_default();
    match field("type") {
        "text" => prompt::say(message, role, field("text")),
        "thinking" => message.say(Role::Assistant, Kind::Thinking, field("thinking")),
        "tool_use" => {
            let name = filled(block, "name");
            message.push(tool_call(name, filled(block, "id"), block.get("input")));
        }
        "tool_result" => {
            let content = block.get("content").unwrap_or(&Value::Null);
            let failed = block.get("is_error") == Some(&Value::Bool(true));
            message.push(tool_result(filled(block, "tool_use_id"), words(content), failed));
        }
        _ => message.unknown(block.clone()),
    }
}

fn turn_ended(record: &Value) -> Entry {
    let failed = filled(record, "status").is_some_and(|status| status == "error");
    let kind = if failed { Kind::Error } else { Kind::Notice };
    let mut entry = Entry::new(Role::System, kind, filled(record, "error").unwrap_or_default());
    entry.metadata = record.as_object().cloned();
    entry
}

/// The text of a tool result.
pub(super) fn words(content: &Value) -> String {
    match content {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().map(words).collect::<Vec<_>>().join("\n"),
        other => filled(other, "text").map_or_else(|| other.to_string(), str::to_owned),
    }
}
