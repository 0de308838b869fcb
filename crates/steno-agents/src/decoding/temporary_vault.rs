//! Test helper: checks that sessions of a file with several sessions read the same from the vault as from the file.

use std::fs;
use std::path::Path;

use crate::reader;

use crate::reader::{FormatReader, FoundSession};
use steno_model::session::Transcript;
use steno_vault::{SessionDir, Vault};

/// A vault, removed on drop.
pub(crate) struct TemporaryVault {
    folder: tempfile::TempDir,
}

impl TemporaryVault {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    /// The vault folder of a session.
    pub(crate) fn session_dir(&self, agent: &str, id: &str) -> SessionDir {
        let vault = Vault::new(self.folder.path().join("vault"));
        vault.session_dir(&agent.parse().unwrap(), &id.parse().unwrap())
    }

    /// Keeps a session. Returns its folder and the number of new bytes.
    pub(crate) fn keep_session(&self, found: &FoundSession) -> (SessionDir, u64) {
        let transcript = found.read_transcript().unwrap();
        let dir = self.session_dir(found.reader.agent, transcript.session.id.as_str());
        let added = dir.keep_session(&found.bundle).unwrap();
        (dir, added)
    }
}

/// Reads a kept session.
pub(crate) fn read_kept(reader: &FormatReader, dir: &SessionDir) -> Transcript {
    reader::read_transcript(reader, &dir.kept_bundle().unwrap()).unwrap()
}

/// All sessions that a reader finds at a path.
fn find_all(reader: &'static FormatReader, path: &Path) -> Vec<FoundSession> {
    let bundles = reader.find_at(path).unwrap();
    bundles.into_iter().map(|bundle| FoundSession { reader, bundle }).collect()
}

/// Keeps all sessions at a path, removes the file, and compares them with those read from the vault. Returns their
/// number.
pub(crate) fn check_kept_sessions(reader: &'static FormatReader, path: &Path) -> usize {
    let vault = TemporaryVault::new();
    let sessions: Vec<(SessionDir, Transcript)> = find_all(reader, path)
        .iter()
        .map(|found| {
            let (dir, added) = vault.keep_session(found);
            assert!(added > 0);
            assert_eq!(vault.keep_session(found).1, 0, "kept again");
            (dir, reader::read_transcript(reader, &found.bundle).unwrap())
        })
        .collect();
    fs::remove_file(path).unwrap();
    for (dir, before) in &sessions {
        let after = read_kept(reader, dir);
        assert_eq!(after.entries, before.entries);
        assert_eq!(after.problems, before.problems);
        assert_eq!(after.session, before.session);
        assert!(dir.verify().unwrap().damage.is_empty());
    }
    sessions.len()
}
