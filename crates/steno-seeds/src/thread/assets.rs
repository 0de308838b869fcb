//! Lists the assets of a thread as paths. Never reads them.

use serde::Serialize;

use super::error::{ThreadError, ThreadWarning};
use super::id::LeslieId;
use super::store::{BASE_FOLDER, THREADS_FOLDER, TRANSCRIPTS_FOLDER, ThreadStore};

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
pub struct ThreadAsset {
    /// The kind.
    #[serde(rename = "type")]
    pub kind: AssetKind,
    /// The path, with slashes.
    pub path: String,
}

/// Paths of assets in a thread's folder, in the order in which they are listed.
pub(super) const ASSET_PATHS: [(&str, AssetKind); 8] = [
    ("plan.md", AssetKind::Plan),
    ("plan", AssetKind::Plan),
    ("progress.md", AssetKind::Progress),
    ("design.md", AssetKind::Design),
    ("design", AssetKind::Design),
    ("learnings", AssetKind::Learnings),
    ("discuss", AssetKind::Discuss),
    (TRANSCRIPTS_FOLDER, AssetKind::Transcript),
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
    pub fn assets_and_warnings(
        &self,
        id: &str,
    ) -> Result<(Vec<ThreadAsset>, Vec<ThreadWarning>), ThreadError> {
        let relations = self.load_relations()?;
        let Some(thread) = relations.threads.get(id) else {
            return Err(ThreadError::ThreadNotFound(id.to_owned()));
        };
        let references = relations.links.get(id).map_or(&[][..], |links| &links.references_to);
        let missing = references.iter().filter(|id| !relations.threads.contains_key(*id));
        let warnings = missing.map(|id| ThreadWarning::TargetNotFound(id.to_string())).collect();
        Ok((self.list_assets(&thread.id)?, warnings))
    }

    /// Lists the assets that exist in a thread's folder.
    pub(super) fn list_assets(&self, id: &LeslieId) -> Result<Vec<ThreadAsset>, ThreadError> {
        let folder = self.thread_folder(id)?;
        let existing = ASSET_PATHS.iter().filter(|(path, _)| folder.join(path).exists());
        let asset = |(path, kind): &(&str, AssetKind)| ThreadAsset {
            kind: *kind,
            path: format!("{}/{path}", storage_path(id)),
        };
        Ok(existing.map(asset).collect())
    }
}

/// A thread's folder relative to the project's folder, as the store states it.
pub(super) fn storage_path(id: &LeslieId) -> String {
    format!("{BASE_FOLDER}/{THREADS_FOLDER}/{id}")
}
