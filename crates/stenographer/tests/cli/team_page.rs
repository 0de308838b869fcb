//! The page of a team, `steno serve --from`: three people in two teams, against every page.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Stdio};
use std::time::Duration;

use serde_json::Value;

use crate::postgres_server::PostgresServer;
use crate::team::{Member, member, turn};

/// The sessions: a word, its owner, who may see it, and who does: ada, who runs the page, bob of her team, and eve of another.
const SESSIONS: [(&str, &str, &str, [bool; 3]); 7] = [
    ("apricot", "ada", "private", [true, false, false]),
    ("banana", "ada", "team", [true, true, false]),
    ("cherry", "ada", "everyone", [true, true, true]),
    ("mango", "bob", "team", [true, true, false]),
    ("peach", "bob", "private", [false, false, false]),
    ("lemon", "eve", "team", [false, false, false]),
    ("quince", "eve", "everyone", [true, true, true]),
];

const READERS: [&str; 3] = ["ada", "bob", "eve"];

fn session_id(word: &str) -> String {
    format!("{word}-0000-4000-8000-000000000001")
}

/// Pushes the sessions to a remote, each from a machine of its owner.
fn push_sessions(url: &dyn Fn(&str) -> String) {
    for (at, (word, owner, visibility, _)) in SESSIONS.iter().enumerate() {
        let machine = Member::alone(owner);
        let url = url(owner);
        machine.steno(&["remote", "add", "team", &url, "--visibility", visibility]).ok();
        let id = session_id(word);
        let number = at as u32 * 2 + 1;
        let text = turn(&id, number, &format!("the {word} fruit")) + &turn(&id, number + 1, word);
        machine.work(&id, &text);
        machine.push();
    }
}

/// A running page.
struct Page {
    child: Child,
    /// The address, such as `127.0.0.1:7473`.
    host: String,
    token: String,
}

/// An answer: the status and everything after it.
struct Answer {
    status: u16,
    text: String,
}

impl Page {
    fn start(ada: &Member, args: &[&str]) -> Self {
        let mut command = ada
            .home
            .command(&[&["serve", "--from", "team", "--port", "0", "--json"], args].concat());
        command.env("USER", &ada.user).env("STENO_NOW", "2026-01-06T09:15:32.5Z");
        command.stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let row: Value = serde_json::from_str(&line).expect("an address");
        let url = row["url"].as_str().unwrap().to_owned();
        let (host, token) = url.strip_prefix("http://").unwrap().split_once("/?token=").unwrap();
        Self { child, host: host.to_owned(), token: token.to_owned() }
    }

    fn send(&self, method: &str, path: &str, headers: &str) -> Answer {
        let mut stream = TcpStream::connect(&self.host).unwrap();
        let host = if headers.contains("Host: ") {
            String::new()
        } else {
            format!("Host: {}\r\n", self.host)
        };
        let request =
            format!("{method} {path} HTTP/1.1\r\n{host}Connection: close\r\n{headers}\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let status = text.get(9..12).and_then(|status| status.parse().ok()).expect("a status");
        Answer { status, text }
    }

    /// The cookie of whoever has the token.
    fn token_cookie(&self, token: &str) -> String {
        let port = self.host.rsplit_once(':').unwrap().1;
        format!("Cookie: steno-{port}={token}\r\n")
    }

    fn get(&self, path: &str, headers: &str) -> Answer {
        self.send("GET", path, headers)
    }

    /// Waits until a reader is known: members are asked for in the background.
    fn wait_for(&self, headers: &str) {
        let is_known = (0..600).any(|_| {
            let status = self.get("/", headers).status;
            std::thread::sleep(Duration::from_millis(if status == 200 { 0 } else { 100 }));
            status == 200
        });
        assert!(is_known, "{headers}");
    }

    fn json(&self, path: &str, headers: &str) -> Vec<Value> {
        let answer = self.get(path, headers);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text);
        let begin = answer.text.find("\r\n\r\n").unwrap() + 4;
        let body = &answer.text[begin..];
        let body = &body[body.find('[').unwrap()..=body.rfind(']').unwrap()];
        serde_json::from_str(body).expect(body)
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Pages about all sessions. The word of each session is asked for.
fn list_pages() -> Vec<String> {
    let mut pages: Vec<String> = [
        "/",
        "/sessions",
        "/?limit=1000",
        "/palette?q=",
        "/palette?q=fruit",
        "/palette?q=the",
        "/palette?q=&sessions=true",
        "/search?q=fruit",
        "/search?q=the&sort=time",
        "/search?q=/a/",
        "/activity",
        "/activity?by=all",
        "/quality",
        "/quality?by=all",
        "/cost",
        "/cost?by=block",
        "/cost.csv",
        "/cost.csv?by=session&period=all",
        "/cost.csv?by=project&period=all",
        "/trends?q=fruit",
        "/trends?q=the%0Afruit&period=all",
        "/edits",
        "/edits?period=all",
        "/compare",
        "/threads",
        "/api/sessions",
        "/api/sessions?limit=1",
        "/api/notes",
        "/api/search?q=fruit&limit=100",
        "/api/cost",
        "/api/cost?by=session",
        "/api/cost?by=block",
        "/api/cost?by=person",
        "/api/trends?q=fruit",
        "/api/edits",
        "/?errors=true",
        "/?since=2025-01-01",
    ]
    .map(str::to_owned)
    .to_vec();
    for by in ["week", "month", "model", "project", "agent", "session", "thread", "person"] {
        pages.push(format!("/cost?by={by}"));
    }
    for name in READERS {
        pages.push(format!("/?person={name}"));
        pages.push(format!("/search?q=fruit&person={name}"));
        pages.push(format!("/cost?person={name}"));
        pages.push(format!("/api/search?q=the&person={name}&limit=100"));
    }
    pages
}

/// Pages about one session.
fn session_pages(word: &str) -> Vec<String> {
    let (id, other) = (session_id(word), session_id("cherry"));
    let base = format!("/session/claude-code/{id}");
    let below = [
        "",
        "/head",
        "/part?from=0&count=60",
        "/contents",
        "/changes",
        "/quality",
        "/subagents",
        "/export?format=html",
        "/state",
        "/find?q=fruit",
        "/step?of=prompt",
        "/notes",
        "/entry/0",
        "/replay",
        "/files?at=0",
    ];
    let mut pages: Vec<String> = below.iter().map(|end| format!("{base}{end}")).collect();
    pages.push(format!("/api/sessions/claude-code/{id}"));
    pages.push(format!("/api/sessions/claude-code/{id}/entries"));
    pages.push(format!("/api/sessions/claude-code/{id}/notes"));
    pages.push(format!("/compare?a=claude-code/{id}&b=claude-code/{other}"));
    pages.push(format!("/api/diff?a=claude-code/{id}&b=claude-code/{other}"));
    pages
}

/// Routes that show nothing of a session, or that other checks ask for.
const OTHER_ROUTES: [&str; 8] = [
    "/thread",
    "/events",
    "/assets/{version}/{name}",
    "/api/openapi.json",
    "/picture/{sum}",
    "/neighbours",
    "/api/sessions/{agent}/{id}/resume",
    "/api/sessions/{agent}/{id}/notes/{note}",
];

#[test]
fn every_route_is_checked() {
    let source = include_str!("../../../steno-web/src/routes.rs");
    let session = "/session/claude-code/banana-0000-4000-8000-000000000001";
    let pages: Vec<String> = list_pages().into_iter().chain(session_pages("banana")).collect();
    let parts = |path: &str| -> Vec<String> { path.split('/').map(str::to_owned).collect() };
    let is_checked = |route: &str| {
        pages.iter().any(|page| {
            let page = page.split('?').next().unwrap();
            let below = page.strip_prefix(session).unwrap_or(page);
            let (page, route) = (parts(if below.is_empty() { "/" } else { below }), parts(route));
            page.len() == route.len()
                && page.iter().zip(&route).all(|(a, b)| a == b || b.starts_with('{'))
        })
    };
    let routes: Vec<&str> =
        source.split(".route(\"").skip(1).map(|rest| rest.split('"').next().unwrap()).collect();
    assert!(routes.len() > 30, "{routes:?}");
    let missing: Vec<&&str> =
        routes.iter().filter(|route| !OTHER_ROUTES.contains(route) && !is_checked(route)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// Checks all pages for all readers; `headers` names one.
fn check_visibility(page: &Page, headers: &dyn Fn(&str) -> String) {
    for (at, reader) in READERS.iter().enumerate() {
        let headers = headers(reader);
        let hidden: Vec<&str> =
            SESSIONS.iter().filter(|(_, _, _, seen)| !seen[at]).map(|(word, ..)| *word).collect();
        for path in list_pages() {
            let answer = page.get(&path, &headers);
            assert_eq!(answer.status, 200, "{reader} {path}: {}", answer.text);
            for word in &hidden {
                assert!(!answer.text.contains(word), "{reader} {path} {word}: {}", answer.text);
            }
        }
        for (word, owner, _, seen) in SESSIONS {
            let is_seen = seen[at];
            for path in session_pages(word) {
                let answer = page.get(&path, &headers);
                assert_eq!(answer.status == 200, is_seen, "{reader} {path}: {}", answer.text);
                assert!(is_seen || answer.status == 404, "{reader} {path}: {}", answer.text);
            }
            let neighbours = page
                .get(&format!("/session/claude-code/{}/neighbours", session_id(word)), &headers);
            let found = hidden.iter().find(|word| neighbours.text.contains(**word));
            assert_eq!(found, None, "{reader} {word}: {}", neighbours.text);
            let shown = page.get("/api/sessions", &headers).text;
            assert_eq!(shown.contains(&session_id(word)), is_seen, "{reader} {word}");
            let hits = page.json(&format!("/api/search?q={word}&limit=100"), &headers);
            assert_eq!(hits.len(), if is_seen { 4 } else { 0 }, "{reader} {word}");
            assert!(hits.iter().all(|hit| hit["person"] == owner), "{reader} {word}");
            if is_seen {
                let text =
                    page.get(&format!("/session/claude-code/{}", session_id(word)), &headers);
                assert!(text.text.contains(&format!("by <b>{owner}</b>")), "{}", text.text);
            }
        }
        check_cost(page, at, &headers);
    }
}

/// Checks the cost by person of a reader.
fn check_cost(page: &Page, at: usize, headers: &str) {
    let rows = page.json("/api/cost?by=person", headers);
    for name in READERS {
        let count =
            SESSIONS.iter().filter(|(_, owner, _, seen)| *owner == name && seen[at]).count();
        let row = rows.iter().find(|row| row["person"] == name);
        let sessions = row.map_or(0, |row| row["sessions"].as_u64().unwrap());
        assert_eq!(sessions, count as u64, "{} sees {name}: {rows:?}", READERS[at]);
    }
    let all = SESSIONS.iter().filter(|(_, _, _, seen)| seen[at]).count();
    let total = rows.last().unwrap();
    assert!(total["total"] == true && total["sessions"] == all as u64, "{rows:?}");
    let output: u64 = SESSIONS
        .iter()
        .enumerate()
        .filter(|(_, (_, _, _, seen))| seen[at])
        .map(|(place, _)| 2 * 10 + 4 * place as u64 + 3)
        .sum();
    assert_eq!(total["tokens"]["output"], output, "{rows:?}");
}

/// Adds lines to the settings of the one who runs the page.
fn set(ada: &Member, text: &str) {
    let path = ada.home.path().join("store/config.toml");
    let before = fs::read_to_string(&path).unwrap_or_default();
    fs::write(path, before + text).unwrap();
}

#[test]
fn a_proxy_names_the_readers_of_the_page() {
    let Some(server) = PostgresServer::start() else { return };
    member("postgres", &server.url("postgres")).steno(&["remote", "init", "team"]).ok();
    for (role, team) in [("ada", "shop"), ("bob", "shop"), ("eve", "bank")] {
        server.add_member(role, team);
    }
    push_sessions(&|owner| server.url(owner));
    let ada = member("ada", &server.url("ada"));
    set(
        &ada,
        "\n[serve]\ntrusted_user_header = \"X-Forwarded-User\"\nsecret_header = \"X-Proxy-Secret\"\n\
         secret_command = \"echo correct-horse\"\nhosts = [\"steno.example.com\"]\n\
         users = { \"ada@example.com\" = \"ada\", \"eve@bank.example.com\" = \"eve\" }\n",
    );
    let page = Page::start(&ada, &[]);
    let named = |user: &str| {
        format!(
            "Host: steno.example.com\r\nX-Proxy-Secret: correct-horse\r\nX-Forwarded-User: {user}\r\n"
        )
    };
    let headers = |reader: &str| match reader {
        "ada" => named("ada@example.com"),
        "eve" => named("eve@bank.example.com"),
        other => named(other),
    };
    page.wait_for(&headers("bob"));
    check_visibility(&page, &headers);

    // Whoever runs the page has the token, and sees what the role sees.
    let host = page.token_cookie(&page.token);
    let all = page.get("/api/sessions", &host).text;
    assert!(
        all.contains("apricot-") && !all.contains("peach-") && !all.contains("lemon-"),
        "{all}"
    );

    // A name is not believed without the secret, and strangers are refused.
    let user = "X-Forwarded-User: bob\r\n";
    let refused = [
        user.to_owned(),
        format!("{user}X-Proxy-Secret: wrong\r\n"),
        format!("{}X-Forwarded-User: ada\r\n", named("bob")),
        named("mallory"),
        named("eve"),
        String::new(),
    ];
    for headers in &refused[..4] {
        let answer = page.get("/", headers);
        assert!(
            answer.status == 401 && !answer.text.contains("banana"),
            "{headers}: {}",
            answer.text
        );
    }
    assert_eq!(page.get("/", &refused[5]).status, 401);
    let foreign = page.get("/", &named("bob").replace("steno.example.com", "evil.example.com"));
    assert_eq!(foreign.status, 421, "{}", foreign.text);
    // eve is named by the settings, so the name itself is known too; she sees what is for everyone.
    assert!(!page.get("/api/sessions", &refused[4]).text.contains("banana-"));

    // Nobody can change anything, and agents cannot ask the page.
    let id = session_id("banana");
    for path in [
        format!("/api/sessions/claude-code/{id}/notes"),
        format!("/api/sessions/claude-code/{id}/resume"),
    ] {
        for headers in [headers("bob"), host.clone()] {
            let origin = match headers.contains("Host: ") {
                true => "https://steno.example.com".to_owned(),
                false => format!("http://{}", page.host),
            };
            let body = format!(
                "{headers}Origin: {origin}\r\nContent-Type: application/json\r\nContent-Length: 0\r\n"
            );
            let answer = page.send("POST", &path, &body);
            assert!(answer.status >= 400, "{path}: {}", answer.text);
        }
    }
    assert_eq!(page.get("/mcp", &host).status, 404);

    // A session that becomes private disappears for others.
    let machine = Member::alone("ada");
    machine.steno(&["remote", "add", "team", &server.url("ada"), "--visibility", "private"]).ok();
    machine.work(&id, &(turn(&id, 3, "the banana fruit") + &turn(&id, 4, "banana")));
    machine.push();
    ada.pull();
    assert!(!page.get("/api/sessions", &headers("bob")).text.contains("banana-"));
    assert_eq!(page.get(&format!("/session/claude-code/{id}"), &headers("bob")).status, 404);
    assert_eq!(page.get(&format!("/session/claude-code/{id}"), &headers("ada")).status, 200);
}

#[test]
fn members_sign_in_by_tokens_of_their_own() {
    let shared = tempfile::tempdir().unwrap();
    let url = format!("file://{}", shared.path().display());
    let ada = member("ada", &url);
    ada.steno(&["remote", "init", "team"]).ok();
    push_sessions(&|_| url.clone());
    let (bob, eve) = ("b".repeat(32), "e".repeat(32));
    let file = ada.home.file("tokens", format!("# people\nbob {bob}\n\neve {eve}\n"));
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    let refused = ada.steno(&["serve", "--from", "team", "--token-file", "tokens"]);
    assert!(refused.stderr.contains("others can read the tokens"), "{refused}");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let page = Page::start(&ada, &["--token-file", "tokens"]);
    let opened = page.get(&format!("/?token={bob}"), "");
    assert!(opened.status == 303 && opened.text.contains(&format!("={bob};")), "{}", opened.text);
    assert_eq!(page.get(&format!("/?token={}", "x".repeat(32)), "").status, 401);
    let bob = page.token_cookie(&bob);
    page.wait_for(&bob);
    let seen = page.get("/api/sessions", &bob).text;
    for (word, ..) in SESSIONS {
        // A folder has one team. ada's mirror does not have the private session of bob.
        let is_seen = !["apricot", "peach"].contains(&word);
        assert_eq!(seen.contains(&session_id(word)), is_seen, "{word}: {seen}");
    }
    for (text, status) in [("", 401), ("Cookie: steno-1=x\r\n", 401)] {
        assert_eq!(page.get("/", text).status, status);
    }
    // The page is of the team, with people and without what only one machine has.
    let home = page.get("/", &bob).text;
    assert!(home.contains("person=eve") && home.contains("<h2>Person</h2>"), "{home}");
    let cost = page.get("/cost?by=person", &bob).text;
    assert!(
        cost.contains("By person") && cost.contains("<h2>People</h2>")
            || cost.contains("mango")
            || cost.contains("bob"),
        "{cost}"
    );
    let thread = page.get("/thread?project=/home/ada/shop&id=x", &bob);
    assert_eq!(thread.status, 404, "threads are files of this machine: {}", thread.text);
}

#[test]
fn cost_is_added_up_by_person() {
    let shared = tempfile::tempdir().unwrap();
    let url = format!("file://{}", shared.path().display());
    let ada = member("ada", &url);
    ada.steno(&["remote", "init", "team"]).ok();
    push_sessions(&|_| url.clone());
    let rows = ada.steno(&["cost", "--by", "person", "--from", "team", "--json"]).ok();
    let rows: Vec<Value> = rows.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let sessions =
        |name: &str| rows.iter().find(|row| row["person"] == name).unwrap()["sessions"].clone();
    assert_eq!([sessions("ada"), sessions("bob"), sessions("eve")], [3, 1, 2]);
    let one =
        ada.steno(&["cost", "--person", "eve", "--by", "agent", "--from", "team", "--json"]).ok();
    let one: Value = serde_json::from_str(one.lines().next().unwrap()).unwrap();
    assert_eq!(one["sessions"], 2);
    assert_eq!(ada.hits(&["fruit", "--from", "team", "--person", "eve"]).len(), 4);
    let unknown = ada.steno(&["list", "--from", "team", "--person", "zoe"]);
    assert!(unknown.stderr.contains("people with sessions: ada, bob, eve"), "{unknown}");
    // The list names the person of each session before the agent.
    let page = Page::start(&ada, &[]);
    let cookie = page.token_cookie(&page.token);
    page.wait_for(&cookie);
    let list = page.get("/", &cookie).text;
    assert!(list.contains(">Person</span>"), "{list}");
    let by =
        |name: &str| format!("<span class=\"by\" title=\"{name}, claude-code\">{name} <small>");
    assert!(["ada", "bob", "eve"].iter().all(|name| list.contains(&by(name))), "{list}");
    let local = ada.steno(&["cost", "--by", "person"]);
    assert!(local.code == 2 && local.stderr.contains("needs --from"), "{local}");
}
