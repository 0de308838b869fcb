//! Takes a session out of the vault into the index, however large it is: what was read is put in whenever it is much.
//!
//! A part goes in only after all before it. Until the last one the session counts as not whole, so what a crash leaves
//! is taken up by the next refresh.

use super::draft::{Draft, Prepared};
use super::{Index, IndexError};
use crate::entry::Entry;
use crate::format::{FormatError, Item};
use crate::problem::Problem;
use crate::session::Session;
use crate::vault::SessionDir;
use crate::vault::record::RecordReader;
use crate::vault::run_reading::RecordedItem;

/// How often a session is begun anew when its first entries turn out to be others in the index.
const ATTEMPTS: usize = 3;

impl Index {
    /// Reads a session from the vault. One that is too large to be held is put in at once: nothing is left of it.
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
        // What grew while it was read is read again.
        let kept = Some(size).filter(|size| dir.size().ok() == Some(*size));
        match read {
            Ok(told) => parts.finish(told, kept, &faults),
            Err(error) => {
                // What the system refused may be readable the next time.
                let kept = kept.filter(|_| !error.is_of_system());
                let unreadable = Prepared::unreadable(parts.whose, error.to_string(), kept);
                Ok(Attempt::Held(Box::new(unreadable)))
            }
        }
    }
}

/// What became of a session.
enum Attempt {
    /// It is at hand whole.
    Held(Box<Prepared>),
    /// All of it is in the index.
    IsIn,
    /// What the index has of it is something else by now.
    Overtaken,
}

/// What was read of a session beside its entries.
enum Told {
    /// What its source states; the entries tell more.
    Stated(Session),
    /// All that is known of it.
    All(Session),
    /// The same; where it states no tokens, the entries have them.
    AllButTokens(Session),
}

/// A session that is read.
struct Parts<'a> {
    index: &'a Index,
    dir: &'a SessionDir,
    /// Only its names.
    whose: Session,
    draft: Draft,
    /// Whether all parts so far are in.
    are_in: Result<bool, IndexError>,
}

impl Parts<'_> {
    /// Reads the session item by item; damage costs what it hit.
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
        let stated = dir.stream_files(&mut |item| {
            if let Item::Entry(entry) = item {
                self.push(*entry);
            }
        })?;
        let Session { id, agent, .. } = self.whose.clone();
        Ok(Told::Stated(Session { id, agent, ..stated }))
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
        told: Told,
        kept: Option<u64>,
        faults: &[Problem],
    ) -> Result<Attempt, IndexError> {
        let mut are_in = std::mem::replace(&mut self.are_in, Ok(true))?;
        let is_parted = self.draft.is_parted();
        if are_in && is_parted {
            // The totals hold once every message is out.
            are_in = self.put_part()?;
        }
        let session = match told {
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
