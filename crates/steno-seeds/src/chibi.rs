//! chibi's contexts: JSON Lines with sender and recipient, an archive, an inbox and debug files.
//!
//! Reads the files of all releases, and writes the documented layout. Entries survive a round trip: fields that one
//! side lacks are stored under one key of the other side's metadata.

mod context;
mod context_files;
mod context_line;
mod context_lock;
mod context_name;
mod context_reader;
mod context_writer;
mod debug_file;
mod inbox;
mod line_conversion;
mod log;
mod markdown;
mod merge;
mod partition;
mod records;
mod responses;
mod traffic_lines;
mod unix_second;

pub use context::{ChibiContext, ContextError, read_context_lines};
pub use context_files::find_contexts;
pub use context_line::ContextLine;
pub use context_lock::{ContextLockStatus, context_lock_status};
pub use context_name::{ContextName, ContextNameError};
pub use context_reader::read_context;
pub use context_writer::{lines_from_transcript, write_context};
pub use debug_file::ChibiDebugFile;
pub use inbox::{InboxMessage, prepend_messages};
pub use line_conversion::{entry_from_line, line_from_entry};
pub use log::{ChibiLogStyle, render_log, select_lines};
pub use markdown::render_markdown;
pub use traffic_lines::DebugLineEncoder;

use steno_agents::agent::Agent;
use steno_agents::agent::nearby::NearbyRules;
use steno_agents::reader::FormatReader;
use steno_model::entry::{Entry, EntryError};
use steno_model::json::{Object, Value};

/// The agent's name.
pub const AGENT_NAME: &str = "chibi";

/// The reader of these files.
pub const READER: FormatReader =
    FormatReader { agent: AGENT_NAME, find: find_contexts, read: context_reader::emit_context };

/// What is known about chibi.
pub(crate) const AGENT: Agent = Agent {
    nearby: NearbyRules {
        session_folder_files: &[
            context_files::CONTEXT_FILE,
            context_files::OLD_CONTEXT_FILE,
            context_files::LOG_FILE,
            context_files::MARKDOWN_FILE,
            context_files::ARCHIVE_FILE,
        ],
        ..NearbyRules::NONE
    },
    ..Agent::new("chibi", &READER)
};

/// Whether a record is a line of a context, an inbox or a debug file.
pub fn is_chibi_record(object: &Object) -> bool {
    is_message_record(object) || ChibiDebugFile::detect(object).is_some()
}

/// Decodes the entries of one such record.
pub fn decode_record(object: Object) -> Result<Vec<Entry>, EntryError> {
    let entry = if ChibiDebugFile::detect(&object).is_some() {
        debug_file::entry_from_debug_line(object)?
    } else if object.contains_key("entry_type") {
        entry_from_line(ContextLine::from_object(object)?)
    } else {
        inbox::entry_from_inbox_line(object)?
    };
    Ok(vec![entry])
}

fn is_message_record(object: &Object) -> bool {
    let text = |field: &str| object.get(field).is_some_and(Value::is_string);
    let has_texts = ["id", "from", "to", "content"].into_iter().all(text);
    let has_valid_type = text("entry_type") || !object.contains_key("entry_type");
    has_texts && has_valid_type && object.get("timestamp").is_some_and(Value::is_number)
}

#[cfg(test)]
mod tests;
