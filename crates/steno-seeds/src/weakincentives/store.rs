//! Storage of a slice's items: in memory, or in a file of JSON Lines.

use std::fs::File;
use std::io::{self, BufReader};
use std::path::{Path, PathBuf};

use super::jsonl;
use steno_model::durable::{self, FileError, OnPath};
use steno_model::json::Object;
use steno_model::problem::Problem;

/// Items in memory.
#[derive(Clone, Debug, Default)]
pub struct MemorySlice(Vec<Object>);

/// Items in a file, one per line.
#[derive(Clone, Debug)]
pub struct JsonlSlice(PathBuf);

impl MemorySlice {
    /// Appends items.
    pub fn append(&mut self, items: Vec<Object>) {
        self.0.extend(items);
    }

    /// Replaces all items.
    pub fn replace(&mut self, items: Vec<Object>) {
        self.0 = items;
    }

    /// The items, oldest first.
    pub fn items(&self) -> &[Object] {
        &self.0
    }
}

impl JsonlSlice {
    /// The file of a type in a folder. It is created with the first item.
    pub fn new(folder: &Path, type_id: &str) -> Self {
        Self(folder.join(type_id.replace(':', ".") + ".jsonl"))
    }

    /// The file's path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Appends items durably. A partially written last line is terminated first.
    pub fn append(&self, items: &[Object]) -> Result<(), FileError> {
        if items.is_empty() {
            return Ok(());
        }
        durable::create_private_dir(durable::parent_folder(&self.0))?;
        durable::append_lines(&self.0, jsonl::render_objects(items).as_bytes())
    }

    /// Replaces all items atomically.
    pub fn replace(&self, items: &[Object]) -> Result<(), FileError> {
        durable::create_private_dir(durable::parent_folder(&self.0))?;
        durable::write_atomic(&self.0, jsonl::render_objects(items).as_bytes())
    }

    /// Calls `take` for each item, and returns parse errors and rejected items as problems.
    pub fn read(
        &self,
        take: impl FnMut(Object) -> Result<(), serde_json::Error>,
    ) -> Result<Vec<Problem>, FileError> {
        match File::open(&self.0) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
            file => {
                let file = file.on("open", &self.0)?;
                // A writer in another process holds the lock until its last line is complete.
                file.lock_shared().on("lock", &self.0)?;
                let problems = jsonl::read_objects(BufReader::new(file), &self.0, take)?;
                Ok(problems.into_problems())
            }
        }
    }
}
