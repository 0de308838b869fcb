//! Reads members of a ZIP archive in any session file, decompressed on the fly.

use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

use flate2::Crc;
use flate2::bufread::DeflateDecoder;
use zip::{CompressionMethod, ZipArchive};

use steno_vault::Source;

/// The first bytes of an archive.
pub(crate) const MAGIC: &[u8] = b"PK\x03\x04";

/// The names of all members, sorted. `None` if the file is not an archive.
pub(crate) fn names(archive: &Source) -> Option<Vec<String>> {
    let archive = ZipArchive::new(Anywhere::of(archive).ok()?).ok()?;
    let mut names: Vec<_> = archive.file_names().flatten().map(|name| name.into_owned()).collect();
    names.sort();
    Some(names)
}

/// The member `name` as a session file named `shown`.
pub(crate) fn member(archive: &Source, shown: &str, name: &str) -> Source {
    let (path, archive, name) = (archive.path().join(shown), archive.clone(), name.to_owned());
    Source::new(shown, path, move || open(&archive, &name))
}

fn open(archive: &Source, name: &str) -> io::Result<Box<dyn BufRead>> {
    let mut members = ZipArchive::new(Anywhere::of(archive)?)?;
    let member = members.by_name(name)?;
    let (method, expected_crc) = (member.compression(), member.crc32());
    let start = member.data_start().ok_or(io::ErrorKind::InvalidData)?;
    let end = start.checked_add(member.compressed_size()).ok_or(io::ErrorKind::InvalidData)?;
    let packed = archive.part(name, start..end).open().map_err(|error| error.source)?;
    let plain: Box<dyn Read> = match method {
        CompressionMethod::Stored => Box::new(packed),
        CompressionMethod::Deflated => Box::new(DeflateDecoder::new(packed)),
        CompressionMethod::Zstd => Box::new(zstd::Decoder::with_buffer(packed)?),
        _ => return Err(io::ErrorKind::Unsupported.into()),
    };
    Ok(Box::new(BufReader::new(Checked { plain, crc: Crc::new(), sum: expected_crc })))
}

/// Decompressed bytes, verified against the CRC-32 in the archive.
struct Checked {
    plain: Box<dyn Read>,
    crc: Crc,
    sum: u32,
}

impl Read for Checked {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.plain.read(out)?;
        self.crc.update(&out[..count]);
        if count == 0 && !out.is_empty() && self.crc.sum() != self.sum {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "CRC-32 mismatch in the archive",
            ));
        }
        Ok(count)
    }
}

/// Makes a session file seekable.
struct Anywhere {
    source: Source,
    at: u64,
    length: u64,
    input: Option<Box<dyn BufRead>>,
}

impl Anywhere {
    fn of(source: &Source) -> io::Result<Self> {
        let length = source.length().map_err(|error| error.source)?;
        Ok(Self { source: source.clone(), at: 0, length, input: None })
    }
}

impl Read for Anywhere {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let input = match &mut self.input {
            Some(input) => input,
            none => none.insert(self.source.open_at(self.at).map_err(|error| error.source)?),
        };
        let count = input.read(out)?;
        self.at += count as u64;
        Ok(count)
    }
}

impl Seek for Anywhere {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.length.checked_add_signed(by),
            SeekFrom::Current(by) => self.at.checked_add_signed(by),
        };
        let at = at.ok_or(io::ErrorKind::InvalidInput)?;
        if at != self.at {
            (self.at, self.input) = (at, None);
        }
        Ok(at)
    }
}
