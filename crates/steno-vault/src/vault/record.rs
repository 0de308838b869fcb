//! The lines of a live log: an envelope around each record, which contains the record's bytes verbatim.
//!
//! A line is `{"sum":…,"at":…,` and one of: `"open":{…}` when a recorder starts, `"id":…,"raw":…` for a record,
//! `"bad":…` for bytes that are not a record (base64), `"gap":{…}` when recording continues after a pause,
//! `"close":{…}` when the recorder ends. The `sum` field is the line's hash.

use std::borrow::Cow;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

use super::gap::RecordingGap;
use steno_model::entry::{Entry, EntryError};
use steno_model::session::SessionStatus;
use steno_model::timestamp::Timestamp;

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

/// Makes entries of records for a recorder. The vault itself knows no format.
#[derive(Clone, Copy, Debug)]
pub struct RecordDecoder {
    /// Decodes a new record into entries, which have no numbers yet.
    pub decode: fn(&[u8], Uuid) -> Result<Vec<Entry>, RecordError>,
    /// Whether a record is part of a wire protocol, so that it has no entries by itself.
    pub is_wire_record: fn(&[u8]) -> bool,
}

/// The value of [`RecordingOpening::protocol`] for a recorded ACP connection.
pub const ACP_PROTOCOL: &str = "acp";

/// The value of [`RecordingOpening::protocol`] for recorded API traffic.
pub const API_PROTOCOL: &str = "api";

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
pub fn write_raw_prefix(line: &mut Vec<u8>, at: &str, id: Uuid) {
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

/// What a log line says.
#[derive(Debug)]
pub enum LogLineContent<'a> {
    /// A recorder started.
    Opening(Timestamp, RecordingOpening),
    /// A recorder ended.
    Closing(Timestamp, RecordingClosing),
    /// Recording continued after a pause.
    Gap(Timestamp, RecordingGap),
    /// A record.
    Record {
        /// When it was recorded.
        at: Timestamp,
        /// Its id.
        id: Uuid,
        /// Its bytes.
        raw: &'a [u8],
    },
    /// Bytes that are not a record by themselves.
    Bad {
        /// Why they are none.
        reason: String,
        /// Whether they are JSON all the same.
        is_json: bool,
    },
}

impl<'a> LogLineContent<'a> {
    /// Parses a line whose hash was checked.
    pub(crate) fn parse(line: &'a [u8]) -> Result<Self, RecordError> {
        let envelope: RecordEnvelope<'a> =
            serde_json::from_slice(line).map_err(|_| RecordError::Damaged)?;
        let at = envelope.at;
        if let Some(opening) = envelope.open {
            Ok(Self::Opening(at, opening))
        } else if let Some(closing) = envelope.close {
            Ok(Self::Closing(at, closing))
        } else if let Some(gap) = envelope.gap {
            Ok(Self::Gap(at, gap))
        } else if let (Some(id), Some(raw)) = (envelope.id, envelope.raw) {
            Ok(Self::Record { at, id, raw: raw.get().as_bytes() })
        } else {
            let is_json = envelope.bad_json().is_some();
            Ok(Self::Bad { reason: envelope.reason.unwrap_or_default(), is_json })
        }
    }
}

/// The bytes of the record in a line; `None` for other lines.
pub fn raw_record_of(line: &[u8]) -> Option<&[u8]> {
    let envelope: RecordEnvelope<'_> = serde_json::from_slice(line).ok()?;
    envelope.raw.map(|raw| raw.get().as_bytes())
}

/// The JSON that somebody wanted to record with this line, whether it is a record by itself or not.
pub fn json_of(line: &[u8]) -> Option<Cow<'_, [u8]>> {
    let envelope: RecordEnvelope<'_> = serde_json::from_slice(line).ok()?;
    match envelope.raw {
        Some(raw) => Some(Cow::Borrowed(raw.get().as_bytes())),
        None => envelope.bad_json().map(Cow::Owned),
    }
}

/// Whether a line says that a recorder begins, as far as that shows without reading it.
pub fn holds_opening(line: &[u8]) -> bool {
    memchr::memmem::find(&line[..line.len().min(256)], b",\"open\":").is_some()
}

/// Whether a line holds bytes that are no record by themselves, as far as that shows without reading it.
pub fn holds_bad(line: &[u8]) -> bool {
    memchr::memmem::find(&line[..line.len().min(256)], b",\"reason\":").is_some()
}

/// Whether a line's record starts with these bytes. Does not parse the line.
pub fn raw_starts_with(line: &[u8], beginning: &[u8]) -> bool {
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
