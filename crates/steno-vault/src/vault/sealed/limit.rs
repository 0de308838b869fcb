//! Limits an open sealed file to the part that the journal lists.

use std::io::{self, Seek, SeekFrom};

use super::SealedFile;
use crate::vault::frame::{self, HexHash};

impl SealedFile {
    /// Ignores everything after the first `size` bytes of the sealed file, which hold `length` bytes of the session
    /// file. The chain must then end with `chain`.
    ///
    /// A file with merged frames has another size, but the same links.
    pub(super) fn limit_to_listing(
        &mut self,
        size: u64,
        length: u64,
        chain: HexHash,
    ) -> io::Result<()> {
        let is_listed = self.torn_bytes.is_none()
            && (self.append_offset, self.length, self.chains[1]) == (size, length, chain);
        if is_listed || self.read_trailer_at(size, (length, chain))? {
            return self.check_first_link();
        }
        if (self.length, self.chains[1]) != (length, chain) && !self.limit_to_link(length, chain)? {
            return Err(frame::damage_error(if self.length < length {
                "shorter than it was: kept bytes are missing"
            } else {
                "it was changed: the journal lists other bytes"
            }));
        }
        self.check_first_link()
    }

    /// Uses the trailer that ends at `size`, if it matches the listing.
    fn read_trailer_at(&mut self, size: u64, listed: (u64, HexHash)) -> io::Result<bool> {
        if size > self.file.length()? {
            return Ok(false);
        }
        match frame::read_trailer(&mut self.file, size)? {
            Some((_, trailer)) if (trailer.length, trailer.chain) == listed => {
                self.file.seek(SeekFrom::Start(0))?;
                self.header = frame::read_header(&mut self.file)?.0;
                (self.torn_bytes, self.is_damaged) = (None, false);
                self.apply_trailer(size, trailer);
                Ok(true)
            }
            _ => Ok(false),
        }
    }

    /// Finds the link at which the listed part ends. Limits only reading: the file cannot grow from there.
    fn limit_to_link(&mut self, length: u64, chain: HexHash) -> io::Result<bool> {
        let count = self.frames.partition_point(|(_, begin)| *begin <= length);
        for index in (0..count).rev() {
            // Unacknowledged frames may not have reached the disk.
            let Some(header) = frame::none_if_damaged(self.read_frame_header(index))? else {
                continue;
            };
            let before = match index.checked_sub(1) {
                None => Some(self.chains[0]),
                Some(before) => {
                    let before = frame::none_if_damaged(self.read_frame_header(before))?;
                    before.map(|header| header.chain)
                }
            };
            let is_there = |before| header.chain_links(before).any(|link| link == (length, chain));
            if before.is_some_and(is_there) {
                self.frames.truncate(index + 1);
                (self.length, self.chains[1], self.torn_bytes) = (length, chain, Some(0));
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Checks that the first frame's link starts from the file's header.
    fn check_first_link(&mut self) -> io::Result<()> {
        let is_first = if self.version() == 1 {
            true
        } else if self.frames.is_empty() {
            self.chains[0] == self.chains[1]
        } else {
            let first = self.read_frame_header(0)?;
            let last = first.chain_links(self.chains[0]).last();
            last.is_some_and(|(_, link)| link == first.chain)
        };
        if is_first { Ok(()) } else { Err(frame::damage_error("its header was changed")) }
    }
}
