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
use super::live::{FIRST_SUM, Sum};
use super::read::UNENDED;
use crate::agent::acp::wire::Wire;
use crate::agent::acp::{self, BrokenTurn, Fold};
use crate::agent::repair;
use crate::entry::{Entry, EntryError, Numbering};
use crate::format::{file_format, shape};
use crate::problem::json_reason;
use crate::session::{Session, SessionId, Status};
use crate::timestamp::Timestamp;
use crate::traffic::{Piece, Telling};
use crate::usage::Tally;

/// Session fields that a recorder writes when it starts or continues.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Opening {
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
pub struct Closing {
    /// The final status of the session.
    pub status: Status,
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
struct Body<'a, T> {
    at: Timestamp,
    #[serde(flatten)]
    content: &'a T,
}

/// Encodes the body of a line that a recorder writes about itself.
fn body<T: Serialize>(at: Timestamp, content: &T) -> Vec<u8> {
    let object = serde_json::to_vec(&Body { at, content }).expect("our types have string keys");
    object[1..].to_vec()
}

/// The body of an `open` line.
pub(crate) fn open_body(at: Timestamp, open: &Opening) -> Vec<u8> {
    #[derive(Serialize)]
    struct Open<'a> {
        open: &'a Opening,
    }
    body(at, &Open { open })
}

/// The body of a `close` line.
pub(crate) fn close_body(at: Timestamp, close: &Closing) -> Vec<u8> {
    #[derive(Serialize)]
    struct Close<'a> {
        close: &'a Closing,
    }
    body(at, &Close { close })
}

/// The body of a line for a gap that ended at `at`.
pub(crate) fn gap_body(at: Timestamp, gap: &RecordingGap) -> Vec<u8> {
    #[derive(Serialize)]
    struct Gap<'a> {
        gap: &'a RecordingGap,
    }
    body(at, &Gap { gap })
}

/// The body of a line for bytes that are not a record.
pub(crate) fn bad_body(at: Timestamp, bytes: &[u8], reason: &str) -> Vec<u8> {
    #[derive(Serialize)]
    struct Bad<'a> {
        reason: &'a str,
        bad: String,
    }
    body(at, &Bad { reason, bad: BASE64.encode(bytes) })
}

/// The body of a record's line. `raw` is one line of valid JSON and is copied byte for byte.
pub(crate) fn raw_body(at: Timestamp, id: Uuid, raw: &[u8]) -> Vec<u8> {
    let mut line = Vec::with_capacity(raw.len() + 100);
    raw_head(&mut line, &at.to_string(), id);
    line.extend_from_slice(raw);
    line.push(b'}');
    line
}

/// Writes the fields before the record.
pub(super) fn raw_head(line: &mut Vec<u8>, at: &str, id: Uuid) {
    let mut buffer = Uuid::encode_buffer();
    let id = id.hyphenated().encode_lower(&mut buffer);
    for part in ["\"at\":\"", at, "\",\"id\":\"", id, "\",\"raw\":"] {
        line.extend_from_slice(part.as_bytes());
    }
}

#[derive(Deserialize)]
struct Envelope<'a> {
    at: Timestamp,
    #[serde(default)]
    id: Option<Uuid>,
    #[serde(borrow, default)]
    raw: Option<&'a RawValue>,
    #[serde(default)]
    open: Option<Opening>,
    #[serde(default)]
    close: Option<Closing>,
    #[serde(default)]
    gap: Option<RecordingGap>,
    #[serde(default)]
    reason: Option<String>,
    #[serde(borrow, default)]
    bad: Option<&'a str>,
}

impl Envelope<'_> {
    /// The bytes that are no record by themselves, if they are JSON all the same.
    fn bad_json(&self) -> Option<Vec<u8>> {
        let bytes = BASE64.decode(self.bad?).ok()?;
        serde_json::from_slice::<&RawValue>(&bytes).is_ok().then_some(bytes)
    }
}

/// The chain of sums over the lines of a log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SumChain {
    /// The sum that the last line states.
    stated: Sum,
    /// The sum that it should have.
    computed: Sum,
}

impl SumChain {
    /// The chain before the first line.
    pub(crate) const START: Self = Self { stated: FIRST_SUM, computed: FIRST_SUM };

    /// Whether a line follows the one before, unchanged. The chain goes on with it all the same.
    pub(crate) fn check(&mut self, line: &[u8]) -> bool {
        let Some((sum, body)) = Sum::split(line) else { return false };
        // The line before may have been damaged in its sum alone; that must not cost this one.
        let due = [self.stated.next(body), self.computed.next(body)];
        (self.stated, self.computed) = (sum, due[0]);
        due.contains(&sum)
    }
}

/// Reads a live log line by line, numbers the entries and collects the session's fields.
#[derive(Clone, Debug)]
pub(crate) struct RecordReader {
    pub(crate) session: Session,
    numbering: Numbering,
    chain: SumChain,
    /// Counts tokens, if requested: it needs some bytes per message.
    tally: Option<Tally>,
    /// Whether the recording is the wire of a protocol.
    is_wire: bool,
    /// Folds wire lines into entries; absent while recording.
    fold: Option<Box<Fold>>,
    /// Decodes API traffic into entries; absent while recording.
    telling: Option<Box<Telling>>,
}

impl RecordReader {
    /// A reader at the first line.
    pub(crate) fn new(id: &SessionId, agent: &str) -> Self {
        let numbering = Numbering::new(agent, id.as_str());
        let session = Session::new(id.clone(), agent);
        let (is_wire, tally, fold, telling) = (false, None, None, None);
        Self { session, numbering, chain: SumChain::START, tally, is_wire, fold, telling }
    }

    /// Also decodes wire lines and API traffic into entries.
    pub(crate) fn folding(self) -> Self {
        Self { fold: Some(Box::default()), telling: Some(Box::default()), ..self }
    }

    /// Also counts the tokens of all entries.
    pub(crate) fn counting(self) -> Self {
        Self { tally: Some(Tally::default()), ..self }
    }

    /// Takes the entries of the wire, numbered. With `is_joined`, they get ids of their own beside those of the
    /// agent's files.
    pub(crate) fn folded(&mut self, is_joined: bool) -> Vec<Entry> {
        let Some(fold) = self.fold.take() else { return Vec::new() };
        let (facts, mut entries) = fold.finish();
        facts.fill(&mut self.session);
        if is_joined {
            let name = format!("{}\nacp", self.session.id);
            self.numbering = Numbering::new(&self.session.agent, &name);
        }
        for entry in &mut entries {
            self.numbering.assign(entry);
            self.note(entry);
        }
        entries
    }

    /// Skips exchanges moved to other sessions.
    pub(crate) fn leave_out(&mut self, moved: HashSet<String>) {
        if let Some(telling) = &mut self.telling {
            telling.leave_out(moved);
        }
    }

    /// Whether lines of an ACP connection were read.
    pub(super) fn has_acp(&self) -> bool {
        self.is_wire
    }

    /// The hash of the last line read.
    pub(crate) fn sum(&self) -> Sum {
        self.chain.stated
    }

    /// Reads a complete log line.
    pub(crate) fn line(&mut self, line: &[u8]) -> Result<Vec<Entry>, RecordError> {
        self.read_line(line, true)
    }

    /// As [`Self::line`], for a line whose record is read elsewhere.
    pub(super) fn line_without_record(&mut self, line: &[u8]) -> Result<Vec<Entry>, RecordError> {
        self.read_line(line, false)
    }

    fn read_line(&mut self, line: &[u8], with_record: bool) -> Result<Vec<Entry>, RecordError> {
        if !self.chain.check(line) {
            return Err(RecordError::Damaged);
        }
        let envelope: Envelope = serde_json::from_slice(line).map_err(|_| RecordError::Damaged)?;
        if let Some(open) = envelope.open {
            self.opened(envelope.at, open);
        } else if let Some(close) = envelope.close {
            self.closed(envelope.at, close);
        } else if let Some(gap) = envelope.gap {
            return Ok(self.read_gap(envelope.at, &gap));
        } else if let (Some(id), Some(raw)) = (envelope.id, envelope.raw) {
            if !with_record {
                return Ok(Vec::new());
            }
            if let Some(wire) = Wire::of_record(raw.get().as_bytes()) {
                if let Some(fold) = &mut self.fold {
                    fold.take(Some(envelope.at), &wire);
                }
                return Ok(Vec::new());
            }
            let mut entries = self.entries(raw.get().as_bytes(), id)?;
            self.number(envelope.at, id, &mut entries);
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
        self.session.status = Status::Running;
        self.session.ended = None;
        let mut notice = gap.to_entry(at);
        if let Some(fold) = self.fold.as_mut().filter(|_| self.is_wire) {
            fold.add_gap(at, notice);
            return Vec::new();
        }
        if self.is_wire {
            return Vec::new();
        }
        self.numbering.assign(&mut notice);
        self.note(&notice);
        vec![notice]
    }

    fn entries(&mut self, raw: &[u8], id: Uuid) -> Result<Vec<Entry>, RecordError> {
        match (&mut self.telling, Piece::of(raw)) {
            (Some(telling), Some(piece)) => {
                let entries = telling.take(piece);
                self.session.totals.cost = telling.stated_cost();
                Ok(entries)
            }
            (None, Some(_)) => Ok(Vec::new()),
            (_, None) => parse(raw, id),
        }
    }

    /// Decodes the received part of exchanges that never ended.
    pub(crate) fn finish(&mut self) -> Vec<Entry> {
        let mut entries = Vec::new();
        if let Some(telling) = &mut self.telling {
            entries = telling.finish();
            self.session.totals.cost = telling.stated_cost().or(self.session.totals.cost);
        }
        for entry in &mut entries {
            self.numbering.assign(entry);
            self.note(entry);
        }
        entries
    }

    /// Assigns ids and numbers to a record's entries, and counts them.
    pub(crate) fn number(&mut self, at: Timestamp, id: Uuid, entries: &mut [Entry]) {
        for (index, entry) in entries.iter_mut().enumerate() {
            if entry.entry_id.is_nil() {
                entry.entry_id =
                    if index == 0 { id } else { Uuid::new_v5(&id, index.to_string().as_bytes()) };
            }
            entry.created_at.get_or_insert(at);
            self.numbering.assign(entry);
            self.note(entry);
        }
    }

    /// Numbers an entry that a reader of agents' files made of records, and adds it to the session.
    pub(super) fn take_entry(&mut self, entry: &mut Entry) {
        self.numbering.assign(entry);
        self.note(entry);
    }

    /// Counts an entry.
    fn note(&mut self, entry: &Entry) {
        match &mut self.tally {
            Some(tally) => self.session.note(entry, tally),
            None => self.session.note_facts(entry),
        }
    }

    /// Continues after a line that this process wrote.
    pub(crate) fn wrote(&mut self, sum: Sum) {
        self.chain = SumChain { stated: sum, computed: sum };
    }

    /// Ends the open turn of a killed recorder.
    pub(crate) fn abandon(&mut self) {
        if let Some(fold) = &mut self.fold {
            fold.break_turn(None, BrokenTurn::Failed(UNENDED));
        }
    }

    pub(crate) fn opened(&mut self, at: Timestamp, open: Opening) {
        let is_traffic = open.protocol.as_deref() == Some(crate::traffic::PROTOCOL);
        if is_traffic && self.is_wire && self.session.ended.is_none() {
            // A gateway records API traffic while the agent's connection is open.
            return;
        }
        self.abandon();
        self.session.status = Status::Running;
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
            fold.connected();
        }
    }

    fn closed(&mut self, at: Timestamp, close: Closing) {
        let end = match (close.status, close.reason.as_deref()) {
            (Status::Failed, reason) => Some(BrokenTurn::Failed(reason.unwrap_or(UNENDED))),
            (Status::Canceled, _) => Some(BrokenTurn::Cancelled),
            _ => None,
        };
        if let Some((fold, end)) = self.fold.as_mut().zip(end) {
            fold.break_turn(Some(at), end);
        }
        self.session.status = close.status;
        self.session.stop_reason = close.reason;
        self.session.ended = Some(at);
    }
}

/// The bytes of the record in a line; `None` for other lines.
pub(crate) fn raw_of(line: &[u8]) -> Option<&[u8]> {
    let envelope: Envelope<'_> = serde_json::from_slice(line).ok()?;
    envelope.raw.map(|raw| raw.get().as_bytes())
}

/// The JSON that somebody wanted to record with this line, whether it is a record by itself or not.
pub(super) fn json_of(line: &[u8]) -> Option<Cow<'_, [u8]>> {
    let envelope: Envelope<'_> = serde_json::from_slice(line).ok()?;
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
pub(super) fn begins_raw(line: &[u8], beginning: &[u8]) -> bool {
    const RAW: &[u8] = b",\"raw\":";
    // Hash, time and id come before it.
    let prefix = &line[..line.len().min(256)];
    let raw = prefix.windows(RAW.len()).position(|window| window == RAW);
    raw.is_some_and(|at| line[at + RAW.len()..].starts_with(beginning))
}

/// Whether a log that starts with this line records a wire.
pub(crate) fn opens_wire(line: &[u8]) -> bool {
    let envelope = serde_json::from_slice::<Envelope>(line.trim_ascii_end());
    envelope.is_ok_and(|envelope| envelope.open.is_some_and(|open| open.protocol.is_some()))
}

/// Parses one record of any known shape into entries.
pub(crate) fn parse(raw: &[u8], id: Uuid) -> Result<Vec<Entry>, RecordError> {
    let value = match serde_json::from_slice(raw) {
        Ok(value) => value,
        // The log may contain lone surrogates, but no other invalid JSON.
        Err(_) if serde_json::from_slice::<&RawValue>(raw).is_ok() => {
            repair::parse(raw).map_err(RecordError::NotJson)?
        }
        Err(error) => return Err(RecordError::NotJson(json_reason(&error))),
    };
    match shape::entries(value, &id) {
        // What it says shows once all records are read together.
        Err(_) if file_format::recognises_record(raw) => Ok(vec![shape::opaque_entry(raw)?]),
        entries => Ok(entries?),
    }
}
