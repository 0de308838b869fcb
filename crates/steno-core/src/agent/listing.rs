//! A JSON document with its records in a list. A large document is read one record at a time.
//!
//! A large document is scanned twice, first for the fields beside the list. A small one is parsed whole.

use std::io::Read;

use super::repair;
use super::walk::{Walk, malformed};
use crate::durable::{FileError, OnPath};
use crate::json::{Object, Value};
use crate::problem::Problem;
use steno_vault::Source;

/// Documents up to this size, in bytes, are parsed whole.
const SMALL: u64 = 8 << 20;

/// Fields that may hold the list, in order of preference. Empty if the document itself is the list.
type Names = &'static [&'static str];

/// A document with the records of its list still unread.
pub(crate) struct Listing<'s> {
    source: &'s Source,
    /// The field that holds the records. `None` if the document is the list, or if no field has records.
    pub(crate) field: Option<&'static str>,
    /// The fields beside the lists.
    pub(crate) fields: Object,
    /// The records of a document parsed whole.
    held: Option<Vec<Value>>,
}

impl<'s> Listing<'s> {
    /// Opens the document in `source`. Its records are in the first field of `names` that has any, or the document is
    /// the list. The inner error says why it is not such a document.
    pub(crate) fn of(source: &'s Source, names: Names) -> Result<Result<Self, Problem>, FileError> {
        let mut start = Vec::new();
        source.open()?.take(SMALL + 1).read_to_end(&mut start).on("read", source.path())?;
        if start.len() as u64 <= SMALL {
            return Ok(Self::held(source, names, &start));
        }
        drop(start);
        Self::large(source, names)
    }

    fn held(source: &'s Source, names: Names, bytes: &[u8]) -> Result<Self, Problem> {
        let whole = repair::parse(bytes).map_err(|why| Problem::of(source.path(), why))?;
        let (mut listing, lists) = match whole {
            Value::Object(mut fields) if !names.is_empty() => {
                let lists = names.iter().map(|name| fields.shift_remove(*name)).collect();
                (Self { source, field: None, fields, held: None }, lists)
            }
            list @ Value::Array(_) if names.is_empty() => {
                let listing = Self { source, field: None, fields: Object::new(), held: None };
                (listing, vec![Some(list)])
            }
            _ => return Err(Problem::of(source.path(), not_a(names))),
        };
        let mut held = Vec::new();
        for (at, list) in lists.into_iter().enumerate() {
            if let Some(Value::Array(list)) = list.filter(|_| held.is_empty()) {
                listing.field = names.get(at).filter(|_| !list.is_empty()).copied();
                held = list;
            }
        }
        Ok(Self { held: Some(held), ..listing })
    }

    /// Scans everything except the records.
    fn large(source: &'s Source, names: Names) -> Result<Result<Self, Problem>, FileError> {
        let mut listing = Self { source, field: None, fields: Object::new(), held: None };
        let mut first = names.len();
        let passed = Walk::over(source, &mut |walk| {
            let opening = if names.is_empty() { b'[' } else { b'{' };
            if walk.peek()? != Some(opening) {
                return Err(malformed(not_a(names)));
            }
            if names.is_empty() {
                return walk.pass();
            }
            walk.fields(&mut |walk, name| match names.iter().position(|known| *known == name) {
                Some(at) => walk.items(&mut |walk| {
                    first = first.min(at);
                    walk.pass()
                }),
                None => {
                    let reason = |why| malformed(format!("field {name}: {why}"));
                    listing.fields.insert(name.to_owned(), walk.value()?.map_err(reason)?);
                    Ok(())
                }
            })
        })?;
        listing.field = names.get(first).copied();
        Ok(passed.map(|()| listing))
    }

    /// Passes each record to `take`, in order. A record that is not JSON is passed as the reason.
    pub(crate) fn each(self, mut take: impl FnMut(Result<Value, String>)) -> Result<(), FileError> {
        if let Some(held) = self.held {
            held.into_iter().for_each(|record| take(Ok(record)));
            return Ok(());
        }
        let mut record = |walk: &mut Walk<_>| {
            take(walk.value()?);
            Ok(())
        };
        Walk::again(self.source, &mut |walk| match self.field {
            None if walk.peek()? == Some(b'[') => walk.items(&mut record),
            None => walk.pass(),
            Some(field) => walk.fields(&mut |walk, name| match name == field {
                true => walk.items(&mut record),
                false => walk.pass(),
            }),
        })
    }
}

fn not_a(names: Names) -> String {
    format!("not a JSON {}", if names.is_empty() { "list" } else { "object" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], names: Names) -> Result<(Object, Vec<Value>), Problem> {
        let source = Source::in_memory("x.json", "x.json", bytes.to_vec());
        let mut listing = Listing::of(&source, names).unwrap()?;
        let fields = std::mem::take(&mut listing.fields);
        let mut records = Vec::new();
        listing.each(|record| records.push(record.unwrap())).unwrap();
        Ok((fields, records))
    }

    /// A document with one record too large to hold.
    fn large(before: &str, after: &str) -> Vec<u8> {
        let filler = "x".repeat(SMALL as usize);
        format!("{before}{{\"id\":1,\"text\":\"{filler}\"}}{after}").into_bytes()
    }

    #[test]
    fn a_large_document_reads_as_a_small_one() {
        let (before, after) = ("{\"a\":1.50,\"list\":[", ",{\"id\":2},\"\\ud83d\"],\"b\":[2]}");
        let (fields, mut records) = read(&large(before, after), &["list"]).unwrap();
        let small = read(format!("{before}{{\"id\":1}}{after}").as_bytes(), &["list"]).unwrap();
        records[0].as_object_mut().unwrap().shift_remove("text");
        assert_eq!((fields, records), small);
        assert_eq!(read(&large("[", "]"), &[]).unwrap().1.len(), 1);
    }

    #[test]
    fn what_is_not_json_is_repaired_or_told() {
        for after in [",NaN]}", ",\"\u{0}\"]}"] {
            let mut bytes = large("{\"list\":[", after);
            let at = bytes.iter().position(|byte| *byte == 0);
            at.into_iter().for_each(|at| bytes[at] = 0xff);
            assert_eq!(read(&bytes, &["list"]).unwrap().1.len(), 2, "{after}");
        }
        let cut = read(&large("{\"list\":[", ",1"), &["list"]);
        assert!(cut.unwrap_err().reason.starts_with("not JSON"));
        assert_eq!(read(b"[]", &["list"]).unwrap_err().reason, "not a JSON object");
        assert_eq!(read(b"{}", &[]).unwrap_err().reason, "not a JSON list");
        assert_eq!(read(b"{\"list\":null}", &["list"]).unwrap().1, [] as [Value; 0]);
    }

    #[test]
    fn the_first_list_with_records_is_taken() {
        let both = r#"{"one":[],"other":7,"two":[1],"three":[2,3]}"#;
        let filler = format!("\"filler\":\"{}\",\"one\"", "x".repeat(SMALL as usize));
        for text in [both.to_owned(), both.replace("\"one\"", &filler)] {
            let source = Source::in_memory("x.json", "x.json", text.into_bytes());
            let listing = Listing::of(&source, &["one", "three", "two"]).unwrap().unwrap();
            assert_eq!((listing.field, &listing.fields["other"]), (Some("three"), &7.into()));
            let mut count = 0;
            listing.each(|_| count += 1).unwrap();
            assert_eq!(count, 2);
        }
    }
}
