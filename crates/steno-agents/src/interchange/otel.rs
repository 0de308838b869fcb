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

use self::conversation::SpanConversation;
use self::outline::SpanOutline;
use crate::agent::Agent;
use crate::agent::record_format::RecordFormat;
use crate::decoding::document;
use crate::decoding::entry_emitter::EntryEmitter;
use crate::decoding::file_head::FileHead;
use crate::reader::file_tree::FileTree;
use crate::reader::{FormatError, FormatReader, ItemSink};
use steno_model::durable::FileError;
use steno_model::problem::Problem;
use steno_model::session::{Session, SessionId};
use steno_vault::SessionBundle;

/// The agent's name.
pub const AGENT_NAME: &str = "otel";

/// Finds and reads its sessions.
pub const READER: FormatReader =
    FormatReader { agent: AGENT_NAME, find: find_sessions, read: read_session };

/// What is known about OpenTelemetry.
pub(crate) const AGENT: Agent = Agent {
    lines: Some(RecordFormat::by_sessions(sessions_in)),
    ..Agent::new("OpenTelemetry spans and logs", &READER)
};

fn find_sessions(tree: &FileTree) -> Result<Vec<SessionBundle>, FileError> {
    let mut bundles = Vec::new();
    for file in tree.files() {
        bundles.extend(sessions_in(SessionBundle::from_file(file))?);
    }
    Ok(bundles)
}

/// One bundle for each session in a file of spans or of logs; no key where there is only one.
pub fn sessions_in(file: SessionBundle) -> Result<Vec<SessionBundle>, FileError> {
    let head = FileHead::read_document(&file.files[0])?;
    let sessions = if is_otlp_log(&head) {
        logs::list_sessions(&file.files[0])?
    } else if head.field_start("resourceSpans").is_some_and(|spans| spans.contains("\"gen_ai.")) {
        match SpanOutline::read([&file.files[0]], &mut |_| {}) {
            Ok(outline) => outline.session_ids(),
            // Reading it says why it cannot be.
            Err(_) => return Ok(vec![file]),
        }
    } else {
        return Ok(Vec::new());
    };
    let has_several = sessions.len() > 1;
    let keys = sessions.into_iter().map(|session| has_several.then_some(session));
    Ok(keys.map(|key| SessionBundle { key, ..file.clone() }).collect())
}

fn is_otlp_log(head: &FileHead) -> bool {
    head.field_start("resourceLogs").is_some_and(|logs| {
        log_record::EVENT_PREFIXES.iter().any(|prefix| logs.contains(&format!("\"{prefix}")))
    })
}

fn read_session(bundle: &SessionBundle, emit: ItemSink<'_>) -> Result<Session, FormatError> {
    let source = document::only_file(bundle)?;
    if is_otlp_log(&FileHead::read_document(source)?) {
        return logs::read_log_session(bundle, source, emit);
    }
    // A rotated file continues the one before it.
    let sources = [source].into_iter().chain(bundle.earlier_files.iter().rev());
    let mut outline = SpanOutline::read(sources, emit)?;
    let invalid = || FormatError::Invalid(Problem::for_file(source.path(), "no GenAI spans"));
    let native_id = bundle.key.clone().or_else(|| outline.session_ids().into_iter().next());
    let native_id = native_id.ok_or_else(invalid)?;
    outline.select_session(&native_id);
    let mut session = Session::new(SessionId::for_native(AGENT_NAME, &native_id), AGENT_NAME);
    let mut output = EntryEmitter::new(AGENT_NAME, &native_id, emit);
    session.native_id = Some(native_id);
    let mut conversation = SpanConversation::new(&outline, &mut output);
    outline.for_each_span(|span| conversation.add_span(span))?;
    session.models.extend(conversation.models);
    Ok(session)
}

#[cfg(test)]
mod tests;
