//! Screenshots: how the example sessions of the documents look on a terminal of 80 x 24 and of 200 x 60.
//!
//! They are files in `snapshots/`, to be looked at. `INSTA_UPDATE=always` writes them.

use regex::Regex;

use crate::harness::Home;
use crate::readme::{copy_folder, root};
use crate::screens::screen;
use crate::terminal::Terminal;

const SIZES: [(u16, u16); 2] = [(80, 24), (200, 60)];

/// A home folder with the example sessions, which are synced.
fn home_with_examples() -> Home {
    let home = Home::new();
    let examples = root().join("docs/examples");
    copy_folder(&examples.join("claude-code"), &home.path().join(".claude/projects"));
    copy_folder(&examples.join("codex"), &home.path().join(".codex/sessions"));
    home.steno(&["sync"]).ok();
    home
}

/// Compares the screen of a command with its files, one for each size.
fn check_screens(name: &str, line: &str) {
    let home = home_with_examples();
    let sizes = Regex::new(r"\d+(\.\d+)? [KMGT]?B\b").unwrap();
    for size in SIZES {
        let shown = screen(&home, size, line, &[]);
        let shown = sizes.replace_all(&shown, "SIZE");
        insta::assert_snapshot!(format!("{name}_{}x{}", size.0, size.1), shown);
    }
}

#[test]
fn list() {
    check_screens("list", "list");
}

#[test]
fn search() {
    check_screens("search", "search login");
}

#[test]
fn cost() {
    check_screens("cost", "cost --by session");
}

#[test]
fn show() {
    check_screens("show", "show 5f0c --no-pager --first 5");
}

#[test]
fn doctor() {
    check_screens("doctor", "doctor");
}

/// What the browser shows once the keys were pressed and it shows the text.
fn check_browser(name: &str, keys: &str, text: &str) {
    let home = home_with_examples();
    for size in SIZES {
        let mut terminal = Terminal::run_sized(&home, size, &[env!("CARGO_BIN_EXE_steno")], &[]);
        terminal.shows(&["3 sessions", "Deploy the shop"]);
        terminal.hides("looking for sessions");
        terminal.press(keys);
        let shown = terminal.rests_at(&[text]);
        insta::assert_snapshot!(format!("{name}_{}x{}", size.0, size.1), shown.trim_end());
    }
}

#[test]
fn browser_list() {
    check_browser("browser_list", "", "27,510 tokens in");
}

#[test]
fn browser_session() {
    check_browser("browser_session", "/logged out\r", "1/15");
}

#[test]
fn browser_search() {
    check_browser("browser_search", "slogin", "4 hits");
}

#[test]
fn browser_help() {
    check_browser("browser_help", "?", "any key");
}
