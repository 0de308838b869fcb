//! Reads the recording of a session line by line.

use std::collections::HashSet;

use serde_json::value::RawValue;
use uuid::Uuid;

use super::UNENDED_REASON;
use crate::format::{file_format, record_shape};
use steno_agents::decoding::json_repair;
use steno_agents::protocols::acp::wire::WireLine;
use steno_agents::protocols::acp::{AcpConversationBuilder, BrokenTurn};
use steno_agents::protocols::traffic::{TrafficDecoder, TrafficPiece};
use steno_model::entry::Entry;
use steno_model::problem::json_error_reason;
use steno_model::session::{Session, SessionId, SessionStatus};
use steno_model::timestamp::Timestamp;
use steno_vault::gap::RecordingGap;
use steno_vault::record::{
    LogLineContent, RecordDecoder, RecordError, RecordingClosing, RecordingOpening,
};
use steno_vault::record_cursor::RecordCursor;

/// Makes entries of records of any known shape, for recorders.
pub const RECORD_DECODER: RecordDecoder = RecordDecoder { decode: parse_record, is_wire_record };

/// Reads a recording line by line, numbers the entries and collects the session's fields.
#[derive(Clone, Debug)]
pub(crate) struct RecordReader {
    cursor: RecordCursor,
    /// Folds wire lines into entries.
    fold: Option<Box<AcpConversationBuilder>>,
    /// Decodes API traffic into entries.
    decoder: Box<TrafficDecoder>,
}

impl RecordReader {
    /// A reader at the first line.
    pub(crate) fn new(id: &SessionId, agent: &str) -> Self {
        let (cursor, fold) = (RecordCursor::new(id, agent), Some(Box::default()));
        Self { cursor, fold, decoder: Box::default() }
    }

    /// Also counts the tokens of all entries.
    pub(crate) fn with_token_count(self) -> Self {
        Self { cursor: self.cursor.with_token_count(), ..self }
    }

    /// The session, as far as the lines state it.
    pub(crate) fn session(&self) -> &Session {
        &self.cursor.session
    }

    pub(crate) fn session_mut(&mut self) -> &mut Session {
        &mut self.cursor.session
    }

    pub(crate) fn into_session(self) -> Session {
        self.cursor.session
    }

    /// Takes the entries of the wire, numbered. With `is_joined`, they get ids of their own beside those of the
    /// agent's files.
    pub(crate) fn take_folded_entries(&mut self, is_joined: bool) -> Vec<Entry> {
        let Some(fold) = self.fold.take() else { return Vec::new() };
        let (facts, mut entries) = fold.finish();
        facts.fill_session(&mut self.cursor.session);
        if is_joined {
            let name = format!("{}\nacp", self.cursor.session.id);
            self.cursor.restart_numbering(&name);
        }
        entries.iter_mut().for_each(|entry| self.cursor.number_entry(entry));
        entries
    }

    /// Skips exchanges moved to other sessions.
    pub(crate) fn exclude_exchanges(&mut self, moved: HashSet<String>) {
        self.decoder.skip_exchanges(moved);
    }

    /// Whether lines of an ACP connection were read.
    pub(super) fn has_acp(&self) -> bool {
        self.cursor.is_acp()
    }

    /// Reads a complete log line.
    pub(crate) fn decode_line(&mut self, line: &[u8]) -> Result<Vec<Entry>, RecordError> {
        self.read_line(line, true)
    }

    /// Like [`Self::decode_line`], for a line with a record that another reader decodes.
    pub(super) fn line_without_record(&mut self, line: &[u8]) -> Result<Vec<Entry>, RecordError> {
        self.read_line(line, false)
    }

    fn read_line(&mut self, line: &[u8], with_record: bool) -> Result<Vec<Entry>, RecordError> {
        match self.cursor.parse_line(line)? {
            LogLineContent::Opening(at, opening) => self.apply_opening(at, opening),
            LogLineContent::Closing(at, closing) => self.apply_closing(at, closing),
            LogLineContent::Gap(at, gap) => return Ok(self.read_gap(at, &gap)),
            LogLineContent::Record { at, id, raw } if with_record => {
                return self.decode_record(at, id, raw);
            }
            LogLineContent::Bad { reason, is_json } if with_record || !is_json => {
                return Err(RecordError::Bad(reason));
            }
            LogLineContent::Record { .. } | LogLineContent::Bad { .. } => {}
        }
        Ok(Vec::new())
    }

    fn decode_record(
        &mut self,
        at: Timestamp,
        id: Uuid,
        raw: &[u8],
    ) -> Result<Vec<Entry>, RecordError> {
        if let Some(wire) = WireLine::from_record(raw) {
            if let Some(fold) = &mut self.fold {
                fold.add_line(Some(at), &wire);
            }
            return Ok(Vec::new());
        }
        let mut entries = match TrafficPiece::parse(raw) {
            Some(piece) => {
                let entries = self.decoder.decode_piece(piece);
                self.cursor.session.totals.cost = self.decoder.total_reported_cost();
                entries
            }
            None => parse_record(raw, id)?,
        };
        self.cursor.number_entries(at, id, &mut entries);
        Ok(entries)
    }

    /// Reads a gap that ended at `at`, and returns its notice. The notice of a wire is emitted with its other
    /// entries.
    fn read_gap(&mut self, at: Timestamp, gap: &RecordingGap) -> Vec<Entry> {
        let notice = self.cursor.follow_gap(at, gap);
        if !self.cursor.is_acp() {
            return vec![notice];
        }
        if let Some(fold) = &mut self.fold {
            fold.add_gap(at, notice);
        }
        Vec::new()
    }

    /// Decodes the received part of exchanges that never ended.
    pub(crate) fn finish(&mut self) -> Vec<Entry> {
        let mut entries = self.decoder.finish();
        let totals = &mut self.cursor.session.totals;
        totals.cost = self.decoder.total_reported_cost().or(totals.cost);
        entries.iter_mut().for_each(|entry| self.cursor.number_entry(entry));
        entries
    }

    /// Numbers an entry that a reader of agents' files made of records, and adds it to the session.
    pub(super) fn take_entry(&mut self, entry: &mut Entry) {
        self.cursor.number_entry(entry);
    }

    /// Ends the open turn of a killed recorder.
    pub(crate) fn break_open_turn(&mut self) {
        if let Some(fold) = &mut self.fold {
            fold.interrupt_turn(None, BrokenTurn::Failed(UNENDED_REASON));
        }
    }

    fn apply_opening(&mut self, at: Timestamp, opening: RecordingOpening) {
        if !self.cursor.apply_opening(at, opening) {
            return;
        }
        self.break_open_turn();
        if let Some(fold) = &mut self.fold {
            fold.begin_connection();
        }
    }

    fn apply_closing(&mut self, at: Timestamp, closing: RecordingClosing) {
        let end = match (closing.status, closing.reason.as_deref()) {
            (SessionStatus::Failed, reason) => {
                Some(BrokenTurn::Failed(reason.unwrap_or(UNENDED_REASON)))
            }
            (SessionStatus::Canceled, _) => Some(BrokenTurn::Cancelled),
            _ => None,
        };
        if let Some((fold, end)) = self.fold.as_mut().zip(end) {
            fold.interrupt_turn(Some(at), end);
        }
        self.cursor.apply_closing(at, closing);
    }
}

/// Whether a record is a line of an ACP connection or a piece of API traffic.
fn is_wire_record(raw: &[u8]) -> bool {
    WireLine::from_record(raw).is_some() || TrafficPiece::parse(raw).is_some()
}

/// Parses one record of any known shape into entries.
pub(crate) fn parse_record(raw: &[u8], id: Uuid) -> Result<Vec<Entry>, RecordError> {
    let value = match serde_json::from_slice(raw) {
        Ok(value) => value,
        // The log may contain lone surrogates, but no other invalid JSON.
        Err(_) if serde_json::from_slice::<&RawValue>(raw).is_ok() => {
            json_repair::parse_lenient(raw).map_err(RecordError::NotJson)?
        }
        Err(error) => return Err(RecordError::NotJson(json_error_reason(&error))),
    };
    match record_shape::decode_record(value, &id) {
        // What it says shows once all records are read together.
        Err(_) if file_format::recognises_record(raw) => Ok(vec![record_shape::opaque_entry(raw)?]),
        entries => Ok(entries?),
    }
}
