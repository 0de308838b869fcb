//! The record of one wire line: its sender and its exact bytes.
//!
//! A JSON line is embedded verbatim, other text becomes a string, other bytes become base64. The field `end` holds
//! the line ending if it is not `\n`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::TimedWireLine;
use steno_model::timestamp::Timestamp;
use steno_vault::line_hash::LineHash;

/// The sender of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AcpSide {
    /// The editor.
    Client,
    /// The agent.
    Agent,
}

impl AcpSide {
    /// The other side.
    pub fn opposite(self) -> Self {
        match self {
            AcpSide::Client => AcpSide::Agent,
            AcpSide::Agent => AcpSide::Client,
        }
    }

    fn name(self) -> &'static str {
        match self {
            AcpSide::Client => "client",
            AcpSide::Agent => "agent",
        }
    }
}

/// A line of the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireLine {
    /// The sender.
    pub side: AcpSide,
    /// The bytes including the line ending, with secrets redacted.
    pub bytes: Vec<u8>,
}

/// The prefix of every wire record.
const RECORD_PREFIX: &[u8] = b"{\"acp\":\"";

#[derive(Deserialize)]
struct WireRecord<'a> {
    acp: AcpSide,
    #[serde(borrow, default)]
    message: Option<&'a RawValue>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    base64: Option<String>,
    #[serde(default)]
    end: Option<String>,
}

#[derive(Deserialize)]
struct WireLogEnvelope<'a> {
    at: Timestamp,
    #[serde(borrow)]
    raw: &'a RawValue,
}

impl WireLine {
    /// Parses a record. `None` if it is not a wire record.
    pub fn from_record(record: &[u8]) -> Option<Self> {
        let record: WireRecord<'_> =
            record.starts_with(RECORD_PREFIX).then(|| serde_json::from_slice(record).ok())??;
        let mut bytes = match (record.message, record.text, record.base64) {
            (Some(message), _, _) => message.get().as_bytes().to_vec(),
            (_, Some(text), _) => text.into_bytes(),
            (_, _, Some(base64)) => BASE64.decode(base64).ok()?,
            _ => return None,
        };
        bytes.extend_from_slice(record.end.as_deref().unwrap_or("\n").as_bytes());
        Some(Self { side: record.acp, bytes })
    }
}

/// Writes the record of a line without a newline. `is_json` skips validation for a line already known to be JSON.
pub fn write_wire_record(out: &mut Vec<u8>, side: AcpSide, bytes: &[u8], is_json: bool) {
    let (body, end) = split_line_ending(bytes);
    for part in [RECORD_PREFIX, side.name().as_bytes(), b"\","] {
        out.extend_from_slice(part);
    }
    match simdutf8::basic::from_utf8(body) {
        Ok(text) if can_embed_verbatim(text) && (is_json || is_json_text(text)) => {
            out.extend_from_slice(b"\"message\":");
            out.extend_from_slice(body);
        }
        Ok(text) => {
            out.extend_from_slice(b"\"text\":");
            out.extend(serde_json::to_vec(text).expect("text is JSON"));
        }
        Err(_) => {
            out.extend_from_slice(b"\"base64\":\"");
            out.extend(BASE64.encode(body).into_bytes());
            out.push(b'"');
        }
    }
    match end {
        b"\n" => {}
        b"\r\n" => out.extend_from_slice(b",\"end\":\"\\r\\n\""),
        _ => out.extend_from_slice(b",\"end\":\"\""),
    }
    out.push(b'}');
}

/// Whether a line starts like one of a wire log. In files of other formats the first line does not.
pub(crate) fn starts_like_log_line(line: &[u8]) -> bool {
    line.starts_with(RECORD_PREFIX) || line.starts_with(LineHash::LINE_PREFIX)
}

/// Parses a line of a wire log, which may be wrapped in the recorder's envelope.
pub(crate) fn parse_log_line(line: &[u8]) -> Option<TimedWireLine> {
    if line.starts_with(RECORD_PREFIX) {
        return Some((None, WireLine::from_record(line)?));
    }
    let envelope: WireLogEnvelope<'_> = serde_json::from_slice(line).ok()?;
    Some((Some(envelope.at), WireLine::from_record(envelope.raw.get().as_bytes())?))
}

/// Whether a log line is the recorder's own open or close record.
pub(crate) fn is_recorder_line(line: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct RecorderLine {
        #[serde(default)]
        open: Option<IgnoredAny>,
        #[serde(default)]
        close: Option<IgnoredAny>,
    }
    let parsed = serde_json::from_slice::<RecorderLine>(line);
    parsed.is_ok_and(|parsed| parsed.open.is_some() || parsed.close.is_some())
}

fn split_line_ending(bytes: &[u8]) -> (&[u8], &[u8]) {
    let length = match bytes {
        [.., b'\r', b'\n'] => 2,
        [.., b'\n'] => 1,
        _ => 0,
    };
    bytes.split_at(bytes.len() - length)
}

/// Whether text can be embedded verbatim: no newline inside, and no surrounding white space, which would be lost.
fn can_embed_verbatim(text: &str) -> bool {
    text.trim_ascii().len() == text.len() && memchr::memchr(b'\n', text.as_bytes()).is_none()
}

fn is_json_text(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::message_header::AcpMessageHeader;
    use super::*;

    fn returned(bytes: &[u8]) -> Vec<u8> {
        let wire = WireLine { side: AcpSide::Agent, bytes: bytes.to_vec() };
        let mut record = Vec::new();
        write_wire_record(&mut record, wire.side, bytes, false);
        // A line with a header is JSON, so it is not validated again.
        let (mut known, is_json) = (Vec::new(), AcpMessageHeader::parse(bytes).is_some());
        write_wire_record(&mut known, wire.side, bytes, is_json);
        assert_eq!(known, record);
        assert!(!record.contains(&b'\n'), "a record is one line");
        assert_eq!(WireLine::from_record(&record), Some(wire));
        record
    }

    #[test]
    fn keeps_json_verbatim() {
        let line = b"{\"id\": 12345678901234567890123,\"a\":\"\\u00e9\",\"a\":1.50}\n";
        let record = returned(line);
        assert!(memchr::memmem::find(&record, &line[..line.len() - 1]).is_some());
    }

    #[test]
    fn hostile_lines_come_back() {
        let long = [b"{\"x\":\"", vec![b'y'; 5 << 20].as_slice(), b"\"}\n"].concat();
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        for line in [
            b"".as_slice(),
            b"\n",
            b"\r\n",
            b"\r",
            b"{}",
            b"{}\r\n",
            b" {}\n",
            b"{} \n",
            b"{\"a\":\"\xff\"}\n",
            b"\"\xe2\x80\xa8\"\n",
            b"{\"a\"\n",
            b"\0\n",
            &long,
            deep.as_bytes(),
        ] {
            returned(line);
        }
    }

    proptest! {
        #[test]
        fn any_line_comes_back(mut bytes: Vec<u8>, newline: bool) {
            bytes.retain(|byte| *byte != b'\n');
            if newline {
                bytes.push(b'\n');
            }
            returned(&bytes);
        }
    }
}
