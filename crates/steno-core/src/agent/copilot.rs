//! GitHub Copilot CLI: the event log of a session, `session-state/<id>/events.jsonl` or `session-state/<id>.jsonl`.
//!
//! Before there were events, `history-session-state/session_….json`. Subagents speak in the same file and are told apart by the tool call that started them.

mod legacy;
mod reading;
mod tokens;

use std::io::BufRead;

use crate::agent::document;
use crate::agent::json_lines::JsonLines;
use crate::durable::FileError;
use crate::format::tree::Tree;
use crate::format::{Emit, FormatError, Reader};
use crate::json::{Object, Value, bounds};
use crate::lines::Lines;
use crate::session::Session;
use steno_vault::{Bundle, Source};

/// The agent's name.
pub const AGENT: &str = "copilot";

/// Finds and reads its sessions.
pub const READER: Reader = Reader { agent: AGENT, find, read };

/// How many lines are looked at before a file is taken for something else.
const PROBED_LINES: usize = 5;

/// The longest line that is looked at for that.
const PROBED_BYTES: usize = 8 << 20;

fn find(tree: &Tree) -> Result<Vec<Bundle>, FileError> {
    let bundles = tree.files().iter().map(|file| Bundle::file(file));
    Ok(bundles.filter(|bundle| recognises(&bundle.sources[0])).collect())
}

/// Whether a file is a session, of any version.
pub(crate) fn recognises(source: &Source) -> bool {
    is_event_log(source) || legacy::recognises(source)
}

/// Whether a file is a session of the first versions.
pub(crate) fn recognises_document(source: &Source) -> bool {
    legacy::recognises(source)
}

fn is_event_log(source: &Source) -> bool {
    let Ok(mut input) = source.open() else {
        return false;
    };
    if !input.fill_buf().is_ok_and(|start| start.trim_ascii_start().starts_with(b"{")) {
        return false;
    }
    let lines = Lines::with_limit(input, PROBED_BYTES).map_while(Result::ok);
    let mut objects = lines.take(PROBED_LINES).filter_map(|line| {
        let object: Option<Object> = bounds::from_slice(&line.bytes).ok();
        object
    });
    objects.any(|object| is_event(&object))
}

/// An event has a dotted type, its data, an id and the id of the event before it.
fn is_event(object: &Object) -> bool {
    let dotted = object.get("type").and_then(Value::as_str).is_some_and(|kind| kind.contains('.'));
    dotted
        && object.get("data").is_some_and(Value::is_object)
        && object.get("id").is_some_and(Value::is_string)
        && object.get("timestamp").is_some_and(Value::is_string)
        && object.contains_key("parentId")
}

fn read(bundle: &Bundle, emit: Emit<'_>) -> Result<Session, FormatError> {
    let source = document::only_source(bundle)?;
    if legacy::recognises(source) {
        return legacy::read(source, emit);
    }
    let mut reading = reading::Reading::new(source.path(), emit);
    for line in JsonLines::of(source)? {
        reading.line(line);
    }
    Ok(reading.finish())
}

#[cfg(test)]
mod tests;
