//! Who follows whom: parents of records that become no entries, and the roots of inline sidechains.

use std::collections::HashMap;

use super::record::Record;
use crate::entry::PRIMARY;

/// What is known of the records read so far.
#[derive(Debug, Default)]
pub(super) struct Links {
    /// The parents of records that are links of the chain, but nothing that was said.
    skipped: HashMap<String, Option<String>>,
    /// The first record of the sidechain that a record belongs to.
    roots: HashMap<String, String>,
}

impl Links {
    /// The record that `record` follows, among those that became entries.
    pub(super) fn parent(&self, record: &Record<'_>) -> Option<String> {
        let parent = record.parent()?;
        match self.skipped.get(parent) {
            Some(ancestor) => ancestor.clone(),
            None => Some(parent.to_owned()),
        }
    }

    /// Takes note that a record becomes no entry: what follows it follows its parent.
    pub(super) fn skip(&mut self, record: &Record<'_>) {
        if let Some(uuid) = record.uuid.owned() {
            let parent = self.parent(record).filter(|parent| *parent != uuid);
            self.skipped.insert(uuid, parent);
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
        let root = above.cloned().or(record.uuid.owned()).unwrap_or_default();
        if let Some(uuid) = record.uuid.owned() {
            self.roots.insert(uuid, root.clone());
        }
        format!("subagent:{root}")
    }
}
