//! Tests of `steno restore`.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::harness::Home;

/// Folder of the imported run: not a session folder of an agent, so `--to` is needed.
const RUN: &str = "out/runs/2026-01-05-mine-s";

/// An imported run with old modification times.
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
    let run = home.path().join(RUN);
    let path = run.join("transcript.json");
    let before = fs::read(&path).unwrap();
    fs::remove_dir_all(home.path().join("out")).unwrap();
    insta::assert_snapshot!(home.steno(&["restore", "2026", "--to", RUN]), @"
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
    let path = home.path().join(RUN).join("transcript.json");
    fs::remove_file(path.with_file_name("metadata.json")).unwrap();
    fs::write(&path, "mine").unwrap();
    insta::assert_snapshot!(home.steno(&["restore", "2026", "--to", RUN]), @"
    --- stderr
    error: another file exists: $HOME/out/runs/2026-01-05-mine-s/transcript.json
    hint: use --force to replace it, or --to DIR
    --- exit 1
    ");
    assert!(!path.with_file_name("metadata.json").exists(), "nothing was written");
    insta::assert_snapshot!(home.steno(&["restore", "2026", "--force", "--to", RUN]), @"
    $HOME/out/runs/2026-01-05-mine-s/metadata.json
    $HOME/out/runs/2026-01-05-mine-s/transcript.json
    --- stderr
    saved the previous $HOME/out/runs/2026-01-05-mine-s/transcript.json as $HOME/out/runs/2026-01-05-mine-s/transcript.json.steno-backup
    --- exit 0
    ");
    assert_ne!(fs::read(&path).unwrap(), b"mine");
    let backup = path.with_file_name("transcript.json.steno-backup");
    assert_eq!(fs::read(&backup).unwrap(), b"mine");
    fs::write(&path, "mine again").unwrap();
    home.steno(&["restore", "2026", "--force", "--to", RUN]).ok();
    assert_eq!(fs::read(&backup).unwrap(), b"mine");
    assert_eq!(fs::read(backup.with_extension("steno-backup.1")).unwrap(), b"mine again");
    insta::assert_snapshot!(home.steno(&["restore", "s"]), @"
    --- stderr
    error: the session was recorded live, so it has no files to restore
    hint: use `steno export` to write it in another format
    --- exit 1
    ");
}

#[cfg(unix)]
#[test]
fn modes_and_times_far_away_come_back() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new();
    let line = b"{\"role\":\"user\",\"content\":\"hello\"}\n";
    home.steno_with(&["record", "--agent", "mine", "--session", "s"], line).ok();
    home.steno(&["export", "s", "--format", "devflow", "-o", "out"]).ok();
    let run = home.path().join(RUN);
    let [open, closed] = ["metadata.json", "transcript.json"].map(|name| run.join(name));
    let far = SystemTime::UNIX_EPOCH + Duration::from_secs(10_400_000_000);
    fs::File::options().write(true).open(&open).unwrap().set_modified(far).unwrap();
    let far = fs::metadata(&open).unwrap().modified().unwrap();
    for (path, mode) in [(&open, 0o644), (&closed, 0o600)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    let mut sync = home.command(&["sync", "out"]);
    sync.env("STENO_NOW", "2026-01-05T09:15:32.5Z");
    home.finish(sync, b"").ok();
    fs::remove_dir_all(home.path().join("out")).unwrap();
    home.steno(&["restore", "2026", "--to", RUN]).ok();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&open), mode(&closed), mode(&run)), (0o644, 0o600, 0o700));
    assert_eq!(fs::metadata(&open).unwrap().modified().unwrap(), far);
    home.steno(&["verify"]).ok();
}

#[test]
fn what_a_killed_run_left_is_removed() {
    let (home, _) = imported();
    let folders = [RUN, "store", "store/vault/devflow/2026-01-05-mine-s"];
    let left = folders.map(|folder| home.file(&format!("{folder}/.steno-x1.tmp"), "half"));
    fs::remove_file(home.path().join(folders[0]).join("transcript.json")).unwrap();
    home.steno(&["restore", "2026", "--to", RUN]).ok();
    assert_eq!(left.each_ref().map(|path| path.exists()), [false, true, true]);
    home.steno(&["import", "out"]).ok();
    assert!(!left.iter().any(|path| path.exists()));
}

#[test]
fn a_damaged_header_does_not_decide_target_paths() {
    let (home, _) = imported();
    let folder = home.path().join("store/vault/devflow/2026-01-05-mine-s");
    let kept = folder.join("metadata.json.zst");
    let mut bytes = fs::read(&kept).unwrap();
    let at = bytes.windows(4).position(|window| window == b"runs").unwrap();
    bytes[at] = b'g';
    fs::write(&kept, bytes).unwrap();
    fs::remove_dir_all(home.path().join("out")).unwrap();
    insta::assert_snapshot!(home.steno(&["restore", "2026"]), @"
    --- stderr
    error: could not read $HOME/store/vault/devflow/2026-01-05-mine-s/metadata.json.zst
    caused by: its header was changed
    hint: run `steno verify` to find other damage
    --- exit 1
    ");
    assert!(!home.path().join("out").exists());
}

#[test]
fn a_backup_is_no_session() {
    let home = Home::new();
    let line = r#"{"type":"user","uuid":"u1","parentUuid":null,"isSidechain":false,"cwd":"/p","sessionId":"1b4e28ba-2fa1-41d2-883f-0016d3cca427","version":"2.1.0","timestamp":"2026-01-05T09:15:31.000Z","message":{"role":"user","content":"prompt"}}"#;
    let file = ".claude/projects/-p/1b4e28ba-2fa1-41d2-883f-0016d3cca427.jsonl";
    let path = home.file(file, format!("{line}\n"));
    home.steno(&["sync"]).ok();
    home.file(file, format!("{}\n", line.replace("prompt", "another")));
    home.steno(&["restore", "1b4e", "--force"]).ok();
    assert!(path.with_extension("jsonl.steno-backup").is_file());
    let found = home.steno(&["inspect", ".claude", "--json"]).ok();
    assert_eq!(found.lines().count(), 1, "{found}");
}

#[test]
fn what_a_file_held_before_it_was_rewritten_comes_back_beside_it() {
    let home = Home::new();
    let line = r#"{"type":"user","uuid":"u1","parentUuid":null,"isSidechain":false,"cwd":"/p","sessionId":"1b4e28ba-2fa1-41d2-883f-0016d3cca427","version":"2.1.0","timestamp":"2026-01-05T09:15:31.000Z","message":{"role":"user","content":"prompt"}}"#;
    let file = ".claude/projects/-p/1b4e28ba-2fa1-41d2-883f-0016d3cca427.jsonl";
    let versions = ["first", "the second", "one more"].map(|text| line.replace("prompt", text));
    for version in &versions {
        home.file(file, format!("{version}\n"));
        home.steno(&["sync"]).ok();
    }
    fs::remove_dir_all(home.path().join(".claude")).unwrap();
    assert_eq!(home.steno(&["restore", "1b4e"]).ok().lines().count(), 1);
    assert_eq!(home.steno(&["restore", "1b4e", "--earlier"]).ok().lines().count(), 3);
    assert_eq!(
        home.steno(&["restore", "1b4e", "--earlier", "--to", "copy"]).ok().lines().count(),
        3
    );
    let id = "1b4e28ba-2fa1-41d2-883f-0016d3cca427";
    let ends = [".jsonl", ".jsonl.steno-earlier.0", ".jsonl.steno-earlier.1"];
    let listed: String = ends.iter().map(|end| format!("{id}{end}\n")).collect();
    assert_eq!(home.steno(&["cat", "1b4e", "--list"]).ok(), listed);
    assert_eq!(home.steno(&["cat", "1b4e"]).ok(), format!("{}\n", versions[2]));
    for (end, version) in ends.iter().zip([2, 0, 1]) {
        let printed = home.steno(&["cat", "1b4e", &format!("{id}{end}")]).ok();
        assert_eq!(printed, format!("{}\n", versions[version]), "{end}");
    }
    let names = ["", ".steno-earlier.0", ".steno-earlier.1"].map(|end| format!("{file}{end}"));
    for (name, version) in names.iter().zip([2, 0, 1]) {
        let there = fs::read_to_string(home.path().join(name)).unwrap();
        assert_eq!(there, format!("{}\n", versions[version]), "{name}");
    }
    let found = home.steno(&["inspect", ".claude", "--json"]).ok();
    assert_eq!(found.lines().count(), 1, "{found}");
}

#[cfg(unix)]
#[test]
fn links_are_replaced_and_never_followed() {
    use std::os::unix::fs::symlink;
    let (home, _) = imported();
    let path = home.path().join(RUN).join("transcript.json");
    let elsewhere = home.file("elsewhere.json", "mine");
    fs::remove_file(&path).unwrap();
    for target in [elsewhere.as_path(), "nowhere".as_ref()] {
        symlink(target, &path).unwrap();
        let refused = home.steno(&["restore", "2026", "--to", RUN]);
        assert!(refused.stderr.contains("another file exists"), "{refused}");
        home.steno(&["restore", "2026", "--force", "--to", RUN]).ok();
        assert!(fs::symlink_metadata(&path).unwrap().is_file());
        assert_eq!(fs::read(&elsewhere).unwrap(), b"mine");
        fs::remove_file(&path).unwrap();
    }
    let backup = path.with_file_name("transcript.json.steno-backup.1");
    assert_eq!(fs::read_link(backup).unwrap(), Path::new("nowhere"));
    // Nor are a folder and other kinds of files replaced.
    fs::create_dir(&path).unwrap();
    let refused = home.steno(&["restore", "2026", "--force", "--to", RUN]);
    assert!(refused.stderr.contains("not a file: "), "{refused}");
}

#[cfg(target_os = "linux")]
#[test]
fn names_that_are_no_text_come_back() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let home = Home::new();
    let folder = home.path().join(".claude/projects").join(OsStr::from_bytes(b"-p\xff"));
    fs::create_dir_all(&folder).unwrap();
    let line = r#"{"type":"user","uuid":"u1","parentUuid":null,"isSidechain":false,"cwd":"/p","sessionId":"$ID","version":"2.1.0","timestamp":"2026-01-05T09:15:31.000Z","message":{"role":"user","content":"prompt"}}"#;
    let names: [&[u8]; 2] = [b"a\xfe.jsonl", b"a\xfd.jsonl"];
    let files = names.map(|name| folder.join(OsStr::from_bytes(name)));
    for (file, id) in files.iter().zip(["1b4e", "2b4e"]) {
        fs::write(file, line.replace("$ID", id) + "\n").unwrap();
    }
    home.steno(&["sync"]).ok();
    fs::remove_dir_all(&folder).unwrap();
    for (file, id) in files.iter().zip(["1b4e", "2b4e"]) {
        home.steno(&["restore", id]).ok();
        assert_eq!(fs::read_to_string(file).unwrap(), line.replace("$ID", id) + "\n");
        home.steno(&["restore", id, "--to", "copy"]).ok();
    }
    assert!(home.path().join("copy/a%FE.jsonl").is_file());
    assert!(home.path().join("copy/a%FD.jsonl").is_file());
    home.steno(&["verify"]).ok();
}
