//! Checks a sealed file against its hash chain before its header is trusted.

use std::io;

use super::SealedFile;
use crate::vault::frame;
use steno_model::durable::{FileError, OnPath};

impl SealedFile {
    /// Checks that the first frame's link starts from this header.
    pub(crate) fn check_first_frame(&mut self) -> Result<(), FileError> {
        let path = self.path.clone();
        self.check_frames(1).on("read", &path)
    }

    /// Checks the links of all frames, which are over their compressed bytes, and the recorded location. Nothing is unpacked.
    pub(crate) fn check_chain(&mut self) -> Result<(), FileError> {
        let path = self.path.clone();
        self.check_frames(self.frames.len().max(1)).on("read", &path)
    }

    /// Unpacks every frame and compares it with the hashes in its header.
    pub(crate) fn check_every_frame(&mut self) -> Result<(), FileError> {
        let path = self.path.clone();
        (0..self.frames.len())
            .try_for_each(|index| self.read_frame(index).map(drop))
            .on("read", &path)
    }

    fn check_frames(&mut self, count: usize) -> io::Result<()> {
        if self.is_damaged {
            return Err(frame::damage_error("a frame before the end is damaged"));
        }
        if self.frames.is_empty() && self.torn_bytes.is_some() {
            return Err(frame::damage_error("no frame or trailer confirms its header"));
        }
        let (mut chain, mut moved) = (self.chains[0], None);
        for index in 0..count.min(self.frames.len()) {
            let (header, data) = self.read_frame_data(index)?;
            if header.check_link(chain, &data).is_err() {
                let what =
                    if index == 0 { "its header or first frame" } else { "one of its frames" };
                return Err(frame::damage_error(&format!("{what} was changed")));
            }
            // If only some pieces of a frame are listed, the chain ends with the last listed one.
            let mut links = header.chain_links(chain);
            let listed = links.find(|(length, _)| *length == self.length && header.length > 0);
            chain = listed.map_or(header.chain, |(_, link)| link);
            moved = header.last_move().cloned().or(moved);
        }
        if count >= self.frames.len() && (chain != self.chains[1] || moved != self.moved) {
            return Err(frame::damage_error("its header or trailer was changed"));
        }
        Ok(())
    }
}
