//! Reads Claude Code's sessions: one JSON Lines file per session, and one per subagent.
//!
//! Also reads web exports (`{"loglines":[…]}`), Claude Desktop's sessions, and the prompt history, which is all
//! that remains of purged sessions. Records from before a compaction stay in the file and are read too.

mod billing;
mod blocks;
mod convert;
mod facts;
mod find;
mod history;
mod links;
mod loose;
mod probe;
mod prompt;
mod purged;
mod record;
mod usage;

#[cfg(test)]
mod tests;

use std::path::Path;

use serde::Deserialize;
use serde_json::value::RawValue;

pub(crate) use self::probe::recognises;

use self::billing::Billing;
use self::convert::Converter;
use self::facts::Facts;
use self::probe::Known;
use self::record::Record;
use crate::agent::json_lines::JsonLines;
use crate::entry::{Numbering, PRIMARY};
use crate::format::{Emit, FormatError, Item, Reader, entries_to};
use crate::json::Object;
use crate::problem::{Problem, json_reason};
use crate::session::{Session, SessionId};
use steno_vault::{Bundle, Source, Wanted};

/// The agent's name.
pub const AGENT: &str = "claude-code";

/// How many bytes of each text are read when only counts are needed. Longer than any id.
const BRIEF: usize = 256;

/// Finds and reads its sessions.
pub const READER: Reader = Reader { agent: AGENT, find: find::find, read };

/// Reads the session's main file, then its subagents' files.
fn read(bundle: &Bundle, emit: Emit<'_>) -> Result<Session, FormatError> {
    if let Some(excerpt) = bundle.excerpts.last().filter(|_| bundle.is_only_told()) {
        return history::read(excerpt, bundle.key.as_deref(), emit);
    }
    let Some(main) = find::main_source(bundle) else {
        return read_subagents(bundle, emit);
    };
    let kind = probe::probe(main)?;
    if let Some(Known::History) = kind {
        return history::read(main, None, emit);
    }
    let native_id = find::native_id(main.name(), kind.as_ref());
    let mut reading = Reading::new(&native_id, bundle.wanted, emit);
    reading.converter.speaker = find::agent_id(main.name()).map(|_| PRIMARY.to_owned());
    match kind {
        Some(Known::Export) => reading.export(main)?,
        _ => reading.file(main)?,
    }
    let facts = std::mem::take(&mut reading.facts);
    let others = bundle.sources.iter().filter(|source| source.name() != main.name());
    let subagent_files = reading.subagents(others);
    reading.finish();
    let mut session = Session::new(SessionId::for_native(AGENT, &native_id), AGENT);
    session.native_id = Some(native_id);
    session.subagent_files = subagent_files;
    facts.fill(&mut session);
    if let (Some(_), Some(Known::Session(parent))) = (find::agent_id(main.name()), kind) {
        session.parent = parent;
    }
    add_sidecar(&mut session, bundle);
    Ok(session)
}

/// Reads a session of which only subagent files exist: the main file is not written yet, or was deleted.
fn read_subagents(bundle: &Bundle, emit: Emit<'_>) -> Result<Session, FormatError> {
    if bundle.sources.is_empty() {
        return Err(FormatError::Invalid(Problem::of(&bundle.root, "no file in it")));
    }
    let native_id = find::native_id(&bundle.root.to_string_lossy(), None);
    let mut reading = Reading::new(&native_id, bundle.wanted, emit);
    let subagent_files = reading.subagents(&bundle.sources);
    let facts = std::mem::take(&mut reading.facts);
    reading.finish();
    let mut session = Session::new(SessionId::for_native(AGENT, &native_id), AGENT);
    session.native_id = Some(native_id);
    session.subagent_files = subagent_files;
    facts.fill(&mut session);
    Ok(session)
}

/// Fills in metadata from sidecar files: a subagent's type and task, Claude Desktop's title.
fn add_sidecar(session: &mut Session, bundle: &Bundle) {
    let sidecars = bundle.sources.iter().filter(|source| find::is_sidecar(source.name(), bundle));
    for sidecar in sidecars {
        let fields = sidecar.bytes().ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let mut fields: Object = fields.unwrap_or_default();
        if session.title.is_none() {
            session.title = fields.get("title").and_then(|title| title.as_str()).map(str::to_owned);
        }
        for name in ["agentType", "description", "toolUseId", "parentAgentId", "isArchived"] {
            session.extra.extend(fields.shift_remove_entry(name));
        }
    }
}

/// Decodes the files of one session into entries.
struct Reading<'e> {
    converter: Converter,
    billing: Billing,
    facts: Facts,
    detail: Wanted,
    emit: Emit<'e>,
}

#[derive(Deserialize)]
struct Export<'a> {
    #[serde(borrow)]
    loglines: Vec<&'a RawValue>,
}

impl<'e> Reading<'e> {
    fn new(native_id: &str, detail: Wanted, emit: Emit<'e>) -> Self {
        let mut converter = Converter::new(Numbering::new(AGENT, native_id));
        converter.tools.without_input = detail != Wanted::All;
        let (billing, facts) = (Billing::default(), Facts::default());
        Self { converter, billing, facts, detail, emit }
    }

    fn file(&mut self, source: &Source) -> Result<(), FormatError> {
        JsonLines::of(source)?.each(|number, line| match line {
            Ok(bytes) => self.line(source.path(), number, bytes),
            Err(problem) => (self.emit)(Item::Problem(problem)),
        });
        Ok(())
    }

    /// Reads the subagent files among `sources` and returns their number.
    fn subagents<'s>(&mut self, sources: impl IntoIterator<Item = &'s Source>) -> u64 {
        let mut count = 0;
        for source in sources {
            if let Some(agent) = find::agent_id(source.name()) {
                self.converter.speaker = Some(format!("subagent:{agent}"));
                self.side_file(source);
                count += 1;
            }
        }
        count
    }

    /// Reads a subagent's file. A failure is reported as a problem; the session is read without it.
    fn side_file(&mut self, source: &Source) {
        if let Err(error) = self.file(source) {
            (self.emit)(Item::Problem(Problem::of(source.path(), error)));
        }
    }

    fn export(&mut self, source: &Source) -> Result<(), FormatError> {
        let bytes = source.bytes()?;
        let export: Export<'_> = serde_json::from_slice(&bytes).map_err(|error| {
            FormatError::Invalid(Problem::of(source.path(), json_reason(&error)))
        })?;
        for (number, record) in (1..).zip(export.loglines) {
            self.line(source.path(), number, record.get().as_bytes());
        }
        Ok(())
    }

    /// Decodes the records of a line: one, or several if the newlines between them were lost.
    fn line(&mut self, path: &Path, number: u64, bytes: &[u8]) {
        if self.detail == Wanted::Bills && self.facts.has_project() && !record::has_bill(bytes) {
            return;
        }
        let mut rest = bytes.trim_ascii();
        while !rest.is_empty() {
            match self.record(number, rest) {
                Ok(length) => rest = rest[length..].trim_ascii_start(),
                Err(reason) => {
                    let repaired = record::mended(rest);
                    if repaired.is_none_or(|repaired| self.record(number, &repaired).is_err()) {
                        self.problem(path, number, &reason);
                    }
                    return;
                }
            }
        }
    }

    fn record(&mut self, number: u64, bytes: &[u8]) -> Result<usize, String> {
        let limit = if self.detail == Wanted::All { usize::MAX } else { BRIEF };
        let (record, length) = Record::first_of(bytes, limit)?;
        let at = record.timestamp.text().and_then(|text| text.parse().ok());
        self.facts.note(&record, at);
        let line = convert::Line { record, raw: &bytes[..length], number, at };
        let (entries, bill) = self.converter.convert(line);
        self.billing.take(entries, bill, &mut entries_to(self.emit));
        Ok(length)
    }

    fn problem(&mut self, path: &Path, number: u64, reason: &str) {
        (self.emit)(Item::Problem(Problem::at(path, number, reason)));
    }

    fn finish(mut self) {
        self.billing.close(&mut entries_to(self.emit));
    }
}
