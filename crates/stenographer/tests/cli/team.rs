//! Tests of `steno remote`, `push`, `pull` and `--from`, with a shared folder and with PostgreSQL.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use crate::harness::{Home, Output};
use crate::postgres_server::PostgresServer;

pub(crate) const ID: &str = "1b4e28ba-2fa1-41d2-883f-0016d3cca427";
pub(crate) const OTHER: &str = "2b4e28ba-2fa1-41d2-883f-0016d3cca427";

/// A secret, in two parts so that scanners of this file find nothing.
pub(crate) fn secret() -> String {
    ["ghp_", "x7Kq2LmN9pRtVwYzAbCdEfGh", "IjKlMnOp3456"].concat()
}

/// Lines of Claude Code: a prompt and an answer with usage.
pub(crate) fn turn(id: &str, n: u32, text: &str) -> String {
    let uuid = |k: u32| format!("00000000-0000-4000-8000-{:012}", n * 10 + k);
    let at = |k: u32| format!("2026-01-05T09:{:02}:{:02}.000Z", n % 60, k);
    let prompt = json!({"type": "user", "uuid": uuid(0), "parentUuid": null, "isSidechain": false,
        "cwd": "/home/ada/shop", "sessionId": id, "version": "2.1.0", "timestamp": at(0),
        "message": {"role": "user", "content": text}});
    let answer = json!({"type": "assistant", "uuid": uuid(1), "parentUuid": uuid(0),
        "isSidechain": false, "cwd": "/home/ada/shop", "sessionId": id, "version": "2.1.0",
        "timestamp": at(1), "message": {"id": format!("msg_01AbCdEfGhIjKlMn{n:04}"),
            "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
            "content": [{"type": "text", "text": format!("Answer {n}: could not open parseLine {text}")}],
            "usage": {"input_tokens": 100, "output_tokens": 10 + n,
                "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}}});
    format!("{prompt}\n{answer}\n")
}

pub(crate) fn place(id: &str) -> String {
    format!(".claude/projects/-home-ada-shop/{id}.jsonl")
}

pub(crate) fn content(id: &str, words: &[&str]) -> String {
    let turns = words.iter().enumerate();
    turns.map(|(n, word)| turn(id, n as u32 + 1, &format!("the {word} prompt"))).collect()
}

/// A home that pushes as `user` to the remote `team`.
pub(crate) fn member(user: &str, url: &str) -> Member {
    let (arguments, variables) = (Vec::new(), Vec::new());
    Member::with_setup(user, RemoteSetup { url: url.to_owned(), arguments, variables })
}

/// How a remote is added and reached.
#[derive(Clone)]
pub(crate) struct RemoteSetup {
    pub(crate) url: String,
    /// More arguments of `steno remote add`.
    pub(crate) arguments: Vec<String>,
    pub(crate) variables: Vec<(String, String)>,
}

pub(crate) struct Member {
    pub(crate) home: Home,
    pub(crate) user: String,
    pub(crate) setup: RemoteSetup,
}

impl Member {
    pub(crate) fn with_setup(user: &str, setup: RemoteSetup) -> Self {
        let member = Self { home: Home::new(), user: user.to_owned(), setup };
        let RemoteSetup { url, arguments, .. } = &member.setup;
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        member.steno(&[&["remote", "add", "team", url], &arguments[..]].concat()).ok();
        member
    }

    /// A machine without a remote.
    pub(crate) fn alone(user: &str) -> Self {
        let (url, arguments, variables) = (String::new(), Vec::new(), Vec::new());
        let setup = RemoteSetup { url, arguments, variables };
        Self { home: Home::new(), user: user.to_owned(), setup }
    }

    pub(crate) fn command(&self, args: &[&str]) -> std::process::Command {
        let mut command = self.home.command(args);
        command.env("STENO_NOW", "2026-01-06T09:15:32.5Z").env("USER", &self.user);
        command.envs(self.setup.variables.iter().cloned());
        command
    }

    pub(crate) fn steno(&self, args: &[&str]) -> Output {
        self.home.finish(self.command(args), b"")
    }

    /// Writes a session and syncs it.
    pub(crate) fn work(&self, id: &str, text: &str) {
        self.home.file(&place(id), text);
        self.steno(&["sync"]).ok();
    }

    pub(crate) fn push(&self) -> Value {
        serde_json::from_str(&self.steno(&["push", "--json"]).ok()).unwrap()
    }

    pub(crate) fn pull(&self) -> Value {
        serde_json::from_str(&self.steno(&["pull", "--json"]).ok()).unwrap()
    }

    pub(crate) fn ids(&self, args: &[&str]) -> Vec<String> {
        let output = self.steno(args);
        let rows = output.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let mut ids: Vec<String> =
            rows.map(|row| row["id"].as_str().unwrap_or_default().to_owned()).collect();
        ids.sort();
        ids
    }

    /// Sessions and numbers of the hits of a query.
    pub(crate) fn hits(&self, args: &[&str]) -> Vec<String> {
        let output =
            self.steno(&[&["search", "--json", "-n", "100", "--sort", "time"], args].concat());
        let rows = output.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        rows.map(|row| format!("{} {} {}", row["session"], row["entry"], row["lines"])).collect()
    }
}

pub(crate) fn below(folder: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            bytes.extend(below(&path));
        } else {
            let content = fs::read(&path).unwrap();
            bytes.extend(zstd::decode_all(&content[..]).unwrap_or_default());
            bytes.extend(content);
        }
    }
    bytes
}

pub(crate) fn has(bytes: &[u8], needle: &str) -> bool {
    memchr::memmem::find(bytes, needle.as_bytes()).is_some()
}

/// What two members of a team do with any remote.
pub(crate) fn check_a_team_of_two(ada: &Member, bob: &Member) {
    ada.work(ID, &content(ID, &["apricot", "walnut"]));
    let pushed = ada.push();
    assert_eq!((&pushed["sessions"], &pushed["frames"]), (&json!(1), &json!(1)), "{pushed}");
    let again = ada.push();
    assert_eq!(
        (&again["sessions"], &again["frames"], &again["rows"], &again["unchanged"]),
        (&json!(0), &json!(0), &json!(0), &json!(1))
    );
    bob.work(OTHER, &content(OTHER, &["plum"]));
    bob.push();
    assert_eq!(bob.ids(&["list", "--json"]), [OTHER]);
    assert_eq!(bob.ids(&["list", "--from", "team", "--json"]), [ID, OTHER]);
    assert_eq!(ada.pull()["sessions"], 2);
    assert_eq!(ada.pull()["unchanged"], 2);

    // The session grows.
    let longer = content(ID, &["apricot", "walnut", "quince"]);
    ada.work(ID, &longer);
    assert_eq!(ada.push()["frames"], 1);
    let shown = bob.steno(&["show", ID, "--from", "team"]).ok();
    assert!(shown.contains("quince"), "{shown}");
    let restored = bob.home.path().join("restored");
    bob.steno(&["restore", ID, "--from", "team", "--to", restored.to_str().unwrap()]).ok();
    assert!(has(&below(&restored), &longer), "equal to the byte");
    let verified = bob.steno(&["verify", "--from", "team"]);
    assert_eq!(verified.code, 0, "{verified}");
    assert!(verified.stderr.contains("team: 2 sessions"), "{verified}");
    let exported = bob.steno(&["export", ID, "--from", "team", "--format", "md"]).ok();
    assert!(exported.contains("quince"), "{exported}");
    let note = bob.steno(&["handoff", ID, "--from", "team"]).ok();
    assert!(note.contains("apricot"), "{note}");
    for query in ["apricot", "\"could not open\"", "parse", "parseLine", "wal*", "prompt -quince"] {
        assert_eq!(
            bob.hits(&[query, "--from", "team"]).iter().filter(|hit| hit.contains(ID)).count(),
            ada.hits(&[query]).len(),
            "{query}"
        );
    }
    let cost = |member: &Member, args: &[&str]| -> Value {
        let text = member.steno(&[&["cost", "--by", "agent", "--json"], args].concat()).ok();
        serde_json::from_str::<Value>(text.lines().next().unwrap()).unwrap()["tokens"].clone()
    };
    let own = [cost(ada, &[])["output"].as_u64(), cost(bob, &[])["output"].as_u64()];
    // Both have a message of the same id, which counts once, with the larger number.
    assert_eq!(own, [Some(11 + 12 + 13), Some(11)]);
    assert_eq!(cost(bob, &["--from", "team"])["output"], 11 + 12 + 13);
}

/// What became private after a push is removed from the remote and from mirrors, until it is private no longer.
pub(crate) fn check_withdrawal(ada: &Member, bob: &Member, remote: &dyn Fn() -> Vec<u8>) {
    ada.pull();
    let note = bob.steno(&["annotate", OTHER, "mine #private"]).ok();
    let pushed = bob.steno(&["push"]);
    assert!(pushed.stderr.contains("1 private session removed, 0 unchanged"), "{pushed}");
    assert_eq!(bob.push()["withdrawn"], 0);
    assert!(!has(&remote(), "plum"), "on the remote");
    assert_eq!(ada.pull()["removed"], 1);
    assert_eq!(ada.ids(&["list", "--from", "team", "--json"]), [ID]);
    assert!(!has(&below(&ada.home.path().join("store/remotes")), "plum"), "in the mirror");
    assert_eq!(bob.ids(&["list", "--json"]), [OTHER], "it stays here");
    bob.steno(&["annotate", OTHER, "--remove", note.trim()]).ok();
    assert_eq!(bob.push()["sessions"], 1);
    assert_eq!(ada.ids(&["list", "--from", "team", "--json"]), [ID, OTHER]);
}

/// What is forgotten is nowhere.
pub(crate) fn check_forgetting(ada: &Member, bob: &Member, remote: &dyn Fn() -> Vec<u8>) {
    assert!(!ada.ids(&["list", "--json"]).is_empty());
    bob.pull();
    ada.steno(&["forget", "--match", "walnut", "--yes"]).ok();
    ada.push();
    assert!(!has(&remote(), "walnut") && has(&remote(), "quince"), "a part on the remote");
    bob.steno(&["list", "--from", "team"]).ok();
    let mirror = below(&bob.home.path().join("store/remotes"));
    assert!(!has(&mirror, "walnut") && has(&mirror, "quince"), "a part in the mirror");
    ada.steno(&["forget", ID, "--yes", "--reason", "wrong"]).ok();
    assert_eq!(ada.push()["forgotten"], 1);
    assert_eq!(ada.push()["forgotten"], 0);
    assert!(!has(&remote(), "apricot"), "on the remote");
    // Another machine of the same person has the session still.
    let laptop = Member::with_setup(&ada.user, ada.setup.clone());
    laptop.work(ID, &content(ID, &["apricot"]));
    assert_eq!(laptop.push()["refused"], 1);
    assert!(!has(&remote(), "apricot"), "pushed again");
    let pulled = laptop.pull();
    assert_eq!(pulled["forgotten"], 1, "{pulled}");
    assert!(laptop.ids(&["list", "--json"]).is_empty());
    assert_eq!(bob.pull()["removed"], 1);
    bob.steno(&["list", "--from", "team"]).ok();
    assert!(!has(&below(&bob.home.path().join("store/remotes")), "apricot"), "in the mirror");
}

#[test]
fn pulled_sessions_are_pointed_to() {
    let shared = tempfile::tempdir().unwrap();
    let url = format!("file://{}", shared.path().display());
    let (ada, bob) = (member("ada", &url), member("bob", &url));
    ada.steno(&["remote", "init", "team"]).ok();
    let nothing = bob.steno(&["pull"]);
    assert!(!nothing.stderr.contains("--from"), "{nothing}");
    assert!(!bob.steno(&["list"]).stderr.contains("--from"));
    ada.work(ID, &content(ID, &["apricot"]));
    ada.push();
    let pulled = bob.steno(&["pull"]);
    let hint = "run `steno list --from team` to list the team's sessions\n";
    assert!(pulled.code == 0 && pulled.stderr.ends_with(hint), "{pulled}");
    for command in [&["list"][..], &["search", "apricot"], &["cost"]] {
        let output = bob.steno(command);
        assert!(output.stderr.contains("no sessions yet; "), "{command:?}: {output}");
        assert!(output.stderr.contains("use --from team for"), "{command:?}: {output}");
    }
}

#[test]
fn a_shared_folder_is_a_remote() {
    let shared = tempfile::tempdir().unwrap();
    let url = format!("file://{}", shared.path().join("steno").display());
    let (ada, bob) = (member("ada", &url), member("bob", &url));
    let refused = ada.steno(&["push"]);
    assert!(refused.stderr.contains("steno remote init team"), "{refused}");
    ada.steno(&["remote", "init", "team"]).ok();
    check_a_team_of_two(&ada, &bob);
    check_withdrawal(&ada, &bob, &|| below(shared.path()));
    check_forgetting(&ada, &bob, &|| below(shared.path()));
}

#[test]
fn a_database_is_a_remote() {
    let Some(server) = PostgresServer::start() else { return };
    let owner = member("postgres", &server.url("postgres"));
    let (ada, bob) = (member("ada", &server.url("ada")), member("bob", &server.url("bob")));
    let refused = owner.steno(&["push"]);
    assert!(refused.stderr.contains("steno remote init team"), "{refused}");
    owner.steno(&["remote", "init", "team"]).ok();
    owner.steno(&["remote", "init", "team"]).ok();
    server.add_member("ada", "shop");
    server.add_member("bob", "shop");
    check_a_team_of_two(&ada, &bob);
    check_withdrawal(&ada, &bob, &|| server.dump());
    check_forgetting(&ada, &bob, &|| server.dump());
}

#[test]
fn a_finished_push_survives_a_crash_of_the_server() {
    let Some(server) = PostgresServer::start() else { return };
    member("postgres", &server.url("postgres")).steno(&["remote", "init", "team"]).ok();
    server.add_member("ada", "shop");
    let ada = member("ada", &server.url("ada"));
    for n in 1..=4 {
        let id = format!("{n}b4e28ba-2fa1-41d2-883f-0016d3cca427");
        ada.work(&id, &content(&id, &["apricot", "walnut"]));
        ada.push();
        server.crash();
        let again = ada.push();
        let sent = ["sessions", "frames", "rows"].map(|kind| again[kind].clone());
        assert_eq!(sent, [json!(0), json!(0), json!(0)], "{again}");
    }
    assert_eq!(server.sql("steno", "SELECT count(*) FROM steno.session").trim(), "4");
}

#[test]
fn what_was_never_pushed_is_not_counted_as_removed() {
    let shared = tempfile::tempdir().unwrap();
    let url = format!("file://{}", shared.path().display());
    let ada = member("ada", &url);
    ada.steno(&["remote", "init", "team"]).ok();
    ada.work(ID, &content(ID, &["apricot"]));
    ada.work(OTHER, &content(OTHER, &["plum"]));
    ada.steno(&["forget", ID, "--yes"]).ok();
    let pushed = ada.steno(&["push"]);
    assert!(pushed.stderr.contains("pushed 1 session to team, 0 unchanged"), "{pushed}");
    let laptop = member("ada", &url);
    laptop.work(ID, &content(ID, &["apricot"]));
    assert_eq!(laptop.push()["refused"], 1, "it was forgotten all the same");
}

#[test]
fn a_large_text_is_sent_in_pieces() {
    let Some(server) = PostgresServer::start() else { return };
    member("postgres", &server.url("postgres")).steno(&["remote", "init", "team"]).ok();
    server.add_member("ada", "shop");
    let ada = member("ada", &server.url("ada"));
    // Longer than a parameter may be. A NUL cannot be stored.
    let large = |word: &str| format!("{}{word}\0", format!("{word} caf\u{e9} ").repeat(400_000));
    let texts = ["before", &large("walnut"), "between", &large("quince"), "after"];
    let stored = texts.map(|text| text.replace('\0', "\u{2400}"));
    let session: String = (1..).zip(texts).map(|(n, text)| turn(ID, n, text)).collect();
    let check = || {
        let sql = "SELECT body FROM steno.entry WHERE role = 'user' ORDER BY number";
        assert!(server.sql("steno", sql).lines().eq(&stored));
    };
    ada.work(ID, &session);
    ada.push();
    check();
    for word in ["walnut", "quince", "between"] {
        let found = ada.hits(&[word, "--from", "team", "--role", "user"]);
        assert_eq!(found.len(), 1, "{word}");
    }
    // A role that may not create temporary tables sends it whole.
    server.sql("steno", "REVOKE TEMPORARY ON DATABASE steno FROM PUBLIC");
    server.sql("steno", "DELETE FROM steno.session");
    assert_eq!(ada.push()["sessions"], 1);
    check();
}

/// Answers of 330 kB each, of which some dozen fill a part. Two records state each message, the second one more tokens.
pub(crate) fn long_answers(count: u32) -> String {
    let line = |n: u32| {
        let words = format!("answer{n:02} ").repeat(330_000 / 9);
        let message = json!({"id": format!("msg_01{:022}", n / 2), "type": "message", "role": "assistant",
            "model": "claude-sonnet-4-5", "content": [{"type": "text", "text": words}],
            "usage": {"input_tokens": 3, "output_tokens": 1 + 4 * (n % 2)}});
        let record = json!({"type": "assistant", "uuid": format!("{n:08x}-0000-4000-8000-000000000009"),
            "parentUuid": null, "isSidechain": false, "cwd": "/home/ada/shop", "sessionId": ID, "version": "2.1.0",
            "timestamp": format!("2026-01-05T09:{n:02}:00.000Z"), "message": message});
        format!("{record}\n")
    };
    (0..count).map(line).collect()
}

#[test]
fn a_large_session_is_sent_in_parts() {
    let Some(server) = PostgresServer::start() else { return };
    member("postgres", &server.url("postgres")).steno(&["remote", "init", "team"]).ok();
    server.add_member("ada", "shop");
    let ada = member("ada", &server.url("ada"));
    let check = |answers: u32| {
        let sql = "SELECT taken, entries, (SELECT count(*) FROM steno.entry),
            (SELECT count(DISTINCT number) FROM steno.entry) FROM steno.session";
        let expected = vec![answers.to_string(); 4].join("|");
        assert_eq!(server.sql("steno", sql).trim(), expected);
        let counted = server.psql("ada", "steno", "SELECT sum(output) FROM steno.charges()").stdout;
        assert_eq!(String::from_utf8(counted).unwrap().trim(), (answers / 2 * 5).to_string());
    };
    let all_rows = 30 + 15;
    ada.work(ID, &long_answers(30));
    assert_eq!(ada.push()["rows"], all_rows);
    check(30);
    let compare = |expected: u32| {
        fs::remove_file(ada.home.path().join("store/remotes/team/pushed.json")).unwrap();
        let pushed = ada.push();
        assert_eq!((&pushed["sessions"], &pushed["rows"]), (&json!(0), &json!(expected)));
    };
    compare(0);
    // The database has other entries than these, which is found in the last part; in an earlier one; and too many.
    for taken in ["taken", "16", "40"] {
        let change = format!("UPDATE steno.session SET taken = {taken}, digest = '\\x00'");
        server.sql("steno", &change);
        compare(all_rows);
        check(30);
    }
    // It has none, as after a push that was killed.
    server.sql("steno", "DELETE FROM steno.entry");
    server.sql("steno", "DELETE FROM steno.usage");
    server.sql("steno", "UPDATE steno.session SET taken = 0, digest = NULL");
    compare(all_rows);
    check(30);
    ada.work(ID, &long_answers(32));
    assert_eq!(ada.push()["rows"], 2 + 1);
    check(32);
}

#[test]
fn usage_with_keys_of_an_older_version_is_replaced() {
    let Some(server) = PostgresServer::start() else { return };
    member("postgres", &server.url("postgres")).steno(&["remote", "init", "team"]).ok();
    server.add_member("ada", "shop");
    let ada = member("ada", &server.url("ada"));
    ada.work(ID, &long_answers(30));
    ada.work(OTHER, &content(OTHER, &["apricot"]));
    ada.push();
    let usage = "SELECT key, number, output FROM steno.usage ORDER BY key";
    let present = server.sql("steno", usage);
    assert_eq!(present.lines().count(), 15 + 1);
    // As a program of an older version has left it: other keys, and a list that says nothing of their version.
    server.sql("steno", "UPDATE steno.usage SET key = sha256(key), key_version = 0");
    server.sql("steno", "UPDATE steno.session SET usage_key_version = 0");
    let list = ada.home.path().join("store/remotes/team/pushed.json");
    let older = fs::read_to_string(&list).unwrap().replace(",\"usage_key_version\":1", "");
    fs::write(&list, &older).unwrap();
    assert_ne!(server.sql("steno", usage), present);
    let pushed = ada.push();
    assert_eq!((&pushed["sessions"], &pushed["rows"]), (&json!(0), &json!(16)));
    assert_eq!(server.sql("steno", usage), present);
    assert_eq!(server.sql("steno", "SELECT DISTINCT usage_key_version FROM steno.session"), "1\n");
    // Once: not by the next push, nor by another machine whose list is older.
    assert_eq!(ada.push()["unchanged"], 2);
    fs::write(&list, &older).unwrap();
    assert_eq!(ada.push()["rows"], 0);
    // A push that was killed has sent some of it.
    server
        .sql("steno", "UPDATE steno.usage SET key = sha256(key), key_version = 0 WHERE number > 9");
    server.sql("steno", "UPDATE steno.session SET usage_key_version = 0");
    fs::write(&list, &older).unwrap();
    ada.push();
    assert_eq!(server.sql("steno", usage), present);
}

#[test]
fn secrets_never_leave() {
    let shared = tempfile::tempdir().unwrap();
    let url = format!("file://{}", shared.path().display());
    let ada = member("ada", &url);
    ada.steno(&["remote", "init", "team"]).ok();
    ada.work(ID, &content(ID, &["apricot", &format!("token {}", secret())]));
    assert!(ada.push()["secrets"].as_u64().unwrap() > 0);
    let pushed = below(shared.path());
    assert!(has(&pushed, "apricot") && !has(&pushed, &secret()));
    assert!(ada.home.vault().sessions_with_id(ID).unwrap()[0].exists());
}

#[test]
fn secrets_never_reach_a_database() {
    let Some(server) = PostgresServer::start() else { return };
    member("postgres", &server.url("postgres")).steno(&["remote", "init", "team"]).ok();
    server.add_member("ada", "shop");
    let ada = member("ada", &server.url("ada"));
    let hostile = format!("token {} '; DROP TABLE steno.entry; -- \\N \\. \t\0 \u{7}", secret());
    ada.work(ID, &content(ID, &["apricot", &hostile]));
    assert!(ada.push()["secrets"].as_u64().unwrap() > 0);
    let dump = server.dump();
    assert!(has(&dump, "apricot") && !has(&dump, &secret()));
    assert_eq!(server.sql("steno", "SELECT count(*) FROM steno.entry").trim(), "4");
    for query in ["'; DROP", "drop' | 'x", "table') --", "%", "a:*", "\"drop table\""] {
        let found = ada.steno(&["search", query, "--from", "team", "--json"]);
        assert!(found.code <= 1 && !found.stderr.contains("syntax"), "{query}: {found}");
    }
    for flag in ["--agent", "--project", "--model", "--thread", "--role", "--tool"] {
        let found = ada.steno(&["search", "apricot", flag, "x' OR '1'='1", "--from", "team"]);
        assert_eq!((found.code, found.stdout.as_str()), (1, ""), "{flag}: {found}");
    }
    assert_eq!(server.sql("steno", "SELECT count(*) FROM steno.entry").trim(), "4");
}

#[test]
fn two_machines_that_diverge_become_two_generations() {
    let shared = tempfile::tempdir().unwrap();
    let url = format!("file://{}", shared.path().display());
    let (desktop, laptop) = (member("ada", &url), member("ada", &url));
    desktop.steno(&["remote", "init", "team"]).ok();
    let start = content(ID, &["apricot"]);
    desktop.work(ID, &(start.clone() + &turn(ID, 7, "on the desktop")));
    laptop.work(ID, &(start.clone() + &turn(ID, 8, "on the laptop")));
    desktop.push();
    laptop.push();
    for _ in 0..3 {
        assert_eq!(
            (desktop.push()["frames"].clone(), laptop.push()["frames"].clone()),
            (json!(0), json!(0))
        );
    }
    let longer = start.clone() + &turn(ID, 7, "on the desktop") + &turn(ID, 9, "and longer");
    desktop.work(ID, &longer);
    assert_eq!(desktop.push()["frames"], 1);
    let manifest = shared.path().join("sessions/ada/claude-code").join(ID).join("manifest.json");
    let manifest: Value = serde_json::from_slice(&fs::read(manifest).unwrap()).unwrap();
    let lengths: Vec<usize> = manifest["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| file["frames"].as_array().unwrap().len())
        .collect();
    assert_eq!(lengths, [2, 1]);
    laptop.pull();
    assert_eq!(laptop.steno(&["verify", "--from", "team"]).code, 0);
}

#[test]
fn damage_on_the_remote_is_found() {
    let shared = tempfile::tempdir().unwrap();
    let url = format!("file://{}", shared.path().display());
    let ada = member("ada", &url);
    ada.steno(&["remote", "init", "team"]).ok();
    ada.work(ID, &content(ID, &["apricot"]));
    ada.push();
    let folder = shared.path().join("sessions/ada/claude-code").join(ID);
    let frames = fs::read_dir(&folder).unwrap().flatten().map(|entry| entry.path());
    let frame = frames.into_iter().find(|path| path.extension().is_some_and(|end| end == "zst"));
    let frame = frame.unwrap();
    let mut bytes = fs::read(&frame).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&frame, bytes).unwrap();
    let verified = ada.steno(&["verify", "--from", "team"]);
    assert_eq!(verified.code, 1, "{verified}");
    assert!(verified.stderr.contains("differs from its hash"), "{verified}");
    fs::remove_file(&frame).unwrap();
    let verified = ada.steno(&["verify", "--from", "team"]);
    assert!(verified.code == 1 && verified.stderr.contains("is missing"), "{verified}");
    let manifest = folder.join("manifest.json");
    let text = fs::read_to_string(&manifest).unwrap().replacen("\"length\":", "\"length\":1", 1);
    fs::write(&manifest, text).unwrap();
    let verified = ada.steno(&["verify", "--from", "team"]);
    assert!(verified.code == 1 && verified.stderr.contains("chain"), "{verified}");
}

/// What the remote has may be the last whole copy.
#[test]
fn a_damaged_session_is_not_pushed() {
    let shared = tempfile::tempdir().unwrap();
    let url = format!("file://{}", shared.path().display());
    let ada = member("ada", &url);
    ada.steno(&["remote", "init", "team"]).ok();
    ada.work(ID, &content(ID, &["apricot"]));
    ada.push();
    let pushed = below(shared.path());
    ada.steno(&["annotate", ID, "a reason to push again"]).ok();
    let dir = ada.home.vault().list_agent_sessions("claude-code").unwrap().remove(0);
    let sealed = dir.path().join(format!("{ID}.jsonl.zst"));
    let whole = fs::read(&sealed).unwrap();
    for damage in [&[][..], &whole[..whole.len() / 2]] {
        fs::write(&sealed, damage).unwrap();
        let failed = ada.steno(&["push"]);
        assert!(failed.code == 1 && failed.stderr.contains("jsonl.zst"), "{failed}");
        assert!(below(shared.path()) == pushed);
    }
    fs::remove_file(&sealed).unwrap();
    let failed = ada.steno(&["push"]);
    assert!(failed.code == 1 && failed.stderr.contains("missing"), "{failed}");
    assert!(below(shared.path()) == pushed);
    fs::write(&sealed, whole).unwrap();
    assert_eq!(ada.push()["sessions"], 1);
}

#[test]
fn filters_and_private_sessions_are_respected() {
    let shared = tempfile::tempdir().unwrap();
    let url = format!("file://{}", shared.path().display());
    let ada = Member::alone("ada");
    ada.steno(&["remote", "add", "team", &url, "--project", "warehouse"]).ok();
    ada.steno(&["remote", "init", "team"]).ok();
    ada.work(ID, &content(ID, &["apricot"]));
    assert_eq!(ada.push()["sessions"], 0);
    ada.steno(&["remote", "remove", "team"]).ok();
    ada.steno(&["remote", "add", "team", &url, "--project", "shop"]).ok();
    ada.work(OTHER, &content(OTHER, &["plum"]));
    ada.steno(&["annotate", OTHER, "mine #private"]).ok();
    assert_eq!(ada.push()["sessions"], 1);
    assert!(!has(&below(shared.path()), "plum"));
    // A project that becomes private is removed, whatever the remote selects.
    let config = ada.home.path().join("store/config.toml");
    let settings = fs::read_to_string(&config).unwrap();
    fs::write(&config, settings + "\n[private]\nprojects = [\"shop\"]\n").unwrap();
    assert_eq!(ada.push()["withdrawn"], 1);
    assert!(!has(&below(shared.path()), "apricot"));
}

#[test]
fn a_member_without_variables_pushes_under_the_name_of_the_user_id() {
    let shared = tempfile::tempdir().unwrap();
    let url = format!("file://{}", shared.path().display());
    let ada = member("ada", &url);
    ada.steno(&["remote", "init", "team"]).ok();
    ada.work(ID, &content(ID, &["apricot"]));
    let own = std::process::Command::new("id").arg("-un").output().unwrap().stdout;
    let own = String::from_utf8(own).unwrap();
    for (variable, name) in [("LOGNAME", "eve"), ("STENO_NOTHING", own.trim())] {
        let mut command = ada.command(&["push"]);
        command.env_remove("USER").env(variable, name);
        assert_eq!(ada.home.finish(command, b"").code, 0);
        let listed = ada.ids(&["list", "--from", "team", "--person", name, "--json"]);
        assert_eq!(listed.len(), 1, "{name}: {listed:?}");
    }
}

#[test]
fn a_password_on_the_command_line_is_refused() {
    let ada = Member::alone("ada");
    let password = ["hunter", "2"].concat();
    let refused = ada.steno(&["remote", "add", "team", &format!("postgres://a:{password}@h/s")]);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains(".pgpass") && !refused.stderr.contains(&password), "{refused}");
    for (option, url) in [
        ("--keys", format!("postgres://a:{password}@h/s")),
        ("--index", format!("clickhouse+http://a:{password}@h:8123/s")),
    ] {
        let refused = ada.steno(&["remote", "add", "team", "s3://bucket/team", option, &url]);
        assert!(refused.code == 2 && refused.stderr.contains("password"), "{refused}");
        assert!(!refused.stderr.contains(&password), "{refused}");
    }
    assert!(!ada.home.path().join("store/config.toml").exists());
}

#[test]
fn all_settings_of_a_remote_have_options() {
    let ada = Member::alone("ada");
    let add = "remote add team postgres://ada@db.example.com/steno --project shop --project work/bank --agent codex
        --visibility everyone --no-redact --no-notes --every 10m --keep 365d --password-command pass
        --keys postgres://ada@db.example.com/keys --index clickhouse+http://ada@db.example.com:8123/steno?org=shop
        --index-password-command cat";
    ada.steno(&add.split_ascii_whitespace().collect::<Vec<_>>()).ok();
    let written = fs::read_to_string(ada.home.path().join("store/config.toml")).unwrap();
    let expected = r#"[remote.team]
url = "postgres://ada@db.example.com/steno"
projects = ["shop", "work/bank"]
agents = ["codex"]
visibility = "everyone"
keys = "postgres://ada@db.example.com/keys"
redact = false
notes = false
every = "10m"
keep = "365d"
password_command = "pass"
index = "clickhouse+http://ada@db.example.com:8123/steno?org=shop"
index_password_command = "cat"
"#;
    assert_eq!(written, expected);
    let listed = ada.steno(&["remote", "list", "--json"]).ok();
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!((&listed["every"], &listed["keep_days"]), (&json!(600), &json!(365)));
    assert_eq!(listed["index"], "clickhouse+http://ada@db.example.com:8123/steno?org=shop");
    for (option, text) in [("--every", "daily"), ("--keep", "1y"), ("--index", "db:8123")] {
        let refused = ada.steno(&["remote", "add", "other", "file:///srv", option, text]);
        assert_eq!(refused.code, 2, "{refused}");
    }
    let alone = ["remote", "add", "other", "file:///srv", "--index-password-command", "cat"];
    assert_eq!(ada.steno(&alone).code, 2, "a password of what");
    assert_eq!(fs::read_to_string(ada.home.path().join("store/config.toml")).unwrap(), expected);
}

#[cfg(not(feature = "bucket"))]
#[test]
fn a_build_without_buckets_says_so() {
    let ada = member("ada", "s3://team/steno");
    for command in [&["push"][..], &["remote", "init", "team"], &["list", "--from", "team"]] {
        let refused = ada.steno(command);
        assert!(refused.code == 1 && refused.stderr.contains("--features bucket"), "{refused}");
    }
}

#[test]
fn remotes_of_other_versions_are_refused() {
    let shared = tempfile::tempdir().unwrap();
    let url = format!("file://{}", shared.path().display());
    let ada = member("ada", &url);
    ada.steno(&["remote", "init", "team"]).ok();
    for (version, hint) in [(0, "remote init team"), (99, "newer version of steno")] {
        fs::write(
            shared.path().join("steno-remote.json"),
            format!("{{\"steno_remote\":{version}}}"),
        )
        .unwrap();
        for command in ["push", "pull"] {
            let refused = ada.steno(&[command]);
            assert!(refused.code == 1 && refused.stderr.contains(hint), "{refused}");
        }
    }
}

/// The lines of the page's blocks of shell commands.
fn page_commands() -> Vec<Vec<String>> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/team.md");
    let text = fs::read_to_string(page).unwrap();
    let blocks = text.split("```sh\n").skip(1).map(|block| block.split("```").next().unwrap());
    blocks.map(|block| block.lines().map(str::to_owned).collect()).collect()
}

#[test]
fn the_page_makes_a_team_of_three_in_ten_commands() {
    let Some(server) = PostgresServer::start() else { return };
    server.sql("postgres", "DROP DATABASE steno");
    let [owner, member]: [Vec<String>; 2] = page_commands().try_into().unwrap();
    assert_eq!(owner.len() + member.len(), 10);
    let run = |home: &Home, line: &str| {
        let mut command = home.program("sh", &["-c", &server.localised(line)]);
        let steno = Path::new(env!("CARGO_BIN_EXE_steno")).parent().unwrap();
        command.env("PATH", format!("{}:{}:/usr/bin:/bin", steno.display(), server.programs()));
        command.envs(server.client_variables());
        home.finish(command, b"")
    };
    let home = Home::new();
    owner.iter().for_each(|line| drop(run(&home, line).ok()));
    for name in ["ada", "bob", "eve"] {
        let home = Home::new();
        let id = format!("{name}-0000-4000-8000-000000000001");
        home.file(&place(&id), content(&id, &["login timeout"]));
        home.steno(&["sync"]).ok();
        for line in &member {
            let output = run(&home, &line.replace("ada@", &format!("{name}@")));
            assert_eq!(output.code, 0, "{name}: {line}: {output}");
        }
    }
}

#[test]
fn killed_pushes_are_completed() {
    let shared = tempfile::tempdir().unwrap();
    let server = PostgresServer::start();
    let mut urls = vec![format!("file://{}", shared.path().display())];
    if let Some(server) = &server {
        member("postgres", &server.url("postgres")).steno(&["remote", "init", "team"]).ok();
        server.add_member("ada", "shop");
        urls.push(server.url("ada"));
    }
    for url in urls {
        let (desktop, laptop) = (member("ada", &url), member("ada", &url));
        if url.starts_with("file") {
            desktop.steno(&["remote", "init", "team"]).ok();
        }
        let mut text = String::new();
        for round in 1..=6 {
            text += &turn(ID, round, &format!("word{round} {}", "filler ".repeat(2_000)));
            desktop.work(ID, &text);
            laptop.work(ID, &text);
            let start = |member: &Member| member.command(&["push"]).spawn().unwrap();
            let mut pushes = [start(&desktop), start(&laptop)];
            std::thread::sleep(std::time::Duration::from_millis(u64::from(round) * 17));
            for push in &mut pushes {
                let _ = push.kill();
                push.wait().unwrap();
            }
        }
        desktop.push();
        laptop.push();
        let again = desktop.push();
        assert_eq!((&again["frames"], &again["rows"]), (&json!(0), &json!(0)), "{url}: {again}");
        let verified = laptop.steno(&["verify", "--from", "team"]);
        assert_eq!(verified.code, 0, "{verified}");
        let restored = laptop.home.path().join("restored");
        laptop.steno(&["restore", ID, "--from", "team", "--to", restored.to_str().unwrap()]).ok();
        assert!(has(&below(&restored), &text), "{url}");
        for round in 1..=6 {
            let word = format!("word{round}");
            assert_eq!(laptop.hits(&[&word, "--from", "team"]).len(), 2, "{url} {word}");
        }
    }
}

#[test]
fn a_recording_is_pushed_without_secrets() {
    let shared = tempfile::tempdir().unwrap();
    let url = format!("file://{}", shared.path().display());
    let (ada, bob) = (member("ada", &url), member("bob", &url));
    ada.steno(&["remote", "init", "team"]).ok();
    let lines = [
        json!({"role": "user", "content": format!("deploy with {}", secret())}),
        json!({"role": "assistant", "content": "deployed the apricot"}),
    ];
    let input: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let recorded =
        ada.home.steno_with(&["record", "--agent", "mybot", "--session", "r1"], input.as_bytes());
    recorded.ok();
    assert_eq!(ada.push()["sessions"], 1);
    assert!(!has(&below(shared.path()), &secret()));
    let shown = bob.steno(&["show", "r1", "--from", "team"]).ok();
    assert!(shown.contains("apricot") && shown.contains("[redacted"), "{shown}");
    let verified = bob.steno(&["verify", "--from", "team"]);
    assert_eq!(verified.code, 0, "{verified}");
}
