//! Texts, each once, packed some at a time: so a hit's text is read without opening its session.

use std::io;

use rusqlite::{Connection, OptionalExtension};

use crate::compression;

/// Raw bytes of a block; one text may have more.
const BLOCK: usize = 16 * 1024;

/// The sum that a text is known by.
pub(super) type Hash = [u8; 16];

/// The sum of a text.
pub(super) fn hash(text: &str) -> Hash {
    let mut hash = [0; 16];
    hash.copy_from_slice(&blake3::hash(text.as_bytes()).as_bytes()[..16]);
    hash
}

/// A text that the index may not have yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewText {
    pub(super) hash: Hash,
    /// The block of the packer, not of the index.
    pub(super) block: usize,
    pub(super) start: i64,
    pub(super) length: i64,
}

/// Packs texts into blocks.
#[derive(Debug, Default)]
pub(super) struct Packer {
    pub(super) blocks: Vec<Vec<u8>>,
    open: Vec<u8>,
}

impl Packer {
    /// Adds a text.
    pub(super) fn push(&mut self, hash: Hash, text: &str) -> io::Result<NewText> {
        let (block, start) = (self.blocks.len(), self.open.len());
        self.open.extend_from_slice(text.as_bytes());
        if self.open.len() >= BLOCK {
            self.close()?;
        }
        Ok(NewText { hash, block, start: start as i64, length: text.len() as i64 })
    }

    /// Packs what is left.
    pub(super) fn close(&mut self) -> io::Result<()> {
        if !self.open.is_empty() {
            self.blocks.push(compression::compress(&self.open)?);
            self.open.clear();
        }
        Ok(())
    }
}

/// The bytes of a block.
pub(super) fn unpack(data: &[u8]) -> io::Result<Vec<u8>> {
    match zstd::zstd_safe::get_frame_content_size(data) {
        Ok(Some(size)) => {
            compression::decompress(data, usize::try_from(size).unwrap_or(usize::MAX))
        }
        _ => zstd::stream::decode_all(data),
    }
}

/// The part of a block that is one text.
pub(super) fn slice(block: &[u8], start: i64, length: i64) -> Option<&str> {
    let (start, length) = (usize::try_from(start).ok()?, usize::try_from(length).ok()?);
    std::str::from_utf8(block.get(start..start.checked_add(length)?)?).ok()
}

/// A text of the index.
pub(super) fn read(connection: &Connection, id: i64) -> rusqlite::Result<Option<String>> {
    let query = "SELECT start, length, data FROM text JOIN block ON block.id = text.block WHERE text.id = ?1";
    let mut found = connection.prepare_cached(query)?;
    let row = found
        .query_row([id], |row| Ok((row.get(0)?, row.get(1)?, row.get::<_, Vec<u8>>(2)?)))
        .optional()?;
    let text = row.and_then(|(start, length, data)| {
        slice(&unpack(&data).ok()?, start, length).map(str::to_owned)
    });
    Ok(text)
}
