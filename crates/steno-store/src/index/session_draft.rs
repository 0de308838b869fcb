//! A session on its way into the index. Entries are collected as they are read, before any lock is taken.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::entry_text;
use super::text_blocks::{TextHash, hash_text};
use crate::cost::bill::{MessageBill, SessionBills};
use crate::transcript::run_reading::RecordOrigin;
use steno_model::durable::FileError;
use steno_model::entry::{Entry, EntryKind, Role, Usage};
use steno_model::session::{Session, SessionId};
use steno_model::usage_tally::UsageTally;
use steno_vault::SessionDir;

/// Size limit of a draft. A larger session is written in parts.
pub(super) const MAX_DRAFT_BYTES: usize = 32 << 20;

/// Approximate size of a row without its text.
pub(super) const ROW_OVERHEAD_BYTES: usize = 512;

/// Collects the entries of one session.
#[derive(Debug)]
pub struct SessionDraft {
    /// How many entries were already taken out as parts.
    parted_entries: usize,
    /// The tokens of those entries.
    tally: UsageTally,
    rows: Vec<IndexedEntry>,
    /// Hash over all entries so far, and over those already taken out.
    digest: Option<TextHash>,
    digest_before: Option<TextHash>,
    texts: HashMap<TextHash, String, RandomState>,
    bills: SessionBills,
    /// Session facts derived from the entries.
    entry_facts: Session,
    text_bytes: usize,
    /// The session that states the total of tokens, where that is another.
    total_origin: Option<RecordOrigin>,
}

/// An entry as a row of the index.
#[derive(Debug)]
pub(super) struct IndexedEntry {
    pub(super) time: Option<i64>,
    pub(super) role: Role,
    pub(super) kind: EntryKind,
    pub(super) tool: Option<String>,
    pub(super) model: Option<String>,
    pub(super) source: String,
    pub(super) is_failure: bool,
    pub(super) text: Option<TextHash>,
    /// Hash over this entry and all before it.
    pub(super) digest: TextHash,
}

/// A session, or a part of one, ready to be written to the index.
#[derive(Debug)]
pub struct PreparedSession {
    /// For a part, only its agent and id are set.
    pub(super) session: Session,
    /// Whether more of the session follows.
    pub(super) is_part: bool,
    /// The number of the first row.
    pub(super) first_number: usize,
    /// Hash over all entries before the first row.
    pub(super) digest_before: Option<TextHash>,
    pub(super) rows: Vec<IndexedEntry>,
    pub(super) texts: HashMap<TextHash, String, RandomState>,
    pub(super) bills: Vec<MessageBill>,
    /// Sum of the usage of all messages.
    pub(super) billed_usage: Usage,
    /// The session that states the total of tokens, where that is another.
    pub(super) total_origin: Option<RecordOrigin>,
    /// Why the session is incomplete.
    pub(super) damage: Option<IndexedDamage>,
    /// The session's size in the vault, if exactly that was read.
    pub(super) vault_bytes: Option<u64>,
    pub(super) size_bytes: usize,
}

/// Why the vault does not have all of a session, or why it cannot be read.
#[derive(Debug)]
pub(super) struct IndexedDamage {
    pub(super) problem: String,
    /// The stamp of the session's files when they were read ([`SessionDir::files_stamp`]).
    pub(super) files_stamp: i64,
}

impl IndexedDamage {
    pub(super) fn new(problem: String, dir: &SessionDir) -> Result<Self, FileError> {
        Ok(Self { problem, files_stamp: dir.files_stamp()? })
    }
}

impl Default for SessionDraft {
    fn default() -> Self {
        let nobody: SessionId = "draft".parse().expect("a plain word");
        Self {
            parted_entries: 0,
            tally: UsageTally::default(),
            rows: Vec::new(),
            digest: None,
            digest_before: None,
            texts: HashMap::default(),
            bills: SessionBills::default(),
            entry_facts: Session::new(nobody, ""),
            text_bytes: 0,
            total_origin: None,
        }
    }
}

impl SessionDraft {
    /// Adds the next entry.
    pub fn push(&mut self, mut entry: Entry) {
        self.entry_facts.add_entry_facts(&entry);
        self.bills.add_entry(&entry, self.len());
        let (usage, message) = (entry.usage, entry.message_id.take());
        let (mut row, text) = IndexedEntry::from_entry(entry);
        row.text = (!text.trim().is_empty()).then(|| self.add_text(text));
        row.digest = self.digest_entry(&row, message.as_deref(), usage.as_ref());
        self.digest = Some(row.digest);
        self.rows.push(row);
    }

    /// The messages that follow were billed in the session `origin`; without one, in the session itself.
    pub(super) fn begin_origin(&mut self, origin: Option<RecordOrigin>) {
        let first = self.len();
        self.bills.begin_origin(origin, first);
    }

    /// The session's total of tokens is that of the session `origin`.
    pub(super) fn set_total_origin(&mut self, origin: Option<RecordOrigin>) {
        self.total_origin = origin;
    }

    /// How many entries were added.
    pub fn len(&self) -> usize {
        self.parted_entries + self.rows.len()
    }

    /// Whether no entry was added.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the draft has reached its size limit.
    pub fn is_full(&self) -> bool {
        self.held_bytes() >= MAX_DRAFT_BYTES
    }

    /// Approximate size in bytes.
    pub(super) fn held_bytes(&self) -> usize {
        self.text_bytes + self.rows.len() * ROW_OVERHEAD_BYTES
    }

    /// Whether parts were taken out.
    pub(super) fn has_parts(&self) -> bool {
        self.parted_entries > 0
    }

    /// Takes out the entries since the last part, as a part of `session`.
    pub(super) fn take_part(&mut self, session: &Session) -> PreparedSession {
        let mut rest = Self {
            parted_entries: self.len(),
            tally: std::mem::take(&mut self.tally),
            digest: self.digest,
            digest_before: self.digest,
            entry_facts: self.entry_facts.clone(),
            bills: self.bills.emptied(),
            ..Self::default()
        };
        for bill in &self.bills.bills {
            rest.tally.count_message(bill.message.as_ref(), bill.at, &bill.usage);
        }
        let part = std::mem::replace(self, rest).finish(session.clone(), None);
        PreparedSession { is_part: true, ..part }
    }

    /// Completes the session as read with the facts derived from its entries.
    pub fn complete_session(&self, session: Session) -> Session {
        let mut facts = self.entry_facts.clone();
        facts.totals.usage = self.total_usage();
        session.completed_with(facts)
    }

    /// The whole session. `kept` is its size in the vault, if exactly that was read.
    pub fn finish(self, session: Session, kept: Option<u64>) -> PreparedSession {
        let size = self.held_bytes();
        PreparedSession {
            session,
            is_part: false,
            first_number: self.parted_entries,
            digest_before: self.digest_before,
            billed_usage: self.total_usage(),
            rows: self.rows,
            texts: self.texts,
            bills: self.bills.bills,
            total_origin: self.total_origin,
            damage: None,
            vault_bytes: kept,
            size_bytes: size,
        }
    }

    /// Total usage so far. It is complete only after the last part was taken out.
    pub(super) fn total_usage(&self) -> Usage {
        let mut total = self.tally.total();
        total.add(&self.bills.total_usage());
        total
    }

    fn add_text(&mut self, text: String) -> TextHash {
        let hash = hash_text(&text);
        let size = text.len();
        if let std::collections::hash_map::Entry::Vacant(free) = self.texts.entry(hash) {
            free.insert(text);
            self.text_bytes += size;
        }
        hash
    }

    fn digest_entry(
        &self,
        row: &IndexedEntry,
        message: Option<&str>,
        usage: Option<&Usage>,
    ) -> TextHash {
        let mut bytes = Vec::with_capacity(512);
        bytes.extend(self.digest.iter().flatten());
        let (role, source) = (row.role.as_str(), row.source.as_str());
        let texts = [Some(role), Some(source), row.tool.as_deref(), row.model.as_deref(), message];
        for text in texts {
            let text = text.unwrap_or("\u{0}");
            bytes.extend((text.len() as u64).to_le_bytes());
            bytes.extend(text.as_bytes());
        }
        bytes.extend([row.kind as u8, u8::from(row.is_failure)]);
        bytes.extend(row.time.unwrap_or(i64::MIN).to_le_bytes());
        bytes.extend(row.text.unwrap_or_default());
        for number in usage.map(Usage::numbers).unwrap_or_default() {
            bytes.extend(number.to_le_bytes());
        }
        let mut digest = TextHash::default();
        digest.copy_from_slice(&blake3::hash(&bytes).as_bytes()[..16]);
        digest
    }
}

impl IndexedEntry {
    /// Builds the row of an entry, and returns its text separately.
    fn from_entry(mut entry: Entry) -> (Self, String) {
        let failed = entry.kind == EntryKind::Error || entry.is_tool_error();
        let text = entry_text::take_searchable_text(&mut entry);
        let row = Self {
            time: entry.created_at.map(|at| at.instant().as_millisecond()),
            role: entry.role,
            kind: entry.kind,
            tool: entry.tool_name,
            model: entry.model,
            source: entry.source,
            is_failure: failed,
            text: None,
            digest: TextHash::default(),
        };
        (row, text)
    }
}

impl PreparedSession {
    /// A session that could not be read.
    pub(super) fn new_unreadable(
        session: Session,
        damage: IndexedDamage,
        kept: Option<u64>,
    ) -> Self {
        Self {
            session,
            is_part: false,
            first_number: 0,
            digest_before: None,
            rows: Vec::new(),
            texts: HashMap::default(),
            bills: Vec::new(),
            billed_usage: Usage::default(),
            total_origin: None,
            damage: Some(damage),
            vault_bytes: kept,
            size_bytes: 0,
        }
    }

    /// The number after the last row.
    pub(super) fn end_number(&self) -> usize {
        self.first_number + self.rows.len()
    }

    /// Hash over the first `count` entries, if known here.
    pub(super) fn digest_at(&self, count: usize) -> Option<TextHash> {
        match count.checked_sub(self.first_number)? {
            0 => self.digest_before,
            own => self.rows.get(own - 1).map(|row| row.digest),
        }
    }

    /// Approximate size in bytes.
    pub fn size_bytes(&self) -> usize {
        self.size_bytes
    }
}
