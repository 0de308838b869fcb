//! Escapes JSON output: control and bidirectional characters become `\u` escapes.
//!
//! Outside of strings JSON is ASCII, so an escape is valid wherever such a character occurs. The output parses to the
//! same values.

use std::io::{self, Write};

/// Returns whether this is the first byte, in UTF-8, of characters that must not reach a terminal. C0 characters are
/// missing: JSON strings cannot contain them.
fn is_forbidden_start(byte: u8) -> bool {
    matches!(byte, b'\r' | 0x7f | 0xc2 | 0xd8 | 0xe2)
}

/// Writes JSON to `inner` and escapes characters that could control a terminal.
pub(crate) struct JsonEscaper<W: Write> {
    inner: W,
    /// Buffer for the first bytes of an incomplete character.
    pending: Vec<u8>,
}

impl<W: Write> JsonEscaper<W> {
    pub(crate) fn new(inner: W) -> Self {
        Self { inner, pending: Vec::new() }
    }

    fn write_escaped(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while let Some(at) = find_forbidden_start(bytes) {
            self.inner.write_all(&bytes[..at])?;
            bytes = &bytes[at..];
            let length = match bytes[0] {
                b'\r' | 0x7f => 1,
                0xe2 => 3,
                _ => 2,
            };
            let Some(character) = bytes.get(..length) else {
                self.pending = bytes.to_vec();
                return Ok(());
            };
            match std::str::from_utf8(character).ok().and_then(|text| text.chars().next()) {
                // Between values, where it is whitespace.
                Some('\r') => self.inner.write_all(b" ")?,
                Some(c) if is_unsafe(c) => write!(self.inner, "\\u{:04x}", u32::from(c))?,
                _ => self.inner.write_all(character)?,
            }
            bytes = &bytes[length..];
        }
        self.inner.write_all(bytes)
    }
}

impl<W: Write> Write for JsonEscaper<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.pending.is_empty() {
            self.write_escaped(bytes)?;
        } else {
            let mut joined = std::mem::take(&mut self.pending);
            joined.extend_from_slice(bytes);
            self.write_escaped(&joined)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// Returns where the first such byte is. Most output has none, so whole blocks are tested without a branch at each byte,
/// which compilers turn into vector instructions: a twentieth of the time.
fn find_forbidden_start(bytes: &[u8]) -> Option<usize> {
    let is_clean =
        |block: &&[u8]| !block.iter().fold(false, |any, byte| any | is_forbidden_start(*byte));
    let clean: usize = bytes.chunks(64).take_while(is_clean).map(<[u8]>::len).sum();
    bytes[clean..].iter().position(|byte| is_forbidden_start(*byte)).map(|at| clean + at)
}

/// Returns whether a character can control a terminal or reorder text.
pub(crate) fn is_unsafe(c: char) -> bool {
    let is_bidi = matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    c.is_control() || is_bidi
}

/// Escapes characters in JSON text that could control a terminal.
pub(crate) fn escape_json(text: &str) -> Vec<u8> {
    let mut escaper = JsonEscaper::new(Vec::with_capacity(text.len()));
    escaper.write_all(text.as_bytes()).expect("memory takes all that is written");
    escaper.inner
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn hostile() -> Value {
        let text: String = ('\0'..='\u{20}')
            .chain('\u{7e}'..='\u{a1}')
            .chain(['ä', '\u{61c}', '؟', '€', '😀', '\\', '"'])
            .chain('\u{2000}'..='\u{2070}')
            .collect();
        json!({ "key\u{9b}": [text, "plain"], "日本\u{202e}": 1 })
    }

    fn check(escaped: &[u8]) {
        let text = std::str::from_utf8(escaped).unwrap();
        assert!(!text.contains(is_unsafe), "{text}");
        assert_eq!(serde_json::from_str::<Value>(text).unwrap(), hostile());
    }

    #[test]
    fn values_stay_the_same_and_nothing_can_drive_a_terminal() {
        check(&escape_json(&hostile().to_string()));
        assert_eq!(
            escape_json("{\"a\":1,\r\"ä€\":\"\u{7f}\"}"),
            "{\"a\":1, \"ä€\":\"\\u007f\"}".as_bytes()
        );
    }

    #[test]
    fn characters_may_come_in_parts() {
        let text = hostile().to_string();
        for size in 1..4 {
            let mut escaper = JsonEscaper::new(Vec::new());
            for part in text.as_bytes().chunks(size) {
                escaper.write_all(part).unwrap();
            }
            check(&escaper.inner);
        }
    }
}
