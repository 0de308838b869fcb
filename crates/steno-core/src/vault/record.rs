//! The lines of a live log: an envelope around each record, which contains the record's bytes verbatim.
//!
//! A line is `{"sum":…,"at":…,` and one of: `"open":{…}` when a recorder starts, `"id":…,"raw":…` for a record,
//! `"bad":…` for bytes that are not a record (base64), `"gap":{…}` when recording continues after a pause,
//! `"close":{…}` when the recorder ends. The `sum` field is the line's hash.

use std::borrow::Cow;
use std::collections::HashSet;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

use super::gap::RecordingGap;
use super::read::UNENDED_REASON;
use crate::agent::acp::wire::WireLine;
use crate::agent::acp::{self, AcpConversationBuilder, BrokenTurn};
use crate::agent::json_repair;
use crate::entry::{Entry, EntryError};
use crate::format::{file_format, record_shape};
use crate::line_hash::{FIRST_LINE_HASH, LineHash};
use crate::numbering::EntryNumbering;
use crate::problem::json_error_reason;
use crate::session::{Session, SessionId, SessionStatus};
use crate::timestamp::Timestamp;
use crate::traffic::{TrafficDecoder, TrafficPiece};
use crate::usage_tally::UsageTally;

/// Session fields that a recorder writes when it starts or continues.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordingOpening {
    /// The recorded agent.
    pub agent: String,
    /// The agent's working folder.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The agent's own session id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native_id: Option<String>,
    /// The recorded wire protocol. Without one, the records are entries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol: Option<String>,
    /// The thread that the session belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
    /// The name or command with which the user started the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch: Option<String>,
}

/// The end of a recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordingClosing {
    /// The final status of the session.
    pub status: SessionStatus,
    /// Why the recording stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Why a log line has no entries.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// The record is not JSON.
    #[error("{0}")]
    NotJson(String),
    /// The record is JSON, but not an entry.
    #[error(transparent)]
    Entry(#[from] EntryError),
    /// The recorder already found that these bytes are not a record.
    #[error("{0}")]
    Bad(String),
    /// The line has a wrong format or hash.
    #[error("damaged line")]
    Damaged,
}

#[derive(Serialize)]
struct LineBody<'a, T> {
    at: Timestamp,
    #[serde(flatten)]
    content: &'a T,
}

/// Encodes the body of a line that a recorder writes about itself.
fn encode_body<T: Serialize>(at: Timestamp, content: &T) -> Vec<u8> {
    let object = serde_json::to_vec(&LineBody { at, content }).expect("our types have string keys");
    object[1..].to_vec()
}

/// The body of an `open` line.
pub(crate) fn open_body(at: Timestamp, open: &RecordingOpening) -> Vec<u8> {
    #[derive(Serialize)]
    struct OpenLine<'a> {
        open: &'a RecordingOpening,
    }
    encode_body(at, &OpenLine { open })
}

/// The body of a `close` line.
pub(crate) fn close_body(at: Timestamp, close: &RecordingClosing) -> Vec<u8> {
    #[derive(Serialize)]
    struct CloseLine<'a> {
        close: &'a RecordingClosing,
    }
    encode_body(at, &CloseLine { close })
}

/// The body of a line for a gap that ended at `at`.
pub(crate) fn gap_body(at: Timestamp, gap: &RecordingGap) -> Vec<u8> {
    #[derive(Serialize)]
    struct GapLine<'a> {
        gap: &'a RecordingGap,
    }
    encode_body(at, &GapLine { gap })
}

/// The body of a line for bytes that are not a record.
pub(crate) fn bad_body(at: Timestamp, bytes: &[u8], reason: &str) -> Vec<u8> {
    #[derive(Serialize)]
    struct BadLine<'a> {
        reason: &'a str,
        bad: String,
    }
    encode_body(at, &BadLine { reason, bad: BASE64.encode(bytes) })
}

/// The body of a record's line. `raw` is one line of valid JSON and is copied byte for byte.
pub(crate) fn raw_body(at: Timestamp, id: Uuid, raw: &[u8]) -> Vec<u8> {
    let mut line = Vec::with_capacity(raw.len() + 100);
    write_raw_prefix(&mut line, &at.to_string(), id);
    line.extend_from_slice(raw);
    line.push(b'}');
    line
}

/// Writes the fields before the record.
pub(super) fn write_raw_prefix(line: &mut Vec<u8>, at: &str, id: Uuid) {
    let mut buffer = Uuid::encode_buffer();
    let id = id.hyphenated().encode_lower(&mut buffer);
    for part in ["\"at\":\"", at, "\",\"id\":\"", id, "\",\"raw\":"] {
        line.extend_from_slice(part.as_bytes());
    }
}

#[derive(Deserialize)]
struct RecordEnvelope<'a> {
    at: Timestamp,
    #[serde(default)]
    id: Option<Uuid>,
    #[serde(borrow, default)]
    raw: Option<&'a RawValue>,
    #[serde(default)]
    open: Option<RecordingOpening>,
    #[serde(default)]
    close: Option<RecordingClosing>,
    #[serde(default)]
    gap: Option<RecordingGap>,
    #[serde(default)]
    reason: Option<String>,
    #[serde(borrow, default)]
    bad: Option<&'a str>,
}

impl RecordEnvelope<'_> {
    /// The bytes that are no record by themselves, if they are JSON all the same.
    fn bad_json(&self) -> Option<Vec<u8>> {
        let bytes = BASE64.decode(self.bad?).ok()?;
        serde_json::from_slice::<&RawValue>(&bytes).is_ok().then_some(bytes)
    }
}

/// Checks the hash chain of a log, line by line.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LineHashChain {
    /// The hash that the last line states.
    stated: LineHash,
    /// The hash computed for it.
    computed: LineHash,
}

impl LineHashChain {
    /// The chain before the first line.
    pub(crate) const START: Self = Self { stated: FIRST_LINE_HASH, computed: FIRST_LINE_HASH };

    /// Whether a line is unchanged and follows the previous one. The chain continues with it either way.
    pub(crate) fn check(&mut self, line: &[u8]) -> bool {
        let Some((hash, body)) = LineHash::split_line(line) else { return false };
        // If only the hash of the previous line is damaged, this line is still valid.
        let valid = [self.stated.next_hash(body), self.computed.next_hash(body)];
        (self.stated, self.computed) = (hash, valid[0]);
        valid.contains(&hash)
    }
}

/// Reads a live log line by line, numbers the entries and collects the session's fields.
#[derive(Clone, Debug)]
pub(crate) struct RecordReader {
    pub(crate) session: Session,
    numbering: EntryNumbering,
    chain: LineHashChain,
    /// Counts tokens, if requested: it needs some bytes per message.
    tally: Option<UsageTally>,
    /// Whether the recording is the wire of a protocol.
    is_wire: bool,
    /// Folds wire lines into entries; absent while recording.
    fold: Option<Box<AcpConversationBuilder>>,
    /// Decodes API traffic into entries; absent while recording.
    decoder: Option<Box<TrafficDecoder>>,
}

impl RecordReader {
    /// A reader at the first line.
    pub(crate) fn new(id: &SessionId, agent: &str) -> Self {
        let numbering = EntryNumbering::new(agent, id.as_str());
        let session = Session::new(id.clone(), agent);
        let (is_wire, tally, fold, decoder) = (false, None, None, None);
        Self { session, numbering, chain: LineHashChain::START, tally, is_wire, fold, decoder }
    }

    /// Also decodes wire lines and API traffic into entries.
    pub(crate) fn with_decoding(self) -> Self {
        Self { fold: Some(Box::default()), decoder: Some(Box::default()), ..self }
    }

    /// Also counts the tokens of all entries.
    pub(crate) fn with_token_count(self) -> Self {
        Self { tally: Some(UsageTally::default()), ..self }
    }

    /// Takes the entries of the wire, numbered. With `is_joined`, they get ids of their own beside those of the
    /// agent's files.
    pub(crate) fn take_folded_entries(&mut self, is_joined: bool) -> Vec<Entry> {
        let Some(fold) = self.fold.take() else { return Vec::new() };
        let (facts, mut entries) = fold.finish();
        facts.fill_session(&mut self.session);
        if is_joined {
            let name = format!("{}\nacp", self.session.id);
            self.numbering = EntryNumbering::new(&self.session.agent, &name);
        }
        for entry in &mut entries {
            self.numbering.assign_number(entry);
            self.count_entry(entry);
        }
        entries
    }

    /// Skips exchanges moved to other sessions.
    pub(crate) fn exclude_exchanges(&mut self, moved: HashSet<String>) {
        if let Some(decoder) = &mut self.decoder {
            decoder.skip_exchanges(moved);
        }
    }

    /// Whether lines of an ACP connection were read.
    pub(super) fn has_acp(&self) -> bool {
        self.is_wire
    }

    /// The hash of the last line read.
    pub(crate) fn line_hash(&self) -> LineHash {
        self.chain.stated
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
        if !self.chain.check(line) {
            return Err(RecordError::Damaged);
        }
        let envelope: RecordEnvelope =
            serde_json::from_slice(line).map_err(|_| RecordError::Damaged)?;
        if let Some(open) = envelope.open {
            self.apply_opening(envelope.at, open);
        } else if let Some(close) = envelope.close {
            self.apply_closing(envelope.at, close);
        } else if let Some(gap) = envelope.gap {
            return Ok(self.read_gap(envelope.at, &gap));
        } else if let (Some(id), Some(raw)) = (envelope.id, envelope.raw) {
            if !with_record {
                return Ok(Vec::new());
            }
            if let Some(wire) = WireLine::from_record(raw.get().as_bytes()) {
                if let Some(fold) = &mut self.fold {
                    fold.add_line(Some(envelope.at), &wire);
                }
                return Ok(Vec::new());
            }
            let mut entries = self.entries(raw.get().as_bytes(), id)?;
            self.number_entries(envelope.at, id, &mut entries);
            return Ok(entries);
        } else if with_record || envelope.bad_json().is_none() {
            return Err(RecordError::Bad(envelope.reason.unwrap_or_default()));
        }
        Ok(Vec::new())
    }

    /// Reads a gap that ended at `at`, and returns its notice. The notice of a wire is emitted with its other
    /// entries.
    pub(crate) fn read_gap(&mut self, at: Timestamp, gap: &RecordingGap) -> Vec<Entry> {
        // Another recorder may have closed the session during the gap.
        self.session.status = SessionStatus::Running;
        self.session.ended = None;
        let mut notice = gap.to_entry(at);
        if let Some(fold) = self.fold.as_mut().filter(|_| self.is_wire) {
            fold.add_gap(at, notice);
            return Vec::new();
        }
        if self.is_wire {
            return Vec::new();
        }
        self.numbering.assign_number(&mut notice);
        self.count_entry(&notice);
        vec![notice]
    }

    fn entries(&mut self, raw: &[u8], id: Uuid) -> Result<Vec<Entry>, RecordError> {
        match (&mut self.decoder, TrafficPiece::parse(raw)) {
            (Some(decoder), Some(piece)) => {
                let entries = decoder.decode_piece(piece);
                self.session.totals.cost = decoder.total_reported_cost();
                Ok(entries)
            }
            (None, Some(_)) => Ok(Vec::new()),
            (_, None) => parse_record(raw, id),
        }
    }

    /// Decodes the received part of exchanges that never ended.
    pub(crate) fn finish(&mut self) -> Vec<Entry> {
        let mut entries = Vec::new();
        if let Some(decoder) = &mut self.decoder {
            entries = decoder.finish();
            self.session.totals.cost = decoder.total_reported_cost().or(self.session.totals.cost);
        }
        for entry in &mut entries {
            self.numbering.assign_number(entry);
            self.count_entry(entry);
        }
        entries
    }

    /// Assigns ids and numbers to a record's entries, and counts them.
    pub(crate) fn number_entries(&mut self, at: Timestamp, id: Uuid, entries: &mut [Entry]) {
        for (index, entry) in entries.iter_mut().enumerate() {
            if entry.entry_id.is_nil() {
                entry.entry_id =
                    if index == 0 { id } else { Uuid::new_v5(&id, index.to_string().as_bytes()) };
            }
            entry.created_at.get_or_insert(at);
            self.numbering.assign_number(entry);
            self.count_entry(entry);
        }
    }

    /// Numbers an entry that a reader of agents' files made of records, and adds it to the session.
    pub(super) fn take_entry(&mut self, entry: &mut Entry) {
        self.numbering.assign_number(entry);
        self.count_entry(entry);
    }

    /// Counts an entry.
    fn count_entry(&mut self, entry: &Entry) {
        match &mut self.tally {
            Some(tally) => self.session.add_entry(entry, tally),
            None => self.session.add_entry_facts(entry),
        }
    }

    /// Continues after a line that this process wrote.
    pub(crate) fn note_written_line(&mut self, sum: LineHash) {
        self.chain = LineHashChain { stated: sum, computed: sum };
    }

    /// Ends the open turn of a killed recorder.
    pub(crate) fn break_open_turn(&mut self) {
        if let Some(fold) = &mut self.fold {
            fold.interrupt_turn(None, BrokenTurn::Failed(UNENDED_REASON));
        }
    }

    pub(crate) fn apply_opening(&mut self, at: Timestamp, open: RecordingOpening) {
        let is_traffic = open.protocol.as_deref() == Some(crate::traffic::API_PROTOCOL);
        if is_traffic && self.is_wire && self.session.ended.is_none() {
            // A gateway records API traffic while the agent's connection is open.
            return;
        }
        self.break_open_turn();
        self.session.status = SessionStatus::Running;
        self.session.ended = None;
        self.session.started.get_or_insert(at);
        self.is_wire |= open.protocol.as_deref() == Some(acp::AGENT);
        self.session.project = open.project.or(self.session.project.take());
        self.session.native_id = open.native_id.or(self.session.native_id.take());
        self.session.thread = open.thread.or(self.session.thread.take());
        if let Some(launch) = open.launch {
            self.session.extra.insert("launch".to_owned(), launch.into());
        }
        if let Some(fold) = &mut self.fold {
            fold.begin_connection();
        }
    }

    fn apply_closing(&mut self, at: Timestamp, close: RecordingClosing) {
        let end = match (close.status, close.reason.as_deref()) {
            (SessionStatus::Failed, reason) => {
                Some(BrokenTurn::Failed(reason.unwrap_or(UNENDED_REASON)))
            }
            (SessionStatus::Canceled, _) => Some(BrokenTurn::Cancelled),
            _ => None,
        };
        if let Some((fold, end)) = self.fold.as_mut().zip(end) {
            fold.interrupt_turn(Some(at), end);
        }
        self.session.status = close.status;
        self.session.stop_reason = close.reason;
        self.session.ended = Some(at);
    }
}

/// The bytes of the record in a line; `None` for other lines.
pub(crate) fn raw_record_of(line: &[u8]) -> Option<&[u8]> {
    let envelope: RecordEnvelope<'_> = serde_json::from_slice(line).ok()?;
    envelope.raw.map(|raw| raw.get().as_bytes())
}

/// The JSON that somebody wanted to record with this line, whether it is a record by itself or not.
pub(super) fn json_of(line: &[u8]) -> Option<Cow<'_, [u8]>> {
    let envelope: RecordEnvelope<'_> = serde_json::from_slice(line).ok()?;
    match envelope.raw {
        Some(raw) => Some(Cow::Borrowed(raw.get().as_bytes())),
        None => envelope.bad_json().map(Cow::Owned),
    }
}

/// Whether a line says that a recorder begins, as far as that shows without reading it.
pub(super) fn holds_opening(line: &[u8]) -> bool {
    memchr::memmem::find(&line[..line.len().min(256)], b",\"open\":").is_some()
}

/// Whether a line holds bytes that are no record by themselves, as far as that shows without reading it.
pub(super) fn holds_bad(line: &[u8]) -> bool {
    memchr::memmem::find(&line[..line.len().min(256)], b",\"reason\":").is_some()
}

/// Whether a line's record starts with these bytes. Does not parse the line.
pub(super) fn raw_starts_with(line: &[u8], beginning: &[u8]) -> bool {
    const RAW: &[u8] = b",\"raw\":";
    // Hash, time and id come before it.
    let prefix = &line[..line.len().min(256)];
    let raw = prefix.windows(RAW.len()).position(|window| window == RAW);
    raw.is_some_and(|at| line[at + RAW.len()..].starts_with(beginning))
}

/// Whether a log that starts with this line records a wire.
pub(crate) fn is_wire_opening(line: &[u8]) -> bool {
    let envelope = serde_json::from_slice::<RecordEnvelope>(line.trim_ascii_end());
    envelope.is_ok_and(|envelope| envelope.open.is_some_and(|open| open.protocol.is_some()))
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
