//! The assets of a thread: found and listed as paths, never read.

use serde::Serialize;

use super::error::{ThreadError, Warning};
use super::id::Id;
use super::store::{BASE, THREADS, TRANSCRIPTS, ThreadStore};

/// What an asset is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AssetKind {
    /// What is to be done.
    Plan,
    /// What has been done.
    Progress,
    /// How it is to be built.
    Design,
    /// What was found out.
    Learnings,
    /// What was talked over.
    Discuss,
    /// What was said and done.
    Transcript,
}

/// An asset and its path from the project's folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Asset {
    /// What it is.
    #[serde(rename = "type")]
    pub kind: AssetKind,
    /// Where it is, with slashes.
    pub path: String,
}

/// Where assets are looked for, in the order in which they are listed.
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
    /// The word for it.
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
    /// The assets of a thread, and which of the threads it refers to are missing.
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

    /// The assets that stand in a thread's folder.
    pub(super) fn assets(&self, id: &Id) -> Result<Vec<Asset>, ThreadError> {
        let folder = self.folder(id)?;
        let there = PLACES.iter().filter(|(place, _)| folder.join(place).exists());
        let asset = |(place, kind): &(&str, AssetKind)| Asset {
            kind: *kind,
            path: format!("{}/{place}", storage_path(id)),
        };
        Ok(there.map(asset).collect())
    }
}

/// The folder of a thread from the project's folder, as it is written down.
pub(super) fn storage_path(id: &Id) -> String {
    format!("{BASE}/{THREADS}/{id}")
}
