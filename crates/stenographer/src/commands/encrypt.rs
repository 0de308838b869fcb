//! `steno encrypt`: encrypts the store, and changes who can read it.

use std::path::PathBuf;

use serde_json::json;
use steno_cipher::conversion::{self, ConversionError};
use steno_cipher::key_change::{self, StoreKeys};
use steno_cipher::{AgeIdentity, AgeRecipient, KeyFile, KeyFileError, KeySlot, MasterKey};
use steno_model::durable;

use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::store_key::{self, StoreKeySource, system_keyring};
use crate::ui::Ui;

/// Encrypt the store, or change its keys.
///
/// All files of the store are encrypted: sessions, notes, journal and index. Sizes, times and the number of files stay
/// visible. The key is wrapped for age recipients, for a passphrase, or for a key in the system's keyring; any of them
/// opens the store. Without one of them, nothing can be read any more: keep a copy.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Encrypt for an age recipient (age1...); can be repeated.
    #[arg(long, value_name = "RECIPIENT")]
    recipient: Vec<AgeRecipient>,
    /// Create an age identity in this file, and encrypt for it.
    #[arg(long, value_name = "FILE")]
    new_identity: Option<PathBuf>,
    /// Encrypt with a passphrase.
    #[arg(long)]
    passphrase: bool,
    /// Encrypt with a key that is stored in the system's keyring.
    #[arg(long)]
    keyring: bool,
    /// Let another recipient read an encrypted store.
    #[arg(long, value_name = "RECIPIENT")]
    add_recipient: Vec<AgeRecipient>,
    /// Remove a recipient of an encrypted store.
    #[arg(long, value_name = "RECIPIENT")]
    remove_recipient: Vec<String>,
    /// Set or replace the passphrase of an encrypted store.
    #[arg(long)]
    change_passphrase: bool,
    /// Remove the passphrase of an encrypted store.
    #[arg(long)]
    remove_passphrase: bool,
    /// Give an encrypted store a new master key. The files of sessions are not rewritten.
    #[arg(long)]
    change_key: bool,
    /// List the keys that open the store.
    #[arg(long)]
    list: bool,
    /// Print the keys as JSON Lines.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &Args,
) -> Result<CommandExit, CommandError> {
    conversion::finish_conversion(&env.store)?;
    match KeyFile::read(&env.store)? {
        None if args.changes_keys() || args.list => {
            let error = CommandError::user("the store is not encrypted");
            Err(error
                .hint("run `steno encrypt --new-identity FILE` or `steno encrypt --passphrase`"))
        }
        None => encrypt_store(ui, env, args),
        Some(_) if args.starts_encryption() => {
            let error = CommandError::user("the store is encrypted already");
            Err(error.hint("use --add-recipient or --change-passphrase to add a key"))
        }
        Some(keys) => change_keys(ui, env, keys, args),
    }
}

impl Args {
    fn starts_encryption(&self) -> bool {
        let has_key = self.passphrase || self.keyring || self.new_identity.is_some();
        has_key || !self.recipient.is_empty()
    }

    fn changes_keys(&self) -> bool {
        let changes_passphrase = self.change_passphrase || self.remove_passphrase;
        self.change_key
            || changes_passphrase
            || !self.add_recipient.is_empty()
            || !self.remove_recipient.is_empty()
    }
}

fn encrypt_store(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &Args,
) -> Result<CommandExit, CommandError> {
    if !args.starts_encryption() {
        let error = CommandError::usage("no key to encrypt the store with");
        return Err(error.hint("use --new-identity FILE, --recipient, --passphrase or --keyring"));
    }
    let master = MasterKey::generate();
    let mut slots = new_slots(ui, env, &master, args)?;
    let new_identity = NewIdentity::create(env, args)?;
    if let Some(identity) = &new_identity {
        slots.push(KeySlot::for_recipient(&master, &identity.recipient)?);
    }
    let keys = convert_with_slots(ui, env, &master, slots).inspect_err(|_| {
        if let Some(identity) = &new_identity {
            identity.remove_if_unused(env);
        }
    })?;
    ui.status(format_args!("encrypted {}", env.store.display()));
    if let Some(path) = &args.new_identity {
        let path = path.display();
        ui.status(format_args!("the key is in {path}; keep a copy, and set [encryption] identity"));
    }
    print_keys(ui, &keys, args)
}

/// The first keys of a store.
fn new_slots(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    master: &MasterKey,
    args: &Args,
) -> Result<Vec<KeySlot>, CommandError> {
    let mut slots = Vec::new();
    for recipient in &args.recipient {
        slots.push(KeySlot::for_recipient(master, recipient)?);
    }
    if args.passphrase {
        let passphrase = StoreKeySource::load(env)?.new_passphrase(ui)?;
        slots.push(KeySlot::for_passphrase(master, &passphrase)?);
    }
    if args.keyring {
        let identity = AgeIdentity::generate();
        system_keyring::save_identity(&identity)?;
        slots.push(KeySlot::for_keyring(master, &identity.recipient())?);
    }
    Ok(slots)
}

/// Encrypts the store for these keys.
fn convert_with_slots(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    master: &MasterKey,
    slots: Vec<KeySlot>,
) -> Result<KeyFile, CommandError> {
    let mut slots = slots.into_iter();
    let mut keys = KeyFile::new(slots.next().ok_or("no key")?);
    slots.try_for_each(|slot| keys.add_slot(slot))?;
    let mut progress = ui.start_progress("encrypting");
    let result = conversion::encrypt_store(&env.store, keys.clone(), master, &mut |path| {
        progress.step(path.display());
    });
    drop(progress);
    result.map_err(explain_conversion)?;
    Ok(keys)
}

/// The file of `--new-identity`.
struct NewIdentity {
    path: PathBuf,
    recipient: AgeRecipient,
}

impl NewIdentity {
    /// Creates the file. Fails if it exists.
    fn create(env: &ProcessEnvironment, args: &Args) -> Result<Option<Self>, CommandError> {
        let Some(path) = &args.new_identity else { return Ok(None) };
        let identity = AgeIdentity::generate();
        let text =
            format!("# public key: {}\n{}\n", identity.recipient(), identity.to_secret_text());
        let path = env.cwd.join(path);
        if !durable::create_atomic(&path, text.as_bytes())? {
            let error = CommandError::user(format!("the file exists: {}", path.display()));
            return Err(error.hint("use `--recipient` with the public key of an identity"));
        }
        Ok(Some(Self { path, recipient: identity.recipient() }))
    }

    /// Removes the file, unless a key file of the store may name it. The rename that makes an encrypted copy valid
    /// precedes steps that can fail.
    fn remove_if_unused(&self, env: &ProcessEnvironment) {
        let recipient = self.recipient.to_string();
        let is_named = |slot: &KeySlot| slot.name() == recipient;
        let is_unused = match KeyFile::read(&env.store) {
            Ok(None) => true,
            // Another process has encrypted the store.
            Ok(Some(keys)) => !keys.slots.iter().any(is_named),
            Err(_) => false,
        };
        if is_unused {
            // The error that is returned matters more.
            let _ = durable::remove_file(&self.path);
        }
    }
}

fn change_keys(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    mut keys: KeyFile,
    args: &Args,
) -> Result<CommandExit, CommandError> {
    if args.changes_keys() {
        let source = StoreKeySource::load(env)?;
        // Only who can read the store changes its keys.
        let master = source.find_key(ui, &keys)?;
        let before = keys.clone();
        for recipient in &args.add_recipient {
            keys.add_slot(KeySlot::for_recipient(&master, recipient)?)?;
        }
        // A new master key is wrapped with a new passphrase below.
        if args.change_passphrase && !(args.change_key && keys.has_passphrase()) {
            let passphrase = source.new_passphrase(ui)?;
            keys.add_slot(KeySlot::for_passphrase(&master, &passphrase)?)?;
        }
        for name in &args.remove_recipient {
            keys.remove_slot(name).map_err(explain_removal)?;
        }
        if args.remove_passphrase {
            keys.remove_slot("passphrase").map_err(explain_removal)?;
        }
        if args.change_key {
            keys = change_master_key(ui, env, &source, KeyChangeRequest { master, before, keys })?;
            ui.status("gave the store a new master key");
        } else {
            keys.write(&env.store)?;
            ui.status("changed the keys of the store");
        }
    } else if !args.list && !args.json {
        return Err(CommandError::user("the store is encrypted already").hint("use --list"));
    }
    print_keys(ui, &keys, args)
}

/// A change of the master key.
struct KeyChangeRequest {
    master: MasterKey,
    /// The file in which the master key is wrapped now.
    before: KeyFile,
    /// The keys that shall open the store.
    keys: KeyFile,
}

/// Makes a new master key, which the same keys open. Returns the new key file.
fn change_master_key(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    source: &StoreKeySource,
    change: KeyChangeRequest,
) -> Result<KeyFile, CommandError> {
    let master = MasterKey::generate();
    let mut slots = Vec::new();
    for slot in &change.keys.slots {
        slots.push(match slot {
            KeySlot::Recipient { recipient, .. } => {
                KeySlot::for_recipient(&master, &recipient.parse()?)?
            }
            KeySlot::Keyring { recipient, .. } => {
                KeySlot::for_keyring(&master, &recipient.parse()?)?
            }
            KeySlot::Passphrase { .. } => {
                KeySlot::for_passphrase(&master, &source.new_passphrase(ui)?)?
            }
        });
    }
    let keys = change.before.next_generation(slots);
    let old = StoreKeys { master: &change.master, file: &change.before };
    let new = StoreKeys { master: &master, file: &keys };
    let mut progress = ui.start_progress("changing the key");
    let result = key_change::change_master_key(&env.store, old, new, &mut |path| {
        progress.step(path.display());
    });
    drop(progress);
    result.map_err(explain_conversion)?;
    Ok(keys)
}

fn explain_removal(error: KeyFileError) -> CommandError {
    let hint = match error {
        KeyFileError::LastKey => "add another key first, or run `steno decrypt`",
        _ => "run `steno encrypt --list`",
    };
    CommandError::user(error).hint(hint)
}

pub(crate) fn explain_conversion(error: ConversionError) -> CommandError {
    let hint = match &error {
        ConversionError::Recording(_) => "wait until the recording ends",
        ConversionError::Unexpected(_) => {
            "move them away, or restore encryption.json from a backup"
        }
        ConversionError::Busy(_) | ConversionError::KeyChanged(_) => "wait until it ends",
        ConversionError::File(_) => "the store is as it was; run `steno verify`",
    };
    CommandError::user(error).hint(hint)
}

fn print_keys(ui: &mut Ui, keys: &KeyFile, args: &Args) -> Result<CommandExit, CommandError> {
    for slot in &keys.slots {
        let kind = store_key::describe_slot(slot);
        if args.json {
            ui.json_text(&format!("{}\n", json!({ "kind": kind, "key": slot.name() })))?;
        } else if args.list {
            ui.listing_text(&format!("{kind:10}  {}\n", slot.name()))?;
        }
    }
    Ok(CommandExit::Done)
}
