//! Tests of `steno show --follow`, and of a running session in the browser.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use crate::harness::Home;
use crate::terminal::Terminal;

const ID: &str = "1b4e28ba-2fa1-41d2-883f-0016d3cca427";
const SESSION: &str = ".claude/projects/-p/1b4e28ba-2fa1-41d2-883f-0016d3cca427.jsonl";

/// Timeout; far longer than needed, so that only a failure waits this long.
const TIMEOUT: Duration = Duration::from_secs(60);

fn line(role: &str, n: u32) -> String {
    format!(
        "{{\"type\":\"{role}\",\"uuid\":\"u{n}\",\"parentUuid\":null,\"isSidechain\":false,\"cwd\":\"/p\",\
         \"sessionId\":\"{ID}\",\"version\":\"2.1.0\",\"timestamp\":\"2026-01-05T09:15:3{n}.000Z\",\
         \"message\":{{\"role\":\"{role}\",\"content\":\"text {n}\"}}}}\n"
    )
}

fn append(home: &Home, text: &str) {
    let mut file = OpenOptions::new().append(true).open(home.path().join(SESSION)).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

/// A running `steno show --follow`.
struct Follower {
    child: Child,
    lines: Receiver<String>,
}

impl Follower {
    fn start(home: &Home, args: &[&str]) -> Self {
        let mut command = home.command(&[&["show", "--follow"], args].concat());
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = mpsc::channel();
        std::thread::spawn(move || {
            output.lines().map_while(Result::ok).try_for_each(|line| sender.send(line))
        });
        Self { child, lines }
    }

    /// Returns the content of the next entry, from the JSON Lines.
    #[track_caller]
    fn next_content(&self) -> String {
        let line = self.lines.recv_timeout(TIMEOUT).expect("an entry in time");
        let entry: serde_json::Value = serde_json::from_str(&line).unwrap();
        entry["content"].as_str().unwrap().to_owned()
    }

    /// Waits for a line.
    #[track_caller]
    fn until(&self, wanted: &str) {
        while self.lines.recv_timeout(TIMEOUT).expect("the line in time") != wanted {}
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn new_entries_are_printed_as_the_agent_writes_them() {
    let home = Home::new();
    home.file(SESSION, line("user", 1));
    home.steno(&["sync"]).ok();
    let follower = Follower::start(&home, &["--json", ID]);
    assert_eq!(follower.next_content(), "text 1");
    for n in 2..4 {
        append(&home, &line("user", n));
        assert_eq!(follower.next_content(), format!("text {n}"));
    }
    let stored = home.steno(&["show", ID, "--json"]).ok();
    assert_eq!(stored.lines().count(), 3, "what was printed is in the store");
}

#[test]
fn a_file_outside_of_the_store_is_followed() {
    let home = Home::new();
    let path = home.file("elsewhere/copy.jsonl", line("user", 1));
    let follower = Follower::start(&home, &["--json", path.to_str().unwrap()]);
    assert_eq!(follower.next_content(), "text 1");
    let mut file = OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(line("user", 2).as_bytes()).unwrap();
    assert_eq!(follower.next_content(), "text 2");
}

#[test]
fn only_entries_of_a_role_are_followed_in_the_style_of_the_terminal() {
    let home = Home::new();
    home.file(SESSION, line("user", 1));
    home.steno(&["sync"]).ok();
    let follower = Follower::start(&home, &[ID, "--only", "assistant", "--last", "1"]);
    follower.until("text 1");
    append(&home, &line("user", 2));
    append(&home, &line("assistant", 3));
    let mut printed = Vec::new();
    while printed.last().map(String::as_str) != Some("text 3") {
        printed.push(follower.lines.recv_timeout(TIMEOUT).expect("the answer in time"));
    }
    assert!(!printed.iter().any(|line| line == "text 2"), "{printed:?}");
}

#[test]
fn an_entry_cannot_be_followed() {
    let home = Home::new();
    home.file(SESSION, line("user", 1));
    home.steno(&["sync"]).ok();
    insta::assert_snapshot!(home.steno(&["show", "1b4e28ba:0", "--follow"]), @"
    --- stderr
    error: --follow needs a session, not an entry of one
    hint: run `steno show 1b4e28ba --follow`
    --- exit 2
    ");
}

#[test]
fn the_browser_shows_new_entries_of_a_running_session() {
    let home = Home::new();
    home.file(SESSION, line("user", 1));
    home.steno(&["sync"]).ok();
    let mut terminal = Terminal::browser(&home);
    terminal.shows(&["1 session"]);
    terminal.press("\rG");
    terminal.shows(&["1/1"]);
    append(&home, &line("assistant", 2));
    terminal.shows(&["2/2", "❯ text 2"]);
    terminal.press("g");
    append(&home, &line("assistant", 3));
    terminal.shows(&["1/3", "1 new entry; G goes to the end"]);
    terminal.press("qq");
    assert_eq!(terminal.ends(), Some(0));
}
