//! Recognises the agent that wrote a file by content alone, for example the recorded lines of a session.

use std::path::Path;

use super::record_shape::{self, RecordShape};
use steno_agents::agents::{
    amp, claude_code, codex, copilot, cursor, droid, gemini, goose, kimi, opencode, pi, qwen, vibe,
    vscode_chat,
};
use steno_agents::decoding::file_head::FileHead;
use steno_agents::decoding::json_repair;
use steno_agents::interchange::{atif, litellm, otel, swe_agent, vercel};
use steno_agents::protocols::api_log;
use steno_agents::reader::FormatReader;
use steno_model::durable::FileError;
use steno_model::json::{Object, Value};
use steno_vault::{SessionBundle, SessionFile};

/// Limit for the sessions of one file, which is read once for each.
const MAX_SESSIONS: usize = 16;

/// A format with sessions in one file.
#[derive(Debug)]
pub(crate) struct FileFormat {
    pub(crate) reader: &'static FormatReader,
    recogniser: Recogniser,
    /// Which chat messages can be records of it.
    messages: ChatMessages,
}

/// How a format is recognised.
#[derive(Debug)]
enum Recogniser {
    /// By the first bytes.
    Head(fn(&FileHead) -> bool),
    /// By records near the beginning.
    Records(fn(&SessionFile) -> Result<bool, FileError>),
    /// By the sessions in it, where there may be several.
    Sessions(fn(SessionBundle) -> Result<Vec<SessionBundle>, FileError>),
}

/// Which records of a format look like chat messages or Steno's entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChatMessages {
    /// None.
    Never,
    /// Those that state their type.
    Typed,
    /// Any.
    Always,
}

use ChatMessages::{Always, Never, Typed};
use Recogniser::{Head as ByHead, Records as ByRecords, Sessions as BySessions};

/// The formats that have one record a line, in the order of [`super::all_readers`].
const LINE_FORMATS: [FileFormat; 14] = [
    FileFormat::new(&claude_code::READER, ByRecords(claude_code::is_claude_file), Never),
    FileFormat::new(&codex::READER, ByRecords(|source| Ok(codex::recognises(source))), Typed),
    FileFormat::new(&gemini::READER, ByHead(gemini::recognises), Never),
    FileFormat::new(&qwen::READER, ByHead(qwen::recognises), Never),
    FileFormat::new(&copilot::READER, ByRecords(|source| Ok(copilot::recognises(source))), Never),
    FileFormat::new(
        &cursor::READER,
        ByRecords(|source| Ok(cursor::recognises_lines(source))),
        Never,
    ),
    FileFormat::new(
        &goose::READER,
        ByRecords(|source| Ok(goose::recognises_lines(source))),
        Always,
    ),
    FileFormat::new(&droid::READER, ByHead(droid::recognises), Typed),
    FileFormat::new(&pi::READER, ByHead(pi::recognises), Never),
    FileFormat::new(&kimi::READER, ByHead(kimi::recognises), Always),
    FileFormat::new(&vscode_chat::READER, ByHead(vscode_chat::recognises), Never),
    FileFormat::new(&api_log::READER, ByRecords(|source| Ok(api_log::recognises(source))), Never),
    FileFormat::new(&litellm::READER, BySessions(litellm::split_conversations), Never),
    FileFormat::new(&otel::READER, BySessions(otel::sessions_in), Never),
];

/// The formats of which a session is one document, in the same order.
const DOCUMENT_FORMATS: [FileFormat; 10] = [
    FileFormat::new(
        &gemini::READER,
        ByHead(|head| gemini::recognises(head) && lists_chat(head)),
        Never,
    ),
    FileFormat::new(
        &qwen::READER,
        ByHead(|head| qwen::recognises(head) && lists_chat(head)),
        Never,
    ),
    FileFormat::new(
        &opencode::READER,
        ByRecords(|source| Ok(opencode::recognises_export(source))),
        Never,
    ),
    FileFormat::new(
        &copilot::READER,
        ByRecords(|source| Ok(copilot::recognises_document(source))),
        Never,
    ),
    FileFormat::new(&amp::READER, ByHead(amp::recognises), Never),
    FileFormat::new(&vibe::READER, ByHead(vibe::recognises_document), Never),
    FileFormat::new(&vscode_chat::READER, ByHead(vscode_chat::recognises_document), Never),
    FileFormat::new(&vercel::READER, ByRecords(|source| Ok(vercel::recognises(source))), Never),
    FileFormat::new(&atif::READER, ByHead(atif::recognises), Never),
    FileFormat::new(&swe_agent::READER, ByHead(swe_agent::recognises), Never),
];

/// Whether a document of Gemini CLI or a fork of it has messages.
fn lists_chat(head: &FileHead) -> bool {
    head.field_start("messages").is_some() || head.field_start("history").is_some()
}

/// A file with a known format.
#[derive(Clone, Debug)]
pub(crate) struct RecognisedFile {
    pub(crate) format: &'static FileFormat,
    /// The sessions in it, each read from the whole file.
    pub(crate) sessions: Vec<SessionBundle>,
}

impl RecognisedFile {
    /// The same, read from other bytes.
    pub(crate) fn with_sources(mut self, sources: &[SessionFile]) -> Self {
        self.sessions.iter_mut().for_each(|session| session.files = sources.to_vec());
        self
    }
}

/// Recognises a file with one record per line. `None` if no agent wrote it.
pub(crate) fn recognise_lines(file: &SessionBundle) -> Result<Option<RecognisedFile>, FileError> {
    recognise(file, &LINE_FORMATS)
}

/// Whether a record is complete by itself, so that no agent's file can start with it.
pub(crate) fn is_self_contained(record: &[u8]) -> bool {
    let Ok(Value::Object(object)) = json_repair::parse_lenient(record) else { return false };
    match RecordShape::detect(&object) {
        None | Some(RecordShape::Claude | RecordShape::ApiLog | RecordShape::MessageList) => false,
        Some(RecordShape::Entry | RecordShape::Message) => {
            !object.contains_key("type")
                && record_shape::decode_record(Value::Object(object), &"").is_ok()
        }
        Some(_) => true,
    }
}

/// Recognises a file that is one document. `None` if no agent wrote it.
pub(crate) fn recognise_document(
    file: &SessionBundle,
) -> Result<Option<RecognisedFile>, FileError> {
    recognise(file, &DOCUMENT_FORMATS)
}

/// Whether a record alone shows which agent wrote it.
pub(crate) fn recognises_record(record: &[u8]) -> bool {
    let path = Path::new("record.jsonl");
    let source = SessionFile::in_memory("record.jsonl", path, record.to_vec());
    let file = SessionBundle::new(path, vec![source]);
    recognise_lines(&file).is_ok_and(|file| file.is_some())
}

fn recognise(
    file: &SessionBundle,
    formats: &'static [FileFormat],
) -> Result<Option<RecognisedFile>, FileError> {
    let Some(source) = file.files.first() else { return Ok(None) };
    let head = FileHead::read(source)?;
    for format in formats {
        let sessions = format.sessions_in(file, &head)?;
        if (1..=MAX_SESSIONS).contains(&sessions.len()) {
            return Ok(Some(RecognisedFile { format, sessions }));
        }
    }
    Ok(None)
}

impl FileFormat {
    const fn new(
        reader: &'static FormatReader,
        recogniser: Recogniser,
        messages: ChatMessages,
    ) -> Self {
        Self { reader, recogniser, messages }
    }

    /// Whether a file is of this format.
    pub(crate) fn recognises(&self, file: &SessionBundle) -> Result<bool, FileError> {
        let Some(source) = file.files.first() else { return Ok(false) };
        Ok(!self.sessions_in(file, &FileHead::read(source)?)?.is_empty())
    }

    fn sessions_in(
        &self,
        file: &SessionBundle,
        head: &FileHead,
    ) -> Result<Vec<SessionBundle>, FileError> {
        let is_own = match self.recogniser {
            ByHead(is_own) => is_own(head),
            ByRecords(is_own) => is_own(&file.files[0])?,
            BySessions(sessions_in) => return sessions_in(file.clone()),
        };
        Ok(is_own.then(|| file.clone()).into_iter().collect())
    }

    /// Whether a record can be part of such a file. Records of unknown shape can.
    pub(crate) fn holds(&self, record: &[u8]) -> bool {
        let Ok(Value::Object(object)) = json_repair::parse_lenient(record) else { return false };
        match RecordShape::detect(&object) {
            None | Some(RecordShape::Claude) => true,
            Some(RecordShape::Entry | RecordShape::Message) => self.holds_message(object),
            Some(RecordShape::ApiLog | RecordShape::MessageList) => {
                [api_log::AGENT, litellm::AGENT].contains(&self.reader.agent)
            }
            Some(_) => false,
        }
    }

    /// Whether a record that looks like a message belongs to the format. A record that does not decode by itself does.
    fn holds_message(&self, object: Object) -> bool {
        let is_own = match self.messages {
            // An entry of ours.
            _ if object.contains_key("kind") => false,
            Never => false,
            Typed => object.contains_key("type"),
            Always => true,
        };
        is_own || record_shape::decode_record(Value::Object(object), &"").is_err()
    }
}
