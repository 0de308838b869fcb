//! Reads agent transcripts: one JSON object per line with a role and a message.
//!
//! A transcript is a single file, or a file in its own folder with the files of its subagents in `subagents/`.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde::de::IgnoredAny;

use crate::decoding::agent_message::AgentMessage;
use crate::decoding::entries::{tool_call, tool_result};
use crate::decoding::entry_emitter::EntryEmitter;
use crate::decoding::json_fields::nonempty_text;
use crate::decoding::json_lines::for_each_object;
use crate::reader::{FormatError, ItemSink, ReaderItem};
use steno_model::entry::{Entry, EntryKind, PRIMARY_SOURCE, Role};
use steno_model::json::Value;
use steno_model::lines::{InputLine, LineReader};
use steno_model::problem::Problem;
use steno_model::session::{Session, SessionId};
use steno_vault::{SessionBundle, SessionFile};

use super::{AGENT_NAME, prompt};

const SUBAGENTS_FOLDER: &str = "subagents";

/// Longest first line to probe, in bytes.
const MAX_FIRST_LINE: usize = 1 << 20;

/// The first line of a transcript. It has no field `type`.
#[derive(Deserialize)]
struct CursorTranscriptHead {
    role: String,
    message: CursorMessageContent,
    r#type: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct CursorMessageContent {
    #[serde(rename = "content")]
    _content: IgnoredAny,
}

/// Whether the first line of a file is that of a transcript.
pub(super) fn is_transcript(file: &Path) -> bool {
    recognises(&SessionBundle::from_file(file).files[0])
}

/// As [`is_transcript`], wherever the bytes of the file are.
pub(super) fn recognises(source: &SessionFile) -> bool {
    let Ok(input) = source.open() else { return false };
    let line = LineReader::with_limit(input, MAX_FIRST_LINE).read_line();
    let Ok(Some(InputLine { bytes, .. })) = line else { return false };
    if bytes.first() != Some(&b'{') {
        return false;
    }
    let mut heads =
        serde_json::Deserializer::from_slice(&bytes).into_iter::<CursorTranscriptHead>();
    heads.next().is_some_and(|head| {
        let Ok(head) = head else { return false };
        let CursorTranscriptHead { role, message: CursorMessageContent { .. }, r#type } = head;
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
        let Some(folder) = file.parent().filter(|folder| folder.ends_with(SUBAGENTS_FOLDER)) else {
            return false;
        };
        let Some(above) = folder.parent().filter(|above| above.starts_with(path)) else {
            return false;
        };
        if !self.by_folder.contains_key(folder) {
            let owned =
                list_transcripts(above).iter().flat_map(|main| subagent_files_of(main)).collect();
            self.by_folder.insert(folder.to_owned(), owned);
        }
        self.by_folder.get(folder).is_some_and(|owned| owned.contains(file))
    }
}

/// Bundles a session with its subagents.
pub(super) fn bundle_session(file: &Path) -> SessionBundle {
    let mut bundle = SessionBundle::from_file(file);
    for subagent in subagent_files_of(file) {
        let name = subagent.file_name().unwrap_or_default().to_string_lossy();
        bundle.files.push(SessionFile::on_disk(format!("{SUBAGENTS_FOLDER}/{name}"), &subagent));
    }
    bundle
}

/// The subagent files of a session that is the only one in its folder or has the folder's name.
fn subagent_files_of(file: &Path) -> Vec<PathBuf> {
    let Some(folder) = file.parent() else { return Vec::new() };
    let subagents = folder.join(SUBAGENTS_FOLDER);
    let is_named = file.file_stem() == folder.file_name();
    if !subagents.is_dir() || (!is_named && !is_only_transcript(file, folder)) {
        return Vec::new();
    }
    list_transcripts(&subagents).into_iter().filter(|file| is_transcript(file)).collect()
}

/// Whether a folder has no other JSON Lines file. Listing stops at the first other one.
fn is_only_transcript(file: &Path, folder: &Path) -> bool {
    let Ok(listing) = fs::read_dir(folder) else { return false };
    let mut files = listing.flatten().map(|item| item.path()).filter(|file| is_jsonl_file(file));
    files.all(|other| other == file)
}

fn list_transcripts(folder: &Path) -> Vec<PathBuf> {
    let Ok(listing) = fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<_> = listing.flatten().map(|item| item.path()).collect();
    files.retain(|file| is_jsonl_file(file));
    files.sort();
    files
}

fn is_jsonl_file(file: &Path) -> bool {
    file.extension().is_some_and(|end| end == "jsonl") && file.is_file()
}

/// Reads one session, then its subagents.
pub(super) fn read_transcript(
    bundle: &SessionBundle,
    emit: ItemSink<'_>,
) -> Result<Session, FormatError> {
    let is_main = |source: &&SessionFile| !source.name().starts_with(SUBAGENTS_FOLDER);
    let Some(main) = bundle.files.iter().find(is_main) else {
        return Err(FormatError::Invalid(Problem::for_file(&bundle.root, "no transcript")));
    };
    let id = file_stem(main);
    let mut session = Session::new(SessionId::for_native(AGENT_NAME, &id), AGENT_NAME);
    session.native_id = Some(id.clone());
    read_transcript_file(
        main,
        PRIMARY_SOURCE,
        &mut EntryEmitter::new(AGENT_NAME, &id, &mut *emit),
    )?;
    for source in bundle.files.iter().filter(|source| !is_main(source)) {
        session.subagent_files += 1;
        let speaker = format!("subagent:{}", file_stem(source));
        let mut emit_as_subagent = |item| match item {
            ReaderItem::Entry(mut entry) => {
                entry.source.clone_from(&speaker);
                emit(ReaderItem::Entry(entry));
            }
            problem => emit(problem),
        };
        let name = format!("{id}/{}", file_stem(source));
        read_transcript_file(
            source,
            &speaker,
            &mut EntryEmitter::new(AGENT_NAME, &name, &mut emit_as_subagent),
        )?;
    }
    Ok(session)
}

fn file_stem(source: &SessionFile) -> String {
    source.path().file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

fn read_transcript_file(
    source: &SessionFile,
    speaker: &str,
    output: &mut EntryEmitter<'_>,
) -> Result<(), FormatError> {
    for_each_object(source, |record, line| match record {
        Ok(record) => emit_record(Value::Object(record), format!("{speaker} line {line}"), output),
        Err(problem) => output.emit_problem(problem),
    })?;
    Ok(())
}

fn emit_record(record: Value, id: String, output: &mut EntryEmitter<'_>) {
    let model = nonempty_text(&record, "model").map(str::to_owned);
    let mut message = AgentMessage { id: Some(id), model, ..AgentMessage::default() };
    let role = Role::from(nonempty_text(&record, "role").unwrap_or_default());
    let content = record.get("message").and_then(|message| message.get("content"));
    match (&role, content) {
        (Role::User | Role::Assistant, Some(Value::String(text))) => {
            prompt::add_text(&mut message, &role, text);
        }
        (Role::User | Role::Assistant, Some(Value::Array(blocks))) => {
            blocks.iter().for_each(|block| add_block(&mut message, &role, block));
        }
        _ if nonempty_text(&record, "type") == Some("turn_ended") => {
            message.push(turn_ended_entry(&record))
        }
        _ => message.add_unknown(record),
    }
    match role {
        Role::Assistant => output.emit_answer(message),
        _ => output.emit_message(message),
    }
}

fn add_block(message: &mut AgentMessage, role: &Role, block: &Value) {
    let field = |name| nonempty_text(block, name).unwrap_or_default();
    match field("type") {
        "text" => prompt::add_text(message, role, field("text")),
        "thinking" => message.add_text(Role::Assistant, EntryKind::Thinking, field("thinking")),
        "tool_use" => {
            let name = nonempty_text(block, "name");
            message.push(tool_call(name, nonempty_text(block, "id"), block.get("input")));
        }
        "tool_result" => {
            let content = block.get("content").unwrap_or(&Value::Null);
            let failed = block.get("is_error") == Some(&Value::Bool(true));
            message.push(tool_result(
                nonempty_text(block, "tool_use_id"),
                result_text(content),
                failed,
            ));
        }
        _ => message.add_unknown(block.clone()),
    }
}

fn turn_ended_entry(record: &Value) -> Entry {
    let failed = nonempty_text(record, "status").is_some_and(|status| status == "error");
    let kind = if failed { EntryKind::Error } else { EntryKind::Notice };
    let mut entry =
        Entry::new(Role::System, kind, nonempty_text(record, "error").unwrap_or_default());
    entry.metadata = record.as_object().cloned();
    entry
}

/// The text of a tool result.
pub(super) fn result_text(content: &Value) -> String {
    match content {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(blocks) => blocks.iter().map(result_text).collect::<Vec<_>>().join("\n"),
        other => nonempty_text(other, "text").map_or_else(|| other.to_string(), str::to_owned),
    }
}
