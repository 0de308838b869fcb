//! Compares found session files with a kept session: the same, moved, copied, or different files of the same name.

use std::io::BufRead;

use super::frame::Form;
use super::sealed::Sealed;
use super::{SessionDir, file_name, rows};
use crate::durable::FileError;
use steno_vault::FormatError;
use steno_vault::{self, Bundle, Source};

/// How found files compare to the kept ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Likeness {
    /// Identical.
    Same,
    /// Everything kept, and more.
    More,
    /// Only a part of what is kept.
    Less,
    /// Different.
    Other,
}

impl Likeness {
    pub(super) fn of(has_more: bool, has_less: bool) -> Self {
        match (has_more, has_less) {
            (false, false) => Likeness::Same,
            (true, false) => Likeness::More,
            (false, true) => Likeness::Less,
            (true, true) => Likeness::Other,
        }
    }
}

impl SessionDir {
    /// Compares a found session with the kept one. Changes nothing.
    ///
    /// JSON Lines files decide where there are any, because agents only append to them. Compression makes no
    /// difference. Ambiguous cases, such as a file shared by several sessions, count as different.
    pub fn likeness(&self, bundle: &Bundle) -> Result<Likeness, FormatError> {
        // A session's own files contain more than any excerpt.
        if bundle.is_only_told() {
            return Ok(Likeness::Less);
        }
        if self.is_only_told()? || (!self.is_imported()? && self.is_wire()?) {
            return Ok(Likeness::More);
        }
        let mut kept = Vec::new();
        for (stem, generation) in self.newest_files()? {
            match self.open_kept(&stem, generation) {
                Ok(sealed) if sealed.header().gone => {}
                Ok(sealed) if sealed.header().form == Form::Excerpt => {}
                Ok(sealed) => kept.push(sealed),
                Err(_) => return Ok(Likeness::Other),
            }
        }
        let is_key = |sealed: &Sealed| sealed.header().key == bundle.key;
        if bundle.shared_file().is_some() || !kept.iter().all(is_key) {
            return Ok(Likeness::Other);
        }
        if bundle.origin.is_some() {
            let log = kept.iter().find(|sealed| sealed.header().form == Form::Rows);
            return log.map_or(Ok(Likeness::Other), |log| rows::likeness(&log.kept(), bundle));
        }
        Ok(self.likeness_of_files(kept, &bundle.kept_sources())?)
    }

    fn likeness_of_files(
        &self,
        kept: Vec<Sealed>,
        files: &[Source],
    ) -> Result<Likeness, FileError> {
        let is_lines = |sealed: &Sealed| plain_name(&sealed.header().name).ends_with(".jsonl");
        let has_lines = kept.iter().any(|sealed| is_lines(sealed) && sealed.length() > 0);
        let is_kept = |file: &Source| {
            kept.iter().any(|sealed| plain_name(&sealed.header().name) == plain_name(file.name()))
        };
        let (mut has_more, mut has_less) = (!files.iter().all(is_kept), false);
        let mut is_shown = false;
        for sealed in kept {
            if sealed.header().form != Form::Bytes {
                return Ok(Likeness::Other);
            }
            let decides = !has_lines || is_lines(&sealed);
            let name = plain_name(&sealed.header().name);
            let file = files.iter().find(|file| plain_name(file.name()) == name);
            is_shown |= decides && file.is_some() && sealed.length() > 0;
            let comparison = match file {
                Some(file) => self.likeness_of_file(sealed, file)?,
                None => Likeness::Less,
            };
            match comparison {
                _ if !decides => {}
                Likeness::Same => {}
                Likeness::More => has_more = true,
                Likeness::Less => has_less = true,
                Likeness::Other => return Ok(Likeness::Other),
            }
        }
        Ok(if is_shown { Likeness::of(has_more, has_less) } else { Likeness::Other })
    }

    /// Compares a file with the last generation, then with earlier ones.
    fn likeness_of_file(&self, sealed: Sealed, file: &Source) -> Result<Likeness, FileError> {
        let (name, newest) = (file_name(&sealed.header().name), sealed.header().generation);
        let comparison = compare(sealed, file)?;
        if comparison != Likeness::Other {
            return Ok(comparison);
        }
        for generation in 0..newest {
            let Ok(sealed) = self.open_kept(&name, generation) else { continue };
            let is_bytes = sealed.header().form == Form::Bytes && !sealed.header().gone;
            if is_bytes && matches!(compare(sealed, file)?, Likeness::Same | Likeness::Less) {
                return Ok(Likeness::Less);
            }
        }
        Ok(Likeness::Other)
    }
}

/// A file name without its compression suffix.
pub(super) fn plain_name(name: &str) -> &str {
    name.strip_suffix(".zst").unwrap_or(name)
}

/// Compares a file with kept bytes up to the shorter end. Unreadable bytes count as different.
pub(super) fn compare(sealed: Sealed, source: &Source) -> Result<Likeness, FileError> {
    let input = steno_vault::unpacked(source.open()?);
    let (Ok(mut input), Ok(mut kept)) = (input, steno_vault::unpacked(Box::new(sealed.reader(0))))
    else {
        return Ok(Likeness::Other);
    };
    loop {
        let (Ok(found_bytes), Ok(kept_bytes)) = (input.fill_buf(), kept.fill_buf()) else {
            return Ok(Likeness::Other);
        };
        let common = found_bytes.len().min(kept_bytes.len());
        if common == 0 {
            return Ok(Likeness::of(!found_bytes.is_empty(), !kept_bytes.is_empty()));
        }
        if found_bytes[..common] != kept_bytes[..common] {
            return Ok(Likeness::Other);
        }
        input.consume(common);
        kept.consume(common);
    }
}
