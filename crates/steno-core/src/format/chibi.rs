//! chibi's contexts: JSON Lines with sender and recipient, an archive, an inbox and debug files.
//!
//! Reads the files of all releases, and writes the documented layout. Entries survive a round trip: fields that one
//! side lacks are stored under one key of the other side's metadata.

mod context;
mod convert;
mod debug;
mod find;
mod inbox;
mod line;
mod lock;
mod log;
mod markdown;
mod merge;
mod name;
mod partition;
mod read;
mod records;
mod responses;
mod second;
mod write;

pub use context::{Context, ContextError, lines};
pub use convert::{entry_of, line_of};
pub use debug::DebugFile;
pub use find::find;
pub use inbox::{Message, inject};
pub use line::Line;
pub use lock::{LockStatus, lock_status};
pub use log::{LogStyle, render as render_log, select};
pub use markdown::render as render_markdown;
pub use name::{ContextName, ContextNameError};
pub use read::read;
pub use write::{lines_of_transcript, write};

use crate::entry::{Entry, EntryError};
use crate::format::{Reader, emit_all};
use crate::json::{Object, Value};

/// The agent's name.
pub const AGENT: &str = "chibi";

/// The reader of these files.
pub const READER: Reader =
    Reader { agent: AGENT, find, read: |bundle, emit| Ok(emit_all(read(bundle)?, emit)) };

/// Whether a record is a line of a context, an inbox or a debug file.
pub fn recognises(object: &Object) -> bool {
    is_message(object) || DebugFile::of(object).is_some()
}

/// Decodes the entries of one such record.
pub fn entries(object: Object) -> Result<Vec<Entry>, EntryError> {
    let entry = if DebugFile::of(&object).is_some() {
        debug::entry_of(object)?
    } else if object.contains_key("entry_type") {
        entry_of(Line::from_object(object)?)
    } else {
        inbox::entry_of(object)?
    };
    Ok(vec![entry])
}

fn is_message(object: &Object) -> bool {
    let text = |field: &str| object.get(field).is_some_and(Value::is_string);
    let has_texts = ["id", "from", "to", "content"].into_iter().all(text);
    let has_valid_type = text("entry_type") || !object.contains_key("entry_type");
    has_texts && has_valid_type && object.get("timestamp").is_some_and(Value::is_number)
}

#[cfg(test)]
mod tests;
