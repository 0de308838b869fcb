//! `steno load`, and search and cost from its index, with ClickHouse in a process of its own.

use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::clickhouse_server::ClickHouseServer;
use crate::harness::{Home, Output};
use crate::team;

/// How often a loader is killed.
const KILLS: u64 = 50;

/// A home with a shared folder as its remote, and an index.
struct Loader {
    home: Home,
    url: String,
}

fn id(n: u32) -> String {
    format!("{n:08}-2fa1-41d2-883f-0016d3cca427")
}

/// A prompt and an answer with usage. `n` is the number of the turn, over all sessions.
fn turn(id: &str, n: u32, text: &str) -> String {
    let uuid = |k: u32| format!("00000000-0000-4000-8000-{:012}", n * 10 + k);
    let at = |k: u32| {
        format!("2026-01-{:02}T{:02}:{:02}:{k:02}.000Z", 1 + n / 1440, n / 60 % 24, n % 60)
    };
    let model = ["claude-sonnet-4-5", "claude-opus-4-5", "our-own-model"][n as usize % 3];
    let prompt = json!({"type": "user", "uuid": uuid(0), "parentUuid": null, "isSidechain": false,
        "cwd": "/home/ada/shop", "sessionId": id, "version": "2.1.0", "timestamp": at(0),
        "message": {"role": "user", "content": text}});
    let answer = json!({"type": "assistant", "uuid": uuid(1), "parentUuid": uuid(0),
        "isSidechain": false, "cwd": "/home/ada/shop", "sessionId": id, "version": "2.1.0",
        "timestamp": at(1), "message": {"id": format!("msg_01AbCdEfGhIjKlMn{n:04}"),
            "type": "message", "role": "assistant", "model": model,
            "content": [{"type": "text", "text": format!("Answer {n}: parseLine of {text}")}],
            "usage": {"input_tokens": 100 + n, "output_tokens": 10 + n,
                "cache_creation_input_tokens": 5, "cache_read_input_tokens": 7}}});
    format!("{prompt}\n{answer}\n")
}

impl Loader {
    fn new(server: &ClickHouseServer, org: &str) -> Self {
        let loader = Self { home: Home::new(), url: server.url(org) };
        let shared = format!("file://{}/shared", loader.home.path().display());
        let settings = format!("[remote.team]\nurl = {shared:?}\nindex = {:?}\n", loader.url);
        loader.home.file("store/config.toml", settings);
        loader.steno(&["remote", "init", "team"]).ok();
        loader.steno(&["load", "--from", "team", "--init"]).ok();
        loader
    }

    fn command(&self, args: &[&str]) -> std::process::Command {
        let mut command = self.home.command(args);
        command.env("STENO_NOW", "2026-01-20T09:15:32.5Z").env("USER", "ada");
        command
    }

    fn steno(&self, args: &[&str]) -> Output {
        self.home.finish(self.command(args), b"")
    }

    /// Writes sessions, and pushes them.
    fn work(&self, sessions: &[(String, String)]) {
        for (id, text) in sessions {
            self.home.file(&format!(".claude/projects/-home-ada-shop/{id}.jsonl"), text);
        }
        self.steno(&["sync"]).ok();
        self.steno(&["push"]).ok();
    }

    fn load(&self) -> Value {
        serde_json::from_str(&self.steno(&["load", "--from", "team", "--json"]).ok()).unwrap()
    }

    fn start(&self) -> Child {
        let mut command = self.command(&["load", "--from", "team"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command.spawn().unwrap()
    }

    fn rows(&self, args: &[&str]) -> Vec<Value> {
        let output = self.steno(args);
        assert!(output.code <= 1 && !output.stderr.contains("error"), "{args:?}: {output}");
        output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Sessions, numbers and lines of all hits, newest first.
    fn hits(&self, args: &[&str]) -> Vec<String> {
        let rows =
            self.rows(&[&["search", "--json", "-n", "1000", "--sort", "time"], args].concat());
        let mut hits: Vec<String> = rows
            .iter()
            .map(|row| {
                format!("{} {} {} {}", row["session"], row["entry"], row["time"], row["lines"])
            })
            .collect();
        // Entries of the same moment have no order.
        hits.sort();
        hits
    }
}

/// All rows that count, without what only one load has: the organisation and the parts.
fn counted_rows(server: &ClickHouseServer, org: &str) -> [String; 3] {
    let current = format!("FROM steno_session FINAL WHERE org = '{org}'");
    [
        server.sql(&format!(
            "SELECT DISTINCT * EXCEPT (org, part) FROM steno_entry WHERE org = '{org}' AND (session, part)
            IN (SELECT session, arrayJoin(parts) {current}) ORDER BY session, source, seq"
        )),
        server.sql(&format!(
            "SELECT DISTINCT * EXCEPT org FROM steno_usage WHERE org = '{org}' AND (session, revision)
            IN (SELECT session, revision {current}) ORDER BY key, session"
        )),
        server.sql(&format!("SELECT * EXCEPT (org, parts) {current} ORDER BY session")),
    ]
}

/// Rows that do not count, or are there twice under different keys.
fn check_no_other_rows(server: &ClickHouseServer, org: &str) {
    let [entries, usage, _] = counted_rows(server, org);
    for (table, rows) in [("steno_entry", entries), ("steno_usage", usage)] {
        let all = server.sql(&format!("SELECT count() FROM {table} FINAL WHERE org = '{org}'"));
        assert_eq!(all.trim().parse::<usize>().unwrap(), rows.lines().count(), "{table}");
    }
}

fn some_sessions(count: u32, turns: u32) -> Vec<(String, String)> {
    let session = |n: u32| {
        let id = id(n);
        let turn =
            |k: u32| turn(&id, n * 100 + k, &format!("word{n} and word{k} could not open it"));
        let text = (0..turns).map(turn).collect();
        (id.clone(), text)
    };
    (1..=count).map(session).collect()
}

#[test]
fn a_second_load_changes_nothing_and_a_longer_session_adds_its_end() {
    let Some(server) = ClickHouseServer::start(None) else { return };
    let ada = Loader::new(&server, "shop");
    ada.work(&some_sessions(3, 4));
    let first = ada.load();
    assert_eq!(
        (&first["sessions"], &first["entries"], &first["usage"]),
        (&json!(3), &json!(24), &json!(12))
    );
    let rows = counted_rows(&server, "shop");
    let again = ada.load();
    assert_eq!((&again["sessions"], &again["unchanged"]), (&json!(0), &json!(3)));
    assert_eq!(counted_rows(&server, "shop"), rows);
    check_no_other_rows(&server, "shop");

    ada.work(&some_sessions(3, 6)[..1]);
    let longer = ada.load();
    assert_eq!(
        (&longer["sessions"], &longer["entries"]),
        (&json!(1), &json!(4)),
        "only what is new"
    );
    check_no_other_rows(&server, "shop");
    let fresh = Loader::new(&server, "fresh");
    fresh.work(&some_sessions(3, 4)[1..]);
    fresh.work(&some_sessions(3, 6)[..1]);
    fresh.load();
    let [entries, usage, _] = counted_rows(&server, "shop");
    let [fresh_entries, fresh_usage, _] = counted_rows(&server, "fresh");
    assert_eq!(entries, fresh_entries);
    assert_eq!(usage.lines().count(), fresh_usage.lines().count());
}

#[test]
fn usage_with_keys_of_an_older_version_is_replaced() {
    let Some(server) = ClickHouseServer::start(None) else { return };
    let ada = Loader::new(&server, "shop");
    ada.work(&some_sessions(3, 4));
    ada.load();
    let rows = counted_rows(&server, "shop");
    // As a loader of an older version has left it: other keys, and revisions without a version.
    let older = "REPLACE (substring(revision, 1, 64) AS revision";
    server.sql(&format!(
        "INSERT INTO steno_usage SELECT * {older}, concat('0', key) AS key) FROM steno_usage FINAL"
    ));
    server.sql(&format!("INSERT INTO steno_session SELECT * {older}) FROM steno_session FINAL"));
    server.sql("DELETE FROM steno_usage WHERE length(revision) > 64");
    assert_ne!(counted_rows(&server, "shop"), rows);
    let loaded = ada.load();
    assert_eq!(
        (&loaded["sessions"], &loaded["entries"], &loaded["usage"]),
        (&json!(3), &json!(0), &json!(12))
    );
    assert_eq!(counted_rows(&server, "shop"), rows);
    check_no_other_rows(&server, "shop");
    assert_eq!(ada.load()["unchanged"], 3);
}

#[test]
fn a_large_session_is_loaded_in_parts() {
    let Some(server) = ClickHouseServer::start(None) else { return };
    let ada = Loader::new(&server, "shop");
    let session = |answers: u32| [(team::ID.to_owned(), team::long_answers(answers))];
    let counts = |loaded: &Value| ["sessions", "entries", "usage"].map(|kind| loaded[kind].clone());
    ada.work(&session(60));
    assert_eq!(counts(&ada.load()), [json!(1), json!(60), json!(30)]);
    check_no_other_rows(&server, "shop");
    let output = "SELECT sum(output) FROM steno_usage FINAL WHERE org = 'shop'";
    assert_eq!(server.sql(output).trim(), (60 / 2 * 5).to_string(), "the larger number counts");
    ada.work(&session(64));
    assert_eq!(counts(&ada.load()), [json!(1), json!(4), json!(32)], "only what is new");
    check_no_other_rows(&server, "shop");
    let fresh = Loader::new(&server, "fresh");
    fresh.work(&session(64));
    fresh.load();
    // The revisions differ, as one was pushed in two steps.
    let [entries, usage, _] = counted_rows(&server, "shop");
    let [fresh_entries, fresh_usage, _] = counted_rows(&server, "fresh");
    assert!(entries == fresh_entries);
    assert_eq!(usage.lines().count(), fresh_usage.lines().count());
    // Another beginning: all of it is loaded anew.
    let (id, text) = &session(64)[0];
    ada.work(&[(id.clone(), turn(id, 9000, "another beginning") + text)]);
    assert_eq!(counts(&ada.load()), [json!(1), json!(66), json!(33)]);
    check_no_other_rows(&server, "shop");
}

#[test]
fn a_loader_killed_fifty_times_and_two_at_once_leave_the_same_rows() {
    let Some(server) = ClickHouseServer::start(None) else { return };
    let ada = Loader::new(&server, "shop");
    let mut turns = 3;
    let mut sessions = some_sessions(12, turns);
    ada.work(&sessions);
    let mut killed = 0;
    while killed < KILLS {
        let mut loading = ada.start();
        std::thread::sleep(Duration::from_millis(20 + killed * 13 % 400));
        if loading.try_wait().unwrap().is_none() {
            loading.kill().unwrap();
            killed += 1;
            loading.wait().unwrap();
            continue;
        }
        // All was loaded. The sessions go on, one of them with another beginning.
        turns += 1;
        sessions = some_sessions(12, turns);
        let (id, text) = &mut sessions[turns as usize % 12];
        *text = turn(id, 9000 + turns, "another beginning") + text;
        ada.work(&sessions);
    }
    let mut both = [ada.start(), ada.start()];
    for loading in &mut both {
        assert!(loading.wait().unwrap().success());
    }
    ada.load();
    check_no_other_rows(&server, "shop");
    // The same remote, loaded once.
    let url = server.url("fresh");
    ada.steno(&["load", "--from", "team", "--to", &url]).ok();
    assert_eq!(counted_rows(&server, "shop"), counted_rows(&server, "fresh"));
}

/// Queries made from the texts: words, beginnings, pairs, and combinations.
fn queries(texts: &[String]) -> Vec<String> {
    let mut queries: Vec<String> = [
        "parseLine",
        "parse",
        "line",
        "\"could not\"",
        "\"parse line\"",
        "\"not could\"",
        "wor*",
        "word1 -word2",
        "word1 OR word2",
        "word1 word2 -word3",
        "cafe",
        "CAFÉ",
        "日本",
        "本語",
        "日",
        "snake_case",
        "snake",
        "\"open it\" OR café",
        "a.b",
        "don't",
        "zzz",
        "x' OR '1'='1",
        "\"a'b\\\"",
        "HTTPServer",
        "http",
        "server",
        "\"HTTP server\"",
        "\"answer 1\"",
        "it's*",
    ]
    .map(str::to_owned)
    .to_vec();
    for (n, text) in texts.iter().enumerate() {
        let words: Vec<&str> = text
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| word.chars().count() > 1 && *word != "OR")
            .collect();
        let Some(word) = words.get(n * 7 % words.len().max(1)) else { continue };
        queries.push((*word).to_owned());
        if let Some(pair) = words.windows(2).nth(n * 5 % words.len().max(1)) {
            queries.push(format!("\"{}\"", pair.join(" ")));
            queries.push(pair.join(" "));
            queries.push(format!("{} -{}", pair[0], pair[1]));
        }
        let start: String = word.chars().take(3).collect();
        queries.push(format!("{start}*"));
    }
    queries.dedup();
    queries
}

#[test]
fn hits_and_costs_are_those_of_the_machine() {
    let Some(server) = ClickHouseServer::start(None) else { return };
    let ada = Loader::new(&server, "shop");
    let examples = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples");
    ada.steno(&["sync", examples]).ok();
    let mut sessions = some_sessions(5, 6);
    let end = turn(&id(2), 250, "Café naïve 日本語 snake_case don't HTTPServer a.b \u{1} nul\u{0}");
    sessions[1].1 += &end;
    // A message that is in two sessions, with more output in one.
    let shared = turn(&id(3), 401, "shared");
    sessions[2].1 += &shared.replace("\"output_tokens\":411", "\"output_tokens\":9000");
    ada.work(&sessions);
    ada.load();
    let exported = ada.steno(&["export", &id(1), &id(2), "--format", "jsonl"]).ok();
    let mut texts: Vec<String> = exported
        .lines()
        .map(|line| {
            serde_json::from_str::<Value>(line).unwrap()["content"].as_str().unwrap().to_owned()
        })
        .collect();
    texts.extend(
        ada.rows(&["search", "the", "--json", "-n", "40"])
            .iter()
            .map(|row| row["lines"].to_string()),
    );
    let queries = queries(&texts);
    assert!(queries.len() >= 200, "{}", queries.len());
    let (mut found, mut different) = (0, Vec::new());
    for query in &queries {
        let own = ada.hits(&[query.as_str()]);
        found += usize::from(!own.is_empty());
        let indexed = ada.hits(&[query.as_str(), "--from", "team"]);
        if own != indexed {
            different.push(format!("{query}\n  here: {own:?}\n  index: {indexed:?}"));
        }
    }
    assert!(found > 150, "{found} queries have hits");
    assert!(
        different.is_empty(),
        "{} of {}:\n{}",
        different.len(),
        queries.len(),
        different.join("\n")
    );
    for filter in [
        ["--role", "user"],
        ["--agent", "codex"],
        ["--project", "shop"],
        ["--model", "OPUS"],
        ["--since", "2026-01-04"],
        ["--until", "2026-01-01"],
        ["--tool", "bash"],
        ["--agent", "x' OR '1'='1"],
    ] {
        let query =
            |from: &[&str]| ada.hits(&[&["the OR word1"], filter.as_slice(), from].concat());
        if filter[1] != "x' OR '1'='1" {
            assert_eq!(query(&[]), query(&["--from", "team"]), "{filter:?}");
        } else {
            assert!(query(&["--from", "team"]).is_empty());
        }
    }
    for by in ["model", "day", "session", "project", "agent", "block"] {
        for more in [
            &[][..],
            &["--since", "2026-01-01T05:10:30"],
            &["--model", "sonnet"],
            &["--mode", "calculate"],
        ] {
            let args = [&["cost", "--json", "--by", by], more].concat();
            let own = ada.rows(&args);
            assert!(!own.is_empty());
            assert_eq!(own, ada.rows(&[&args[..], &["--from", "team"]].concat()), "{args:?}");
        }
    }
}

#[test]
fn forgotten_and_private_sessions_are_not_in_the_index() {
    let Some(server) = ClickHouseServer::start(None) else { return };
    let ada = Loader::new(&server, "shop");
    let session = |n: u32, word: &str| {
        (id(n), turn(&id(n), n, &format!("the {word} prompt")) + &turn(&id(n), n + 50, "walnut"))
    };
    ada.work(&[session(1, "apricot"), session(2, "plum")]);
    ada.load();
    assert!(has_text(&server, "apricot"), "the control");
    // A part of a session, and a whole one.
    ada.steno(&["forget", "--match", "plum", "--yes"]).ok();
    ada.steno(&["forget", &id(1), "--yes"]).ok();
    ada.steno(&["push"]).ok();
    let loaded = ada.load();
    assert_eq!(loaded["removed"], 1, "{loaded}");
    assert_eq!(ada.hits(&["apricot OR plum", "--from", "team"]), [""; 0]);
    assert_eq!(ada.hits(&["walnut", "--from", "team"]).len(), 2);
    ada.steno(&["load", "--from", "team", "--sweep"]).ok();
    assert!(!has_text(&server, "apricot") && !has_text(&server, "plum"));
    check_no_other_rows(&server, "shop");

    // From now on nobody else may see the other one.
    let settings = std::fs::read_to_string(ada.home.path().join("store/config.toml")).unwrap();
    ada.home.file("store/config.toml", settings + "visibility = \"private\"\n");
    ada.steno(&["push"]).ok();
    let loaded = ada.load();
    assert_eq!((&loaded["private"], &loaded["removed"]), (&json!(1), &json!(1)), "{loaded}");
    assert_eq!(server.sql("SELECT count() FROM steno_entry").trim(), "0");
}

/// Whether a file of the tables has a text. The server deletes the files that it has replaced some minutes later.
fn has_text(server: &ClickHouseServer, text: &str) -> bool {
    let parts = server.sql("SELECT path FROM system.parts WHERE active AND database = 'steno'");
    let files = parts.lines().flat_map(|part| std::fs::read_dir(part).unwrap().flatten());
    files
        .map(|file| std::fs::read(file.path()).unwrap())
        .any(|content| memchr::memmem::find(&content, text.as_bytes()).is_some())
}

#[test]
fn late_rows_of_a_forgotten_session_are_removed_by_the_next_load() {
    let Some(server) = ClickHouseServer::start(None) else { return };
    let ada = Loader::new(&server, "shop");
    ada.work(&[(id(1), turn(&id(1), 1, "apricot"))]);
    ada.load();
    let columns = "org, session, source, seq, part, at, role, kind, tool, model, is_failure, body, words, text_bytes";
    server.sql(&format!("CREATE TABLE late ENGINE = Memory AS SELECT {columns} FROM steno_entry"));
    ada.steno(&["forget", &id(1), "--yes"]).ok();
    ada.steno(&["push"]).ok();
    ada.load();
    server.sql(&format!("INSERT INTO steno_entry ({columns}) SELECT {columns} FROM late"));
    assert_eq!(server.sql("SELECT count() FROM steno_entry").trim(), "2");
    assert!(ada.hits(&["apricot", "--from", "team"]).is_empty(), "it does not count");
    ada.load();
    assert_eq!(server.sql("SELECT count() FROM steno_entry").trim(), "0");
}

#[test]
fn an_index_says_what_is_missing() {
    let Some(server) = ClickHouseServer::start(Some("open-sesame")) else { return };
    let home = Home::new();
    home.steno(&["remote", "add", "team", &format!("file://{}/shared", home.path().display())])
        .ok();
    home.steno(&["remote", "init", "team"]).ok();
    let url = server.url("shop");
    let load = |args: &[&str], password: &str| {
        let mut command = home.command(&[&["load", "--from", "team"], args].concat());
        command.env("CLICKHOUSE_PASSWORD", password);
        home.finish(command, b"")
    };
    let output = load(&[], "");
    assert!(output.code == 2 && output.stderr.contains("add --to clickhouse+http"), "{output}");
    let output = load(&["--to", "clickhouse+http://a:b@localhost:1/steno"], "");
    assert!(output.code == 2 && output.stderr.contains("must not contain a password"), "{output}");
    let output = load(&["--to", &url], "wrong-word");
    assert!(output.code == 1 && output.stderr.contains("Authentication failed"), "{output}");
    assert!(!output.stderr.contains("wrong-word"), "{output}");
    let output = load(&["--to", &url], "open-sesame");
    assert!(output.code == 1 && output.stderr.contains("--init"), "{output}");
    load(&["--to", &url, "--init"], "open-sesame").ok();
    let output = load(&["--to", "http://localhost:1/steno"], "");
    assert!(output.code == 1 && output.stderr.contains("could not connect"), "{output}");
}
