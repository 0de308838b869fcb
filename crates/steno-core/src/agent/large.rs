//! Test helper: files larger than the memory limit, generated while they are read.

use std::io::{self, BufReader, Cursor, Read};

use crate::entry::Kind;
use crate::format::{Item, Reader};
use crate::session::Session;
use steno_vault::{Bundle, Source};

/// The placeholder for a long text, and the length of that text.
const FILLER: (char, u64) = ('~', 5 << 19);

/// A file with a long text for each `~`. Reading may hold at most two of them.
pub(crate) fn source(name: &str, text: &str) -> Source {
    let text = text.to_owned();
    let source = Source::new(name, name, move || {
        let mut input: Box<dyn Read> = Box::new(io::empty());
        for (number, piece) in text.split(FILLER.0).enumerate() {
            let filler = io::repeat(b'x').take(if number == 0 { 0 } else { FILLER.1 });
            input = Box::new(input.chain(filler).chain(Cursor::new(piece.to_owned())));
        }
        Ok(Box::new(BufReader::with_capacity(1 << 20, input)))
    });
    source.with_limit(FILLER.1 * 2)
}

/// Reads such a file record by record. Returns the session, the kind of each entry, and the number of problems.
pub(crate) fn read(reader: &Reader, source: Source) -> (Session, Vec<Kind>, usize) {
    assert!(source.bytes().is_err());
    let bundle = Bundle::new(source.path().to_owned(), vec![source]);
    let (mut kinds, mut problems) = (Vec::new(), 0);
    let session = (reader.read)(&bundle, &mut |item| match item {
        Item::Entry(entry) => kinds.push(entry.kind),
        Item::Problem(_) => problems += 1,
    });
    (session.unwrap(), kinds, problems)
}
