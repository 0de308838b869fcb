//! Reads the output of `opencode export`: one document with all messages, read one message at a time.

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

/// How many bytes of a file are read to recognize it.
const HEAD: u64 = 4096;

/// Whether a file begins like an export: an object with a session record as `info`.
pub(super) fn is_export(source: &Source) -> bool {
    let Ok(input) = source.open() else { return false };
    let mut head = Vec::new();
    let read = input.take(HEAD).read_to_end(&mut head);
    let head = String::from_utf8_lossy(&head);
    let Some(info) = after(&head, "{").and_then(|rest| after(rest, "\"info\"")) else {
        return false;
    };
    let has = |fields: &[&str]| fields.iter().all(|field| info.contains(field));
    // The first versions had no projects, but their session ids already had this prefix.
    let is_session = has(&["\"projectID\"", "\"directory\""]) || has(&["\"ses_", "\"time\""]);
    read.is_ok()
        && after(info, ":").and_then(|rest| after(rest, "{")).is_some()
        && has(&["\"id\""])
        && is_session
}

/// Reads an export. If it is cut off or malformed, the messages before the error are read, and the error is reported
/// as a problem.
pub(super) fn read(bundle: &Bundle, emit: Emit<'_>) -> Result<Session, FormatError> {
    let source = source(bundle)?;
    let mut state = State { path: source.path(), conversation: None, emit: Some(emit), count: 0 };
    let outcome = Walk::over(source, &mut |walk| {
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
        let missing = || Problem::of(source.path(), "no session in the export");
        return Err(FormatError::Invalid(outcome.err().unwrap_or_else(missing)));
    };
    outcome.err().into_iter().for_each(|problem| conversation.problem(problem));
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
            // Every export has the session's record first.
            (_, None, _) => {}
        }
    }
}
