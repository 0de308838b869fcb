//! Reads sessions of the first versions: one document with the messages as sent to the model, without usage.

use crate::decoding::file_head::FileHead;
use crate::decoding::json_fields::{self, list_field};
use crate::decoding::json_records;
use crate::decoding::record_list::RecordList;
use crate::decoding::session_emitter::SessionEmitter;
use crate::protocols::api_log::chat;
use crate::reader::{FormatError, ItemSink};
use steno_model::entry::{Entry, EntryKind, Role};
use steno_model::json::Value;
use steno_model::problem::Problem;
use steno_model::session::Session;
use steno_vault::SessionFile;

use super::AGENT_NAME;

/// Whether a file is a document of the first versions.
pub(super) fn is_legacy_session(source: &SessionFile) -> bool {
    let is_named = source.name().ends_with(".json");
    is_named
        && FileHead::read_document(source).is_ok_and(|head| {
            ["sessionId", "chatMessages"].iter().all(|field| head.field_start(field).is_some())
        })
}

/// Reads the messages. The session's times come from its own fields and its timeline.
pub(super) fn read_legacy_session(
    source: &SessionFile,
    emit: ItemSink<'_>,
) -> Result<Session, FormatError> {
    let mut listing = RecordList::open(source, &["chatMessages"])?.map_err(FormatError::Invalid)?;
    let document = std::mem::take(&mut listing.fields);
    let id = json_fields::text_field(&document, "sessionId")
        .unwrap_or(json_records::session_stem(source));
    let mut emitter = SessionEmitter::new(AGENT_NAME, id, emit);
    emitter.note_time(json_fields::time_field(&document, "startTime"));
    emitter.note_time(json_fields::time_field(&document, "endTime"));
    for action in list_field(&document, "timeline").iter().filter_map(Value::as_object) {
        emitter.note_time(json_fields::time_field(action, "timestamp"));
    }
    let mut number = 0;
    listing.for_each_record(|message| {
        number += 1;
        let reason = match message {
            Ok(Value::Object(message)) => {
                let is_answer = json_fields::text_field(&message, "role") == Some("assistant");
                return emit_message(
                    &mut emitter,
                    chat::message_entries(&message),
                    is_answer.then_some(number),
                );
            }
            Ok(_) => "not a JSON object".to_owned(),
            Err(reason) => reason,
        };
        emitter
            .emit_problem(Problem::for_file(source.path(), format!("message {number}: {reason}")));
    })?;
    Ok(emitter.session)
}

/// Emits the entries of a message. An answer gets its number as message id.
fn emit_message(emitter: &mut SessionEmitter<'_>, mut entries: Vec<Entry>, answer: Option<u64>) {
    if answer.is_some() && entries.is_empty() {
        entries.push(Entry::new(Role::Assistant, EntryKind::Text, ""));
    }
    for mut entry in entries {
        entry.message_id = answer.map(|number| format!("message-{number}"));
        emitter.emit_entry(entry);
    }
}
