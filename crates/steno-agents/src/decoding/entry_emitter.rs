//! Numbers the entries of one session and emits them at once.
//!
//! `SessionEmitter` adds the session and the source. `AgentMessage` collects entries that share fields of their
//! message. Readers that learn the session id late, or read several sessions at once, use `EntryNumbering` directly.

use crate::reader::{ItemSink, ReaderItem};
use steno_model::entry::Entry;
use steno_model::numbering::EntryNumbering;
use steno_model::problem::Problem;

/// Numbers the entries of one session and emits them.
pub(crate) struct EntryEmitter<'a> {
    numbering: EntryNumbering,
    emit: ItemSink<'a>,
}

impl<'a> EntryEmitter<'a> {
    /// An emitter for one session of one agent.
    pub(crate) fn new(agent: &str, session: &str, emit: ItemSink<'a>) -> Self {
        Self { numbering: EntryNumbering::new(agent, session), emit }
    }

    /// Emits one entry.
    pub(crate) fn emit_entry(&mut self, mut entry: Entry) {
        self.numbering.assign_number(&mut entry);
        (self.emit)(ReaderItem::Entry(Box::new(entry)));
    }

    /// Emits the problem of a record that could not be read.
    pub(crate) fn emit_problem(&mut self, problem: Problem) {
        (self.emit)(ReaderItem::Problem(problem));
    }
}
