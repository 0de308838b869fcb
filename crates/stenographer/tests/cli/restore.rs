//! `steno restore`.

use std::fs;
use std::time::{Duration, SystemTime};

use crate::harness::Home;

/// An imported run, whose files were changed long ago.
fn imported() -> (Home, SystemTime) {
    let home = Home::new();
    let line = b"{\"role\":\"user\",\"content\":\"hello\"}\n";
    home.steno_with(&["record", "--agent", "mine", "--session", "s"], line).ok();
    home.steno(&["export", "s", "--format", "devflow", "-o", "out"]).ok();
    let then = SystemTime::UNIX_EPOCH + Duration::new(1_700_000_000, 123_456_789);
    for name in ["metadata.json", "transcript.json"] {
        let path = home.path().join("out/runs/2026-01-05-mine-s").join(name);
        fs::File::options().write(true).open(path).unwrap().set_modified(then).unwrap();
    }
    home.steno(&["import", "out"]).ok();
    (home, then)
}

#[test]
fn files_come_back_with_their_bytes_and_times() {
    let (home, then) = imported();
    let run = home.path().join("out/runs/2026-01-05-mine-s");
    let path = run.join("transcript.json");
    let before = fs::read(&path).unwrap();
    fs::remove_dir_all(home.path().join("out")).unwrap();
    insta::assert_snapshot!(home.steno(&["restore", "2026"]), @"
    $HOME/out/runs/2026-01-05-mine-s/metadata.json
    $HOME/out/runs/2026-01-05-mine-s/transcript.json
    --- exit 0
    ");
    assert_eq!(fs::read(&path).unwrap(), before);
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), then);
    home.steno(&["restore", "2026", "--to", "copy"]).ok();
    assert_eq!(fs::read(home.path().join("copy/transcript.json")).unwrap(), before);
}

#[test]
fn other_content_is_not_replaced_unless_forced() {
    let (home, _) = imported();
    let path = home.path().join("out/runs/2026-01-05-mine-s/transcript.json");
    fs::remove_file(path.with_file_name("metadata.json")).unwrap();
    fs::write(&path, "mine").unwrap();
    insta::assert_snapshot!(home.steno(&["restore", "2026"]), @"
    --- stderr
    error: another file stands at: $HOME/out/runs/2026-01-05-mine-s/transcript.json
    hint: use --force to replace it, or --to DIR
    --- exit 1
    ");
    assert!(!path.with_file_name("metadata.json").exists(), "nothing was written");
    home.steno(&["restore", "2026", "--force"]).ok();
    assert_ne!(fs::read(&path).unwrap(), b"mine");
    insta::assert_snapshot!(home.steno(&["restore", "s"]), @"
    --- stderr
    error: the session was recorded, there are no files to put back
    --- exit 1
    ");
}
