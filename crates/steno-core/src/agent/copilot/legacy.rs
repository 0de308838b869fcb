//! Sessions of the first versions: one document with the messages as they were sent to the model, and no tokens.

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

/// Whether a file is such a document.
pub(super) fn recognises(source: &Source) -> bool {
    let is_named = source.name().ends_with(".json");
    is_named
        && Head::of_document(source).is_ok_and(|head| {
            ["sessionId", "chatMessages"].iter().all(|field| head.field(field).is_some())
        })
}

/// Reads the messages. Times are those of the session as a whole and of what it lists as done.
pub(super) fn read(source: &Source, emit: Emit<'_>) -> Result<Session, FormatError> {
    let mut listing = Listing::of(source, &["chatMessages"])?.map_err(FormatError::Invalid)?;
    let stated = std::mem::take(&mut listing.fields);
    let id = fields::text(&stated, "sessionId").unwrap_or(record::stem(source));
    let mut telling = Telling::new(AGENT, id, emit);
    telling.time(fields::time(&stated, "startTime"));
    telling.time(fields::time(&stated, "endTime"));
    for done in list(&stated, "timeline").iter().filter_map(Value::as_object) {
        telling.time(fields::time(done, "timestamp"));
    }
    let mut number = 0;
    listing.each(|message| {
        number += 1;
        let reason = match message {
            Ok(Value::Object(message)) => {
                let answers = fields::text(&message, "role") == Some("assistant");
                return tell(&mut telling, chat::entries(&message), answers.then_some(number));
            }
            Ok(_) => "not a JSON object".to_owned(),
            Err(reason) => reason,
        };
        telling.problem(Problem::of(source.path(), format!("message {number}: {reason}")));
    })?;
    Ok(telling.session)
}

/// Tells of one message; an answer is known by its number.
fn tell(telling: &mut Telling<'_>, mut entries: Vec<Entry>, answer: Option<u64>) {
    if answer.is_some() && entries.is_empty() {
        entries.push(Entry::new(Role::Assistant, Kind::Text, ""));
    }
    for mut entry in entries {
        entry.message_id = answer.map(|number| format!("message-{number}"));
        telling.entry(entry);
    }
}
