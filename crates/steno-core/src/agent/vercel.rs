//! Chats of the Vercel AI SDK: a list of `UIMessage`s, alone or in the field `messages` of a document.
//!
//! Only fields that the SDK defines are read. Other fields belong to the application.

mod message;

use crate::agent::document;
use crate::agent::fields::text;
use crate::agent::head::Head;
use crate::agent::listing::Listing;
use crate::durable::FileError;
use crate::entry::Numbering;
use crate::format::tree::Tree;
use crate::format::{Emit, FormatError, Item, Reader};
use crate::json::{Object, Value};
use crate::problem::Problem;
use crate::session::{Session, SessionId};
use steno_vault::{Bundle, Source};

/// The agent's name.
pub const AGENT: &str = "vercel";

/// Finds and reads chats.
pub const READER: Reader = Reader { agent: AGENT, find, read };

fn find(tree: &Tree) -> Result<Vec<Bundle>, FileError> {
    let bundles = tree.files().iter().map(|file| Bundle::file(file));
    Ok(bundles.filter(|bundle| recognises(&bundle.sources[0])).collect())
}

/// Whether a file is a chat.
pub(crate) fn recognises(source: &Source) -> bool {
    let Ok(head) = Head::of_document(source) else { return false };
    if !head.shows("\"role\"") || !(head.shows("\"parts\"") || head.shows("\"toolInvocations\"")) {
        return false;
    }
    let (mut count, mut all) = (0, true);
    let read = messages(source).ok().and_then(Result::ok).map(|listing| {
        listing.each(|message| {
            count += 1;
            all &= message.is_ok_and(|message| message::is_message(&message));
        })
    });
    matches!(read, Some(Ok(()))) && count > 0 && all
}

/// Opens the messages of a chat, and the fields beside them.
fn messages(source: &Source) -> Result<Result<Listing<'_>, Problem>, FileError> {
    let is_list = Head::of_document(source)?.first_item().is_some();
    Listing::of(source, if is_list { &[] } else { &["messages"] })
}

fn read(bundle: &Bundle, emit: Emit<'_>) -> Result<Session, FormatError> {
    let source = document::only_source(bundle)?;
    let mut listing = messages(source)?.map_err(FormatError::Invalid)?;
    let fields = std::mem::take(&mut listing.fields);
    let mut session_state: Option<(Session, Numbering)> = None;
    listing.each(|message| {
        let first = message.as_ref().ok().and_then(Value::as_object);
        let (_, numbering) = session_state.get_or_insert_with(|| begin(&fields, first));
        let problem = match message {
            Ok(Value::Object(message)) => {
                for mut entry in message::entries(&message) {
                    numbering.assign(&mut entry);
                    emit(Item::Entry(Box::new(entry)));
                }
                return;
            }
            Ok(_) => Problem::of(source.path(), "a message is not a JSON object"),
            Err(reason) => Problem::of(source.path(), format!("a message: {reason}")),
        };
        emit(Item::Problem(problem));
    })?;
    Ok(session_state.unwrap_or_else(|| begin(&fields, None)).0)
}

/// A session with the id of the chat or of its first message.
fn begin(chat: &Object, first: Option<&Object>) -> (Session, Numbering) {
    let own = text(chat, "id");
    let name = own.or(first.and_then(|first| text(first, "id"))).unwrap_or_default();
    let mut session = Session::new(SessionId::for_native(AGENT, name), AGENT);
    session.native_id = own.map(str::to_owned);
    session.title = text(chat, "title").map(str::to_owned);
    let numbering = Numbering::new(AGENT, session.id.as_str());
    (session, numbering)
}

#[cfg(test)]
mod tests;
