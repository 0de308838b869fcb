//! Verifies the tombstones, and that exactly what they state was removed.

use std::collections::BTreeSet;

use super::log_check::LogCheck;
use super::{MISSING_FILE, VerifyReport};
use crate::line_hash::FIRST_LINE_HASH;
use crate::vault::Vault;
use crate::vault::journal::{FileState, ListedFile};
use crate::vault::tombstone::{FORGOTTEN_FILE, FORGOTTEN_HEAD_FILE, TombstoneState};
use steno_cipher::store_fs;
use steno_model::durable::FileError;

impl VerifyReport {
    /// Verifies the log of tombstones, and compares it with the sessions. They must be verified already.
    pub(super) fn check_tombstones(&mut self, vault: &Vault) -> Result<(), FileError> {
        let path = vault.journal.tombstones.path();
        let listed = vault.journal.files_of_session("")?.unwrap_or_default();
        let listed = listed.get(FORGOTTEN_FILE).cloned();
        if !store_fs::exists(&path) {
            if listed.is_some() {
                self.add_damage(&path, 0, MISSING_FILE);
            }
            return self.check_masks(vault, &TombstoneState::default());
        }
        let unlisted = ListedFile { state: FileState::Open, length: 0, size: None, link: None };
        let head = vault.root().join(FORGOTTEN_HEAD_FILE);
        let (files, bytes) = (self.files, self.bytes);
        LogCheck { path: &path, head: &head, listed: &listed.unwrap_or(unlisted) }
            .check_log(Some(FIRST_LINE_HASH), self)?;
        // Tombstones do not count as kept files.
        (self.files, self.bytes) = (files, bytes);
        let state = vault.journal.tombstones.read()?;
        if !state.damaged_lines.is_empty() && !self.damage.iter().any(|one| one.path == path) {
            self.add_damage(&path, 0, "not a tombstone");
        }
        self.check_removed_sessions(vault, &state)?;
        self.check_masks(vault, &state)?;
        self.forgotten.clone_from(&state.tombstones);
        Ok(())
    }

    /// Reports sessions that were forgotten and are there again.
    fn check_removed_sessions(
        &mut self,
        vault: &Vault,
        state: &TombstoneState,
    ) -> Result<(), FileError> {
        let unfinished: BTreeSet<_> = state.unfinished().into_iter().map(|one| one.id).collect();
        for tombstone in state.tombstones.iter().filter(|one| one.is_whole_session()) {
            let Some(dir) = vault.session_for_key(&tombstone.session) else { continue };
            if unfinished.contains(&tombstone.id) {
                self.interrupted.push(dir.path().to_owned());
            } else if !dir.is_empty()? {
                self.add_damage(dir.path(), 0, "the session was forgotten, but is there");
            }
        }
        Ok(())
    }

    /// Compares the masks of all files with the tombstones.
    fn check_masks(&mut self, vault: &Vault, state: &TombstoneState) -> Result<(), FileError> {
        let masks = std::mem::take(&mut self.masks);
        let unfinished: BTreeSet<_> =
            state.unfinished().into_iter().map(|tombstone| tombstone.session).collect();
        let files: BTreeSet<_> = masks.keys().chain(state.seals.keys()).cloned().collect();
        for (session, file) in files {
            let Some(dir) = vault.session_for_key(&session) else { continue };
            // A session may have been forgotten as a whole since.
            if unfinished.contains(&session) || state.of_session(&session).is_some() {
                continue;
            }
            let path = dir.path().join(&file);
            if self.damage.iter().any(|damage| damage.path == path) {
                continue;
            }
            let key = (session, file);
            let (found, expected) = (masks.get(&key), state.seals.get(&key));
            let ranges = state.masked_ranges(&key.0, &key.1);
            match found {
                None => self.add_damage(&path, 0, "its forgotten parts are not masked"),
                Some(found) if found.seal.as_ref() != expected || found.ranges != ranges => {
                    self.add_damage(&path, 0, "its masks differ from what the tombstones state");
                }
                Some(_) => {}
            }
        }
        Ok(())
    }
}
