//! Finds the last known content of each session file, including deleted ones.

use std::path::Path;

use super::SessionDir;
use super::comparison::{KeptComparison, compare_bytes, uncompressed_name};
use super::frame::ContentForm;
use super::read::bytes_as_session_file;
use super::sealed::{SealedFile, SharedProblems};
use steno_model::durable::FileError;
use steno_model::problem::Problem;

impl SessionDir {
    /// The last generation with content of every session file, as name stem and generation.
    ///
    /// Includes deleted files, unless another file holds their content: then the file was moved or compressed.
    pub(super) fn last_generations(&self) -> Result<Vec<(String, u32)>, FileError> {
        let (mut present, mut gone) = (Vec::new(), Vec::new());
        for (stem, newest) in self.newest_generations()? {
            if !self.is_marked_gone(&stem, newest) {
                present.push((stem, newest));
                continue;
            }
            let last = (0..newest).rev().find(|earlier| !self.is_marked_gone(&stem, *earlier));
            gone.extend(last.map(|last| (stem, last)));
        }
        for (stem, generation) in gone {
            if !self.is_held_elsewhere(&stem, generation, &present)? {
                present.push((stem, generation));
            }
        }
        present.sort();
        Ok(present)
    }

    /// Damage at the start of the files that the next write would continue. It starts new generations instead.
    pub fn find_damaged_beginnings(&self) -> Result<Vec<Problem>, FileError> {
        let mut damage = Vec::new();
        for (stem, generation) in self.newest_generations()? {
            let path = self.sealed_path(&stem, generation);
            let checked = self.open_sealed(&stem, generation).and_then(|mut sealed| {
                // An interrupted write is not damage.
                let is_torn = sealed.torn_bytes().is_some() && sealed.frame_count() == 0;
                if is_torn { Ok(()) } else { sealed.check_first_frame() }
            });
            damage.extend(checked.err().map(|error| Problem::damage_in_file(&path, error.source)));
        }
        Ok(damage)
    }

    /// Whether a generation only marks its file as gone, or is missing itself. The first generation never is.
    fn is_marked_gone(&self, stem: &str, generation: u32) -> bool {
        let is_missing = |error: FileError| error.is_missing();
        let opened = || self.open_sealed(stem, generation);
        generation > 0 && opened().map_or_else(is_missing, |sealed| sealed.header().gone)
    }

    /// Whether a file with the same base name, perhaps compressed, holds everything that a deleted file held.
    fn is_held_elsewhere(
        &self,
        stem: &str,
        generation: u32,
        present: &[(String, u32)],
    ) -> Result<bool, FileError> {
        let Ok(gone) = self.open_sealed(stem, generation) else { return Ok(false) };
        for (stem, generation) in present {
            let Ok(other) = self.open_sealed(stem, *generation) else { continue };
            if !may_hold(&other, &gone) {
                continue;
            }
            let other = bytes_as_session_file(&other, &SharedProblems::default());
            let comparison = compare_bytes(gone.file_ref().open()?, &other)?;
            if matches!(comparison, KeptComparison::Same | KeptComparison::More) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn may_hold(other: &SealedFile, gone: &SealedFile) -> bool {
    let is_bytes = [other, gone].iter().all(|sealed| sealed.header().form == ContentForm::Bytes);
    is_bytes && gone.length() > 0 && base_name(other) == base_name(gone)
}

fn base_name(sealed: &SealedFile) -> Option<&str> {
    Path::new(uncompressed_name(&sealed.header().name)).file_name()?.to_str()
}
