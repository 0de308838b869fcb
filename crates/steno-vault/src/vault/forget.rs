//! Forgets sessions, or parts of them, and leaves tombstones.
//!
//! # Order
//! 1. The tombstone is on disk. From here on the removal is decided, and any later process completes it.
//! 2. A whole session: the journal lists its files as removed, then its folder is removed. Parts: each file is written
//!    again with masks beside the old one, synced, listed and renamed.
//! 3. The caller removes what was derived from the files, such as the index.
//! 4. A second line in the log of tombstones says that all is done, with a seal of each file that has masks.
//!
//! Every step can be repeated, so an interrupted removal starts again at step 2.

mod finder;
mod record_edits;
#[cfg(test)]
mod tests;

use std::io;
use std::sync::Arc;

use uuid::Uuid;

pub use self::finder::{FindParts, MaskPlan, TextUnit, mask_text};
use super::commit::VaultCommit;
use super::frame::{ContentForm, merge_ranges};
use super::journal::{FileState, JournalLine};
use super::log_head::LogHead;
use super::recorder::RECORD_FILE;
use super::sealed::{ByteEdit, SealedFile, SealedWriter};
use super::text_mask::{ForgetKey, ForgottenTexts, make_mask};
use super::tombstone::{
    FORGOTTEN_FILE, FileSeal, ForgottenFile, ForgottenParts, ForgottenScope, MaskedFile, Tombstone,
};
use super::{AgentName, SessionDir, Vault, parse_sealed_name};
use steno_cipher::store_fs;
use steno_model::durable::{self, FileError, OnPath};
use steno_model::session::SessionId;
use steno_model::timestamp::Timestamp;

/// Who forgets, when and why.
#[derive(Clone, Debug)]
pub struct ForgetRequest {
    /// When.
    pub at: Timestamp,
    /// Who.
    pub by: String,
    /// Why, in the user's words.
    pub reason: Option<String>,
}

impl ForgetRequest {
    fn to_tombstone(&self, dir: &SessionDir, scope: ForgottenScope) -> Tombstone {
        let Self { at, by, reason } = self.clone();
        Tombstone { id: Uuid::new_v4(), at, by, reason, session: dir.journal_key(), scope }
    }
}

/// The session was forgotten, so nothing of it is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the session was forgotten, so nothing of it is kept")]
pub struct ForgottenSessionError;

impl ForgottenSessionError {
    /// Whether this is why a file operation failed.
    pub fn is_cause_of(error: &FileError) -> bool {
        let inner = error.source.get_ref();
        inner.is_some_and(|inner| inner.downcast_ref::<Self>().is_some())
    }
}

impl Vault {
    /// All tombstones, in the order of their removals.
    pub fn tombstones(&self) -> Result<Vec<Tombstone>, FileError> {
        Ok(self.journal.tombstones.read()?.tombstones.clone())
    }

    /// The tombstones of removals that were interrupted.
    pub fn unfinished_removals(&self) -> Result<Vec<Tombstone>, FileError> {
        Ok(self.journal.tombstones.read()?.unfinished())
    }

    /// Whether a whole session was forgotten.
    pub fn is_forgotten(&self, agent: &AgentName, id: &SessionId) -> Result<bool, FileError> {
        self.session_dir(agent, id).is_forgotten()
    }

    /// Whether texts were forgotten that are masked wherever they are kept again.
    pub fn has_forgotten_texts(&self) -> Result<bool, FileError> {
        Ok(!self.journal.tombstones.read_texts()?.is_empty())
    }

    /// Decides removals: writes their tombstones, which are on disk when this returns.
    pub fn add_tombstones(&self, tombstones: &[Tombstone]) -> Result<(), FileError> {
        if tombstones.is_empty() {
            return Ok(());
        }
        self.journal.create_if_absent()?;
        let end = self.journal.tombstones.append_tombstones(tombstones)?;
        self.list_tombstones(end)
    }

    /// Removes from the vault what a tombstone states. Can be repeated.
    pub fn remove_forgotten(&self, tombstone: &Tombstone) -> Result<(), FileError> {
        let Some(dir) = self.session_for_key(&tombstone.session) else { return Ok(()) };
        match &tombstone.scope {
            ForgottenScope::Session(_) => dir.remove_all_files(),
            ForgottenScope::Parts(parts) => dir.mask_parts(tombstone, parts),
        }
    }

    /// Notes that a removal is complete, also in what was derived from the vault.
    pub fn complete_removal(&self, tombstone: &Tombstone, at: Timestamp) -> Result<(), FileError> {
        let mut seals = Vec::new();
        if let (Some(dir), Some(parts)) =
            (self.session_for_key(&tombstone.session), tombstone.parts())
        {
            for masked in &parts.files {
                let Some((stem, generation)) = parse_sealed_name(&masked.file) else { continue };
                let seal = dir.open_sealed(&stem, generation)?.mask_summary()?.seal;
                seals.extend(seal.map(|seal| FileSeal { file: masked.file.clone(), seal }));
            }
        }
        let end = self.journal.tombstones.append_completion(tombstone.id, at, seals)?;
        self.list_tombstones(end)
    }

    /// Lists the end of the log of tombstones in the journal.
    fn list_tombstones(&self, end: LogHead) -> Result<(), FileError> {
        self.journal.append_lines(&[JournalLine {
            session: String::new(),
            file: FORGOTTEN_FILE.to_owned(),
            state: FileState::Open,
            length: end.length,
            size: None,
            link: Some(end.line_hash.as_str().to_owned()),
        }])
    }
}

impl SessionDir {
    /// Whether the whole session was forgotten.
    pub fn is_forgotten(&self) -> Result<bool, FileError> {
        Ok(self.journal.tombstones.read()?.of_session(&self.journal_key()).is_some())
    }

    /// Fails if the whole session was forgotten.
    pub(super) fn check_not_forgotten(&self) -> Result<(), FileError> {
        match self.is_forgotten()? {
            true => Err(io::Error::other(ForgottenSessionError)).on("keep", self.path()),
            false => Ok(()),
        }
    }

    /// The texts that are masked when a file is kept.
    pub(super) fn forgotten_texts(&self) -> Result<Arc<ForgottenTexts>, FileError> {
        self.journal.tombstones.read_texts()
    }

    /// Masks what was forgotten in a text of lines, as when a file is kept for this session.
    pub fn mask_forgotten_texts(&self, text: &mut [u8]) -> Result<(), FileError> {
        let (texts, session) = (self.forgotten_texts()?, self.journal_key());
        if !texts.is_empty() {
            for line in text.split_inclusive_mut(|byte| *byte == b'\n') {
                texts.mask_line(&session, line);
            }
        }
        Ok(())
    }

    /// The tombstones of parts of this session.
    pub fn part_tombstones(&self) -> Result<Vec<Tombstone>, FileError> {
        let state = self.journal.tombstones.read()?;
        let key = self.journal_key();
        let own = state.tombstones.iter().filter(|one| one.session == key);
        Ok(own.filter(|one| !one.is_whole_session()).cloned().collect())
    }

    /// The tombstone for removing the whole session. Changes nothing.
    pub fn tombstone_for_all(&self, request: &ForgetRequest) -> Result<Tombstone, FileError> {
        Ok(request.to_tombstone(self, ForgottenScope::Session(self.forgettable_files()?)))
    }

    /// The files of the session, with the lengths of their contents.
    pub fn forgettable_files(&self) -> Result<Vec<ForgottenFile>, FileError> {
        let listed = self.listed_files()?.unwrap_or_default();
        let file = |(name, listed): (&str, &super::journal::ListedFile)| {
            let size = store_fs::file_length(&self.path.join(name)).unwrap_or(0);
            // A log is listed before its first record.
            let length = if listed.state == FileState::Open { size } else { listed.length };
            ForgottenFile { file: name.to_owned(), length }
        };
        Ok(listed.iter().map(file).collect())
    }

    /// The tombstone for masking the parts of a plan; `None` if the plan has none.
    pub fn tombstone_for_parts(
        &self,
        request: &ForgetRequest,
        plan: &MaskPlan,
        entries: Vec<u64>,
    ) -> Result<Option<Tombstone>, FileError> {
        if plan.is_empty() {
            return Ok(None);
        }
        let key = ForgetKey::read_or_create(self.vault_root())?;
        let texts = plan.units.iter().map(|(unit, masks)| key.print_unit(unit, masks.clone()));
        let files = plan.files.iter().map(|(file, ranges)| MaskedFile {
            file: file.clone(),
            ranges: merge_ranges(ranges.clone()),
        });
        let parts = ForgottenParts {
            entries,
            files: files.collect(),
            notes: plan.notes,
            texts: texts.collect(),
        };
        Ok(Some(request.to_tombstone(self, ForgottenScope::Parts(parts))))
    }

    /// Removes all files of the session, and its folder.
    pub(super) fn remove_all_files(&self) -> Result<(), FileError> {
        let listed = self.listed_files()?.unwrap_or_default();
        if !self.exists() && listed.is_empty() {
            return Ok(());
        }
        let mut commit = self.begin_commit();
        commit.lock_session(self)?;
        let listed = self.listed_files()?.unwrap_or_default();
        for (name, _) in listed.iter() {
            let removed = self.new_journal_line(FileState::Removed);
            commit.add_line(self, JournalLine { file: name.to_owned(), ..removed });
        }
        commit.finish_locked()?;
        store_fs::remove_dir_all(self.path()).on("remove", self.path())?;
        store_fs::remove_session_key(self.path())?;
        let agent = durable::parent_folder(self.path());
        // Other sessions of the agent keep the folder.
        let _ = store_fs::remove_dir(agent);
        store_fs::sync_dir(if store_fs::exists(agent) { agent } else { self.vault_root() })
    }

    /// Masks the parts of a tombstone in the session's files and notes.
    fn mask_parts(&self, tombstone: &Tombstone, parts: &ForgottenParts) -> Result<(), FileError> {
        if !self.exists() {
            // The whole session was forgotten since.
            return Ok(());
        }
        let mut commit = self.begin_commit();
        commit.lock_session(self)?;
        for masked in &parts.files {
            self.mask_file_ranges(masked, &tombstone.short_id(), &mut commit)?;
        }
        commit.finish_locked()?;
        store_fs::sync_dir(self.path())?;
        drop(commit);
        match parts.notes {
            0 => Ok(()),
            _ => self.mask_notes(&*self.forgotten_texts()?),
        }
    }

    fn mask_file_ranges(
        &self,
        masked: &MaskedFile,
        tombstone: &str,
        commit: &mut VaultCommit,
    ) -> Result<(), FileError> {
        let Some((stem, generation)) = parse_sealed_name(&masked.file) else { return Ok(()) };
        self.sealed_file_ref(&stem, generation)?.finish_rename()?;
        let mut sealed = self.open_sealed(&stem, generation)?;
        if SealedWriter::needs_upgrade(&sealed) {
            let mut writer = SealedWriter::open(&self.sealed_file_ref(&stem, generation)?)?;
            commit.add_file(self, writer.finish()?);
            commit.finish_locked()?;
            sealed = self.open_sealed(&stem, generation)?;
        }
        let present = sealed.mask_summary()?.ranges;
        let all = merge_ranges(present.iter().chain(&masked.ranges).copied().collect());
        if all == present {
            return Ok(());
        }
        let edits = match stem == RECORD_FILE {
            true => record_edits::edit_record(
                self.open_sealed(&stem, generation)?,
                &masked.ranges,
                tombstone,
            )?,
            false => {
                let mask = |(offset, length): &(u64, u64)| mask_edit(*offset, *length, tombstone);
                masked.ranges.iter().map(mask).collect()
            }
        };
        commit.add_file(self, sealed.write_edited(&edits)?);
        Ok(())
    }

    /// Whether the session has a file that other sessions share, or shares one that another session has.
    pub fn shares_files(&self) -> Result<bool, FileError> {
        for (stem, generation) in self.newest_generations()? {
            let Ok(sealed) = self.open_sealed(&stem, generation) else { continue };
            let header = sealed.header();
            let is_shared_bytes = header.form == ContentForm::Bytes && header.key.is_some();
            if header.form == ContentForm::Pointer || is_shared_bytes {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn mask_edit(offset: u64, length: u64, tombstone: &str) -> ByteEdit {
    let bytes = make_mask(tombstone, usize::try_from(length).unwrap_or_default());
    ByteEdit { offset, bytes, is_forgotten: true }
}

/// A sealed file for reading its units; `None` for pointers and files without content.
fn has_units(sealed: &SealedFile) -> bool {
    let header = sealed.header();
    !header.gone && header.form != ContentForm::Pointer
}
