//! The Agent Client Protocol: the wire log that `steno acp` records, and the conversation decoded from it.
//!
//! The log holds each line of both sides verbatim and is the only stored copy. Entries are decoded from it on every
//! read, so an improved decoder also improves sessions recorded earlier.

pub mod address;
mod block;
mod fold;
mod message;
pub mod redact;
pub mod route;
pub mod wire;

use std::path::PathBuf;

use self::wire::Wire;
use super::json_lines::JsonLines;
use super::telling::Telling;
use crate::durable::{FileError, OnPath};
use crate::entry::Entry;
use crate::format::tree::Tree;
use crate::format::{Emit, FormatError, Item, Reader};
use crate::lines::Lines;
use crate::problem::Problem;
use crate::session::Session;
use crate::timestamp::Timestamp;
use steno_vault::{Bundle, Source};

pub use self::block::{diff, texts};
pub(crate) use self::fold::{BrokenTurn, Fold};

/// The agent name that recorders use for sessions of this protocol, and for logs that name no agent.
pub const AGENT: &str = "acp";

/// Finds and reads wire logs exported from the vault.
pub const READER: Reader = Reader { agent: AGENT, find, read };

/// Metadata key of the last entry of a turn: why the turn ended.
pub(crate) const STOP_REASON: &str = "stop_reason";

/// Metadata key of a prompt: the mode that the client set before sending it.
pub(crate) const PROMPT_MODE: &str = "mode";

/// A metadata field that came from the wire, both for pure wire entries and for those joined with the agent's own
/// files.
pub(crate) fn wire_note<'a>(entry: &'a Entry, name: &str) -> Option<&'a str> {
    let metadata = entry.metadata.as_ref()?;
    let joined = || metadata.get(AGENT)?.get(name);
    metadata.get(name).or_else(joined)?.as_str()
}

/// Number of lines to probe for a wire record.
const PROBED: usize = 20;

/// Longest line to probe, in bytes.
const PROBED_BYTES: usize = 1 << 20;

fn find(tree: &Tree) -> Result<Vec<Bundle>, FileError> {
    let mut bundles = Vec::new();
    let is_lines = |file: &&PathBuf| file.extension().is_some_and(|end| end == "jsonl");
    for file in tree.files().iter().filter(is_lines) {
        let bundle = Bundle::file(file);
        if is_log(&bundle.sources[0])? {
            bundles.push(bundle);
        }
    }
    Ok(bundles)
}

fn is_log(source: &Source) -> Result<bool, FileError> {
    for line in Lines::with_limit(source.open()?, PROBED_BYTES).take(PROBED) {
        let line = line.on("read", source.path())?;
        if !wire::begins_as_in_log(&line.bytes) {
            return Ok(false);
        }
        if wire::in_log(&line.bytes).is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

fn read(bundle: &Bundle, emit: Emit<'_>) -> Result<Session, FormatError> {
    let Some(source) = bundle.sources.first() else {
        return Err(FormatError::Invalid(Problem::of(&bundle.root, "no session file")));
    };
    let mut fold = Fold::default();
    JsonLines::of(source)?.each(|number, line| match line {
        Ok(bytes) if wire::is_own_word(bytes) => {}
        Ok(bytes) => match wire::in_log(bytes) {
            Some((at, wire)) => fold.take(at, &wire),
            None => {
                let problem = Problem::at(source.path(), number, "not a wire record");
                emit(Item::Problem(problem));
            }
        },
        Err(problem) => emit(Item::Problem(problem)),
    });
    let (facts, entries) = fold.finish();
    let name = facts.native_id.clone();
    let name = name.unwrap_or_else(|| source.path().to_string_lossy().into_owned());
    let mut emitter = Telling::new(AGENT, &name, emit);
    for entry in entries {
        emitter.time(entry.created_at);
        emitter.speaker.clone_from(&entry.source);
        emitter.entry(entry);
    }
    let mut session = emitter.session;
    facts.fill(&mut session);
    Ok(session)
}

/// Facts about a session that its wire log states.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Facts {
    /// The session's id in the protocol.
    pub(crate) native_id: Option<String>,
    pub(crate) project: Option<String>,
    pub(crate) title: Option<String>,
    pub(crate) parent: Option<String>,
    pub(crate) stop_reason: Option<String>,
    /// Total cost of the session in dollars, if the agent reports it.
    pub(crate) cost: Option<f64>,
    /// Client and agent info, protocol version, and context use.
    pub(crate) about: crate::json::Object,
}

impl Facts {
    /// Fills in fields that the session does not have yet.
    pub(crate) fn fill(self, session: &mut Session) {
        session.native_id = session.native_id.take().or(self.native_id);
        session.project = self.project.or(session.project.take());
        session.title = session.title.take().or(self.title);
        session.parent = session.parent.take().or(self.parent);
        session.stop_reason = session.stop_reason.take().or(self.stop_reason);
        session.totals.cost = session.totals.cost.or(self.cost);
        if !self.about.is_empty() {
            session.extra.insert("acp".to_owned(), self.about.into());
        }
    }
}

/// The result of decoding a whole wire log.
pub(crate) type Folded = (Facts, Vec<Entry>);

/// A wire line and the time at which it was recorded.
pub(crate) type Heard = (Option<Timestamp>, Wire);

#[cfg(test)]
mod tests;
