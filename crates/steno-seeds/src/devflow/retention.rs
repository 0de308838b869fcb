//! Retention: archives old runs, and deletes only if the caller asks for it.
//!
//! ADR-016 requires an explicit flag for deletion. Without it, a run past its retention is archived like any other
//! old run. With it, such a run is deleted, and so is an archive past its own retention.

use std::fs;
use std::path::Path;

use jiff::SignedDuration;
use serde::Deserialize;

use super::error::RunStoreError;
use super::run::RunMetadata;
use super::run_id::RunId;
use super::store::RunStore;
use super::{archive, folder, index};
use steno_model::durable::{FileError, OnPath, remove_file};
use steno_model::problem::{Problem, json_error_reason};
use steno_model::session::SessionStatus;
use steno_model::timestamp::Timestamp;
use steno_vault::FormatError;

/// How long runs are stored: `artifacts` in `config.json`, or `retention`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct RetentionPolicy {
    /// Days after its end when a run may be deleted.
    pub retention_days: u32,
    /// Days after its end when a run is archived.
    pub archive_after_days: u32,
    /// Days after which an archive may be deleted.
    pub archive_retention_days: u32,
    /// Whether failed runs are exempt.
    pub keep_failed: bool,
    /// Number of ended runs that are exempt regardless of age. Running and exempt failed runs do not count.
    pub keep_min_runs: usize,
}

impl Default for RetentionPolicy {
    fn default() -> Self {
        Self {
            retention_days: 30,
            archive_after_days: 7,
            archive_retention_days: 90,
            keep_failed: true,
            keep_min_runs: 100,
        }
    }
}

/// Options of a cleanup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CleanupOptions {
    /// Only report what would be done.
    pub dry_run: bool,
    /// Delete what is past its retention.
    pub delete: bool,
}

/// What a cleanup did, or would do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CleanupReport {
    /// Archived runs, oldest first.
    pub archived: Vec<RunId>,
    /// Deleted runs, oldest first.
    pub deleted: Vec<RunId>,
    /// Unchanged runs.
    pub kept: Vec<RunId>,
    /// Deleted archives.
    pub archives_deleted: Vec<String>,
    /// Errors, as `load <run id>: <reason>`.
    pub errors: Vec<String>,
    /// Freed bytes. An archive is estimated as half the size of its run.
    pub space_saved: u64,
}

/// Disk usage of the runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DiskUsage {
    /// Number of runs that are not archived.
    pub run_count: usize,
    /// Number of archives.
    pub archive_count: usize,
    /// Size of the runs in bytes.
    pub active_size: u64,
    /// Size of the archives in bytes.
    pub archive_size: u64,
}

/// What a cleanup does with a run.
#[derive(Clone, Copy, PartialEq)]
enum RunFate {
    Keep,
    Archive,
    Delete,
}

impl RunStore {
    /// Archives old runs and, if requested, deletes what is past its retention.
    pub fn clean_up(
        &self,
        retention: &RetentionPolicy,
        options: CleanupOptions,
    ) -> Result<CleanupReport, RunStoreError> {
        let mut cleanup = CleanupReport::default();
        let mut aging = Vec::new();
        for id in index::list_run_ids(&self.runs_folder())? {
            match self.load_metadata(&id) {
                Ok(meta) if retention.is_exempt(&meta) => cleanup.kept.push(id),
                Ok(meta) => aging.push((meta.ended_at, id)),
                Err(error) => cleanup.errors.push(format_failure("load", &id, &error)),
            }
        }
        aging.sort_by_key(|(ended, id)| (ended.map(|at| at.instant()), id.clone()));
        let mut left = aging.len();
        for (ended, id) in aging {
            let fate = match retention.decide_fate(ended, self.clock.now(), options.delete) {
                _ if left <= retention.keep_min_runs => RunFate::Keep,
                fate => fate,
            };
            let moved = self.apply_fate(&id, fate, options.dry_run, &mut cleanup);
            match moved {
                Ok(true) => left -= 1,
                Ok(false) => cleanup.kept.push(id),
                Err(error) => cleanup.errors.push(format_failure("clean up", &id, &error)),
            }
        }
        if !options.dry_run && cleanup.archived.len() + cleanup.deleted.len() > 0 {
            self.update_index();
        }
        if options.delete {
            self.clean_up_archives(retention, options.dry_run, &mut cleanup)?;
        }
        Ok(cleanup)
    }

    /// Measures the runs and their archives.
    pub fn disk_usage(&self) -> Result<DiskUsage, RunStoreError> {
        let runs = index::list_run_ids(&self.runs_folder())?;
        let archives = archive::list_archive_files(&self.base)?;
        let mut usage = DiskUsage {
            run_count: runs.len(),
            archive_count: archives.len(),
            ..DiskUsage::default()
        };
        for id in runs {
            usage.active_size += disk_size(&self.run_folder(&id))?;
        }
        for path in archives {
            usage.archive_size += disk_size(&path)?;
        }
        Ok(usage)
    }

    /// Archives, deletes or keeps a run, and returns whether it left its folder.
    fn apply_fate(
        &self,
        id: &RunId,
        fate: RunFate,
        dry_run: bool,
        cleanup: &mut CleanupReport,
    ) -> Result<bool, RunStoreError> {
        if fate == RunFate::Keep {
            return Ok(false);
        }
        let size = disk_size(&self.run_folder(id))?;
        if fate == RunFate::Archive {
            if !dry_run {
                self.archive_without_index(id)?;
            }
            cleanup.space_saved += size / 2;
            cleanup.archived.push(id.clone());
        } else {
            if !dry_run {
                self.delete_without_index(id)?;
            }
            cleanup.space_saved += size;
            cleanup.deleted.push(id.clone());
        }
        Ok(true)
    }

    fn clean_up_archives(
        &self,
        retention: &RetentionPolicy,
        dry_run: bool,
        cleanup: &mut CleanupReport,
    ) -> Result<(), RunStoreError> {
        let limit = days_before(self.clock.now(), retention.archive_retention_days);
        for path in archive::list_archive_files(&self.base)? {
            let metadata = fs::metadata(&path).on("open", &path)?;
            let modified = metadata.modified().on("open", &path)?;
            if jiff::Timestamp::try_from(modified).is_ok_and(|at| at < limit) {
                if !dry_run {
                    remove_file(&path)?;
                }
                cleanup.space_saved += metadata.len();
                let name = path.file_name().unwrap_or_default();
                cleanup.archives_deleted.push(name.to_string_lossy().into_owned());
            }
        }
        Ok(())
    }
}

/// The part of `config.json` about runs.
#[derive(Default, Deserialize)]
#[serde(default)]
struct RetentionConfig {
    artifacts: Option<RetentionPolicy>,
    retention: Option<RetentionPolicy>,
}

impl RetentionPolicy {
    /// Reads `config.json` in the store's folder. Missing fields have the default values.
    pub fn from_config(base: &Path) -> Result<Self, FormatError> {
        let path = base.join("config.json");
        let bytes = match fs::read(&path).on("read", &path) {
            Ok(bytes) => bytes,
            Err(error) if error.is_missing() => return Ok(Self::default()),
            Err(error) => return Err(error.into()),
        };
        let config: RetentionConfig = serde_json::from_slice(&bytes).map_err(|error| {
            FormatError::Invalid(Problem::at_line(
                &path,
                error.line() as u64,
                json_error_reason(&error),
            ))
        })?;
        Ok(config.artifacts.or(config.retention).unwrap_or_default())
    }

    /// Whether a run is exempt regardless of its age.
    fn is_exempt(&self, meta: &RunMetadata) -> bool {
        let failed = meta.known_status() == SessionStatus::Failed;
        meta.known_status() == SessionStatus::Running || (self.keep_failed && failed)
    }

    fn decide_fate(&self, ended: Option<Timestamp>, now: Timestamp, delete: bool) -> RunFate {
        let Some(ended) = ended.map(|at| at.instant()) else {
            return RunFate::Keep;
        };
        let past = |days| ended < days_before(now, days);
        if delete && past(self.retention_days) {
            RunFate::Delete
        } else if past(self.archive_after_days.min(self.retention_days)) {
            RunFate::Archive
        } else {
            RunFate::Keep
        }
    }
}

fn days_before(now: Timestamp, days: u32) -> jiff::Timestamp {
    let span = SignedDuration::from_hours(24 * i64::from(days));
    now.instant().checked_sub(span).unwrap_or(jiff::Timestamp::MIN)
}

fn format_failure(action: &str, id: &RunId, error: &RunStoreError) -> String {
    let mut text = format!("{action} {id}: {error}");
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text.push_str(&format!(": {cause}"));
        source = cause.source();
    }
    text
}

/// The size of a file, or of all files in a folder, in bytes. Symlinks count as zero.
fn disk_size(path: &Path) -> Result<u64, FileError> {
    if folder::is_plain_file(path) {
        return fs::metadata(path).map(|metadata| metadata.len()).on("open", path);
    }
    let mut size = 0;
    for entry in fs::read_dir(path).on("read folder", path)?.flatten() {
        let kind = entry.file_type().on("open", &entry.path())?;
        if kind.is_dir() || kind.is_file() {
            size += disk_size(&entry.path())?;
        }
    }
    Ok(size)
}
