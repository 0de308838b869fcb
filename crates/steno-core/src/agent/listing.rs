//! A JSON document whose records stand in one list: of a large one, a record at a time is read and held.
//!
//! A large document is read twice, first for what stands beside the list. What serde cannot read that way, such as one
//! with bytes that are no text, is read and repaired as a whole, as every small one is.

use std::cell::Cell;
use std::fmt;
use std::io::{self, BufRead, Read};
use std::rc::Rc;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::repair;
use crate::durable::{FileError, OnPath};
use crate::json::{Object, Value};
use crate::lines::LINE_LIMIT;
use crate::problem::Problem;
use crate::source::Source;

/// A document that is no larger is held as a whole.
const SMALL: u64 = 8 << 20;

/// A document, its list not read yet.
pub(crate) struct Listing<'s> {
    source: &'s Source,
    /// The field that holds the list; none where the document is the list.
    field: Option<&'static str>,
    /// What stands beside the list.
    pub(crate) fields: Object,
    /// The records, where the document is held.
    held: Option<Vec<Value>>,
}

impl<'s> Listing<'s> {
    /// The document in `source`, whose records stand in its field `field` or are all of it; or why it is none.
    pub(crate) fn of(
        source: &'s Source,
        field: Option<&'static str>,
    ) -> Result<Result<Self, Problem>, FileError> {
        let mut start = Vec::new();
        source.open()?.take(SMALL + 1).read_to_end(&mut start).on("read", source.path())?;
        if start.len() as u64 <= SMALL {
            return Ok(Self::held(source, field, &start));
        }
        drop(start);
        let mut listing = Self { source, field, fields: Object::new(), held: None };
        let mut fields = Object::new();
        let mut beside = Beside { fields: Some(&mut fields), record: &mut |_| {} };
        match listing.pass(&mut beside)? {
            Ok(()) => listing.fields = fields,
            Err(_) => return Ok(Self::held(source, field, &source.bytes()?)),
        }
        Ok(Ok(listing))
    }

    fn held(
        source: &'s Source,
        field: Option<&'static str>,
        bytes: &[u8],
    ) -> Result<Self, Problem> {
        let whole = repair::parse(bytes).map_err(|why| Problem::of(source.path(), why))?;
        let (fields, list) = match (whole, field) {
            (Value::Object(mut fields), Some(field)) => {
                let list = fields.shift_remove(field);
                (fields, list)
            }
            (Value::Array(list), None) => (Object::new(), Some(Value::Array(list))),
            _ => {
                let kind = if field.is_some() { "object" } else { "list" };
                return Err(Problem::of(source.path(), format!("not a JSON {kind}")));
            }
        };
        let held = match list {
            Some(Value::Array(list)) => list,
            _ => Vec::new(),
        };
        Ok(Self { source, field, fields, held: Some(held) })
    }

    /// Gives each record to `take`, in order; one that is no JSON as the reason why.
    pub(crate) fn each(self, mut take: impl FnMut(Result<Value, String>)) -> Result<(), FileError> {
        if let Some(held) = self.held {
            held.into_iter().for_each(|record| take(Ok(record)));
            return Ok(());
        }
        let mut record = |raw: &RawValue| take(repair::parse(raw.get().as_bytes()));
        let ended = self.pass(&mut Beside { fields: None, record: &mut record })?;
        // It was whole a moment ago.
        ended.map_err(io::Error::other).on("read", self.source.path())
    }

    /// Reads the document once.
    fn pass(&self, beside: &mut Beside<'_>) -> Result<serde_json::Result<()>, FileError> {
        let room = Rc::new(Cell::new(LINE_LIMIT));
        let input = Metered { input: self.source.open()?, room: Rc::clone(&room) };
        let mut document = serde_json::Deserializer::from_reader(input);
        let reading = Reading { field: self.field, room: &room, beside };
        let ended = reading.deserialize(&mut document).and_then(|()| document.end());
        match ended {
            Err(error)
                if error.is_io() && error.io_error_kind() != Some(io::ErrorKind::FileTooLarge) =>
            {
                Err(io::Error::from(error)).on("read", self.source.path())
            }
            ended => Ok(ended),
        }
    }
}

/// Where the parts of a document go.
struct Beside<'a> {
    /// What stands beside the list, if it is wanted.
    fields: Option<&'a mut Object>,
    record: &'a mut dyn FnMut(&RawValue),
}

/// Input of which no more is read at once than there is room for.
pub(super) struct Metered {
    pub(super) input: Box<dyn BufRead>,
    pub(super) room: Rc<Cell<usize>>,
}

impl Read for Metered {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let room = self.room.get();
        let count = self.input.read(buffer)?;
        if count > room {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "message too long"));
        }
        self.room.set(room - count);
        Ok(count)
    }
}

struct Reading<'r, 'a> {
    field: Option<&'static str>,
    /// Bytes that the field or record which is read next may have.
    room: &'r Cell<usize>,
    beside: &'r mut Beside<'a>,
}

impl<'de> DeserializeSeed<'de> for Reading<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, input: D) -> Result<(), D::Error> {
        match self.field {
            Some(_) => input.deserialize_map(self),
            None => input.deserialize_seq(self),
        }
    }
}

impl<'de> Visitor<'de> for Reading<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a document with a list")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(name) = map.next_key::<String>()? {
            self.room.set(LINE_LIMIT);
            if self.field == Some(name.as_str()) {
                let list = Reading { field: None, room: self.room, beside: &mut *self.beside };
                map.next_value_seed(list)?;
            } else if let Some(fields) = &mut self.beside.fields {
                fields.insert(name, map.next_value()?);
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(raw) = list.next_element::<Box<RawValue>>()? {
            (self.beside.record)(&raw);
            self.room.set(LINE_LIMIT);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], field: Option<&'static str>) -> Result<(Object, Vec<Value>), Problem> {
        let source = Source::in_memory("x.json", "x.json", bytes.to_vec());
        let mut listing = Listing::of(&source, field).unwrap()?;
        let fields = std::mem::take(&mut listing.fields);
        let mut records = Vec::new();
        listing.each(|record| records.push(record.unwrap())).unwrap();
        Ok((fields, records))
    }

    /// A document with one record that is made so large that it is not held.
    fn large(before: &str, after: &str) -> Vec<u8> {
        let filler = "x".repeat(SMALL as usize);
        format!("{before}{{\"id\":1,\"text\":\"{filler}\"}}{after}").into_bytes()
    }

    #[test]
    fn a_large_document_reads_as_a_small_one() {
        let (before, after) = ("{\"a\":1.50,\"list\":[", ",{\"id\":2},\"\\ud83d\"],\"b\":[2]}");
        let (fields, mut records) = read(&large(before, after), Some("list")).unwrap();
        let small = read(format!("{before}{{\"id\":1}}{after}").as_bytes(), Some("list")).unwrap();
        records[0].as_object_mut().unwrap().shift_remove("text");
        assert_eq!((fields, records), small);
        assert_eq!(read(&large("[", "]"), None).unwrap().1.len(), 1);
    }

    #[test]
    fn what_cannot_be_read_by_parts_is_read_as_a_whole() {
        for after in [",NaN]}", ",\"\u{0}\"]}"] {
            let mut bytes = large("{\"list\":[", after);
            let at = bytes.iter().position(|byte| *byte == 0);
            at.into_iter().for_each(|at| bytes[at] = 0xff);
            assert_eq!(read(&bytes, Some("list")).unwrap().1.len(), 2, "{after}");
        }
        let cut = read(&large("{\"list\":[", ",1"), Some("list"));
        assert!(cut.unwrap_err().reason.starts_with("not JSON"));
        assert_eq!(read(b"[]", Some("list")).unwrap_err().reason, "not a JSON object");
        assert_eq!(read(b"{}", None).unwrap_err().reason, "not a JSON list");
        assert_eq!(read(b"{\"list\":null}", Some("list")).unwrap().1, [] as [Value; 0]);
    }

    #[test]
    fn no_more_is_read_than_there_is_room() {
        let room = Rc::new(Cell::new(3));
        let mut input = Metered { input: Box::new(&b"abcdef"[..]), room: Rc::clone(&room) };
        let mut byte = [0];
        for _ in 0..3 {
            assert_eq!(input.read(&mut byte).unwrap(), 1);
        }
        assert_eq!(input.read(&mut byte).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    }
}
