//! Our own JSON: a transcript as one document, or its entries as JSON Lines.

use serde::Serialize;
use serde_json::Value;

use super::shape::{self, Shape};
use super::weakincentives::claude;
use super::{Emit, FormatError, Item, Reader, emit_all};
use crate::agent::claude_code;
use crate::agent::walk::{Walk, malformed};
use crate::durable::{FileError, OnPath};
use crate::entry::{Entry, EntryError, Numbering, take_object, take_string, take_timestamp};
use crate::format::tree::Tree;
use crate::json::{Object, Style, bounds};
use crate::lines::{Line, Lines};
use crate::problem::Problem;
use crate::session::{Session, SessionId, Status, Transcript};
use crate::source::{Bundle, Source};
use crate::vault::notes::Note;

/// The agent of files that name none.
pub const AGENT: &str = "steno";

/// Finds and reads its sessions.
pub const READER: Reader = Reader { agent: AGENT, find, read };

/// How far into a file of lines we look for one that we know.
const PROBED_LINES: usize = 20;

/// The longest line that is looked at for that.
const PROBED_BYTES: usize = 8 << 20;

#[derive(Serialize)]
struct Document<'a> {
    session: &'a Session,
    entries: &'a [Entry],
    #[serde(skip_serializing_if = "<[Note]>::is_empty")]
    notes: &'a [Note],
}

/// The transcript as one JSON document.
pub fn render_json(transcript: &Transcript) -> String {
    let Transcript { session, entries, notes, .. } = transcript;
    Style::PRETTY.print(&Document { session, entries, notes }) + "\n"
}

/// The transcript's entries, one to a line.
pub fn render_lines(transcript: &Transcript) -> String {
    transcript.entries.iter().map(|entry| Style::COMPACT.print(entry) + "\n").collect()
}

/// The session in `path`, when it is a file of ours or one of lines whose shape is known.
pub fn find(tree: &Tree) -> Result<Vec<Bundle>, FileError> {
    let mut bundles = Vec::new();
    for file in tree.files() {
        let bundle = Bundle::file(file);
        if recognises(&bundle.sources[0])? {
            bundles.push(bundle);
        }
    }
    Ok(bundles)
}

fn recognises(source: &Source) -> Result<bool, FileError> {
    let path = source.path();
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("jsonl") => Ok(first_shape(source)?.is_some() && !claude_code::recognises(source)?),
        Some("json") => is_document(source),
        _ => Ok(false),
    }
}

/// Whether a source is a document of ours. It names its agent, which may be any.
pub(crate) fn is_document(source: &Source) -> Result<bool, FileError> {
    let mut start = vec![0; 64];
    let count = source.open()?.read(&mut start).on("read", source.path())?;
    let start = String::from_utf8_lossy(&start[..count]);
    Ok(start.split_whitespace().collect::<String>().starts_with("{\"session\":{"))
}

/// The shape of the first line that has one.
fn first_shape(source: &Source) -> Result<Option<Shape>, FileError> {
    for line in Lines::with_limit(source.open()?, PROBED_BYTES).take(PROBED_LINES) {
        let line = line.on("read", source.path())?;
        if let Ok(Value::Object(object)) = bounds::from_slice(&line.bytes)
            && let Some(shape) = Shape::of(&object)
        {
            return Ok(Some(shape));
        }
    }
    Ok(None)
}

/// Reads a document or a file of lines.
fn read(bundle: &Bundle, emit: Emit<'_>) -> Result<Session, FormatError> {
    let Some(source) = bundle.sources.first() else {
        return Err(FormatError::Invalid(Problem::of(&bundle.root, "no file in it")));
    };
    if source.name().ends_with(".json") {
        read_document(source, emit)
    } else if first_shape(source)? == Some(Shape::Claude) {
        Ok(emit_all(claude::read(bundle, None)?, emit))
    } else {
        Ok(read_lines(source, emit)?)
    }
}

/// Reads a document twice, first for its session, then entry by entry.
fn read_document(source: &Source, emit: Emit<'_>) -> Result<Session, FormatError> {
    let session = document_session(source)?;
    let mut numbering = Numbering::new(&session.agent, session.id.as_str());
    let mut count = 0;
    let mut take = |entry: Result<Value, String>| {
        count += 1;
        let numbered = |entry: &Value| entry.get("sequence").is_some_and(|it| !it.is_null());
        let is_numbered = entry.as_ref().is_ok_and(numbered);
        match entry.and_then(entry_from) {
            Ok(mut entry) => {
                if is_numbered {
                    numbering.identify(&mut entry);
                } else {
                    numbering.assign(&mut entry);
                }
                emit(Item::Entry(Box::new(entry)));
            }
            Err(reason) => {
                let reason = format!("entry {count}: {reason}");
                emit(Item::Problem(Problem::of(source.path(), reason)));
            }
        }
    };
    Walk::again(source, &mut |walk| {
        walk.fields(&mut |walk, name| match name {
            "entries" => walk.items(&mut |walk| {
                take(walk.value()?);
                Ok(())
            }),
            _ => walk.pass(),
        })
    })?;
    Ok(session)
}

fn entry_from(value: Value) -> Result<Entry, String> {
    let entry = match value {
        Value::Object(object) => Entry::from_object(object),
        _ => Err(EntryError::NotAnObject),
    };
    entry.map_err(|error| error.to_string())
}

/// The session of a document that has entries, too.
fn document_session(source: &Source) -> Result<Session, FormatError> {
    let (mut document, mut has_entries) = (Object::new(), false);
    let passed = Walk::over(source, &mut |walk| {
        walk.fields(&mut |walk, name| match name {
            "session" => {
                document.insert(name.to_owned(), walk.value()?.map_err(malformed)?);
                Ok(())
            }
            "entries" => {
                has_entries = walk.peek()? == Some(b'[');
                walk.pass()
            }
            _ => walk.pass(),
        })
    })?;
    passed.map_err(FormatError::Invalid)?;
    let invalid =
        |error: EntryError| FormatError::Invalid(Problem::of(source.path(), error.to_string()));
    let session = take_object(&mut document, "session").map_err(invalid)?;
    let session = session.ok_or(EntryError::MissingField("session")).map_err(invalid)?;
    if !has_entries {
        return Err(invalid(EntryError::MissingField("entries")));
    }
    session_from(session).map_err(invalid)
}

fn session_from(mut object: Object) -> Result<Session, EntryError> {
    let id = take_string(&mut object, "id")?.ok_or(EntryError::MissingField("id"))?;
    let agent = take_string(&mut object, "agent")?.unwrap_or_else(|| AGENT.to_owned());
    let mut session = Session::new(SessionId::for_native(&agent, &id), agent);
    session.native_id = take_string(&mut object, "native_id")?.or(Some(id));
    session.project = take_string(&mut object, "project")?;
    session.branch = take_string(&mut object, "branch")?;
    session.title = take_string(&mut object, "title")?;
    session.started = take_timestamp(&mut object, "started")?;
    session.ended = take_timestamp(&mut object, "ended")?;
    session.stop_reason = take_string(&mut object, "stop_reason")?;
    session.thread = take_string(&mut object, "thread")?;
    session.parent = take_string(&mut object, "parent")?;
    session.status = match object.shift_remove("status") {
        None => Status::default(),
        Some(status) => serde_json::from_value(status)
            .map_err(|_| EntryError::WrongType { field: "status", expected: "a status" })?,
    };
    let totals = take_object(&mut object, "totals")?;
    session.totals.cost = totals.and_then(|totals| totals.get("cost")?.as_f64());
    session.extra = take_object(&mut object, "extra")?.unwrap_or_default();
    Ok(session)
}

fn read_lines(source: &Source, emit: Emit<'_>) -> Result<Session, FileError> {
    let stem = source.name().strip_suffix(".jsonl").unwrap_or(source.name());
    let mut session = Session::new(SessionId::for_native(AGENT, stem), AGENT);
    session.native_id = Some(stem.to_owned());
    let mut numbering = Numbering::new(AGENT, stem);
    for line in Lines::new(source.open()?) {
        let line = line.on("read", source.path())?;
        match line_entries(&line) {
            Ok(entries) => {
                for mut entry in entries {
                    numbering.assign(&mut entry);
                    emit(Item::Entry(Box::new(entry)));
                }
            }
            Err(reason) => {
                emit(Item::Problem(Problem::at(source.path(), line.number, reason)));
            }
        }
    }
    Ok(session)
}

/// The entries of one line, or why it has none.
fn line_entries(line: &Line) -> Result<Vec<Entry>, String> {
    if line.bytes.trim_ascii().is_empty() {
        return Ok(Vec::new());
    }
    if line.continues {
        return Ok(Vec::new());
    }
    if !line.is_whole() {
        return Err("line too long to be a record".to_owned());
    }
    match bounds::from_slice(&line.bytes)? {
        Value::Object(object) => shape::entries(object).map_err(|error| error.to_string()),
        _ => Err(EntryError::NotAnObject.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::large;
    use crate::entry::{Kind, Role};

    #[test]
    fn files_larger_than_may_be_held_are_read() {
        let mut transcript = Transcript::new(Session::new(SessionId::fresh(), AGENT));
        for role in [Role::User, Role::Assistant].iter().cycle().take(10) {
            transcript.push(Entry::new(role.clone(), Kind::Text, "~"));
        }
        for (name, text) in
            [("a.json", render_json(&transcript)), ("a.jsonl", render_lines(&transcript))]
        {
            let (_, kinds, problems) = large::read(&READER, large::source(name, &text));
            assert_eq!((kinds.len(), problems), (10, 0), "{name}");
        }
    }
}
