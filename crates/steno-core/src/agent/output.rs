//! Where the entries of one session go: each gets its number and is handed on at once.
//!
//! `Telling` adds the session and who speaks; `Message` adds entries that share what their message states. Readers
//! that learn a session's name only on the way, or read several at once, keep a `Numbering` of their own.

use crate::entry::{Entry, Numbering};
use crate::format::{Emit, Item};
use crate::problem::Problem;

/// Numbers the entries of one session and hands them out.
pub(crate) struct Output<'a> {
    numbering: Numbering,
    emit: Emit<'a>,
}

impl<'a> Output<'a> {
    /// Output of one session of one agent.
    pub(crate) fn new(agent: &str, session: &str, emit: Emit<'a>) -> Self {
        Self { numbering: Numbering::new(agent, session), emit }
    }

    /// Hands out one entry.
    pub(crate) fn entry(&mut self, mut entry: Entry) {
        self.numbering.assign(&mut entry);
        (self.emit)(Item::Entry(Box::new(entry)));
    }

    /// Reports a record that could not be read.
    pub(crate) fn problem(&mut self, problem: Problem) {
        (self.emit)(Item::Problem(problem));
    }
}
