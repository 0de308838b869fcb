//! Emits the entries of one session with its source, and tracks the start and end of the session.

use crate::agent::output::Output;
use crate::entry::{Entry, PRIMARY};
use crate::format::Emit;
use crate::problem::Problem;
use crate::session::{Session, SessionId};
use crate::timestamp::Timestamp;

/// Numbers entries of a session and emits them.
pub(crate) struct Telling<'a> {
    /// Facts about the session.
    pub(crate) session: Session,
    /// The source of the following entries.
    pub(crate) speaker: String,
    output: Output<'a>,
}

impl<'a> Telling<'a> {
    /// Starts a session with the agent's id for it.
    pub(crate) fn new(agent: &str, native_id: &str, emit: Emit<'a>) -> Self {
        let mut session = Session::new(SessionId::for_native(agent, native_id), agent);
        session.native_id = Some(native_id.to_owned());
        let output = Output::new(agent, native_id, emit);
        Self { session, speaker: PRIMARY.to_owned(), output }
    }

    /// Emits an entry.
    pub(crate) fn entry(&mut self, mut entry: Entry) {
        entry.source.clone_from(&self.speaker);
        self.output.entry(entry);
    }

    /// Emits the problem of a record that could not be read.
    pub(crate) fn problem(&mut self, problem: Problem) {
        self.output.problem(problem);
    }

    /// Extends the session's time span to include `at`. Times of subagents are ignored.
    pub(crate) fn time(&mut self, at: Option<Timestamp>) {
        let Some(at) = at.filter(|_| self.speaker == PRIMARY) else { return };
        let session = &mut self.session;
        if session.started.is_none_or(|started| at.instant() < started.instant()) {
            session.started = Some(at);
        }
        if session.ended.is_none_or(|ended| at.instant() > ended.instant()) {
            session.ended = Some(at);
        }
    }
}
