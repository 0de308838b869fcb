//! Chats of the Vercel AI SDK: a list of `UIMessage`s, alone or in the field `messages` of a document.
//!
//! Only fields that the SDK defines are read. Other fields belong to the application.

mod message;

use crate::agent::Agent;
use crate::agent::record_format::RecordFormat;
use crate::decoding::document;
use crate::decoding::entry_emitter::emit_next_entry;
use crate::decoding::file_head::FileHead;
use crate::decoding::json_fields::text_field;
use crate::decoding::record_list::RecordList;
use crate::reader::file_tree::FileTree;
use crate::reader::{FormatError, FormatReader, ItemSink, ReaderItem};
use steno_model::durable::FileError;
use steno_model::json::{Object, Value};
use steno_model::numbering::EntryNumbering;
use steno_model::problem::Problem;
use steno_model::session::{Session, SessionId};
use steno_vault::{SessionBundle, SessionFile};

/// The agent's name.
pub const AGENT_NAME: &str = "vercel";

/// Finds and reads chats.
pub const READER: FormatReader =
    FormatReader { agent: AGENT_NAME, find: find_sessions, read: read_session };

/// What is known about messages of the Vercel AI SDK.
pub(crate) const AGENT: Agent = Agent {
    document: Some(RecordFormat::by_records(|source| Ok(recognises(source)))),
    ..Agent::new("Vercel AI SDK messages", &READER)
};

fn find_sessions(tree: &FileTree) -> Result<Vec<SessionBundle>, FileError> {
    let bundles = tree.files().iter().map(|file| SessionBundle::from_file(file));
    Ok(bundles.filter(|bundle| recognises(&bundle.files[0])).collect())
}

/// Whether a file is a chat.
pub fn recognises(source: &SessionFile) -> bool {
    let Ok(head) = FileHead::read_document(source) else { return false };
    if !head.contains_json("\"role\"")
        || !(head.contains_json("\"parts\"") || head.contains_json("\"toolInvocations\""))
    {
        return false;
    }
    let (mut count, mut all) = (0, true);
    let read = list_messages(source).ok().and_then(Result::ok).map(|listing| {
        listing.for_each_record(|message| {
            count += 1;
            all &= message.is_ok_and(|message| message::is_ui_message(&message));
        })
    });
    matches!(read, Some(Ok(()))) && count > 0 && all
}

/// Opens the messages of a chat, and the fields beside them.
fn list_messages(source: &SessionFile) -> Result<Result<RecordList<'_>, Problem>, FileError> {
    let is_list = FileHead::read_document(source)?.first_item().is_some();
    RecordList::open(source, if is_list { &[] } else { &["messages"] })
}

fn read_session(bundle: &SessionBundle, emit: ItemSink<'_>) -> Result<Session, FormatError> {
    let source = document::only_file(bundle)?;
    let mut listing = list_messages(source)?.map_err(FormatError::Invalid)?;
    let fields = std::mem::take(&mut listing.fields);
    let mut session_state: Option<(Session, EntryNumbering)> = None;
    listing.for_each_record(|message| {
        let first = message.as_ref().ok().and_then(Value::as_object);
        let (_, numbering) = session_state.get_or_insert_with(|| begin_session(&fields, first));
        let problem = match message {
            Ok(Value::Object(message)) => {
                for entry in message::message_entries(&message) {
                    emit_next_entry(entry, numbering, emit);
                }
                return;
            }
            Ok(_) => Problem::for_file(source.path(), "a message is not a JSON object"),
            Err(reason) => Problem::for_file(source.path(), format!("a message: {reason}")),
        };
        emit(ReaderItem::Problem(problem));
    })?;
    Ok(session_state.unwrap_or_else(|| begin_session(&fields, None)).0)
}

/// A session with the id of the chat or of its first message.
fn begin_session(chat: &Object, first: Option<&Object>) -> (Session, EntryNumbering) {
    let own = text_field(chat, "id");
    let name = own.or(first.and_then(|first| text_field(first, "id"))).unwrap_or_default();
    let mut session = Session::new(SessionId::for_native(AGENT_NAME, name), AGENT_NAME);
    session.native_id = own.map(str::to_owned);
    session.title = text_field(chat, "title").map(str::to_owned);
    let numbering = EntryNumbering::new(AGENT_NAME, session.id.as_str());
    (session, numbering)
}

#[cfg(test)]
mod tests;
