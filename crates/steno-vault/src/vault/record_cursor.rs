//! Follows the lines of a recording: checks their hashes, numbers entries and collects the session's fields.

use uuid::Uuid;

use super::gap::RecordingGap;
use super::record::{
    ACP_PROTOCOL, API_PROTOCOL, LogLineContent, RecordDecoder, RecordError, RecordingClosing,
    RecordingOpening,
};
use crate::line_hash::{LineHash, LineHashChain};
use steno_model::entry::Entry;
use steno_model::numbering::EntryNumbering;
use steno_model::session::{Session, SessionId, SessionStatus};
use steno_model::timestamp::Timestamp;
use steno_model::usage_tally::UsageTally;

/// A position between two lines of a recording, with everything the lines before it state.
#[derive(Clone, Debug)]
pub struct RecordCursor {
    /// The session, as far as the lines state it.
    pub session: Session,
    numbering: EntryNumbering,
    chain: LineHashChain,
    /// Counts tokens, if requested: it needs some bytes per message.
    tally: Option<UsageTally>,
    is_acp: bool,
}

impl RecordCursor {
    /// The position before the first line.
    pub fn new(id: &SessionId, agent: &str) -> Self {
        let numbering = EntryNumbering::new(agent, id.as_str());
        let session = Session::new(id.clone(), agent);
        Self { session, numbering, chain: LineHashChain::START, tally: None, is_acp: false }
    }

    /// Also counts the tokens of all entries.
    #[must_use]
    pub fn with_token_count(self) -> Self {
        Self { tally: Some(UsageTally::default()), ..self }
    }

    /// Whether an ACP connection was recorded.
    pub fn is_acp(&self) -> bool {
        self.is_acp
    }

    /// The hash of the last line.
    pub(super) fn line_hash(&self) -> LineHash {
        self.chain.last_hash()
    }

    /// Continues after a line that this process wrote.
    pub(super) fn note_written_line(&mut self, hash: LineHash) {
        self.chain = LineHashChain::after(hash);
    }

    /// Checks the hash of the next line and parses it.
    pub fn parse_line<'a>(&mut self, line: &'a [u8]) -> Result<LogLineContent<'a>, RecordError> {
        if !self.chain.check(line) {
            return Err(RecordError::Damaged);
        }
        LogLineContent::parse(line)
    }

    /// Continues after a line that another recorder wrote, also after a damaged one: readers and `verify` report it.
    pub(super) fn follow_line(&mut self, line: &[u8], decoder: RecordDecoder) {
        match self.parse_line(line) {
            Ok(LogLineContent::Opening(at, opening)) => {
                self.apply_opening(at, opening);
            }
            Ok(LogLineContent::Closing(at, closing)) => self.apply_closing(at, closing),
            Ok(LogLineContent::Gap(at, gap)) => drop(self.follow_gap(at, &gap)),
            Ok(LogLineContent::Record { at, id, raw }) if !(decoder.is_wire_record)(raw) => {
                if let Ok(mut entries) = (decoder.decode)(raw, id) {
                    self.number_entries(at, id, &mut entries);
                }
            }
            Ok(LogLineContent::Record { .. } | LogLineContent::Bad { .. }) | Err(_) => {}
        }
    }

    /// Takes the fields of a recorder that started at `at`. Returns false for a gateway that records API traffic
    /// while an agent's connection is open: it changes nothing.
    pub fn apply_opening(&mut self, at: Timestamp, opening: RecordingOpening) -> bool {
        let is_traffic = opening.protocol.as_deref() == Some(API_PROTOCOL);
        if is_traffic && self.is_acp && self.session.ended.is_none() {
            return false;
        }
        self.session.status = SessionStatus::Running;
        self.session.ended = None;
        self.session.started.get_or_insert(at);
        self.is_acp |= opening.protocol.as_deref() == Some(ACP_PROTOCOL);
        self.session.project = opening.project.or(self.session.project.take());
        self.session.native_id = opening.native_id.or(self.session.native_id.take());
        self.session.thread = opening.thread.or(self.session.thread.take());
        if let Some(launch) = opening.launch {
            self.session.extra.insert("launch".to_owned(), launch.into());
        }
        true
    }

    /// Takes the fields of a recorder that ended at `at`.
    pub fn apply_closing(&mut self, at: Timestamp, closing: RecordingClosing) {
        self.session.status = closing.status;
        self.session.stop_reason = closing.reason;
        self.session.ended = Some(at);
    }

    /// Continues after a gap that ended at `at`. Returns its notice, which has a number unless an ACP connection was
    /// recorded: its notices are numbered with its other entries.
    pub fn follow_gap(&mut self, at: Timestamp, gap: &RecordingGap) -> Entry {
        // Another recorder may have closed the session during the gap.
        self.session.status = SessionStatus::Running;
        self.session.ended = None;
        let mut notice = gap.to_entry(at);
        if !self.is_acp {
            self.number_entry(&mut notice);
        }
        notice
    }

    /// Numbers the next entries like those of another recording, for entries beside those of an agent's own files.
    pub fn restart_numbering(&mut self, name: &str) {
        self.numbering = EntryNumbering::new(&self.session.agent, name);
    }

    /// Numbers an entry as the session's next, and counts it.
    pub fn number_entry(&mut self, entry: &mut Entry) {
        self.numbering.assign_number(entry);
        match &mut self.tally {
            Some(tally) => self.session.add_entry(entry, tally),
            None => self.session.add_entry_facts(entry),
        }
    }

    /// Assigns ids, times and numbers to the entries of one record, and counts them.
    pub fn number_entries(&mut self, at: Timestamp, id: Uuid, entries: &mut [Entry]) {
        for (index, entry) in entries.iter_mut().enumerate() {
            if entry.entry_id.is_nil() {
                entry.entry_id =
                    if index == 0 { id } else { Uuid::new_v5(&id, index.to_string().as_bytes()) };
            }
            entry.created_at.get_or_insert(at);
            self.number_entry(entry);
        }
    }
}
