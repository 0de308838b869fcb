//! Reads the rollouts of Codex's CLI, desktop app and editor extension, in all versions of the format.
//!
//! Texts and tool calls come from response items. Events add which messages a person typed, token counts and errors.
//! Records that a fork copied from another thread are skipped. For sessions with deleted rollouts, the prompts are
//! read from the prompt history.

mod discovery;
mod event;
mod history;
mod inherited_history;
mod pending_entries;
mod prompt;
mod record;
mod rollout_decoder;
mod thread_title;
mod token_counter;

use crate::decoding::document;
use crate::decoding::json_lines::JsonLines;
use crate::reader::{FormatError, FormatReader, ItemSink};
use steno_model::session::Session;
use steno_vault::SessionBundle;

pub use self::discovery::recognises;

/// The agent's name.
pub const AGENT: &str = "codex";

/// Finds and reads its sessions.
pub const READER: FormatReader =
    FormatReader { agent: AGENT, find: discovery::find_sessions, read: read_session };

fn read_session(bundle: &SessionBundle, emit: ItemSink<'_>) -> Result<Session, FormatError> {
    if let (true, Some(excerpt), Some(id)) =
        (bundle.has_only_excerpts(), bundle.excerpts.last(), &bundle.key)
    {
        return history::read_history(excerpt, id, emit);
    }
    let source = document::only_file(bundle)?;
    let origin = prompt::CodexPromptMarker::detect_in(source)?;
    let mut reading = rollout_decoder::CodexRolloutDecoder::new(source.path(), origin, emit);
    for line in JsonLines::new(source.path(), discovery::open_rollout(source)?) {
        reading.decode_line(line);
    }
    let mut session = reading.finish();
    if let Some(id) = &session.native_id {
        session.title = thread_title::find_title(bundle, source.path(), id).or(session.title);
    }
    Ok(session)
}

#[cfg(test)]
mod tests;
