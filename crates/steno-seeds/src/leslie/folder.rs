//! A folder of transcript files: at most fifty. No unit is written twice, and no other file is overwritten.

use std::path::{Path, PathBuf};
use std::{fs, io};

use super::file::UnitFile;
use super::slug::file_sort_key;
use super::unit::NamedUnitFile;
use steno_model::durable::{FileError, OnPath, create_atomic, remove_file, write_atomic};
use steno_model::timestamp::Timestamp;

/// Maximum number of files in a folder; the oldest are removed first.
pub const MAX_FOLDER_FILES: usize = 50;

/// Path of the file next to a transcript that has its entries without truncation.
pub fn untruncated_path(transcript: &Path) -> PathBuf {
    transcript.with_extension("jsonl")
}

/// Writes units into `dir` and returns their paths.
pub(super) fn write_units(dir: &Path, units: &[NamedUnitFile]) -> Result<Vec<PathBuf>, FileError> {
    write_with_existing(dir, units, Vec::new())
}

/// Like [`write_units()`], for the units of a run: a unit that is already in `dir` is updated under its name.
///
/// Thread, chat, start second and query identify a unit. So a run that was killed, and the process that finishes it,
/// write one file.
pub(super) fn update_units(dir: &Path, units: &[NamedUnitFile]) -> Result<Vec<PathBuf>, FileError> {
    write_with_existing(dir, units, read_existing_files(dir)?)
}

fn write_with_existing(
    dir: &Path,
    units: &[NamedUnitFile],
    mut existing: Vec<ExistingUnitFile>,
) -> Result<Vec<PathBuf>, FileError> {
    let kept = &units[units.len().saturating_sub(MAX_FOLDER_FILES)..];
    let mut written = Vec::new();
    for unit in kept {
        let text = unit.file.to_text();
        let path = match existing.iter().position(|file| file.is_same_unit(&text)) {
            Some(at) => existing.remove(at).replace_text(&text)?,
            None => create_unit_file(dir, unit, &written)?,
        };
        written.push(path);
    }
    remove_oldest(dir, &written)?;
    Ok(written)
}

/// A transcript file in the folder.
struct ExistingUnitFile {
    path: PathBuf,
    text: String,
    file: UnitFile,
}

impl ExistingUnitFile {
    /// Whether the file has the same unit as `text`.
    fn is_same_unit(&self, text: &str) -> bool {
        let second =
            |file: &UnitFile| file.header.start.parse().map(|at: Timestamp| at.unix_seconds()).ok();
        UnitFile::parse(text).is_some_and(|new| {
            let (old, new_header) = (&self.file.header, &new.header);
            old.thread_id == new_header.thread_id
                && old.chat_id == new_header.chat_id
                && second(&self.file) == second(&new)
                && self.file.first_query() == new.first_query()
        })
    }

    fn replace_text(self, text: &str) -> Result<PathBuf, FileError> {
        if self.text != text {
            write_atomic(&self.path, text.as_bytes())?;
        }
        Ok(self.path)
    }
}

/// Reads the transcript files in a folder, in the order in which they were written.
fn read_existing_files(dir: &Path) -> Result<Vec<ExistingUnitFile>, FileError> {
    let mut files = Vec::new();
    for path in list_transcripts(dir)? {
        let bytes = fs::read(&path).on("read", &path)?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        files.extend(UnitFile::parse(&text).map(|file| ExistingUnitFile { path, text, file }));
    }
    Ok(files)
}

/// Creates the file of a unit under the first free name, or returns the file that already has this content.
fn create_unit_file(
    dir: &Path,
    unit: &NamedUnitFile,
    taken: &[PathBuf],
) -> Result<PathBuf, FileError> {
    let text = unit.file.to_text();
    for name in candidate_names(unit) {
        let path = dir.join(name);
        if taken.contains(&path) {
            continue;
        }
        if create_atomic(&path, text.as_bytes())? || has_content(&path, &text)? {
            return Ok(path);
        }
    }
    unreachable!("names never end")
}

fn candidate_names(unit: &NamedUnitFile) -> impl Iterator<Item = String> {
    let stem = unit.stem.clone();
    let numbered = (2_u64..).map(move |number| format!("{stem}-{number}.txt"));
    let first = format!("{}.txt", unit.stem);
    unit.name.clone().into_iter().chain([first]).chain(numbered)
}

fn has_content(path: &Path, text: &str) -> Result<bool, FileError> {
    match fs::read(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        other => Ok(other.on("read", path)? == text.as_bytes()),
    }
}

/// Whether a file name has the form `YYYYMMDD-HHmm-slug.txt`. Other files are never removed.
fn is_transcript_name(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let digits =
        |text: &str, count| text.len() == count && text.bytes().all(|b| b.is_ascii_digit());
    let mut parts = name.strip_suffix(".txt").unwrap_or_default().splitn(3, '-');
    let mut next = || parts.next().unwrap_or_default();
    digits(next(), 8) && digits(next(), 4) && !next().is_empty()
}

/// Lists the transcript files in a folder, sorted by name.
fn list_transcripts(dir: &Path) -> Result<Vec<PathBuf>, FileError> {
    let mut files = Vec::new();
    for item in fs::read_dir(dir).on("open", dir)? {
        let path = item.on("open", dir)?.path();
        if is_transcript_name(&path) && path.is_file() {
            files.push(path);
        }
    }
    files.sort_by_key(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let (stem, number) = file_sort_key(&name);
        (stem.to_owned(), number)
    });
    Ok(files)
}

/// Removes the oldest files above the limit, but none that was just written.
fn remove_oldest(dir: &Path, written: &[PathBuf]) -> Result<(), FileError> {
    let files = list_transcripts(dir)?;
    let surplus = files.len().saturating_sub(MAX_FOLDER_FILES);
    let old = files.iter().filter(|path| !written.contains(path));
    old.take(surplus).try_for_each(|path| {
        remove_file(path)?;
        // The untruncated entries may be next to it.
        let full = untruncated_path(path);
        if full.is_file() { remove_file(&full) } else { Ok(()) }
    })
}
