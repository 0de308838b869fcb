//! Stores each distinct text once, in compressed blocks. A search reads the text of a hit from here and need not open
//! its session.

use std::io;

use rusqlite::{Connection, OptionalExtension, params};

use steno_vault::compression;

/// Uncompressed size at which a block is complete. A single text may exceed it.
const BLOCK: usize = 16 * 1024;

/// The hash that identifies a text.
pub(super) type Hash = [u8; 16];

/// Hashes a text.
pub(super) fn hash(text: &str) -> Hash {
    let mut hash = [0; 16];
    hash.copy_from_slice(&blake3::hash(text.as_bytes()).as_bytes()[..16]);
    hash
}

/// Packs texts into blocks. The caller holds the write lock.
#[derive(Debug, Default)]
pub(super) struct Packer {
    /// The id of the block being filled, once assigned.
    block: Option<i64>,
    open: Vec<u8>,
}

impl Packer {
    /// The location of the next text: its block and its offset in that block.
    pub(super) fn place(&mut self, connection: &Connection) -> rusqlite::Result<(i64, i64)> {
        let block = match self.block {
            Some(block) => block,
            None => {
                let next = "SELECT coalesce(max(id), 0) + 1 FROM block";
                let next = connection.prepare_cached(next)?.query_row([], |row| row.get(0))?;
                *self.block.insert(next)
            }
        };
        Ok((block, self.open.len() as i64))
    }

    /// Appends a text at that location.
    pub(super) fn push(&mut self, connection: &Connection, text: &str) -> rusqlite::Result<()> {
        self.open.extend_from_slice(text.as_bytes());
        if self.open.len() >= BLOCK { self.close(connection) } else { Ok(()) }
    }

    /// Writes the open block. Must be called before each commit.
    pub(super) fn close(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let Some(block) = self.block.take().filter(|_| !self.open.is_empty()) else {
            return Ok(());
        };
        let mut insert =
            connection.prepare_cached("INSERT INTO block (id, data) VALUES (?1, ?2)")?;
        let put = compression::compress(&self.open, |data| insert.execute(params![block, data]));
        self.open.clear();
        put.map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?.map(|_| ())
    }
}

/// Decompresses a block.
pub(super) fn unpack(data: &[u8]) -> io::Result<Vec<u8>> {
    match zstd::zstd_safe::get_frame_content_size(data) {
        Ok(Some(size)) => {
            compression::decompress(data, usize::try_from(size).unwrap_or(usize::MAX))
        }
        _ => zstd::stream::decode_all(data),
    }
}

/// The text at an offset of a block.
pub(super) fn slice(block: &[u8], start: i64, length: i64) -> Option<&str> {
    let (start, length) = (usize::try_from(start).ok()?, usize::try_from(length).ok()?);
    std::str::from_utf8(block.get(start..start.checked_add(length)?)?).ok()
}

/// Reads a text by id.
pub(super) fn read(connection: &Connection, id: i64) -> rusqlite::Result<Option<String>> {
    let query = "SELECT start, length, data FROM text JOIN block ON block.id = text.block WHERE text.id = ?1";
    let mut statement = connection.prepare_cached(query)?;
    let row = statement
        .query_row([id], |row| Ok((row.get(0)?, row.get(1)?, row.get::<_, Vec<u8>>(2)?)))
        .optional()?;
    let text = row.and_then(|(start, length, data)| {
        slice(&unpack(&data).ok()?, start, length).map(str::to_owned)
    });
    Ok(text)
}
