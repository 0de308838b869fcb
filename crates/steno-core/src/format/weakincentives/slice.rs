//! A slice: all items of one type, in memory or in a file, under a policy.
//!
//! A LOG slice only grows. Files are not cached: each read sees what other processes appended.

use std::marker::PhantomData;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub use super::store::{JsonlSlice, MemorySlice};
use super::{epoch, line};
use crate::durable::FileError;
use crate::entry::Entry;
use crate::json::Object;
use crate::problem::Problem;

/// A type that a slice can store.
pub trait SliceItem: Clone + Send + 'static {
    /// The type's name, as `module:Name`.
    const TYPE_ID: &'static str;
    /// The default policy of its slice.
    const POLICY: Policy = Policy::State;
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
pub enum Policy {
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
pub enum Change<T> {
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
    policy: Policy,
    store: Store,
}

#[derive(Debug)]
enum Store {
    Memory(MemorySlice),
    Jsonl(JsonlSlice),
}

/// A typed view of a slice. Reads lazily.
#[derive(Debug)]
pub struct View<'a, T> {
    slice: &'a Slice,
    item: PhantomData<fn() -> T>,
}

/// All items of a slice, and the lines that could not be parsed.
#[derive(Clone, Debug, PartialEq)]
pub struct Items<T> {
    /// The items, oldest first.
    pub items: Vec<T>,
    /// Lines that could not be parsed.
    pub problems: Vec<Problem>,
}

impl Slice {
    /// Creates a slice that is stored where `config` says for its policy.
    pub fn new(type_id: &'static str, policy: Policy, config: &SliceFactoryConfig) -> Self {
        let factory = match policy {
            Policy::State => &config.state,
            Policy::Log => &config.log,
        };
        let store = match factory {
            SliceFactory::Memory => Store::Memory(MemorySlice::default()),
            SliceFactory::Jsonl(folder) => Store::Jsonl(JsonlSlice::new(folder, type_id)),
        };
        Self { type_id, policy, store }
    }

    /// The policy.
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// Applies a change if the policy allows it.
    pub fn apply(&mut self, change: Change<Object>) -> Result<(), SliceError> {
        match change {
            Change::Append(items) => self.append(items),
            Change::Replace(items) => self.replace("replace", items),
            Change::Clear => self.replace("clear", Vec::new()),
        }
    }

    /// All items as JSON. Invalid lines are skipped.
    pub fn objects(&self) -> Result<Vec<Object>, SliceError> {
        let mut objects = Vec::new();
        self.read(|object| {
            objects.push(object);
            Ok(())
        })?;
        Ok(objects)
    }

    fn append(&mut self, items: Vec<Object>) -> Result<(), SliceError> {
        match &mut self.store {
            Store::Memory(slice) => slice.append(items),
            Store::Jsonl(slice) => slice.append(&items)?,
        }
        Ok(())
    }

    fn replace(&mut self, operation: &'static str, items: Vec<Object>) -> Result<(), SliceError> {
        self.refuse_log(operation)?;
        match &mut self.store {
            Store::Memory(slice) => slice.replace(items),
            Store::Jsonl(slice) => slice.replace(&items)?,
        }
        Ok(())
    }

    pub(super) fn refuse_log(&self, operation: &'static str) -> Result<(), SliceError> {
        match self.policy {
            Policy::State => Ok(()),
            Policy::Log => Err(SliceError::AppendOnly { operation, slice: self.type_id }),
        }
    }

    fn read(
        &self,
        mut take: impl FnMut(Object) -> Result<(), serde_json::Error>,
    ) -> Result<Vec<Problem>, SliceError> {
        let slice = match &self.store {
            Store::Jsonl(slice) => return Ok(slice.read(take)?),
            Store::Memory(slice) => slice,
        };
        let bad = |error| Problem::of(Path::new(self.type_id), error);
        let items = slice.items().iter().cloned();
        Ok(items.filter_map(|item| take(item).err().map(bad)).collect())
    }
}

impl<'a, T: SliceItem> View<'a, T> {
    /// Creates a view with items of type `T`.
    pub fn new(slice: &'a Slice) -> Self {
        Self { slice, item: PhantomData }
    }

    /// Reads all items, and returns invalid lines as problems.
    pub fn read(&self) -> Result<Items<T>, SliceError> {
        let mut items = Vec::new();
        let problems = self.slice.read(|object| {
            items.push(T::from_json(object)?);
            Ok(())
        })?;
        Ok(Items { items, problems })
    }

    /// Reads all items, oldest first. [`View::read`] also returns invalid lines.
    pub fn all(&self) -> Result<Vec<T>, SliceError> {
        Ok(self.read()?.items)
    }

    /// Number of items, without invalid lines.
    pub fn len(&self) -> Result<usize, SliceError> {
        Ok(self.all()?.len())
    }

    /// Whether there are no items.
    pub fn is_empty(&self) -> Result<bool, SliceError> {
        Ok(self.len()? == 0)
    }

    /// The newest item.
    pub fn latest(&self) -> Result<Option<T>, SliceError> {
        Ok(self.all()?.pop())
    }

    /// The items for which `predicate` returns true.
    pub fn where_(&self, predicate: impl FnMut(&T) -> bool) -> Result<Vec<T>, SliceError> {
        let mut items = self.all()?;
        items.retain(predicate);
        Ok(items)
    }
}

impl SliceItem for Entry {
    const TYPE_ID: &'static str = line::TYPE_ID;
    const POLICY: Policy = Policy::Log;

    fn to_json(&self) -> Object {
        line::to_object(self, false, epoch())
    }

    fn from_json(object: Object) -> Result<Self, serde_json::Error> {
        line::from_object(object).map_err(serde::de::Error::custom)
    }

    fn identify(&mut self) {
        if self.entry_id.is_nil() {
            self.entry_id = Uuid::new_v4();
        }
    }
}
