//! A killed `sync`: the next one continues, and the vault is complete.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use crate::harness::{Dice, Home};

const KILLS: u64 = 20;
const SESSIONS: u64 = 60;

/// Returns the files of one session: its own, and some of a subagent and a tool result.
fn session(home: &Home, n: u64) -> Vec<PathBuf> {
    let id = format!("{n:08x}-0000-4000-8000-000000000000");
    let folder = home.path().join(format!(".claude/projects/-p{}", n % 7));
    let mut files = vec![folder.join(format!("{id}.jsonl"))];
    if n.is_multiple_of(3) {
        files.push(folder.join(format!("{id}/subagents/agent-a{n}.jsonl")));
        files.push(folder.join(format!("{id}/tool-results/r{n}.jsonl")));
    }
    files
}

/// Appends lines to each file of a session.
fn grow(files: &[PathBuf], n: u64, dice: &mut Dice) {
    for (at, path) in files.iter().enumerate() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
        for _ in 0..=dice.below(6) {
            let text = format!("{} ", dice.below(1 << 40)).repeat(dice.below(300) as usize);
            let record = serde_json::json!({"type": "user", "uuid": dice.below(1 << 50).to_string(),
                "parentUuid": null, "isSidechain": at > 0, "cwd": "/p", "version": "2.1.0",
                "sessionId": format!("{n:08x}-0000-4000-8000-000000000000"),
                "timestamp": "2026-01-05T09:15:30.000Z",
                "message": {"role": "user", "content": text}});
            file.write_all(format!("{record}\n").as_bytes()).unwrap();
        }
    }
}

/// Returns every file below a folder with its content.
fn contents(root: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let files = steno_store::format::list_file_paths(root).unwrap();
    files.into_iter().map(|file| (file.clone(), fs::read(file).unwrap())).collect()
}

/// Starts `sync` and kills it after a delay. Returns whether it was still running.
fn killed_after(home: &Home, delay: Duration) -> bool {
    let mut command = home.command(&["sync"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    std::thread::sleep(delay);
    child.kill().unwrap();
    !child.wait().unwrap().success()
}

#[test]
fn after_a_killed_sync_the_next_run_continues() {
    let home = Home::new();
    let mut dice = Dice(0x5eed_0002);
    let mut killed = 0;
    for _ in 0..KILLS {
        for n in 0..SESSIONS {
            if dice.below(3) == 0 {
                grow(&session(&home, n), n, &mut dice);
            }
        }
        let delay = Duration::from_micros(3000 + dice.below(150_000));
        killed += u64::from(killed_after(&home, delay));
    }
    assert!(killed >= KILLS / 2, "most runs ended before they were killed: {killed}");
    home.finish(home.command(&["sync"]), b"").ok();
    let again = home.finish(home.command(&["sync"]), b"");
    assert_eq!((again.stdout.as_str(), again.code), ("", 0), "{again}");
    home.steno(&["verify"]).ok();
    let kept = home.vault().list_sessions().unwrap();
    assert_eq!(kept.len() as u64, SESSIONS);
    assert_eq!(home.steno(&["list", "--json"]).ok().lines().count() as u64, SESSIONS);
    let root = home.path().join(".claude/projects");
    let before = contents(&root);
    fs::remove_dir_all(&root).unwrap();
    for session in kept {
        session.restore(None, false, &[]).unwrap();
    }
    assert!(contents(&root) == before, "a file came back with other bytes");
}
