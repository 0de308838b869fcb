//! Sessions of the vault by their names.

use std::fs;

use steno_vault::{SessionDir, Vault};

#[test]
fn sessions_are_found_by_id_and_by_its_beginning() {
    let dir = tempfile::tempdir().unwrap();
    let vault = Vault::new(dir.path().join("vault"));
    assert!(!vault.has_sessions().unwrap());
    assert!(vault.sessions_with_id("ab").unwrap().is_empty());
    fs::create_dir_all(vault.root().join("codex")).unwrap();
    fs::write(vault.root().join("codex/ab-file"), "not a session").unwrap();
    assert!(!vault.has_sessions().unwrap());
    for name in ["claude-code/ab", "claude-code/abc", "codex/ab"] {
        fs::create_dir_all(vault.root().join(name)).unwrap();
    }
    let names = |sessions: Vec<SessionDir>| -> Vec<String> {
        sessions.iter().map(|dir| format!("{}/{}", dir.agent(), dir.id())).collect()
    };
    assert!(vault.has_sessions().unwrap());
    assert_eq!(names(vault.sessions_with_id("ab").unwrap()), ["claude-code/ab", "codex/ab"]);
    assert!(vault.sessions_with_id("a").unwrap().is_empty());
    assert!(vault.sessions_with_id("../codex/ab").unwrap().is_empty());
    let begin = names(vault.sessions_with_prefix("ab").unwrap());
    assert_eq!(begin, ["claude-code/ab", "claude-code/abc", "codex/ab"]);
    assert_eq!(names(vault.sessions_with_prefix("abc").unwrap()), ["claude-code/abc"]);
    #[cfg(unix)]
    {
        // A session may be elsewhere, on a larger disk.
        let elsewhere = dir.path().join("elsewhere");
        fs::create_dir(&elsewhere).unwrap();
        std::os::unix::fs::symlink(&elsewhere, vault.root().join("codex/abd")).unwrap();
        assert_eq!(names(vault.sessions_with_prefix("abd").unwrap()), ["codex/abd"]);
    }
}
