//! A JSON document with its records in a list. A large document is read one record at a time.
//!
//! A large document is scanned twice, first for the fields beside the list. A small one is parsed whole.

use std::io::Read;

use crate::decoding::json_repair;
use crate::decoding::json_walker::{JsonWalker, malformed_error};
use steno_model::durable::{FileError, OnPath};
use steno_model::json::{Object, Value};
use steno_model::problem::Problem;
use steno_vault::SessionFile;

/// Documents up to this size, in bytes, are parsed whole.
const MAX_HELD_BYTES: u64 = 8 << 20;

/// Fields that may hold the list, in order of preference. Empty if the document itself is the list.
type ListFieldNames = &'static [&'static str];

/// A document with the records of its list still unread.
pub struct RecordList<'s> {
    source: &'s SessionFile,
    /// The field that holds the records. `None` if the document is the list, or if no field has records.
    pub(crate) list_field: Option<&'static str>,
    /// The fields beside the lists.
    pub fields: Object,
    /// The records of a document parsed whole.
    held_records: Option<Vec<Value>>,
}

impl<'s> RecordList<'s> {
    /// Opens the document in `source`. Its records are in the first field of `names` that has any, or the document is
    /// the list. The inner error says why it is not such a document.
    pub fn open(
        source: &'s SessionFile,
        names: ListFieldNames,
    ) -> Result<Result<Self, Problem>, FileError> {
        let mut start = Vec::new();
        source
            .open()?
            .take(MAX_HELD_BYTES + 1)
            .read_to_end(&mut start)
            .on("read", source.path())?;
        if start.len() as u64 <= MAX_HELD_BYTES {
            return Ok(Self::parse_held(source, names, &start));
        }
        drop(start);
        Self::scan_large(source, names)
    }

    fn parse_held(
        source: &'s SessionFile,
        names: ListFieldNames,
        bytes: &[u8],
    ) -> Result<Self, Problem> {
        let whole = json_repair::parse_lenient(bytes)
            .map_err(|why| Problem::for_file(source.path(), why))?;
        let (mut listing, lists) = match whole {
            Value::Object(mut fields) if !names.is_empty() => {
                let lists = names.iter().map(|name| fields.shift_remove(*name)).collect();
                (Self { source, list_field: None, fields, held_records: None }, lists)
            }
            list @ Value::Array(_) if names.is_empty() => {
                let listing =
                    Self { source, list_field: None, fields: Object::new(), held_records: None };
                (listing, vec![Some(list)])
            }
            _ => return Err(Problem::for_file(source.path(), wrong_type_reason(names))),
        };
        let mut held = Vec::new();
        for (at, list) in lists.into_iter().enumerate() {
            if let Some(Value::Array(list)) = list.filter(|_| held.is_empty()) {
                listing.list_field = names.get(at).filter(|_| !list.is_empty()).copied();
                held = list;
            }
        }
        Ok(Self { held_records: Some(held), ..listing })
    }

    /// Scans everything except the records.
    fn scan_large(
        source: &'s SessionFile,
        names: ListFieldNames,
    ) -> Result<Result<Self, Problem>, FileError> {
        let mut listing =
            Self { source, list_field: None, fields: Object::new(), held_records: None };
        let mut first = names.len();
        let passed = JsonWalker::walk_document(source, &mut |walk| {
            let opening = if names.is_empty() { b'[' } else { b'{' };
            if walk.peek()? != Some(opening) {
                return Err(malformed_error(wrong_type_reason(names)));
            }
            if names.is_empty() {
                return walk.skip_value();
            }
            walk.for_each_field(&mut |walk, name| match names
                .iter()
                .position(|known| *known == name)
            {
                Some(at) => walk.for_each_item(&mut |walk| {
                    first = first.min(at);
                    walk.skip_value()
                }),
                None => {
                    let reason = |why| malformed_error(format!("field {name}: {why}"));
                    listing.fields.insert(name.to_owned(), walk.read_value()?.map_err(reason)?);
                    Ok(())
                }
            })
        })?;
        listing.list_field = names.get(first).copied();
        Ok(passed.map(|()| listing))
    }

    /// Passes each record to `take`, in order. A record that is not JSON is passed as the reason.
    pub fn for_each_record(
        self,
        mut take: impl FnMut(Result<Value, String>),
    ) -> Result<(), FileError> {
        if let Some(held) = self.held_records {
            held.into_iter().for_each(|record| take(Ok(record)));
            return Ok(());
        }
        let mut record = |walk: &mut JsonWalker<_>| {
            take(walk.read_value()?);
            Ok(())
        };
        JsonWalker::rewalk_document(self.source, &mut |walk| match self.list_field {
            None if walk.peek()? == Some(b'[') => walk.for_each_item(&mut record),
            None => walk.skip_value(),
            Some(field) => walk.for_each_field(&mut |walk, name| match name == field {
                true => walk.for_each_item(&mut record),
                false => walk.skip_value(),
            }),
        })
    }
}

fn wrong_type_reason(names: ListFieldNames) -> String {
    format!("not a JSON {}", if names.is_empty() { "list" } else { "object" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8], names: ListFieldNames) -> Result<(Object, Vec<Value>), Problem> {
        let source = SessionFile::in_memory("x.json", "x.json", bytes.to_vec());
        let mut listing = RecordList::open(&source, names).unwrap()?;
        let fields = std::mem::take(&mut listing.fields);
        let mut records = Vec::new();
        listing.for_each_record(|record| records.push(record.unwrap())).unwrap();
        Ok((fields, records))
    }

    /// A document with one record too large to hold.
    fn large(before: &str, after: &str) -> Vec<u8> {
        let filler = "x".repeat(MAX_HELD_BYTES as usize);
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
    fn repairs_or_reports_invalid_json() {
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
        let filler = format!("\"filler\":\"{}\",\"one\"", "x".repeat(MAX_HELD_BYTES as usize));
        for text in [both.to_owned(), both.replace("\"one\"", &filler)] {
            let source = SessionFile::in_memory("x.json", "x.json", text.into_bytes());
            let listing = RecordList::open(&source, &["one", "three", "two"]).unwrap().unwrap();
            assert_eq!((listing.list_field, &listing.fields["other"]), (Some("three"), &7.into()));
            let mut count = 0;
            listing.for_each_record(|_| count += 1).unwrap();
            assert_eq!(count, 2);
        }
    }
}
