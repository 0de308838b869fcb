//! Imports the newest sessions before all others, so that a new user sees something at once.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::SessionSyncer;
use crate::keep::file_stamp::FileStamp;

/// Maximum number of files imported first.
const MAX_FILES: usize = 25;

/// A larger file is left to the sync of all sessions.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// No further file is begun after this time.
const TIME_LIMIT: Duration = Duration::from_millis(300);

impl SessionSyncer {
    /// Imports some of the newest sessions. Failures are left to the sync of all sessions, which meets them again.
    pub fn sync_newest(&mut self, roots: &[PathBuf]) {
        let deadline = Instant::now() + TIME_LIMIT;
        for (root, file) in self.newest_files(roots) {
            if Instant::now() > deadline {
                break;
            }
            self.sync_file(&file, &root, &[]);
        }
        self.failures.clear();
        self.clear_skipped();
    }

    /// Returns the newest files of all roots, each with its root.
    fn newest_files(&self, roots: &[PathBuf]) -> Vec<(PathBuf, PathBuf)> {
        let mut files: Vec<(FileStamp, &Path, PathBuf)> = Vec::new();
        for root in roots.iter().filter(|root| root.is_dir()) {
            let changed = self.changed_files(root).map(|found| found.changed).unwrap_or_default();
            let logs = changed.into_iter().filter(|(file, stamp)| is_small_log(file, *stamp));
            files.extend(logs.map(|(file, stamp)| (stamp, root.as_path(), file)));
        }
        files.sort_by_key(|((_, modified), _, _)| std::cmp::Reverse(*modified));
        files.truncate(MAX_FILES);
        files.into_iter().map(|(_, root, file)| (root.to_owned(), file)).collect()
    }
}

/// Returns whether a file may be a session of its own that is read in a moment.
fn is_small_log(file: &Path, (size, _): FileStamp) -> bool {
    let extension = file.extension().and_then(|extension| extension.to_str());
    matches!(extension, Some("jsonl" | "json")) && size <= MAX_FILE_BYTES
}
