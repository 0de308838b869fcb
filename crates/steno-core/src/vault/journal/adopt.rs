//! Creates the journal of a vault that has none, from the files in its folders.

use std::path::Path;

use super::{FileState, JournalLine};
use crate::durable::FileError;
use crate::vault::frame;
use crate::vault::notes::NOTES;
use crate::vault::sealed::Sealed;
use crate::vault::{SessionDir, Vault, kept_file};

/// The first lines of a new journal.
pub(super) fn lines_of_vault(root: &Path) -> Result<Vec<JournalLine>, FileError> {
    let mut lines = Vec::new();
    for dir in Vault::new(root).sessions()? {
        let is_of_a_journal = adopt_session(&dir, &mut lines)?;
        if is_of_a_journal && lines.first().is_none_or(|line| line.state != FileState::Restarted) {
            let (session, file) = (String::new(), super::JOURNAL.to_owned());
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
    let mut names = crate::vault::entries(dir.path())?;
    // Files that a version 0.1 manifest names stay listed as missing.
    names.extend(dir.listed_by_manifest().unwrap_or_default());
    names.sort();
    names.dedup();
    for file in names {
        let line = |state| JournalLine { file: file.clone(), ..dir.journal_line(state) };
        if kept_file(&file).is_some() {
            let sealed = Sealed::open(&dir.path().join(&file)).ok();
            is_of_a_journal |=
                sealed.as_ref().is_some_and(|sealed| sealed.version() == frame::VERSION);
            lines.push(match sealed {
                Some(sealed) => {
                    let ((length, chain), size) = (sealed.end(), sealed.whole_size());
                    JournalLine { length, size, link: Some(chain.into()), ..line(FileState::Kept) }
                }
                None => line(FileState::Kept),
            });
        } else if file == NOTES || SessionDir::live_base(&file).is_some() {
            lines.push(line(FileState::Open));
        }
    }
    Ok(is_of_a_journal)
}
