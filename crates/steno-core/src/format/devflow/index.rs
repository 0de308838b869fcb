//! `runs/index.json`: name, flow, status and start of every run, so that a listing need not open
//! them all.
//!
//! The index is derived. A run that is missing from it, or that it calls running, is read from its
//! own folder; one that has no folder any more is dropped.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::run_id::RunId;
use super::{folder, journal};
use crate::durable::{self, FileError, OnPath};
use crate::json::Style;
use crate::session::Status;
use crate::timestamp::Timestamp;

/// The index's file name.
pub(super) const NAME: &str = "index.json";

/// All runs in short.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Index {
    /// The runs, newest first.
    pub(super) runs: Vec<IndexRun>,
    last_updated: String,
}

/// One run in short.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct IndexRun {
    pub(super) run_id: String,
    pub(super) flow_id: String,
    pub(super) status: String,
    #[serde(default, with = "wire_time")]
    pub(super) started_at: Option<Timestamp>,
}

impl Index {
    /// The runs as they are now; what the file on disk tells is only read again where it may be
    /// stale.
    pub(super) fn refresh(runs: &Path, now: Timestamp) -> Result<Self, FileError> {
        let path = runs.join(NAME);
        let before: Option<Index> =
            fs::read(&path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok());
        let mut known: HashMap<String, IndexRun> = before
            .iter()
            .flat_map(|index| index.runs.iter().cloned())
            .map(|run| (run.run_id.clone(), run))
            .collect();
        let mut current = Vec::new();
        for id in run_names(runs)? {
            let ended = known.remove(id.as_str()).filter(|run| !run.is_open());
            let run = ended.or_else(|| IndexRun::read(&runs.join(id.as_str()), &id));
            current.extend(run);
        }
        current.sort_by(|a, b| b.key().cmp(&a.key()));
        if let Some(before) = before.filter(|before| before.runs == current) {
            return Ok(before);
        }
        let index = Self { runs: current, last_updated: now.to_rfc3339_nano() };
        if runs.exists() {
            // A folder that we may only read can still be listed; the next reader does this work
            // again.
            let _ = durable::write_atomic(&path, Style::GO_INDENT.print(&index).as_bytes());
        }
        Ok(index)
    }
}

impl IndexRun {
    /// The run in a folder; `None` when the folder holds none that can be read.
    fn read(folder: &Path, id: &RunId) -> Option<Self> {
        let other = || folder::load(&folder::bundle(folder)).map(|decoded| decoded.run.metadata);
        let meta = folder::load_metadata(folder).or_else(|_| other()).ok()?;
        // Until its journal is gone, the files of a run may not be its last.
        let status = if folder.join(journal::NAME).exists() {
            Status::Running.as_str().to_owned()
        } else {
            meta.status
        };
        Some(Self {
            run_id: id.to_string(),
            flow_id: meta.flow_id,
            status,
            started_at: meta.started_at,
        })
    }

    /// Whether the run may still change.
    pub(super) fn is_open(&self) -> bool {
        self.status == Status::Running.as_str()
    }

    fn key(&self) -> (Option<jiff::Timestamp>, &str) {
        (self.started_at.map(|at| at.instant()), &self.run_id)
    }
}

/// The names of all folders that can be runs; none when there is no such folder.
pub(super) fn run_names(runs: &Path) -> Result<Vec<RunId>, FileError> {
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

/// Times as Go writes them, the zero time as none.
mod wire_time {
    use serde::{Deserialize, Deserializer, Serializer};

    use super::super::encode::time;
    use crate::timestamp::Timestamp;

    pub(super) fn serialize<S: Serializer>(
        at: &Option<Timestamp>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&time(*at))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Timestamp>, D::Error> {
        let at = Option::<Timestamp>::deserialize(deserializer)?;
        Ok(at.filter(|at| at.wall().year() > 1))
    }
}
