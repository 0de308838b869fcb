//! Both stores during a change.

use std::path::{Path, PathBuf};

use super::commit::Staging;
use super::error::{ThreadError, Warning};
use super::id::{Id, IdSource};
use super::objectives::Objectives;
use super::relations::{Operation, Relations, Thread};
use super::store::{Loaded, OBJECTIVES, RELATIONS, THREADS, ThreadStore, backup, load, read};
use super::words::Operator;
use crate::json::{Object, Value};
use crate::timestamp::Timestamp;

/// Both stores, and the files that change with them.
pub(super) struct Draft {
    pub(super) now: Timestamp,
    pub(super) relations: Relations,
    pub(super) objectives: Objectives,
    pub(super) staging: Staging,
    pub(super) warnings: Vec<Warning>,
    store: ThreadStore,
    before: (Before<Relations>, Before<Objectives>),
}

/// The state of a store's file before the change.
struct Before<T> {
    /// The parsed content, if the file can be read.
    value: Option<T>,
    /// The bytes of a file that cannot be parsed.
    damaged: Option<Vec<u8>>,
}

impl Draft {
    /// Reads the stores. The caller holds the lock.
    pub(super) fn begin(store: &ThreadStore) -> Result<Self, ThreadError> {
        let (base, now) = (store.base(), store.now());
        let staging = Staging::begin(&base)?;
        let relations = load(&base.join(RELATIONS), Relations::from_value)?;
        let objectives = load(&base.join(OBJECTIVES), Objectives::from_value)?;
        let (relations, relations_before) = split(relations, Relations::empty(now));
        let (objectives, objectives_before) = split(objectives, Objectives::empty(now));
        Ok(Self {
            now,
            relations,
            objectives,
            staging,
            warnings: Vec::new(),
            store: store.clone(),
            before: (relations_before, objectives_before),
        })
    }

    /// Returns a thread for changing; an error if it does not exist.
    pub(super) fn thread(&mut self, id: &str) -> Result<&mut Thread, ThreadError> {
        let thread = self.relations.threads.get_mut(id);
        thread.ok_or_else(|| ThreadError::ThreadNotFound(id.to_owned()))
    }

    /// The folder of a thread.
    pub(super) fn folder(&self, id: &Id) -> Result<PathBuf, ThreadError> {
        self.store.folder(id)
    }

    /// Appends an operation to the log of operations.
    pub(super) fn record<const N: usize>(
        &mut self,
        command: &str,
        operator: Operator,
        params: [(&str, Value); N],
    ) -> Result<(), ThreadError> {
        let params = params.into_iter().map(|(name, value)| (name.to_owned(), value));
        self.relations.operations.push(Operation {
            id: self.operation_id("op")?,
            timestamp: self.now,
            command: command.to_owned(),
            operator,
            params: params.collect(),
            extra: Object::new(),
        });
        Ok(())
    }

    /// Makes an id for an operation or a reference.
    pub(super) fn operation_id(&self, prefix: &'static str) -> Result<String, ThreadError> {
        let taken = |id: &str| {
            let mut operations = self.relations.operations.iter();
            let refers = |operation: &Operation| {
                operation.params.get("ref_id").is_some_and(|other| other == id)
            };
            operations.any(|operation| operation.id == id || refers(operation))
        };
        fresh(&self.store.ids, prefix, taken)
    }

    /// Makes an id for a thread or an objective that no folder has either.
    pub(super) fn item_id(&self, prefix: &'static str) -> Result<Id, ThreadError> {
        let base = self.store.base();
        let taken = |id: &str| {
            self.relations.threads.contains_key(id)
                || self.objectives.objectives.contains_key(id)
                || [THREADS, "logs"].iter().any(|folder| base.join(folder).join(id).exists())
        };
        let id = fresh(&self.store.ids, prefix, taken)?;
        Ok(id.parse().expect("a prefix and digits are an id"))
    }

    /// Updates the time at which an objective or one of its threads changed.
    pub(super) fn touch_objective(&mut self, id: &Id) {
        if let Some(objective) = self.objectives.objectives.get_mut(id) {
            objective.updated_at = self.now;
        }
    }

    /// Appends a line to a file below `.leslie`.
    pub(super) fn append(&self, relative: &Path, line: &str) -> Result<(), ThreadError> {
        let path = self.store.base().join(relative);
        // A symlink is not followed; the commit moves it aside.
        let bytes = if path.is_symlink() { None } else { read(&path)? };
        let mut bytes = bytes.unwrap_or_default();
        if !bytes.is_empty() && !bytes.ends_with(b"\n") {
            bytes.push(b'\n');
        }
        bytes.extend_from_slice(line.as_bytes());
        bytes.push(b'\n');
        Ok(self.staging.write(relative, &bytes)?)
    }

    /// Commits the change.
    pub(super) fn commit(mut self) -> Result<(), ThreadError> {
        self.relations.mend();
        self.objectives.agree_with(&self.relations, self.now);
        let (relations, objectives) = &self.before;
        if relations.value.as_ref() != Some(&self.relations) {
            self.relations.touch(self.now);
            self.stage(RELATIONS, &self.relations.print(), relations.damaged.as_deref())?;
        }
        if objectives.value.as_ref() != Some(&self.objectives) {
            self.objectives.touch(self.now);
            self.stage(OBJECTIVES, &self.objectives.print(), objectives.damaged.as_deref())?;
        }
        Ok(self.staging.commit()?)
    }

    /// Stages a store's file and its backup with the same content. The bytes of a file that could not be parsed are
    /// kept.
    fn stage(&self, name: &str, text: &str, damaged: Option<&[u8]>) -> Result<(), ThreadError> {
        self.staging.write(Path::new(name), text.as_bytes())?;
        self.staging.write(&backup(Path::new(name)), text.as_bytes())?;
        if let Some(bytes) = damaged {
            let hash = blake3::hash(bytes).to_hex();
            let kept = format!("{name}.damaged-{}", &hash[..8]);
            self.staging.write(Path::new(&kept), bytes)?;
        }
        Ok(())
    }
}

fn split<T: Clone>(loaded: Option<Loaded<T>>, empty: T) -> (T, Before<T>) {
    match loaded {
        None => (empty, Before { value: None, damaged: None }),
        Some(Loaded { value, problem, damaged }) => {
            let before = problem.is_none().then(|| value.clone());
            (value, Before { value: before, damaged })
        }
    }
}

/// Draws ids until one is free.
fn fresh(
    ids: &IdSource,
    prefix: &'static str,
    taken: impl Fn(&str) -> bool,
) -> Result<String, ThreadError> {
    let mut drawn = (0..1000).map(|_| ids.next(prefix));
    drawn.find(|id| !taken(id)).ok_or(ThreadError::NoFreeId(prefix))
}
