//! Reads the output of `opencode export`: one document with all messages, read one message at a time.

use std::io::Read;
use std::path::Path;

use serde::Deserialize;

use crate::decoding::json_walker::{JsonWalker, malformed_error};
use crate::reader::{FormatError, ItemSink, ReaderItem};
use steno_model::json::Value;
use steno_model::problem::Problem;
use steno_model::session::Session;
use steno_vault::{SessionBundle, SessionFile};

use super::decode::OpenCodeConversation;

/// How many bytes of a file are read to recognize it.
const HEAD_BYTES: u64 = 4096;

/// Whether a file begins like an export: an object with a session record as `info`.
pub(super) fn is_export(source: &SessionFile) -> bool {
    let Ok(input) = source.open() else { return false };
    let mut head = Vec::new();
    let read = input.take(HEAD_BYTES).read_to_end(&mut head);
    let head = String::from_utf8_lossy(&head);
    let Some(info) = skip_token(&head, "{").and_then(|rest| skip_token(rest, "\"info\"")) else {
        return false;
    };
    let has = |fields: &[&str]| fields.iter().all(|field| info.contains(field));
    // The first versions had no projects, but their session ids already had this prefix.
    let is_session = has(&["\"projectID\"", "\"directory\""]) || has(&["\"ses_", "\"time\""]);
    read.is_ok()
        && skip_token(info, ":").and_then(|rest| skip_token(rest, "{")).is_some()
        && has(&["\"id\""])
        && is_session
}

/// Reads an export. If it is cut off or malformed, the messages before the error are read, and the error is reported
/// as a problem.
pub(super) fn read_export(
    bundle: &SessionBundle,
    emit: ItemSink<'_>,
) -> Result<Session, FormatError> {
    let source = only_file(bundle)?;
    let mut state =
        OpenCodeExportState { path: source.path(), conversation: None, emit: Some(emit), count: 0 };
    let outcome = JsonWalker::walk_document(source, &mut |walk| {
        walk.for_each_field(&mut |walk, name| match name {
            "info" => {
                state.start_conversation(&walk.read_value()?.map_err(malformed_error)?);
                Ok(())
            }
            "messages" => walk.for_each_item(&mut |walk| {
                state.decode_message(walk.read_value()?);
                Ok(())
            }),
            _ => walk.skip_value(),
        })
    })?;
    let Some(mut conversation) = state.conversation else {
        let missing = || Problem::for_file(source.path(), "no session in the export");
        return Err(FormatError::Invalid(outcome.err().unwrap_or_else(missing)));
    };
    outcome.err().into_iter().for_each(|problem| conversation.report_problem(problem));
    Ok(conversation.finish())
}

fn only_file(bundle: &SessionBundle) -> Result<&SessionFile, FormatError> {
    let missing = || FormatError::Invalid(Problem::for_file(&bundle.root, "no file"));
    bundle.files.first().ok_or_else(missing)
}

fn skip_token<'a>(text: &'a str, token: &str) -> Option<&'a str> {
    text.trim_start().strip_prefix(token)
}

struct OpenCodeExportState<'p, 'a> {
    path: &'p Path,
    conversation: Option<OpenCodeConversation<'a>>,
    emit: Option<ItemSink<'a>>,
    count: u64,
}

#[derive(Deserialize)]
struct OpenCodeExportMessage {
    info: Value,
    #[serde(default)]
    parts: Vec<Value>,
}

impl OpenCodeExportState<'_, '_> {
    fn start_conversation(&mut self, info: &Value) {
        if let Some(emit) = self.emit.take() {
            self.conversation = Some(OpenCodeConversation::new(info, emit));
        }
    }

    fn decode_message(&mut self, record: Result<OpenCodeExportMessage, String>) {
        self.count += 1;
        let problem = |reason: &str| {
            Problem::for_file(self.path, format!("message {}: {reason}", self.count))
        };
        match (record, &mut self.conversation, &mut self.emit) {
            (Ok(record), Some(conversation), _) => {
                conversation.push_message(&record.info, record.parts);
            }
            (Err(reason), Some(conversation), _) => conversation.report_problem(problem(&reason)),
            (Err(reason), None, Some(emit)) => emit(ReaderItem::Problem(problem(&reason))),
            // Every export has the session's record first.
            (_, None, _) => {}
        }
    }
}
