//! Test helpers for readers of single JSON Lines files.

use crate::reader;

use crate::reader::FormatReader;
use steno_model::session::Transcript;
use steno_vault::{SessionBundle, SessionFile};

/// A session in one file with these bytes.
pub(crate) fn one_file_bundle(bytes: &[u8]) -> SessionBundle {
    SessionBundle::new(
        "s.jsonl",
        vec![SessionFile::in_memory("s.jsonl", "s.jsonl", bytes.to_vec())],
    )
}

/// Reads such a session.
pub(crate) fn read_one_file(reader: &FormatReader, bytes: &[u8]) -> Transcript {
    reader::read_transcript(reader, &one_file_bundle(bytes)).unwrap()
}

/// Reads every prefix of a session.
pub(crate) fn read_every_cut(reader: &FormatReader, text: &str) {
    for end in 0..text.len() {
        read_one_file(reader, &text.as_bytes()[..end]);
    }
}
