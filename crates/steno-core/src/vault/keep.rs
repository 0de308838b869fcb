//! Keeps a source file: its bytes are copied into a sealed file that grows as the source does.
//!
//! A source whose kept part has changed was rewritten: it starts a new generation, and the old one stays.

use std::fs::File;
use std::io::{self, BufRead, Read};
use std::path::Path;

use super::SessionDir;
use super::frame::{FileHeader, Form};
use super::live::open_lock;
use super::recorder::RECORD;
use super::sealed::{Sealed, SealedWriter};
use crate::durable::{self, FileError, OnPath};
use crate::format::FormatError;
use crate::lines::LINE_LIMIT;
use crate::source::{Bundle, Source};

/// What keeping a source did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// How often the source was rewritten.
    pub generation: u32,
    /// Bytes that are new.
    pub added: u64,
    /// Bytes kept in all of this generation.
    pub length: u64,
}

/// Where a source stood.
pub(super) struct Place<'a> {
    /// The file or folder that held the whole session.
    pub(super) root: &'a Path,
    /// Which session of the source it is.
    pub(super) key: Option<&'a str>,
    /// What of the source is kept.
    pub(super) form: Form,
}

impl<'a> Place<'a> {
    fn of(bundle: &'a Bundle, form: Form) -> Self {
        Self { root: &bundle.root, key: bundle.key.as_deref(), form }
    }
}

/// Whether a source may still grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Growth {
    /// It may: a last line without its newline waits until it is whole.
    Expected,
    /// It has ended, or is no file of lines: all of it is kept.
    Ended,
}

impl SessionDir {
    /// Keeps every file of a session, and notes which of those kept before are gone. Gives how many bytes are new.
    ///
    /// Of a database only the session's rows are kept, of a file that it shares with others all of it.
    pub fn keep_all(&self, bundle: &Bundle, growth: Growth) -> Result<u64, FormatError> {
        let _lock = self.lock_for_keeping()?;
        let (mut added, mut there) = (0, Vec::new());
        if bundle.origin.is_some() {
            let (stem, rows) = self.keep_rows(bundle)?;
            (added, there) = (rows, vec![stem]);
        }
        for source in bundle.kept_sources() {
            // Only files of lines grow by lines; any other may end as it likes.
            let lines = source.name().ends_with(".jsonl");
            let growth = if lines { growth } else { Growth::Ended };
            let place = Place::of(bundle, Form::Bytes);
            added += self.keep_locked(&source, &place, growth)?.added;
            there.push(super::file_name(source.name()));
        }
        for excerpt in &bundle.excerpts {
            // What nothing is said in any more is not gone: what it said stays true.
            there.push(super::file_name(excerpt.name()));
            if !excerpt.bytes()?.is_empty() {
                let place = Place::of(bundle, Form::Excerpt);
                added += self.keep_locked(excerpt, &place, Growth::Expected)?.added;
            }
        }
        // Where the session's own file is missing, what was found is only a part of it.
        let newest = if bundle.root.exists() { self.newest_files()? } else { Vec::new() };
        for (stem, generation) in newest {
            if !there.contains(&stem) {
                self.note_gone(&stem, generation)?;
            }
        }
        self.write_manifest()?;
        Ok(added)
    }

    /// Keeps what is new in `source`, a file below `root`. It is on disk when this returns.
    pub fn keep(&self, source: &Source, root: &Path, growth: Growth) -> Result<Kept, FileError> {
        let _lock = self.lock_for_keeping()?;
        let place = Place { root, key: None, form: Form::Bytes };
        let kept = self.keep_locked(source, &place, growth)?;
        durable::sync_dir(self.path())?;
        Ok(kept)
    }

    /// Takes the session's lock; a session that is recorded is not for files, unless it is the wire of an agent
    /// that has some.
    pub(super) fn lock_for_keeping(&self) -> Result<File, FileError> {
        durable::create_private_dir(self.path())?;
        let lock_path = self.lock_path();
        let lock = open_lock(&lock_path)?;
        lock.lock().on("lock", &lock_path)?;
        durable::remove_leftovers(self.path());
        if self.is_recorded()? && !self.is_wire()? {
            let error = io::Error::other("the session was recorded live");
            return Err(error).on("keep files in", self.path());
        }
        Ok(lock)
    }

    /// Keeps what is new in a source. The name of a file that is new is on disk only after the folder was synced.
    pub(super) fn keep_locked(
        &self,
        source: &Source,
        place: &Place<'_>,
        growth: Growth,
    ) -> Result<Kept, FileError> {
        let stem = super::file_name(source.name());
        let newest = self.newest_file(&stem)?;
        if let Some((stem, generation)) = &newest {
            let path = self.kept_path(stem, *generation);
            if let Some(kept) = go_on(&path, source, place, growth)? {
                return Ok(Kept { generation: *generation, ..kept });
            }
        }
        let generation = newest.map_or(0, |(_, generation)| generation + 1);
        let header = self.header(source.name(), source.path(), place.root, generation);
        let header = FileHeader { key: place.key.map(str::to_owned), form: place.form, ..header };
        let writer = SealedWriter::create(&self.kept_path(&stem, generation), &header)?;
        let kept = copy(writer, &mut source.open()?, source, growth)?;
        Ok(Kept { generation, ..kept })
    }

    /// Adds what is new to the last generation of a source; nothing when the source does not go on with it.
    pub(super) fn grow_locked(
        &self,
        source: &Source,
        place: &Place<'_>,
        growth: Growth,
    ) -> Result<Option<Kept>, FileError> {
        let newest = self.newest_file(&super::file_name(source.name()))?;
        let Some((stem, generation)) = newest else { return Ok(None) };
        let kept = go_on(&self.kept_path(&stem, generation), source, place, growth)?;
        Ok(kept.map(|kept| Kept { generation, ..kept }))
    }

    /// The last generation of one kept source.
    pub(super) fn newest_file(&self, stem: &str) -> Result<Option<(String, u32)>, FileError> {
        Ok(self.newest_files()?.into_iter().find(|(kept, _)| kept == stem))
    }

    /// The last generation of every kept source.
    pub(super) fn newest_files(&self) -> Result<Vec<(String, u32)>, FileError> {
        let mut files = self.kept_files()?;
        files.retain(|(stem, _)| stem != RECORD);
        files.sort();
        // Of equal stems the last one stays.
        files.reverse();
        files.dedup_by(|later, first| later.0 == first.0);
        files.reverse();
        Ok(files)
    }

    /// Adds a generation that says that the source is gone, unless the last one says so already.
    fn note_gone(&self, stem: &str, generation: u32) -> Result<(), FileError> {
        let Ok(sealed) = Sealed::open(&self.kept_path(stem, generation)) else { return Ok(()) };
        let mut header = sealed.header().clone();
        if !header.gone {
            (header.gone, header.generation) = (true, generation + 1);
            let path = self.kept_path(stem, generation + 1);
            let mut writer = SealedWriter::create(&path, &header)?;
            writer.finish()?;
            writer.sync_content()?;
        }
        Ok(())
    }
}

/// Adds what is new of a source to the file that holds its beginning; nothing if that holds something else.
fn go_on(
    path: &Path,
    source: &Source,
    place: &Place<'_>,
    growth: Growth,
) -> Result<Option<Kept>, FileError> {
    let mut input = source.open()?;
    let Some(mut writer) = continued(path, place, &mut input)? else { return Ok(None) };
    writer.set_place(source.path(), place.root);
    copy(writer, &mut input, source, growth).map(Some)
}

/// The file to go on with, when the input begins with exactly what it holds; reads past that.
///
/// A damaged file is left as it is: the source then starts a new generation.
fn continued(
    path: &Path,
    place: &Place<'_>,
    input: &mut dyn BufRead,
) -> Result<Option<SealedWriter>, FileError> {
    match SealedWriter::open(path) {
        Ok(mut writer) => {
            let sealed = writer.sealed();
            if sealed.check_header().is_err() {
                return Ok(None);
            }
            let header = sealed.header();
            let is_own =
                !header.gone && header.form == place.form && header.key.as_deref() == place.key;
            let same = is_own && begins_with_kept(sealed, input).unwrap_or(false);
            Ok(same.then_some(writer))
        }
        Err(error) if error.source.kind() == io::ErrorKind::Unsupported => Err(error),
        Err(_) => Ok(None),
    }
}

/// Whether the input begins with exactly the kept bytes; reads past them.
fn begins_with_kept(sealed: &mut Sealed, input: &mut dyn BufRead) -> Result<bool, FileError> {
    for index in 0..sealed.frame_count() {
        let header = sealed.frame_header(index)?;
        let mut hasher = blake3::Hasher::new();
        let taken =
            io::copy(&mut input.take(header.length), &mut hasher).on("read", sealed.path())?;
        if taken != header.length || hasher.finalize() != header.blake3.0 {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Appends the rest of the input, cut after whole lines.
fn copy(
    mut writer: SealedWriter,
    input: &mut dyn BufRead,
    source: &Source,
    growth: Growth,
) -> Result<Kept, FileError> {
    let before = writer.sealed().length();
    let mut torn = Vec::new();
    loop {
        let buffer = input.fill_buf().on("read", source.path())?;
        if buffer.is_empty() {
            break;
        }
        let whole = memchr::memrchr(b'\n', buffer).map_or(0, |at| at + 1);
        if whole > 0 {
            writer.push_line(&mut torn, &buffer[..whole])?;
        }
        torn.extend_from_slice(&buffer[whole..]);
        let taken = buffer.len();
        input.consume(taken);
        if torn.len() > LINE_LIMIT {
            // Too long to ever be a record; it need not wait for its end.
            writer.push_line(&mut torn, &[])?;
        }
    }
    if growth == Growth::Ended {
        writer.push_line(&mut torn, &[])?;
    }
    writer.set_attributes(source.attributes());
    if writer.has_news() {
        writer.finish()?;
        writer.sync_content()?;
    }
    let length = writer.sealed().length();
    Ok(Kept { generation: 0, added: length - before, length })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::vault::Vault;

    fn read(dir: &SessionDir, generation: u32) -> String {
        let mut text = String::new();
        let sealed = Sealed::open(&dir.kept_path("log.jsonl", generation)).unwrap();
        sealed.reader(0).read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn growth_rewrites_and_torn_lines() {
        let temp = tempfile::tempdir().unwrap();
        let vault = Vault::new(temp.path().join("vault"));
        let dir = vault.session(&"a".parse().unwrap(), &"s".parse().unwrap());
        let path = temp.path().join("log.jsonl");
        let keep = |text: &str, growth| {
            fs::write(&path, text).unwrap();
            dir.keep(&Source::on_disk("log.jsonl", &path), temp.path(), growth).unwrap()
        };
        let kept = |generation, added, length| Kept { generation, added, length };
        assert_eq!(keep("one\ntw", Growth::Expected), kept(0, 4, 4));
        assert_eq!(keep("one\ntw", Growth::Expected), kept(0, 0, 4));
        assert_eq!(keep("one\ntwo\n", Growth::Expected), kept(0, 4, 8));
        assert_eq!(keep("one\ntwo\nthr", Growth::Ended), kept(0, 3, 11));
        assert_eq!(keep("one\ntwo\nthree\n", Growth::Expected), kept(0, 3, 14));
        assert_eq!(keep("one\n2\n", Growth::Expected), kept(1, 6, 6));
        assert_eq!(keep("one\n", Growth::Expected), kept(2, 4, 4));
        assert_eq!(read(&dir, 0), "one\ntwo\nthree\n");
        assert_eq!(read(&dir, 1), "one\n2\n");
        assert_eq!(read(&dir, 2), "one\n");
    }
}
