//! Reads a kept session: its files as a bundle, and its recording line by line.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use super::frame::ContentForm;
use super::recorded_file::RecordLines;
use super::recorder::RECORD_FILE;
use super::sealed::{SealedFile, SharedProblems};
use super::{SessionDir, record, rows};
use crate::{SessionBundle, SessionFile};
use steno_cipher::store_fs;
use steno_model::durable::{FileError, OnPath};
use steno_model::problem::Problem;
use steno_model::session::{Session, SessionStatus};

impl SessionDir {
    /// Whether a recorder has the session open.
    pub fn is_being_recorded(&self) -> Result<bool, FileError> {
        let users_path = self.recording_lock_path();
        if !store_fs::exists(&users_path) {
            return Ok(false);
        }
        Ok(File::open(store_fs::physical_path(&users_path))
            .on("open", &users_path)?
            .try_lock()
            .is_err())
    }

    /// The last known content of every session file, including deleted ones.
    pub fn kept_bundle(&self) -> Result<SessionBundle, FileError> {
        self.collect_bundle(&SharedProblems::default())
    }

    /// Like [`SessionDir::kept_bundle`]. Adds damage to `problems`, also later, while the files are read.
    pub fn collect_bundle(&self, problems: &SharedProblems) -> Result<SessionBundle, FileError> {
        let mut bundle = SessionBundle::new(self.path(), Vec::new());
        let newest: HashSet<_> = self.newest_generations()?.into_iter().collect();
        let last: HashSet<_> = self.last_generations()?.into_iter().collect();
        let mut files = self.sealed_files()?;
        files.retain(|(stem, _)| stem != RECORD_FILE);
        files.sort();
        // Deleted or rewritten files may have had another location.
        let (mut gone, mut is_placed) = (Vec::new(), false);
        for (stem, generation) in files {
            let path = self.sealed_path(&stem, generation);
            let sealed = match self.open_sealed(&stem, generation) {
                Ok(sealed) => sealed,
                // A later generation has the current content, and `verify` reports the damage.
                Err(_) if !last.contains(&(stem.clone(), generation)) => continue,
                Err(error) => {
                    let problem =
                        Problem::damage_in_file(&path, format!("cannot be read: {}", error.source));
                    problems.lock().unwrap_or_else(PoisonError::into_inner).push(problem);
                    continue;
                }
            };
            let file = (stem, generation);
            let is_current = newest.contains(&file) && !sealed.header().gone;
            if is_current || !is_placed {
                bundle.root = PathBuf::from(&sealed.header().root);
                bundle.key.clone_from(&sealed.header().key);
                is_placed |= is_current;
            }
            if sealed.header().gone {
                continue;
            }
            let is_excerpt = sealed.header().form == ContentForm::Excerpt;
            let Some(source) = self.to_session_file(sealed, problems) else { continue };
            if is_excerpt {
                bundle.excerpts.push(source);
            } else if is_current {
                bundle.files.push(source);
            } else if last.contains(&file) {
                gone.push(source.marked_gone());
            } else {
                bundle.earlier_files.push(source);
            }
        }
        // Readers that use one of several files should find an existing one first.
        bundle.files.append(&mut gone);
        Ok(bundle)
    }

    /// Opens a sealed file as a session file.
    fn to_session_file(
        &self,
        sealed: SealedFile,
        problems: &SharedProblems,
    ) -> Option<SessionFile> {
        match sealed.header().form {
            ContentForm::Bytes | ContentForm::Excerpt => {
                Some(bytes_as_session_file(&sealed, problems))
            }
            ContentForm::Rows => Some(rows::rows_as_session_file(&sealed, problems)),
            ContentForm::Pointer => match self.resolve_pointer(&sealed) {
                Ok(sealed) => Some(bytes_as_session_file(&sealed, problems)),
                Err(error) => {
                    let reason = format!("cannot be read: {}", error.source);
                    let problem = Problem::damage_in_file(sealed.path(), reason);
                    problems.lock().unwrap_or_else(PoisonError::into_inner).push(problem);
                    None
                }
            },
        }
    }

    /// Whether the session has files of an agent, rather than only a recording.
    pub fn is_imported(&self) -> Result<bool, FileError> {
        Ok(!self.newest_generations()?.is_empty())
    }

    /// Whether the vault has only excerpts about the session.
    pub fn has_only_excerpts(&self) -> Result<bool, FileError> {
        let bundle = self.kept_bundle()?;
        Ok(bundle.has_only_excerpts())
    }

    /// Whether the session has a recording.
    pub fn is_recorded(&self) -> Result<bool, FileError> {
        Ok(self.has_sealed_record()? || self.first_recorded_line()?.is_some())
    }

    /// Whether part of the recording is sealed.
    pub(super) fn has_sealed_record(&self) -> Result<bool, FileError> {
        Ok(self.sealed_files()?.iter().any(|(stem, _)| stem == RECORD_FILE))
    }

    /// Whether the recording is the wire of an agent, which may have session files too.
    pub fn is_wire_recording(&self) -> Result<bool, FileError> {
        Ok(self.first_recorded_line()?.is_some_and(|line| record::is_wire_opening(&line)))
    }

    /// The first line of the recording; `None` if the recorder was killed before it was complete.
    fn first_recorded_line(&self) -> Result<Option<Vec<u8>>, FileError> {
        let path = self.sealed_record_path();
        let mut line = Vec::new();
        if self.has_sealed_record()? {
            let sealed = self.open_sealed(RECORD_FILE, 0)?;
            sealed
                .lenient_reader(SharedProblems::default())
                .read_until(b'\n', &mut line)
                .on("read", &path)?;
        } else if let Some((_, path)) = self.live_logs()?.first() {
            let file = store_fs::open(path).on("open", path)?;
            BufReader::new(file).read_until(b'\n', &mut line).on("read", path)?;
        }
        Ok(Some(line).filter(|line| line.ends_with(b"\n")))
    }

    /// Calls `take` with each recorded line, sealed or live.
    pub fn for_each_recorded_line(
        &self,
        problems: &SharedProblems,
        take: &mut dyn FnMut(&Path, &[u8]),
    ) -> Result<(), FileError> {
        let mut lines = RecordLines::open(self, 0, problems)?;
        let mut line = Vec::new();
        while let Some((path, _)) = lines.read_line(&mut line)? {
            take(&path, &line);
        }
        Ok(())
    }

    /// Whether the session was never closed but no recorder has it open any more: it has failed.
    pub fn is_abandoned(&self, session: &Session) -> Result<bool, FileError> {
        let is_running = session.status == SessionStatus::Running
            && store_fs::exists(&self.recording_lock_path());
        Ok(is_running && !self.is_being_recorded()?)
    }
}

/// Kept bytes as a session file.
pub(super) fn bytes_as_session_file(sealed: &SealedFile, problems: &SharedProblems) -> SessionFile {
    let header = sealed.header();
    let (kept, problems) = (sealed.file_ref(), Arc::clone(problems));
    SessionFile::with_opener(header.name.clone(), header.original_path(), move |at| {
        let sealed = kept.open().map_err(io::Error::other)?;
        let is_whole = problems.lock().unwrap_or_else(PoisonError::into_inner).is_empty();
        if at > 0 && is_whole {
            return Ok(Box::new(sealed.reader_from(at)));
        }
        // Damaged frames shift the offsets of later bytes.
        let mut input = sealed.lenient_reader(Arc::clone(&problems));
        io::copy(&mut input.by_ref().take(at), &mut io::sink())?;
        Ok(Box::new(input))
    })
}
