//! Recognises the agent that wrote a file by content alone, for example the recorded lines of a session.

use std::path::Path;

use super::record_shape::{self, RecordShape};
use steno_agents::agent::Agent;
use steno_agents::agent::record_format::{ChatMessages, RecordFormat};
use steno_agents::decoding::file_head::FileHead;
use steno_agents::decoding::json_repair;
use steno_agents::reader::FormatReader;
use steno_model::durable::FileError;
use steno_model::json::{Object, Value};
use steno_vault::{SessionBundle, SessionFile};

/// Limit for the sessions of one file, which is read once for each.
const MAX_SESSIONS: usize = 16;

/// A format with sessions in one file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileFormat {
    pub(crate) reader: &'static FormatReader,
    records: &'static RecordFormat,
}

/// The formats that have one record a line.
fn line_formats() -> impl Iterator<Item = FileFormat> {
    formats_of(|agent| agent.lines.as_ref())
}

/// The formats of which a session is one document.
fn document_formats() -> impl Iterator<Item = FileFormat> {
    formats_of(|agent| agent.document.as_ref())
}

fn formats_of(
    records: fn(&'static Agent) -> Option<&'static RecordFormat>,
) -> impl Iterator<Item = FileFormat> {
    let format = move |agent: &'static Agent| {
        Some(FileFormat { reader: agent.reader, records: records(agent)? })
    };
    super::all_agents().filter_map(format)
}

/// A file with a known format.
#[derive(Clone, Debug)]
pub(crate) struct RecognisedFile {
    pub(crate) format: FileFormat,
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
    recognise(file, line_formats())
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
    recognise(file, document_formats())
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
    formats: impl Iterator<Item = FileFormat>,
) -> Result<Option<RecognisedFile>, FileError> {
    let Some(source) = file.files.first() else { return Ok(None) };
    let head = FileHead::read(source)?;
    for format in formats {
        let sessions = format.records.sessions_in(file, &head)?;
        if (1..=MAX_SESSIONS).contains(&sessions.len()) {
            return Ok(Some(RecognisedFile { format, sessions }));
        }
    }
    Ok(None)
}

impl FileFormat {
    /// Whether a file is of this format.
    pub(crate) fn recognises(&self, file: &SessionBundle) -> Result<bool, FileError> {
        let Some(source) = file.files.first() else { return Ok(false) };
        Ok(!self.records.sessions_in(file, &FileHead::read(source)?)?.is_empty())
    }

    /// Whether a record can be part of such a file. Records of unknown shape can.
    pub(crate) fn holds(&self, record: &[u8]) -> bool {
        let Ok(Value::Object(object)) = json_repair::parse_lenient(record) else { return false };
        match RecordShape::detect(&object) {
            None | Some(RecordShape::Claude) => true,
            Some(RecordShape::Entry | RecordShape::Message) => self.holds_message(object),
            Some(RecordShape::ApiLog | RecordShape::MessageList) => self.records.has_api_calls,
            Some(_) => false,
        }
    }

    /// Whether a record that looks like a message belongs to the format. A record that does not decode by itself does.
    fn holds_message(&self, object: Object) -> bool {
        let is_own = match self.records.messages {
            // An entry of ours.
            _ if object.contains_key("kind") => false,
            ChatMessages::Never => false,
            ChatMessages::Typed => object.contains_key("type"),
            ChatMessages::Always => true,
        };
        is_own || record_shape::decode_record(Value::Object(object), &"").is_err()
    }
}
