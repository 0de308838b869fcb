//! Test helper: files larger than the memory limit, generated while they are read.

use std::io::{self, BufReader, Cursor, Read};

use crate::reader::{FormatReader, ReaderItem};
use steno_model::entry::EntryKind;
use steno_model::session::Session;
use steno_vault::{SessionBundle, SessionFile};

/// The placeholder for a long text, and the length of that text.
const LONG_TEXT: (char, u64) = ('~', 5 << 19);

/// A file with a long text for each `~`. Reading may hold at most two of them.
pub fn large_source(name: &str, text: &str) -> SessionFile {
    let text = text.to_owned();
    let source = SessionFile::new(name, name, move || {
        let mut input: Box<dyn Read> = Box::new(io::empty());
        for (number, piece) in text.split(LONG_TEXT.0).enumerate() {
            let filler = io::repeat(b'x').take(if number == 0 { 0 } else { LONG_TEXT.1 });
            input = Box::new(input.chain(filler).chain(Cursor::new(piece.to_owned())));
        }
        Ok(Box::new(BufReader::with_capacity(1 << 20, input)))
    });
    source.with_limit(LONG_TEXT.1 * 2)
}

/// Reads such a file record by record. Returns the session, the kind of each entry, and the number of problems.
pub fn read_large(reader: &FormatReader, source: SessionFile) -> (Session, Vec<EntryKind>, usize) {
    assert!(source.read_bytes().is_err());
    let bundle = SessionBundle::new(source.path().to_owned(), vec![source]);
    let (mut kinds, mut problems) = (Vec::new(), 0);
    let session = (reader.read)(&bundle, &mut |item| match item {
        ReaderItem::Entry(entry) => kinds.push(entry.kind),
        ReaderItem::Problem(_) => problems += 1,
    });
    (session.expect("the file can be read"), kinds, problems)
}
