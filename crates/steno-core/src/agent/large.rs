//! Files for tests that are larger than may be held: their bytes are made while they are read.

use std::io::{self, BufReader, Cursor, Read};

use crate::entry::Kind;
use crate::format::{Item, Reader};
use crate::session::Session;
use steno_vault::{Bundle, Source};

/// What stands for a long text, and how long that is.
const FILLER: (char, u64) = ('~', 5 << 19);

/// The text with a long one in the place of each `~`. No more of it than two of those may be held.
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

/// Reads such a file, which can only be done record by record: the kind of each entry, and how many problems there were.
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
