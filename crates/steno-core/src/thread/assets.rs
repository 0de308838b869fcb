//! Lists the assets of a thread as paths. Never reads them.

use serde::Serialize;

use super::error::{ThreadError, Warning};
use super::id::Id;
use super::store::{BASE, THREADS, TRANSCRIPTS, ThreadStore};

/// The kind of an asset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AssetKind {
    /// The plan.
    Plan,
    /// The progress report.
    Progress,
    /// The design.
    Design,
    /// Findings.
    Learnings,
    /// Notes of discussions.
    Discuss,
    /// Transcripts of runs.
    Transcript,
}

/// An asset and its path relative to the project's folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Asset {
    /// The kind.
    #[serde(rename = "type")]
    pub kind: AssetKind,
    /// The path, with slashes.
    pub path: String,
}

/// Paths of assets in a thread's folder, in the order in which they are listed.
pub(super) const PLACES: [(&str, AssetKind); 8] = [
    ("plan.md", AssetKind::Plan),
    ("plan", AssetKind::Plan),
    ("progress.md", AssetKind::Progress),
    ("design.md", AssetKind::Design),
    ("design", AssetKind::Design),
    ("learnings", AssetKind::Learnings),
    ("discuss", AssetKind::Discuss),
    (TRANSCRIPTS, AssetKind::Transcript),
];

impl AssetKind {
    /// The name in JSON and XML.
    pub fn as_str(self) -> &'static str {
        match self {
            AssetKind::Plan => "plan",
            AssetKind::Progress => "progress",
            AssetKind::Design => "design",
            AssetKind::Learnings => "learnings",
            AssetKind::Discuss => "discuss",
            AssetKind::Transcript => "transcript",
        }
    }
}

impl ThreadStore {
    /// Lists the assets of a thread, with a warning for each referenced thread that does not exist.
    pub fn artifacts(&self, id: &str) -> Result<(Vec<Asset>, Vec<Warning>), ThreadError> {
        let relations = self.relations()?;
        let Some(thread) = relations.threads.get(id) else {
            return Err(ThreadError::ThreadNotFound(id.to_owned()));
        };
        let references = relations.links.get(id).map_or(&[][..], |links| &links.references_to);
        let missing = references.iter().filter(|id| !relations.threads.contains_key(*id));
        let warnings = missing.map(|id| Warning::TargetNotFound(id.to_string())).collect();
        Ok((self.assets(&thread.id)?, warnings))
    }

    /// Lists the assets that exist in a thread's folder.
    pub(super) fn assets(&self, id: &Id) -> Result<Vec<Asset>, ThreadError> {
        let folder = self.folder(id)?;
        let existing = PLACES.iter().filter(|(path, _)| folder.join(path).exists());
        let asset = |(path, kind): &(&str, AssetKind)| Asset {
            kind: *kind,
            path: format!("{}/{path}", storage_path(id)),
        };
        Ok(existing.map(asset).collect())
    }
}

/// A thread's folder relative to the project's folder, as the store states it.
pub(super) fn storage_path(id: &Id) -> String {
    format!("{BASE}/{THREADS}/{id}")
}
