//! Stores that cannot be written: read-only file systems and full disks.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};

use crate::harness::{Home, Output};
use crate::search::{id, session, synced};
use crate::terminal::Terminal;

/// Makes the store read-only, in a mount namespace.
const READ_ONLY: &str = "mount --bind store store && mount -o remount,bind,ro store";

/// Moves the store to a full file system, in a mount namespace.
const FULL: &str = "cp -a store copy && mount -t tmpfs -o size=8m none store && cp -a copy/. store && \
                    rm -r copy && { cat /dev/zero > store/filler 2>/dev/null || true; }";

/// Makes the store read-only by its modes, which stop every user but root.
const MODES: &str = "chmod -R a-w store && ! touch store/probe 2>/dev/null && \
                     { \"$@\"; code=$?; chmod -R u+w store; exit $code; }";

/// A way to run programs without write access to the store.
struct Confinement {
    words: Vec<String>,
}

impl Confinement {
    /// Returns the first way that this machine allows; prints a message if there is none.
    fn find(home: &Home, script: &str) -> Option<Self> {
        let script_and_program = format!("{script} && exec \"$@\"");
        let mut ways = vec![
            vec!["unshare", "--mount", "sh", "-c", &script_and_program, "sh"],
            vec!["unshare", "--map-root-user", "--mount", "sh", "-c", &script_and_program, "sh"],
        ];
        if script == READ_ONLY {
            ways.push(vec!["sh", "-c", MODES, "sh"]);
        }
        let works = |words: &Vec<&str>| {
            let mut probe = home.program(words[0], &[&words[1..], &["true"]].concat());
            probe.stderr(Stdio::null()).status().is_ok_and(|status| status.success())
        };
        let found = ways.into_iter().find(works);
        if found.is_none() {
            eprintln!("skipped: neither a mount namespace nor modes confine a program here");
        }
        Some(Self { words: found?.into_iter().map(str::to_owned).collect() })
    }

    /// Returns the arguments of a command line that runs `steno`.
    fn arguments<'a>(&'a self, args: &[&'a str]) -> Vec<&'a str> {
        let words = self.words[1..].iter().map(String::as_str);
        words.chain([env!("CARGO_BIN_EXE_steno")]).chain(args.iter().copied()).collect()
    }

    fn command(&self, home: &Home, args: &[&str]) -> Command {
        let mut command = home.program(&self.words[0], &self.arguments(args));
        command.env("STENO_NOW", "2026-01-05T09:15:32.5Z");
        command
    }

    fn steno(&self, home: &Home, args: &[&str]) -> Output {
        home.finish(self.command(home, args), b"")
    }
}

/// All commands that read the store.
fn reading_commands() -> Vec<Vec<String>> {
    let lines = [
        "list",
        "list --json",
        "search pneedle1x",
        "search /pneed.e1x/",
        "cost",
        "stats",
        "show latest",
        "show 00000001",
        "export --format md latest",
        "verify",
        "statusline",
    ];
    let mut commands: Vec<Vec<String>> =
        lines.iter().map(|line| line.split(' ').map(str::to_owned).collect()).collect();
    commands.push(vec!["diff".to_owned(), id(0), id(1)]);
    commands
}

/// Compares the output of each command with its output with write access; stderr must contain `notice`.
#[track_caller]
fn assert_same_answers(home: &Home, expected: &[Output], notice: &str) {
    let Some(confined) = Confinement::find(home, READ_ONLY) else { return };
    for (args, expected) in reading_commands().iter().zip(expected) {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let output = confined.steno(home, &args);
        assert_eq!(output.code, expected.code, "{args:?}: {output}");
        if args != ["statusline"] {
            assert_eq!(output.stdout, expected.stdout, "{args:?}: {output}");
        }
        if ["list", "search", "cost", "stats"].contains(&args[0]) {
            assert!(output.stderr.contains(notice), "{args:?}: {output}");
        }
        if notice.is_empty() {
            assert_eq!(output.stderr, expected.stderr, "{args:?}: {output}");
        }
    }
}

fn answers(home: &Home) -> Vec<Output> {
    let run = |args: &Vec<String>| home.steno(&args.iter().map(String::as_str).collect::<Vec<_>>());
    reading_commands().iter().map(run).collect()
}

/// Imports one more session without updating the index.
fn keep_without_index(home: &Home) {
    home.file(&format!(".claude/projects/-work-project0/{}.jsonl", id(7)), session(7));
    home.steno(&["sync", "--no-index"]).ok();
}

#[test]
fn all_commands_read_a_read_only_store() {
    let home = synced(3);
    let expected = answers(&home);
    assert_same_answers(&home, &expected, "");
    // Like a copy of a store: the write-ahead log exists, the shared memory does not.
    fs::remove_file(home.path().join("store/index.db-shm")).unwrap();
    assert_same_answers(&home, &expected, "");
    for name in ["index.db", "index.db-wal", "index.lock"] {
        fs::remove_file(home.path().join("store").join(name)).unwrap();
    }
    assert_same_answers(&home, &expected, "there is no usable index; built a temporary one");
}

#[test]
fn an_index_that_cannot_be_updated_reports_what_is_missing() {
    let home = synced(3);
    keep_without_index(&home);
    for (script, reason) in [(READ_ONLY, "the store is read-only"), (FULL, "the disk is full")] {
        let Some(confined) = Confinement::find(&home, script) else { continue };
        let output = confined.steno(&home, &["list"]);
        assert_eq!(output.code, 0, "{output}");
        assert_eq!(output.stdout.lines().count(), 4, "{output}");
        let notice =
            format!("warning: {reason}: 1 session is missing from the index or incomplete in it\n");
        assert!(output.stderr.starts_with(&notice), "{output}");
        assert!(output.stderr.contains("\nhint: "), "{output}");
        let output = confined.steno(&home, &["search", "/pneed.e1x/"]);
        assert_eq!(output.code, 0, "{output}");
        // The session is read from the vault.
        let output = confined.steno(&home, &["show", &id(7)]);
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output}");
    }
    assert_eq!(home.steno(&["list"]).ok().lines().count(), 5);
}

#[test]
fn a_full_disk_without_an_index_is_answered_from_memory() {
    let home = synced(3);
    let expected = home.steno(&["list", "--json"]).ok();
    for name in ["index.db", "index.db-wal", "index.db-shm"] {
        fs::remove_file(home.path().join("store").join(name)).unwrap();
    }
    let Some(confined) = Confinement::find(&home, FULL) else { return };
    let output = confined.steno(&home, &["list", "--json"]);
    assert_eq!((output.code, output.stdout.as_str()), (0, expected.as_str()), "{output}");
    assert!(output.stderr.starts_with("warning: the disk is full and there is no"), "{output}");
}

#[test]
fn the_browser_reads_a_read_only_store() {
    let home = synced(3);
    keep_without_index(&home);
    let Some(confined) = Confinement::find(&home, READ_ONLY) else { return };
    let mut terminal = Terminal::run(&home, &confined.words[0], &confined.arguments(&[]), &[]);
    terminal.shows(&["3 sessions", "the store is read-only: 1 session is missing"]);
    terminal.press("s");
    terminal.press("pneedle1x");
    terminal.shows(&["please find pneedle1x now"]);
}

#[test]
fn the_page_reads_a_read_only_store() {
    let home = synced(3);
    keep_without_index(&home);
    let Some(confined) = Confinement::find(&home, READ_ONLY) else { return };
    let mut command = confined.command(&home, &["serve", "--port", "0"]);
    let mut server = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let (address, token) = line.trim().split_once("/?token=").unwrap();
    let host = address.trim_start_matches("http://");
    let port = host.rsplit(':').next().unwrap();
    let get = |page: &str| {
        let mut stream = TcpStream::connect(host).unwrap();
        let cookie = format!("Cookie: steno-{port}={token}");
        write!(
            stream,
            "GET {page} HTTP/1.1\r\nHost: {host}\r\n{cookie}\r\nConnection: close\r\n\r\n"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    // At the second request the page knows that the store is read-only.
    let pages = ["/", "/search?q=pneedle1x", "/search?q=/pneed.e1x/", "/cost", "/"].map(get);
    server.kill().unwrap();
    server.wait().unwrap();
    for page in &pages {
        assert!(page.starts_with("HTTP/1.1 200"), "{page}");
        assert!(page.contains("the store is read-only: 1 session is missing"), "{page}");
    }
    assert!(pages[4].contains("3 sessions") && pages[1].contains("find <mark>pneedle1x</mark>"));
}
