//! The Agent Client Protocol: the wire log that `steno acp` records, and the conversation decoded from it.
//!
//! The log holds each line of both sides verbatim and is the only stored copy. Entries are decoded from it on every
//! read, so an improved decoder also improves sessions recorded earlier.

mod content_block;
mod conversation_builder;
pub mod message_header;
pub mod redact;
mod rpc_message;
pub mod session_router;
pub mod wire;

use std::path::PathBuf;

use self::wire::WireLine;
use crate::agent::Agent;
use crate::decoding::json_lines::JsonLines;
use crate::decoding::session_emitter::SessionEmitter;
use crate::reader::file_tree::FileTree;
use crate::reader::{FormatError, FormatReader, ItemSink, ReaderItem};
use steno_model::durable::{FileError, OnPath};
use steno_model::entry::Entry;
use steno_model::lines::LineReader;
use steno_model::problem::Problem;
use steno_model::session::Session;
use steno_model::timestamp::Timestamp;
use steno_vault::{SessionBundle, SessionFile};

pub use self::content_block::{blocks_text, diff_text};
pub use self::conversation_builder::{AcpConversationBuilder, BrokenTurn};

/// The agent name that recorders use for sessions of this protocol, and for logs that name no agent.
pub const AGENT_NAME: &str = "acp";

/// Finds and reads wire logs exported from the vault.
pub const READER: FormatReader =
    FormatReader { agent: AGENT_NAME, find: find_sessions, read: read_session };

/// What is known about recordings of the Agent Client Protocol.
pub(crate) const AGENT: Agent = Agent::new("Agent Client Protocol recordings", &READER);

/// Metadata key of the last entry of a turn: why the turn ended.
pub const STOP_REASON_KEY: &str = "stop_reason";

/// Metadata key of a prompt: the mode that the client set before sending it.
pub const PROMPT_MODE_KEY: &str = "mode";

/// A metadata field that came from the wire, both for pure wire entries and for those joined with the agent's own
/// files.
pub fn wire_metadata<'a>(entry: &'a Entry, name: &str) -> Option<&'a str> {
    let metadata = entry.metadata.as_ref()?;
    let joined = || metadata.get(AGENT_NAME)?.get(name);
    metadata.get(name).or_else(joined)?.as_str()
}

/// Number of lines to probe for a wire record.
const MAX_PROBED_LINES: usize = 20;

/// Longest line to probe, in bytes.
const MAX_PROBED_LINE_BYTES: usize = 1 << 20;

fn find_sessions(tree: &FileTree) -> Result<Vec<SessionBundle>, FileError> {
    let mut bundles = Vec::new();
    let is_lines = |file: &&PathBuf| file.extension().is_some_and(|end| end == "jsonl");
    for file in tree.files().iter().filter(is_lines) {
        let bundle = SessionBundle::from_file(file);
        if is_acp_log(&bundle.files[0])? {
            bundles.push(bundle);
        }
    }
    Ok(bundles)
}

fn is_acp_log(source: &SessionFile) -> Result<bool, FileError> {
    for line in LineReader::with_limit(source.open()?, MAX_PROBED_LINE_BYTES).take(MAX_PROBED_LINES)
    {
        let line = line.on("read", source.path())?;
        if !wire::starts_like_log_line(&line.bytes) {
            return Ok(false);
        }
        if wire::parse_log_line(&line.bytes).is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

fn read_session(bundle: &SessionBundle, emit: ItemSink<'_>) -> Result<Session, FormatError> {
    let Some(source) = bundle.files.first() else {
        return Err(FormatError::Invalid(Problem::for_file(&bundle.root, "no session file")));
    };
    let mut fold = AcpConversationBuilder::default();
    JsonLines::open(source)?.for_each_line(|number, line| match line {
        Ok(bytes) if wire::is_recorder_line(bytes) => {}
        Ok(bytes) => match wire::parse_log_line(bytes) {
            Some((at, wire)) => fold.add_line(at, &wire),
            None => {
                let problem = Problem::at_line(source.path(), number, "not a wire record");
                emit(ReaderItem::Problem(problem));
            }
        },
        Err(problem) => emit(ReaderItem::Problem(problem)),
    });
    let (facts, entries) = fold.finish();
    let name = facts.native_id.clone();
    let name = name.unwrap_or_else(|| source.path().to_string_lossy().into_owned());
    let mut emitter = SessionEmitter::new(AGENT_NAME, &name, emit);
    for entry in entries {
        emitter.note_time(entry.created_at);
        emitter.source.clone_from(&entry.source);
        emitter.emit_entry(entry);
    }
    let mut session = emitter.session;
    facts.fill_session(&mut session);
    Ok(session)
}

/// Facts about a session that its wire log states.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AcpSessionFacts {
    /// The session's id in the protocol.
    pub(crate) native_id: Option<String>,
    pub(crate) project: Option<String>,
    pub(crate) title: Option<String>,
    pub(crate) parent: Option<String>,
    pub(crate) stop_reason: Option<String>,
    /// Total cost of the session in dollars, if the agent reports it.
    pub(crate) cost: Option<f64>,
    /// Client and agent info, protocol version, and context use.
    pub(crate) details: steno_model::json::Object,
}

impl AcpSessionFacts {
    /// Fills in fields that the session does not have yet.
    pub fn fill_session(self, session: &mut Session) {
        session.native_id = session.native_id.take().or(self.native_id);
        session.project = self.project.or(session.project.take());
        session.title = session.title.take().or(self.title);
        session.parent = session.parent.take().or(self.parent);
        session.stop_reason = session.stop_reason.take().or(self.stop_reason);
        session.totals.cost = session.totals.cost.or(self.cost);
        if !self.details.is_empty() {
            session.extra.insert("acp".to_owned(), self.details.into());
        }
    }
}

/// The result of decoding a whole wire log.
pub(crate) type FoldedSession = (AcpSessionFacts, Vec<Entry>);

/// A wire line and the time at which it was recorded.
pub(crate) type TimedWireLine = (Option<Timestamp>, WireLine);

#[cfg(test)]
mod tests;
