//! Steno's own JSON: a transcript as one document, or its entries as JSON Lines.
//!
//! Also reads JSON Lines of any shape that [`RecordShape`] detects, and documents that list messages of OpenAI's APIs.

use serde::Serialize;
use serde_json::Value;

use crate::format::record_shape::{self, RecordShape};
use steno_agents::agent::Agent;
use steno_agents::agents::claude_code;
use steno_agents::decoding::entry_emitter::EntryEmitter;
use steno_agents::decoding::file_head::FileHead;
use steno_agents::decoding::json_repair;
use steno_agents::decoding::json_walker::{JsonWalker, malformed_error};
use steno_agents::decoding::record_list::RecordList;
use steno_agents::interchange::openai;
use steno_agents::reader::file_tree::FileTree;
use steno_agents::reader::{FormatError, FormatReader, ItemSink, emit_transcript};
use steno_model::durable::{FileError, OnPath};
use steno_model::entry::{Entry, EntryError, EntryKind, take_object};
use steno_model::json::{JsonStyle, Object, value_limit};
use steno_model::lines::{InputLine, LineReader};
use steno_model::name_hash::CompactNameSet;
use steno_model::note::Note;
use steno_model::problem::Problem;
use steno_model::session::{STENO_AGENT, Session, SessionId, Transcript};
use steno_seeds::weakincentives::claude;
use steno_vault::{SessionBundle, SessionFile};

/// The agent name for files that do not state one.
pub const AGENT_NAME: &str = STENO_AGENT;

/// The reader of these files.
pub const READER: FormatReader =
    FormatReader { agent: AGENT_NAME, find: find_documents, read: read_session };

/// What is known about Steno's own formats.
pub(super) const AGENT: Agent = Agent::new("Steno's JSON and JSON Lines", &READER);

/// Number of lines to check for a known shape before a file is rejected.
const MAX_PROBED_LINES: usize = 20;

/// Longest line that is checked for a known shape, in bytes.
const MAX_PROBED_LINE_BYTES: usize = 8 << 20;

#[derive(Serialize)]
struct StenoDocument<'a> {
    session: &'a Session,
    entries: &'a [Entry],
    #[serde(skip_serializing_if = "<[Note]>::is_empty")]
    notes: &'a [Note],
}

/// Renders the transcript as one JSON document.
pub fn render_json(transcript: &Transcript) -> String {
    let Transcript { session, entries, notes, .. } = transcript;
    JsonStyle::PRETTY.print(&StenoDocument { session, entries, notes }) + "\n"
}

/// Renders the entries as JSON Lines.
pub fn render_lines(transcript: &Transcript) -> String {
    transcript.entries.iter().map(|entry| JsonStyle::COMPACT.print(entry) + "\n").collect()
}

/// Finds Steno documents, and JSON Lines files with a line of a known shape.
pub fn find_documents(tree: &FileTree) -> Result<Vec<SessionBundle>, FileError> {
    let mut bundles = Vec::new();
    for file in tree.files() {
        let bundle = SessionBundle::from_file(file);
        if is_native_file(&bundle.files[0])? {
            bundles.push(bundle);
        }
    }
    Ok(bundles)
}

fn is_native_file(source: &SessionFile) -> Result<bool, FileError> {
    let path = source.path();
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("jsonl") => {
            Ok(find_first_shape(source)?.is_some() && !claude_code::is_claude_file(source)?)
        }
        Some("json") => Ok(is_document_file(source)? || lists_messages(source)?),
        _ => Ok(false),
    }
}

/// Whether an object is a Steno document.
pub(crate) fn is_document_object(object: &Object) -> bool {
    object.get("session").is_some_and(Value::is_object)
        && object.get("entries").is_some_and(Value::is_array)
}

/// Decodes the entries of a document that is one record.
pub(crate) fn entries_from_document(mut object: Object) -> Result<Vec<Entry>, EntryError> {
    let Some(Value::Array(entries)) = object.shift_remove("entries") else {
        return Err(EntryError::MissingField("entries"));
    };
    let read = entries.into_iter().map(|entry| match entry {
        Value::Object(object) => Entry::from_object(object),
        _ => Err(EntryError::NotAnObject),
    });
    read.collect()
}

/// Whether a document is a list of messages, or an object with such a list.
fn lists_messages(source: &SessionFile) -> Result<bool, FileError> {
    let head = FileHead::read_document(source)?;
    let is_message = |item: FileHead| {
        let has = |name| item.field_start(name).is_some();
        let has_content =
            has("role") && ["content", "tool_calls", "function_call"].iter().any(|name| has(*name));
        has_content || openai::is_responses_item(&item.scalar_fields())
    };
    if let Some(first) = head.first_item() {
        return Ok(is_message(first));
    }
    Ok(openai::MESSAGE_LIST_FIELDS.iter().any(|name| head.list_start(name).is_some_and(is_message)))
}

/// Whether a file is a Steno document. The document states its agent, which can be any.
pub(crate) fn is_document_file(source: &SessionFile) -> Result<bool, FileError> {
    let mut start = vec![0; 64];
    let count = source.open()?.read(&mut start).on("read", source.path())?;
    let start = String::from_utf8_lossy(&start[..count]);
    Ok(start.split_whitespace().collect::<String>().starts_with("{\"session\":{"))
}

/// Returns the shape of the first line that has a known one.
fn find_first_shape(source: &SessionFile) -> Result<Option<RecordShape>, FileError> {
    for line in LineReader::with_limit(source.open()?, MAX_PROBED_LINE_BYTES).take(MAX_PROBED_LINES)
    {
        let line = line.on("read", source.path())?;
        match value_limit::parse_limited(&line.bytes) {
            Ok(Value::Object(object)) => {
                if let Some(shape) = RecordShape::detect(&object) {
                    return Ok(Some(shape));
                }
            }
            Ok(Value::Array(list)) if openai::is_message_list(&list) => {
                return Ok(Some(RecordShape::MessageList));
            }
            _ => {}
        }
    }
    Ok(None)
}

/// Reads a document or a file of lines.
fn read_session(bundle: &SessionBundle, emit: ItemSink<'_>) -> Result<Session, FormatError> {
    let Some(source) = bundle.files.first() else {
        return Err(FormatError::Invalid(Problem::for_file(&bundle.root, "no file in it")));
    };
    if source.name().ends_with(".json") && is_document_file(source)? {
        read_document(source, emit)
    } else if source.name().ends_with(".json") {
        read_messages(source, emit)
    } else if find_first_shape(source)? == Some(RecordShape::Claude) {
        Ok(emit_transcript(claude::read_session(bundle, None)?, emit))
    } else {
        Ok(read_lines(source, emit)?)
    }
}

/// Reads a document in two passes: the session, then each entry.
fn read_document(source: &SessionFile, emit: ItemSink<'_>) -> Result<Session, FormatError> {
    let session = read_document_session(source)?;
    let mut output = EntryEmitter::new(&session.agent, session.id.as_str(), emit);
    let mut count = 0;
    let mut take = |entry: Result<Value, String>| {
        count += 1;
        let numbered = |entry: &Value| entry.get("sequence").is_some_and(|it| !it.is_null());
        let is_numbered = entry.as_ref().is_ok_and(numbered);
        match entry.and_then(entry_from_value) {
            Ok(entry) if is_numbered => output.emit_numbered_entry(entry),
            Ok(entry) => output.emit_entry(entry),
            Err(reason) => {
                let reason = format!("entry {count}: {reason}");
                output.emit_problem(Problem::for_file(source.path(), reason));
            }
        }
    };
    JsonWalker::rewalk_document(source, &mut |walk| {
        walk.for_each_field(&mut |walk, name| match name {
            "entries" => walk.for_each_item(&mut |walk| {
                take(walk.read_value()?);
                Ok(())
            }),
            _ => walk.skip_value(),
        })
    })?;
    Ok(session)
}

fn entry_from_value(value: Value) -> Result<Entry, String> {
    let entry = match value {
        Value::Object(object) => Entry::from_object(object),
        _ => Err(EntryError::NotAnObject),
    };
    entry.map_err(|error| error.to_string())
}

/// Reads the session of a document. Fails if the document has no entries.
fn read_document_session(source: &SessionFile) -> Result<Session, FormatError> {
    let (mut document, mut has_entries) = (Object::new(), false);
    let passed = JsonWalker::walk_document(source, &mut |walk| {
        walk.for_each_field(&mut |walk, name| match name {
            "session" => {
                document.insert(name.to_owned(), walk.read_value()?.map_err(malformed_error)?);
                Ok(())
            }
            "entries" => {
                has_entries = walk.peek()? == Some(b'[');
                walk.skip_value()
            }
            _ => walk.skip_value(),
        })
    })?;
    passed.map_err(FormatError::Invalid)?;
    let invalid = |error: EntryError| {
        FormatError::Invalid(Problem::for_file(source.path(), error.to_string()))
    };
    let session = take_object(&mut document, "session").map_err(invalid)?;
    let session = session.ok_or(EntryError::MissingField("session")).map_err(invalid)?;
    if !has_entries {
        return Err(invalid(EntryError::MissingField("entries")));
    }
    Session::from_object(session).map_err(invalid)
}

fn read_lines(source: &SessionFile, emit: ItemSink<'_>) -> Result<Session, FileError> {
    let mut reading = RecordEmitter::new(source, ".jsonl", emit);
    for line in LineReader::new(source.open()?) {
        let line = line.on("read", source.path())?;
        reading.emit_record(decode_line(&line), line.number);
    }
    Ok(reading.session)
}

/// Reads a document that lists messages.
fn read_messages(source: &SessionFile, emit: ItemSink<'_>) -> Result<Session, FormatError> {
    let is_list = FileHead::read_document(source)?.first_item().is_some();
    let names: &'static [&'static str] = if is_list { &[] } else { &openai::MESSAGE_LIST_FIELDS };
    let mut listing = RecordList::open(source, names)?.map_err(FormatError::Invalid)?;
    let mut reading = RecordEmitter::new(source, ".json", emit);
    let beside =
        openai::entries_from_message_list(&std::mem::take(&mut listing.fields), &"document");
    reading.emit_record(Ok(beside), 0);
    let mut count = 0;
    listing.for_each_record(|message| {
        count += 1;
        let entries = message.map(|message| openai::entries_from_messages(&[message], &count));
        reading.emit_record(entries.map_err(|why| format!("message {count}: {why}")), 0);
    })?;
    Ok(reading.session)
}

/// State while records of any shape are decoded and emitted.
struct RecordEmitter<'a> {
    source: &'a SessionFile,
    session: Session,
    output: EntryEmitter<'a>,
    /// Hashes of unknown fields that were reported already.
    reported_fields: CompactNameSet,
    /// Hashes of the call ids of earlier records.
    earlier_call_ids: CompactNameSet,
}

impl<'a> RecordEmitter<'a> {
    fn new(source: &'a SessionFile, ending: &str, emit: ItemSink<'a>) -> Self {
        let stem = source.name().strip_suffix(ending).unwrap_or(source.name());
        let mut session = Session::new(SessionId::for_native(AGENT_NAME, stem), AGENT_NAME);
        session.native_id = Some(stem.to_owned());
        Self {
            source,
            session,
            output: EntryEmitter::new(AGENT_NAME, stem, emit),
            reported_fields: CompactNameSet::default(),
            earlier_call_ids: CompactNameSet::default(),
        }
    }

    /// Emits the entries of the record at `line`, or the error as a problem. `line` is 0 in a file without lines.
    fn emit_record(&mut self, entries: Result<Vec<Entry>, String>, line: u64) {
        let (path, line) = (self.source.path(), Some(line).filter(|line| *line > 0));
        let mut entries = match entries {
            Ok(entries) => entries,
            Err(reason) => {
                let problem = Problem { line, ..Problem::for_file(path, reason) };
                return self.output.emit_problem(problem);
            }
        };
        for name in openai::unknown_fields(&entries) {
            if self.reported_fields.insert(name) {
                let reason = openai::unknown_field_reason(name);
                self.output
                    .emit_problem(Problem { line, ..Problem::notice_for_file(path, reason) });
            }
        }
        if let Some(line) = line {
            self.scope_call_ids(&mut entries, line);
        }
        entries.into_iter().for_each(|entry| self.output.emit_entry(entry));
    }

    /// Makes call ids unique across the conversations in one file.
    ///
    /// In a fine-tuning file each line is a conversation, and two lines may use the same ids. An id that an earlier
    /// line used gets the line number as a prefix; other ids are unchanged.
    fn scope_call_ids(&mut self, entries: &mut [Entry], line: u64) {
        let called = |entry: &&Entry| entry.kind == EntryKind::ToolCall;
        let ids: Vec<String> =
            entries.iter().filter(called).filter_map(|entry| entry.tool_call_id.clone()).collect();
        let known: Vec<&String> =
            ids.iter().filter(|id| self.earlier_call_ids.contains(id.as_str())).collect();
        for entry in entries.iter_mut() {
            if let Some(id) = &mut entry.tool_call_id
                && known.contains(&&*id)
            {
                *id = format!("{line}:{id}");
            }
        }
        ids.iter().for_each(|id| _ = self.earlier_call_ids.insert(id.as_str()));
    }
}

/// Decodes the entries of one line.
fn decode_line(line: &InputLine) -> Result<Vec<Entry>, String> {
    if line.bytes.trim_ascii().is_empty() || line.is_continuation {
        return Ok(Vec::new());
    }
    if !line.is_whole() {
        return Err("line too long to be a record".to_owned());
    }
    record_shape::decode_record(json_repair::parse_lenient(&line.bytes)?, &line.number)
        .map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use steno_agents::decoding::large;
    use steno_model::entry::Role;

    #[test]
    fn files_larger_than_may_be_held_are_read() {
        let mut transcript = Transcript::new(Session::new("s".parse().unwrap(), AGENT_NAME));
        for role in [Role::User, Role::Assistant].iter().cycle().take(10) {
            transcript.push(Entry::new(role.clone(), EntryKind::Text, "~"));
        }
        for (name, text) in
            [("a.json", render_json(&transcript)), ("a.jsonl", render_lines(&transcript))]
        {
            let (_, kinds, problems) = large::read_large(&READER, large::large_source(name, &text));
            assert_eq!((kinds.len(), problems), (10, 0), "{name}");
        }
    }
}
