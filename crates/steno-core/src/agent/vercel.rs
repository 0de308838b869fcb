//! Chats of the Vercel AI SDK: a list of `UIMessage`s, alone or as `messages` of a document.
//!
//! What an application keeps beside them is its own; only the fields that the SDK defines are read.

mod message;

use crate::agent::fields::text;
use crate::agent::head::Head;
use crate::agent::output::Output;
use crate::agent::{document, repair};
use crate::durable::FileError;
use crate::format::tree::Tree;
use crate::format::{Emit, FormatError, Reader};
use crate::json::Value;
use crate::problem::Problem;
use crate::session::{Session, SessionId};
use crate::source::{Bundle, Source};

/// The agent's name.
pub const AGENT: &str = "vercel";

/// Finds and reads its sessions.
pub const READER: Reader = Reader { agent: AGENT, find, read };

fn find(tree: &Tree) -> Result<Vec<Bundle>, FileError> {
    let bundles = tree.files().iter().map(|file| Bundle::file(file));
    Ok(bundles.filter(|bundle| is_chat(&bundle.sources[0])).collect())
}

fn is_chat(source: &Source) -> bool {
    let Ok(head) = Head::of_document(source) else { return false };
    if !head.shows("\"role\"") || !(head.shows("\"parts\"") || head.shows("\"toolInvocations\"")) {
        return false;
    }
    let parsed = source.bytes().ok().and_then(|bytes| repair::parse(&bytes).ok());
    parsed.is_some_and(|document: Value| {
        let messages = messages(&document);
        !messages.is_empty() && messages.iter().all(message::is_message)
    })
}

fn messages(document: &Value) -> &[Value] {
    let list = document.as_array().or(document.get("messages").and_then(Value::as_array));
    list.map(Vec::as_slice).unwrap_or_default()
}

fn read(bundle: &Bundle, emit: Emit<'_>) -> Result<Session, FormatError> {
    let source = document::only_source(bundle)?;
    let document = document::parse(source)?;
    let session = session(&document);
    let mut output = Output::new(AGENT, session.id.as_str(), emit);
    for message in messages(&document) {
        let Value::Object(message) = message else {
            output.problem(Problem::of(source.path(), "a message is not a JSON object"));
            continue;
        };
        message::entries(message).into_iter().for_each(|entry| output.entry(entry));
    }
    Ok(session)
}

/// The chat's own name, or that of its first message.
fn session(document: &Value) -> Session {
    let own = document.as_object().and_then(|document| text(document, "id"));
    let first = messages(document).first().and_then(Value::as_object);
    let name = own.or(first.and_then(|first| text(first, "id"))).unwrap_or_default();
    let mut session = Session::new(SessionId::for_native(AGENT, name), AGENT);
    session.native_id = own.map(str::to_owned);
    session.title = document.get("title").and_then(Value::as_str).map(str::to_owned);
    session
}

#[cfg(test)]
mod tests;
