//! A slice: all items of one type, in memory or in a file, under a policy.
//!
//! A LOG slice only grows. Files are not cached: each read sees what other processes appended.

use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub use super::store::{JsonlSlice, MemorySlice};
use super::{line, unknown_time};
use steno_model::durable::FileError;
use steno_model::entry::Entry;
use steno_model::json::Object;
use steno_model::problem::Problem;

/// A type that a slice can store.
pub trait SliceItem: Clone + Send + 'static {
    /// The type's name, as `module:Name`.
    const TYPE_ID: &'static str;
    /// The default policy of its slice.
    const POLICY: SlicePolicy = SlicePolicy::State;
    /// Converts the item to a JSON object.
    fn to_json(&self) -> Object;
    /// Converts a JSON object to an item.
    fn from_json(object: Object) -> Result<Self, serde_json::Error>;
    /// Assigns an id to the item if it needs one and has none.
    fn identify(&mut self) {}
}

/// The changes that a slice allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SlicePolicy {
    /// Items may be replaced, and a restore rolls them back.
    State,
    /// Items can only be appended.
    Log,
}

/// Where the slices of one policy are stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SliceFactory {
    /// In memory, until the session is dropped.
    #[default]
    Memory,
    /// In a folder, one JSON Lines file per type.
    Jsonl(PathBuf),
}

/// Where the slices of each policy are stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SliceFactoryConfig {
    /// For STATE slices.
    pub state: SliceFactory,
    /// For LOG slices.
    pub log: SliceFactory,
}

/// A change of a slice, as a reducer returns it.
#[derive(Clone, Debug, PartialEq)]
pub enum SliceChange<T> {
    /// Append these items.
    Append(Vec<T>),
    /// Replace all items with these.
    Replace(Vec<T>),
    /// Remove all items.
    Clear,
}

/// An operation that a slice or its session refused, or that failed.
#[derive(Debug, thiserror::Error)]
pub enum SliceError {
    /// The slice is a LOG slice and only grows.
    #[error("cannot {operation} a log slice: {slice}")]
    AppendOnly {
        /// The requested operation.
        operation: &'static str,
        /// The type of its items.
        slice: &'static str,
    },
    /// The slice exists already, so its policy is fixed.
    #[error("cannot change the policy of a slice that exists: {0}")]
    PolicySettled(&'static str),
    /// A snapshot has types that are not registered in the session.
    #[error("Slice types not registered: {}", .0.join(", "))]
    NotRegistered(Vec<String>),
    /// The file could not be read or written.
    #[error(transparent)]
    File(#[from] FileError),
}

/// The items of one type, and their policy.
#[derive(Debug)]
pub struct Slice {
    type_id: &'static str,
    policy: SlicePolicy,
    store: SliceStorage,
}

#[derive(Debug)]
enum SliceStorage {
    Memory(MemorySlice),
    Jsonl(JsonlSlice),
}

/// A typed view of a slice. Reads lazily.
#[derive(Debug)]
pub struct SliceView<'a, T> {
    slice: &'a Slice,
    item: PhantomData<fn() -> T>,
}

/// All items of a slice, and the lines that could not be parsed.
#[derive(Clone, Debug, PartialEq)]
pub struct SliceContents<T> {
    /// The items, oldest first.
    pub items: Vec<T>,
    /// Lines that could not be parsed.
    pub problems: Vec<Problem>,
}

impl Slice {
    /// Creates a slice that is stored where `config` says for its policy.
    pub fn new(type_id: &'static str, policy: SlicePolicy, config: &SliceFactoryConfig) -> Self {
        let factory = match policy {
            SlicePolicy::State => &config.state,
            SlicePolicy::Log => &config.log,
        };
        let store = match factory {
            SliceFactory::Memory => SliceStorage::Memory(MemorySlice::default()),
            SliceFactory::Jsonl(folder) => SliceStorage::Jsonl(JsonlSlice::new(folder, type_id)),
        };
        Self { type_id, policy, store }
    }

    /// The policy.
    pub fn policy(&self) -> SlicePolicy {
        self.policy
    }

    /// Applies a change if the policy allows it.
    pub fn apply_change(&mut self, change: SliceChange<Object>) -> Result<(), SliceError> {
        match change {
            SliceChange::Append(items) => self.append(items),
            SliceChange::Replace(items) => self.replace("replace", items),
            SliceChange::Clear => self.replace("clear", Vec::new()),
        }
    }

    /// All items as JSON. Invalid lines are skipped.
    pub fn read_objects(&self) -> Result<Vec<Object>, SliceError> {
        let mut objects = Vec::new();
        self.visit_objects(|object| {
            objects.push(object);
            Ok(())
        })?;
        Ok(objects)
    }

    fn append(&mut self, items: Vec<Object>) -> Result<(), SliceError> {
        match &mut self.store {
            SliceStorage::Memory(slice) => slice.append(items),
            SliceStorage::Jsonl(slice) => slice.append(&items)?,
        }
        Ok(())
    }

    fn replace(&mut self, operation: &'static str, items: Vec<Object>) -> Result<(), SliceError> {
        self.refuse_log_policy(operation)?;
        match &mut self.store {
            SliceStorage::Memory(slice) => slice.replace(items),
            SliceStorage::Jsonl(slice) => slice.replace(&items)?,
        }
        Ok(())
    }

    pub(super) fn refuse_log_policy(&self, operation: &'static str) -> Result<(), SliceError> {
        match self.policy {
            SlicePolicy::State => Ok(()),
            SlicePolicy::Log => Err(SliceError::AppendOnly { operation, slice: self.type_id }),
        }
    }

    fn visit_objects(
        &self,
        mut take: impl FnMut(Object) -> Result<(), serde_json::Error>,
    ) -> Result<Vec<Problem>, SliceError> {
        let slice = match &self.store {
            SliceStorage::Jsonl(slice) => return Ok(slice.read(take)?),
            SliceStorage::Memory(slice) => slice,
        };
        let bad = |error| Problem::for_file(Path::new(self.type_id), error);
        let items = slice.items().iter().cloned();
        Ok(items.filter_map(|item| take(item).err().map(bad)).collect())
    }
}

impl<'a, T: SliceItem> SliceView<'a, T> {
    /// Creates a view with items of type `T`.
    pub fn new(slice: &'a Slice) -> Self {
        Self { slice, item: PhantomData }
    }

    /// Reads all items, and returns invalid lines as problems.
    pub fn read_items(&self) -> Result<SliceContents<T>, SliceError> {
        let mut items = Vec::new();
        let problems = self.slice.visit_objects(|object| {
            items.push(T::from_json(object)?);
            Ok(())
        })?;
        Ok(SliceContents { items, problems })
    }

    /// Reads all items, oldest first. [`SliceView::read_items`] also returns invalid lines.
    pub fn read_all(&self) -> Result<Vec<T>, SliceError> {
        Ok(self.read_items()?.items)
    }

    /// Number of items, without invalid lines.
    pub fn len(&self) -> Result<usize, SliceError> {
        Ok(self.read_all()?.len())
    }

    /// Whether there are no items.
    pub fn is_empty(&self) -> Result<bool, SliceError> {
        Ok(self.len()? == 0)
    }

    /// The newest item.
    pub fn latest(&self) -> Result<Option<T>, SliceError> {
        Ok(self.read_all()?.pop())
    }

    /// The items for which `predicate` returns true.
    pub fn filter_items(&self, predicate: impl FnMut(&T) -> bool) -> Result<Vec<T>, SliceError> {
        let mut items = self.read_all()?;
        items.retain(predicate);
        Ok(items)
    }
}

impl SliceItem for Entry {
    const TYPE_ID: &'static str = line::TYPE_ID;
    const POLICY: SlicePolicy = SlicePolicy::Log;

    fn to_json(&self) -> Object {
        line::object_from_entry(self, false, unknown_time())
    }

    fn from_json(object: Object) -> Result<Self, serde_json::Error> {
        line::entry_from_object(object).map_err(serde::de::Error::custom)
    }

    fn identify(&mut self) {
        if self.entry_id.is_nil() {
            self.entry_id = Uuid::new_v4();
        }
    }
}
