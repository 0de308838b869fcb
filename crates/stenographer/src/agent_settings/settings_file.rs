//! An agent's settings file: written atomically, with a backup, through symbolic links.
//!
//! The backup has the file before Steno was registered. If nothing else has changed since, removing Steno restores
//! exactly these bytes.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use steno_model::backup;
use steno_model::durable::{self, FileError, OnPath};

use super::{RegistrationState, SettingsRefusal, SettingsRegistration};
use crate::error::CommandError;

/// A settings file, which may not exist.
#[derive(Debug)]
pub(crate) struct AgentSettingsFile {
    /// Path with links resolved.
    path: PathBuf,
    /// Text; `None` if the file does not exist.
    text: Option<String>,
}

impl AgentSettingsFile {
    /// Reads the file. A dangling link is an error, so that it is never replaced by a file.
    pub(crate) fn read(path: &Path) -> Result<Self, CommandError> {
        if fs::symlink_metadata(path).is_err() {
            return Ok(Self { path: path.to_owned(), text: None });
        }
        let path = path.canonicalize().on("open", path)?;
        let text = fs::read_to_string(&path).on("read", &path)?;
        Ok(Self { path, text: Some(text) })
    }

    /// Returns whether the settings name Steno.
    pub(crate) fn state(
        &self,
        registration: &dyn SettingsRegistration,
    ) -> Result<RegistrationState, CommandError> {
        registration.state(self.text()).map_err(|refusal| self.explain_refusal(refusal))
    }

    /// Registers Steno. Returns the backup, if one was made.
    pub(crate) fn install(
        &self,
        registration: &dyn SettingsRegistration,
    ) -> Result<Option<PathBuf>, CommandError> {
        let state = self.state(registration)?;
        if state == RegistrationState::Installed {
            return Ok(None);
        }
        let text =
            registration.add_to(self.text()).map_err(|refusal| self.explain_refusal(refusal))?;
        // An outdated registration already has its backup.
        let backup = if state == RegistrationState::NotInstalled { self.back_up()? } else { None };
        self.write(&text)?;
        Ok(backup)
    }

    /// Removes Steno. Restores the original file if nothing else has changed since.
    pub(crate) fn remove(
        &self,
        registration: &dyn SettingsRegistration,
    ) -> Result<(), CommandError> {
        if self.state(registration)? == RegistrationState::NotInstalled {
            return Ok(());
        }
        let without = |text: &str| registration.remove_from(text);
        let left = without(self.text()).map_err(|refusal| self.explain_refusal(refusal))?;
        let made_of = |before: &str| {
            registration.add_to(before).and_then(|with| without(&with)).is_ok_and(|it| it == left)
        };
        let backups: Vec<PathBuf> =
            backup::backup_names(&self.path).take_while(|path| path.exists()).collect();
        let was = |path: &&PathBuf| fs::read_to_string(path).is_ok_and(|before| made_of(&before));
        if let Some(backup) = backups.iter().rev().find(was) {
            self.write(&fs::read_to_string(backup).on("read", backup)?)?;
            durable::remove_file(backup)?;
        } else if backups.is_empty() && made_of("") {
            durable::remove_file(&self.path)?;
        } else {
            self.write(&left)?;
        }
        Ok(())
    }

    fn text(&self) -> &str {
        self.text.as_deref().unwrap_or_default()
    }

    fn explain_refusal(&self, refusal: SettingsRefusal) -> CommandError {
        let location = format!("{}:{}", self.path.display(), refusal.line);
        let error = CommandError::user(format!("{location}: {}", refusal.reason));
        error.hint("nothing was changed; fix the file and try again")
    }

    /// Backs up the file, if it exists.
    fn back_up(&self) -> Result<Option<PathBuf>, FileError> {
        self.text.as_ref().map(|_| backup::back_up(&self.path)).transpose()
    }

    /// Replaces the file, unless another program changed it meanwhile. Keeps its mode.
    fn write(&self, text: &str) -> Result<(), CommandError> {
        let now = match fs::read(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            other => Some(other.on("read", &self.path)?),
        };
        if now.as_deref() != self.text.as_deref().map(str::as_bytes) {
            let path = self.path.display();
            return Err(CommandError::user(format!("another program has just changed {path}")));
        }
        durable::create_private_dir(durable::parent_folder(&self.path))?;
        let mode = fs::metadata(&self.path).map(|file| file.permissions());
        durable::replace_atomic(&self.path, |file| {
            if let Ok(mode) = mode {
                file.set_permissions(mode)?;
            }
            file.write_all(text.as_bytes())
        })?;
        Ok(())
    }
}
