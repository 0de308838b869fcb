//! Both stores during a change.

use std::path::{Path, PathBuf};

use super::commit::StagedChange;
use super::error::{ThreadError, ThreadWarning};
use super::id::{IdSource, LeslieId};
use super::objectives::ObjectiveList;
use super::relations::{Thread, ThreadOperation, ThreadRelations};
use super::store::{
    LoadedStore, OBJECTIVES_FILE, RELATIONS_FILE, THREADS_FOLDER, ThreadStore, backup_path,
    load_store, read_if_exists,
};
use super::vocabulary::Operator;
use steno_model::json::{Object, Value};
use steno_model::timestamp::Timestamp;

/// Both stores, and the files that change with them.
pub(super) struct StoreDraft {
    pub(super) now: Timestamp,
    pub(super) relations: ThreadRelations,
    pub(super) objectives: ObjectiveList,
    pub(super) staging: StagedChange,
    pub(super) warnings: Vec<ThreadWarning>,
    store: ThreadStore,
    before: (PreviousState<ThreadRelations>, PreviousState<ObjectiveList>),
}

/// The state of a store's file before the change.
struct PreviousState<T> {
    /// The parsed content, if the file can be read.
    value: Option<T>,
    /// The bytes of a file that cannot be parsed.
    damaged: Option<Vec<u8>>,
}

impl StoreDraft {
    /// Reads the stores. The caller holds the lock.
    pub(super) fn begin(store: &ThreadStore) -> Result<Self, ThreadError> {
        let (base, now) = (store.base_folder(), store.now());
        let staging = StagedChange::begin(&base)?;
        let relations = load_store(&base.join(RELATIONS_FILE), ThreadRelations::from_value)?;
        let objectives = load_store(&base.join(OBJECTIVES_FILE), ObjectiveList::from_value)?;
        let (relations, relations_before) = split_loaded(relations, ThreadRelations::new(now));
        let (objectives, objectives_before) = split_loaded(objectives, ObjectiveList::new(now));
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
    pub(super) fn thread_mut(&mut self, id: &str) -> Result<&mut Thread, ThreadError> {
        let thread = self.relations.threads.get_mut(id);
        thread.ok_or_else(|| ThreadError::ThreadNotFound(id.to_owned()))
    }

    /// The folder of a thread.
    pub(super) fn thread_folder(&self, id: &LeslieId) -> Result<PathBuf, ThreadError> {
        self.store.thread_folder(id)
    }

    /// Appends an operation to the log of operations.
    pub(super) fn record_operation<const N: usize>(
        &mut self,
        command: &str,
        operator: Operator,
        params: [(&str, Value); N],
    ) -> Result<(), ThreadError> {
        let params = params.into_iter().map(|(name, value)| (name.to_owned(), value));
        self.relations.operations.push(ThreadOperation {
            id: self.new_operation_id("op")?,
            timestamp: self.now,
            command: command.to_owned(),
            operator,
            params: params.collect(),
            extra: Object::new(),
        });
        Ok(())
    }

    /// Makes an id for an operation or a reference.
    pub(super) fn new_operation_id(&self, prefix: &'static str) -> Result<String, ThreadError> {
        let taken = |id: &str| {
            let mut operations = self.relations.operations.iter();
            let refers = |operation: &ThreadOperation| {
                operation.params.get("ref_id").is_some_and(|other| other == id)
            };
            operations.any(|operation| operation.id == id || refers(operation))
        };
        find_fresh_id(&self.store.ids, prefix, taken)
    }

    /// Makes an id for a thread or an objective that no folder has either.
    pub(super) fn new_item_id(&self, prefix: &'static str) -> Result<LeslieId, ThreadError> {
        let base = self.store.base_folder();
        let taken = |id: &str| {
            self.relations.threads.contains_key(id)
                || self.objectives.objectives.contains_key(id)
                || [THREADS_FOLDER, "logs"].iter().any(|folder| base.join(folder).join(id).exists())
        };
        let id = find_fresh_id(&self.store.ids, prefix, taken)?;
        Ok(id.parse().expect("a prefix and digits are an id"))
    }

    /// Updates the time at which an objective or one of its threads changed.
    pub(super) fn touch_objective(&mut self, id: &LeslieId) {
        if let Some(objective) = self.objectives.objectives.get_mut(id) {
            objective.updated_at = self.now;
        }
    }

    /// Appends a line to a file below `.leslie`.
    pub(super) fn append_line(&self, relative: &Path, line: &str) -> Result<(), ThreadError> {
        let path = self.store.base_folder().join(relative);
        // A symlink is not followed; the commit moves it aside.
        let bytes = if path.is_symlink() { None } else { read_if_exists(&path)? };
        let mut bytes = bytes.unwrap_or_default();
        if !bytes.is_empty() && !bytes.ends_with(b"\n") {
            bytes.push(b'\n');
        }
        bytes.extend_from_slice(line.as_bytes());
        bytes.push(b'\n');
        Ok(self.staging.write_file(relative, &bytes)?)
    }

    /// Commits the change.
    pub(super) fn commit(mut self) -> Result<(), ThreadError> {
        self.relations.repair_links();
        self.objectives.sync_with(&self.relations, self.now);
        let (relations, objectives) = &self.before;
        if relations.value.as_ref() != Some(&self.relations) {
            self.relations.touch(self.now);
            self.stage_store(
                RELATIONS_FILE,
                &self.relations.to_json(),
                relations.damaged.as_deref(),
            )?;
        }
        if objectives.value.as_ref() != Some(&self.objectives) {
            self.objectives.touch(self.now);
            self.stage_store(
                OBJECTIVES_FILE,
                &self.objectives.to_json(),
                objectives.damaged.as_deref(),
            )?;
        }
        Ok(self.staging.commit()?)
    }

    /// Stages a store's file and its backup with the same content. The bytes of a file that could not be parsed are
    /// kept.
    fn stage_store(
        &self,
        name: &str,
        text: &str,
        damaged: Option<&[u8]>,
    ) -> Result<(), ThreadError> {
        self.staging.write_file(Path::new(name), text.as_bytes())?;
        self.staging.write_file(&backup_path(Path::new(name)), text.as_bytes())?;
        if let Some(bytes) = damaged {
            let hash = blake3::hash(bytes).to_hex();
            let kept = format!("{name}.damaged-{}", &hash[..8]);
            self.staging.write_file(Path::new(&kept), bytes)?;
        }
        Ok(())
    }
}

fn split_loaded<T: Clone>(loaded: Option<LoadedStore<T>>, empty: T) -> (T, PreviousState<T>) {
    match loaded {
        None => (empty, PreviousState { value: None, damaged: None }),
        Some(LoadedStore { value, problem, damaged }) => {
            let before = problem.is_none().then(|| value.clone());
            (value, PreviousState { value: before, damaged })
        }
    }
}

/// Draws ids until one is free.
fn find_fresh_id(
    ids: &IdSource,
    prefix: &'static str,
    taken: impl Fn(&str) -> bool,
) -> Result<String, ThreadError> {
    let mut drawn = (0..1000).map(|_| ids.next_id(prefix));
    drawn.find(|id| !taken(id)).ok_or(ThreadError::NoFreeId(prefix))
}
