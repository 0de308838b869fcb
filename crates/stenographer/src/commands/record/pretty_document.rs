//! Joins a JSON document that spans several lines, such as a pretty-printed list of messages, into one.
//!
//! A record is one line. Whitespace between tokens is dropped; tokens stay unchanged. Lines that are not such a
//! document are returned unchanged.

use std::io::{self, BufRead};

use serde::de::IgnoredAny;
use serde_json::error::Category;
use steno_model::lines::{InputLine, LineEnd, LineReader, MAX_LINE_LENGTH};

/// Returns the document that starts with `first` as one line, or all lines read so far if there is none.
pub(super) fn read_document<R: BufRead>(
    first: InputLine,
    lines: &mut LineReader<R>,
) -> io::Result<Vec<InputLine>> {
    if !is_unfinished(&first.bytes) {
        return Ok(vec![first]);
    }
    let mut read = vec![first];
    let mut joined = read[0].bytes.clone();
    let mut balance = BracketBalance::default();
    balance.feed(&joined);
    while !balance.is_closed() {
        // Separate records cause a parse error soon, so checking at powers of two is enough.
        let is_due = read.len().is_power_of_two();
        if joined.len() > MAX_LINE_LENGTH || (is_due && !is_unfinished(&joined)) {
            return Ok(read);
        }
        let Some(line) = lines.read_line()? else {
            return Ok(read);
        };
        balance.feed(b"\n");
        balance.feed(&line.bytes);
        joined.push(b'\n');
        joined.extend_from_slice(&line.bytes);
        read.push(line);
    }
    if serde_json::from_slice::<IgnoredAny>(&joined).is_err() {
        return Ok(read);
    }
    let (number, bytes) = (read[0].number, strip_whitespace(&joined));
    Ok(vec![InputLine { number, bytes, end: LineEnd::Newline, is_continuation: false }])
}

/// Returns whether the bytes start an object or a list without its end.
fn is_unfinished(bytes: &[u8]) -> bool {
    let opens = matches!(bytes.trim_ascii_start().first(), Some(b'{' | b'['));
    opens
        && serde_json::from_slice::<IgnoredAny>(bytes)
            .is_err_and(|error| error.classify() == Category::Eof)
}

/// Tracks open brackets in JSON.
#[derive(Default)]
struct BracketBalance {
    depth: usize,
    in_string: bool,
    is_escaped: bool,
    has_begun: bool,
}

impl BracketBalance {
    fn feed(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.feed_byte(*byte);
        }
    }

    fn feed_byte(&mut self, byte: u8) {
        match byte {
            _ if self.is_escaped => self.is_escaped = false,
            b'\\' if self.in_string => self.is_escaped = true,
            b'"' => self.in_string = !self.in_string,
            _ if self.in_string => {}
            b'{' | b'[' => {
                self.depth += 1;
                self.has_begun = true;
            }
            b'}' | b']' => self.depth = self.depth.saturating_sub(1),
            _ => {}
        }
    }

    fn is_closed(&self) -> bool {
        self.has_begun && self.depth == 0
    }
}

/// Removes the whitespace between tokens.
fn strip_whitespace(json: &[u8]) -> Vec<u8> {
    let mut balance = BracketBalance::default();
    let mut kept = Vec::with_capacity(json.len());
    for byte in json {
        if balance.in_string || !byte.is_ascii_whitespace() {
            kept.push(*byte);
        }
        balance.feed_byte(*byte);
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<String> {
        let mut lines = LineReader::new(text.as_bytes());
        let first = lines.read_line().unwrap().unwrap();
        let mut found = read_document(first, &mut lines).unwrap();
        while let Some(line) = lines.read_line().unwrap() {
            found.push(line);
        }
        found.into_iter().map(|line| String::from_utf8(line.bytes).unwrap()).collect()
    }

    #[test]
    fn a_document_over_several_lines_becomes_one() {
        let text = "[\n  {\"a\": \"x \\\"] y\", \"n\": 1.50},\n  2\n]\n{\"b\": 1}\n";
        assert_eq!(read(text), ["[{\"a\":\"x \\\"] y\",\"n\":1.50},2]", "{\"b\": 1}"]);
    }

    #[test]
    fn lines_with_records_stay_unchanged() {
        for text in [
            "{\"a\": 1}\n{\"b\": 2}\n",
            "{\"torn\n{\"b\": 2}\n{\"c\": 3}\n",
            "[\n{}\n{}\n",
            "x\n{}\n",
            "[\n1,\n",
        ] {
            assert_eq!(read(text).join("\n") + "\n", text);
        }
    }
}
