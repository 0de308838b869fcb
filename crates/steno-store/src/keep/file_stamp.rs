//! The stamp of a file, to see that it has changed: unless an agent changes it within the same size and time.

use std::fs;
use std::path::Path;
use std::time::UNIX_EPOCH;

/// Size and modification time of a file.
pub type FileStamp = (u64, i64);

/// Returns the stamp of a file; `None` if it does not exist.
pub fn file_stamp(path: &Path) -> Option<FileStamp> {
    let metadata = fs::metadata(path).ok()?;
    let modified = metadata.modified().ok()?;
    let (distance, sign) = match modified.duration_since(UNIX_EPOCH) {
        Ok(after) => (after, 1),
        Err(before) => (before.duration(), -1),
    };
    // Times centuries away wrap around: stamps only have to differ.
    Some((metadata.len(), (distance.as_nanos() as i64).wrapping_mul(sign)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_gives_a_stamp() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let file = fs::File::create(&path).unwrap();
        let century = std::time::Duration::from_secs(100 * 365 * 86_400);
        let mut stamps = Vec::new();
        for time in [UNIX_EPOCH - century / 2, UNIX_EPOCH, UNIX_EPOCH + century * 4] {
            file.set_modified(time).unwrap();
            stamps.push(file_stamp(&path).unwrap());
        }
        assert!(stamps[0] != stamps[1] && stamps[1] != stamps[2], "{stamps:?}");
    }
}
