//! Session files: on disk where the agent left them, in memory, or in the vault. A bundle holds all files of one
//! session.

mod file_reader;

use std::fmt;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use steno_model::durable::{FileError, OnPath};

use self::file_reader::FileReader;
pub use self::file_reader::take_read_failures;
use crate::attributes::FileAttributes;

/// The largest file parsed as one document. A parsed document may need twenty times its size in memory.
pub const MAX_DOCUMENT_SIZE: u64 = 128 << 20;

/// Opens a file at a byte offset.
type FileOpener = Arc<dyn Fn(u64) -> io::Result<Box<dyn BufRead>> + Send + Sync>;

/// The magic number of a zstd frame.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// One file, or the rows of a database, in which an agent keeps a session.
#[derive(Clone)]
pub struct SessionFile {
    name: String,
    path: PathBuf,
    is_on_disk: bool,
    is_gone: bool,
    /// Maximum bytes to hold in memory.
    limit: u64,
    opener: FileOpener,
}

impl SessionFile {
    /// A file on disk, known to its session as `name` (parts joined by `/`).
    pub fn on_disk(name: impl Into<String>, path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let name = exact_name(name.into(), &path);
        let file = path.clone();
        let open = move |at| -> io::Result<Box<dyn BufRead>> {
            Ok(Box::new(FileReader::open_at(&file, at)?))
        };
        Self { is_on_disk: true, ..Self::with_opener(name, path, open) }
    }

    /// Bytes in memory that act as a file at `path`.
    pub fn in_memory(name: impl Into<String>, path: impl Into<PathBuf>, bytes: Vec<u8>) -> Self {
        let bytes: Arc<[u8]> = bytes.into();
        Self::with_opener(name, path, move |at| {
            let mut input = Cursor::new(Arc::clone(&bytes));
            input.set_position(at);
            Ok(Box::new(input))
        })
    }

    /// A file that `open` opens at its first byte. Offsets are reached by reading and discarding.
    pub fn new(
        name: impl Into<String>,
        path: impl Into<PathBuf>,
        open: impl Fn() -> io::Result<Box<dyn BufRead>> + Send + Sync + 'static,
    ) -> Self {
        Self::with_opener(name, path, move |at| {
            let mut input = open()?;
            io::copy(&mut input.by_ref().take(at), &mut io::sink())?;
            Ok(input)
        })
    }

    /// A file that `open` opens at any byte offset.
    pub fn with_opener(
        name: impl Into<String>,
        path: impl Into<PathBuf>,
        open: impl Fn(u64) -> io::Result<Box<dyn BufRead>> + Send + Sync + 'static,
    ) -> Self {
        let (name, path) = (name.into(), path.into());
        Self {
            name,
            path,
            is_on_disk: false,
            is_gone: false,
            limit: MAX_DOCUMENT_SIZE,
            opener: Arc::new(open),
        }
    }

    /// The same file with other content of the same length, which `open` opens at any byte offset.
    pub(crate) fn with_content(
        &self,
        open: impl Fn(u64) -> io::Result<Box<dyn BufRead>> + Send + Sync + 'static,
    ) -> Self {
        Self { opener: Arc::new(open), ..self.clone() }
    }

    /// The bytes of `range` as a separate file named `name` inside this one.
    pub fn named_part(&self, name: &str, range: Range<u64>) -> Self {
        let (opener, length) = (Arc::clone(&self.opener), range.end - range.start);
        let open = move |at: u64| -> io::Result<Box<dyn BufRead>> {
            let at = at.min(length);
            Ok(Box::new(opener(range.start + at)?.take(length - at)))
        };
        Self { limit: self.limit, ..Self::with_opener(name, self.path.join(name), open) }
    }

    /// The bytes of `range` as if the file contained nothing else.
    pub fn byte_range(&self, range: Range<u64>) -> Self {
        Self { path: self.path.clone(), ..self.named_part(&self.name, range) }
    }

    /// The same file, of which at most `limit` bytes may be held in memory.
    pub fn with_limit(self, limit: u64) -> Self {
        Self { limit, ..self }
    }

    /// The same file, marked as deleted by its agent.
    pub fn marked_gone(self) -> Self {
        Self { is_gone: true, ..self }
    }

    /// Whether the file was already deleted when its session was last kept.
    pub fn is_gone(&self) -> bool {
        self.is_gone
    }

    /// The name inside the session, parts joined by `/`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The current or former location of the file. Problems are reported under this path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The modification time of the file at this path.
    pub fn modified_time(&self) -> Option<SystemTime> {
        self.attributes().modified_time()
    }

    /// The file system attributes of the file at this path.
    pub fn attributes(&self) -> FileAttributes {
        let metadata = std::fs::metadata(&self.path).ok().filter(|_| self.is_on_disk);
        metadata.as_ref().map(FileAttributes::from_metadata).unwrap_or_default()
    }

    /// Whether the bytes come directly from the file at [`SessionFile::path`].
    pub fn is_on_disk(&self) -> bool {
        self.is_on_disk
    }

    /// Opens a reader at the first byte.
    pub fn open(&self) -> Result<Box<dyn BufRead>, FileError> {
        self.open_at(0)
    }

    /// Opens a reader at a byte offset.
    pub fn open_at(&self, at: u64) -> Result<Box<dyn BufRead>, FileError> {
        (self.opener)(at).on("open", &self.path)
    }

    /// The file's length in bytes. Reads the content if the file is not on disk.
    pub fn read_length(&self) -> Result<u64, FileError> {
        let file = std::fs::metadata(&self.path).ok().filter(|_| self.is_on_disk);
        match file {
            Some(file) => Ok(file.len()),
            None => io::copy(&mut self.open()?, &mut io::sink()).on("read", &self.path),
        }
    }

    /// Reads a whole document. Fails if it is larger than [`MAX_DOCUMENT_SIZE`].
    pub fn read_bytes(&self) -> Result<Vec<u8>, FileError> {
        let mut bytes = Vec::new();
        self.open_document()?.read_to_end(&mut bytes).on("read", &self.path)?;
        Ok(bytes)
    }

    /// Opens a reader for formats held in memory as a whole. The reader fails after [`MAX_DOCUMENT_SIZE`]
    /// bytes.
    pub fn open_document(&self) -> Result<Box<dyn BufRead>, FileError> {
        let metadata = std::fs::metadata(&self.path).ok().filter(|_| self.is_on_disk);
        if metadata.is_some_and(|metadata| metadata.len() > self.limit) {
            return Err(too_large_error()).on("read", &self.path);
        }
        let input = LimitedInput { input: self.open()?, remaining: self.limit };
        Ok(Box::new(BufReader::new(input)))
    }
}

/// Restores a name taken from the end of a path: non-UTF-8 bytes become `%XX`, so distinct files keep
/// distinct names.
fn exact_name(name: String, path: &Path) -> String {
    if !name.contains(char::REPLACEMENT_CHARACTER) || path.to_str().is_some() {
        return name;
    }
    let count = name.split('/').count();
    let mut parts: Vec<_> = path.iter().rev().take(count).map(escape_invalid_utf8).collect();
    parts.reverse();
    parts.join("/")
}

fn escape_invalid_utf8(part: &std::ffi::OsStr) -> String {
    let chunks = part.as_encoded_bytes().utf8_chunks();
    let text = chunks.map(|chunk| {
        let bytes = chunk.invalid().iter().map(|byte| format!("%{byte:02X}"));
        chunk.valid().to_owned() + &bytes.collect::<String>()
    });
    text.collect()
}

/// Input that returns an error once it exceeds its limit.
struct LimitedInput {
    input: Box<dyn BufRead>,
    remaining: u64,
}

impl Read for LimitedInput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.input.read(buffer)?;
        self.remaining = self.remaining.checked_sub(count as u64).ok_or_else(too_large_error)?;
        Ok(count)
    }
}

fn too_large_error() -> io::Error {
    let reason = format!("the document is larger than {} MiB", MAX_DOCUMENT_SIZE >> 20);
    io::Error::new(io::ErrorKind::FileTooLarge, reason)
}

/// Decompresses the input if it starts with a zstd frame; otherwise returns it unchanged.
pub fn decompress_if_zstd(mut input: Box<dyn BufRead>) -> io::Result<Box<dyn BufRead>> {
    if !input.fill_buf()?.starts_with(&ZSTD_MAGIC) {
        return Ok(input);
    }
    Ok(Box::new(BufReader::new(zstd::Decoder::with_buffer(input)?)))
}

impl fmt::Debug for SessionFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionFile").field("name", &self.name).field("path", &self.path).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_a_file_of_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, "0123456789").unwrap();
        let opened = || Ok(Box::new(Cursor::new("0123456789")) as Box<dyn BufRead>);
        for file in [
            SessionFile::on_disk("file", &path),
            SessionFile::in_memory("file", &path, b"0123456789".to_vec()),
            SessionFile::new("file", &path, opened),
        ] {
            let part = file.named_part("inner", 2..8).named_part("innermost", 1..5);
            assert_eq!(part.read_bytes().unwrap(), b"3456");
            let mut rest = String::new();
            part.open_at(3).unwrap().read_to_string(&mut rest).unwrap();
            part.open_at(9).unwrap().read_to_string(&mut rest).unwrap();
            assert_eq!((rest.as_str(), part.path()), ("6", &*path.join("inner/innermost")));
        }
    }

    #[test]
    fn a_document_has_a_limit() {
        let mut input = LimitedInput { input: Box::new(&b"abc"[..]), remaining: 3 };
        assert_eq!(input.read_to_end(&mut Vec::new()).unwrap(), 3);
        let mut input = LimitedInput { input: Box::new(&b"abcd"[..]), remaining: 3 };
        let error = input.read_to_end(&mut Vec::new()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    }
}
