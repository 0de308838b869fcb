//! Stores each distinct text once, in blocks of compressed frames. A search reads the text of a hit from here and need not
//! open its session.
//!
//! A frame is small, as it is decompressed for each hit. A block has several frames, as a row that takes only a part of
//! a page or two leaves a fifth of the space unused.

use rusqlite::{Connection, OptionalExtension, params};

use steno_vault::compression;
use zstd::zstd_safe::{find_frame_compressed_size, get_frame_content_size};

/// Uncompressed size at which a frame is complete. A single text may exceed it.
const FRAME_BYTES: usize = 32 << 10;

/// Compressed size at which a block is complete.
const BLOCK_BYTES: usize = 96 << 10;

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
    /// Complete frames of the block, and their uncompressed size.
    frames: Vec<u8>,
    frames_length: usize,
    /// Texts of the next frame.
    buffer: Vec<u8>,
}

impl TextPacker {
    /// The location of the next text: its block and its offset in the uncompressed block.
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
        Ok((block, (self.frames_length + self.buffer.len()) as i64))
    }

    /// Appends a text at that location.
    pub(super) fn push(&mut self, connection: &Connection, text: &str) -> rusqlite::Result<()> {
        self.buffer.extend_from_slice(text.as_bytes());
        if self.buffer.len() >= FRAME_BYTES {
            self.finish_frame()?;
        }
        if self.frames.len() >= BLOCK_BYTES { self.flush(connection) } else { Ok(()) }
    }

    /// Writes the open block. Must be called before each commit.
    pub(super) fn flush(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        self.finish_frame()?;
        if let Some(block) = self.block.take().filter(|_| !self.frames.is_empty()) {
            let insert = "INSERT INTO block (id, data) VALUES (?1, ?2)";
            connection.prepare_cached(insert)?.execute(params![block, self.frames])?;
        }
        self.frames.clear();
        self.frames_length = 0;
        Ok(())
    }

    fn finish_frame(&mut self) -> rusqlite::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        compression::compress_frame(&self.buffer, |frame| self.frames.extend_from_slice(frame))
            .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
        self.frames_length += self.buffer.len();
        self.buffer.clear();
        Ok(())
    }
}

/// Reads texts of a block. Only their frames are decompressed, each once if texts are read in order.
pub(super) struct TextBlockReader<'a> {
    data: &'a [u8],
    /// The frames after the current one.
    rest: &'a [u8],
    /// The current frame, and its offset in the uncompressed block.
    frame: Vec<u8>,
    frame_start: usize,
}

impl<'a> TextBlockReader<'a> {
    pub(super) fn new(data: &'a [u8]) -> Self {
        Self { data, rest: data, frame: Vec::new(), frame_start: 0 }
    }

    /// The text at an offset of the uncompressed block; `None` if the block is damaged.
    pub(super) fn text_at(&mut self, start: i64, length: i64) -> Option<&str> {
        let (start, length) = (usize::try_from(start).ok()?, usize::try_from(length).ok()?);
        if start < self.frame_start {
            *self = Self::new(self.data);
        }
        if start >= self.frame_start + self.frame.len() && length > 0 {
            self.read_frame_at(start)?;
        }
        let start = start - self.frame_start;
        std::str::from_utf8(self.frame.get(start..start.checked_add(length)?)?).ok()
    }

    /// Moves to the frame that contains an offset after the current frame.
    fn read_frame_at(&mut self, offset: usize) -> Option<()> {
        let mut start = self.frame_start + self.frame.len();
        loop {
            let size = find_frame_compressed_size(self.rest).ok()?;
            let length = usize::try_from(get_frame_content_size(self.rest).ok()??).ok()?;
            let (frame, rest) = self.rest.split_at_checked(size)?;
            self.rest = rest;
            if offset < start.checked_add(length)? {
                self.frame = compression::decompress_frame(frame, length).ok()?;
                self.frame_start = start;
                return Some(());
            }
            start += length;
        }
    }
}

/// Reads a text by id.
pub(super) fn read_text(connection: &Connection, id: i64) -> rusqlite::Result<Option<String>> {
    let query = "SELECT start, length, data FROM text JOIN block ON block.id = text.block WHERE text.id = ?1";
    let mut statement = connection.prepare_cached(query)?;
    let text = statement.query_row([id], |row| {
        let (start, length) = (row.get(0)?, row.get(1)?);
        let mut block = TextBlockReader::new(row.get_ref(2)?.as_blob()?);
        Ok(block.text_at(start, length).map(str::to_owned))
    });
    Ok(text.optional()?.flatten())
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;

    /// Writes texts and returns their locations.
    fn pack_texts(connection: &Connection, texts: &[String]) -> Vec<(i64, i64)> {
        connection.execute_batch("CREATE TABLE block (id INTEGER PRIMARY KEY, data BLOB)").unwrap();
        let mut packer = TextPacker::default();
        let locations = texts
            .iter()
            .map(|text| {
                let location = packer.next_location(connection).unwrap();
                packer.push(connection, text).unwrap();
                location
            })
            .collect();
        packer.flush(connection).unwrap();
        locations
    }

    fn read_block(connection: &Connection, id: i64) -> Vec<u8> {
        connection
            .query_row("SELECT data FROM block WHERE id = ?1", [id], |row| row.get(0))
            .unwrap()
    }

    /// Texts that hardly compress, of very different lengths.
    fn sample_texts() -> Vec<String> {
        let mut state = 1_u64;
        let lengths = (0..400).map(|number| if number % 50 == 0 { 40_000 } else { number * 7 });
        lengths
            .map(|length| {
                let digit = || {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    char::from(b'!' + (state >> 33) as u8 % 90)
                };
                std::iter::repeat_with(digit).take(length).collect()
            })
            .collect()
    }

    #[test]
    fn texts_are_read_in_any_order() {
        let connection = Connection::open_in_memory().unwrap();
        let texts = sample_texts();
        let locations = pack_texts(&connection, &texts);
        let last_block = locations.last().unwrap().0;
        assert!(last_block > 3, "several blocks, not {last_block}");
        for id in 1..=last_block {
            let data = read_block(&connection, id);
            let mut reader = TextBlockReader::new(&data);
            let of_block = || locations.iter().zip(&texts).filter(|((block, _), _)| *block == id);
            for ((_, start), text) in
                of_block().chain(of_block().collect::<Vec<_>>().into_iter().rev())
            {
                assert_eq!(reader.text_at(*start, text.len() as i64), Some(text.as_str()));
            }
        }
    }

    #[test]
    fn a_damaged_block_has_no_text() {
        let connection = Connection::open_in_memory().unwrap();
        let texts = sample_texts();
        let locations = pack_texts(&connection, &texts);
        let mut data = read_block(&connection, 1);
        let of_first = locations.iter().filter(|(block, _)| *block == 1).count();
        let (start, length) = (locations[of_first - 1].1, texts[of_first - 1].len() as i64);
        assert_eq!(TextBlockReader::new(&data).text_at(start + length, 1), None, "after the end");
        assert_eq!(TextBlockReader::new(&data[..data.len() - 1]).text_at(start, length), None);
        let middle = data.len() - 100;
        data[middle] ^= 1;
        assert_eq!(TextBlockReader::new(&data).text_at(start, length), None);
        assert_eq!(TextBlockReader::new(b"no frame").text_at(0, 1), None);
    }
}
