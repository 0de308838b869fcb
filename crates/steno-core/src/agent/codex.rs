//! Codex: the rollouts of its command line, desktop app and editor extension, in every form that they had.
//!
//! Texts and tools come from response items; events only say which messages a person wrote, how many tokens were
//! billed and what went wrong. What a fork copied from another thread is that thread's, and is passed over. Of sessions whose
//! rollouts are gone, the history of prompts tells what was asked.

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
    if let (true, Some(told), Some(id)) =
        (bundle.is_only_told(), bundle.excerpts.last(), &bundle.key)
    {
        return history::read(told, id, emit);
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
