//! Reads members of a ZIP archive in any session file, decompressed on the fly.

use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};

use flate2::Crc;
use flate2::bufread::DeflateDecoder;
use zip::{CompressionMethod, ZipArchive};

use steno_vault::SessionFile;

/// The first bytes of an archive.
pub const ZIP_MAGIC: &[u8] = b"PK\x03\x04";

/// The names of all members, sorted. `None` if the file is not an archive.
pub fn member_names(archive: &SessionFile) -> Option<Vec<String>> {
    let archive = ZipArchive::new(SeekableFile::new(archive).ok()?).ok()?;
    let mut names: Vec<_> = archive.file_names().flatten().map(|name| name.into_owned()).collect();
    names.sort();
    Some(names)
}

/// The member `name` as a session file named `shown`.
pub fn member_file(archive: &SessionFile, shown: &str, name: &str) -> SessionFile {
    let (path, archive, name) = (archive.path().join(shown), archive.clone(), name.to_owned());
    SessionFile::new(shown, path, move || open_member(&archive, &name))
}

fn open_member(archive: &SessionFile, name: &str) -> io::Result<Box<dyn BufRead>> {
    let mut members = ZipArchive::new(SeekableFile::new(archive)?)?;
    let member = members.by_name(name)?;
    let (method, expected_crc) = (member.compression(), member.crc32());
    let start = member.data_start().ok_or(io::ErrorKind::InvalidData)?;
    let end = start.checked_add(member.compressed_size()).ok_or(io::ErrorKind::InvalidData)?;
    let packed = archive.named_part(name, start..end).open().map_err(|error| error.source)?;
    let plain: Box<dyn Read> = match method {
        CompressionMethod::Stored => Box::new(packed),
        CompressionMethod::Deflated => Box::new(DeflateDecoder::new(packed)),
        CompressionMethod::Zstd => Box::new(zstd::Decoder::with_buffer(packed)?),
        _ => return Err(io::ErrorKind::Unsupported.into()),
    };
    Ok(Box::new(BufReader::new(Crc32Reader { plain, crc: Crc::new(), expected_crc })))
}

/// Decompressed bytes, verified against the CRC-32 in the archive.
struct Crc32Reader {
    plain: Box<dyn Read>,
    crc: Crc,
    expected_crc: u32,
}

impl Read for Crc32Reader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.plain.read(out)?;
        self.crc.update(&out[..count]);
        if count == 0 && !out.is_empty() && self.crc.sum() != self.expected_crc {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "CRC-32 mismatch in the archive",
            ));
        }
        Ok(count)
    }
}

/// Makes a session file seekable.
struct SeekableFile {
    source: SessionFile,
    offset: u64,
    length: u64,
    input: Option<Box<dyn BufRead>>,
}

impl SeekableFile {
    fn new(source: &SessionFile) -> io::Result<Self> {
        let length = source.read_length().map_err(|error| error.source)?;
        Ok(Self { source: source.clone(), offset: 0, length, input: None })
    }
}

impl Read for SeekableFile {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let input = match &mut self.input {
            Some(input) => input,
            none => none.insert(self.source.open_at(self.offset).map_err(|error| error.source)?),
        };
        let count = input.read(out)?;
        self.offset += count as u64;
        Ok(count)
    }
}

impl Seek for SeekableFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(by) => self.length.checked_add_signed(by),
            SeekFrom::Current(by) => self.offset.checked_add_signed(by),
        };
        let at = at.ok_or(io::ErrorKind::InvalidInput)?;
        if at != self.offset {
            (self.offset, self.input) = (at, None);
        }
        Ok(at)
    }
}
