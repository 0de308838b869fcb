//! A scanner for single-line JSON. Strings are most of a session, and the scanner looks only for their ends and escapes,
//! 64 bytes at a time.
//!
//! For the fields of a Claude Code record it takes 0.6 of the CPU time of `serde_json`, reading the file included
//! (`json_passes` in the benches of `steno-store`, 90 MB). It needs the whole text in memory, so it cannot replace the
//! walker, which reads documents of any size.
//!
//! It leaves unusual input (control characters, escaped names, lone surrogates, deep nesting, errors) to
//! `serde_json`, and accepts nothing that `serde_json` rejects.

use std::fmt;

use memchr::memchr;
use serde::de::value::{BorrowedStrDeserializer, MapDeserializer};
use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::value::RawValue;

use string_marks::StringMarks;

mod string_marks;

/// Deeper nesting is left to `serde_json`.
const MAX_DEPTH: usize = 100;

/// The newtype name with which [`RawJson`] requests the text of a value.
const RAW_JSON_NAME: &str = "steno_model::json::Raw";

/// Parses the object at the start of `text`, and returns its end offset; `None` if the scanner does not support it.
///
/// A nested string longer than `limit` is cut to a prefix, at most up to its first escape. It stays whole if the
/// prefix is blank or starts with `<`, because callers need what follows.
pub fn parse_first_object<'de, T: Deserialize<'de>>(
    text: &'de str,
    limit: usize,
) -> Option<(T, usize)> {
    let marks = StringMarks::scan_text(text.as_bytes())?;
    let mut skimmer = JsonScanner { text, marks, offset: 0, depth: 0, limit };
    let is_object = skimmer.peek_byte().ok()? == b'{';
    let value = is_object.then(|| T::deserialize(&mut skimmer))?;
    value.ok().map(|value| (value, skimmer.offset))
}

/// The longest prefix of at most `limit` bytes.
fn truncate_text(text: &str, limit: usize) -> &str {
    let end = (0..=limit.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

/// The JSON text of any value.
#[derive(Clone, Copy, Debug)]
pub struct RawJson<'a>(pub &'a str);

impl<'de: 'a, 'a> Deserialize<'de> for RawJson<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(RAW_JSON_NAME, RawJsonVisitor)
    }
}

struct RawJsonVisitor;

impl<'de> Visitor<'de> for RawJsonVisitor {
    type Value = RawJson<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(RawJson(text))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<Self::Value, D::Error> {
        <&RawValue>::deserialize(inner).map(|raw| RawJson(raw.get()))
    }
}

/// Input that the scanner does not support. The fallback parser reports errors.
#[derive(Debug)]
struct UnsupportedJson;

impl fmt::Display for UnsupportedJson {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON that is not plain")
    }
}

impl std::error::Error for UnsupportedJson {}

impl de::Error for UnsupportedJson {
    fn custom<T: fmt::Display>(_: T) -> Self {
        UnsupportedJson
    }
}

/// A position in a JSON text.
struct JsonScanner<'de> {
    text: &'de str,
    marks: StringMarks,
    offset: usize,
    depth: usize,
    limit: usize,
}

impl<'de> JsonScanner<'de> {
    fn remaining_bytes(&self) -> &'de [u8] {
        &self.text.as_bytes()[self.offset..]
    }

    /// Skips spaces and returns the next byte.
    fn peek_byte(&mut self) -> Result<u8, UnsupportedJson> {
        while self.remaining_bytes().first() == Some(&b' ') {
            self.offset += 1;
        }
        self.remaining_bytes().first().copied().ok_or(UnsupportedJson)
    }

    fn expect_byte(&mut self, byte: u8) -> Result<(), UnsupportedJson> {
        if self.peek_byte()? != byte {
            return Err(UnsupportedJson);
        }
        self.offset += 1;
        Ok(())
    }

    fn expect_literal(&mut self, word: &str) -> Result<(), UnsupportedJson> {
        if !self.remaining_bytes().starts_with(word.as_bytes()) {
            return Err(UnsupportedJson);
        }
        self.offset += word.len();
        Ok(())
    }

    fn enter_nested<T>(
        &mut self,
        within: impl FnOnce(&mut Self) -> Result<T, UnsupportedJson>,
    ) -> Result<T, UnsupportedJson> {
        self.offset += 1;
        self.depth += 1;
        let value = if self.depth > MAX_DEPTH { Err(UnsupportedJson) } else { within(self) };
        self.depth -= 1;
        value
    }

    /// Skips the comma before the next item. Returns `false` and skips `end` if there is none.
    fn next_item(&mut self, is_first: &mut bool, end: u8) -> Result<bool, UnsupportedJson> {
        let is_first = std::mem::take(is_first);
        match self.peek_byte()? {
            byte if byte == end => {
                self.offset += 1;
                return Ok(false);
            }
            b',' if !is_first => self.offset += 1,
            _ if is_first => return Ok(true),
            _ => return Err(UnsupportedJson),
        }
        // A trailing comma is an error.
        if self.peek_byte()? == end { Err(UnsupportedJson) } else { Ok(true) }
    }

    /// Reads a field name without escapes, and the colon after it.
    fn read_name(&mut self) -> Result<&'de str, UnsupportedJson> {
        self.expect_byte(b'"')?;
        let (begin, end) = (self.offset, self.find_string_end()?);
        if self.marks.next_escape(begin, end).is_some() {
            return Err(UnsupportedJson);
        }
        self.offset = end + 1;
        self.expect_byte(b':')?;
        Ok(&self.text[begin..end])
    }

    fn read_string<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, UnsupportedJson> {
        self.expect_byte(b'"')?;
        let (begin, end) = (self.offset, self.find_string_end()?);
        let escape = self.marks.next_escape(begin, end);
        let plain = &self.text[begin..escape.unwrap_or(end)];
        self.offset = end + 1;
        if self.offset - begin > self.limit && self.may_truncate(plain) {
            return visitor.visit_borrowed_str(truncate_text(plain, self.limit));
        }
        let Some(escape) = escape else {
            return visitor.visit_borrowed_str(plain);
        };
        self.offset = escape;
        self.read_escaped_string(plain, end).and_then(|text| visitor.visit_string(text))
    }

    /// Whether a long string may be cut to its prefix.
    fn may_truncate(&self, plain: &str) -> bool {
        let prefix = truncate_text(plain, self.limit).trim_start();
        self.depth > 1 && !prefix.is_empty() && !prefix.starts_with('<')
    }

    /// Decodes a string that starts with `plain` and ends at `end`, from its first escape on.
    fn read_escaped_string(&mut self, plain: &str, end: usize) -> Result<String, UnsupportedJson> {
        let mut text = String::with_capacity(plain.len() + end - self.offset);
        text.push_str(plain);
        while self.offset < end {
            text.push(self.read_escape()?);
            let rest = &self.text[self.offset..end];
            let next = memchr(b'\\', rest.as_bytes()).unwrap_or(rest.len());
            text.push_str(&rest[..next]);
            self.offset += next;
        }
        self.offset = end + 1;
        Ok(text)
    }

    /// The offset of the current string's closing quote.
    fn find_string_end(&self) -> Result<usize, UnsupportedJson> {
        self.marks.next_quote(self.offset).ok_or(UnsupportedJson)
    }

    /// Decodes one escape.
    fn read_escape(&mut self) -> Result<char, UnsupportedJson> {
        let kind = *self.remaining_bytes().get(1).ok_or(UnsupportedJson)?;
        self.offset += 2;
        Ok(match kind {
            b'"' | b'\\' | b'/' => char::from(kind),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let unit = self.read_code_unit()?;
                if !(0xd800..0xe000).contains(&unit) {
                    return char::from_u32(unit).ok_or(UnsupportedJson);
                }
                self.expect_literal("\\u")?;
                let units = [unit, self.read_code_unit()?].map(|unit| unit as u16);
                let mut chars = char::decode_utf16(units);
                chars
                    .next()
                    .and_then(Result::ok)
                    .filter(|_| chars.next().is_none())
                    .ok_or(UnsupportedJson)?
            }
            _ => return Err(UnsupportedJson),
        })
    }

    /// Parses four hexadecimal digits.
    fn read_code_unit(&mut self) -> Result<u32, UnsupportedJson> {
        let digits = self.remaining_bytes().get(..4).ok_or(UnsupportedJson)?;
        self.offset += 4;
        digits.iter().try_fold(0, |unit, digit| {
            char::from(*digit).to_digit(16).map(|digit| unit * 16 + digit).ok_or(UnsupportedJson)
        })
    }

    fn skip_value(&mut self) -> Result<(), UnsupportedJson> {
        match self.peek_byte()? {
            b'"' => self.skip_string(),
            b'{' => self.enter_nested(|inner| {
                let mut is_first = true;
                while inner.next_item(&mut is_first, b'}')? {
                    inner.peek_byte()?;
                    inner.skip_string()?;
                    inner.expect_byte(b':')?;
                    inner.skip_value()?;
                }
                Ok(())
            }),
            b'[' => self.enter_nested(|inner| {
                let mut is_first = true;
                while inner.next_item(&mut is_first, b']')? {
                    inner.skip_value()?;
                }
                Ok(())
            }),
            b't' => self.expect_literal("true"),
            b'f' => self.expect_literal("false"),
            b'n' => self.expect_literal("null"),
            _ => self.skip_number(),
        }
    }

    fn skip_string(&mut self) -> Result<(), UnsupportedJson> {
        self.expect_byte(b'"')?;
        self.offset = self.find_string_end()? + 1;
        Ok(())
    }

    /// Visits an integer as such. Visits other numbers as an empty map, which is how serde_json with arbitrary
    /// precision passes them, but without the text.
    fn read_number<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, UnsupportedJson> {
        let begin = self.offset;
        self.skip_number()?;
        let number = &self.text[begin..self.offset];
        match (number.parse(), number.parse()) {
            (Ok(number), _) => visitor.visit_u64(number),
            (_, Ok(negative)) if number != "-0" => visitor.visit_i64(negative),
            _ => visitor.visit_map(MapDeserializer::new(std::iter::empty::<(&str, &str)>())),
        }
    }

    fn skip_number(&mut self) -> Result<(), UnsupportedJson> {
        self.offset += usize::from(self.remaining_bytes().first() == Some(&b'-'));
        let starts_with_zero = self.remaining_bytes().first() == Some(&b'0');
        if self.skip_digits()? > 1 && starts_with_zero {
            return Err(UnsupportedJson);
        }
        if self.remaining_bytes().first() == Some(&b'.') {
            self.offset += 1;
            self.skip_digits()?;
        }
        if let Some(b'e' | b'E') = self.remaining_bytes().first() {
            self.offset += 1;
            self.offset += usize::from(matches!(self.remaining_bytes().first(), Some(b'+' | b'-')));
            self.skip_digits()?;
        }
        Ok(())
    }

    fn skip_digits(&mut self) -> Result<usize, UnsupportedJson> {
        let count = self.remaining_bytes().iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.offset += count;
        if count == 0 { Err(UnsupportedJson) } else { Ok(count) }
    }
}

impl<'de> Deserializer<'de> for &mut JsonScanner<'de> {
    type Error = UnsupportedJson;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, UnsupportedJson> {
        match self.peek_byte()? {
            b'"' => self.read_string(visitor),
            b'{' => self.enter_nested(|inner| {
                let mut items = ItemAccess { scanner: inner, is_first: true, is_done: false };
                let value = visitor.visit_map(&mut items)?;
                if items.is_done { Ok(value) } else { Err(UnsupportedJson) }
            }),
            b'[' => self.enter_nested(|inner| {
                let mut items = ItemAccess { scanner: inner, is_first: true, is_done: false };
                let value = visitor.visit_seq(&mut items)?;
                if items.is_done { Ok(value) } else { Err(UnsupportedJson) }
            }),
            b't' => self.expect_literal("true").and_then(|()| visitor.visit_bool(true)),
            b'f' => self.expect_literal("false").and_then(|()| visitor.visit_bool(false)),
            b'n' => self.expect_literal("null").and_then(|()| visitor.visit_unit()),
            _ => self.read_number(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, UnsupportedJson> {
        if self.peek_byte()? == b'n' {
            self.expect_literal("null")?;
            return visitor.visit_none();
        }
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, UnsupportedJson> {
        if name != RAW_JSON_NAME {
            return visitor.visit_newtype_struct(self);
        }
        self.peek_byte()?;
        let begin = self.offset;
        self.skip_value()?;
        visitor.visit_borrowed_str(&self.text[begin..self.offset])
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(
        self,
        visitor: V,
    ) -> Result<V::Value, UnsupportedJson> {
        self.skip_value()?;
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct enum identifier
    }
}

/// The items of an array or object.
struct ItemAccess<'s, 'de> {
    scanner: &'s mut JsonScanner<'de>,
    is_first: bool,
    is_done: bool,
}

impl ItemAccess<'_, '_> {
    fn has_next(&mut self, end: u8) -> Result<bool, UnsupportedJson> {
        self.is_done = !self.scanner.next_item(&mut self.is_first, end)?;
        Ok(!self.is_done)
    }
}

impl<'de> MapAccess<'de> for &mut ItemAccess<'_, 'de> {
    type Error = UnsupportedJson;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, UnsupportedJson> {
        if !self.has_next(b'}')? {
            return Ok(None);
        }
        let name = self.scanner.read_name()?;
        seed.deserialize(BorrowedStrDeserializer::new(name)).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<S::Value, UnsupportedJson> {
        seed.deserialize(&mut *self.scanner)
    }
}

impl<'de> SeqAccess<'de> for &mut ItemAccess<'_, 'de> {
    type Error = UnsupportedJson;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, UnsupportedJson> {
        if !self.has_next(b']')? {
            return Ok(None);
        }
        seed.deserialize(&mut *self.scanner).map(Some)
    }
}

#[cfg(test)]
mod tests;
