//! What a reader tells of one session while it reads: entries with their numbers, problems, times.

use crate::agent::output::Output;
use crate::entry::{Entry, PRIMARY};
use crate::format::Emit;
use crate::problem::Problem;
use crate::session::{Session, SessionId};
use crate::timestamp::Timestamp;

/// Numbers what a reader finds and hands it on.
pub(crate) struct Telling<'a> {
    /// What the source states about the session.
    pub(crate) session: Session,
    /// Who is speaking.
    pub(crate) speaker: String,
    output: Output<'a>,
}

impl<'a> Telling<'a> {
    /// Begins to tell of a session that its agent calls `native_id`.
    pub(crate) fn new(agent: &str, native_id: &str, emit: Emit<'a>) -> Self {
        let mut session = Session::new(SessionId::for_native(agent, native_id), agent);
        session.native_id = Some(native_id.to_owned());
        let output = Output::new(agent, native_id, emit);
        Self { session, speaker: PRIMARY.to_owned(), output }
    }

    /// Tells of an entry.
    pub(crate) fn entry(&mut self, mut entry: Entry) {
        entry.source.clone_from(&self.speaker);
        self.output.entry(entry);
    }

    /// Tells of a record that could not be read.
    pub(crate) fn problem(&mut self, problem: Problem) {
        self.output.problem(problem);
    }

    /// Widens the session's time to include `at`.
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
