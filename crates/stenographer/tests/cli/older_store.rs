//! A store of version 0.1: it is read unchanged, and the first command that writes creates its journal.

use std::fs;
use std::path::Path;

use steno_agents::agents::aider;
use steno_vault::{SessionBundle, Vault};

use crate::harness::Home;

const ID: &str = "1b4e28ba-2fa1-41d2-883f-0016d3cca427";

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for item in fs::read_dir(from).unwrap().map(|item| item.unwrap()) {
        let target = to.join(item.file_name());
        if item.path().is_dir() {
            copy_folder(&item.path(), &target);
        } else {
            fs::copy(item.path(), target).unwrap();
        }
    }
}

fn older_store() -> Home {
    let home = Home::new();
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/store-0.1");
    copy_folder(&sample, &home.path().join("store"));
    home
}

fn line(n: u32) -> String {
    format!(
        "{{\"type\":\"user\",\"uuid\":\"u{n}\",\"parentUuid\":null,\"isSidechain\":false,\"cwd\":\"/p\",\
         \"sessionId\":\"{ID}\",\"timestamp\":\"2026-01-05T09:15:3{n}.000Z\",\"version\":\"2.0.0\",\
         \"message\":{{\"role\":\"user\",\"content\":\"prompt {n}\"}}}}\n"
    )
}

fn journal(home: &Home) -> String {
    fs::read_to_string(home.path().join("store/vault/journal.jsonl")).unwrap_or_default()
}

#[test]
fn it_is_read_without_being_changed() {
    let home = older_store();
    home.steno(&["verify"]).ok();
    assert_eq!(home.steno(&["show", ID, "--json"]).ok().lines().count(), 2);
    assert_eq!(home.steno(&["show", "old-1", "--json"]).ok().lines().count(), 2);
    assert!(home.steno(&["show", "open-1"]).ok().contains("still open"));
    assert!(home.steno(&["annotate", "old-1"]).ok().contains("a note"));
    assert_eq!(home.steno(&["verify", "--head"]).code, 1, "there is no journal yet");
    assert_eq!(journal(&home), "");
}

#[test]
fn its_files_grow_in_the_new_format_and_nothing_is_stored_twice() {
    let home = older_store();
    let session = format!(".claude/projects/-p/{ID}.jsonl");
    for count in [3, 4] {
        home.file(&session, (1..=count).map(line).collect::<String>());
        home.steno(&["sync"]).ok();
        assert_eq!(home.steno(&["show", ID, "--json"]).ok().lines().count(), count as usize);
        home.steno(&["verify"]).ok();
    }
    let now = fs::read(home.path().join(&session)).unwrap();
    fs::remove_dir_all(home.path().join(".claude")).unwrap();
    home.steno(&["restore", ID]).ok();
    assert_eq!(fs::read(home.path().join(&session)).unwrap(), now);
    for id in ["old-1", "open-1"] {
        let record = ["record", "--agent", "demo", "--session", id];
        home.steno_with(&record, b"{\"role\":\"user\",\"content\":\"once more\"}\n").ok();
        assert!(home.steno(&["show", id]).ok().contains("once more"));
        home.steno(&["verify"]).ok();
    }
    assert!(journal(&home).contains("demo/old-1") && journal(&home).contains("demo/open-1"));
}

#[test]
fn what_was_missing_before_stays_missing() {
    let home = older_store();
    fs::remove_file(home.path().join("store/vault/demo/old-1/record.jsonl.zst")).unwrap();
    assert!(home.steno(&["verify"]).stdout.contains("the file is missing"));
    home.steno(&["annotate", "open-1", "begins the journal"]).ok();
    assert!(home.steno(&["verify"]).stdout.contains("old-1/record.jsonl.zst"));
    assert_eq!(home.steno(&["show", "old-1"]).code, 1);
}

#[test]
fn an_aider_history_stored_as_one_session_counts_once() {
    let chat = |hour: u32, cost: &str| {
        format!(
            "\n# aider chat started at 2026-01-01 0{hour}:00:00\n\n#### Fix it  \n\nDone.\n\n\
             > Tokens: 1.0k sent, 100 received. Cost: ${cost} message, ${cost} session.\n"
        )
    };
    let home = Home::new();
    let path = home.file(".aider.chat.history.md", chat(1, "0.10") + &chat(2, "0.20"));
    let id = aider::legacy_history_id(&path);
    let vault = Vault::new(home.path().join("store/vault"));
    vault
        .session_dir(&"aider".parse().unwrap(), &id)
        .keep_session(&SessionBundle::from_file(&path))
        .unwrap();
    let cost = || {
        let printed = home.steno(&["cost", "--json"]).ok();
        let total: serde_json::Value =
            serde_json::from_str(printed.lines().last().unwrap()).unwrap();
        (total["tokens"]["output"].as_u64().unwrap(), total["cost"].as_f64().unwrap())
    };
    let before = cost();
    assert_eq!(before.0, 200);
    let entries = home.steno(&["show", id.as_str(), "--json"]).ok();
    home.steno(&["sync", path.to_str().unwrap()]).ok();
    assert_eq!(cost(), before, "each chat once");
    home.steno(&["reindex"]).ok();
    assert_eq!(cost(), before);
    let restored = home.path().join("restored");
    home.steno(&["restore", id.as_str(), "--to", restored.to_str().unwrap()]).ok();
    assert!(!entries.is_empty() && restored.exists(), "its bytes are kept");
}
