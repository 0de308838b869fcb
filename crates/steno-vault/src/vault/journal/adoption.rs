//! Creates the journal of a vault that has none, from the files in its folders.

use std::path::Path;

use super::{FileState, JournalLine};
use crate::vault::notes::NOTES_FILE;
use crate::vault::sealed::SealedFile;
use crate::vault::{SessionDir, Vault, frame, parse_sealed_name};
use steno_model::durable::FileError;

/// The first lines of a new journal.
pub(super) fn adopt_vault(root: &Path) -> Result<Vec<JournalLine>, FileError> {
    let mut lines = Vec::new();
    for dir in Vault::new(root).list_sessions()? {
        let is_of_a_journal = adopt_session(&dir, &mut lines)?;
        if is_of_a_journal && lines.first().is_none_or(|line| line.state != FileState::Restarted) {
            let (session, file) = (String::new(), super::JOURNAL_FILE.to_owned());
            let state = FileState::Restarted;
            let line = JournalLine { session, file, state, length: 0, size: None, link: None };
            lines.insert(0, line);
        }
    }
    Ok(lines)
}

/// Adds the files of a session. Returns whether a lost journal must have listed them.
fn adopt_session(dir: &SessionDir, lines: &mut Vec<JournalLine>) -> Result<bool, FileError> {
    let mut is_of_a_journal = false;
    let mut names = crate::vault::list_names(dir.path())?;
    // Files that a version 0.1 manifest names stay listed as missing.
    names.extend(dir.listed_by_manifest().unwrap_or_default());
    names.sort();
    names.dedup();
    for file in names {
        let line = |state| JournalLine { file: file.clone(), ..dir.new_journal_line(state) };
        if parse_sealed_name(&file).is_some() {
            let sealed = SealedFile::open(&dir.path().join(&file)).ok();
            is_of_a_journal |=
                sealed.as_ref().is_some_and(|sealed| sealed.version() == frame::FORMAT_VERSION);
            lines.push(match sealed {
                Some(sealed) => {
                    let ((length, chain), size) = (sealed.chain_end(), sealed.complete_size());
                    JournalLine { length, size, link: Some(chain.into()), ..line(FileState::Kept) }
                }
                None => line(FileState::Kept),
            });
        } else if file == NOTES_FILE || SessionDir::parse_live_log_base(&file).is_some() {
            lines.push(line(FileState::Open));
        }
    }
    Ok(is_of_a_journal)
}
