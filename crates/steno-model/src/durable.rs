//! Files that survive a crash: atomic replacement, appends that repair a torn line, private modes.
//!
//! Functions return only after the bytes are on disk, unless their name says `unsynced`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::step;

/// A failed operation on a file.
#[derive(Debug, thiserror::Error)]
#[error("could not {action} {path}")]
pub struct FileError {
    /// The operation as a verb: `open`, `write`.
    pub action: &'static str,
    /// The file.
    pub path: PathBuf,
    /// The cause.
    #[source]
    pub source: io::Error,
}

/// Adds a path to an I/O error.
pub trait OnPath<T> {
    /// Turns the error into "could not `action` `path`".
    fn on(self, action: &'static str, path: &Path) -> Result<T, FileError>;
}

impl<T> OnPath<T> for io::Result<T> {
    fn on(self, action: &'static str, path: &Path) -> Result<T, FileError> {
        self.map_err(|source| FileError { action, path: path.to_owned(), source })
    }
}

impl FileError {
    /// A copy of the error for another caller that waits for the same operation.
    pub fn duplicate_error(&self) -> Self {
        let source = match self.source.raw_os_error() {
            Some(code) => io::Error::from_raw_os_error(code),
            None => io::Error::new(self.source.kind(), self.source.to_string()),
        };
        Self { action: self.action, path: self.path.clone(), source }
    }

    /// Whether the file does not exist.
    pub fn is_missing(&self) -> bool {
        self.source.kind() == io::ErrorKind::NotFound
    }
}

/// Creates a folder and its parents, readable by the owner only, and syncs them.
pub fn create_private_dir(path: &Path) -> Result<(), FileError> {
    make_private_dir(path)?.iter().try_for_each(|folder| sync_dir(folder))
}

/// Creates a folder and its parents, readable by the owner only. Returns the folders that the caller must sync.
pub fn make_private_dir(path: &Path) -> Result<Vec<PathBuf>, FileError> {
    if path.is_dir() {
        return Ok(Vec::new());
    }
    let above = parent_folder(path);
    let mut changed = if above.exists() { Vec::new() } else { make_private_dir(above)? };
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    match builder.create(path) {
        // Another process created it first.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => {}
        other => other.on("create folder", path)?,
    }
    changed.push(above.to_owned());
    Ok(changed)
}

/// Options that create files readable by the owner only.
pub fn private_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Atomically replaces `path` by `bytes`, readable by the owner only.
pub fn write_atomic(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    replace_atomic(path, |file| file.write_all(bytes))
}

/// Atomically creates a file with the mode of the user's umask, for files that others read. Returns `false` if the
/// name is taken.
pub fn create_shared(path: &Path, bytes: &[u8]) -> Result<bool, FileError> {
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut temp = create_temporary_with(&mut builder, path)?;
    temp.write_all(bytes).on("write", path)?;
    temp.as_file().sync_all().on("sync", path)?;
    persist_new(temp, path)
}

/// Atomically replaces `path` by what `fill` writes, readable by the owner only.
pub fn replace_atomic(
    path: &Path,
    fill: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<(), FileError> {
    let temp = write_temporary(path, fill)?;
    temp.persist(path).map_err(|error| error.error).on("replace", path)?;
    step::done();
    sync_dir(parent_folder(path))
}

/// Writes and syncs a temporary file beside `path`.
fn write_temporary(
    path: &Path,
    fill: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<tempfile::NamedTempFile, FileError> {
    let mut temp = create_temporary(path)?;
    step::done();
    fill(temp.as_file_mut()).on("write", path)?;
    temp.as_file().sync_all().on("sync", path)?;
    step::done();
    Ok(temp)
}

/// Atomically creates a file, readable by the owner only. Returns `false` if the name is taken.
pub fn create_atomic(path: &Path, bytes: &[u8]) -> Result<bool, FileError> {
    create_atomic_with(path, |file| file.write_all(bytes))
}

/// Like [`create_atomic`], with the content that `fill` writes.
pub fn create_atomic_with(
    path: &Path,
    fill: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<bool, FileError> {
    persist_new(write_temporary(path, fill)?, path)
}

/// Like [`create_atomic_with`], without a sync: the caller syncs file and folder.
pub fn create_unsynced_with(
    path: &Path,
    fill: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<bool, FileError> {
    let mut temp = create_temporary(path)?;
    fill(temp.as_file_mut()).on("write", path)?;
    match temp.persist_noclobber(path) {
        Ok(_) => Ok(true),
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error.error).on("create", path),
    }
}

/// Renames a temporary file to its final name, unless the name is taken.
fn persist_new(temp: tempfile::NamedTempFile, path: &Path) -> Result<bool, FileError> {
    match temp.persist_noclobber(path) {
        Ok(_) => {
            step::done();
            sync_dir(parent_folder(path)).map(|()| true)
        }
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error.error).on("create", path),
    }
}

/// Atomically replaces `path` by `bytes` without a sync, for content that can be computed again.
pub fn replace_unsynced(path: &Path, bytes: &[u8]) -> Result<(), FileError> {
    replace_unsynced_with(path, |file| file.write_all(bytes))
}

/// Like [`replace_unsynced`], with the content that `fill` writes.
pub fn replace_unsynced_with(
    path: &Path,
    fill: impl FnOnce(&mut File) -> io::Result<()>,
) -> Result<(), FileError> {
    let mut temp = create_temporary(path)?;
    fill(temp.as_file_mut()).on("write", path)?;
    temp.persist(path).map_err(|error| error.error).on("replace", path)?;
    Ok(())
}

/// Creates a temporary file beside `path`. It is locked while it is being written.
pub fn create_temporary(path: &Path) -> Result<tempfile::NamedTempFile, FileError> {
    create_temporary_with(&mut tempfile::Builder::new(), path)
}

fn create_temporary_with(
    builder: &mut tempfile::Builder<'_, 'static>,
    path: &Path,
) -> Result<tempfile::NamedTempFile, FileError> {
    builder.prefix(TEMPORARY_AFFIXES.0).suffix(TEMPORARY_AFFIXES.1);
    loop {
        let temp = builder.tempfile_in(parent_folder(path));
        let temp = temp.map_err(|error| without_temporary_path(&error)).on("write", path)?;
        let is_locked = temp.as_file().lock().is_ok();
        // Before the lock, another process may have removed it as a leftover.
        if !is_locked || temp.path().exists() {
            return Ok(temp);
        }
    }
}

/// Removes the random path that `tempfile` appends to an error: it never was a file, and names nothing to the user.
fn without_temporary_path(error: &io::Error) -> io::Error {
    let text = error.to_string();
    let reason = text.rsplit_once(" at path ").map_or(text.as_str(), |(reason, _)| reason);
    io::Error::new(error.kind(), reason)
}

/// Removes temporary files that killed processes left in a folder.
///
/// Ignores errors: a leftover does no harm.
pub fn remove_leftovers(dir: &Path) {
    let Ok(items) = fs::read_dir(dir) else { return };
    for path in items.flatten().map(|item| item.path()).filter(|path| is_leftover(path)) {
        let Ok(file) = File::open(&path) else { continue };
        if file.try_lock().is_ok() {
            let _ = fs::remove_file(&path);
        }
    }
}

/// Prefix and suffix of temporary files.
const TEMPORARY_AFFIXES: (&str, &str) = (".steno-", ".tmp");

/// Whether a file is the temporary file of an interrupted replacement, by its name.
pub fn is_leftover(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.starts_with(TEMPORARY_AFFIXES.0) && name.ends_with(TEMPORARY_AFFIXES.1)
}

/// Syncs a folder, so that a rename, creation or removal in it is durable.
pub fn sync_dir(dir: &Path) -> Result<(), FileError> {
    if cfg!(unix) {
        File::open(dir).and_then(|dir| dir.sync_all()).on("sync folder", dir)?;
    }
    Ok(())
}

/// Removes a file durably. A missing file is not an error.
pub fn remove_file(path: &Path) -> Result<(), FileError> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other.on("remove", path).and_then(|()| sync_dir(parent_folder(path))),
    }
}

/// Appends complete lines and syncs them.
///
/// First ends a torn last line with a newline, so that it stays a bad line of its own and the next record stays
/// readable.
pub fn append_lines(path: &Path, lines: &[u8]) -> Result<(), FileError> {
    let new = !path.exists();
    let mut file =
        private_options().create(true).read(true).append(true).open(path).on("open", path)?;
    file.lock().on("lock", path)?;
    let torn = ends_without_newline(&mut file).on("read", path)?;
    let mut bytes = Vec::with_capacity(lines.len() + 1);
    if torn {
        bytes.push(b'\n');
    }
    bytes.extend_from_slice(lines);
    file.write_all(&bytes).on("write", path)?;
    file.sync_data().on("sync", path)?;
    if new {
        sync_dir(parent_folder(path))?;
    }
    Ok(())
}

/// The parent folder of `path`; `.` for a bare file name.
pub fn parent_folder(path: &Path) -> &Path {
    match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    }
}

fn ends_without_newline(file: &mut File) -> io::Result<bool> {
    if file.seek(SeekFrom::End(0))? == 0 {
        return Ok(false);
    }
    file.seek(SeekFrom::End(-1))?;
    let mut last = [0];
    file.read_exact(&mut last)?;
    Ok(last != *b"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_torn_line_never_swallows_the_next() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        fs::write(&path, "{\"a\":1}\n{\"b\":").unwrap();
        append_lines(&path, b"{\"c\":3}\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "{\"a\":1}\n{\"b\":\n{\"c\":3}\n");
    }

    #[cfg(unix)]
    #[test]
    fn files_are_private() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("a/b");
        create_private_dir(&folder).unwrap();
        let path = folder.join("file");
        write_atomic(&path, b"x").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
    }

    #[test]
    fn a_taken_name_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        assert!(create_atomic(&path, b"first").unwrap());
        assert!(!create_atomic(&path, b"second").unwrap());
        assert_eq!(fs::read(&path).unwrap(), b"first");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn removes_files_of_killed_processes_only() {
        let dir = tempfile::tempdir().unwrap();
        let left = dir.path().join(".steno-left.tmp");
        fs::write(&left, "half").unwrap();
        fs::write(dir.path().join(".steno-notes"), "mine").unwrap();
        let path = dir.path().join("file");
        replace_atomic(&path, |file| {
            remove_leftovers(dir.path());
            file.write_all(b"whole")
        })
        .unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        let mut names: Vec<_> =
            fs::read_dir(dir.path()).unwrap().map(|item| item.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, [".steno-notes", "file"]);
    }

    #[test]
    fn errors_name_the_file() {
        let error = write_atomic(Path::new("/nonexistent/dir/file"), b"x").unwrap_err();
        assert_eq!(error.to_string(), "could not write /nonexistent/dir/file");
        assert!(error.is_missing());
        let missing = io::Error::from_raw_os_error(2).to_string();
        assert_eq!(error.source.to_string(), missing, "without the temporary file");
    }
}
