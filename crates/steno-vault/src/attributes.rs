//! File system attributes of a session file: modification time and mode.

use std::fs::{File, Metadata};
use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Modification time and mode of a session file, where known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileAttributes {
    /// Modification time in nanoseconds since the Unix epoch.
    pub modified: Option<i128>,
    /// Permission bits.
    pub mode: Option<u32>,
}

impl FileAttributes {
    /// Reads the attributes from file metadata.
    pub fn from_metadata(metadata: &Metadata) -> Self {
        Self {
            modified: metadata.modified().ok().map(unix_nanoseconds),
            mode: permission_bits(metadata),
        }
    }

    /// Fills missing fields from `others`.
    pub fn or(self, others: Self) -> Self {
        let (modified, mode) = (self.modified.or(others.modified), self.mode.or(others.mode));
        Self { modified, mode }
    }

    /// The modification time.
    pub fn modified_time(&self) -> Option<SystemTime> {
        let nanos = self.modified?;
        let (seconds, rest) = (
            nanos.unsigned_abs() / NANOSECONDS_PER_SECOND,
            nanos.unsigned_abs() % NANOSECONDS_PER_SECOND,
        );
        let distance = Duration::new(u64::try_from(seconds).ok()?, u32::try_from(rest).ok()?);
        if nanos < 0 { UNIX_EPOCH.checked_sub(distance) } else { UNIX_EPOCH.checked_add(distance) }
    }

    /// Sets the attributes on a file that is still private to its owner.
    pub fn apply_to(&self, file: &File) -> io::Result<()> {
        if let Some(mode) = self.mode {
            set_mode(file, mode)?;
        }
        self.modified_time().map_or(Ok(()), |time| file.set_modified(time))
    }
}

/// Nanoseconds per second.
const NANOSECONDS_PER_SECOND: u128 = 1_000_000_000;

/// Nanoseconds since the Unix epoch; negative before it.
fn unix_nanoseconds(time: SystemTime) -> i128 {
    let whole = |distance: Duration| i128::try_from(distance.as_nanos()).unwrap_or(i128::MAX);
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => whole(after),
        Err(before) => -whole(before.duration()),
    }
}

#[cfg(unix)]
fn permission_bits(metadata: &Metadata) -> Option<u32> {
    Some(std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o777)
}

#[cfg(not(unix))]
fn permission_bits(_: &Metadata) -> Option<u32> {
    None
}

#[cfg(unix)]
fn set_mode(file: &File, mode: u32) -> io::Result<()> {
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(mode & 0o777))
}

#[cfg(not(unix))]
fn set_mode(_: &File, _: u32) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_time_comes_back() {
        let day = Duration::from_secs(86_400);
        let far = [day, day * 365 * 400, Duration::new(1, 999_999_999)];
        for time in far.into_iter().flat_map(|it| [UNIX_EPOCH + it, UNIX_EPOCH - it]) {
            let attributes = FileAttributes { modified: Some(unix_nanoseconds(time)), mode: None };
            assert_eq!(attributes.modified_time(), Some(time));
        }
        let beyond = FileAttributes { modified: Some(i128::MAX), mode: None };
        assert_eq!(beyond.modified_time(), None);
    }
}
