//! The start of a file: enough to tell whose it is without reading all of it.

use std::io::Read;

use serde_json::Value;

use crate::durable::{FileError, OnPath};
use crate::json::Object;
use crate::source::Source;

/// How much of a file is looked at.
const LENGTH: u64 = 64 << 10;

/// The first bytes of a file.
#[derive(Debug)]
pub(crate) struct Head {
    bytes: Vec<u8>,
}

impl Head {
    /// Reads the first bytes of `source`.
    pub(crate) fn of(source: &Source) -> Result<Self, FileError> {
        let mut bytes = Vec::new();
        source.open()?.take(LENGTH).read_to_end(&mut bytes).on("read", source.path())?;
        Ok(Self { bytes })
    }

    /// The fields of the first object that are in sight. A value that is cut off or nested is null.
    pub(crate) fn fields(&self) -> Object {
        let mut fields = Object::new();
        let mut scan = Scan { bytes: self.bytes.trim_ascii_start(), at: 0 };
        if scan.next() != Some(b'{') {
            return fields;
        }
        while let Some(key) = scan.string() {
            if scan.token() != Some(b':') {
                break;
            }
            let start = scan.at;
            let whole = scan.skip_value();
            let value = whole.then(|| serde_json::from_slice(&scan.bytes[start..scan.at]).ok());
            let scalar = value.flatten().filter(|value: &Value| !value.is_object());
            fields.insert(key, scalar.filter(|value| !value.is_array()).unwrap_or(Value::Null));
            if !whole || scan.token() != Some(b',') {
                break;
            }
        }
        fields
    }

    /// The first object of each line in sight, also where several are glued or one is cut off after it.
    pub(crate) fn objects(&self) -> impl Iterator<Item = Object> {
        self.bytes.split(|byte| *byte == b'\n').filter_map(|line| {
            serde_json::Deserializer::from_slice(line).into_iter::<Object>().next()?.ok()
        })
    }

    /// Whether `pattern`, JSON without white space, is somewhere in sight.
    pub(crate) fn shows(&self, pattern: &str) -> bool {
        let packed: Vec<u8> =
            self.bytes.iter().copied().filter(|byte| !byte.is_ascii_whitespace()).collect();
        memchr::memmem::find(&packed, pattern.as_bytes()).is_some()
    }
}

/// Walks over the bytes of one object that may be cut off anywhere.
struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Scan<'_> {
    fn next(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    /// The next byte that is not white space.
    fn token(&mut self) -> Option<u8> {
        loop {
            let byte = self.next()?;
            if !byte.is_ascii_whitespace() {
                return Some(byte);
            }
        }
    }

    /// The string that comes next.
    fn string(&mut self) -> Option<String> {
        if self.token()? != b'"' {
            return None;
        }
        let start = self.at - 1;
        self.skip_string()?;
        serde_json::from_slice(&self.bytes[start..self.at]).ok()
    }

    /// Moves past the rest of a string.
    fn skip_string(&mut self) -> Option<()> {
        loop {
            match self.next()? {
                b'"' => return Some(()),
                b'\\' => self.at += 1,
                _ => {}
            }
        }
    }

    /// Moves past a value; says whether all of it was in sight.
    fn skip_value(&mut self) -> bool {
        let mut depth = 0_usize;
        while let Some(byte) = self.next() {
            match byte {
                b'"' if self.skip_string().is_none() => return false,
                b'"' => {}
                b'{' | b'[' => depth += 1,
                b'}' | b']' | b',' if depth == 0 => {
                    self.at -= 1;
                    return true;
                }
                b'}' | b']' => depth -= 1,
                _ => {}
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn head(text: &str) -> Head {
        Head { bytes: text.into() }
    }

    #[test]
    fn fields_are_seen_up_to_the_cut() {
        let fields = head(r#" { "a": "x,}\"", "b": {"c": [1]}, "d": 3, "e": [{"f":"#).fields();
        assert_eq!(Value::Object(fields), json!({"a": "x,}\"", "b": null, "d": 3, "e": null}));
        assert!(head("[1]").fields().is_empty());
    }

    #[test]
    fn glued_objects_show_their_first() {
        let found: Vec<_> = head("{\"a\":1}{\"b\":2}\nnoise\n{\"c\":3}").objects().collect();
        assert_eq!(found.len(), 2);
        assert!(found[0].contains_key("a"));
    }

    proptest! {
        #[test]
        fn any_bytes_can_be_looked_at(bytes: Vec<u8>, text in "[{}\\[\\]\",:\\\\a ]{0,40}") {
            let _ = Head { bytes }.fields();
            let _ = head(&text).fields();
        }
    }
}
