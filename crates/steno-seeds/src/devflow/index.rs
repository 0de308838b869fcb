//! `runs/index.json`: name, flow, status and start of every run, for programs that follow ADR-012.
//!
//! Steno only writes the file, after a run was recorded, moved or removed. It reads each run's own files, because
//! other programs change runs without updating the index.

use std::fs;
use std::path::Path;

use serde::Serialize;

use super::run::RunMetadata;
use super::run_id::RunId;
use steno_model::durable::{self, FileError, OnPath};
use steno_model::json::JsonStyle;
use steno_model::timestamp::Timestamp;

/// The index's file name.
pub(super) const INDEX_FILE: &str = "index.json";

/// The content of the file.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RunIndex<'a> {
    /// The runs, newest first.
    runs: Vec<RunIndexRow<'a>>,
    last_updated: String,
}

/// One row of the index.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RunIndexRow<'a> {
    run_id: &'a str,
    flow_id: &'a str,
    status: &'a str,
    started_at: String,
}

/// Writes the index of `runs` into this folder.
pub(super) fn write_index(
    folder: &Path,
    runs: &[RunMetadata],
    now: Timestamp,
) -> Result<(), FileError> {
    let rows = runs.iter().map(|run| RunIndexRow {
        run_id: &run.run_id,
        flow_id: &run.flow_id,
        status: &run.status,
        started_at: super::encode::format_time(run.started_at),
    });
    let index = RunIndex { runs: rows.collect(), last_updated: now.to_rfc3339_nano() };
    durable::write_atomic(&folder.join(INDEX_FILE), JsonStyle::GO_INDENT.print(&index).as_bytes())
}

/// Lists the names of all folders that can be runs; empty if the folder does not exist.
pub(super) fn list_run_ids(runs: &Path) -> Result<Vec<RunId>, FileError> {
    let entries = match fs::read_dir(runs).on("read folder", runs) {
        Ok(entries) => entries,
        Err(error) if error.is_missing() => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut names: Vec<RunId> = entries
        .flatten()
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|id: &RunId| !id.as_str().starts_with(".steno-"))
        .collect();
    names.sort();
    Ok(names)
}
