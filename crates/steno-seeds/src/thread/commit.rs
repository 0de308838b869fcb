//! Changes several files atomically.
//!
//! New files are written to a staging folder that has the layout of `.leslie`. Renaming that folder commits the
//! change; then its files are moved into place. After a crash, [`finish_commit`] moves the rest.

use std::fs;
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};

use super::store::THREADS_FOLDER;
use steno_model::durable::{
    FileError, OnPath, create_private_dir, parent_folder, private_options, sync_dir,
};
use steno_model::step;

/// Folder in which a change is staged.
const STAGING_FOLDER: &str = ".steno-staging";
/// Folder of a change that is committed but not yet moved into place.
const COMMIT_FOLDER: &str = ".steno-commit";

/// Folder in which a thread keeps files that were replaced.
const REPLACED_FOLDER: &str = ".meta/replaced";

/// A change that is being staged. Dropping it discards what was not committed.
pub(super) struct StagedChange {
    base: PathBuf,
}

impl StagedChange {
    /// Starts a change of the files in `base`. The caller holds the lock.
    pub(super) fn begin(base: &Path) -> Result<Self, FileError> {
        finish_commit(base)?;
        let staging = Self { base: base.to_owned() };
        staging.discard()?;
        Ok(staging)
    }

    /// Stages a folder.
    pub(super) fn create_folder(&self, relative: &Path) -> Result<(), FileError> {
        create_folders(&self.staged_path(relative))?;
        step::done();
        Ok(())
    }

    /// Stages a file with this content.
    pub(super) fn write_file(&self, relative: &Path, content: &[u8]) -> Result<(), FileError> {
        let path = self.staged_path(relative);
        create_folders(parent_folder(&path))?;
        let mut file = private_options()
            .write(true)
            .create(true)
            .truncate(true)
            .open(&path)
            .on("create", &path)?;
        file.write_all(content).on("write", &path)?;
        file.sync_all().on("sync", &path)?;
        step::done();
        Ok(())
    }

    /// Stages a copy of a file, with its mode.
    pub(super) fn copy_file(&self, from: &Path, relative: &Path) -> Result<(), FileError> {
        let path = self.staged_path(relative);
        create_folders(parent_folder(&path))?;
        // An earlier copy may be read-only.
        let _ = fs::remove_file(&path);
        fs::copy(from, &path).on("copy", from)?;
        fs::File::open(&path).and_then(|file| file.sync_all()).on("sync", &path)?;
        step::done();
        Ok(())
    }

    /// Commits the change and moves its files into place.
    pub(super) fn commit(self) -> Result<(), FileError> {
        let staged = self.base.join(STAGING_FOLDER);
        if !staged.exists() {
            return Ok(());
        }
        sync_folders(&staged)?;
        let commit = self.base.join(COMMIT_FOLDER);
        fs::rename(&staged, &commit).on("commit", &commit)?;
        sync_dir(&self.base)?;
        step::done();
        finish_commit(&self.base)
    }

    fn staged_path(&self, relative: &Path) -> PathBuf {
        self.base.join(STAGING_FOLDER).join(relative)
    }

    fn discard(&self) -> Result<(), FileError> {
        let path = self.base.join(STAGING_FOLDER);
        match fs::remove_dir_all(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            other => other.on("remove", &path),
        }
    }
}

impl Drop for StagedChange {
    fn drop(&mut self) {
        // The next change removes what cannot be removed now.
        let _ = self.discard();
    }
}

/// Whether `base` has a committed change that is not fully moved into place.
pub(super) fn is_commit_pending(base: &Path) -> bool {
    base.join(COMMIT_FOLDER).exists()
}

/// Moves the files of an interrupted commit into place.
pub(super) fn finish_commit(base: &Path) -> Result<(), FileError> {
    let commit = base.join(COMMIT_FOLDER);
    if !commit.exists() {
        return Ok(());
    }
    move_into_place(base, &commit, Path::new(""))
}

/// Moves the content of the folder `from` to the path `at` below `base`. Folders go first, so that the stores never
/// name a thread without a folder.
fn move_into_place(base: &Path, from: &Path, at: &Path) -> Result<(), FileError> {
    let mut items = Vec::new();
    for item in fs::read_dir(from).on("open", from)? {
        let path = item.on("open", from)?.path();
        items.push((!path.is_dir(), path));
    }
    items.sort();
    for (is_file, path) in items {
        let at = at.join(path.file_name().unwrap_or_default());
        let target = base.join(&at);
        if !is_file && is_existing_folder(&target, &at) {
            move_into_place(base, &path, &at)?;
            continue;
        }
        move_aside(base, &at, &path)?;
        fs::rename(&path, &target).on("replace", &target)?;
        step::done();
    }
    sync_dir(&base.join(at))?;
    fs::remove_dir(from).on("remove", from)?;
    step::done();
    Ok(())
}

/// Whether the target is a folder. Only the folders above the threads may be symlinks.
fn is_existing_folder(target: &Path, at: &Path) -> bool {
    let data = match at.components().count() {
        1 => fs::metadata(target),
        _ => fs::symlink_metadata(target),
    };
    data.is_ok_and(|data| data.is_dir())
}

/// Moves the file that `new` would replace out of the way, if it is a thread's asset with other content, or anything
/// that a rename cannot replace.
fn move_aside(base: &Path, at: &Path, new: &Path) -> Result<(), FileError> {
    let target = base.join(at);
    let Ok(data) = fs::symlink_metadata(&target) else {
        return Ok(());
    };
    let both_files = data.is_file() && !new.is_dir();
    let thread_and_rest = split_asset_path(at);
    if both_files && (thread_and_rest.is_none() || has_same_content(&target, new)) {
        return Ok(());
    }
    let kept = match thread_and_rest {
        Some((thread, rest)) if has_real_folders(&base.join(&thread), REPLACED_FOLDER) => {
            base.join(thread).join(REPLACED_FOLDER).join(rest)
        }
        _ => target.clone(),
    };
    create_private_dir(parent_folder(&kept))?;
    let kept = find_free_name(kept);
    fs::rename(&target, &kept).on("move aside", &target)?;
    sync_dir(parent_folder(&kept))?;
    step::done();
    Ok(())
}

/// Whether every existing component of the path `below` the folder `top` is a folder and not a symlink.
pub(super) fn has_real_folders(top: &Path, below: &str) -> bool {
    let mut path = top.to_owned();
    Path::new(below).components().all(|part| {
        path.push(part);
        fs::symlink_metadata(&path).map_or(true, |data| data.is_dir())
    })
}

/// Splits a path into the thread's folder and the rest, if it is the thread's own asset and not a copy from another
/// thread.
fn split_asset_path(at: &Path) -> Option<(PathBuf, &Path)> {
    let mut parts = at.components();
    let (folder, id) = (parts.next()?, parts.next()?);
    let rest = parts.as_path();
    let first = parts.next()?;
    let is = |part: Component<'_>, name: &str| part.as_os_str() == name;
    let is_asset = is(folder, THREADS_FOLDER) && !is(first, ".meta") && !is(first, "context");
    is_asset.then(|| (Path::new(&folder).join(id), rest))
}

fn has_same_content(old: &Path, new: &Path) -> bool {
    let plain = |path: &Path| fs::symlink_metadata(path).is_ok_and(|data| data.is_file());
    plain(old) && plain(new) && matches!((fs::read(old), fs::read(new)), (Ok(a), Ok(b)) if a == b)
}

fn find_free_name(path: PathBuf) -> PathBuf {
    let numbered = |number: u64| {
        let mut name = path.clone().into_os_string();
        name.push(format!("~{number}"));
        PathBuf::from(name)
    };
    let names = std::iter::once(path.clone()).chain((2..).map(numbered));
    let mut free = names.filter(|path| fs::symlink_metadata(path).is_err());
    free.next().expect("numbers never end")
}

/// Creates a folder and its parents. They become durable with the commit.
fn create_folders(path: &Path) -> Result<(), FileError> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(path).on("create folder", path)
}

/// Syncs a folder and all folders below it. An empty folder has no names to sync.
fn sync_folders(dir: &Path) -> Result<(), FileError> {
    let mut is_empty = true;
    for item in fs::read_dir(dir).on("open", dir)? {
        let path = item.on("open", dir)?.path();
        is_empty = false;
        if path.is_dir() {
            sync_folders(&path)?;
        }
    }
    if is_empty { Ok(()) } else { sync_dir(dir) }
}
