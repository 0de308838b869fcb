//! Checks the accessibility of every view with axe.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use crate::driver::Browser;
use crate::views::harbour;

/// Returns the axe script, installed from npm into a lasting folder; `None` without npm.
pub(crate) fn script() -> Option<String> {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("axe");
    let file = folder.join("node_modules/axe-core/axe.min.js");
    std::fs::create_dir_all(&folder).unwrap();
    // Two tests must not install into the same folder at once.
    let lock = std::fs::File::create(folder.join("lock")).unwrap();
    lock.lock().unwrap();
    // A registry may fail for a moment.
    if !file.exists() && !(0..3).any(|_| install(&folder)) {
        let is_required = std::env::var("STENO_BROWSER").is_ok_and(|text| text == "required");
        assert!(!is_required, "axe-core could not be installed by npm");
        eprintln!("skipped: axe-core could not be installed by npm");
        return None;
    }
    std::fs::read_to_string(file).ok()
}

/// Installs axe. Returns whether it succeeded.
fn install(folder: &Path) -> bool {
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-save", "--no-audit", "--no-fund", "--prefix"]);
    let installed = npm.arg(folder).arg("axe-core@4").output();
    installed.is_ok_and(|output| output.status.success())
}

#[test]
fn no_view_has_a_finding() {
    let (Some(browser), Some(script)) = (Browser::open(1280, 900), script()) else { return };
    let site = harbour();
    browser.go(&site.first("/"));
    let login = "/session/claude-code/harbour-login";
    let pages = [
        "/".to_owned(),
        login.to_owned(),
        format!("{login}/replay#e6"),
        "/search?q=cookie".to_owned(),
        "/cost?period=all".to_owned(),
        "/cost?by=block&period=all".to_owned(),
        "/cost".to_owned(),
        "/activity?since=2026-01-01".to_owned(),
        "/activity?since=2025-01-01&until=2025-01-02".to_owned(),
        "/quality?since=2026-01-01".to_owned(),
        "/trends?since=2026-01-01&q=cookie%0Alogin".to_owned(),
        "/trends?q=nothing-like-it".to_owned(),
        "/edits?since=2026-01-01".to_owned(),
        "/edits".to_owned(),
        "/?agent=nobody".to_owned(),
        "/compare".to_owned(),
        "/compare?a=claude-code/harbour-login&b=claude-code/harbour-long".to_owned(),
        "/threads".to_owned(),
    ];
    for scheme in ["light", "dark"] {
        let wish = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        browser.emulate("Emulation.setEmulatedMedia", &wish);
        for page in &pages {
            browser.go(&site.at(page));
            browser.until("document.readyState === 'complete'");
            browser.press("E");
            assert_no_findings(&browser, &script, &format!("{page} {scheme}"));
        }
    }
    let phone = json!({"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": true});
    browser.emulate("Emulation.setDeviceMetricsOverride", &phone);
    for page in &pages {
        browser.go(&site.at(page));
        browser.until("document.readyState === 'complete'");
        let wide = browser.run("return document.documentElement.scrollWidth - screen.width");
        assert!(wide.as_i64().unwrap() <= 0, "{page} is {wide} pixels too wide");
        assert_no_findings(&browser, &script, &format!("{page} on a phone"));
    }
}

#[test]
fn no_dialog_or_section_has_a_finding() {
    let (Some(browser), Some(script)) = (Browser::open(1440, 900), script()) else { return };
    let site = harbour();
    browser.go(&site.first("/session/claude-code/harbour-login"));
    browser.until("document.querySelectorAll('.entries > li[id]').length === 10");
    browser.run("document.querySelectorAll('details.section').forEach((section) => { section.open = true; })");
    browser.until("[...document.querySelectorAll('details.section')].every((section) => section.querySelector('div'))");
    browser.run(
        "document.querySelectorAll('.section details').forEach((fold) => { fold.open = true; })",
    );
    browser.run(
        "document.querySelector('#e0').dispatchEvent(new Event('pointerover', {bubbles: true}))",
    );
    assert_no_findings(&browser, &script, "open sections");
    for button in ["export-open", "annotate", "help", "palette-open"] {
        browser.run(&format!("document.querySelector('dialog[open]')?.close(); document.getElementById('{button}').click()"));
        browser.until("document.querySelector('dialog[open]')");
        assert_no_findings(&browser, &script, button);
    }
}

/// Runs axe on the current page.
#[track_caller]
pub(crate) fn assert_no_findings(browser: &Browser, script: &str, page: &str) {
    // The page's policy blocks scripts; the browser's own protocol does not.
    browser.emulate("Runtime.evaluate", &json!({"expression": script}));
    let run = "window.result = null; axe.run({resultTypes: ['violations']}).then((result) => { window.result = result; })";
    browser.emulate("Runtime.evaluate", &json!({"expression": run}));
    browser.until("window.result");
    let found = browser.run(
        "return window.result.violations.map((one) => `${one.id} (${one.impact}): \
         ${one.nodes.slice(0, 3).map((node) => node.html).join(' ')}`)",
    );
    assert_eq!(found, json!([]), "{page}");
}
