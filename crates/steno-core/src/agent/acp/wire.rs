//! The record of one wire line: its sender and its exact bytes.
//!
//! A JSON line is embedded verbatim, other text becomes a string, other bytes become base64. The field `end` holds
//! the line ending if it is not `\n`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::Heard;
use crate::timestamp::Timestamp;
use crate::vault::live::Sum;

/// The sender of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The editor.
    Client,
    /// The agent.
    Agent,
}

impl Side {
    /// The other side.
    pub fn other(self) -> Self {
        match self {
            Side::Client => Side::Agent,
            Side::Agent => Side::Client,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Side::Client => "client",
            Side::Agent => "agent",
        }
    }
}

/// A line of the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wire {
    /// The sender.
    pub side: Side,
    /// The bytes including the line ending, with secrets redacted.
    pub bytes: Vec<u8>,
}

/// The prefix of every wire record.
const PREFIX: &[u8] = b"{\"acp\":\"";

#[derive(Deserialize)]
struct Record<'a> {
    acp: Side,
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
struct Envelope<'a> {
    at: Timestamp,
    #[serde(borrow)]
    raw: &'a RawValue,
}

impl Wire {
    /// Parses a record. `None` if it is not a wire record.
    pub fn of_record(record: &[u8]) -> Option<Self> {
        let record: Record<'_> =
            record.starts_with(PREFIX).then(|| serde_json::from_slice(record).ok())??;
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
pub(crate) fn write_record(out: &mut Vec<u8>, side: Side, bytes: &[u8], is_json: bool) {
    let (body, end) = split_end(bytes);
    for part in [PREFIX, side.name().as_bytes(), b"\","] {
        out.extend_from_slice(part);
    }
    match simdutf8::basic::from_utf8(body) {
        Ok(text) if is_bare(text) && (is_json || is_json_text(text)) => {
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
pub(crate) fn begins_as_in_log(line: &[u8]) -> bool {
    line.starts_with(PREFIX) || line.starts_with(Sum::PREFIX)
}

/// Parses a line of a wire log, which may be wrapped in the recorder's envelope.
pub(crate) fn in_log(line: &[u8]) -> Option<Heard> {
    if line.starts_with(PREFIX) {
        return Some((None, Wire::of_record(line)?));
    }
    let envelope: Envelope<'_> = serde_json::from_slice(line).ok()?;
    Some((Some(envelope.at), Wire::of_record(envelope.raw.get().as_bytes())?))
}

/// Whether a log line is the recorder's own open or close record.
pub(crate) fn is_own_word(line: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Word {
        #[serde(default)]
        open: Option<IgnoredAny>,
        #[serde(default)]
        close: Option<IgnoredAny>,
    }
    let parsed = serde_json::from_slice::<Word>(line);
    parsed.is_ok_and(|parsed| parsed.open.is_some() || parsed.close.is_some())
}

fn split_end(bytes: &[u8]) -> (&[u8], &[u8]) {
    let length = match bytes {
        [.., b'\r', b'\n'] => 2,
        [.., b'\n'] => 1,
        _ => 0,
    };
    bytes.split_at(bytes.len() - length)
}

/// Whether text can be embedded verbatim: no newline inside, and no surrounding white space, which would be lost.
fn is_bare(text: &str) -> bool {
    text.trim_ascii().len() == text.len() && memchr::memchr(b'\n', text.as_bytes()).is_none()
}

fn is_json_text(text: &str) -> bool {
    serde_json::from_str::<IgnoredAny>(text).is_ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::address::Address;
    use super::*;

    fn returned(bytes: &[u8]) -> Vec<u8> {
        let wire = Wire { side: Side::Agent, bytes: bytes.to_vec() };
        let mut record = Vec::new();
        write_record(&mut record, wire.side, bytes, false);
        // A line with a header is JSON, so it is not validated again.
        let (mut known, is_json) = (Vec::new(), Address::of(bytes).is_some());
        write_record(&mut known, wire.side, bytes, is_json);
        assert_eq!(known, record);
        assert!(!record.contains(&b'\n'), "a record is one line");
        assert_eq!(Wire::of_record(&record), Some(wire));
        record
    }

    #[test]
    fn json_stands_verbatim() {
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
