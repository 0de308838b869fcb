//! Tracks links between records: the parents of skipped records, and the roots of inline sidechains.

use super::record::ClaudeRecord;
use crate::decoding::shared_texts::SharedTexts;
use steno_model::entry::PRIMARY_SOURCE;

/// The links of the records read so far.
#[derive(Debug, Default)]
pub(super) struct ClaudeRecordLinks {
    /// Parent UUIDs of skipped records, by UUID. Empty if the record has no parent.
    skipped: SharedTexts,
    /// The UUID of the first record of a sidechain, by the UUID of each of its records.
    roots: SharedTexts,
}

impl ClaudeRecordLinks {
    /// The nearest ancestor of `record` that has entries.
    pub(super) fn find_parent(&self, record: &ClaudeRecord<'_>) -> Option<String> {
        let parent = record.parent()?;
        let ancestor = self.skipped.get(parent).unwrap_or(parent);
        Some(ancestor.to_owned()).filter(|ancestor| !ancestor.is_empty())
    }

    /// Notes that a record has no entries, so that its children link to its parent.
    pub(super) fn skip_record(&mut self, record: &ClaudeRecord<'_>) {
        if let Some(uuid) = record.uuid.text() {
            let parent = self.find_parent(record).filter(|parent| parent != uuid);
            self.skipped.set(uuid, &parent.unwrap_or_default());
        }
    }

    /// The source of a record in a main file. A sidechain's source is its agent id, or else its first record's UUID.
    pub(super) fn find_source(&mut self, record: &ClaudeRecord<'_>) -> String {
        if !record.is_sidechain.is_true() {
            return PRIMARY_SOURCE.to_owned();
        }
        if let Some(agent) = record.agent_id.text() {
            return format!("subagent:{agent}");
        }
        let above = record.parent_uuid.text().and_then(|parent| self.roots.get(parent));
        let root = above.or(record.uuid.text()).unwrap_or_default().to_owned();
        if let Some(uuid) = record.uuid.text() {
            self.roots.set(uuid, &root);
        }
        format!("subagent:{root}")
    }
}
