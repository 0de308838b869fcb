//! Verifies every byte of a sealed file.

use std::io::{self, BufReader, Read};
use std::path::Path;

use super::DamagedFile;
use crate::line_hash::{CHANGED_LINE, FIRST_LINE_HASH, LineHash};
use crate::vault::frame::{
    self, ContentForm, FrameHeader, NextFrame, SealedFileHeader, SealedTrailer,
};
use crate::vault::recorder::RECORD_FILE;
use crate::vault::sealed::{MaskCollector, MaskSummary, SealedFileRef};
use crate::vault::{SessionDir, encode_file_name, parse_sealed_name};
use steno_cipher::store_fs;
use steno_model::durable::{FileError, OnPath};

/// An intact sealed file.
pub(super) struct CheckedSealedFile {
    /// Kept length of the session file.
    pub(super) length: u64,
    pub(super) is_pointer: bool,
    /// Whether unacknowledged bytes follow.
    pub(super) has_rest: bool,
    /// What was forgotten of it.
    pub(super) masks: MaskSummary,
}

/// Verifies the sealed file at `path` up to its listed size.
pub(super) fn check_sealed_bytes(
    dir: &SessionDir,
    kept: &SealedFileRef,
    path: &Path,
) -> Result<Result<CheckedSealedFile, DamagedFile>, FileError> {
    let damage = |offset, reason: String| DamagedFile { path: kept.path.clone(), offset, reason };
    let file = match store_fs::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(Err(damage(0, super::MISSING_FILE.to_owned())));
        }
        other => other.on("open", path)?,
    };
    let actual = file.length().on("read", path)?;
    let listed_size = kept.listed.as_ref().and_then(|listed| listed.size);
    let size = listed_size.unwrap_or(actual);
    if actual < size {
        let reason = "shorter than it was: kept bytes are missing".to_owned();
        return Ok(Err(damage(actual, reason)));
    }
    let mut walk = SealedFileWalk::new(dir, &kept.path, BufReader::new(file).take(size));
    let checked = walk.walk_file().and_then(|length| {
        let listed = kept.listed.as_ref();
        let is_listed = listed.is_none_or(|listed| {
            listed
                .chain_end()
                .is_none_or(|chain| (listed.length, chain) == (length, walk.expected_trailer.chain))
        });
        if is_listed {
            return Ok(length);
        }
        Err(frame::damage_error("its bytes differ from the journal's listing"))
    });
    match checked {
        Ok(length) => {
            let (is_pointer, has_rest, masks) =
                (walk.is_pointer, actual > size, walk.masks.finish());
            Ok(Ok(CheckedSealedFile { length, is_pointer, has_rest, masks }))
        }
        Err(error) if error.raw_os_error().is_some() => Err(error).on("read", path),
        Err(error) => Ok(Err(damage(walk.intact_size, error.to_string()))),
    }
}

/// Reads a sealed file from its first to its last byte.
struct SealedFileWalk<'a, R> {
    dir: &'a SessionDir,
    path: &'a Path,
    input: R,
    /// Size of the verified part.
    intact_size: u64,
    /// The trailer expected at this offset.
    expected_trailer: SealedTrailer,
    /// The hash of the last line; recordings have a hash in every line too.
    line_hash: Option<LineHash>,
    is_pointer: bool,
    masks: MaskCollector,
}

impl<'a, R: Read> SealedFileWalk<'a, R> {
    fn new(dir: &'a SessionDir, path: &'a Path, input: R) -> Self {
        let trailer = SealedTrailer::without_frames(frame::HexHash(blake3::hash(b"")));
        Self {
            dir,
            path,
            input,
            intact_size: 0,
            expected_trailer: trailer,
            line_hash: None,
            is_pointer: false,
            masks: MaskCollector::default(),
        }
    }

    /// Verifies the file. Returns the kept length of the session file.
    fn walk_file(&mut self) -> io::Result<u64> {
        let (header, size): (SealedFileHeader, u64) = frame::read_header(&mut self.input)?;
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        check_file_identity(&header, self.dir, &name)?;
        self.expected_trailer = SealedTrailer::without_frames(frame::encode_file_header(&header).1);
        self.line_hash = (header.name == RECORD_FILE && name.starts_with(RECORD_FILE))
            .then_some(FIRST_LINE_HASH);
        self.is_pointer = header.form == ContentForm::Pointer;
        self.intact_size = size;
        let mut is_ended = false;
        loop {
            let mut copy = CopyingReader { input: &mut self.input, copied: Vec::new() };
            let next = frame::read_next_header(&mut copy);
            let copied = copy.copied;
            if copied.is_empty() && is_ended {
                return Ok(self.expected_trailer.length);
            }
            let next = next.map_err(|error| match error.raw_os_error() {
                Some(_) => error,
                None => frame::damage_error("neither a frame nor a trailer"),
            })?;
            is_ended = match next {
                NextFrame::Frame(header, size) => self.check_frame(&header, size)?,
                NextFrame::Trailer(size) => self.check_trailer(&copied, size)?,
            };
        }
    }

    fn check_frame(&mut self, header: &FrameHeader, header_size: u64) -> io::Result<bool> {
        let mut data = Vec::new();
        (&mut self.input).take(header.stored).read_to_end(&mut data)?;
        if data.len() as u64 != header.stored {
            return Err(frame::damage_error("the frame is truncated"));
        }
        if header.offset != self.expected_trailer.length {
            return Err(frame::damage_error(frame::CHANGED_FRAME));
        }
        header.check_link(self.expected_trailer.chain, &data)?;
        let raw = frame::unpack_frame(header, &data)?;
        header.check_frame_content(&raw)?;
        self.masks.add_frame(header);
        if let Some(hash) = &mut self.line_hash {
            *hash = check_line_hashes(&raw, *hash)?;
        }
        self.expected_trailer.frames.push((self.intact_size, header.offset));
        self.expected_trailer.length += header.length;
        self.expected_trailer.chain = header.chain;
        self.expected_trailer.moved =
            header.last_move().cloned().or(self.expected_trailer.moved.take());
        self.intact_size += header_size + header.stored;
        Ok(false)
    }

    fn check_trailer(&mut self, bytes: &[u8], size: u64) -> io::Result<bool> {
        let expected = self
            .expected_trailer
            .clone()
            .with_attributes(frame::read_stated_attributes(bytes).unwrap_or_default());
        if bytes != frame::encode_trailer(&expected) {
            return Err(frame::damage_error("its trailer was changed"));
        }
        self.intact_size += size;
        Ok(true)
    }
}

/// Checks that a header matches the session and the name of its file.
pub(in crate::vault) fn check_file_identity(
    header: &SealedFileHeader,
    dir: &SessionDir,
    name: &str,
) -> io::Result<()> {
    let is_here =
        (header.agent.as_str(), header.session.as_str()) == (dir.agent(), dir.id().as_str());
    let kept = parse_sealed_name(name);
    let is_own = kept == Some((RECORD_FILE.to_owned(), 0)) && header.name == RECORD_FILE;
    let is_named = is_own || kept == Some((encode_file_name(&header.name), header.generation));
    if is_here && is_named {
        Ok(())
    } else {
        Err(frame::damage_error("the header names another session or file"))
    }
}

fn check_line_hashes(lines: &[u8], mut hash: LineHash) -> io::Result<LineHash> {
    for line in lines.split_inclusive(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\n").ok_or(frame::damage_error("an incomplete record"))?;
        let split =
            LineHash::split_line(line).ok_or(frame::damage_error("a line that is not a record"))?;
        let (stated, body) = split;
        if hash.next_hash(body) != stated {
            return Err(frame::damage_error(CHANGED_LINE));
        }
        hash = stated;
    }
    Ok(hash)
}

/// Copies everything it reads.
struct CopyingReader<R> {
    input: R,
    copied: Vec<u8>,
}

impl<R: Read> Read for CopyingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buffer)?;
        self.copied.extend_from_slice(&buffer[..count]);
        Ok(count)
    }
}
