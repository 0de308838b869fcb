//! Reads strings with escapes in lines of JSON, such as records of other sessions: what an agent wrote into a file has its
//! line breaks and quotes escaped there.

use std::ops::Range;
use std::sync::LazyLock;

use memchr::memmem::Finder;

use crate::unescaped_part::UnescapedPart;

/// Longer lines are not read to their end.
const MAX_LINE_BYTES: usize = 64 << 10;

static OBJECT_START: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"{\""));

/// The lines of a text that are JSON and have escaped line breaks or quotes, without the escapes.
pub(crate) fn find_json_lines(text: &[u8]) -> Vec<UnescapedPart> {
    let mut parts = Vec::new();
    if memchr::memchr(b'\\', text).is_none() {
        return parts;
    }
    let mut at = 0;
    while let Some(object) = OBJECT_START.find(&text[at..]).map(|offset| at + offset) {
        let line = &text[object..text.len().min(object + MAX_LINE_BYTES)];
        let length = memchr::memchr(b'\n', line).unwrap_or(line.len());
        let starts_line = text[..object].iter().rev().take_while(|byte| **byte == b' ').count();
        let is_start = object == starts_line || text[object - starts_line - 1] == b'\n';
        at = object + if is_start { length } else { 2 };
        if is_start && memchr::memchr(b'\\', &line[..length]).is_some() {
            parts.extend(unescape_line(text, object..object + length));
        }
    }
    parts
}

/// A line without the escapes of its line breaks and quotes. `None` if it has none.
fn unescape_line(text: &[u8], line: Range<usize>) -> Option<UnescapedPart> {
    let (mut decoded, mut offsets) = (Vec::new(), Vec::new());
    let mut at = line.start;
    let mut has_escape = false;
    while at < line.end {
        offsets.push(at);
        let escaped = match &text[at..line.end] {
            [b'\\', b'n', ..] => Some(b'\n'),
            [b'\\', b't', ..] => Some(b'\t'),
            [b'\\', b'r', ..] => Some(b'\r'),
            [b'\\', byte @ (b'"' | b'\\' | b'/'), ..] => Some(*byte),
            _ => None,
        };
        has_escape |= matches!(escaped, Some(b'\n' | b'"'));
        decoded.push(escaped.unwrap_or(text[at]));
        at += if escaped.is_some() { 2 } else { 1 };
    }
    offsets.push(line.end);
    has_escape.then_some(UnescapedPart { decoded, offsets })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_in_lines_of_json_are_unescaped_and_mapped_back() {
        let text = br#"a {"b": "\n"}
{"text": "f(\"x\")\ny"}
{"c": 1} {"path": "C:\\x"}"#;
        let parts = find_json_lines(text);
        assert_eq!(parts.len(), 1);
        assert_eq!(parts[0].decoded, b"{\"text\": \"f(\"x\")\ny\"}");
        let at = memchr::memmem::find(&parts[0].decoded, b"\ny").expect("the line break is there");
        assert_eq!(&text[parts[0].original_range(&(at..at + 2))], br"\ny");
    }
}
