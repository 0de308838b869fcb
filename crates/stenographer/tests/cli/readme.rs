//! Runs the examples of the README and of the pages in `docs/` on a terminal, each page in its own home folder.
//!
//! The home folder has the sessions of `docs/examples`, which are synced unless the page does so itself, a scripted model,
//! and a client that stands in for `python3`.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use regex::Regex;
use serde_json::json;

use crate::harness::Home;
use crate::model::{Model, body, post};
use crate::terminal::Terminal;

/// Commands that build or test the project itself.
const NOT_RUN: [&str; 2] = ["cargo install", "bash scripts/check"];

/// Commands that run until Ctrl-C. They run until all examples of their page have ended.
const SERVERS: [&str; 3] = ["steno serve", "steno watch", "steno replay latest --as-api"];

/// Columns and rows of the terminal for commands, and for the browser.
const COMMAND_SIZE: (u16, u16) = (100, 120);
const BROWSER_SIZE: (u16, u16) = (80, 7);

/// File in which the client writes what the model has answered.
const ANSWER_FILE: &str = "answer";

#[test]
fn every_example_prints_its_output() {
    let mut count = 0;
    let mut report = String::new();
    for path in pages() {
        let (run, failures) = run_page(&examples(&fs::read_to_string(&path).unwrap()));
        count += run;
        for failure in failures {
            report += &format!("{}:\n{failure}\n", path.display());
        }
    }
    assert!(report.is_empty(), "{report}");
    assert!(count >= 50, "only {count} examples were found");
}

#[test]
fn the_example_sessions_are_found_in_their_folder() {
    let home = Home::new();
    home.steno(&["sync", root().join("docs/examples").to_str().unwrap()]).ok();
    let agents = home.steno(&["list", "--json"]).ok();
    let count = |agent: &str| agents.matches(&format!("\"agent\":\"{agent}\"")).count();
    assert_eq!((count("claude-code"), count("codex"), agents.lines().count()), (2, 1, 3));
}

#[test]
fn the_settings_in_the_pages_are_accepted() {
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for block in text.split("```toml\n").skip(1) {
            let home = Home::new();
            home.file("store/config.toml", block.split("```").next().unwrap());
            assert_eq!(home.steno(&["doctor"]).code, 0, "{}:\n{block}", page.display());
        }
    }
}

#[test]
fn the_readme_is_short() {
    let lines = fs::read_to_string(root().join("README.md")).unwrap().lines().count();
    assert!(lines <= 150, "README.md has {lines} lines");
}

#[test]
fn every_link_leads_to_a_file_and_every_page_is_linked() {
    let link = Regex::new(r"\]\(([^)#:]+)#?([^)]*)\)").unwrap();
    let mut linked = Vec::new();
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for target in link.captures_iter(&text) {
            let path = page.parent().unwrap().join(&target[1]);
            assert!(path.exists(), "{}: {} does not exist", page.display(), &target[1]);
            let has_heading =
                target[2].is_empty() || headings(&path).contains(&target[2].to_owned());
            assert!(has_heading, "{}: no heading for {}", page.display(), &target[0]);
            linked.push(path.canonicalize().unwrap());
        }
    }
    for page in pages() {
        let is_linked = linked.contains(&page.canonicalize().unwrap());
        assert!(is_linked || page.ends_with("README.md"), "no link leads to {}", page.display());
    }
}

/// A client of the OpenAI API; the examples run it as a program.
#[test]
#[ignore = "is run by the examples, as a program"]
fn client() {
    let base = std::env::var("OPENAI_BASE_URL").unwrap();
    let request =
        json!({"model": "gpt-5-mini", "messages": [{"role": "user", "content": "What is 6 x 7?"}]});
    let headers = [("Authorization", "Bearer sk-docs"), ("Connection", "close")];
    let answer = body(&post(&format!("{base}/chat/completions"), &headers, &request).whole());
    let content = answer["choices"][0]["message"]["content"].as_str().unwrap();
    fs::write(ANSWER_FILE, format!("{content}\n")).unwrap();
}

/// The anchors of a page's headings.
fn headings(page: &Path) -> Vec<String> {
    let text = fs::read_to_string(page).unwrap();
    let headings = text.lines().filter_map(|line| line.strip_prefix("## "));
    headings.map(|heading| heading.to_lowercase().replace(' ', "-")).collect()
}

/// The project's folder.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The README and all pages in `docs/`.
fn pages() -> Vec<PathBuf> {
    let mut pages = vec![root().join("README.md")];
    let files = fs::read_dir(root().join("docs")).unwrap().map(|file| file.unwrap().path());
    pages.extend(files.filter(|path| path.extension().is_some_and(|extension| extension == "md")));
    pages.sort();
    pages
}

/// A command and what it prints.
struct DocExample {
    command: String,
    output: String,
}

impl DocExample {
    fn starts_with_any(&self, prefixes: &[&str]) -> bool {
        prefixes.iter().any(|prefix| self.command.starts_with(prefix))
    }
}

/// Returns the commands in the `console` blocks of a page.
fn examples(page: &str) -> Vec<DocExample> {
    let mut examples: Vec<DocExample> = Vec::new();
    for block in page.split("```console\n").skip(1) {
        for line in block.split("```").next().unwrap().lines() {
            if let Some(command) = line.strip_prefix("$ ") {
                examples.push(DocExample { command: command.to_owned(), output: String::new() });
            } else {
                let output = &mut examples.last_mut().unwrap().output;
                output.push_str(line);
                output.push('\n');
            }
        }
    }
    examples
}

/// Runs the examples of a page in a new home folder. Returns how many were run, and a report of each that failed.
fn run_page(examples: &[DocExample]) -> (usize, Vec<String>) {
    let mut home = DocHome::new(examples);
    if !examples.iter().any(|example| example.command == "steno sync") {
        home.start("steno sync").ends();
    }
    let mut servers = Vec::new();
    let mut failures = Vec::new();
    let is_run = |example: &&DocExample| !example.starts_with_any(&NOT_RUN);
    let mut count = 0;
    for example in examples.iter().filter(is_run) {
        let DocExample { command, output } = example;
        let mut terminal = home.start(command);
        let got = if example.starts_with_any(&SERVERS) {
            let got = terminal.rests_at(&["http://"]);
            servers.push(terminal);
            home.replace_address(&got, output)
        } else if command == "steno" {
            terminal.rests_at(&[output.lines().last().unwrap()])
        } else {
            terminal.ends();
            home.normalised(&terminal.look(printed))
        };
        if !matches(&got, output) {
            failures.push(format!("$ {command}\n{got}\n--- the page has:\n{output}"));
        }
        count += 1;
    }
    (count, failures)
}

/// What the terminal shows, without the empty lines at its end. A line that was wrapped is one line again.
fn printed(screen: &vt100::Screen) -> String {
    let columns = screen.size().1.get();
    let mut text = String::new();
    for (row, line) in (0..).zip(screen.rows(0, columns)) {
        text.push_str(&line);
        if !screen.row_wrapped(row) {
            text.push('\n');
        }
    }
    text.trim_end().to_owned()
}

/// A home folder with example sessions and the files that the page prints with `cat`.
struct DocHome {
    home: Home,
    model: Model,
    /// Address in the page, and the one that the server has here.
    addresses: Vec<(String, String)>,
}

impl DocHome {
    fn new(examples: &[DocExample]) -> Self {
        let home = Home::new();
        let docs = root().join("docs/examples");
        copy_folder(&docs.join("claude-code"), &home.path().join(".claude/projects"));
        copy_folder(&docs.join("codex"), &home.path().join(".codex/sessions"));
        for DocExample { command, output } in examples {
            if let Some(name) = command.strip_prefix("cat ") {
                home.file(name, output);
            }
        }
        if examples.iter().any(|example| example.command.contains("steno blame")) {
            add_shop_repository(&home);
        }
        fs::create_dir(home.path().join("bin")).unwrap();
        symlink(env!("CARGO_BIN_EXE_steno"), home.path().join("bin/steno")).unwrap();
        let program = std::env::current_exe().unwrap();
        let client = format!(
            "#!/bin/sh\n'{}' --exact readme::client --ignored >log 2>&1 && exec cat {ANSWER_FILE}\n",
            program.display()
        );
        let client = home.file("bin/python3", client);
        fs::set_permissions(client, fs::Permissions::from_mode(0o755)).unwrap();
        let model = Model::start(|_, reply| {
            let message = json!({"role": "assistant", "content": "42"});
            reply.json(
                "200 OK",
                &json!({"id": "chatcmpl-1", "object": "chat.completion", "model": "gpt-5-mini",
                    "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                    "usage": {"prompt_tokens": 14, "completion_tokens": 2}}),
            );
        });
        Self { home, model, addresses: Vec::new() }
    }

    fn start(&self, command: &str) -> Terminal {
        let mut command = command.to_owned();
        for (there, here) in &self.addresses {
            command = command.replace(there, here);
        }
        let store = self.home.path().join(".local/share/steno");
        let upstream = format!("{}/v1", self.model.url());
        let variables = [
            ("STENO_HOME", store.to_str().unwrap()),
            ("OPENAI_BASE_URL", &upstream),
            ("PAGER", "cat"),
        ];
        let size = if command == "steno" { BROWSER_SIZE } else { COMMAND_SIZE };
        Terminal::run_sized(&self.home, size, &["sh", "-c", &command], &variables)
    }

    /// Replaces the address of a server by the one in the page, and remembers both for the next commands.
    fn replace_address(&mut self, got: &str, expected: &str) -> String {
        let address = Regex::new(r"127\.0\.0\.1:\d+").unwrap();
        let [there, here] = [expected, got].map(|text| address.find(text).unwrap().as_str());
        self.addresses.push((there.to_owned(), here.to_owned()));
        got.replace(here, there)
    }

    fn normalised(&self, text: &str) -> String {
        let folder = self.home.path().canonicalize().unwrap();
        text.replace(folder.to_str().unwrap(), "$HOME")
    }
}

/// Adds the repository of which the example sessions of the shop are: one commit before the session, one after.
fn add_shop_repository(home: &Home) {
    let shop = home.path().canonicalize().unwrap().join("shop");
    let sessions = home.path().join(".claude/projects/-home-me-shop");
    for entry in fs::read_dir(sessions).unwrap().map(Result::unwrap) {
        let text = fs::read_to_string(entry.path()).unwrap();
        fs::write(entry.path(), text.replace("/home/me/shop", shop.to_str().unwrap())).unwrap();
    }
    let source = "use std::time::Duration;\n\n/// How long a login lasts.\nfn lifetime() -> Duration {\n    Duration::from_secs(300)\n}\n";
    let test = "#[test]\nfn expires() {\n    assert_eq!(session().expires(), after(300));\n}\n";
    for (seconds, date) in
        [("300", "2026-01-01T09:00:00Z"), ("30 * 24 * 3600", "2026-01-04T11:00:00Z")]
    {
        home.file("shop/src/session.rs", source.replace("300", seconds));
        home.file("shop/tests/session.rs", test.replace("300", seconds));
        for args in
            [&["init", "-q"][..], &["add", "-A"], &["commit", "-q", "-m", "Change the lifetime"]]
        {
            let mut command = home.program("git", args);
            command.current_dir(&shop).env("GIT_AUTHOR_DATE", date).env("GIT_COMMITTER_DATE", date);
            for role in ["AUTHOR", "COMMITTER"] {
                command
                    .env(format!("GIT_{role}_NAME"), "Me")
                    .env(format!("GIT_{role}_EMAIL"), "me@shop.example");
            }
            home.finish(command, b"").ok();
        }
    }
}

pub(crate) fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            fs::write(target, fs::read(entry.path()).unwrap()).unwrap();
        }
    }
}

/// Returns whether the lines match. `...` matches any text; sizes are ignored, as they depend on the folder's
/// name.
fn matches(got: &str, expected: &str) -> bool {
    let (got, expected) = (without_sizes(got), without_sizes(expected));
    let (got, expected) = (got.trim_end().lines(), expected.trim_end().lines());
    got.clone().count() == expected.clone().count()
        && got.zip(expected).all(|(got, expected)| line_matches(got.trim_end(), expected))
}

fn line_matches(got: &str, expected: &str) -> bool {
    let parts = expected.split("...").map(regex::escape).collect::<Vec<_>>();
    Regex::new(&format!("^{}$", parts.join(".*"))).unwrap().is_match(got)
}

fn without_sizes(text: &str) -> String {
    let size = Regex::new(r"[\d.]+ (bytes|[KMG]?B)\b").unwrap();
    size.replace_all(text, "[SIZE]").into_owned()
}
