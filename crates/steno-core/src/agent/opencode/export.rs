//! What `opencode export` prints: one document with all messages, read one message at a time.

use std::cell::Cell;
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::rc::Rc;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::agent::listing::Metered;
use crate::agent::repair::parse;
use crate::format::{Emit, FormatError, Item};
use crate::json::Value;
use crate::lines::LINE_LIMIT;
use crate::problem::{Problem, json_reason};
use crate::session::Session;
use crate::source::{Bundle, Source};

use super::conversation::Conversation;

/// How far into a document its first fields are looked for.
const HEAD: u64 = 4096;

/// Whether a file begins as an export does: an object whose `info` is a session's.
pub(super) fn is_export(file: &Path) -> bool {
    let mut head = Vec::new();
    let read = File::open(file).and_then(|file| file.take(HEAD).read_to_end(&mut head));
    let head = String::from_utf8_lossy(&head);
    let Some(info) = after(&head, "{").and_then(|rest| after(rest, "\"info\"")) else {
        return false;
    };
    let has = |fields: &[&str]| fields.iter().all(|field| info.contains(field));
    // The first versions knew no projects, but their ids already began so.
    let is_session = has(&["\"projectID\"", "\"directory\""]) || has(&["\"ses_", "\"time\""]);
    read.is_ok()
        && after(info, ":").and_then(|rest| after(rest, "{")).is_some()
        && has(&["\"id\""])
        && is_session
}

/// Reads an export. What stands before the place where it breaks off is kept.
pub(super) fn read(bundle: &Bundle, emit: Emit<'_>) -> Result<Session, FormatError> {
    let source = source(bundle)?;
    let room = Rc::new(Cell::new(LINE_LIMIT));
    let input = Metered { input: source.open()?, room: Rc::clone(&room) };
    let mut state =
        State { path: source.path(), conversation: None, emit: Some(emit), count: 0, room };
    let mut document = serde_json::Deserializer::from_reader(input);
    let ended = Document(&mut state).deserialize(&mut document).and_then(|()| document.end());
    let Some(mut conversation) = state.conversation else {
        let reason = match ended {
            Ok(()) => "no session in the export".to_owned(),
            Err(error) => json_reason(&error),
        };
        return Err(FormatError::Invalid(Problem::of(source.path(), reason)));
    };
    if let Err(error) = ended {
        let line = u64::try_from(error.line()).unwrap_or(u64::MAX);
        conversation.problem(Problem::at(source.path(), line, json_reason(&error)));
    }
    Ok(conversation.finish())
}

fn source(bundle: &Bundle) -> Result<&Source, FormatError> {
    let missing = || FormatError::Invalid(Problem::of(&bundle.root, "no file"));
    bundle.sources.first().ok_or_else(missing)
}

fn after<'a>(text: &'a str, token: &str) -> Option<&'a str> {
    text.trim_start().strip_prefix(token)
}

struct State<'p, 'a> {
    path: &'p Path,
    conversation: Option<Conversation<'a>>,
    emit: Option<Emit<'a>>,
    count: u64,
    /// Bytes that the message which is read next may have.
    room: Rc<Cell<usize>>,
}

#[derive(Deserialize)]
struct Record {
    info: Value,
    #[serde(default)]
    parts: Vec<Value>,
}

impl State<'_, '_> {
    fn info(&mut self, info: &Value) {
        if let Some(emit) = self.emit.take() {
            self.conversation = Some(Conversation::new(info, emit));
        }
    }

    fn record(&mut self, raw: &RawValue) {
        self.count += 1;
        let record = parse::<Record>(raw.get().as_bytes());
        let problem =
            |reason: &str| Problem::of(self.path, format!("message {}: {reason}", self.count));
        match (record, &mut self.conversation, &mut self.emit) {
            (Ok(record), Some(conversation), _) => {
                conversation.message(&record.info, record.parts);
            }
            (Err(reason), Some(conversation), _) => conversation.problem(problem(&reason)),
            (Err(reason), None, Some(emit)) => emit(Item::Problem(problem(&reason))),
            // The session's own record comes first in every export.
            (_, None, _) => {}
        }
    }
}

struct Document<'s, 'p, 'a>(&'s mut State<'p, 'a>);

impl<'de> DeserializeSeed<'de> for Document<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<(), D::Error> {
        input.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Document<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an exported session")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<String>()? {
            match name.as_str() {
                "info" => self.0.info(&map.next_value()?),
                "messages" => map.next_value_seed(Messages(self.0))?,
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

struct Messages<'s, 'p, 'a>(&'s mut State<'p, 'a>);

impl<'de> DeserializeSeed<'de> for Messages<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<(), D::Error> {
        input.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Messages<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of messages")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(raw) = list.next_element::<Box<RawValue>>()? {
            self.0.record(&raw);
            self.0.room.set(LINE_LIMIT);
        }
        Ok(())
    }
}
