//! Reads sessions of the first versions: one document with the messages as sent to the model, without usage.

use crate::agent::api_log::chat;
use crate::agent::fields::{self, list};
use crate::agent::head::Head;
use crate::agent::listing::Listing;
use crate::agent::record;
use crate::agent::telling::Telling;
use crate::entry::{Entry, Kind, Role};
use crate::format::{Emit, FormatError};
use crate::json::Value;
use crate::problem::Problem;
use crate::session::Session;
use steno_vault::Source;

use super::AGENT;

/// Whether a file is a document of the first versions.
pub(super) fn recognises(source: &Source) -> bool {
    let is_named = source.name().ends_with(".json");
    is_named
        && Head::of_document(source).is_ok_and(|head| {
            ["sessionId", "chatMessages"].iter().all(|field| head.field(field).is_some())
        })
}

/// Reads the messages. The session's times come from its own fields and its timeline.
pub(super) fn read(source: &Source, emit: Emit<'_>) -> Result<Session, FormatError> {
    let mut listing = Listing::of(source, &["chatMessages"])?.map_err(FormatError::Invalid)?;
    let document = std::mem::take(&mut listing.fields);
    let id = fields::text(&document, "sessionId").unwrap_or(record::stem(source));
    let mut emitter = Telling::new(AGENT, id, emit);
    emitter.time(fields::time(&document, "startTime"));
    emitter.time(fields::time(&document, "endTime"));
    for action in list(&document, "timeline").iter().filter_map(Value::as_object) {
        emitter.time(fields::time(action, "timestamp"));
    }
    let mut number = 0;
    listing.each(|message| {
        number += 1;
        let reason = match message {
            Ok(Value::Object(message)) => {
                let is_answer = fields::text(&message, "role") == Some("assistant");
                return tell(&mut emitter, chat::entries(&message), is_answer.then_some(number));
            }
            Ok(_) => "not a JSON object".to_owned(),
            Err(reason) => reason,
        };
        emitter.problem(Problem::of(source.path(), format!("message {number}: {reason}")));
    })?;
    Ok(emitter.session)
}

/// Emits the entries of a message. An answer gets its number as message id.
fn tell(emitter: &mut Telling<'_>, mut entries: Vec<Entry>, answer: Option<u64>) {
    if answer.is_some() && entries.is_empty() {
        entries.push(Entry::new(Role::Assistant, Kind::Text, ""));
    }
    for mut entry in entries {
        entry.message_id = answer.map(|number| format!("message-{number}"));
        emitter.entry(entry);
    }
}
