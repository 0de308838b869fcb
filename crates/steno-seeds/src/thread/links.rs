//! Links between threads. Each link is stored at both threads, and repaired if one side is lost.

use serde::Serialize;

use super::fields::{InvalidField, StrictFields};
use super::id::LeslieId;
use super::relations::{ThreadOperation, ThreadRelations};
use steno_model::json::Object;

/// The links of a thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ThreadLinks {
    /// Threads spawned from this one.
    pub children: Vec<LeslieId>,
    /// Threads that this one references.
    pub references_to: Vec<LeslieId>,
    /// Threads that reference this one.
    pub referenced_by: Vec<LeslieId>,
    /// Threads that this one depends on.
    pub depends_on: Vec<LeslieId>,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Object,
}

impl ThreadRelations {
    /// Returns the links of a thread; empty ones are added if there are none.
    pub(super) fn links_mut(&mut self, id: &LeslieId) -> &mut ThreadLinks {
        self.links.entry(id.clone()).or_default()
    }

    /// Links a child to its parent.
    pub(super) fn add_child(&mut self, child: &LeslieId, parent: &LeslieId) {
        add_unique(&mut self.links_mut(child).depends_on, parent);
        add_unique(&mut self.links_mut(parent).children, child);
    }

    /// Links a thread to one that it references.
    pub(super) fn add_reference(&mut self, from: &LeslieId, target: &LeslieId) {
        add_unique(&mut self.links_mut(from).references_to, target);
        add_unique(&mut self.links_mut(target).referenced_by, from);
    }

    /// Whether references lead from one thread to the other. A thread leads to itself.
    pub(super) fn leads_to(&self, from: &LeslieId, to: &LeslieId) -> bool {
        let mut seen = vec![from];
        let mut next = 0;
        while let Some(id) = seen.get(next).copied() {
            if id == to {
                return true;
            }
            let further = self.links.get(id).map_or(&[][..], |links| &links.references_to);
            seen.extend(further.iter().filter(|id| !seen.contains(id)).collect::<Vec<_>>());
            next += 1;
        }
        false
    }

    /// Restores the links of threads without any, from their parents and the log of operations.
    pub(super) fn repair_links(&mut self) {
        let lost = |id: &&LeslieId| !self.links.contains_key(*id);
        let lost: Vec<LeslieId> = self.threads.keys().filter(lost).cloned().collect();
        if lost.is_empty() {
            return;
        }
        let is_wanted = |(from, to): &(LeslieId, LeslieId)| {
            self.threads.contains_key(to) && (lost.contains(from) || lost.contains(to))
        };
        let threads = self.threads.values();
        let families = threads.filter_map(|it| Some((it.id.clone(), it.parent_id.clone()?)));
        let families: Vec<_> = families.filter(is_wanted).collect();
        let references = self.operations.iter().filter_map(|it| self.parse_reference(it));
        let references: Vec<_> = references.filter(is_wanted).collect();
        for id in &lost {
            self.links_mut(id);
        }
        families.iter().for_each(|(child, parent)| self.add_child(child, parent));
        references.iter().for_each(|(from, target)| self.add_reference(from, target));
    }

    /// Returns the two threads of an operation that added a reference.
    fn parse_reference(&self, operation: &ThreadOperation) -> Option<(LeslieId, LeslieId)> {
        let thread = |name| self.threads.get(operation.params.get(name)?.as_str()?);
        let ends = (thread("from_id")?.id.clone(), thread("to_id")?.id.clone());
        (operation.command == "reference").then_some(ends)
    }
}

impl ThreadLinks {
    pub(super) fn from_fields(
        key: LeslieId,
        mut fields: StrictFields,
    ) -> Result<(LeslieId, Self), InvalidField> {
        let links = Self {
            children: fields.take_ids("children")?,
            references_to: fields.take_ids("references_to")?,
            referenced_by: fields.take_ids("referenced_by")?,
            depends_on: fields.take_ids("depends_on")?,
            extra: Object::new(),
        };
        Ok((key, Self { extra: fields.into_rest(), ..links }))
    }
}

fn add_unique(ids: &mut Vec<LeslieId>, id: &LeslieId) {
    if !ids.contains(id) {
        ids.push(id.clone());
    }
}
