//! A session that is loaded: what its own row states, and then its entries, part by part.
//!
//! Its own row and the name of its new rows need the last entry. So a session of several parts is read twice, rather than
//! held in memory.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use steno_model::Session;
use steno_store::index::session_rows::{EntryRecord, SessionRows, UsageRecord};
use steno_vault::SessionDir;

use crate::team_error::TeamError;

/// Size of a part in memory.
const MAX_PART_BYTES: usize = 8 << 20;

/// A session without its entries.
pub(super) struct SessionScan {
    pub(super) heading: Session,
    /// How many entries it has.
    pub(super) entries: usize,
    /// The hash over all of them.
    pub(super) last_digest: Option<[u8; 16]>,
    /// The hash over the first of them, as many as were asked for.
    pub(super) counted_digest: Option<[u8; 16]>,
    pub(super) usage: Vec<UsageRecord>,
    /// All entries, if they are few.
    only_part: Option<SessionRows>,
}

/// Some consecutive entries of a session.
pub(super) struct SessionPart<'a> {
    rows: &'a SessionRows,
    /// When the session started, in milliseconds since 1970.
    pub(super) started: Option<i64>,
}

impl SessionPart<'_> {
    /// The entries from this number on, with their numbers.
    pub(super) fn entries_from(&self, from: usize) -> impl Iterator<Item = (usize, &EntryRecord)> {
        let skipped = from.saturating_sub(self.rows.first_number);
        (self.rows.first_number..).zip(&self.rows.entries).skip(skipped)
    }
}

impl SessionScan {
    /// Reads a session. `count` is for [`Self::counted_digest`].
    pub(super) fn read(dir: &SessionDir, count: usize) -> Result<Self, TeamError> {
        let mut scan = Self {
            heading: Session::new(dir.id().clone(), dir.agent()),
            entries: 0,
            last_digest: None,
            counted_digest: None,
            usage: Vec::new(),
            only_part: None,
        };
        let mut messages = HashMap::new();
        SessionRows::read_in_parts(dir, MAX_PART_BYTES, &mut |mut rows| {
            let counted = count.checked_sub(rows.first_number + 1);
            let counted = counted.and_then(|at| rows.entries.get(at)).map(|entry| entry.digest);
            scan.counted_digest = scan.counted_digest.or(counted);
            scan.last_digest = rows.entries.last().map(|entry| entry.digest).or(scan.last_digest);
            scan.entries = rows.end_number();
            for record in std::mem::take(&mut rows.usage) {
                scan.add_usage(record, &mut messages);
            }
            if !rows.is_part {
                scan.heading = rows.session.clone();
                scan.only_part = (rows.first_number == 0).then_some(rows);
            }
            true
        })?;
        Ok(scan)
    }

    /// Adds usage. The records of a message can be in two parts, so its counts are raised.
    fn add_usage(&mut self, record: UsageRecord, messages: &mut HashMap<[u8; 16], usize>) {
        match messages.entry(record.key) {
            Entry::Vacant(free) => {
                free.insert(self.usage.len());
                self.usage.push(record);
            }
            Entry::Occupied(known) => {
                let known = &mut self.usage[*known.get()];
                for (count, other) in known.tokens.iter_mut().zip(record.tokens) {
                    *count = other.max(*count);
                }
                known.band = known.band.max(record.band);
                known.model = known.model.take().or(record.model);
            }
        }
    }

    /// Passes all entries to `take`, part by part.
    pub(super) fn for_each_part(
        &self,
        dir: &SessionDir,
        take: &mut dyn FnMut(SessionPart<'_>) -> Result<(), TeamError>,
    ) -> Result<(), TeamError> {
        let started = self.heading.started.map(|at| at.instant().as_millisecond());
        if let Some(rows) = &self.only_part {
            return take(SessionPart { rows, started });
        }
        let mut result = Ok(());
        SessionRows::read_in_parts(dir, MAX_PART_BYTES, &mut |rows| {
            result = take(SessionPart { rows: &rows, started });
            result.is_ok()
        })?;
        result
    }
}
