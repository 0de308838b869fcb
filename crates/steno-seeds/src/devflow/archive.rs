//! Archives: one run folder as `archive/<first seven characters>/<run id>.tar.gz`.
//!
//! A run's folder is removed only after its archive is on disk. Only files and folders of that run are unpacked, and
//! symlinks are refused in both directions.

use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Component, Path, PathBuf};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use tar::{EntryType, Header};

use super::error::RunStoreError;
use super::folder;
use super::run_id::RunId;
use super::store::RunStore;
use steno_model::durable::{self, FileError, OnPath};

/// Folder of the archives in the store.
pub(super) const ARCHIVE_FOLDER: &str = "archive";

impl RunStore {
    /// Packs a run into an archive, removes its folder, and returns the archive's path.
    pub fn archive_run(&self, id: &RunId) -> Result<PathBuf, RunStoreError> {
        let path = self.archive_without_index(id)?;
        self.update_index();
        Ok(path)
    }

    /// Like [`RunStore::archive_run`], but does not update the index.
    pub(super) fn archive_without_index(&self, id: &RunId) -> Result<PathBuf, RunStoreError> {
        let folder = self.run_folder(id);
        if folder::run_bundle(&folder).files.is_empty() {
            return Err(RunStoreError::NotFound(id.clone()));
        }
        self.refuse_recording(id)?;
        let path = self.archive_path(id);
        durable::create_private_dir(durable::parent_folder(&path))?;
        let items = collect_archive_items(&folder, id)?;
        durable::replace_atomic(&path, |file| pack_archive(&items, file))?;
        durable::sync_dir(&self.base.join(ARCHIVE_FOLDER))?;
        durable::sync_dir(&self.base)?;
        fs::remove_dir_all(&folder).on("remove", &folder)?;
        durable::sync_dir(&self.runs_folder())?;
        Ok(path)
    }

    /// Unpacks the archive of a run, keeps the archive, and returns the run's folder.
    pub fn restore_run(&self, id: &RunId) -> Result<PathBuf, RunStoreError> {
        let folder = self.run_folder(id);
        if fs::symlink_metadata(&folder).is_ok() {
            return Err(RunStoreError::AlreadyExists(id.clone()));
        }
        let path = find_archive(&self.base, id)
            .ok_or_else(|| RunStoreError::ArchiveNotFound(id.clone()))?;
        let runs = self.runs_folder();
        durable::create_private_dir(&runs)?;
        let temp = tempfile::Builder::new()
            .prefix(".steno-")
            .tempdir_in(&runs)
            .on("create folder", &runs)?;
        unpack_archive(&path, id, temp.path())?;
        fs::rename(temp.path(), &folder).on("create folder", &folder)?;
        // The folder has its final name, so there is nothing to clean up.
        let _ = temp.keep();
        durable::sync_dir(&runs)?;
        self.update_index();
        Ok(folder)
    }

    /// Lists the archived runs by name.
    pub fn list_archives(&self) -> Result<Vec<RunId>, RunStoreError> {
        let paths = list_archive_files(&self.base)?;
        let names =
            paths.iter().filter_map(|path| path.file_name()?.to_str()?.strip_suffix(".tar.gz"));
        let mut ids: Vec<RunId> = names.filter_map(|name| name.parse().ok()).collect();
        ids.sort();
        Ok(ids)
    }

    /// Removes the archive of a run, but not the run itself.
    pub fn delete_archive(&self, id: &RunId) -> Result<(), RunStoreError> {
        let path = find_archive(&self.base, id)
            .ok_or_else(|| RunStoreError::ArchiveNotFound(id.clone()))?;
        durable::remove_file(&path)?;
        Ok(())
    }

    fn archive_path(&self, id: &RunId) -> PathBuf {
        let month: String = id.as_str().chars().take(7).collect();
        let month = if month.chars().count() == 7 {
            month
        } else {
            self.clock.now().wall().strftime("%Y-%m").to_string()
        };
        let archives = self.base.join(ARCHIVE_FOLDER);
        archives.join(month).join(archive_file_name(id))
    }
}

/// Finds the archive of a run in any of the archive folders.
pub(super) fn find_archive(base: &Path, id: &RunId) -> Option<PathBuf> {
    let months = list_children(&base.join(ARCHIVE_FOLDER)).unwrap_or_default();
    let mut paths = months.into_iter().map(|month| month.join(archive_file_name(id)));
    paths.find(|path| folder::is_plain_file(path))
}

/// Lists all archive files.
pub(super) fn list_archive_files(base: &Path) -> Result<Vec<PathBuf>, FileError> {
    let mut found = Vec::new();
    for month in list_children(&base.join(ARCHIVE_FOLDER))? {
        if month.is_dir() {
            let files = list_children(&month)?;
            let named = |path: &PathBuf| path.to_string_lossy().ends_with(".tar.gz");
            found.extend(files.into_iter().filter(named));
        }
    }
    Ok(found)
}

fn archive_file_name(id: &RunId) -> String {
    format!("{id}.tar.gz")
}

/// Lists a folder, sorted; empty if it does not exist.
fn list_children(dir: &Path) -> Result<Vec<PathBuf>, FileError> {
    match fs::read_dir(dir).on("read folder", dir) {
        Ok(entries) => {
            let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
            paths.sort();
            Ok(paths)
        }
        Err(error) if error.is_missing() => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// A file or folder that goes into an archive.
struct ArchiveItem {
    name: String,
    path: PathBuf,
    metadata: fs::Metadata,
}

/// Lists everything in a run folder sorted by name, the folder itself first.
fn collect_archive_items(folder: &Path, id: &RunId) -> Result<Vec<ArchiveItem>, RunStoreError> {
    let mut items = Vec::new();
    let mut waiting = vec![(id.to_string(), folder.to_owned())];
    while let Some((name, path)) = waiting.pop() {
        let metadata = fs::symlink_metadata(&path).on("open", &path)?;
        if metadata.is_dir() {
            let inside = list_children(&path)?.into_iter().rev().map(|path| {
                let file = path.file_name().unwrap_or_default().to_string_lossy();
                (format!("{name}/{file}"), path.clone())
            });
            waiting.extend(inside);
        } else if !metadata.is_file() {
            return Err(RunStoreError::Unsafe {
                what: "neither file nor folder",
                path: folder.to_owned(),
                name,
            });
        }
        items.push(ArchiveItem { name, path, metadata });
    }
    Ok(items)
}

fn pack_archive(items: &[ArchiveItem], file: &mut File) -> io::Result<()> {
    let gzip = GzEncoder::new(BufWriter::new(file), Compression::default());
    let mut tar = tar::Builder::new(gzip);
    for item in items {
        let mut header = Header::new_gnu();
        header.set_metadata(&item.metadata);
        if item.metadata.is_dir() {
            header.set_size(0);
            tar.append_data(&mut header, &item.name, io::empty())?;
        } else {
            let source = File::open(&item.path)?;
            tar.append_data(&mut header, &item.name, source)?;
        }
    }
    tar.into_inner()?.finish()?.flush()
}

fn unpack_archive(path: &Path, id: &RunId, target: &Path) -> Result<(), RunStoreError> {
    let file = File::open(path).on("open", path)?;
    let mut tar = tar::Archive::new(GzDecoder::new(BufReader::new(file)));
    for entry in tar.entries().on("read", path)? {
        let mut entry = entry.on("read", path)?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let unsafe_entry =
            |what| RunStoreError::Unsafe { what, path: path.to_owned(), name: name.clone() };
        let inside =
            path_inside_run(&name, id).ok_or_else(|| unsafe_entry("a path outside of the run"))?;
        let output = target.join(inside);
        match entry.header().entry_type() {
            EntryType::Directory => durable::create_private_dir(&output)?,
            EntryType::Regular | EntryType::Continuous => {
                durable::create_private_dir(durable::parent_folder(&output))?;
                let fill = |out: &mut File| io::copy(&mut entry, out).map(|_| ());
                durable::replace_atomic(&output, fill)?;
            }
            _ => return Err(unsafe_entry("a link or device")),
        }
    }
    Ok(())
}

/// The path inside the run's folder; `None` if it would be outside.
fn path_inside_run(name: &str, id: &RunId) -> Option<PathBuf> {
    let mut parts = Path::new(name).components();
    if parts.next() != Some(Component::Normal(id.as_str().as_ref())) {
        return None;
    }
    let rest = parts.as_path();
    let plain = rest.components().all(|part| matches!(part, Component::Normal(_)));
    (plain && !name.contains('\\')).then(|| rest.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_inside_their_run() {
        let id: RunId = "run".parse().unwrap();
        assert_eq!(path_inside_run("run/a/b.txt", &id), Some(PathBuf::from("a/b.txt")));
        assert_eq!(path_inside_run("run", &id), Some(PathBuf::new()));
        for bad in ["run-evil/x", "../run/x", "run/../../x", "/run/x", "x", "", "run/..\\x"] {
            assert_eq!(path_inside_run(bad, &id), None, "{bad}");
        }
    }
}
