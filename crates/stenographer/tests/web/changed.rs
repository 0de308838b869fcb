//! A session that changes while its page is open: the page never shows what is no longer so.

use serde_json::Value;

use crate::driver::{Browser, SCRIPTS_RUN};
use crate::site::{Site, assistant, user};

/// Questions and answers that contain a word.
fn talk(word: &str, turns: usize) -> Vec<Value> {
    let turn =
        |n: usize| [user(&format!("{word} question {n}")), assistant(&format!("Answer {n}"))];
    (0..turns).flat_map(turn).collect()
}

/// JavaScript that is true if the text of an entry contains a word.
fn shows(entry: usize, word: &str) -> String {
    format!("document.querySelector('#e{entry}')?.textContent.includes('{word}') === true")
}

/// The number of entries on the page.
const SHOWN: &str = "document.querySelectorAll('.entries > li[id]').length";

#[test]
fn a_rewritten_and_a_forgotten_entry_are_replaced() {
    let Some(browser) = Browser::open(1280, 860) else { return };
    let mut site = Site::new();
    site.keep("tides", &talk("First", 50));
    site.serve();
    browser.go(&site.first("/session/claude-code/tides"));
    browser.until(&format!("{} && {SHOWN} >= 60 && {SCRIPTS_RUN}", shows(0, "First")));
    // The agent rewrites its file: it is shorter, and begins with something else.
    site.keep("tides", &talk("Second", 20));
    browser.until(&format!("{} && {SHOWN} === 40", shows(0, "Second")));
    assert_eq!(browser.run("return document.querySelectorAll('.chunk').length"), 1);
    // Only an entry in the middle differs.
    let mut changed = talk("Second", 20);
    changed[10] = user("Third question");
    site.keep("tides", &changed);
    browser.until(&format!("{} && {} && {SHOWN} === 40", shows(0, "Second"), shows(10, "Third")));
    // It grows again, over the end of a chunk.
    let mut grown = changed;
    grown.extend(talk("Fourth", 20));
    site.keep("tides", &grown);
    browser.until(&shows(59, "Answer 9"));
    site.steno(&["forget", "tides:0", "--yes"]);
    browser.until(&format!("!({}) && {}", shows(0, "Second"), shows(2, "Second")));
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn growth_leaves_what_the_reader_has_unfolded() {
    let Some(browser) = Browser::open(1280, 860) else { return };
    let mut site = Site::new();
    let mut recording = site.record("running");
    for n in 0..70 {
        recording.say("user", &format!("line {n}"));
    }
    site.serve();
    browser.go(&site.first("/session/demo/running"));
    browser.until(&format!("{} && {SCRIPTS_RUN}", shows(0, "line 0")));
    let has_state =
        "performance.getEntriesByType('resource').some((one) => one.name.endsWith('/state'))";
    browser.until(has_state);
    browser.run("document.querySelector('#e0').dataset.isHere = 'yes'");
    recording.say("user", "one more");
    browser.until("!document.querySelector('#fresh').hidden");
    assert_eq!(browser.run("return document.querySelector('#e0').dataset.isHere"), "yes");
}
