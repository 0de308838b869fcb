//! Verifies every byte of a sealed file.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;

use super::Damage;
use crate::durable::{FileError, OnPath};
use crate::vault::frame::{self, FileHeader, Form, FrameHeader, NextFrame, Trailer};
use crate::vault::live::{FIRST_SUM, Sum};
use crate::vault::recorder::RECORD;
use crate::vault::sealed::KeptFile;
use crate::vault::{SessionDir, file_name, kept_file};

/// An intact sealed file.
pub(super) struct CheckedFile {
    /// Kept length of the session file.
    pub(super) length: u64,
    pub(super) is_pointer: bool,
    /// Whether unacknowledged bytes follow.
    pub(super) has_rest: bool,
}

/// Verifies the sealed file at `path` up to its listed size.
pub(super) fn check_sealed(
    dir: &SessionDir,
    kept: &KeptFile,
    path: &Path,
) -> Result<Result<CheckedFile, Damage>, FileError> {
    let damage = |offset, reason: String| Damage { path: kept.path.clone(), offset, reason };
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(Err(damage(0, super::MISSING.to_owned())));
        }
        other => other.on("open", path)?,
    };
    let actual = file.metadata().on("read", path)?.len();
    let listed_size = kept.listed.as_ref().and_then(|listed| listed.size);
    let size = listed_size.unwrap_or(actual);
    if actual < size {
        let reason = "shorter than it was: kept bytes are missing".to_owned();
        return Ok(Err(damage(actual, reason)));
    }
    let mut walk = SealedWalk::new(dir, &kept.path, BufReader::new(file).take(size));
    let checked = walk.run().and_then(|length| {
        let listed = kept.listed.as_ref();
        let is_listed = listed.is_none_or(|listed| {
            listed
                .chain()
                .is_none_or(|chain| (listed.length, chain) == (length, walk.trailer.chain))
        });
        if is_listed {
            return Ok(length);
        }
        Err(frame::damaged("its bytes differ from the journal's listing"))
    });
    match checked {
        Ok(length) => {
            let is_pointer = walk.is_pointer;
            Ok(Ok(CheckedFile { length, is_pointer, has_rest: actual > size }))
        }
        Err(error) if error.raw_os_error().is_some() => Err(error).on("read", path),
        Err(error) => Ok(Err(damage(walk.at, error.to_string()))),
    }
}

/// Reads a sealed file from its first to its last byte.
struct SealedWalk<'a, R> {
    dir: &'a SessionDir,
    path: &'a Path,
    input: R,
    /// Size of the verified part.
    at: u64,
    /// The trailer expected at this offset.
    trailer: Trailer,
    /// The hash of the last line; recordings have a hash in every line too.
    sum: Option<Sum>,
    is_pointer: bool,
}

impl<'a, R: Read> SealedWalk<'a, R> {
    fn new(dir: &'a SessionDir, path: &'a Path, input: R) -> Self {
        let trailer = Trailer::empty(frame::Hash(blake3::hash(b"")));
        Self { dir, path, input, at: 0, trailer, sum: None, is_pointer: false }
    }

    /// Verifies the file. Returns the kept length of the session file.
    fn run(&mut self) -> io::Result<u64> {
        let (header, size): (FileHeader, u64) = frame::read_header(&mut self.input)?;
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        check_header(&header, self.dir, &name)?;
        self.trailer = Trailer::empty(frame::begin(&header).1);
        self.sum = (header.name == RECORD && name.starts_with(RECORD)).then_some(FIRST_SUM);
        self.is_pointer = header.form == Form::Pointer;
        self.at = size;
        let mut is_ended = false;
        loop {
            let mut copy = CopyingReader { input: &mut self.input, copied: Vec::new() };
            let next = frame::read_next(&mut copy);
            let copied = copy.copied;
            if copied.is_empty() && is_ended {
                return Ok(self.trailer.length);
            }
            let next = next.map_err(|error| match error.raw_os_error() {
                Some(_) => error,
                None => frame::damaged("neither a frame nor a trailer"),
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
            return Err(frame::damaged("the frame is truncated"));
        }
        if header.offset != self.trailer.length {
            return Err(frame::damaged(frame::CHANGED_FRAME));
        }
        header.check_link(self.trailer.chain, &data)?;
        let raw = frame::unpack(header, &data)?;
        header.check_content(&raw)?;
        if let Some(hash) = &mut self.sum {
            *hash = check_lines(&raw, *hash)?;
        }
        self.trailer.frames.push((self.at, header.offset));
        self.trailer.length += header.length;
        self.trailer.chain = header.chain;
        self.trailer.moved = header.last_move().cloned().or(self.trailer.moved.take());
        self.at += header_size + header.stored;
        Ok(false)
    }

    fn check_trailer(&mut self, bytes: &[u8], size: u64) -> io::Result<bool> {
        let expected = self.trailer.clone().with(frame::stated(bytes).unwrap_or_default());
        if bytes != frame::end(&expected) {
            return Err(frame::damaged("its trailer was changed"));
        }
        self.at += size;
        Ok(true)
    }
}

/// Checks that a header matches the session and the name of its file.
pub(in crate::vault) fn check_header(
    header: &FileHeader,
    dir: &SessionDir,
    name: &str,
) -> io::Result<()> {
    let is_here =
        (header.agent.as_str(), header.session.as_str()) == (dir.agent(), dir.id().as_str());
    let kept = kept_file(name);
    let is_own = kept == Some((RECORD.to_owned(), 0)) && header.name == RECORD;
    let is_named = is_own || kept == Some((file_name(&header.name), header.generation));
    if is_here && is_named {
        Ok(())
    } else {
        Err(frame::damaged("the header names another session or file"))
    }
}

fn check_lines(lines: &[u8], mut hash: Sum) -> io::Result<Sum> {
    for line in lines.split_inclusive(|byte| *byte == b'\n') {
        let line = line.strip_suffix(b"\n").ok_or(frame::damaged("an incomplete record"))?;
        let split = Sum::split(line).ok_or(frame::damaged("a line that is not a record"))?;
        let (stated, body) = split;
        if hash.next(body) != stated {
            return Err(frame::damaged("a record was changed, or one is missing before it"));
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
