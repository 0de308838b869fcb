//! A session on its way into the index. Entries are collected as they are read, before any lock is taken.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::blocks::{Hash, hash};
use super::text;
use crate::cost::bill::{Bill, BillOrigin, Bills};
use crate::entry::{Entry, Kind, Role, Usage};
use crate::session::{Session, SessionId};
use crate::usage::Tally;

/// Size limit of a draft. A larger session is written in parts.
pub(super) const ROOM: usize = 32 << 20;

/// Approximate size of a row without its text.
pub(super) const ROW: usize = 512;

/// Collects the entries of one session.
#[derive(Debug)]
pub struct Draft {
    /// How many entries were already taken out as parts.
    parted: usize,
    /// The tokens of those entries.
    tally: Tally,
    rows: Vec<Row>,
    /// Hash over all entries so far, and over those already taken out.
    digest: Option<Hash>,
    before: Option<Hash>,
    texts: HashMap<Hash, String, RandomState>,
    bills: Bills,
    /// Session facts derived from the entries.
    told: Session,
    size: usize,
    /// The session that states the total of tokens, where that is another.
    total_origin: Option<BillOrigin>,
}

/// An entry as a row of the index.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) time: Option<i64>,
    pub(super) role: Role,
    pub(super) kind: Kind,
    pub(super) tool: Option<String>,
    pub(super) model: Option<String>,
    pub(super) source: String,
    pub(super) message: Option<String>,
    pub(super) parent: Option<String>,
    pub(super) failed: bool,
    pub(super) text: Option<Hash>,
    /// Hash over this entry and all before it.
    pub(super) digest: Hash,
}

/// A session, or a part of one, ready to be written to the index.
#[derive(Debug)]
pub struct Prepared {
    /// For a part, only its agent and id are set.
    pub(super) session: Session,
    /// Whether more of the session follows.
    pub(super) is_part: bool,
    /// The number of the first row.
    pub(super) first: usize,
    /// Hash over all entries before the first row.
    pub(super) before: Option<Hash>,
    pub(super) rows: Vec<Row>,
    pub(super) texts: HashMap<Hash, String, RandomState>,
    pub(super) bills: Vec<Bill>,
    /// Sum of the usage of all messages.
    pub(super) billed: Usage,
    /// The session that states the total of tokens, where that is another.
    pub(super) total_origin: Option<BillOrigin>,
    pub(super) trouble: Option<String>,
    /// The session's size in the vault, if exactly that was read.
    pub(super) kept: Option<u64>,
    pub(super) size: usize,
}

impl Default for Draft {
    fn default() -> Self {
        let nobody: SessionId = "draft".parse().expect("a plain word");
        Self {
            parted: 0,
            tally: Tally::default(),
            rows: Vec::new(),
            digest: None,
            before: None,
            texts: HashMap::default(),
            bills: Bills::default(),
            told: Session::new(nobody, ""),
            size: 0,
            total_origin: None,
        }
    }
}

impl Draft {
    /// Adds the next entry.
    pub fn push(&mut self, entry: Entry) {
        self.told.note_facts(&entry);
        self.bills.take(&entry, self.len());
        let usage = entry.usage;
        let (mut row, text) = Row::of(entry);
        row.text = (!text.trim().is_empty()).then(|| self.text(text));
        row.digest = self.digest_with(&row, usage.as_ref());
        self.digest = Some(row.digest);
        self.rows.push(row);
    }

    /// The messages that follow were billed in the session `origin`; without one, in the session itself.
    pub(super) fn begin_origin(&mut self, origin: Option<BillOrigin>) {
        let first = self.len();
        self.bills.begin_origin(origin, first);
    }

    /// The session's total of tokens is that of the session `origin`.
    pub(super) fn set_total_origin(&mut self, origin: Option<BillOrigin>) {
        self.total_origin = origin;
    }

    /// How many entries were added.
    pub fn len(&self) -> usize {
        self.parted + self.rows.len()
    }

    /// Whether no entry was added.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the draft has reached its size limit.
    pub fn is_full(&self) -> bool {
        self.holds() >= ROOM
    }

    /// Approximate size in bytes.
    pub(super) fn holds(&self) -> usize {
        self.size + self.rows.len() * ROW
    }

    /// Whether parts were taken out.
    pub(super) fn is_parted(&self) -> bool {
        self.parted > 0
    }

    /// Takes out the entries since the last part as a part of session `whose`.
    pub(super) fn part(&mut self, whose: &Session) -> Prepared {
        let mut rest = Self {
            parted: self.len(),
            tally: std::mem::take(&mut self.tally),
            digest: self.digest,
            before: self.digest,
            told: self.told.clone(),
            bills: self.bills.emptied(),
            ..Self::default()
        };
        for bill in &self.bills.all {
            rest.tally.bill(bill.message.as_ref(), bill.at, &bill.usage);
        }
        let part = std::mem::replace(self, rest).finish(whose.clone(), None);
        Prepared { is_part: true, ..part }
    }

    /// Completes the session as read with the facts derived from its entries.
    pub fn complete(&self, session: Session) -> Session {
        let mut facts = self.told.clone();
        facts.totals.usage = self.total();
        session.completed_by(facts)
    }

    /// The whole session. `kept` is its size in the vault, if exactly that was read.
    pub fn finish(self, session: Session, kept: Option<u64>) -> Prepared {
        let size = self.holds();
        Prepared {
            session,
            is_part: false,
            first: self.parted,
            before: self.before,
            billed: self.total(),
            rows: self.rows,
            texts: self.texts,
            bills: self.bills.all,
            total_origin: self.total_origin,
            trouble: None,
            kept,
            size,
        }
    }

    /// Total usage so far. It is complete only after the last part was taken out.
    pub(super) fn total(&self) -> Usage {
        let mut total = self.tally.total();
        total.add(&self.bills.total());
        total
    }

    fn text(&mut self, text: String) -> Hash {
        let hash = hash(&text);
        let size = text.len();
        if let std::collections::hash_map::Entry::Vacant(free) = self.texts.entry(hash) {
            free.insert(text);
            self.size += size;
        }
        hash
    }

    fn digest_with(&self, row: &Row, usage: Option<&Usage>) -> Hash {
        let mut bytes = Vec::with_capacity(512);
        bytes.extend(self.digest.iter().flatten());
        let texts = [Some(row.role.as_str()), Some(&row.source)].into_iter().chain(
            [&row.tool, &row.model, &row.message, &row.parent].map(|field| field.as_deref()),
        );
        for text in texts {
            let text = text.unwrap_or("\u{0}");
            bytes.extend((text.len() as u64).to_le_bytes());
            bytes.extend(text.as_bytes());
        }
        bytes.extend([row.kind as u8, u8::from(row.failed)]);
        bytes.extend(row.time.unwrap_or(i64::MIN).to_le_bytes());
        bytes.extend(row.text.unwrap_or_default());
        for number in usage.map(Usage::numbers).unwrap_or_default() {
            bytes.extend(number.to_le_bytes());
        }
        let mut digest = Hash::default();
        digest.copy_from_slice(&blake3::hash(&bytes).as_bytes()[..16]);
        digest
    }
}

impl Row {
    /// Builds the row of an entry, and returns its text separately.
    fn of(mut entry: Entry) -> (Self, String) {
        let failed = entry.kind == Kind::Error || entry.is_tool_error();
        let text = text::take(&mut entry);
        let row = Self {
            time: entry.created_at.map(|at| at.instant().as_millisecond()),
            role: entry.role,
            kind: entry.kind,
            tool: entry.tool_name,
            model: entry.model,
            source: entry.source,
            message: entry.message_id,
            parent: entry.parent_id,
            failed,
            text: None,
            digest: Hash::default(),
        };
        (row, text)
    }
}

impl Prepared {
    /// A session that could not be read.
    pub fn unreadable(session: Session, reason: String, kept: Option<u64>) -> Self {
        Self {
            session,
            is_part: false,
            first: 0,
            before: None,
            rows: Vec::new(),
            texts: HashMap::default(),
            bills: Vec::new(),
            billed: Usage::default(),
            total_origin: None,
            trouble: Some(reason),
            kept,
            size: 0,
        }
    }

    /// The number after the last row.
    pub(super) fn end(&self) -> usize {
        self.first + self.rows.len()
    }

    /// Hash over the first `count` entries, if known here.
    pub(super) fn digest(&self, count: usize) -> Option<Hash> {
        match count.checked_sub(self.first)? {
            0 => self.before,
            own => self.rows.get(own - 1).map(|row| row.digest),
        }
    }

    /// Approximate size in bytes.
    pub fn size(&self) -> usize {
        self.size
    }
}
