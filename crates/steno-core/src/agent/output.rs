//! Numbers the entries of one session and emits them at once.
//!
//! `SessionEmitter` adds the session and the source. `AgentMessage` collects entries that share fields of their
//! message. Readers that learn the session id late, or read several sessions at once, use `Numbering` directly.

use crate::entry::{Entry, Numbering};
use crate::format::{Emit, Item};
use crate::problem::Problem;

/// Numbers the entries of one session and emits them.
pub(crate) struct Output<'a> {
    numbering: Numbering,
    emit: Emit<'a>,
}

impl<'a> Output<'a> {
    /// An emitter for one session of one agent.
    pub(crate) fn new(agent: &str, session: &str, emit: Emit<'a>) -> Self {
        Self { numbering: Numbering::new(agent, session), emit }
    }

    /// Emits one entry.
    pub(crate) fn entry(&mut self, mut entry: Entry) {
        self.numbering.assign(&mut entry);
        (self.emit)(Item::Entry(Box::new(entry)));
    }

    /// Emits the problem of a record that could not be read.
    pub(crate) fn problem(&mut self, problem: Problem) {
        (self.emit)(Item::Problem(problem));
    }
}
