//! Test helpers for readers of single JSON Lines files.

use crate::format::{self, Reader};
use crate::session::Transcript;
use steno_vault::{Bundle, Source};

/// A session in one file with these bytes.
pub(crate) fn bundle(bytes: &[u8]) -> Bundle {
    Bundle::new("s.jsonl", vec![Source::in_memory("s.jsonl", "s.jsonl", bytes.to_vec())])
}

/// Reads such a session.
pub(crate) fn read(reader: &Reader, bytes: &[u8]) -> Transcript {
    format::read(reader, &bundle(bytes)).unwrap()
}

/// Reads every prefix of a session.
pub(crate) fn read_every_cut(reader: &Reader, text: &str) {
    for end in 0..text.len() {
        read(reader, &text.as_bytes()[..end]);
    }
}
