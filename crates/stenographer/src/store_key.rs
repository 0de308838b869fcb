//! Finds the key of an encrypted store: identity file, system keyring, passphrase command, or a question.

mod passphrase;
pub(crate) mod system_keyring;

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use steno_cipher::{
    AgeIdentity, KeyFile, KeySlot, KeyWrapError, MasterKey, UnlockSecret, conversion, store_fs,
};
use steno_model::durable::FileError;

use crate::config::Config;
use crate::error::CommandError;
use crate::process_environment::ProcessEnvironment;
use crate::ui::Ui;

/// Unlocks the store for this process, if it is encrypted.
pub(crate) fn unlock_store(ui: &mut Ui, env: &ProcessEnvironment) -> Result<(), CommandError> {
    check_store_access(&env.store)?;
    conversion::finish_conversion(&env.store)?;
    let Some(keys) = KeyFile::read(&env.store)? else { return Ok(()) };
    let key = StoreKeySource::load(env)?.find_key(ui, &keys)?;
    steno_cipher::unlock_store(&env.store, key, &keys);
    check_key_file(env)
}

/// Fails if this user may not enter the store's folder, encrypted or not.
fn check_store_access(store: &Path) -> Result<(), CommandError> {
    // A file below the folder can only be looked up by who may enter it.
    match fs::metadata(store.join(".")) {
        Err(source) if source.kind() == ErrorKind::PermissionDenied => {
            let error = FileError { action: "open the store", path: store.to_owned(), source };
            Err(CommandError::user(error).hint("check who may read and enter this folder"))
        }
        _ => Ok(()),
    }
}

/// Fails if the store has files, but none for the master key in its key file: the key file is that of another copy.
fn check_key_file(env: &ProcessEnvironment) -> Result<(), CommandError> {
    if store_fs::exists(&env.store) {
        return Ok(());
    }
    let names = fs::read_dir(&env.store).into_iter().flatten().flatten();
    let mut names = names.map(|entry| entry.file_name().to_string_lossy().into_owned());
    if !names.any(|name| name.starts_with("encrypted")) {
        return Ok(());
    }
    steno_cipher::lock_store(&env.store);
    let error = CommandError::user("encryption.json is not that of the files in the store");
    Err(error.hint("restore it from a backup of the same time; `--change-key` writes a new one"))
}

/// Where this user's key is.
#[derive(Debug)]
pub(crate) struct StoreKeySource {
    /// An identity file of age.
    identity: Option<PathBuf>,
    /// A command that prints the passphrase.
    passphrase_command: Option<String>,
}

impl StoreKeySource {
    /// Reads the environment, then `[encryption]` in config.toml.
    pub(crate) fn load(env: &ProcessEnvironment) -> Result<Self, CommandError> {
        let settings = Config::load(env)?.encryption(&env.home)?;
        let (identity, passphrase_command) = (settings.identity, settings.passphrase_command);
        let mut source = Self { identity, passphrase_command };
        if let Some(path) = ProcessEnvironment::variable("STENO_IDENTITY") {
            source.identity = Some(env.cwd.join(path));
        }
        if let Some(command) = ProcessEnvironment::variable("STENO_PASSPHRASE_COMMAND") {
            source.passphrase_command = Some(command.to_string_lossy().into_owned());
        }
        Ok(source)
    }

    /// Unwraps the key of a store with the first secret that fits.
    pub(crate) fn find_key(&self, ui: &mut Ui, keys: &KeyFile) -> Result<MasterKey, CommandError> {
        let mut identities = self.read_identities()?;
        for slot in &keys.slots {
            if let KeySlot::Keyring { recipient, .. } = slot {
                identities.extend(system_keyring::find_identity(recipient));
            }
        }
        let has_identity = !identities.is_empty();
        if has_identity && let Ok(key) = keys.unwrap_key(&UnlockSecret::Identities(identities)) {
            return Ok(key);
        }
        let has_passphrase =
            keys.slots.iter().any(|slot| matches!(slot, KeySlot::Passphrase { .. }));
        if !has_passphrase {
            return Err(missing_key_error(has_identity));
        }
        let passphrase = match &self.passphrase_command {
            Some(command) => passphrase::run_command(command)?,
            None if ui.can_ask() => passphrase::ask(ui, "Passphrase of the store: ")?,
            None => return Err(missing_key_error(has_identity)),
        };
        keys.unwrap_key(&UnlockSecret::Passphrase(passphrase)).map_err(|error| match error {
            KeyWrapError::WrongKey => CommandError::user("the passphrase does not open this store"),
            KeyWrapError::Damaged => {
                CommandError::user(error).hint("restore encryption.json in the store from a backup")
            }
        })
    }

    /// A new passphrase: that of the command, or one that the user types twice.
    pub(crate) fn new_passphrase(&self, ui: &mut Ui) -> Result<String, CommandError> {
        if let Some(command) = &self.passphrase_command {
            return passphrase::run_command(command);
        }
        if !ui.can_ask() {
            let error = CommandError::user("no terminal to ask for a passphrase");
            return Err(error.hint("set STENO_PASSPHRASE_COMMAND to a command that prints it"));
        }
        let first = passphrase::ask(ui, "New passphrase: ")?;
        match passphrase::ask(ui, "Again: ")? {
            again if again == first => Ok(first),
            _ => Err(CommandError::user("the passphrases differ")),
        }
    }

    fn read_identities(&self) -> Result<Vec<AgeIdentity>, CommandError> {
        let Some(path) = &self.identity else { return Ok(Vec::new()) };
        let fail = |error: &dyn std::fmt::Display| {
            CommandError::user(format!("could not read the identity {}: {error}", path.display()))
        };
        let text = fs::read_to_string(path).map_err(|error| fail(&error))?;
        AgeIdentity::parse_file(&text).map_err(|error| fail(&error))
    }
}

fn missing_key_error(has_identity: bool) -> CommandError {
    let text = match has_identity {
        true => "the store is encrypted, and your key does not open it",
        false => "the store is encrypted, and no key is configured",
    };
    CommandError::user(text).hint(
        "set STENO_IDENTITY to an age identity file, or STENO_PASSPHRASE_COMMAND to a command \
         that prints the passphrase",
    )
}

/// What kind of key a slot is for.
pub(crate) fn describe_slot(slot: &KeySlot) -> &'static str {
    match slot {
        KeySlot::Recipient { .. } => "recipient",
        KeySlot::Keyring { .. } => "keyring",
        KeySlot::Passphrase { .. } => "passphrase",
    }
}
