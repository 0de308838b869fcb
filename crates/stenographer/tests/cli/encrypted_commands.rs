//! Commands on an encrypted store whose key is named in config.toml.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use rusqlite::OpenFlags;
use serde_json::{Value, json};
use steno_cipher::{AgeIdentity, KeyFile, UnlockSecret, store_fs};

use crate::harness::Home;
use crate::terminal::Terminal;

const ID: &str = "1b4e28ba-2fa1-41d2-883f-0016d3cca427";
const OTHER: &str = "2b4e28ba-2fa1-41d2-883f-0016d3cca427";

fn line(id: &str, n: u32, text: &str) -> String {
    let record = json!({"type": "user", "uuid": format!("00000000-0000-4000-8000-{n:012}"),
        "parentUuid": null, "isSidechain": false, "cwd": "/p", "sessionId": id, "version": "2.1.0",
        "timestamp": format!("2025-06-05T09:15:{:02}.000Z", n % 60),
        "message": {"role": "user", "content": text}});
    format!("{record}\n")
}

fn place(id: &str) -> String {
    format!(".claude/projects/-p/{id}.jsonl")
}

/// An encrypted store with two sessions. All commands find its key.
fn encrypted(texts: [&str; 2]) -> Home {
    let home = Home::new();
    for (id, text) in [ID, OTHER].into_iter().zip(texts) {
        home.file(&place(id), line(id, 0, text) + &line(id, 1, "walnut"));
    }
    encrypt(&home);
    home.steno(&["sync"]).ok();
    home
}

fn encrypt(home: &Home) {
    let key = key_path(home);
    home.steno(&["encrypt", "--new-identity", key.to_str().unwrap()]).ok();
    configure(home, "");
}

fn configure(home: &Home, more: &str) {
    let key = key_path(home);
    let settings = format!("[encryption]\nidentity = {:?}\n{more}", key.display().to_string());
    home.file("store/config.toml", settings);
}

fn key_path(home: &Home) -> PathBuf {
    home.path().join("key.txt")
}

fn store(home: &Home) -> PathBuf {
    home.path().join("store")
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

fn sessions(home: &Home) -> usize {
    home.steno(&["list", "--json"]).ok().lines().count()
}

/// All that a text may be in: the files on disk and as their key opens them, zstd frames, and the pages of the index.
fn all_bytes(home: &Home) -> Vec<(String, Vec<u8>)> {
    let store = store(home);
    let mut found: Vec<_> = files_below(&store)
        .into_iter()
        .map(|path| (path.display().to_string(), fs::read(path).unwrap()))
        .collect();
    let keys = KeyFile::read(&store).unwrap().unwrap();
    let identity = AgeIdentity::parse_file(&fs::read_to_string(key_path(home)).unwrap()).unwrap();
    let master = keys.unwrap_key(&UnlockSecret::Identities(identity)).unwrap();
    steno_cipher::unlock_store(&store, master, &keys);
    read_decrypted(&store.join("vault"), &mut found);
    let index = store.join("index.db");
    if store_fs::exists(&index) {
        let index = store_fs::open_database(&index, OpenFlags::SQLITE_OPEN_READ_WRITE).unwrap();
        // Moves the write-ahead log into the database, and copies all pages with those that are free.
        index.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
        let copy = home.path().join("index-copy.db");
        let mut plain = rusqlite::Connection::open(&copy).unwrap();
        let backup = rusqlite::backup::Backup::new(&index, &mut plain).unwrap();
        backup.run_to_completion(1000, std::time::Duration::ZERO, None).unwrap();
        drop(backup);
        drop(plain);
        found.push(("index".into(), fs::read(&copy).unwrap()));
        fs::remove_file(copy).unwrap();
    }
    steno_cipher::lock_store(&store);
    for (_, bytes) in &mut found {
        let frames = decompressed_frames(bytes);
        bytes.extend(frames);
    }
    found
}

fn read_decrypted(folder: &Path, found: &mut Vec<(String, Vec<u8>)>) {
    for entry in store_fs::read_dir(folder).unwrap() {
        let path = folder.join(entry.unwrap().name);
        if store_fs::is_dir(&path) {
            read_decrypted(&path, found);
        } else if let Ok(bytes) = store_fs::read(&path) {
            found.push((path.display().to_string(), bytes));
        }
    }
}

fn decompressed_frames(bytes: &[u8]) -> Vec<u8> {
    let mut raw = Vec::new();
    for at in memchr::memmem::find_iter(bytes, &[0x28, 0xb5, 0x2f, 0xfd]) {
        let mut frame = Vec::new();
        let mut decoder = zstd::Decoder::new(&bytes[at..]).unwrap().single_frame();
        if std::io::copy(&mut decoder, &mut frame).is_ok() {
            raw.extend(frame);
        }
    }
    raw
}

fn holders(all: &[(String, Vec<u8>)], needle: &str) -> Vec<String> {
    let has = |bytes: &[u8]| memchr::memmem::find(bytes, needle.as_bytes()).is_some();
    all.iter().filter(|(_, bytes)| has(bytes)).map(|(name, _)| name.clone()).collect()
}

#[test]
fn prune_removes_old_sessions() {
    let home = encrypted(["apricot", "apricot"]);
    configure(&home, "[keep]\ndays = 1\n");
    let listed = home.steno(&["prune", "--dry-run", "--json"]).ok();
    assert!(listed.contains(ID) && sessions(&home) == 2, "{listed}");
    home.steno(&["prune", "--yes", "--json"]).ok();
    assert_eq!(sessions(&home), 0);
    home.steno(&["sync"]).ok();
    assert_eq!(sessions(&home), 0, "they do not come back");
    home.steno(&["verify"]).ok();
}

#[test]
fn secrets_are_reported_and_forgotten() {
    let token = "ghp_q7Rz0vXw93LkTn5Yb2Hd8Fg1Jc4Mp6Sa0Ue9";
    let home = encrypted([&format!("use {token}"), "plum"]);
    let report = home.steno(&["secrets", "--json"]);
    assert_eq!(report.code, 1, "{report}");
    assert!(report.stdout.contains("GitHub token") && !report.stdout.contains(token), "{report}");
    let found: Value = serde_json::from_str(report.stdout.lines().next().unwrap()).unwrap();
    let id = found["id"].as_str().unwrap();
    home.steno(&["forget", "--secret", id, "--yes"]).ok();
    assert_eq!(home.steno(&["secrets", "--json"]).code, 0);
    let all = all_bytes(&home);
    assert!(!holders(&all, "walnut").is_empty(), "the rest is there");
    assert_eq!(holders(&all, token), [""; 0]);
}

#[test]
fn an_agent_searches_through_mcp() {
    let home = encrypted(["the apricot orchard", "plum"]);
    let mut command = home.command(&["mcp", "--all"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut server = command.spawn().unwrap();
    let mut input = server.stdin.take().unwrap();
    let mut output = BufReader::new(server.stdout.take().unwrap());
    let mut ask = |id: u32, method: &str, params: Value| {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        writeln!(input, "{request}").unwrap();
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        line
    };
    ask(
        1,
        "initialize",
        json!({"protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"}}),
    );
    let found = ask(
        2,
        "tools/call",
        json!({"name": "search_agent_history",
        "arguments": {"query": "apricot"}}),
    );
    assert!(found.contains("orchard"), "{found}");
    drop(input);
    assert!(server.wait_with_output().unwrap().status.success());
}

#[test]
fn an_editors_conversation_is_recorded() {
    const AGENT: &str = r#"
say() { printf '%s\n' "$1"; }
while read -r line; do
case "$line" in
*initialize*) say '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentInfo":{"name":"toy"}}}';;
*session/new*) say '{"jsonrpc":"2.0","id":1,"result":{"sessionId":"sess-0001"}}';;
*session/prompt*)
 say '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"sess-0001","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"quince answer"}}}}'
 say '{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}'; exit 0;;
esac
done
"#;
    let home = encrypted(["apricot", "plum"]);
    let messages = concat!(
        r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#,
        "\n",
        r#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/w","mcpServers":[]}}"#,
        "\n",
        r#"{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"sess-0001","prompt":[{"type":"text","text":"quince question"}]}}"#,
        "\n"
    );
    home.steno_with(&["acp", "--", "sh", "-c", AGENT], messages.as_bytes()).ok();
    let found = home.steno(&["search", "quince"]).ok();
    assert!(found.contains("quince answer") && found.contains("quince question"), "{found}");
    home.steno(&["verify"]).ok();
    for path in files_below(&store(&home)) {
        let bytes = fs::read(&path).unwrap();
        assert!(memchr::memmem::find(&bytes, b"quince").is_none(), "{}", path.display());
    }
}

#[test]
fn the_terminal_browser_shows_sessions() {
    let home = encrypted(["the apricot orchard", "plum"]);
    let mut terminal = Terminal::browser(&home);
    terminal.shows(&["2 sessions", "apricot orchard"]);
    terminal.press("q");
}

#[test]
fn forgotten_needles_are_in_no_decrypted_byte() {
    let home = Home::new();
    let needle = |n: u32| format!("needle-{n:03}-{}", 7919 * n + 13);
    for (file, id) in [ID, OTHER].into_iter().enumerate() {
        let first = file as u32 * 80;
        let lines = (first..first + 80).map(|n| line(id, n, &format!("say {} again", needle(n))));
        home.file(&place(id), lines.collect::<String>());
    }
    encrypt(&home);
    let records: String = (160..200)
        .map(|n| json!({"role": "user", "content": needle(n)}).to_string() + "\n")
        .collect();
    home.steno_with(&["record", "--agent", "bot", "--session", "r"], records.as_bytes()).ok();
    home.steno(&["sync"]).ok();
    home.steno(&["annotate", OTHER, &needle(7)]).ok();
    home.steno(&["search", "needle"]).ok();
    let before = all_bytes(&home);
    assert!(before.iter().any(|(name, _)| name == "index"));
    assert!((0..200).all(|n| !holders(&before, &needle(n)).is_empty()));
    // One session goes with its key, the rest is masked.
    let copy: Vec<_> = files_below(&store(&home));
    home.steno(&["forget", ID, "--yes"]).ok();
    assert!(copy.iter().any(|path| !path.exists()));
    home.steno(&["forget", "--match", "needle-\\d+-\\d+", "--yes"]).ok();
    home.steno(&["sync"]).ok();
    home.steno(&["verify"]).ok();
    let after = all_bytes(&home);
    let found: Vec<_> = (0..200).map(|n| holders(&after, &needle(n))).collect();
    assert!(found.iter().all(Vec::is_empty), "{found:?}");
    assert_eq!(home.steno(&["search", "needle"]).code, 1);
    home.steno(&["decrypt"]).ok();
    for path in files_below(&store(&home)) {
        let bytes = fs::read(&path).unwrap();
        let bytes = [decompressed_frames(&bytes), bytes].concat();
        assert!(memchr::memmem::find(&bytes, b"needle-").is_none(), "{}", path.display());
    }
}

#[test]
fn the_master_key_is_changed_and_old_copies_keep_theirs() {
    let home = encrypted(["apricot", "plum"]);
    let old_key_file = fs::read(store(&home).join("encryption.json")).unwrap();
    let shown = home.steno(&["show", ID, "--json"]).ok();
    home.steno(&["encrypt", "--change-key"]).ok();
    let new_key_file = fs::read(store(&home).join("encryption.json")).unwrap();
    assert_eq!(home.steno(&["show", ID, "--json"]).ok(), shown);
    assert!(home.steno(&["search", "apricot"]).ok().contains("apricot"));
    home.steno(&["verify"]).ok();
    home.file(&place(ID), line(ID, 0, "apricot") + &line(ID, 1, "walnut") + &line(ID, 2, "fig"));
    home.steno(&["sync"]).ok();
    assert!(home.steno(&["show", ID]).ok().contains("fig"));
    // The key file of an old backup opens nothing of the present store.
    home.file("store/encryption.json", &old_key_file);
    let refused = home.steno(&["sync"]);
    assert!(
        refused.code == 1 && refused.stderr.contains("encryption.json is not that"),
        "{refused}"
    );
    home.file("store/encryption.json", &new_key_file);
    assert!(home.steno(&["list", "--json"]).ok().contains(ID));
    // A recipient that is removed with the key is locked out.
    let second = home.path().join("second.txt");
    let identity = AgeIdentity::generate();
    fs::write(&second, identity.to_secret_text()).unwrap();
    let recipient = identity.recipient().to_string();
    home.steno(&["encrypt", "--add-recipient", &recipient]).ok();
    let with_second = |args: &[&str]| {
        let mut command = home.command(args);
        command.env("STENO_IDENTITY", &second);
        home.finish(command, b"")
    };
    assert!(with_second(&["list"]).ok().contains("apricot"));
    let changed =
        home.steno(&["encrypt", "--change-key", "--remove-recipient", &recipient, "--list"]).ok();
    assert!(!changed.contains(&recipient), "{changed}");
    assert_eq!(with_second(&["list"]).code, 1);
    assert_eq!(sessions(&home), 2);
    home.steno(&["decrypt"]).ok();
    assert!(home.steno(&["show", ID]).ok().contains("fig"));
}
