//! What `opencode export` prints: one document with all messages, read one message at a time.

use std::io::Read;
use std::path::Path;

use serde::Deserialize;

use crate::agent::walk::{Walk, malformed};
use crate::format::{Emit, FormatError, Item};
use crate::json::Value;
use crate::problem::Problem;
use crate::session::Session;
use steno_vault::{Bundle, Source};

use super::conversation::Conversation;

/// How far into a document its first fields are looked for.
const HEAD: u64 = 4096;

/// Whether a file begins as an export does: an object whose `info` is a session's.
pub(super) fn is_export(source: &Source) -> bool {
    let Ok(input) = source.open() else { return false };
    let mut head = Vec::new();
    let read = input.take(HEAD).read_to_end(&mut head);
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
    let mut state = State { path: source.path(), conversation: None, emit: Some(emit), count: 0 };
    let ended = Walk::over(source, &mut |walk| {
        walk.fields(&mut |walk, name| match name {
            "info" => {
                state.info(&walk.value()?.map_err(malformed)?);
                Ok(())
            }
            "messages" => walk.items(&mut |walk| {
                state.record(walk.value()?);
                Ok(())
            }),
            _ => walk.pass(),
        })
    })?;
    let Some(mut conversation) = state.conversation else {
        let none = || Problem::of(source.path(), "no session in the export");
        return Err(FormatError::Invalid(ended.err().unwrap_or_else(none)));
    };
    ended.err().into_iter().for_each(|problem| conversation.problem(problem));
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

    fn record(&mut self, record: Result<Record, String>) {
        self.count += 1;
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
