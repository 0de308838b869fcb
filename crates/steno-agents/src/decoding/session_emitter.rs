//! Emits the entries of one session with its source, and tracks the start and end of the session.

use crate::decoding::entry_emitter::EntryEmitter;
use crate::reader::ItemSink;
use steno_model::entry::{Entry, PRIMARY_SOURCE};
use steno_model::problem::Problem;
use steno_model::session::{Session, SessionId};
use steno_model::timestamp::Timestamp;

/// Numbers entries of a session and emits them.
pub(crate) struct SessionEmitter<'a> {
    /// Facts about the session.
    pub(crate) session: Session,
    /// The source of the following entries.
    pub(crate) source: String,
    output: EntryEmitter<'a>,
}

impl<'a> SessionEmitter<'a> {
    /// Starts a session with the agent's id for it.
    pub(crate) fn new(agent: &str, native_id: &str, emit: ItemSink<'a>) -> Self {
        let mut session = Session::new(SessionId::for_native(agent, native_id), agent);
        session.native_id = Some(native_id.to_owned());
        let output = EntryEmitter::new(agent, native_id, emit).naming_results();
        Self { session, source: PRIMARY_SOURCE.to_owned(), output }
    }

    /// Emits an entry.
    pub(crate) fn emit_entry(&mut self, mut entry: Entry) {
        entry.source.clone_from(&self.source);
        self.output.emit_entry(entry);
    }

    /// Emits the problem of a record that could not be read.
    pub(crate) fn emit_problem(&mut self, problem: Problem) {
        self.output.emit_problem(problem);
    }

    /// Extends the session's time span to include `at`. Times of subagents are ignored.
    pub(crate) fn note_time(&mut self, at: Option<Timestamp>) {
        let Some(at) = at.filter(|_| self.source == PRIMARY_SOURCE) else { return };
        let session = &mut self.session;
        if session.started.is_none_or(|started| at.instant() < started.instant()) {
            session.started = Some(at);
        }
        if session.ended.is_none_or(|ended| at.instant() > ended.instant()) {
            session.ended = Some(at);
        }
    }
}
