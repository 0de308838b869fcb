//! A file of a store, plain or encrypted, with the interface of [`File`].
//!
//! # Encrypted files
//! A header, then one chunk for each write (see `chunk_map`), encrypted with AES-256-GCM under a key of the file. The
//! header has a random salt, which the file's key is derived with, and the encrypted path of the file, so that a file
//! in another place is refused. Files only grow at their end: a write before it first cuts off what follows.
//!
//! # Damage
//! A chunk that cannot be authenticated is read as bytes that no format accepts: never as what an attacker chose, and
//! with the same length, so that the checks of logs and frames report exactly the damaged part. If the chunk has a
//! sector of zeros, as an interrupted write leaves it, the bytes are zeros.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};

use crate::chunk_map::{
    self, CHUNK_HEAD_BYTES, CHUNK_OVERHEAD, ChunkMap, FileChunk, MAX_CHUNK_BYTES, read_at, write_at,
};
use crate::master_key::{KEY_BYTES, derive_key, random_bytes};

/// The first bytes of an encrypted file, with its version.
const MAGIC: [u8; 8] = *b"steno\0e\x01";

const SALT_BYTES: usize = 16;

/// Magic, salt and length of the encrypted path.
const FIXED_HEADER_BYTES: usize = MAGIC.len() + SALT_BYTES + 2;

/// An open file of a store.
#[derive(Debug)]
pub struct StoreFile {
    file: File,
    encrypted: Option<Mutex<EncryptedState>>,
}

struct EncryptedState {
    key: LessSafeKey,
    map: ChunkMap,
    position: u64,
    is_appending: bool,
    /// Whether a damaged chunk is an error.
    fails_on_damage: bool,
    /// The last decrypted chunk.
    cached: Option<(FileChunk, Vec<u8>)>,
}

impl fmt::Debug for EncryptedState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EncryptedState").field("position", &self.position).finish_non_exhaustive()
    }
}

impl StoreFile {
    pub(crate) fn plain(file: File) -> Self {
        Self { file, encrypted: None }
    }

    /// Opens an encrypted file that has a header for `path`, relative to the store.
    pub(crate) fn open_encrypted(
        file: File,
        key: &[u8; KEY_BYTES],
        path: &str,
    ) -> io::Result<Self> {
        let header = FileHeader::read(&file, key)?;
        if header.path != stated_path(path) {
            return Err(damage("the file belongs elsewhere in the store"));
        }
        Ok(Self::with_state(file, header.file_key, header.size))
    }

    /// Starts an encrypted file: writes its header into an empty file.
    pub(crate) fn create_encrypted(
        file: File,
        key: &[u8; KEY_BYTES],
        path: &str,
    ) -> io::Result<Self> {
        let (bytes, file_key) = FileHeader::encode(key, stated_path(path))?;
        write_at(&file, &bytes, 0)?;
        Ok(Self::with_state(file, file_key, bytes.len() as u64))
    }

    fn with_state(file: File, key: LessSafeKey, header_end: u64) -> Self {
        let state = EncryptedState {
            key,
            map: ChunkMap::new(header_end),
            position: 0,
            is_appending: false,
            fails_on_damage: false,
            cached: None,
        };
        Self { file, encrypted: Some(Mutex::new(state)) }
    }

    /// A file without content, for one whose creation was interrupted.
    pub(crate) fn without_content(file: File) -> io::Result<Self> {
        let (_, key) = FileHeader::encode(&random_bytes(), "")?;
        let size = file.metadata()?.len();
        Ok(Self::with_state(file, key, size))
    }

    /// Makes every write go to the end of the file.
    pub(crate) fn appending(self) -> Self {
        if let Some(state) = &self.encrypted {
            lock(state).is_appending = true;
        }
        self
    }

    /// Makes a damaged chunk an error, for readers that have no checks of their own.
    pub(crate) fn failing_on_damage(self) -> Self {
        if let Some(state) = &self.encrypted {
            lock(state).fails_on_damage = true;
        }
        self
    }

    /// The length of the content.
    pub fn length(&self) -> io::Result<u64> {
        let Some(state) = &self.encrypted else { return Ok(self.file.metadata()?.len()) };
        let mut state = lock(state);
        state.refresh(&self.file)?;
        Ok(state.map.plain_length())
    }

    /// Cuts the content off.
    pub fn set_len(&self, length: u64) -> io::Result<()> {
        match &self.encrypted {
            None => self.file.set_len(length),
            Some(state) => lock(state).set_length(&self.file, length),
        }
    }

    /// Syncs the content to disk.
    pub fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// The file on disk, for its lock, inode and times. Its size is not that of the content.
    pub fn file_on_disk(&self) -> &File {
        &self.file
    }

    /// Writes everything from `offset` on again as it is on disk, and syncs it.
    ///
    /// `path` is a second handle's path on disk: a handle for appending cannot write elsewhere.
    pub(crate) fn rewrite_from(&self, offset: u64, path: &Path) -> io::Result<()> {
        let (begin, end) = match &self.encrypted {
            None => (offset, self.file.metadata()?.len()),
            Some(state) => {
                let mut state = lock(state);
                state.refresh(&self.file)?;
                let chunk = state.map.find(offset).map(|index| state.map.chunks[index].at);
                (chunk.unwrap_or(state.map.end), state.map.end)
            }
        };
        let (mut from, mut to) = (File::open(path)?, OpenOptions::new().write(true).open(path)?);
        from.seek(SeekFrom::Start(begin))?;
        to.seek(SeekFrom::Start(begin))?;
        // Plain reads and writes: a file system may copy within a file by sharing blocks, which writes nothing.
        let from: &mut dyn Read = &mut from.take(end.saturating_sub(begin));
        io::copy(from, &mut to)?;
        to.sync_data()
    }
}

impl EncryptedState {
    fn refresh(&mut self, file: &File) -> io::Result<()> {
        if self.map.refresh(file)? {
            self.cached = None;
        }
        Ok(())
    }

    fn read(&mut self, file: &File, out: &mut [u8]) -> io::Result<usize> {
        if self.map.find(self.position).is_none() {
            self.refresh(file)?;
        }
        let Some(index) = self.map.find(self.position) else { return Ok(0) };
        let chunk = self.map.chunks[index];
        if self.cached.as_ref().is_none_or(|(cached, _)| *cached != chunk) {
            self.cached = Some((chunk, self.decrypt_chunk(file, &chunk)?));
        }
        let bytes = self.cached.as_ref().map_or(&[][..], |(_, bytes)| bytes);
        let mut rest = &bytes[(self.position - chunk.start) as usize..];
        let count = rest.read(out)?;
        self.position += count as u64;
        Ok(count)
    }

    /// The bytes of a chunk, or as many that no format accepts if it is damaged.
    fn decrypt_chunk(&self, file: &File, chunk: &FileChunk) -> io::Result<Vec<u8>> {
        let length = usize::try_from(chunk.length).map_err(|_| damage("a chunk is too long"))?;
        if chunk.is_damaged {
            return self.replace_damaged(file, chunk);
        }
        let mut bytes = vec![0; CHUNK_HEAD_BYTES + length + AES_256_GCM.tag_len()];
        read_at(file, &mut bytes, chunk.at)?;
        let nonce = *bytes[4..].first_chunk().unwrap_or(&[0; NONCE_LEN]);
        let identity = chunk_identity(chunk.start, chunk.length);
        let nonce = Nonce::assume_unique_for_key(nonce);
        let opened = self.key.open_within(nonce, identity, &mut bytes, CHUNK_HEAD_BYTES..);
        if opened.is_err() {
            return self.replace_damaged(file, chunk);
        }
        bytes.truncate(length);
        Ok(bytes)
    }

    fn replace_damaged(&self, file: &File, chunk: &FileChunk) -> io::Result<Vec<u8>> {
        match self.fails_on_damage {
            true => Err(damage("a part of the file was changed")),
            false => Ok(unreadable_bytes(chunk.length as usize, chunk.has_unwritten_sector(file)?)),
        }
    }

    fn write(&mut self, file: &File, bytes: &[u8]) -> io::Result<usize> {
        self.refresh(file)?;
        let length = self.map.plain_length();
        if self.is_appending {
            self.position = length;
        }
        match self.position {
            position if position > length => {
                return Err(io::Error::other("a write after the end of an encrypted file"));
            }
            // Also cuts off what an interrupted write left.
            position => self.set_length(file, position)?,
        }
        let mut encrypted = Vec::with_capacity(bytes.len() + CHUNK_OVERHEAD as usize);
        for part in bytes.chunks(MAX_CHUNK_BYTES) {
            let start = self.position + (part.as_ptr() as usize - bytes.as_ptr() as usize) as u64;
            self.encrypt_chunk(start, part, &mut encrypted)?;
        }
        write_at(file, &encrypted, self.map.end)?;
        bytes.chunks(MAX_CHUNK_BYTES).for_each(|part| self.map.push(part.len() as u64));
        self.position += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn encrypt_chunk(&self, start: u64, part: &[u8], out: &mut Vec<u8>) -> io::Result<()> {
        let length = u32::try_from(part.len()).map_err(|_| damage("a chunk is too long"))?;
        let (head, tail) = chunk_map::frame_chunk(length, start + u64::from(length));
        let nonce: [u8; NONCE_LEN] = random_bytes();
        out.extend_from_slice(&head);
        out.extend_from_slice(&nonce);
        let begin = out.len();
        out.extend_from_slice(part);
        let tag = self
            .key
            .seal_in_place_separate_tag(
                Nonce::assume_unique_for_key(nonce),
                chunk_identity(start, u64::from(length)),
                &mut out[begin..],
            )
            .map_err(|_| io::Error::other("could not encrypt"))?;
        out.extend_from_slice(tag.as_ref());
        out.extend_from_slice(&tail);
        Ok(())
    }

    fn set_length(&mut self, file: &File, length: u64) -> io::Result<()> {
        self.refresh(file)?;
        let Some(index) = self.map.find(length) else {
            if length > self.map.plain_length() {
                return Err(io::Error::other("an encrypted file cannot be extended"));
            }
            return match file.metadata()?.len() == self.map.end {
                true => Ok(()),
                false => file.set_len(self.map.end),
            };
        };
        let chunk = self.map.chunks[index];
        let keep = usize::try_from(length - chunk.start).unwrap_or_default();
        let mut shorter = Vec::new();
        if keep > 0 {
            let bytes = self.decrypt_chunk(file, &chunk)?;
            self.encrypt_chunk(chunk.start, &bytes[..keep], &mut shorter)?;
            // Before the cut: a process that is killed here leaves the shorter chunk, and bytes that are no chunk.
            write_at(file, &shorter, chunk.at)?;
        }
        file.set_len(chunk.at + shorter.len() as u64)?;
        self.cached = None;
        self.map.truncate(index);
        if keep > 0 {
            self.map.push(keep as u64);
        }
        Ok(())
    }

    fn seek(&mut self, file: &File, to: SeekFrom) -> io::Result<u64> {
        let (base, by) = match to {
            SeekFrom::Start(at) => (at, 0),
            SeekFrom::Current(by) => (self.position, by),
            SeekFrom::End(by) => {
                self.refresh(file)?;
                (self.map.plain_length(), by)
            }
        };
        let before_start = || io::Error::from(io::ErrorKind::InvalidInput);
        self.position = base.checked_add_signed(by).ok_or_else(before_start)?;
        Ok(self.position)
    }
}

impl Read for &StoreFile {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match &self.encrypted {
            None => (&self.file).read(out),
            Some(state) => lock(state).read(&self.file, out),
        }
    }
}

impl Write for &StoreFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &self.encrypted {
            None => (&self.file).write(bytes),
            Some(_) if bytes.is_empty() => Ok(0),
            Some(state) => lock(state).write(&self.file, bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for &StoreFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match &self.encrypted {
            None => (&self.file).seek(to),
            Some(state) => lock(state).seek(&self.file, to),
        }
    }
}

impl Read for StoreFile {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        (&*self).read(out)
    }
}

impl Write for StoreFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self).write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for StoreFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        (&*self).seek(to)
    }
}

fn lock(state: &Mutex<EncryptedState>) -> MutexGuard<'_, EncryptedState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Bytes for a chunk that cannot be read. They end a line, so that the next record stays readable.
fn unreadable_bytes(length: usize, is_torn: bool) -> Vec<u8> {
    if is_torn {
        return vec![0; length];
    }
    let mut bytes = vec![0xff; length];
    bytes.iter_mut().last().into_iter().for_each(|last| *last = b'\n');
    bytes
}

/// Binds a chunk to its place in the file.
fn chunk_identity(start: u64, length: u64) -> Aad<[u8; 16]> {
    let mut identity = [0; 16];
    identity[..8].copy_from_slice(&start.to_le_bytes());
    identity[8..].copy_from_slice(&length.to_le_bytes());
    Aad::from(identity)
}

pub(crate) fn damage(reason: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

/// The path in a file's header. A replacement has the path of the file that it will replace.
fn stated_path(path: &str) -> &str {
    path.strip_suffix(".new").unwrap_or(path)
}

/// The path in the header of the encrypted file at `physical`.
pub(crate) fn read_stated_name(physical: &Path, key: &[u8; KEY_BYTES]) -> io::Result<String> {
    Ok(FileHeader::read(&File::open(physical)?, key)?.path)
}

/// The length of the content of the encrypted file, if its last chunk is complete. Needs no key.
pub(crate) fn stated_length(file: &File) -> io::Result<Option<u64>> {
    let size = file.metadata()?.len();
    let mut fixed = [0; FIXED_HEADER_BYTES];
    read_at(file, &mut fixed, 0)?;
    if FileHeader::parse_size(&fixed) == Some(size) {
        return Ok(Some(0));
    }
    chunk_map::length_from_end(file, size)
}

/// The header of an encrypted file.
struct FileHeader {
    path: String,
    file_key: LessSafeKey,
    size: u64,
}

impl FileHeader {
    fn encode(key: &[u8; KEY_BYTES], path: &str) -> io::Result<(Vec<u8>, LessSafeKey)> {
        let salt: [u8; SALT_BYTES] = random_bytes();
        let nonce: [u8; NONCE_LEN] = random_bytes();
        let file_key = derive_file_key(key, &salt);
        let mut sealed = path.as_bytes().to_vec();
        let length = u16::try_from(sealed.len()).map_err(|_| damage("the path is too long"))?;
        let mut bytes = [&MAGIC[..], &salt, &length.to_le_bytes(), &nonce].concat();
        let identity = Aad::from([&MAGIC[..], &salt].concat());
        file_key
            .seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), identity, &mut sealed)
            .map_err(|_| io::Error::other("could not encrypt"))?;
        bytes.extend(sealed);
        Ok((bytes, file_key))
    }

    fn read(file: &File, key: &[u8; KEY_BYTES]) -> io::Result<Self> {
        let mut fixed = [0; FIXED_HEADER_BYTES];
        let read = read_at(file, &mut fixed, 0)?;
        let size = Self::parse_size(&fixed).filter(|_| read == fixed.len());
        let size = size.ok_or_else(|| damage("not an encrypted file of this store"))?;
        let (magic_and_salt, _) = fixed.split_at(MAGIC.len() + SALT_BYTES);
        let mut sealed = vec![0; size as usize - FIXED_HEADER_BYTES];
        read_at(file, &mut sealed, FIXED_HEADER_BYTES as u64)?;
        let file_key = derive_file_key(key, &magic_and_salt[MAGIC.len()..]);
        let (nonce, sealed) = sealed.split_at_mut(NONCE_LEN);
        let refused = |_| damage("its header was changed, or it has another key");
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(refused)?;
        let path =
            file_key.open_in_place(nonce, Aad::from(magic_and_salt), sealed).map_err(refused)?;
        let path = String::from_utf8_lossy(path).into_owned();
        Ok(Self { path, file_key, size })
    }

    /// The size of the whole header; `None` without the magic bytes.
    fn parse_size(fixed: &[u8; FIXED_HEADER_BYTES]) -> Option<u64> {
        let length = u16::from_le_bytes(*fixed.last_chunk()?);
        let size = FIXED_HEADER_BYTES + NONCE_LEN + usize::from(length) + AES_256_GCM.tag_len();
        fixed.starts_with(&MAGIC).then_some(size as u64)
    }
}

fn derive_file_key(key: &[u8; KEY_BYTES], salt: &[u8]) -> LessSafeKey {
    let key = derive_key(key, salt, b"steno file");
    LessSafeKey::new(UnboundKey::new(&AES_256_GCM, &key).expect("the key has the cipher's length"))
}

/// Whether a file is empty, or has only zeros of a write that a power failure interrupted.
pub(crate) fn has_no_bytes(file: &File) -> io::Result<bool> {
    let mut first = [0; FIXED_HEADER_BYTES];
    let read = read_at(file, &mut first, 0)?;
    Ok(first[..read].iter().all(|byte| *byte == 0))
}
