//! The encrypted stores that this process has unlocked.
//!
//! A store is unlocked once for the whole process, so that no code that reads or writes files of a store can miss it.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use crate::key_file::{KEY_FILE, KeyFile};
use crate::master_key::MasterKey;
use crate::store_cipher::StoreCipher;

static UNLOCKED: RwLock<Vec<Arc<StoreCipher>>> = RwLock::new(Vec::new());

/// Whether any store was unlocked. Most processes use a plain store, which then costs only this check.
static HAS_UNLOCKED: AtomicBool = AtomicBool::new(false);

/// The store is encrypted, and this process has no key for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the store is encrypted, and it is not unlocked")]
pub struct LockedStoreError;

impl LockedStoreError {
    /// Whether this is why a file operation failed.
    pub fn is_cause_of(error: &io::Error) -> bool {
        error.get_ref().is_some_and(|inner| inner.downcast_ref::<Self>().is_some())
    }
}

/// Lets this process read and write the encrypted store at `store`, whose master key was unwrapped from `keys`.
pub fn unlock_store(store: &Path, key: MasterKey, keys: &KeyFile) {
    let cipher = Arc::new(StoreCipher::new(store, key, keys));
    let mut unlocked = UNLOCKED.write().unwrap_or_else(PoisonError::into_inner);
    unlocked.retain(|known| known.store() != store);
    unlocked.push(cipher);
    HAS_UNLOCKED.store(true, Ordering::Release);
}

/// Forgets the key of a store. Its paths are plain files again.
pub fn lock_store(store: &Path) {
    let mut unlocked = UNLOCKED.write().unwrap_or_else(PoisonError::into_inner);
    unlocked.retain(|known| known.store() != store);
    HAS_UNLOCKED.store(!unlocked.is_empty(), Ordering::Release);
}

/// Whether the store at `store` is encrypted.
pub fn is_encrypted(store: &Path) -> bool {
    store.join(KEY_FILE).exists()
}

/// The unlocked store that a path is in.
pub(crate) fn cipher_for(path: &Path) -> Option<Arc<StoreCipher>> {
    if !HAS_UNLOCKED.load(Ordering::Acquire) {
        return None;
    }
    let unlocked = UNLOCKED.read().unwrap_or_else(PoisonError::into_inner);
    unlocked.iter().find(|cipher| path.starts_with(cipher.store())).map(Arc::clone)
}

/// Fails if `path` is in an encrypted store that is not unlocked: a plain file there would be lost.
pub(crate) fn check_unlocked(path: &Path) -> io::Result<()> {
    /// A session's folder is three levels below its store.
    const LEVELS: usize = 5;
    if cipher_for(path).is_some() {
        return Ok(());
    }
    let mut folders = path.ancestors().take(LEVELS).filter(|folder| *folder != Path::new(""));
    match folders.any(is_encrypted) {
        true => Err(io::Error::other(LockedStoreError)),
        false => Ok(()),
    }
}
