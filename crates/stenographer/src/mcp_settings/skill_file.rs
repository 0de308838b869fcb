//! The skill file that explains the tools to agents that read skills.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use steno_model::durable::{self, FileError, OnPath};

/// The text of the skill.
const SKILL_TEXT: &str = include_str!("SKILL.md");

/// The line that shows that a skill file is ours.
const SKILL_MARK: &str = "<!-- Written by `steno mcp install`; `steno mcp remove` deletes it. -->";

/// The folder of the skill.
const SKILL_FOLDER: &str = "steno-history";

/// A skill file, which may not exist.
#[derive(Debug)]
pub(crate) struct SkillFile {
    path: PathBuf,
}

impl SkillFile {
    /// Returns our skill in an agent's folder of skills.
    pub(crate) fn in_folder(skills: &Path) -> Self {
        Self { path: skills.join(SKILL_FOLDER).join("SKILL.md") }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns whether the file is ours.
    pub(crate) fn is_ours(&self) -> bool {
        fs::read_to_string(&self.path).is_ok_and(|text| text.contains(SKILL_MARK))
    }

    /// Writes the file. Returns whether it is ours now: a file of the user stays.
    pub(crate) fn install(&self) -> Result<bool, FileError> {
        match fs::read(&self.path) {
            Ok(text) if text == SKILL_TEXT.as_bytes() => return Ok(true),
            Ok(_) if !self.is_ours() => return Ok(false),
            Err(error) if error.kind() != ErrorKind::NotFound => {
                return Err(error).on("read", &self.path);
            }
            _ => {}
        }
        durable::create_private_dir(durable::parent_folder(&self.path))?;
        durable::replace_atomic(&self.path, |file| file.write_all(SKILL_TEXT.as_bytes()))?;
        Ok(true)
    }

    /// Removes the file if it is ours, and the folders that become empty.
    pub(crate) fn remove(&self) -> Result<(), FileError> {
        if !self.is_ours() {
            return Ok(());
        }
        durable::remove_file(&self.path)?;
        // A folder with other files stays.
        let folder = durable::parent_folder(&self.path);
        if fs::remove_dir(folder).is_ok() {
            let _ = fs::remove_dir(durable::parent_folder(folder));
        }
        Ok(())
    }
}
