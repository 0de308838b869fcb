//! The beginning of a JSON document: enough to tell whose it is without reading it all.

use std::io::Read;

use crate::durable::{FileError, OnPath};
use crate::source::Source;

/// How much of a document is looked at.
const PROBED_BYTES: u64 = 64 << 10;

/// The first bytes of a file.
pub(crate) struct Opening(String);

impl Opening {
    /// Reads no further than to the first byte when it begins no object and no list.
    pub(crate) fn of(source: &Source) -> Result<Self, FileError> {
        let mut reader = source.open()?;
        let first = reader.fill_buf().on("read", source.path())?;
        let text = first.strip_prefix(b"\xef\xbb\xbf").unwrap_or(first).trim_ascii_start();
        if !matches!(text.first(), Some(b'{' | b'[')) {
            return Ok(Self(String::new()));
        }
        let mut bytes = Vec::new();
        reader.take(PROBED_BYTES).read_to_end(&mut bytes).on("read", source.path())?;
        Ok(Self(String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// The beginning of the value of `key` in the outermost object, as far as it is at hand.
    pub(crate) fn field(&self, key: &str) -> Option<&str> {
        let mut rest = self.text().strip_prefix('{')?;
        loop {
            rest = rest.trim_start_matches(|c: char| c == ',' || c.is_ascii_whitespace());
            let end = string_end(rest)?;
            let name = &rest[1..end - 1];
            let value = rest[end..].trim_ascii_start().strip_prefix(':')?.trim_ascii_start();
            if name == key {
                return Some(value);
            }
            rest = &value[value_end(value)?..];
        }
    }

    /// The first item of a document that is a list.
    pub(crate) fn first_item(&self) -> Option<Opening> {
        let item = self.text().strip_prefix('[')?.trim_ascii_start();
        Some(Self(item.to_owned()))
    }

    fn text(&self) -> &str {
        self.0.trim_start_matches('\u{feff}').trim_ascii_start()
    }
}

/// Where the string ends that `text` begins with.
fn string_end(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    if bytes.first() != Some(&b'"') {
        return None;
    }
    let mut at = 1;
    while at < bytes.len() {
        match bytes[at] {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    None
}

/// Where the value ends that `text` begins with.
fn value_end(text: &str) -> Option<usize> {
    let (mut at, mut depth) = (0, 0_usize);
    while let Some(byte) = text.as_bytes().get(at) {
        match byte {
            b'"' => {
                at += string_end(&text[at..])?;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' | b',' if depth == 0 => return Some(at),
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        at += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opening(text: &str) -> Opening {
        Opening::of(&Source::in_memory("x", "x", text.as_bytes().to_vec())).unwrap()
    }

    #[test]
    fn fields_are_found_in_the_outermost_object_only() {
        let document = opening(r#" {"a\"":"}","b":{"c":[1,{"d":"]"}]},"e" : [ {"f" "#);
        assert_eq!(document.field("b").map(|value| &value[..5]), Some(r#"{"c":"#));
        assert_eq!(document.field("e"), Some(r#"[ {"f" "#));
        assert_eq!(document.field("c"), None);
        assert_eq!(opening("[1]").field("a"), None);
        assert_eq!(opening("plain \"a\": 1").field("a"), None);
    }

    #[test]
    fn a_list_shows_its_first_item() {
        let list = opening("\u{feff}[ {\"ts\":1}]");
        assert_eq!(list.first_item().unwrap().field("ts"), Some("1}]"));
    }

    #[test]
    fn a_cut_anywhere_is_no_trouble() {
        let text = r#"{"a\"é":"}","b":{"c":[1,{"d":"]"}]},"e":null}"#;
        for (end, _) in text.char_indices() {
            opening(&text[..end]).field("e");
        }
    }
}
