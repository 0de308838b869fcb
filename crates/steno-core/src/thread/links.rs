//! Links between threads. Each link is stored at both threads, and repaired if one side is lost.

use serde::Serialize;

use super::fields::{Fields, Invalid};
use super::id::Id;
use super::relations::{Operation, Relations};
use crate::json::Object;

/// The links of a thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Links {
    /// Threads spawned from this one.
    pub children: Vec<Id>,
    /// Threads that this one references.
    pub references_to: Vec<Id>,
    /// Threads that reference this one.
    pub referenced_by: Vec<Id>,
    /// Threads that this one depends on.
    pub depends_on: Vec<Id>,
    /// Unknown fields.
    #[serde(flatten)]
    pub extra: Object,
}

impl Relations {
    /// Returns the links of a thread; empty ones are added if there are none.
    pub(super) fn links_of(&mut self, id: &Id) -> &mut Links {
        self.links.entry(id.clone()).or_default()
    }

    /// Links a child to its parent.
    pub(super) fn descend(&mut self, child: &Id, parent: &Id) {
        add(&mut self.links_of(child).depends_on, parent);
        add(&mut self.links_of(parent).children, child);
    }

    /// Links a thread to one that it references.
    pub(super) fn refer(&mut self, from: &Id, target: &Id) {
        add(&mut self.links_of(from).references_to, target);
        add(&mut self.links_of(target).referenced_by, from);
    }

    /// Whether references lead from one thread to the other. A thread leads to itself.
    pub(super) fn leads_to(&self, from: &Id, to: &Id) -> bool {
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
    pub(super) fn mend(&mut self) {
        let lost = |id: &&Id| !self.links.contains_key(*id);
        let lost: Vec<Id> = self.threads.keys().filter(lost).cloned().collect();
        if lost.is_empty() {
            return;
        }
        let is_wanted = |(from, to): &(Id, Id)| {
            self.threads.contains_key(to) && (lost.contains(from) || lost.contains(to))
        };
        let threads = self.threads.values();
        let families = threads.filter_map(|it| Some((it.id.clone(), it.parent_id.clone()?)));
        let families: Vec<_> = families.filter(is_wanted).collect();
        let references = self.operations.iter().filter_map(|it| self.reference_in(it));
        let references: Vec<_> = references.filter(is_wanted).collect();
        for id in &lost {
            self.links_of(id);
        }
        families.iter().for_each(|(child, parent)| self.descend(child, parent));
        references.iter().for_each(|(from, target)| self.refer(from, target));
    }

    /// Returns the two threads of an operation that added a reference.
    fn reference_in(&self, operation: &Operation) -> Option<(Id, Id)> {
        let thread = |name| self.threads.get(operation.params.get(name)?.as_str()?);
        let ends = (thread("from_id")?.id.clone(), thread("to_id")?.id.clone());
        (operation.command == "reference").then_some(ends)
    }
}

impl Links {
    pub(super) fn take(key: Id, mut fields: Fields) -> Result<(Id, Self), Invalid> {
        let links = Self {
            children: fields.ids("children")?,
            references_to: fields.ids("references_to")?,
            referenced_by: fields.ids("referenced_by")?,
            depends_on: fields.ids("depends_on")?,
            extra: Object::new(),
        };
        Ok((key, Self { extra: fields.rest(), ..links }))
    }
}

fn add(ids: &mut Vec<Id>, id: &Id) {
    if !ids.contains(id) {
        ids.push(id.clone());
    }
}
