//! Indexes a session from the vault, whatever its size. A large session is written in parts.
//!
//! A part is written only after all parts before it. The session counts as incomplete until the last one, so the next
//! refresh resumes after a crash.

use super::damaged_sessions::describe_damage;
use super::session_draft::{IndexedDamage, PreparedSession, SessionDraft};
use super::{Index, IndexError};
use crate::transcript::record_reader::RecordReader;
use crate::transcript::run_reading::RecordedItem;
use crate::transcript::{read_files_and_record, stream_files, stream_record};
use steno_agents::reader::{FormatError, ReaderItem};
use steno_model::entry::Entry;
use steno_model::problem::{Problem, ProblemList};
use steno_model::session::Session;
use steno_vault::SessionDir;

/// How often to start over when the index has other first entries for the session.
const MAX_ATTEMPTS: usize = 3;

impl Index {
    /// Reads a session from the vault. Returns `None` if the session was so large that it is already written.
    pub fn read_session(&self, dir: &SessionDir) -> Result<Option<PreparedSession>, IndexError> {
        for _ in 0..MAX_ATTEMPTS {
            match self.try_read_session(dir)? {
                SessionReadOutcome::Prepared(prepared) => return Ok(Some(*prepared)),
                SessionReadOutcome::Indexed => return Ok(None),
                SessionReadOutcome::Conflict => {}
            }
        }
        Err(IndexError::ConcurrentChange(dir.path().to_owned()))
    }

    fn try_read_session(&self, dir: &SessionDir) -> Result<SessionReadOutcome, IndexError> {
        read_in_parts(dir, self.batch_bytes, &mut |part| self.write_all_sessions(&[part]))
    }
}

/// Reads a session from the vault. One that takes more than `max_part_bytes` is passed to `write_part` in parts, and the
/// rest as the last of them.
pub(super) fn read_in_parts(
    dir: &SessionDir,
    max_part_bytes: usize,
    write_part: &mut PartWriter<'_>,
) -> Result<SessionReadOutcome, IndexError> {
    let size = dir.stored_size()?;
    let session_names = Session::new(dir.id().clone(), dir.agent());
    let mut parts = SessionIndexer {
        max_part_bytes,
        write_part,
        dir,
        session_names,
        draft: SessionDraft::default(),
        damage: ProblemList::default(),
        are_parts_written: Ok(true),
    };
    let read = parts.read_items();
    let faults = dir.find_faults()?;
    // A session that grew while it was read is read again later.
    let kept = Some(size).filter(|size| dir.stored_size().ok() == Some(*size));
    let problem = describe_damage(&parts.damage, &faults);
    match read {
        Ok(facts) => {
            let damage = problem.map(|problem| IndexedDamage::new(problem, dir)).transpose()?;
            parts.finish(facts, kept, damage)
        }
        Err(error) => {
            // A system error may be temporary, so the next refresh tries again.
            let kept = kept.filter(|_| !error.is_system_error());
            let problem = problem.unwrap_or_else(|| error.to_string());
            let damage = IndexedDamage::new(problem, dir)?;
            let unreadable = PreparedSession::new_unreadable(parts.session_names, damage, kept);
            Ok(SessionReadOutcome::Prepared(Box::new(unreadable)))
        }
    }
}

/// Writes one part after the other. Returns whether the part, and so the next one, can be written.
pub(super) type PartWriter<'a> = dyn FnMut(PreparedSession) -> Result<bool, IndexError> + 'a;

/// The result of reading a session.
pub(super) enum SessionReadOutcome {
    /// Read completely, and not yet written.
    Prepared(Box<PreparedSession>),
    /// Already written in parts.
    Indexed,
    /// A part could not be written, as there are other entries by now.
    Conflict,
}

/// Session facts beside the entries.
enum ReadSessionFacts {
    /// Facts from the session files; the entries add more.
    Incomplete(Session),
    /// All facts.
    Complete(Session),
    /// All facts but the usage, which the entries have.
    WithoutTokens(Session),
}

/// Reads one session and writes it in parts.
struct SessionIndexer<'a, 'w> {
    max_part_bytes: usize,
    write_part: &'a mut PartWriter<'w>,
    dir: &'a SessionDir,
    /// Only agent and id.
    session_names: Session,
    draft: SessionDraft,
    /// Damage of the vault found while reading. Problems of the agent's own records do not count.
    damage: ProblemList,
    /// Whether all parts so far are written.
    are_parts_written: Result<bool, IndexError>,
}

impl SessionIndexer<'_, '_> {
    /// Reads the session item by item. Damage loses only the damaged records.
    fn read_items(&mut self) -> Result<ReadSessionFacts, FormatError> {
        let dir = self.dir;
        if !dir.is_imported()? {
            let reader = RecordReader::new(dir.id(), dir.agent());
            let mut total_origin = None;
            let session = stream_record(dir, reader, false, &mut |item| match item {
                RecordedItem::Item(item) => self.push_item(item),
                RecordedItem::Origin(origin) => {
                    total_origin = origin.clone().or(total_origin.take());
                    self.draft.begin_origin(origin);
                }
            })?;
            if !session.totals.usage.is_empty() {
                self.draft.set_total_origin(total_origin);
            }
            return Ok(ReadSessionFacts::WithoutTokens(session));
        }
        if dir.is_recorded()? {
            let transcript = read_files_and_record(dir)?;
            transcript.entries.into_iter().for_each(|entry| self.push_entry(entry));
            transcript.problems.into_iter().for_each(|problem| self.push_problem(problem));
            return Ok(ReadSessionFacts::Complete(transcript.session));
        }
        let session = stream_files(dir, &mut |item| self.push_item(item))?;
        let Session { id, agent, .. } = self.session_names.clone();
        Ok(ReadSessionFacts::Incomplete(Session { id, agent, ..session }))
    }

    fn push_item(&mut self, item: ReaderItem) {
        match item {
            ReaderItem::Entry(entry) => self.push_entry(*entry),
            ReaderItem::Problem(problem) => self.push_problem(problem),
        }
    }

    fn push_problem(&mut self, problem: Problem) {
        if problem.is_damage() {
            self.damage.push(problem);
        }
    }

    fn push_entry(&mut self, entry: Entry) {
        if matches!(self.are_parts_written, Ok(true)) {
            self.draft.push(entry);
            if self.draft.held_bytes() >= self.max_part_bytes {
                self.are_parts_written = self.write_part();
            }
        }
    }

    fn write_part(&mut self) -> Result<bool, IndexError> {
        let part = self.draft.take_part(&self.session_names);
        (self.write_part)(part)
    }

    fn finish(
        mut self,
        facts: ReadSessionFacts,
        kept: Option<u64>,
        damage: Option<IndexedDamage>,
    ) -> Result<SessionReadOutcome, IndexError> {
        let mut are_in = std::mem::replace(&mut self.are_parts_written, Ok(true))?;
        let is_parted = self.draft.has_parts();
        if are_in && is_parted {
            // Totals are correct only after the last message was taken out.
            are_in = self.write_part()?;
        }
        let session = match facts {
            ReadSessionFacts::Incomplete(session) => self.draft.complete_session(session),
            ReadSessionFacts::Complete(session) => session,
            ReadSessionFacts::WithoutTokens(mut session) => {
                if session.totals.usage.is_empty() {
                    session.totals.usage = self.draft.total_usage();
                }
                session
            }
        };
        let mut last = self.draft.finish(session, kept);
        last.damage = damage;
        if !is_parted {
            return Ok(SessionReadOutcome::Prepared(Box::new(last)));
        }
        let is_in = are_in && (self.write_part)(last)?;
        Ok(if is_in { SessionReadOutcome::Indexed } else { SessionReadOutcome::Conflict })
    }
}
