//! Sealing: moves live logs to the end of a session's sealed file. The next recorder completes an interrupted
//! sealing.
//!
//! A live log is removed only after the sealed file was synced, read back and compared with it, and after the journal
//! lists the sealed file instead of the log.
//!
//! # Example
//! The sealed file `record.jsonl.zst` has 1000 bytes of the record. The next recorder writes 600 bytes to
//! `record.jsonl.live.1000`; the name states the offset at which the log starts. A crash during sealing leaves one of
//! these states:
//!
//! - The sealed file has new frames that the journal does not list. Readers ignore them. The next recorder appends to
//!   the log; the next sealing cuts the frames off and starts over.
//! - The journal lists 1600 sealed bytes and still the log. The next recorder appends nothing, compares both, lists the
//!   log as removed, and removes it.
//! - The journal lists 1600 sealed bytes and no log, but the file of the log exists. The next recorder compares both
//!   and removes the log.
//!
//! A sealed file that turns out to be damaged is not changed: the log stays beside it, and readers read both.

use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use super::commit::VaultCommit;
use super::journal::{FileState, JournalLine};
use super::log_head::{LogHead, LogHeadFile};
use super::log_scan::scan_log;
use super::recorder::RECORD_FILE;
use super::sealed::SealedWriter;
use super::{SessionDir, frame};
use crate::line_hash::FIRST_LINE_HASH;
use steno_cipher::{StoreFile, store_fs};
use steno_model::durable::{FileError, OnPath};

/// Size of the read buffer for live logs.
const READ_BUFFER_SIZE: usize = 256 << 10;

/// Seals every partly sealed live log of an interrupted sealing.
pub(super) fn seal_interrupted_logs(
    dir: &SessionDir,
    commit: &mut VaultCommit,
) -> Result<(), FileError> {
    let length = dir.open_sealed(RECORD_FILE, 0)?.length();
    for (base, path) in dir.live_logs()? {
        if base < length {
            seal_log(dir, base, &path, commit)?;
        }
    }
    Ok(())
}

/// Seals all live logs. The caller makes sure that no recorder has the session open.
pub(crate) fn seal_all_logs(dir: &SessionDir) -> Result<(), FileError> {
    let mut commit = dir.begin_commit();
    commit.lock_session(dir)?;
    for (base, path) in dir.live_logs()? {
        seal_log(dir, base, &path, &mut commit)?;
    }
    Ok(())
}

/// Moves a live log that starts at offset `base` to the end of the sealed file.
fn seal_log(
    dir: &SessionDir,
    base: u64,
    live: &Path,
    commit: &mut VaultCommit,
) -> Result<(), FileError> {
    let log = LogToSeal::open(live)?;
    if !dir.has_sealed_record()? && log.length == 0 {
        return Ok(());
    }
    let mut writer = match dir.has_sealed_record()? {
        false => SealedWriter::create(
            &dir.sealed_record_path(),
            &dir.new_file_header(RECORD_FILE, live, dir.path(), 0),
        )?,
        true => match SealedWriter::open(&dir.sealed_file_ref(RECORD_FILE, 0)?) {
            // A damaged sealed file is not changed. The log stays beside it and is still read.
            Err(error) if error.source.raw_os_error().is_none() => return Ok(()),
            other => other?,
        },
    };
    match writer.sealed().check_chain() {
        Err(error) if error.source.raw_os_error().is_none() => return Ok(()),
        other => other?,
    }
    let sealed = writer.sealed().length().saturating_sub(base);
    log.read_lines(sealed, &mut |lines| writer.push(lines))?;
    let written = writer.finish()?;
    drop(writer);
    log.check_sealed_copy(base, written.reopen()?)?;
    commit.add_file(dir, written);
    let file = live.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let removed = dir.new_journal_line(FileState::Removed);
    commit.add_line(dir, JournalLine { file, ..removed });
    commit.finish_locked()?;
    store_fs::remove_file(live)?;
    store_fs::remove_file(&super::log_head_path(live))
}

/// A live log without a writer.
struct LogToSeal<'a> {
    path: &'a Path,
    file: StoreFile,
    /// Length of its complete lines. The remains of an interrupted write are not sealed.
    length: u64,
}

impl<'a> LogToSeal<'a> {
    fn open(path: &'a Path) -> Result<Self, FileError> {
        let mut file = store_fs::open(path).on("open", path)?;
        let size = file.length().on("read", path)?;
        let head = match LogHeadFile::read(&super::log_head_path(path)) {
            Err(error) if error.source.raw_os_error().is_some() => return Err(error),
            other => other.ok().and_then(|head| head.last).filter(|head| head.length <= size),
        };
        let start = head.unwrap_or(LogHead { length: 0, line_hash: FIRST_LINE_HASH });
        file.seek(SeekFrom::Start(start.length)).on("read", path)?;
        let mut input = BufReader::with_capacity(READ_BUFFER_SIZE, &file);
        let scan = scan_log(&mut input, start, start.length, &mut |_| ()).on("read", path)?;
        Ok(Self { path, file, length: scan.end.length })
    }

    /// Calls `take` with the log's bytes from `begin` on, some lines at a time.
    fn read_lines(
        &self,
        begin: u64,
        take: &mut dyn FnMut(&[u8]) -> Result<(), FileError>,
    ) -> Result<(), FileError> {
        let mut rest = self.reader_from(begin)?;
        let mut unfinished = Vec::new();
        loop {
            let bytes = rest.fill_buf().on("read", self.path)?;
            if bytes.is_empty() {
                return take(&unfinished);
            }
            let size = bytes.len();
            let whole = memchr::memrchr(b'\n', bytes).map_or(0, |at| at + 1);
            unfinished.extend_from_slice(&bytes[..whole]);
            if whole > 0 {
                take(&unfinished)?;
                unfinished.clear();
            }
            unfinished.extend_from_slice(&bytes[whole..]);
            rest.consume(size);
        }
    }

    fn reader_from(&self, begin: u64) -> Result<impl BufRead, FileError> {
        let mut file = &self.file;
        file.seek(SeekFrom::Start(begin)).on("read", self.path)?;
        Ok(BufReader::with_capacity(READ_BUFFER_SIZE, file.take(self.length.saturating_sub(begin))))
    }

    /// Checks that the sealed file contains this log at offset `base`.
    fn check_sealed_copy(
        &self,
        base: u64,
        sealed: super::sealed::SealedFile,
    ) -> Result<(), FileError> {
        let path = sealed.path().to_owned();
        let hash = |input: &mut dyn Read| {
            let mut hasher = blake3::Hasher::new();
            io::copy(input, &mut hasher).map(|size| (size, hasher.finalize()))
        };
        let sealed = hash(&mut sealed.reader_from(base).take(self.length)).on("read", &path)?;
        if sealed != hash(&mut self.reader_from(0)?).on("read", self.path)? {
            let error =
                frame::damage_error("the sealed file differs from the live log, which is kept");
            return Err(error).on("seal", &path);
        }
        Ok(())
    }
}

/// Removes sealed live logs no longer listed, after checking that the sealed file contains them.
pub(super) fn remove_sealed_logs(dir: &SessionDir) -> Result<(), FileError> {
    let Some(listed) = dir.listed_files()? else { return Ok(()) };
    if !dir.has_sealed_record()? {
        return Ok(());
    }
    for (base, path) in dir.live_logs()? {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if listed.contains_key(&name) {
            continue;
        }
        let log = LogToSeal::open(&path)?;
        let sealed = dir.open_sealed(RECORD_FILE, 0)?;
        // An empty log is reused by the next recorder.
        if base + log.length <= sealed.length() && log.length > 0 {
            log.check_sealed_copy(base, sealed)?;
            store_fs::remove_file(&path)?;
            store_fs::remove_file(&super::log_head_path(&path))?;
        }
    }
    Ok(())
}
