//! A scanner for single-line JSON, several times faster than a parser that inspects each byte. Strings are most of a
//! session, and the scanner looks only for their ends and escapes.
//!
//! It leaves unusual input (control characters, escaped names, lone surrogates, deep nesting, errors) to
//! `serde_json`, and accepts nothing that `serde_json` rejects.

use std::fmt;

use memchr::memchr;
use serde::de::value::{BorrowedStrDeserializer, MapDeserializer};
use serde::de::{self, Deserialize, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::value::RawValue;

use marks::Marks;

mod marks;

/// Deeper nesting is left to `serde_json`.
const MOST_DEPTH: usize = 100;

/// The newtype name with which [`Raw`] requests the text of a value.
const RAW: &str = "steno_core::json::Raw";

/// Parses the object at the start of `text`, and returns its end offset; `None` if the scanner does not support it.
///
/// A nested string longer than `limit` is cut to a prefix, at most up to its first escape. It stays whole if the
/// prefix is blank or starts with `<`, because callers need what follows.
pub fn first_of<'de, T: Deserialize<'de>>(text: &'de str, limit: usize) -> Option<(T, usize)> {
    let marks = Marks::of(text.as_bytes())?;
    let mut skimmer = Skimmer { text, marks, at: 0, depth: 0, limit };
    let is_object = skimmer.peek().ok()? == b'{';
    let value = is_object.then(|| T::deserialize(&mut skimmer))?;
    value.ok().map(|value| (value, skimmer.at))
}

/// The longest prefix of at most `limit` bytes.
fn beginning(text: &str, limit: usize) -> &str {
    let end = (0..=limit.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    &text[..end.unwrap_or(0)]
}

/// The JSON text of any value.
#[derive(Clone, Copy, Debug)]
pub struct Raw<'a>(pub &'a str);

impl<'de: 'a, 'a> Deserialize<'de> for Raw<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_newtype_struct(RAW, RawVisitor)
    }
}

struct RawVisitor;

impl<'de> Visitor<'de> for RawVisitor {
    type Value = Raw<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Raw(text))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<Self::Value, D::Error> {
        <&RawValue>::deserialize(inner).map(|raw| Raw(raw.get()))
    }
}

/// Input that the scanner does not support. The fallback parser reports errors.
#[derive(Debug)]
struct Odd;

impl fmt::Display for Odd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON that is not plain")
    }
}

impl std::error::Error for Odd {}

impl de::Error for Odd {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Odd
    }
}

/// A position in a JSON text.
struct Skimmer<'de> {
    text: &'de str,
    marks: Marks,
    at: usize,
    depth: usize,
    limit: usize,
}

impl<'de> Skimmer<'de> {
    fn bytes(&self) -> &'de [u8] {
        &self.text.as_bytes()[self.at..]
    }

    /// Skips spaces and returns the next byte.
    fn peek(&mut self) -> Result<u8, Odd> {
        while self.bytes().first() == Some(&b' ') {
            self.at += 1;
        }
        self.bytes().first().copied().ok_or(Odd)
    }

    fn expect(&mut self, byte: u8) -> Result<(), Odd> {
        if self.peek()? != byte {
            return Err(Odd);
        }
        self.at += 1;
        Ok(())
    }

    fn word(&mut self, word: &str) -> Result<(), Odd> {
        if !self.bytes().starts_with(word.as_bytes()) {
            return Err(Odd);
        }
        self.at += word.len();
        Ok(())
    }

    fn deeper<T>(&mut self, within: impl FnOnce(&mut Self) -> Result<T, Odd>) -> Result<T, Odd> {
        self.at += 1;
        self.depth += 1;
        let value = if self.depth > MOST_DEPTH { Err(Odd) } else { within(self) };
        self.depth -= 1;
        value
    }

    /// Skips the comma before the next item. Returns `false` and skips `end` if there is none.
    fn next_item(&mut self, is_first: &mut bool, end: u8) -> Result<bool, Odd> {
        let is_first = std::mem::take(is_first);
        match self.peek()? {
            byte if byte == end => {
                self.at += 1;
                return Ok(false);
            }
            b',' if !is_first => self.at += 1,
            _ if is_first => return Ok(true),
            _ => return Err(Odd),
        }
        // A trailing comma is an error.
        if self.peek()? == end { Err(Odd) } else { Ok(true) }
    }

    /// Reads a field name without escapes, and the colon after it.
    fn name(&mut self) -> Result<&'de str, Odd> {
        self.expect(b'"')?;
        let (begin, end) = (self.at, self.end_of_string()?);
        if self.marks.escape(begin, end).is_some() {
            return Err(Odd);
        }
        self.at = end + 1;
        self.expect(b':')?;
        Ok(&self.text[begin..end])
    }

    fn string<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Odd> {
        self.expect(b'"')?;
        let (begin, end) = (self.at, self.end_of_string()?);
        let escape = self.marks.escape(begin, end);
        let plain = &self.text[begin..escape.unwrap_or(end)];
        self.at = end + 1;
        if self.at - begin > self.limit && self.may_cut(plain) {
            return visitor.visit_borrowed_str(beginning(plain, self.limit));
        }
        let Some(escape) = escape else {
            return visitor.visit_borrowed_str(plain);
        };
        self.at = escape;
        self.unescape(plain, end).and_then(|text| visitor.visit_string(text))
    }

    /// Whether a long string may be cut to its prefix.
    fn may_cut(&self, plain: &str) -> bool {
        let prefix = beginning(plain, self.limit).trim_start();
        self.depth > 1 && !prefix.is_empty() && !prefix.starts_with('<')
    }

    /// Decodes a string that starts with `plain` and ends at `end`, from its first escape on.
    fn unescape(&mut self, plain: &str, end: usize) -> Result<String, Odd> {
        let mut text = String::with_capacity(plain.len() + end - self.at);
        text.push_str(plain);
        while self.at < end {
            text.push(self.escape()?);
            let rest = &self.text[self.at..end];
            let next = memchr(b'\\', rest.as_bytes()).unwrap_or(rest.len());
            text.push_str(&rest[..next]);
            self.at += next;
        }
        self.at = end + 1;
        Ok(text)
    }

    /// The offset of the current string's closing quote.
    fn end_of_string(&self) -> Result<usize, Odd> {
        self.marks.quote(self.at).ok_or(Odd)
    }

    /// Decodes one escape.
    fn escape(&mut self) -> Result<char, Odd> {
        let kind = *self.bytes().get(1).ok_or(Odd)?;
        self.at += 2;
        Ok(match kind {
            b'"' | b'\\' | b'/' => char::from(kind),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let unit = self.unit()?;
                if !(0xd800..0xe000).contains(&unit) {
                    return char::from_u32(unit).ok_or(Odd);
                }
                self.word("\\u")?;
                let units = [unit, self.unit()?].map(|unit| unit as u16);
                let mut chars = char::decode_utf16(units);
                chars.next().and_then(Result::ok).filter(|_| chars.next().is_none()).ok_or(Odd)?
            }
            _ => return Err(Odd),
        })
    }

    /// Parses four hexadecimal digits.
    fn unit(&mut self) -> Result<u32, Odd> {
        let digits = self.bytes().get(..4).ok_or(Odd)?;
        self.at += 4;
        digits.iter().try_fold(0, |unit, digit| {
            char::from(*digit).to_digit(16).map(|digit| unit * 16 + digit).ok_or(Odd)
        })
    }

    fn skip(&mut self) -> Result<(), Odd> {
        match self.peek()? {
            b'"' => self.skip_string(),
            b'{' => self.deeper(|inner| {
                let mut is_first = true;
                while inner.next_item(&mut is_first, b'}')? {
                    inner.peek()?;
                    inner.skip_string()?;
                    inner.expect(b':')?;
                    inner.skip()?;
                }
                Ok(())
            }),
            b'[' => self.deeper(|inner| {
                let mut is_first = true;
                while inner.next_item(&mut is_first, b']')? {
                    inner.skip()?;
                }
                Ok(())
            }),
            b't' => self.word("true"),
            b'f' => self.word("false"),
            b'n' => self.word("null"),
            _ => self.skip_number(),
        }
    }

    fn skip_string(&mut self) -> Result<(), Odd> {
        self.expect(b'"')?;
        self.at = self.end_of_string()? + 1;
        Ok(())
    }

    /// Visits an integer as such. Visits other numbers as an empty map, which is how serde_json with arbitrary
    /// precision passes them, but without the text.
    fn number<V: Visitor<'de>>(&mut self, visitor: V) -> Result<V::Value, Odd> {
        let begin = self.at;
        self.skip_number()?;
        let number = &self.text[begin..self.at];
        match (number.parse(), number.parse()) {
            (Ok(number), _) => visitor.visit_u64(number),
            (_, Ok(negative)) if number != "-0" => visitor.visit_i64(negative),
            _ => visitor.visit_map(MapDeserializer::new(std::iter::empty::<(&str, &str)>())),
        }
    }

    fn skip_number(&mut self) -> Result<(), Odd> {
        self.at += usize::from(self.bytes().first() == Some(&b'-'));
        let starts_with_zero = self.bytes().first() == Some(&b'0');
        if self.digits()? > 1 && starts_with_zero {
            return Err(Odd);
        }
        if self.bytes().first() == Some(&b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.bytes().first() {
            self.at += 1;
            self.at += usize::from(matches!(self.bytes().first(), Some(b'+' | b'-')));
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<usize, Odd> {
        let count = self.bytes().iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        if count == 0 { Err(Odd) } else { Ok(count) }
    }
}

impl<'de> Deserializer<'de> for &mut Skimmer<'de> {
    type Error = Odd;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Odd> {
        match self.peek()? {
            b'"' => self.string(visitor),
            b'{' => self.deeper(|inner| {
                let mut items = Items { skimmer: inner, is_first: true, is_done: false };
                let value = visitor.visit_map(&mut items)?;
                if items.is_done { Ok(value) } else { Err(Odd) }
            }),
            b'[' => self.deeper(|inner| {
                let mut items = Items { skimmer: inner, is_first: true, is_done: false };
                let value = visitor.visit_seq(&mut items)?;
                if items.is_done { Ok(value) } else { Err(Odd) }
            }),
            b't' => self.word("true").and_then(|()| visitor.visit_bool(true)),
            b'f' => self.word("false").and_then(|()| visitor.visit_bool(false)),
            b'n' => self.word("null").and_then(|()| visitor.visit_unit()),
            _ => self.number(visitor),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Odd> {
        if self.peek()? == b'n' {
            self.word("null")?;
            return visitor.visit_none();
        }
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Odd> {
        if name != RAW {
            return visitor.visit_newtype_struct(self);
        }
        self.peek()?;
        let begin = self.at;
        self.skip()?;
        visitor.visit_borrowed_str(&self.text[begin..self.at])
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Odd> {
        self.skip()?;
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct enum identifier
    }
}

/// The items of an array or object.
struct Items<'s, 'de> {
    skimmer: &'s mut Skimmer<'de>,
    is_first: bool,
    is_done: bool,
}

impl Items<'_, '_> {
    fn has_next(&mut self, end: u8) -> Result<bool, Odd> {
        self.is_done = !self.skimmer.next_item(&mut self.is_first, end)?;
        Ok(!self.is_done)
    }
}

impl<'de> MapAccess<'de> for &mut Items<'_, 'de> {
    type Error = Odd;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Odd> {
        if !self.has_next(b'}')? {
            return Ok(None);
        }
        let name = self.skimmer.name()?;
        seed.deserialize(BorrowedStrDeserializer::new(name)).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Odd> {
        seed.deserialize(&mut *self.skimmer)
    }
}

impl<'de> SeqAccess<'de> for &mut Items<'_, 'de> {
    type Error = Odd;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, Odd> {
        if !self.has_next(b']')? {
            return Ok(None);
        }
        seed.deserialize(&mut *self.skimmer).map(Some)
    }
}

#[cfg(test)]
mod tests;
