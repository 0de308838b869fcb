//! Compares found session files with a kept session: the same, moved, copied, or different files of the same name.

use std::io::BufRead;

use super::frame::ContentForm;
use super::sealed::SealedFile;
use super::{SessionDir, encode_file_name, rows};
use crate::{FormatError, SessionBundle, SessionFile};
use steno_model::durable::FileError;

/// How found files compare to the kept ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeptComparison {
    /// Identical.
    Same,
    /// Everything kept, and more.
    More,
    /// Only a part of what is kept.
    Less,
    /// Different.
    Other,
}

impl KeptComparison {
    pub(super) fn from_differences(has_more: bool, has_less: bool) -> Self {
        match (has_more, has_less) {
            (false, false) => KeptComparison::Same,
            (true, false) => KeptComparison::More,
            (false, true) => KeptComparison::Less,
            (true, true) => KeptComparison::Other,
        }
    }
}

impl SessionDir {
    /// Compares a found session with the kept one. Changes nothing.
    ///
    /// JSON Lines files decide where there are any, because agents only append to them. Compression makes no
    /// difference. Ambiguous cases, such as a file shared by several sessions, count as different.
    pub fn compare_bundle(&self, bundle: &SessionBundle) -> Result<KeptComparison, FormatError> {
        // A session's own files contain more than any excerpt.
        if bundle.has_only_excerpts() {
            return Ok(KeptComparison::Less);
        }
        if self.has_only_excerpts()? || (!self.is_imported()? && self.is_wire_recording()?) {
            return Ok(KeptComparison::More);
        }
        let mut kept = Vec::new();
        for (stem, generation) in self.newest_generations()? {
            match self.open_sealed(&stem, generation) {
                Ok(sealed) if sealed.header().gone => {}
                Ok(sealed) if sealed.header().form == ContentForm::Excerpt => {}
                Ok(sealed) => kept.push(sealed),
                Err(_) => return Ok(KeptComparison::Other),
            }
        }
        let is_key = |sealed: &SealedFile| sealed.header().key == bundle.key;
        if bundle.shared_file().is_some() || !kept.iter().all(is_key) {
            return Ok(KeptComparison::Other);
        }
        if bundle.origin.is_some() {
            let log = kept.iter().find(|sealed| sealed.header().form == ContentForm::Rows);
            return log.map_or(Ok(KeptComparison::Other), |log| {
                rows::compare_rows(self, &log.file_ref(), bundle)
            });
        }
        Ok(self.compare_files(kept, &bundle.files_to_keep())?)
    }

    fn compare_files(
        &self,
        kept: Vec<SealedFile>,
        files: &[SessionFile],
    ) -> Result<KeptComparison, FileError> {
        let is_lines =
            |sealed: &SealedFile| uncompressed_name(&sealed.header().name).ends_with(".jsonl");
        let has_lines = kept.iter().any(|sealed| is_lines(sealed) && sealed.length() > 0);
        let is_kept = |file: &SessionFile| {
            kept.iter().any(|sealed| {
                uncompressed_name(&sealed.header().name) == uncompressed_name(file.name())
            })
        };
        let (mut has_more, mut has_less) = (!files.iter().all(is_kept), false);
        let mut is_shown = false;
        for sealed in kept {
            if sealed.header().form != ContentForm::Bytes {
                return Ok(KeptComparison::Other);
            }
            let decides = !has_lines || is_lines(&sealed);
            let name = uncompressed_name(&sealed.header().name);
            let file = files.iter().find(|file| uncompressed_name(file.name()) == name);
            is_shown |= decides && file.is_some() && sealed.length() > 0;
            let comparison = match file {
                Some(file) => self.compare_file(sealed, &self.masked_file(file)?)?,
                None => KeptComparison::Less,
            };
            match comparison {
                _ if !decides => {}
                KeptComparison::Same => {}
                KeptComparison::More => has_more = true,
                KeptComparison::Less => has_less = true,
                KeptComparison::Other => return Ok(KeptComparison::Other),
            }
        }
        Ok(if is_shown {
            KeptComparison::from_differences(has_more, has_less)
        } else {
            KeptComparison::Other
        })
    }

    /// Compares a file with the last generation, then with earlier ones.
    fn compare_file(
        &self,
        sealed: SealedFile,
        file: &SessionFile,
    ) -> Result<KeptComparison, FileError> {
        let (name, newest) = (encode_file_name(&sealed.header().name), sealed.header().generation);
        let comparison = compare_bytes(sealed, file)?;
        if comparison != KeptComparison::Other {
            return Ok(comparison);
        }
        for generation in 0..newest {
            let Ok(sealed) = self.open_sealed(&name, generation) else { continue };
            let is_bytes = sealed.header().form == ContentForm::Bytes && !sealed.header().gone;
            if is_bytes
                && matches!(
                    compare_bytes(sealed, file)?,
                    KeptComparison::Same | KeptComparison::Less
                )
            {
                return Ok(KeptComparison::Less);
            }
        }
        Ok(KeptComparison::Other)
    }
}

/// A file name without its compression suffix.
pub(super) fn uncompressed_name(name: &str) -> &str {
    name.strip_suffix(".zst").unwrap_or(name)
}

/// Compares a file with kept bytes up to the shorter end. Unreadable bytes count as different.
pub(super) fn compare_bytes(
    sealed: SealedFile,
    source: &SessionFile,
) -> Result<KeptComparison, FileError> {
    let input = crate::decompress_if_zstd(source.open()?);
    let (Ok(mut input), Ok(mut kept)) =
        (input, crate::decompress_if_zstd(Box::new(sealed.reader_from(0))))
    else {
        return Ok(KeptComparison::Other);
    };
    loop {
        let (Ok(found_bytes), Ok(kept_bytes)) = (input.fill_buf(), kept.fill_buf()) else {
            return Ok(KeptComparison::Other);
        };
        let common = found_bytes.len().min(kept_bytes.len());
        if common == 0 {
            return Ok(KeptComparison::from_differences(
                !found_bytes.is_empty(),
                !kept_bytes.is_empty(),
            ));
        }
        if found_bytes[..common] != kept_bytes[..common] {
            return Ok(KeptComparison::Other);
        }
        input.consume(common);
        kept.consume(common);
    }
}
