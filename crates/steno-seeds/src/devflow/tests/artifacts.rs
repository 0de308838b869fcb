//! Saving, listing, loading and removing artifacts, and single archives.

use std::fs;
use std::path::Path;

use super::super::*;
use super::clock;

const NOW: &str = "2025-03-01T00:00:00Z";

fn store(dir: &Path) -> (RunStore, RunId) {
    let store = RunStore::open(dir, clock(NOW)).unwrap();
    let new =
        NewRun { flow: "f".to_owned(), identifier: Some("n".to_owned()), ..NewRun::default() };
    let id = store.start_run(&new).unwrap();
    store.complete_run(&id).unwrap();
    (store, id)
}

fn stored(store: &RunStore, id: &RunId, name: &str) -> bool {
    store.run_folder(id).join("artifacts").join(name).exists()
}

#[test]
fn large_texts_are_compressed_and_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let (store, id) = store(dir.path());
    let save = |name: &str, size: usize| store.save_artifact(&id, name, &vec![b'x'; size]).unwrap();
    save("spec.md", 10 * 1024 - 1);
    assert!(stored(&store, &id, "spec.md"));
    save("spec.md", 10 * 1024);
    assert!(stored(&store, &id, "spec.md.gz") && !stored(&store, &id, "spec.md"));
    save("shot.PNG", 20_000);
    assert!(stored(&store, &id, "shot.PNG"));
    store.save_file(&id, "api/handler.go", &[b'x'; 20_000]).unwrap();
    assert!(stored(&store, &id, "files/api/handler.go"));
    save("data.tar.gz", 3);
    let listed: Vec<_> = store
        .list_artifacts(&id)
        .unwrap()
        .into_iter()
        .map(|it| (it.name, it.kind, it.compressed))
        .collect();
    let expected = [
        ("data.tar.gz", "binary", false),
        ("files/api/handler.go", "code", false),
        ("shot.PNG", "binary", false),
        ("spec.md", "specification", true),
    ];
    assert_eq!(listed, expected.map(|(name, kind, packed)| (name.to_owned(), kind, packed)));
    assert_eq!(store.load_artifact(&id, "spec.md").unwrap(), vec![b'x'; 10 * 1024]);
    assert_eq!(store.load_artifact(&id, "data.tar.gz").unwrap(), b"xxx");
    assert_eq!(store.load_artifact(&id, "files/api/handler.go").unwrap().len(), 20_000);
    save("spec.md", 5);
    assert!(stored(&store, &id, "spec.md") && !stored(&store, &id, "spec.md.gz"));
    assert_eq!(store.artifact_info(&id, "spec.md").unwrap().size, 5);
}

#[test]
fn artifacts_are_removed_in_whichever_form() {
    let dir = tempfile::tempdir().unwrap();
    let (store, id) = store(dir.path());
    for size in [5, 50_000] {
        store.save_artifact(&id, "a.txt", &vec![b'x'; size]).unwrap();
        store.delete_artifact(&id, "a.txt").unwrap();
        assert_eq!(store.list_artifacts(&id).unwrap(), []);
        let error = store.delete_artifact(&id, "a.txt").unwrap_err().to_string();
        assert_eq!(error, "artifact not found: a.txt of 2025-03-01-f-n");
    }
    let error = store.load_artifact(&id, "a.txt").unwrap_err().to_string();
    assert_eq!(error, "artifact not found: a.txt of 2025-03-01-f-n");
    fs::create_dir_all(store.run_folder(&id).join("artifacts")).unwrap();
    fs::write(store.run_folder(&id).join("artifacts/a.txt.gz"), b"no gzip").unwrap();
    let error = store.load_artifact(&id, "a.txt").unwrap_err().to_string();
    assert!(
        error.starts_with("artifact is corrupt: ") && error.contains("corrupt gzip"),
        "{error}"
    );
}

#[test]
fn names_stay_in_the_run() {
    let dir = tempfile::tempdir().unwrap();
    let (store, id) = store(dir.path());
    for name in ["", "..", "../x", "/etc/passwd", "a/../../x", "./a", "a/"] {
        let error = store.save_artifact(&id, name, b"x").unwrap_err();
        assert!(matches!(error, RunStoreError::Unsafe { .. }), "{name}: {error}");
        assert!(store.load_artifact(&id, name).is_err());
    }
    #[cfg(unix)]
    {
        let out = tempfile::tempdir().unwrap();
        fs::create_dir_all(store.run_folder(&id).join("artifacts")).unwrap();
        let link = store.run_folder(&id).join("artifacts/link");
        std::os::unix::fs::symlink(out.path(), &link).unwrap();
        assert!(store.save_artifact(&id, "link/x", b"x").is_err());
        assert_eq!(fs::read_dir(out.path()).unwrap().count(), 0);
        assert_eq!(store.list_artifacts(&id).unwrap(), []);
    }
}

#[test]
fn one_archive_is_deleted_and_no_other() {
    let dir = tempfile::tempdir().unwrap();
    let (store, first) = store(dir.path());
    let second: RunId = "2025-03-01-g-m".parse().unwrap();
    store.start_run_as(&second, &NewRun::default()).unwrap();
    store.complete_run(&second).unwrap();
    store.archive_run(&first).unwrap();
    store.archive_run(&second).unwrap();
    assert_eq!(store.list_archives().unwrap(), [first.clone(), second.clone()]);
    store.delete_archive(&first).unwrap();
    assert_eq!(store.list_archives().unwrap(), [second]);
    let error = store.delete_archive(&first).unwrap_err().to_string();
    assert_eq!(error, "archive not found: 2025-03-01-f-n");
}

#[test]
fn runs_are_found_by_their_tokens() {
    let dir = tempfile::tempdir().unwrap();
    let store = RunStore::open(dir.path(), clock(NOW)).unwrap();
    for (name, tokens) in [("a", 10), ("b", 20), ("c", 30)] {
        let id: RunId = name.parse().unwrap();
        store.start_run_as(&id, &NewRun::default()).unwrap();
        store.record_turn(&id, RunTurn::new("user", "x", tokens)).unwrap();
        store.complete_run(&id).unwrap();
    }
    let found = |least, most| {
        let tokens_in = TokenRange { least, most };
        let runs = store.list_runs(&RunFilter { tokens_in, ..RunFilter::default() }).unwrap();
        runs.into_iter().map(|run| run.run_id).collect::<Vec<_>>()
    };
    assert_eq!(found(Some(20), None), ["c", "b"]);
    assert_eq!(found(Some(20), Some(20)), ["b"]);
    assert_eq!(found(None, Some(19)), ["a"]);
}
