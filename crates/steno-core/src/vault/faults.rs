//! Compares the journal's listing of a session with its folder, without reading every byte.
//!
//! Readers report these faults, because they then see less than was kept. `verify` checks every byte.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use super::head::HeadFile;
use super::journal::{FileState, ListedFile};
use super::notes::NOTES;
use super::verify::check_header;
use super::{SessionDir, entries, kept_file};
use crate::durable::{FileError, OnPath};
use crate::problem::Problem;

impl SessionDir {
    /// Missing and outdated files of the session, and files damaged at their beginning or end.
    pub fn faults(&self) -> Result<Vec<Problem>, FileError> {
        let mut faults = Vec::new();
        let Some(listed) = self.listed()? else {
            let names = self.listed_by_manifest().unwrap_or_default();
            let paths = names.iter().map(|name| self.path.join(name));
            let missing = paths.filter(|path| !path.exists());
            return Ok(missing.map(|path| Problem::of(&path, MISSING)).collect());
        };
        let damaged_lines = self.journal.damaged_lines()?;
        if damaged_lines > 0 {
            let reason = format!("{damaged_lines} of its lines are damaged");
            faults.push(Problem::of(&self.journal.path(), reason));
        }
        if !listed.is_empty() && !self.path.is_dir() {
            faults.push(Problem::of(&self.path, "the session's folder is missing"));
            return Ok(faults);
        }
        faults.extend(self.journal.missing_end()?.map(|missing| {
            Problem::of(&self.journal.path(), format!("{missing} bytes are missing at the end"))
        }));
        for name in entries(&self.path)? {
            if kept_file(&name).is_some() && !listed.contains_key(&name) {
                faults.push(Problem::of(&self.path.join(&name), UNLISTED));
            }
        }
        for (name, file) in listed.iter() {
            let path = self.path.join(name);
            let fault = match file.state {
                FileState::Kept => self.fault_of_sealed_file(name)?,
                FileState::Open => fault_of_log(&path, file)?,
                FileState::Replaced | FileState::Removed | FileState::Restarted => None,
            };
            faults.extend(fault.map(|reason| Problem::of(&path, reason)));
        }
        Ok(faults)
    }

    /// The fault of the session's notes file, if any.
    pub(super) fn fault_of_notes(&self) -> Result<Option<Problem>, FileError> {
        let listed = self.listed()?.and_then(|listed| listed.get(NOTES).cloned());
        let Some(listed) = listed else { return Ok(None) };
        let path = self.path.join(NOTES);
        Ok(fault_of_log(&path, &listed)?.map(|reason| Problem::of(&path, reason)))
    }

    fn fault_of_sealed_file(&self, name: &str) -> Result<Option<String>, FileError> {
        let Some((stem, generation)) = kept_file(name) else { return Ok(None) };
        let opened = self
            .open_kept(&stem, generation)
            .and_then(|sealed| check_header(sealed.header(), self, name).on("read", sealed.path()));
        match opened {
            Ok(()) => Ok(None),
            Err(error) if error.is_missing() => Ok(Some(MISSING.to_owned())),
            Err(error) if error.source.raw_os_error().is_some() => Err(error),
            Err(error) => Ok(Some(error.source.to_string())),
        }
    }
}

/// The reason for ignoring a file that exists.
pub(super) const UNLISTED: &str = "the journal does not list this file";

/// The reason for a listed file that does not exist.
pub(super) const MISSING: &str = "the file is missing";

/// Checks a log against its length and its head file.
fn fault_of_log(path: &Path, listed: &ListedFile) -> Result<Option<String>, FileError> {
    let size = match fs::metadata(path) {
        Ok(metadata) => metadata.len(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Ok(Some(MISSING.to_owned()));
        }
        Err(error) => return Err(error).on("read", path),
    };
    let head_path = super::head_path(path);
    if !head_path.exists() {
        return Ok(Some("its head file is missing".to_owned()));
    }
    let head = match HeadFile::read(&head_path) {
        Ok(head) => head.last,
        Err(error) if error.source.raw_os_error().is_some() => return Err(error),
        Err(_) => return Ok(Some("its head file is damaged".to_owned())),
    };
    let known = head.map_or(0, |head| head.length).max(listed.length);
    let missing = known.saturating_sub(size);
    if missing > 0 {
        return Ok(Some(format!("{missing} bytes are missing at the end")));
    }
    let is_whole = known == 0 || ends_with_newline(path, known).on("read", path)?;
    Ok((!is_whole).then(|| "its last record is damaged".to_owned()))
}

/// Whether byte `length` of a log ends a line.
fn ends_with_newline(path: &Path, length: u64) -> io::Result<bool> {
    let mut log = File::open(path)?;
    log.seek(SeekFrom::Start(length - 1))?;
    let mut last = [0];
    log.read_exact(&mut last)?;
    Ok(last == *b"\n")
}
