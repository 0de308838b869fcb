//! Folders and files that this user may not enter, read or write.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};

use crate::harness::{Home, Output};

/// Makes root obey the modes of files as other users do.
const OBEY_MODES: [&str; 3] = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"];

const LINE: &str = r#"{"type":"user","uuid":"a","sessionId":"aaaa1111","timestamp":"2026-01-01T00:00:00Z","cwd":"/w","version":"2.1.0","message":{"role":"user","content":"fix the login"}}"#;

fn set_mode(home: &Home, name: &str, mode: u32) {
    fs::set_permissions(home.path().join(name), fs::Permissions::from_mode(mode)).unwrap();
}

/// Runs a command as a user for whom modes hold, with automatic syncs. `None` if modes hold for no user here.
fn steno_obeying_modes(home: &Home, args: &[&str]) -> Option<Output> {
    home.file("closed", "");
    set_mode(home, "closed", 0);
    let obeys = |words: &[&str]| {
        let mut probe = home.program(words[0], &[&words[1..], &["cat", "closed"]].concat());
        probe.stdout(Stdio::null()).stderr(Stdio::null());
        probe.status().is_ok_and(|status| !status.success())
    };
    let steno = env!("CARGO_BIN_EXE_steno");
    let mut command: Command = if obeys(&["env"]) {
        home.command(args)
    } else if home.program(OBEY_MODES[0], &[&OBEY_MODES[1..], &["true"]].concat()).status().is_ok()
        && obeys(&OBEY_MODES)
    {
        home.program(OBEY_MODES[0], &[&OBEY_MODES[1..], &[steno], args].concat())
    } else {
        eprintln!("skipped: modes confine no program here");
        return None;
    };
    command.env_remove("STENO_SYNC_AUTOMATIC");
    Some(home.finish(command, b""))
}

/// A home with a kept session of Claude Code, which was synced long ago.
fn kept_home() -> Home {
    let home = Home::new();
    home.file(".claude/projects/-w/aaaa1111.jsonl", format!("{LINE}\n"));
    home.steno(&["sync"]).ok();
    let path = home.path().join("store/last-sync.json");
    let mut last: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    last["finished"] = "2026-01-01T00:00:00Z".into();
    fs::write(path, last.to_string()).unwrap();
    home
}

#[test]
fn an_agents_folder_that_may_not_be_entered_is_an_error_and_others_are_copied() {
    let home = Home::new();
    home.file(".claude/projects/-w/aaaa1111.jsonl", format!("{LINE}\n"));
    for closed in [".qwen", ".qwen/projects"] {
        home.file(".qwen/projects/-w/chats/bbbb2222.jsonl", "{}\n");
        set_mode(&home, closed, 0);
        let Some(sync) = steno_obeying_modes(&home, &["sync", "--agent", "qwen"]) else { return };
        let error = format!("error: could not open $HOME/{closed}\ncaused by: Permission denied");
        assert!(sync.code == 1 && sync.stderr.contains(&error), "{sync}");
        let Some(all) = steno_obeying_modes(&home, &["sync"]) else { return };
        assert_eq!(all.code, 1, "{all}");
        let Some(doctor) = steno_obeying_modes(&home, &["doctor"]) else { return };
        let problem = format!("problem: could not open $HOME/{closed}: Permission denied");
        assert!(doctor.code == 1 && doctor.stdout.contains(&problem), "{doctor}");
        set_mode(&home, closed, 0o755);
    }
    assert!(home.steno(&["list"]).ok().contains("fix the login"));
}

#[test]
fn a_session_file_that_may_not_be_read_is_reported() {
    let home = kept_home();
    home.file(".claude/projects/-w/bbbb2222.jsonl", LINE.replace("aaaa1111", "bbbb2222") + "\n");
    set_mode(&home, ".claude/projects/-w/bbbb2222.jsonl", 0);
    let Some(list) = steno_obeying_modes(&home, &["list"]) else { return };
    let file = "$HOME/.claude/projects/-w/bbbb2222.jsonl";
    assert_eq!(list.code, 0, "{list}");
    assert!(list.stdout.contains("fix the login"), "{list}");
    assert!(
        list.stderr.contains(&format!("warning: could not sync: could not open {file}: ")),
        "{list}"
    );
    let Some(doctor) = steno_obeying_modes(&home, &["doctor"]) else { return };
    let problem = format!("problem: could not open {file}: Permission denied");
    assert!(doctor.code == 1 && doctor.stdout.contains(&problem), "{doctor}");
}

#[test]
fn a_store_that_may_not_be_written_is_reported() {
    for closed in ["store", "store/vault"] {
        let home = kept_home();
        home.file(
            ".claude/projects/-w/bbbb2222.jsonl",
            LINE.replace("aaaa1111", "bbbb2222") + "\n",
        );
        let vault = ["store/vault", "store/vault/claude-code"];
        vault.iter().for_each(|folder| set_mode(&home, folder, 0o555));
        set_mode(&home, closed, 0o555);
        let output = steno_obeying_modes(&home, &["list"])
            .and_then(|list| Some((list, steno_obeying_modes(&home, &["doctor"])?)));
        vault.iter().for_each(|folder| set_mode(&home, folder, 0o755));
        set_mode(&home, closed, 0o755);
        let Some((list, doctor)) = output else { return };
        assert!(list.code == 0 && list.stdout.contains("fix the login"), "{closed}: {list}");
        assert!(list.stderr.contains("warning: could not sync: "), "{closed}: {list}");
        let problem = format!("problem: the store cannot be written: $HOME/{closed}\n");
        assert!(doctor.code == 1 && doctor.stdout.contains(&problem), "{closed}: {doctor}");
    }
}

#[test]
fn a_store_that_may_not_be_entered_is_not_called_encrypted() {
    let home = kept_home();
    set_mode(&home, "store", 0);
    let output = steno_obeying_modes(&home, &["list"]);
    set_mode(&home, "store", 0o755);
    let Some(output) = output else { return };
    let error = "error: could not open the store $HOME/store\ncaused by: Permission denied";
    assert!(output.code == 1 && output.stderr.starts_with(error), "{output}");
    assert!(!output.stderr.contains("encryption.json"), "{output}");
}
