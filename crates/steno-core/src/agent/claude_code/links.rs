//! Who follows whom: parents of records that become no entries, and the roots of inline sidechains.

use super::record::Record;
use crate::agent::texts::Texts;
use crate::entry::PRIMARY;

/// What is known of the records read so far.
#[derive(Debug, Default)]
pub(super) struct Links {
    /// The parents of records that are links of the chain, but nothing that was said; an empty text for none.
    skipped: Texts,
    /// The first record of the sidechain that a record belongs to.
    roots: Texts,
}

impl Links {
    /// The record that `record` follows, among those that became entries.
    pub(super) fn parent(&self, record: &Record<'_>) -> Option<String> {
        let parent = record.parent()?;
        let ancestor = self.skipped.get(parent).unwrap_or(parent);
        Some(ancestor.to_owned()).filter(|ancestor| !ancestor.is_empty())
    }

    /// Takes note that a record becomes no entry: what follows it follows its parent.
    pub(super) fn skip(&mut self, record: &Record<'_>) {
        if let Some(uuid) = record.uuid.text() {
            let parent = self.parent(record).filter(|parent| parent != uuid);
            self.skipped.set(uuid, &parent.unwrap_or_default());
        }
    }

    /// Who speaks in a record of a main file. A sidechain is named by its agent or first record.
    pub(super) fn source(&mut self, record: &Record<'_>) -> String {
        if !record.is_sidechain.is_true() {
            return PRIMARY.to_owned();
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
