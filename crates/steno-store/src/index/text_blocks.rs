//! Stores each distinct text once, in compressed blocks. A search reads the text of a hit from here and need not open
//! its session.

use std::io;

use rusqlite::{Connection, OptionalExtension, params};

use steno_vault::compression;

/// Uncompressed size at which a block is complete. A single text may exceed it.
const BLOCK_BYTES: usize = 16 * 1024;

/// The hash that identifies a text.
pub(super) type TextHash = [u8; 16];

/// Hashes a text.
pub(super) fn hash_text(text: &str) -> TextHash {
    let mut hash = [0; 16];
    hash.copy_from_slice(&blake3::hash(text.as_bytes()).as_bytes()[..16]);
    hash
}

/// Packs texts into blocks. The caller holds the write lock.
#[derive(Debug, Default)]
pub(super) struct TextPacker {
    /// The id of the block being filled, once assigned.
    block: Option<i64>,
    buffer: Vec<u8>,
}

impl TextPacker {
    /// The location of the next text: its block and its offset in that block.
    pub(super) fn next_location(
        &mut self,
        connection: &Connection,
    ) -> rusqlite::Result<(i64, i64)> {
        let block = match self.block {
            Some(block) => block,
            None => {
                let next = "SELECT coalesce(max(id), 0) + 1 FROM block";
                let next = connection.prepare_cached(next)?.query_row([], |row| row.get(0))?;
                *self.block.insert(next)
            }
        };
        Ok((block, self.buffer.len() as i64))
    }

    /// Appends a text at that location.
    pub(super) fn push(&mut self, connection: &Connection, text: &str) -> rusqlite::Result<()> {
        self.buffer.extend_from_slice(text.as_bytes());
        if self.buffer.len() >= BLOCK_BYTES { self.flush(connection) } else { Ok(()) }
    }

    /// Writes the open block. Must be called before each commit.
    pub(super) fn flush(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let Some(block) = self.block.take().filter(|_| !self.buffer.is_empty()) else {
            return Ok(());
        };
        let mut insert =
            connection.prepare_cached("INSERT INTO block (id, data) VALUES (?1, ?2)")?;
        let put =
            compression::compress_frame(&self.buffer, |data| insert.execute(params![block, data]));
        self.buffer.clear();
        put.map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?.map(|_| ())
    }
}

/// Decompresses a block.
pub(super) fn decompress_block(data: &[u8]) -> io::Result<Vec<u8>> {
    match zstd::zstd_safe::get_frame_content_size(data) {
        Ok(Some(size)) => {
            compression::decompress_frame(data, usize::try_from(size).unwrap_or(usize::MAX))
        }
        _ => zstd::stream::decode_all(data),
    }
}

/// The text at an offset of a block.
pub(super) fn text_in_block(block: &[u8], start: i64, length: i64) -> Option<&str> {
    let (start, length) = (usize::try_from(start).ok()?, usize::try_from(length).ok()?);
    std::str::from_utf8(block.get(start..start.checked_add(length)?)?).ok()
}

/// Reads a text by id.
pub(super) fn read_text(connection: &Connection, id: i64) -> rusqlite::Result<Option<String>> {
    let query = "SELECT start, length, data FROM text JOIN block ON block.id = text.block WHERE text.id = ?1";
    let mut statement = connection.prepare_cached(query)?;
    let row = statement
        .query_row([id], |row| Ok((row.get(0)?, row.get(1)?, row.get::<_, Vec<u8>>(2)?)))
        .optional()?;
    let text = row.and_then(|(start, length, data)| {
        text_in_block(&decompress_block(&data).ok()?, start, length).map(str::to_owned)
    });
    Ok(text)
}
