//! Tests of `steno encrypt`, `steno decrypt` and `steno cat`.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;

use crate::harness::{Home, Output};

const ID: &str = "1b4e28ba-2fa1-41d2-883f-0016d3cca427";
const OTHER: &str = "2b4e28ba-2fa1-41d2-883f-0016d3cca427";

/// What no file or name of an encrypted store may contain.
const PLANTED: [&str; 6] =
    ["apricot", "plantedproject", "plantednote", "plantedrecord", "claude", "1b4e28ba"];

fn line(id: &str, n: u32, text: &str) -> String {
    let record = json!({"type": "user", "uuid": format!("00000000-0000-4000-8000-{n:012}"),
        "parentUuid": null, "isSidechain": false, "cwd": "/home/plantedproject", "sessionId": id,
        "version": "2.1.0", "timestamp": format!("2026-01-05T09:15:{:02}.000Z", n % 60),
        "message": {"role": "user", "content": text}});
    format!("{record}\n")
}

fn place(id: &str) -> String {
    format!(".claude/projects/-home-plantedproject/{id}.jsonl")
}

fn lines(id: &str, count: u32) -> String {
    (0..count).map(|n| line(id, n, &format!("apricot number {n}"))).collect()
}

/// A home with two sessions, a recording and a note.
fn filled() -> Home {
    let home = Home::new();
    home.file(&place(ID), lines(ID, 5));
    home.file(&place(OTHER), lines(OTHER, 3));
    home.steno(&["sync"]).ok();
    let record = b"{\"role\":\"user\",\"content\":\"plantedrecord\"}\n";
    home.steno_with(&["record", "--agent", "mybot"], record).ok();
    home.steno(&["annotate", ID, "plantednote"]).ok();
    home
}

fn key_path(home: &Home) -> PathBuf {
    home.path().join("key.txt")
}

/// Runs a command with the identity of the store.
fn with_key(home: &Home, args: &[&str]) -> Output {
    let mut command = home.command(args);
    command.env("STENO_IDENTITY", key_path(home));
    home.finish(command, b"")
}

fn encrypted() -> Home {
    let home = filled();
    home.steno(&["encrypt", "--new-identity", key_path(&home).to_str().unwrap()]).ok();
    home
}

fn store(home: &Home) -> PathBuf {
    home.vault().root().parent().unwrap().to_owned()
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap().flatten() {
        match entry.path() {
            path if path.is_dir() => files.extend(files_below(&path)),
            path => files.push(path),
        }
    }
    files
}

fn assert_nothing_planted(home: &Home) {
    let store = store(home);
    for path in files_below(&store) {
        let name = path.strip_prefix(&store).unwrap().to_string_lossy().into_owned();
        let bytes = fs::read(&path).unwrap();
        for word in PLANTED {
            assert!(!name.contains(word), "{word} in the name {name}");
            let found = memchr::memmem::find(&bytes, word.as_bytes());
            assert!(found.is_none(), "{word} in {name}");
        }
    }
}

#[test]
fn an_encrypted_store_reveals_nothing_and_all_commands_work() {
    let home = filled();
    let plain = home.steno(&["show", ID, "--json"]).ok();
    home.steno(&["encrypt", "--new-identity", key_path(&home).to_str().unwrap()]).ok();
    assert_nothing_planted(&home);
    assert_eq!(with_key(&home, &["show", ID, "--json"]).ok(), plain);
    assert!(with_key(&home, &["search", "plantedrecord"]).ok().contains("plantedrecord"));
    assert!(with_key(&home, &["annotate", ID, "--json"]).ok().contains("plantednote"));
    with_key(&home, &["verify"]).ok();
    home.file(&place(ID), lines(ID, 9));
    with_key(&home, &["sync"]).ok();
    assert_eq!(with_key(&home, &["cat", ID]).ok(), lines(ID, 9));
    let mut record = home.command(&["record", "--agent", "otherbot"]);
    record.env("STENO_IDENTITY", key_path(&home));
    home.finish(record, b"{\"role\":\"user\",\"content\":\"plantedrecord two\"}\n").ok();
    assert!(with_key(&home, &["search", "two"]).ok().contains("plantedrecord two"));
    with_key(&home, &["annotate", OTHER, "plantednote two"]).ok();
    with_key(&home, &["reindex"]).ok();
    assert!(with_key(&home, &["list"]).ok().contains(OTHER));
    with_key(&home, &["verify"]).ok();
    assert_nothing_planted(&home);
    let target = home.path().join("restored");
    with_key(&home, &["restore", ID, "--to", target.to_str().unwrap()]).ok();
    assert_eq!(fs::read_to_string(target.join(format!("{ID}.jsonl"))).unwrap(), lines(ID, 9));
}

#[test]
fn without_the_key_nothing_is_read_or_changed() {
    let home = encrypted();
    let store = store(&home);
    let state = || -> Vec<_> {
        files_below(&store)
            .into_iter()
            .map(|path| (path.clone(), fs::read(path).unwrap()))
            .collect()
    };
    let before = state();
    for args in [&["list"][..], &["sync"], &["search", "apricot"], &["show", ID], &["verify"]] {
        let output = home.steno(args);
        assert_eq!(output.code, 1, "{args:?}");
        assert!(output.stderr.contains("error: the store is encrypted"), "{}", output.stderr);
        assert!(output.stderr.contains("hint: set STENO_IDENTITY"), "{}", output.stderr);
    }
    let mut hook = home.command(&["hook", "claude-code"]);
    hook.env_remove("STENO_IDENTITY");
    let payload = json!({"session_id": ID, "hook_event_name": "Stop"}).to_string();
    let output = home.finish(hook, payload.as_bytes());
    assert_eq!((output.code, output.stdout.as_str()), (0, ""));
    let mut after = state();
    after.retain(|(path, _)| *path != store.join("locked-hook.log"));
    assert_eq!(after, before);
    assert_nothing_planted(&home);
}

#[test]
fn a_hook_without_the_key_is_reported() {
    let home = encrypted();
    let payload = json!({"session_id": ID, "hook_event_name": "Stop"}).to_string();
    let output = home.steno_with(&["hook", "claude-code"], payload.as_bytes());
    assert_eq!(output.to_string(), "--- exit 0");
    let reason = "hook: the store is encrypted, and the hook has no key that opens it";
    let shown = home.steno(&["hooks", "status"]);
    assert!(shown.stderr.contains(reason), "{shown}");
    let rows = with_key(&home, &["hooks", "status", "claude-code", "--json"]).ok();
    assert!(rows.contains(reason), "{rows}");
    assert!(with_key(&home, &["doctor"]).to_string().contains(reason));
    assert_nothing_planted(&home);
    // What a hook with the key writes is shown too, although it is encrypted.
    let mut hook = home.command(&["hook", "--keep", "claude-code"]);
    hook.env("STENO_IDENTITY", key_path(&home)).env("STENO_NOW", "2026-01-06T00:00:00Z");
    home.finish(hook, b"{").ok();
    let rows = with_key(&home, &["hooks", "status", "claude-code", "--json"]).ok();
    assert!(rows.contains("2026-01-06T00:00:00Z claude-code: "), "{rows}");
    assert!(home.steno(&["hooks", "status"]).stderr.contains(reason));
    assert_nothing_planted(&home);
    with_key(&home, &["decrypt"]).ok();
}

#[test]
fn a_new_identity_that_opens_nothing_is_removed() {
    let home = filled();
    let key = key_path(&home);
    let encrypt = || home.steno(&["encrypt", "--new-identity", key.to_str().unwrap()]);
    let recording = store(&home).join("vault/claude-code").join(ID).join(".open");
    let lock = fs::File::create(recording).unwrap();
    lock.lock().unwrap();
    let failed = encrypt();
    assert_eq!(failed.code, 1);
    assert!(failed.stderr.contains("error: a session is being recorded"), "{failed}");
    assert!(!key.exists());
    drop(lock);
    encrypt().ok();
    assert!(with_key(&home, &["list"]).ok().contains(ID));
    assert_eq!(encrypt().code, 1);
    assert!(key.exists(), "a key in use is never removed");
    // Nor is a file that was there before.
    let home = filled();
    home.file("key.txt", "mine");
    let output = home.steno(&["encrypt", "--new-identity", key_path(&home).to_str().unwrap()]);
    assert!(output.stderr.contains("error: the file exists"), "{output}");
    assert_eq!(fs::read_to_string(key_path(&home)).unwrap(), "mine");
}

#[test]
fn a_program_runs_although_the_store_is_locked() {
    let home = encrypted();
    let output = home.steno(&["exec", "--", "sh", "-c", "echo plantedrecord; exit 7"]);
    assert_eq!((output.code, output.stdout.as_str()), (7, "plantedrecord\n"), "{output}");
    assert!(output.stderr.contains("warning: the store is encrypted"), "{output}");
    assert_nothing_planted(&home);
    assert!(!store(&home).join("vault").exists());
}

#[test]
fn the_mirror_of_a_remote_is_encrypted_too() {
    let home = encrypted();
    let url = format!("file://{}", home.path().join("shared").display());
    with_key(&home, &["remote", "add", "team", &url]).ok();
    with_key(&home, &["remote", "init", "team"]).ok();
    with_key(&home, &["push", "team"]).ok();
    assert!(with_key(&home, &["list", "--from", "team"]).ok().contains("apricot number"));
    assert!(with_key(&home, &["show", ID, "--from", "team"]).ok().contains("apricot number 4"));
    with_key(&home, &["verify", "--from", "team"]).ok();
    assert_nothing_planted(&home);
    with_key(&home, &["decrypt"]).ok();
    assert!(home.steno(&["list", "--from", "team"]).ok().contains("apricot number"));
    home.steno(&["encrypt", "--new-identity", home.path().join("second.txt").to_str().unwrap()])
        .ok();
    assert_nothing_planted(&home);
}

#[test]
fn keys_are_added_changed_and_removed() {
    let home = encrypted();
    let listed = with_key(&home, &["encrypt", "--list", "--json"]).ok();
    assert!(listed.starts_with("{\"kind\":\"recipient\",\"key\":\"age1"), "{listed}");
    let passphrase = |args: &[&str], text: &str| {
        let mut command = home.command(args);
        command.env("STENO_PASSPHRASE_COMMAND", format!("echo {text}"));
        home.finish(command, b"")
    };
    let mut command = home.command(&["encrypt", "--change-passphrase", "--list"]);
    command.env("STENO_IDENTITY", key_path(&home));
    command.env("STENO_PASSPHRASE_COMMAND", "echo sesame");
    assert!(home.finish(command, b"").ok().contains("passphrase"));
    assert!(passphrase(&["list"], "sesame").ok().contains(ID));
    let wrong = passphrase(&["list"], "wrong");
    assert_eq!(wrong.code, 1);
    assert!(wrong.stderr.contains("error: the passphrase does not open this store"));
    let key = fs::read_to_string(key_path(&home)).unwrap();
    let recipient = key.split_whitespace().find(|word| word.starts_with("age1")).unwrap();
    passphrase(&["encrypt", "--remove-recipient", recipient], "sesame").ok();
    assert_eq!(with_key(&home, &["list"]).code, 1);
    let last = passphrase(&["encrypt", "--remove-passphrase"], "sesame");
    assert!(last.stderr.contains("the last key of a store cannot be removed"), "{}", last.stderr);
    passphrase(&["encrypt", "--add-recipient", recipient], "sesame").ok();
    assert!(with_key(&home, &["list"]).ok().contains(ID));
}

#[test]
fn a_store_is_decrypted_byte_for_byte() {
    let home = filled();
    let vault = home.vault().root().to_owned();
    let state = || -> Vec<_> {
        let files = files_below(&vault).into_iter();
        let mut all: Vec<_> = files
            .filter(|path| !path.file_name().unwrap().to_str().unwrap().starts_with('.'))
            .map(|path| (path.clone(), fs::read(path).unwrap()))
            .collect();
        all.sort();
        all
    };
    let before = state();
    home.steno(&["encrypt", "--new-identity", key_path(&home).to_str().unwrap()]).ok();
    assert!(!vault.exists());
    with_key(&home, &["list"]).ok();
    assert_eq!(home.steno(&["decrypt"]).code, 1);
    assert_eq!(with_key(&home, &["decrypt", "--json"]).ok(), "{\"encrypted\":false}\n");
    assert_eq!(state(), before);
    assert!(!store(&home).join("encrypted").exists());
    assert!(home.steno(&["search", "apricot"]).ok().contains(ID));
}

#[test]
fn forgetting_a_session_removes_its_key() {
    let home = encrypted();
    // Creates the log of tombstones.
    with_key(&home, &["forget", OTHER, "--yes"]).ok();
    with_key(&home, &["list"]).ok();
    let count = || files_below(&store(&home)).len();
    let before = count();
    with_key(&home, &["forget", ID, "--yes"]).ok();
    assert!(count() < before);
    let shown = with_key(&home, &["verify"]).ok();
    assert_eq!(shown.matches("forgotten").count(), 2, "{shown}");
    with_key(&home, &["sync"]).ok();
    assert!(!with_key(&home, &["list"]).ok().contains(ID));
}

#[test]
fn flipped_bits_of_an_encrypted_session_are_found() {
    let home = encrypted();
    with_key(&home, &["list"]).ok();
    let folders = fs::read_dir(store(&home).join("encrypted")).unwrap().flatten();
    let folders = folders.map(|entry| entry.path()).filter(|path| path.is_dir());
    let files = folders.flat_map(|folder| files_below(&folder));
    for path in files.filter(|path| fs::metadata(path).unwrap().len() > 0) {
        let whole = fs::read(&path).unwrap();
        for part in [0, 1, 2, 3] {
            let mut changed = whole.clone();
            let at = (whole.len() - 1) * part / 3;
            changed[at] ^= 4;
            fs::write(&path, &changed).unwrap();
            let verified = with_key(&home, &["verify"]);
            assert_eq!(verified.code, 1, "byte {at} of {}", path.display());
        }
        fs::write(&path, &whole).unwrap();
    }
    with_key(&home, &["verify"]).ok();
}

#[test]
fn cat_prints_the_bytes_of_plain_stores_too() {
    let home = filled();
    assert_eq!(home.steno(&["cat", ID]).ok(), lines(ID, 5));
    assert_eq!(home.steno(&["cat", ID, "--list"]).ok(), format!("{ID}.jsonl\n"));
    assert_eq!(home.steno(&["cat", ID, "--json"]).ok(), format!("{{\"file\":\"{ID}.jsonl\"}}\n"));
    let missing = home.steno(&["cat", ID, "other.jsonl"]);
    assert_eq!(missing.code, 1);
    assert!(missing.stderr.contains("hint: its files are"), "{}", missing.stderr);
}
