//! Indexes a session from the vault, whatever its size. A large session is written in parts.
//!
//! A part is written only after all parts before it. The session counts as incomplete until the last one, so the next
//! refresh resumes after a crash.

use super::draft::{Draft, Prepared};
use super::{Index, IndexError};
use crate::entry::Entry;
use crate::format::{FormatError, Item};
use crate::problem::Problem;
use crate::session::Session;
use crate::vault::SessionDir;
use crate::vault::record::RecordReader;
use crate::vault::run_reading::RecordedItem;

/// How often to start over when the index has other first entries for the session.
const ATTEMPTS: usize = 3;

impl Index {
    /// Reads a session from the vault. Returns `None` if the session was so large that it is already written.
    pub fn take(&self, dir: &SessionDir) -> Result<Option<Prepared>, IndexError> {
        for _ in 0..ATTEMPTS {
            match self.attempt(dir)? {
                Attempt::Held(prepared) => return Ok(Some(*prepared)),
                Attempt::IsIn => return Ok(None),
                Attempt::Overtaken => {}
            }
        }
        Err(IndexError::Overtaken(dir.path().to_owned()))
    }

    fn attempt(&self, dir: &SessionDir) -> Result<Attempt, IndexError> {
        let size = dir.size()?;
        let whose = Session::new(dir.id().clone(), dir.agent());
        let mut parts =
            Parts { index: self, dir, whose, draft: Draft::default(), are_in: Ok(true) };
        let read = parts.read();
        let faults = dir.faults()?;
        // A session that grew while it was read is read again later.
        let kept = Some(size).filter(|size| dir.size().ok() == Some(*size));
        match read {
            Ok(facts) => parts.finish(facts, kept, &faults),
            Err(error) => {
                // A system error may be temporary, so the next refresh tries again.
                let kept = kept.filter(|_| !error.is_of_system());
                let unreadable = Prepared::unreadable(parts.whose, error.to_string(), kept);
                Ok(Attempt::Held(Box::new(unreadable)))
            }
        }
    }
}

/// The result of reading a session.
enum Attempt {
    /// Read completely, and not yet written.
    Held(Box<Prepared>),
    /// Already written to the index.
    IsIn,
    /// The index has other entries for it by now.
    Overtaken,
}

/// Session facts beside the entries.
enum Told {
    /// Facts from the session files; the entries add more.
    Stated(Session),
    /// All facts.
    All(Session),
    /// All facts but the usage, which the entries have.
    AllButTokens(Session),
}

/// Reads one session and writes it to the index.
struct Parts<'a> {
    index: &'a Index,
    dir: &'a SessionDir,
    /// Only agent and id.
    whose: Session,
    draft: Draft,
    /// Whether all parts so far are written.
    are_in: Result<bool, IndexError>,
}

impl Parts<'_> {
    /// Reads the session item by item. Damage loses only the damaged records.
    fn read(&mut self) -> Result<Told, FormatError> {
        let dir = self.dir;
        if !dir.is_imported()? {
            let reader = RecordReader::new(dir.id(), dir.agent()).folding();
            let mut total_origin = None;
            let session = dir.stream_record(reader, false, &mut |item| match item {
                RecordedItem::Item(Item::Entry(entry)) => self.push(*entry),
                RecordedItem::Item(Item::Problem(_)) => {}
                RecordedItem::Origin(origin) => {
                    total_origin = origin.clone().or(total_origin.take());
                    self.draft.begin_origin(origin);
                }
            })?;
            if !session.totals.usage.is_empty() {
                self.draft.set_total_origin(total_origin);
            }
            return Ok(Told::AllButTokens(session));
        }
        if dir.is_recorded()? {
            let transcript = dir.read()?;
            transcript.entries.into_iter().for_each(|entry| self.push(entry));
            return Ok(Told::All(transcript.session));
        }
        let session = dir.stream_files(&mut |item| {
            if let Item::Entry(entry) = item {
                self.push(*entry);
            }
        })?;
        let Session { id, agent, .. } = self.whose.clone();
        Ok(Told::Stated(Session { id, agent, ..session }))
    }

    fn push(&mut self, entry: Entry) {
        if matches!(self.are_in, Ok(true)) {
            self.draft.push(entry);
            if self.draft.holds() >= self.index.room {
                self.are_in = self.put_part();
            }
        }
    }

    fn put_part(&mut self) -> Result<bool, IndexError> {
        let part = self.draft.part(&self.whose);
        self.index.put_all(&[part])
    }

    fn finish(
        mut self,
        facts: Told,
        kept: Option<u64>,
        faults: &[Problem],
    ) -> Result<Attempt, IndexError> {
        let mut are_in = std::mem::replace(&mut self.are_in, Ok(true))?;
        let is_parted = self.draft.is_parted();
        if are_in && is_parted {
            // Totals are correct only after the last message was taken out.
            are_in = self.put_part()?;
        }
        let session = match facts {
            Told::Stated(session) => self.draft.complete(session),
            Told::All(session) => session,
            Told::AllButTokens(mut session) => {
                if session.totals.usage.is_empty() {
                    session.totals.usage = self.draft.total();
                }
                session
            }
        };
        let mut last = self.draft.finish(session, kept);
        last.trouble = faults.first().map(|fault| fault.to_string());
        if !is_parted {
            return Ok(Attempt::Held(Box::new(last)));
        }
        let is_in = are_in && self.index.put_all(&[last])?;
        Ok(if is_in { Attempt::IsIn } else { Attempt::Overtaken })
    }
}
