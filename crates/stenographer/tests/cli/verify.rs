//! Tests of `steno verify`.

use std::fs;

use crate::harness::Home;

/// Records have new ids each time, so sizes differ.
const FILTERS: [(&str, &str); 3] = [
    (r"byte \d+", "byte [N]"),
    (r"\d+ bytes", "[N] bytes"),
    (r#""offset":\d+"#, r#""offset":[N]"#),
];

#[test]
fn a_sync_without_news_replaces_a_lost_journal() {
    let home = Home::new();
    home.file(".claude/projects/-w/a.jsonl", crate::listing::line("a", 1, "/w", "Hello"));
    home.steno(&["sync"]).ok();
    let vault = home.path().join("store/vault");
    for name in ["journal.jsonl", "journal.jsonl.head"] {
        std::fs::remove_file(vault.join(name)).unwrap();
    }
    assert_eq!(home.steno(&["verify"]).code, 1);
    assert_eq!(home.steno(&["sync", "--dry-run"]).stderr, "nothing new\n");
    let synced = home.steno(&["sync"]);
    let warning = "warning: the store had no journal; its files are listed in a new one\n";
    assert_eq!(synced.stderr, format!("{warning}nothing new\n"));
    assert_eq!(home.steno(&["sync"]).stderr, "nothing new\n");
    let verified = home.steno(&["verify"]);
    assert!(verified.stderr.contains("the journal was lost once"), "{verified}");
    assert_eq!(verified.code, 0, "{verified}");
    home.steno(&["verify", "--head"]).ok();
}

#[test]
fn damage_is_named_with_file_and_byte() {
    let home = Home::new();
    home.steno_with(
        &["record", "--agent", "a", "--session", "s"],
        b"{\"role\":\"user\",\"content\":\"x\"}\n",
    )
    .ok();
    insta::with_settings!({ filters => FILTERS.to_vec() }, {
        insta::assert_snapshot!(home.steno(&["verify"]), @"
        --- stderr
        1 session, 1 file, [N] bytes: no damage
        --- exit 0
        ");
    });
    let path = home.path().join("store/vault/a/s/record.jsonl.zst");
    let mut bytes = fs::read(&path).unwrap();
    let magic = [0x28, 0xb5, 0x2f, 0xfd];
    let frame = bytes.windows(4).position(|window| window == magic).unwrap();
    bytes[frame + 20] ^= 4;
    fs::write(&path, bytes).unwrap();
    insta::with_settings!({ filters => FILTERS.to_vec() }, {
        insta::assert_snapshot!(home.steno(&["verify"]), @"
        $HOME/store/vault/a/s/record.jsonl.zst: byte [N]: the frame was changed, or one is missing before it
        --- stderr
        1 session, 1 file, [N] bytes: damage in 1 place
        --- exit 1
        ");
        insta::assert_snapshot!(home.steno(&["--quiet", "verify", "--json"]), @r#"
        {"path":"$HOME/store/vault/a/s/record.jsonl.zst","offset":[N],"reason":"the frame was changed, or one is missing before it"}
        --- exit 1
        "#);
    });
}

/// A store with an imported session that has grown and a recorded one. Returns its head before and after the growth.
fn store_with_heads(home: &Home) -> (String, String) {
    home.steno_with(&["record", "--agent", "a", "--session", "s"], RECORD).ok();
    home.file("one.jsonl", KEPT);
    home.steno(&["import", "one.jsonl"]).ok();
    let before = home.steno(&["verify", "--head"]).ok().trim().to_owned();
    home.file("one.jsonl", [KEPT, KEPT.replace("u1", "u2").as_str()].concat());
    home.steno(&["import", "one.jsonl"]).ok();
    (before, home.steno(&["verify", "--head"]).ok().trim().to_owned())
}

const RECORD: &[u8] =
    b"{\"role\":\"user\",\"content\":\"one\"}\n{\"role\":\"user\",\"content\":\"two\"}\n";
const KEPT: &str = "{\"type\":\"user\",\"uuid\":\"u1\",\"sessionId\":\"kept\",\"timestamp\":\"2026-01-05T09:15:31.000Z\",\
    \"version\":\"2.0.0\",\"message\":{\"role\":\"user\",\"content\":\"prompt\"}}\n";

#[test]
fn a_head_proves_the_state_at_its_time() {
    let home = Home::new();
    let (before, after) = store_with_heads(&home);
    assert_ne!(before, after);
    for head in [&before, &after] {
        home.steno(&["verify", "--since", head]).ok();
    }
    // An old copy of a whole store is consistent in itself.
    let copy = home.path().join("store-copy");
    std::fs::rename(home.path().join("store"), &copy).unwrap();
    let (other, _) = store_with_heads(&home);
    home.steno(&["verify"]).ok();
    let proof = home.steno(&["verify", "--since", &after]);
    assert_eq!(proof.code, 1, "{proof}");
    assert!(proof.stdout.contains("this head is not in the journal"), "{proof}");
    home.steno(&["verify", "--since", &other]).ok();
    let wrong = home.steno(&["verify", "--since", "nonsense"]);
    assert_eq!(wrong.code, 2, "{wrong}");
    assert!(wrong.stderr.contains("not a head of the journal"), "{wrong}");
}

#[test]
fn files_that_are_deleted_with_all_traces_are_named_and_reading_warns() {
    let home = Home::new();
    store_with_heads(&home);
    home.steno(&["list"]).ok();
    let vault = home.path().join("store/vault");
    let id = home.vault().list_agent_sessions("claude-code").unwrap()[0].id().to_string();
    let folder = vault.join("claude-code").join(&id);
    let aside = home.path().join("aside");
    std::fs::rename(&folder, &aside).unwrap();
    let found = home.steno(&["verify"]);
    assert!(found.code == 1 && found.stdout.contains("the session is missing"), "{found}");
    for args in [vec!["list"], vec!["search", "prompt"], vec!["cost"], vec!["show", &id]] {
        let read = home.steno(&args);
        assert_eq!(read.code, 1, "{args:?}: {read}");
        assert!(!read.stderr.is_empty(), "{args:?}");
    }
    // An older copy of a file, and an additional one.
    std::fs::rename(&aside, &folder).unwrap();
    home.steno(&["verify"]).ok();
    assert!(home.steno(&["list", "--json"]).ok().contains(&id), "it is back");
    let sealed = folder.join("one.jsonl.zst");
    let whole = std::fs::read(&sealed).unwrap();
    std::fs::write(folder.join("one.jsonl@1.zst"), &whole).unwrap();
    let stray = home.steno(&["verify"]);
    assert!(stray.code == 1 && stray.stdout.contains("the journal does not list"), "{stray}");
    assert_eq!(home.steno(&["show", &id, "--json"]).stdout.lines().count(), 2, "never read");
    std::fs::remove_file(folder.join("one.jsonl@1.zst")).unwrap();
    std::fs::write(&sealed, &whole[..whole.len() / 2]).unwrap();
    let older = home.steno(&["verify"]);
    assert!(older.code == 1 && older.stdout.contains("shorter than it was"), "{older}");
    assert_eq!(home.steno(&["show", &id]).code, 1);
    assert_eq!(home.steno(&["export", &id, "--format", "json"]).code, 1);
    std::fs::write(&sealed, [whole.as_slice(), b"half a frame"].concat()).unwrap();
    let interrupted = home.steno(&["verify"]);
    assert!(
        interrupted.stderr.contains("interrupted, nothing acknowledged is lost"),
        "{interrupted}"
    );
    interrupted.ok();
    home.steno(&["show", &id]).ok();
}

#[test]
fn a_folder_that_is_deleted_before_anybody_looked_is_missed() {
    let home = Home::new();
    home.steno_with(&["record", "--agent", "a", "--session", "s"], RECORD).ok();
    fs::remove_dir_all(home.path().join("store/vault/a")).unwrap();
    for _ in 0..2 {
        let listed = home.steno(&["list"]);
        assert!(listed.code == 1 && listed.stderr.contains("its folder is missing"), "{listed}");
    }
}
