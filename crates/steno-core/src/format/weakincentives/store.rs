//! Where the items of a slice are: in memory, or in a file of JSON Lines.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use super::jsonl;
use crate::durable::{self, FileError, OnPath};
use crate::json::Object;
use crate::problem::Problem;

/// Items that a program keeps to itself.
#[derive(Clone, Debug, Default)]
pub struct MemorySlice(Vec<Object>);

/// Items in a file, one line each.
#[derive(Clone, Debug)]
pub struct JsonlSlice(PathBuf);

impl MemorySlice {
    /// Puts items behind what is there.
    pub fn append(&mut self, items: Vec<Object>) {
        self.0.extend(items);
    }

    /// Puts items in place of what is there.
    pub fn replace(&mut self, items: Vec<Object>) {
        self.0 = items;
    }

    /// The items, oldest first.
    pub fn items(&self) -> &[Object] {
        &self.0
    }
}

impl JsonlSlice {
    /// The file of a type in a folder. Nothing is created before the first item.
    pub fn new(folder: &Path, type_id: &str) -> Self {
        Self(folder.join(type_id.replace(':', ".") + ".jsonl"))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Appends items durably; a torn last line is closed first.
    pub fn append(&self, items: &[Object]) -> Result<(), FileError> {
        if items.is_empty() {
            return Ok(());
        }
        durable::create_private_dir(durable::parent(&self.0))?;
        durable::append_lines(&self.0, jsonl::lines(items).as_bytes())
    }

    /// Puts items in place of what is there, all or nothing.
    pub fn replace(&self, items: &[Object]) -> Result<(), FileError> {
        durable::create_private_dir(durable::parent(&self.0))?;
        durable::write_atomic(&self.0, jsonl::lines(items).as_bytes())
    }

    /// Gives each item to `take`, and returns what could not be read or taken.
    pub fn read(
        &self,
        take: impl FnMut(Object) -> Result<(), serde_json::Error>,
    ) -> Result<Vec<Problem>, FileError> {
        match File::open(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            file => {
                let file = file.on("open", &self.0)?;
                // A writer in another process holds the lock until its last line is whole.
                file.lock_shared().on("lock", &self.0)?;
                let problems = jsonl::read_objects(BufReader::new(file), &self.0, take)?;
                Ok(problems.into_problems())
            }
        }
    }
}
