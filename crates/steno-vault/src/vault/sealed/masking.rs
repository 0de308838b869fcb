//! Rewrites a sealed file with masks in place of forgotten bytes. Lengths and all links of the chain stay the same.

use std::io::{self, Seek, SeekFrom, Write};

use super::writer::create_replacement;
use super::{SealedFile, WrittenFile};
use crate::vault::frame::{
    self, FrameContent, FrameHeader, FramePiece, HexHash, SealedFileHeader, merge_ranges,
};
use steno_model::durable::{FileError, OnPath};

/// Bytes that replace others of the same length in a session file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ByteEdit {
    /// Offset in the session file.
    pub(crate) offset: u64,
    pub(crate) bytes: Vec<u8>,
    /// Whether the replaced bytes are forgotten. Otherwise they only follow from others, such as the hash of a line.
    pub(crate) is_forgotten: bool,
}

impl ByteEdit {
    fn end(&self) -> u64 {
        self.offset + self.bytes.len() as u64
    }
}

/// What was forgotten of a sealed file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MaskSummary {
    /// Offset in the session file, and length, of each forgotten part.
    pub(crate) ranges: Vec<(u64, u64)>,
    /// Hash over the pieces that have masks; `None` if none has.
    pub(crate) seal: Option<HexHash>,
}

/// Collects the masked pieces of a sealed file.
#[derive(Debug, Default)]
pub(crate) struct MaskCollector {
    ranges: Vec<(u64, u64)>,
    hasher: Option<blake3::Hasher>,
}

impl MaskCollector {
    /// Adds the masked pieces of a frame.
    pub(crate) fn add_frame(&mut self, header: &FrameHeader) {
        let mut offset = header.offset;
        for piece in &header.pieces {
            if let Some(masked) = &piece.masked {
                self.ranges.extend(masked.ranges.iter().map(|(at, length)| (offset + at, *length)));
                let hasher = self.hasher.get_or_insert_with(blake3::Hasher::new);
                hasher.update(&offset.to_le_bytes());
                hasher.update(&frame::encode_piece(piece));
            }
            offset += piece.length;
        }
    }

    /// The summary of all added frames.
    pub(crate) fn finish(self) -> MaskSummary {
        let seal = self.hasher.map(|hasher| HexHash(hasher.finalize()));
        MaskSummary { ranges: merge_ranges(self.ranges), seal }
    }
}

impl SealedFile {
    /// What was forgotten of this file.
    pub(crate) fn mask_summary(&mut self) -> Result<MaskSummary, FileError> {
        let mut collector = MaskCollector::default();
        for index in 0..self.frames.len() {
            collector.add_frame(&self.frame_header(index)?);
        }
        Ok(collector.finish())
    }

    /// Writes the file again beside itself, with `edits` applied, which are sorted and disjoint. A damaged file is not
    /// rewritten.
    pub(crate) fn write_edited(mut self, edits: &[ByteEdit]) -> Result<WrittenFile, FileError> {
        self.check_chain()?;
        let path = self.path.clone();
        let mut new = create_replacement(&path)?;
        let written = self.copy_edited(edits, &mut new).on("write", &path)?;
        Ok(WrittenFile { path, is_new: true, ..written })
    }

    fn copy_edited(&mut self, edits: &[ByteEdit], new: &mut impl Write) -> io::Result<WrittenFile> {
        self.file.seek(SeekFrom::Start(0))?;
        // The header in memory may have another location.
        let (header, mut size): (SealedFileHeader, u64) = frame::read_header(&mut self.file)?;
        let (bytes, mut chain) = frame::encode_file_header(&header);
        new.write_all(&bytes)?;
        for index in 0..self.frames.len() {
            let (header, data) = self.read_frame_data(index)?;
            let end = header.offset + header.length;
            let first = edits.partition_point(|edit| edit.end() <= header.offset);
            let own = edits[first..].iter().take_while(|edit| edit.offset < end);
            let bytes = match own.clone().next() {
                None => frame::encode_frame(&header, &data),
                Some(_) => edit_frame(chain, &header, &data, own)?,
            };
            chain = header.chain;
            new.write_all(&bytes)?;
            self.frames[index].0 = size;
            size += bytes.len() as u64;
        }
        let trailer = frame::encode_trailer(&self.build_trailer());
        new.write_all(&trailer)?;
        new.flush()?;
        let (length, chain) = self.chain_end();
        let size = size + trailer.len() as u64;
        Ok(WrittenFile { path: self.path.clone(), is_new: true, length, size, chain })
    }
}

/// Packs a frame again with edits. Its links stay the same.
fn edit_frame<'a>(
    before: HexHash,
    header: &FrameHeader,
    data: &[u8],
    edits: impl Iterator<Item = &'a ByteEdit> + Clone,
) -> io::Result<Vec<u8>> {
    let mut raw = frame::unpack_frame(header, data)?;
    header.check_frame_content(&raw)?;
    for edit in edits.clone() {
        for (at, byte) in (edit.offset..).zip(&edit.bytes) {
            let target = at.checked_sub(header.offset).and_then(|at| usize::try_from(at).ok());
            if let Some(target) = target.and_then(|at| raw.get_mut(at)) {
                *target = *byte;
            }
        }
    }
    let (mut pieces, mut begin) = (Vec::new(), 0);
    for piece in &header.pieces {
        let end = begin + piece.length;
        let content = &raw[begin as usize..end as usize];
        pieces.push(edit_piece(piece, content, header.offset + begin, edits.clone()));
        begin = end;
    }
    let packed =
        frame::pack_frame(before, FrameContent { offset: header.offset, raw: &raw, pieces })?;
    if packed.header.chain != header.chain {
        return Err(frame::damage_error(frame::CHANGED_FRAME));
    }
    Ok(packed.bytes)
}

/// The piece with its new content, which starts at `begin` of the session file. Without an edit it stays as it is.
fn edit_piece<'a>(
    piece: &FramePiece,
    content: &[u8],
    begin: u64,
    edits: impl Iterator<Item = &'a ByteEdit>,
) -> FramePiece {
    let end = begin + piece.length;
    let (mut ranges, mut is_edited) = (Vec::new(), false);
    for edit in edits.filter(|edit| edit.offset < end && edit.end() > begin) {
        is_edited = true;
        if edit.is_forgotten {
            let (from, to) = (edit.offset.max(begin), edit.end().min(end));
            ranges.push((from - begin, to - from));
        }
    }
    if is_edited { piece.with_masks(content, &ranges) } else { piece.clone() }
}
