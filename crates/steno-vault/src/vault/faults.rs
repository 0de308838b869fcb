//! Compares the journal's listing of a session with its folder, without reading every byte.
//!
//! Readers report these faults, because they then see less than was kept. `verify` checks every byte.

use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use super::journal::{FileState, ListedFile};
use super::log_head::LogHeadFile;
use super::notes::NOTES_FILE;
use super::recorder::RECORD_FILE;
use super::verify::check_file_identity;
use super::{SessionDir, list_names, parse_sealed_name};
use steno_cipher::store_fs;
use steno_model::durable::{FileError, OnPath};
use steno_model::problem::Problem;

impl SessionDir {
    /// Missing and outdated files of the session, and files damaged at their beginning or end.
    pub fn find_faults(&self) -> Result<Vec<Problem>, FileError> {
        let mut faults = Vec::new();
        let Some(listed) = self.listed_files()? else {
            let names = self.listed_by_manifest().unwrap_or_default();
            let paths = names.iter().map(|name| self.path.join(name));
            let missing = paths.filter(|path| !store_fs::exists(path));
            return Ok(missing.map(|path| Problem::damage_in_file(&path, MISSING_FILE)).collect());
        };
        faults.extend(self.find_journal_faults()?);
        if !listed.is_empty() && !store_fs::is_dir(&self.path) {
            faults.push(Problem::damage_in_file(&self.path, "the session's folder is missing"));
            return Ok(faults);
        }
        for name in list_names(&self.path)?.iter().filter(|name| !listed.contains_key(name)) {
            let path = self.path.join(name);
            if parse_sealed_name(name).is_some() {
                faults.push(Problem::damage_in_file(&path, UNLISTED_FILE));
            } else if self.is_acknowledged_log(name)? {
                faults.push(Problem::damage_in_file(&path, UNLISTED_LOG));
            }
        }
        for (name, file) in listed.iter() {
            let path = self.path.join(name);
            let fault = match file.state {
                FileState::Kept => self.find_sealed_fault(name)?,
                FileState::Open => find_log_fault(&path, file)?,
                FileState::Replaced | FileState::Removed | FileState::Restarted => None,
            };
            faults.extend(fault.map(|reason| Problem::damage_in_file(&path, reason)));
        }
        Ok(faults)
    }

    /// Whether the session has a folder and the journal is damaged, so that it may have files without a listing.
    pub fn may_be_unlisted(&self) -> bool {
        self.exists() && self.find_journal_faults().is_ok_and(|faults| !faults.is_empty())
    }

    /// The faults that affect the recording: all but those of notes and of the agent's own files.
    pub fn find_recording_faults(&self) -> Result<Vec<Problem>, FileError> {
        let mut faults = self.find_faults()?;
        faults.retain(|fault| {
            let name = fault.path.file_name().unwrap_or_default().to_string_lossy();
            let sealed = parse_sealed_name(&name);
            name != NOTES_FILE && sealed.is_none_or(|(stem, _)| stem == RECORD_FILE)
        });
        Ok(faults)
    }

    /// Damaged lines of the journal, and faults at its end.
    pub(super) fn find_journal_faults(&self) -> Result<Vec<Problem>, FileError> {
        // Damaged lines are counted while the session's lines are looked up.
        if self.listed_files()?.is_none() {
            return Ok(Vec::new());
        }
        let journal = self.journal.path();
        let mut faults = Vec::new();
        let damaged_lines = self.journal.count_damaged_lines()?;
        if damaged_lines > 0 {
            let reason = format!("{damaged_lines} of its lines are damaged");
            faults.push(Problem::damage_in_file(&journal, reason));
        }
        let own_listing = ListedFile { state: FileState::Open, length: 0, size: None, link: None };
        let end_fault = find_log_fault(&journal, &own_listing)?;
        faults.extend(end_fault.map(|reason| Problem::damage_in_file(&journal, reason)));
        Ok(faults)
    }

    /// Whether a file is a live log with acknowledged records that are not sealed. The journal lists such a log before
    /// its first record, and until it is sealed.
    pub(super) fn is_acknowledged_log(&self, name: &str) -> Result<bool, FileError> {
        let Some(base) = Self::parse_live_log_base(name) else { return Ok(false) };
        let path = self.path.join(name);
        let acknowledged = match LogHeadFile::read(&super::log_head_path(&path)) {
            Ok(head) => head.last.map_or(0, |head| head.length),
            Err(error) if error.source.raw_os_error().is_some() => return Err(error),
            Err(_) => store_fs::file_length(&path).on("read", &path)?,
        };
        if acknowledged == 0 {
            return Ok(false);
        }
        let sealed =
            if self.has_sealed_record()? { self.open_sealed(RECORD_FILE, 0).ok() } else { None };
        Ok(sealed.is_none_or(|sealed| sealed.length() < base + acknowledged))
    }

    /// How many bytes of a log are known to have been on disk.
    pub(super) fn durable_log_length(&self, path: &Path) -> Result<u64, FileError> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let listed = self.listed_files()?.and_then(|listed| listed.get(&name).cloned());
        let head = match LogHeadFile::read(&super::log_head_path(path)) {
            Err(error) if error.source.raw_os_error().is_some() => return Err(error),
            other => other.ok().and_then(|head| head.last),
        };
        Ok(head.map_or(0, |head| head.length).max(listed.map_or(0, |listed| listed.length)))
    }

    /// The fault of the session's notes file, if any.
    pub(super) fn find_notes_fault(&self) -> Result<Option<Problem>, FileError> {
        let listed = self.listed_files()?.and_then(|listed| listed.get(NOTES_FILE).cloned());
        let Some(listed) = listed else { return Ok(None) };
        let path = self.path.join(NOTES_FILE);
        Ok(find_log_fault(&path, &listed)?.map(|reason| Problem::damage_in_file(&path, reason)))
    }

    fn find_sealed_fault(&self, name: &str) -> Result<Option<String>, FileError> {
        let Some((stem, generation)) = parse_sealed_name(name) else { return Ok(None) };
        let opened = self.open_sealed(&stem, generation).and_then(|sealed| {
            check_file_identity(sealed.header(), self, name).on("read", sealed.path())?;
            Ok(sealed.complete_size().is_some())
        });
        match opened {
            Ok(true) => Ok(None),
            // A listed file has a trailer: the journal lists it only after the trailer is on disk.
            Ok(false) => Ok(Some(DAMAGED_TRAILER.to_owned())),
            Err(error) if error.is_missing() => Ok(Some(MISSING_FILE.to_owned())),
            Err(error) if error.source.raw_os_error().is_some() => Err(error),
            Err(error) => Ok(Some(error.source.to_string())),
        }
    }
}

/// The reason for ignoring a file that exists.
pub(super) const UNLISTED_FILE: &str = "the journal does not list this file";

/// The reason for a live log that the journal does not list.
pub(super) const UNLISTED_LOG: &str =
    "the journal does not list this log, although its records were acknowledged";

/// The reason for a sealed file whose content is intact, but whose trailer is not.
const DAMAGED_TRAILER: &str =
    "its trailer is damaged: the time and mode of the session file are lost";

/// The reason for a listed file that does not exist.
pub(super) const MISSING_FILE: &str = "the file is missing";

/// Checks a log against its length and its head file.
fn find_log_fault(path: &Path, listed: &ListedFile) -> Result<Option<String>, FileError> {
    if let Err(error) = store_fs::metadata(path) {
        let is_missing = error.kind() == io::ErrorKind::NotFound;
        return if is_missing {
            Ok(Some(MISSING_FILE.to_owned()))
        } else {
            Err(error).on("read", path)
        };
    }
    let head_path = super::log_head_path(path);
    if !store_fs::exists(&head_path) {
        return Ok(Some("its head file is missing".to_owned()));
    }
    let head = match LogHeadFile::read(&head_path) {
        Ok(head) => head.last,
        Err(error) if error.source.raw_os_error().is_some() => return Err(error),
        Err(_) => return Ok(Some("its head file is damaged".to_owned())),
    };
    find_end_fault(path, head.map_or(0, |head| head.length).max(listed.length))
}

/// Checks that a log has the bytes that were known to be on disk, and that a line ends there.
fn find_end_fault(path: &Path, known: u64) -> Result<Option<String>, FileError> {
    if known == 0 {
        return Ok(None);
    }
    let missing = match store_fs::metadata(path) {
        Ok(metadata) => known.saturating_sub(metadata.len()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => known,
        Err(error) => return Err(error).on("read", path),
    };
    if missing > 0 {
        return Ok(Some(format!("{missing} bytes are missing at the end")));
    }
    let is_whole = ends_with_newline(path, known).on("read", path)?;
    Ok((!is_whole).then(|| "its last record is damaged".to_owned()))
}

/// Whether byte `length` of a log ends a line.
fn ends_with_newline(path: &Path, length: u64) -> io::Result<bool> {
    let mut log = store_fs::open(path)?;
    log.seek(SeekFrom::Start(length - 1))?;
    let mut last = [0];
    log.read_exact(&mut last)?;
    Ok(last == *b"\n")
}
