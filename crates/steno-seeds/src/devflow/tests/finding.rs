//! Finding runs at any depth, reading them, and writing without overwriting others.

use std::fs;

use super::super::*;
use super::at;
use steno_model::entry::{Entry, EntryKind, Role};
use steno_model::session::{Session, SessionId};

fn sample(content: &str) -> Transcript {
    let mut session = Session::new("s1".parse::<SessionId>().unwrap(), "claude");
    session.started = Some(at("2026-01-05T09:15:32Z"));
    let mut transcript = Transcript::new(session);
    transcript.push(Entry::new(Role::User, EntryKind::Text, content));
    transcript
}

#[test]
fn runs_are_found_at_any_depth_and_as_single_files() {
    let dir = tempfile::tempdir().unwrap();
    let deep = dir.path().join(".devflow/runs");
    let folder = write_run(&sample("Hi"), &deep, RunFileShape::Shipped).unwrap();
    fs::create_dir(dir.path().join("noise")).unwrap();
    fs::write(dir.path().join("noise/transcript.json"), "{\"chat\": 1}").unwrap();
    let file = folder.join("transcript.json");
    for path in [dir.path(), &deep, &folder, &file] {
        let found = READER.find_at(path).unwrap();
        assert_eq!(found.len(), 1, "{}", path.display());
        let transcript = read_run(&found[0]).unwrap();
        assert_eq!(transcript.entries[0].content, "Hi");
        assert_eq!(transcript.session.id.as_str(), "2026-01-05-claude-s1");
        let original = restore_original(transcript).session;
        assert_eq!((original.id.as_str(), original.agent.as_str()), ("s1", "claude"));
    }
    assert_eq!(READER.find_at(&dir.path().join("noise")).unwrap().len(), 0);
    assert!(READER.find_at(&dir.path().join("missing")).is_err());
}

#[test]
fn the_same_bytes_give_the_same_entries() {
    let dir = tempfile::tempdir().unwrap();
    write_run(&sample("Hi"), dir.path(), RunFileShape::Adr011).unwrap();
    let found = READER.find_at(dir.path()).unwrap();
    assert_eq!(read_run(&found[0]).unwrap(), read_run(&found[0]).unwrap());
}

#[test]
fn only_an_earlier_state_is_replaced() {
    let dir = tempfile::tempdir().unwrap();
    let folder = write_run(&sample("Hi"), dir.path(), RunFileShape::Shipped).unwrap();
    let before = fs::read(folder.join("transcript.json")).unwrap();
    let refused = write_run(&sample("Other"), dir.path(), RunFileShape::Shipped).unwrap_err();
    assert_eq!(refused.to_string(), "run already exists: 2026-01-05-claude-s1");
    assert_eq!(fs::read(folder.join("transcript.json")).unwrap(), before);
    let mut grown = sample("Hi");
    grown.push(Entry::new(Role::Assistant, EntryKind::Text, "Hello"));
    write_run(&grown, dir.path(), RunFileShape::Shipped).unwrap();
    let found = READER.find_at(dir.path()).unwrap();
    assert_eq!(read_run(&found[0]).unwrap().entries.len(), 2);
}

#[test]
fn a_name_from_a_file_never_leads_out() {
    let dir = tempfile::tempdir().unwrap();
    let evil = b"{\"runId\":\"../../evil\",\"metadata\":{\"flowId\":\"f\"},\"turns\":[]}";
    let source = SessionFile::in_memory("transcript.json", "x/transcript.json", evil.to_vec());
    let bundle = SessionBundle::new("x", vec![source]);
    let transcript = read_run(&bundle).unwrap();
    assert!(matches!(
        write_run(&transcript, dir.path(), RunFileShape::Shipped),
        Err(RunStoreError::Id(_))
    ));
}

#[cfg(unix)]
#[test]
fn links_are_not_followed_and_files_are_private() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let dir = tempfile::tempdir().unwrap();
    let folder = write_run(&sample("Hi"), &dir.path().join("real"), RunFileShape::Shipped).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    assert_eq!(mode(&folder.join("transcript.json")), 0o600);
    assert_eq!(mode(&folder.join("metadata.json")), 0o600);
    let other = tempfile::tempdir().unwrap();
    symlink(dir.path(), other.path().join("link")).unwrap();
    assert_eq!(READER.find_at(other.path()).unwrap().len(), 0);
}
