//! Reads the rollouts of Codex's CLI, desktop app and editor extension, in all versions of the format.
//!
//! Texts and tool calls come from response items. Events add which messages a person typed, token counts and errors.
//! Records that a fork copied from another thread are skipped. For sessions with deleted rollouts, the prompts are
//! read from the prompt history.

mod event;
mod find;
mod history;
mod inherited;
mod prompt;
mod reading;
mod record;
mod title;
mod tokens;
mod waiting;

use crate::agent::document;
use crate::agent::json_lines::JsonLines;
use crate::format::{Emit, FormatError, Reader};
use crate::session::Session;
use steno_vault::Bundle;

pub(crate) use self::find::recognises;

/// The agent's name.
pub const AGENT: &str = "codex";

/// Finds and reads its sessions.
pub const READER: Reader = Reader { agent: AGENT, find: find::find, read };

fn read(bundle: &Bundle, emit: Emit<'_>) -> Result<Session, FormatError> {
    if let (true, Some(excerpt), Some(id)) =
        (bundle.is_only_told(), bundle.excerpts.last(), &bundle.key)
    {
        return history::read(excerpt, id, emit);
    }
    let source = document::only_source(bundle)?;
    let origin = prompt::Origin::of(source)?;
    let mut reading = reading::Reading::new(source.path(), origin, emit);
    for line in JsonLines::new(source.path(), find::open(source)?) {
        reading.line(line);
    }
    let mut session = reading.finish();
    if let Some(id) = &session.native_id {
        session.title = title::of(bundle, source.path(), id).or(session.title);
    }
    Ok(session)
}

#[cfg(test)]
mod tests;
