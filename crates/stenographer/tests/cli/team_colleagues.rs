//! Tests of what is done with sessions of colleagues: `steno mcp --from`, `steno resume --from`, and equal ids.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::harness::Output;
use crate::mcp::Server;
use crate::team::{Member, content, member, place, turn};

const ID: &str = "1b4e28ba-2fa1-41d2-883f-0016d3cca427";
const OTHER: &str = "2b4e28ba-2fa1-41d2-883f-0016d3cca427";

/// Two members who share a folder.
fn team_of_two() -> (tempfile::TempDir, Member, Member) {
    let shared = tempfile::tempdir().unwrap();
    let url = format!("file://{}", shared.path().display());
    let (ada, bob) = (member("ada", &url), member("bob", &url));
    ada.steno(&["remote", "init", "team"]).ok();
    (shared, ada, bob)
}

/// Calls a tool of the server of a member.
fn call(server: &mut Server, name: &str, arguments: Value) -> String {
    let result = server.request("tools/call", json!({"name": name, "arguments": arguments}));
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

/// The ids and owners that `list --from` prints.
fn owned(member: &Member, args: &[&str]) -> Vec<String> {
    let output = member.steno(&[&["list", "--from", "team", "--json"], args].concat());
    let rows = output.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut all: Vec<String> = rows
        .map(|row| format!("{} {}", row["id"].as_str().unwrap(), row["person"].as_str().unwrap()))
        .collect();
    all.sort();
    all
}

#[test]
fn an_agent_searches_what_the_team_did() {
    let (_shared, ada, bob) = team_of_two();
    let secret = ["ghp_", "x7Kq2LmN9pRtVwYzAbCdEfGh", "IjKlMnOp3456"].concat();
    ada.work(ID, &content(ID, &["apricot", &format!("token {secret}")]));
    ada.push();
    bob.work(OTHER, &content(OTHER, &["plum"]));
    bob.push();
    // The project has the same name, but is in another folder.
    fs::create_dir_all(bob.home.path().join("code/shop/.git")).unwrap();
    let mut server = Server::start(&bob.home, "code/shop", &["--from", "team"]);
    let info = server.initialize();
    assert!(info["instructions"].as_str().unwrap().contains("a whole team"), "{info}");
    let found = call(&mut server, "search_agent_history", json!({"query": "apricot"}));
    assert!(found.contains("in the record of team") && found.contains("  by ada  "), "{found}");
    assert!(found.contains("| the apricot prompt") && found.contains("QUOTED "), "{found}");
    let found = call(&mut server, "search_agent_history", json!({"query": "plum"}));
    assert!(found.contains("  by bob  "), "{found}");
    let read = call(&mut server, "read_session_entries", json!({"at": format!("{ID}:0")}));
    assert!(read.contains("of claude-code  by ada,"), "{read}");
    assert!(read.contains("[redacted ") && !read.contains(&secret), "{read}");
    let listed = call(&mut server, "list_agent_sessions", json!({}));
    assert!(listed.contains("  by ada  ") && listed.contains("  by bob  "), "{listed}");
    let cost = call(&mut server, "agent_cost", json!({"by": "person"}));
    assert!(cost.contains("\nada: ") || cost.contains("\nbob: "), "{cost}");
    assert_eq!(server.close(), "pulling team for the first time\n");
}

#[test]
fn private_sessions_are_not_served_from_a_remote() {
    let (shared, ada, _bob) = team_of_two();
    ada.work(ID, &content(ID, &["apricot"]));
    ada.push();
    let hidden = member("ada", &format!("file://{}", shared.path().display()));
    hidden.steno(&["remote", "remove", "team"]).ok();
    let url = format!("file://{}", shared.path().display());
    hidden.steno(&["remote", "add", "team", &url, "--visibility", "private"]).ok();
    hidden.work(OTHER, &content(OTHER, &["plum"]));
    hidden.push();
    let mut server = Server::start(&ada.home, ".", &["--from", "team", "--all"]);
    server.initialize();
    assert!(server.search("apricot").contains("by ada"));
    assert!(server.search("plum").starts_with("Nothing in "), "pushed as private");
    let read = call(&mut server, "read_session_entries", json!({"at": OTHER}));
    assert!(read.contains("no session"), "{read}");
    // A note makes a session private that was pushed before.
    ada.steno(&["annotate", ID, "mine #private"]).ok();
    assert!(server.search("apricot").starts_with("Nothing in "), "private by a note");
    server.close();
}

/// Installs a fake agent that prints its folder and arguments.
fn install(member: &Member, program: &str, version: &str) {
    let script = format!(
        "#!/bin/sh\n[ \"$1\" = --version ] && echo {version} && exit\n\
         echo \"$(pwd): {program} $*\"\nexit 7\n"
    );
    let path = member.home.file(&format!("bin/{program}"), script);
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Runs `steno resume` in a folder of the home.
fn resume(member: &Member, folder: &str, args: &[&str]) -> Output {
    let mut command = member.home.command(&[&["resume"], args].concat());
    let path = format!("{}:/usr/bin:/bin", member.home.path().join("bin").display());
    command.env("PATH", path).env("USER", &member.user);
    command.env("STENO_NOW", "2026-01-05T09:15:32.5Z");
    command.current_dir(member.home.path().join(folder));
    member.home.finish(command, b"")
}

#[test]
fn a_session_of_a_colleague_is_resumed_here() {
    let (_shared, ada, bob) = team_of_two();
    let text = content(ID, &["apricot", "walnut"]);
    ada.work(ID, &text);
    ada.push();
    install(&bob, "claude", "2.1.325");
    fs::create_dir_all(bob.home.path().join("code/shop/src")).unwrap();
    let elsewhere = resume(&bob, ".", &[ID, "--from", "team"]);
    assert!(elsewhere.stderr.contains("use --project DIR"), "{elsewhere}");
    assert!(!bob.home.path().join(".claude").exists());

    let resumed = resume(&bob, "code/shop/src", &[ID, "--from", "team"]);
    assert_eq!(resumed.stdout, format!("$HOME/code/shop: claude --resume {ID}\n"), "{resumed}");
    let project = bob.home.path().join("code/shop").canonicalize().unwrap();
    let name = project.display().to_string().replace(|c: char| !c.is_ascii_alphanumeric(), "-");
    let file: PathBuf = bob.home.path().join(format!(".claude/projects/{name}/{ID}.jsonl"));
    assert_eq!(fs::read_to_string(&file).unwrap(), text);

    // The session goes on here, and is pushed by its new owner too.
    let longer = text.clone() + &turn(ID, 7, "the quince prompt");
    fs::write(&file, &longer).unwrap();
    let again = resume(&bob, "code/shop", &[ID, "--from", "team"]);
    assert_eq!((again.code, fs::read_to_string(&file).unwrap()), (7, longer), "left alone");
    bob.steno(&["sync"]).ok();
    bob.push();
    let copy = format!("{ID}.bob");
    assert_eq!(owned(&ada, &[]), [format!("{ID} ada"), format!("{copy} bob")]);
    assert_eq!(ada.pull()["duplicates"], 1);
    let shown = ada.steno(&["show", &copy, "--from", "team"]).ok();
    assert!(shown.contains("quince") && shown.contains("apricot"), "{shown}");
    assert_eq!(ada.steno(&["verify", "--from", "team"]).code, 0);
}

/// A session of Codex, which states no message ids, with this many answers of 100 input tokens.
fn codex_session(id: &str, answers: u64) -> String {
    let line = |at: u64, kind: &str, payload: Value| {
        let timestamp = format!("2026-01-05T09:{at:02}:00.123Z");
        format!("{}\n", json!({"timestamp": timestamp, "type": kind, "payload": payload}))
    };
    let meta = json!({"id": id, "timestamp": "2026-01-05T09:00:00.123Z", "cwd": "/p",
        "originator": "codex_cli_rs", "cli_version": "0.99.0"});
    let mut text = line(0, "session_meta", meta);
    text += &line(0, "turn_context", json!({"cwd": "/p", "model": "gpt-5"}));
    for n in 1..=answers {
        let content = json!([{"type": "output_text", "text": format!("Answer {n}")}]);
        let answer = json!({"type": "message", "role": "assistant", "content": content});
        text += &line(n, "response_item", answer);
        let usage = json!({"input_tokens": 100 * n, "output_tokens": 7 * n});
        let count = json!({"type": "token_count", "info": {"total_token_usage": usage}});
        text += &line(n, "event_msg", count);
    }
    text
}

#[test]
fn copies_of_sessions_are_charged_once_and_to_the_same_member_everywhere() {
    let (_shared, ada, bob) = team_of_two();
    let (id, fork) =
        ("0190a000-0000-7000-8000-000000000001", "0190a000-0000-7000-8000-000000000002");
    let work = |member: &Member, id: &str, answers| {
        let path = format!(".codex/sessions/2026/01/05/rollout-2026-01-05T09-00-00-{id}.jsonl");
        member.home.file(&path, codex_session(id, answers));
        member.work(ID, &content(ID, &["apricot", "walnut"]));
        member.push();
    };
    // Bob pushes first: what is charged to whom does not depend on it.
    work(&bob, id, 3);
    work(&bob, fork, 2);
    work(&ada, id, 2);
    let cost = |member: &Member, by: &str, agent: &str| {
        let args = ["cost", "--json", "--from", "team", "--by", by, "--agent", agent];
        let rows = member.steno(&args).ok();
        let rows = rows.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let of = |row: &Value| (row[by].clone(), row["tokens"]["input"].as_u64().unwrap());
        rows.filter(|row| row["total"] != true).map(|row| of(&row)).collect::<Vec<_>>()
    };
    for member in [&ada, &bob] {
        assert_eq!(cost(member, "agent", "codex"), [(json!("codex"), 300)], "{}", member.user);
        let mut people = cost(member, "person", "codex");
        people.sort_by_key(|(name, _)| name.to_string());
        assert_eq!(people, [(json!("ada"), 200), (json!("bob"), 100)], "{}", member.user);
        let claude = cost(member, "person", "claude-code");
        assert_eq!(claude, [(json!("ada"), 200)], "{}", member.user);
    }
    // On one machine too, with and without the index.
    for more in [&[][..], &["--no-index"]] {
        let args = [&["cost", "--json", "--by", "agent", "--agent", "codex"], more].concat();
        let own = bob.steno(&args).ok();
        let row: Value = serde_json::from_str(own.lines().next().unwrap()).unwrap();
        assert_eq!(row["tokens"]["input"], 300, "{own}");
    }
}

#[test]
fn a_session_of_a_colleague_goes_on_in_another_agent() {
    let (_shared, ada, bob) = team_of_two();
    ada.work(ID, &content(ID, &["apricot"]));
    ada.push();
    install(&bob, "codex", "0.166.0");
    fs::create_dir_all(bob.home.path().join("code/shop")).unwrap();
    let resumed = resume(&bob, "code/shop", &[ID, "--from", "team", "--in", "codex"]);
    assert!(resumed.stdout.starts_with("$HOME/code/shop: codex resume "), "{resumed}");
    let brief = resume(&bob, "code/shop", &[ID, "--from", "team", "--in", "codex", "--brief"]);
    assert!(brief.stdout.contains("the apricot prompt"), "{brief}");
    bob.steno(&["sync"]).ok();
    assert!(!bob.hits(&["apricot", "--agent", "codex"]).is_empty());
}

#[test]
fn a_session_of_a_colleague_does_not_choose_where_it_is_written() {
    let (_shared, ada, bob) = team_of_two();
    install(&bob, "claude", "2.1.325");
    fs::create_dir_all(bob.home.path().join("code/shop")).unwrap();
    // A file that ada keeps elsewhere has no place in a session folder here.
    ada.home.file(&format!("export/{ID}.jsonl"), content(ID, &["apricot"]));
    ada.steno(&["import", "export"]).ok();
    ada.push();
    let refused = resume(&bob, "code/shop", &[ID, "--from", "team"]);
    assert!(refused.stderr.contains("not in a session folder of claude-code"), "{refused}");
    assert!(refused.stderr.contains("--in AGENT"), "{refused}");
    assert!(!bob.home.path().join(".claude").exists());
}

#[test]
fn sessions_with_the_same_id_are_all_shown() {
    let (shared, ada, bob) = team_of_two();
    let eve = member("eve", &format!("file://{}", shared.path().display()));
    bob.work(ID, &content(ID, &["plum"]));
    bob.push();
    assert_eq!(owned(&eve, &[]), [format!("{ID} bob")]);
    ada.work(ID, &content(ID, &["apricot"]));
    ada.push();
    // The session that was there before keeps its id.
    assert_eq!(owned(&eve, &[]), [format!("{ID} bob"), format!("{ID}.ada ada")]);
    assert_eq!(owned(&ada, &[]), [format!("{ID} ada"), format!("{ID}.bob bob")], "one's own");
    assert_eq!(owned(&eve, &["--person", "ada"]), [format!("{ID}.ada ada")]);
    for word in ["plum", "apricot"] {
        assert!(!eve.hits(&[word, "--from", "team"]).is_empty(), "{word}");
    }
    // If one is forgotten, the other stays.
    bob.steno(&["forget", ID, "--yes"]).ok();
    bob.push();
    assert_eq!(owned(&eve, &[]), [format!("{ID} ada")]);
    assert!(eve.hits(&["plum", "--from", "team"]).is_empty());
    assert!(place(ID).ends_with(".jsonl"));
}
