//! Keeps session files: copies their bytes into sealed files, which grow with them.
//!
//! Every byte of a recognised session is kept, including an unfinished last line; its rest is appended later. If the kept prefix of a session
//! file has changed, the agent rewrote it. A new generation starts, and the old one stays.
//!
//! # Example
//! | `s.jsonl` at each sync | kept in |
//! |---|---|
//! | `one`, newline, `tw` | `s.jsonl.zst`: 6 bytes |
//! | the same and `o`, newline | `s.jsonl.zst`: 2 bytes more, because the file starts with exactly the kept 6 |
//! | `one`, newline | `s.jsonl@1.zst`: shorter than the kept bytes, so the agent rewrote it |
//! | deleted, while the root of its session exists | `s.jsonl@2.zst`: no bytes, its header has `gone` |
//! | written again | `s.jsonl@3.zst`, whatever the content |
//!
//! While the file is gone, readers and `restore` use generation 1, unless another file of the session holds all of its
//! bytes. A damaged generation is never repaired in place: the next one starts, and the journal marks the damaged one
//! as replaced if the new one is at least as long.

use std::io::{self, BufRead, Read};
use std::path::Path;

use super::SessionDir;
use super::commit::VaultCommit;
use super::frame::{ContentForm, ContentHash, SealedFileHeader};
use super::journal::{FileState, JournalLine};
use super::recorder::RECORD_FILE;
use super::sealed::{SealedFile, SealedFileRef, SealedWriter};
use crate::{FormatError, SessionBundle, SessionFile};
use steno_cipher::store_fs;
use steno_model::durable::{FileError, OnPath};

/// The result of keeping a session file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepOutcome {
    /// The number of this version, counted from 0.
    pub generation: u32,
    /// Number of new bytes.
    pub added: u64,
    /// Total bytes of this generation.
    pub length: u64,
}

/// The context in which a session file was found.
pub(super) struct FilePlacement<'a> {
    /// The session's file or folder.
    pub(super) root: &'a Path,
    /// Selects the session where the file holds several.
    pub(super) key: Option<&'a str>,
    /// What is kept of the file.
    pub(super) form: ContentForm,
}

impl<'a> FilePlacement<'a> {
    fn from_bundle(bundle: &'a SessionBundle, form: ContentForm) -> Self {
        Self { root: &bundle.root, key: bundle.key.as_deref(), form }
    }
}

impl SessionDir {
    /// Keeps every file of a session, and marks earlier ones that are gone. Returns the number of new bytes, which
    /// are on disk when this returns.
    pub fn keep_session(&self, bundle: &SessionBundle) -> Result<u64, FormatError> {
        let mut commit = self.begin_commit();
        let added = self.keep_session_in(bundle, &mut commit)?;
        commit.finish()?;
        Ok(added)
    }

    /// Like [`SessionDir::keep_session`], but the new bytes count only after `commit` is finished.
    ///
    /// Keeps only the session's rows of a database, but the whole of any other shared file.
    pub fn keep_session_in(
        &self,
        bundle: &SessionBundle,
        commit: &mut VaultCommit,
    ) -> Result<u64, FormatError> {
        self.lock_for_keeping(commit)?;
        let (mut added, mut present) = (0, Vec::new());
        if bundle.origin.is_some() {
            let (stem, rows) = self.keep_rows(bundle, commit)?;
            (added, present) = (rows, vec![stem]);
        }
        for file in bundle.files_to_keep() {
            added += self
                .keep_file_locked(
                    &file,
                    &FilePlacement::from_bundle(bundle, ContentForm::Bytes),
                    commit,
                )?
                .added;
            present.push(super::encode_file_name(file.name()));
        }
        for excerpt in &bundle.excerpts {
            // An empty excerpt does not mark the old one as gone: its content stays true.
            present.push(super::encode_file_name(excerpt.name()));
            if !excerpt.read_bytes()?.is_empty() {
                added += self
                    .keep_file_locked(
                        excerpt,
                        &FilePlacement::from_bundle(bundle, ContentForm::Excerpt),
                        commit,
                    )?
                    .added;
            }
        }
        // If the session's root is missing, the bundle is incomplete.
        let newest = if bundle.root.exists() { self.newest_generations()? } else { Vec::new() };
        for (stem, generation) in newest {
            if !present.contains(&stem) {
                self.mark_gone(&stem, generation, commit)?;
            }
        }
        Ok(added)
    }

    /// Keeps the new bytes of `file`, which is below `root`. They are on disk when this returns.
    pub fn keep_file(&self, file: &SessionFile, root: &Path) -> Result<KeepOutcome, FileError> {
        let mut commit = self.begin_commit();
        self.lock_for_keeping(&mut commit)?;
        let place = FilePlacement { root, key: None, form: ContentForm::Bytes };
        let kept = self.keep_file_locked(file, &place, &mut commit)?;
        commit.finish()?;
        Ok(kept)
    }

    /// Takes the session's lock. Fails for a recorded session, unless it records the wire of an agent with session
    /// files.
    pub(super) fn lock_for_keeping(&self, commit: &mut VaultCommit) -> Result<(), FileError> {
        self.check_not_forgotten()?;
        commit.lock_session(self)?;
        // It may have been forgotten while this waited for the lock.
        self.check_not_forgotten()?;
        store_fs::remove_leftovers(self.path());
        if self.is_recorded()? && !self.is_wire_recording()? {
            let error = io::Error::other("the session was recorded live");
            return Err(error).on("keep files in", self.path());
        }
        Ok(())
    }

    /// Keeps the new bytes of a session file.
    pub(super) fn keep_file_locked(
        &self,
        file: &SessionFile,
        place: &FilePlacement<'_>,
        commit: &mut VaultCommit,
    ) -> Result<KeepOutcome, FileError> {
        let file = &self.masked_file(file)?;
        let stem = super::encode_file_name(file.name());
        let newest = self.newest_generation(&stem)?;
        if let Some(newest) = &newest
            && let Some(kept) = self.append_to_generation(file, place, newest, commit)?
        {
            return Ok(kept);
        }
        let generation = self.next_generation(&stem)?;
        let header = self.new_file_header(file.name(), file.path(), place.root, generation);
        let header =
            SealedFileHeader { key: place.key.map(str::to_owned), form: place.form, ..header };
        let mut writer = SealedWriter::create(&self.sealed_path(&stem, generation), &header)?;
        let kept = append_rest(&mut writer, &mut file.open()?, file)?;
        commit.add_file(self, writer.finish()?);
        if let Some((stem, lost)) = newest {
            self.mark_replaced(&stem, lost, &kept, commit)?;
        }
        Ok(KeepOutcome { generation, ..kept })
    }

    /// The number of the next generation.
    pub(super) fn next_generation(&self, stem: &str) -> Result<u32, FileError> {
        let listed = self.listed_files()?.unwrap_or_default();
        let names = listed.iter().filter_map(|(name, _)| super::parse_sealed_name(name));
        let newest = names.filter(|(kept, _)| kept == stem).map(|(_, generation)| generation).max();
        let newest = newest.max(self.newest_generation(stem)?.map(|(_, generation)| generation));
        Ok(newest.map_or(0, |newest| newest + 1))
    }

    /// Marks a damaged or missing generation as replaced, if the new one is at least as long.
    fn mark_replaced(
        &self,
        stem: &str,
        generation: u32,
        replacement: &KeepOutcome,
        commit: &mut VaultCommit,
    ) -> Result<(), FileError> {
        let lost = self.sealed_file_ref(stem, generation)?;
        let Some(listed) = &lost.listed else { return Ok(()) };
        let is_damaged = match lost.open().and_then(|mut sealed| sealed.check_first_frame()) {
            Err(error) if is_system_failure(&error) => return Err(error),
            checked => checked.is_err(),
        };
        if is_damaged && replacement.length >= listed.length {
            let file = lost.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let (length, link) = (listed.length, listed.link.map(String::from));
            let line = self.new_journal_line(FileState::Replaced);
            commit.add_line(self, JournalLine { file, length, link, ..line });
        }
        Ok(())
    }

    /// Appends new bytes to the last generation; `None` if the file does not continue it.
    pub(super) fn grow_file_locked(
        &self,
        file: &SessionFile,
        place: &FilePlacement<'_>,
        commit: &mut VaultCommit,
    ) -> Result<Option<KeepOutcome>, FileError> {
        let newest = self.newest_generation(&super::encode_file_name(file.name()))?;
        let Some(newest) = newest else { return Ok(None) };
        self.append_to_generation(&self.masked_file(file)?, place, &newest, commit)
    }

    /// The file as it is kept: with masks in place of texts that were forgotten.
    pub(super) fn masked_file(&self, file: &SessionFile) -> Result<SessionFile, FileError> {
        Ok(self.forgotten_texts()?.mask_file(&self.journal_key(), file))
    }

    /// Appends new bytes to a generation; `None` if the file does not start with its content.
    fn append_to_generation(
        &self,
        file: &SessionFile,
        place: &FilePlacement<'_>,
        generation: &(String, u32),
        commit: &mut VaultCommit,
    ) -> Result<Option<KeepOutcome>, FileError> {
        let (stem, generation) = generation;
        let mut input = file.open()?;
        let sealed = self.sealed_file_ref(stem, *generation)?;
        let Some(mut writer) = open_continued(&sealed, place, &mut input)? else { return Ok(None) };
        writer.set_location(file.path(), place.root);
        let kept = append_rest(&mut writer, &mut input, file)?;
        if writer.has_changes() {
            commit.add_file(self, writer.finish()?);
        }
        Ok(Some(KeepOutcome { generation: *generation, ..kept }))
    }

    /// The last generation of one session file.
    pub(super) fn newest_generation(&self, stem: &str) -> Result<Option<(String, u32)>, FileError> {
        Ok(self.newest_generations()?.into_iter().find(|(kept, _)| kept == stem))
    }

    /// The last generation of every session file.
    pub(super) fn newest_generations(&self) -> Result<Vec<(String, u32)>, FileError> {
        let mut files = self.sealed_files()?;
        files.retain(|(stem, _)| stem != RECORD_FILE);
        files.sort();
        // `dedup_by` keeps the first of equal stems, so the order is reversed.
        files.reverse();
        files.dedup_by(|later, first| later.0 == first.0);
        files.reverse();
        Ok(files)
    }

    /// Adds a generation that marks the session file as gone, unless the last one does already.
    fn mark_gone(
        &self,
        stem: &str,
        generation: u32,
        commit: &mut VaultCommit,
    ) -> Result<(), FileError> {
        let Ok(sealed) = self.open_sealed(stem, generation) else { return Ok(()) };
        let mut header = sealed.header().clone();
        if !header.gone {
            (header.gone, header.generation) = (true, generation + 1);
            header.version = super::frame::FORMAT_VERSION;
            let path = self.sealed_path(stem, generation + 1);
            commit.add_file(self, SealedWriter::create(&path, &header)?.finish()?);
        }
        Ok(())
    }
}

/// Whether the system failed to read a kept file, or its version is unknown: the file itself may be sound.
fn is_system_failure(error: &FileError) -> bool {
    error.source.kind() == io::ErrorKind::Unsupported
        || (error.source.raw_os_error().is_some() && !error.is_missing())
}

/// Opens the sealed file for appending if the input starts with exactly its content, and reads past that.
///
/// A damaged file stays unchanged, and the caller starts a new generation. I/O errors of the system are returned.
fn open_continued(
    file: &SealedFileRef,
    place: &FilePlacement<'_>,
    input: &mut dyn BufRead,
) -> Result<Option<SealedWriter>, FileError> {
    match SealedWriter::open(file) {
        Ok(mut writer) => {
            let sealed = writer.sealed();
            match sealed.check_first_frame() {
                Err(error) if is_system_failure(&error) => return Err(error),
                Err(_) => return Ok(None),
                Ok(()) => {}
            }
            let header = sealed.header();
            let is_own =
                !header.gone && header.form == place.form && header.key.as_deref() == place.key;
            Ok((is_own && starts_with_kept(sealed, input)?).then_some(writer))
        }
        Err(error) if is_system_failure(&error) => Err(error),
        Err(_) => Ok(None),
    }
}

/// Whether the input starts with exactly the kept bytes. Reads past them.
fn starts_with_kept(sealed: &mut SealedFile, input: &mut dyn BufRead) -> Result<bool, FileError> {
    for index in 0..sealed.frame_count() {
        for ContentHash { length, mut hasher, hash } in sealed.frame_header(index)?.content_hashes()
        {
            let read = io::copy(&mut input.take(length), &mut hasher).on("read", sealed.path())?;
            if read != length || hasher.finalize() != hash.0 {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// Appends the rest of the input. Frames end at line ends where possible.
fn append_rest(
    writer: &mut SealedWriter,
    input: &mut dyn BufRead,
    file: &SessionFile,
) -> Result<KeepOutcome, FileError> {
    let before = writer.sealed().length();
    let mut added = 0;
    loop {
        let buffer = input.fill_buf().on("read", file.path())?;
        if buffer.is_empty() {
            break;
        }
        let size = buffer.len();
        added += size as u64;
        writer.push_lines(buffer)?;
        input.consume(size);
    }
    writer.set_attributes(file.attributes());
    Ok(KeepOutcome { generation: 0, added, length: before + added })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::vault::Vault;

    fn read(dir: &SessionDir, generation: u32) -> String {
        let mut text = String::new();
        let sealed = SealedFile::open(&dir.sealed_path("log.jsonl", generation)).unwrap();
        sealed.reader_from(0).read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn growth_rewrites_and_lines_without_an_end() {
        let temp = tempfile::tempdir().unwrap();
        let vault = Vault::new(temp.path().join("vault"));
        let dir = vault.session_dir(&"a".parse().unwrap(), &"s".parse().unwrap());
        let path = temp.path().join("log.jsonl");
        let keep = |text: &str| {
            fs::write(&path, text).unwrap();
            dir.keep_file(&SessionFile::on_disk("log.jsonl", &path), temp.path()).unwrap()
        };
        let kept = |generation, added, length| KeepOutcome { generation, added, length };
        assert_eq!(keep("one\ntw"), kept(0, 6, 6));
        assert_eq!(keep("one\ntw"), kept(0, 0, 6));
        assert_eq!(keep("one\ntwo\n"), kept(0, 2, 8));
        assert_eq!(keep("one\ntwo\nthr"), kept(0, 3, 11));
        assert_eq!(keep("one\ntwo\nthree\n"), kept(0, 3, 14));
        assert_eq!(keep("one\n2\n"), kept(1, 6, 6));
        assert_eq!(keep("one\n"), kept(2, 4, 4));
        assert_eq!(read(&dir, 0), "one\ntwo\nthree\n");
        assert_eq!(read(&dir, 1), "one\n2\n");
        assert_eq!(read(&dir, 2), "one\n");
    }
}
