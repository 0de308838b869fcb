//! OpenTelemetry: spans of the GenAI conventions and agent logs as OTLP JSON, one document or one per line.
//!
//! A session is a conversation (`gen_ai.conversation.id`) or, without one, a trace. Each request repeats the
//! conversation, so only its new messages become entries. Files list spans by their end. The reader first notes the
//! byte range of each span, then reads them in order of their start.

mod conversation;
mod log_record;
mod logs;
mod marks;
mod message;
mod outline;
mod span;

use self::conversation::Conversation;
use self::outline::Outline;
use super::document;
use super::head::Head;
use super::output::Output;
use crate::durable::FileError;
use crate::format::tree::Tree;
use crate::format::{Emit, FormatError, Reader};
use crate::problem::Problem;
use crate::session::{Session, SessionId};
use steno_vault::Bundle;

/// The agent's name.
pub const AGENT: &str = "otel";

/// Finds and reads its sessions.
pub const READER: Reader = Reader { agent: AGENT, find, read };

fn find(tree: &Tree) -> Result<Vec<Bundle>, FileError> {
    let mut bundles = Vec::new();
    for file in tree.files() {
        bundles.extend(sessions_in(Bundle::file(file))?);
    }
    Ok(bundles)
}

/// One bundle for each session in a file of spans or of logs; no key where there is only one.
pub(crate) fn sessions_in(file: Bundle) -> Result<Vec<Bundle>, FileError> {
    let head = Head::of_document(&file.sources[0])?;
    let sessions = if is_log(&head) {
        logs::sessions(&file.sources[0])?
    } else if head.field("resourceSpans").is_some_and(|spans| spans.contains("\"gen_ai.")) {
        match Outline::of([&file.sources[0]], &mut |_| {}) {
            Ok(outline) => outline.sessions(),
            // Reading it says why it cannot be.
            Err(_) => return Ok(vec![file]),
        }
    } else {
        return Ok(Vec::new());
    };
    let has_several = sessions.len() > 1;
    let keys = sessions.into_iter().map(|session| has_several.then_some(session));
    Ok(keys.map(|key| Bundle { key, ..file.clone() }).collect())
}

fn is_log(head: &Head) -> bool {
    head.field("resourceLogs").is_some_and(|logs| {
        log_record::PREFIXES.iter().any(|prefix| logs.contains(&format!("\"{prefix}")))
    })
}

fn read(bundle: &Bundle, emit: Emit<'_>) -> Result<Session, FormatError> {
    let source = document::only_source(bundle)?;
    if is_log(&Head::of_document(source)?) {
        return logs::read(bundle, source, emit);
    }
    // A rotated file continues the one before it.
    let sources = [source].into_iter().chain(bundle.earlier.iter().rev());
    let mut outline = Outline::of(sources, emit)?;
    let invalid = || FormatError::Invalid(Problem::of(source.path(), "no GenAI spans"));
    let native_id = bundle.key.clone().or_else(|| outline.sessions().into_iter().next());
    let native_id = native_id.ok_or_else(invalid)?;
    outline.choose(&native_id);
    let mut session = Session::new(SessionId::for_native(AGENT, &native_id), AGENT);
    let mut output = Output::new(AGENT, &native_id, emit);
    session.native_id = Some(native_id);
    let mut conversation = Conversation::new(&outline, &mut output);
    outline.each(|span| conversation.span(span))?;
    session.models.extend(conversation.models);
    Ok(session)
}

#[cfg(test)]
mod tests;
