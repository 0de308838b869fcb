//! Checks the accessibility of every view with axe.

use std::path::PathBuf;
use std::process::Command;

use serde_json::json;

use crate::driver::Browser;
use crate::views::harbour;

/// Returns the axe script, installed from npm into a lasting folder; `None` without npm.
fn script() -> Option<String> {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("axe");
    let file = folder.join("node_modules/axe-core/axe.min.js");
    if !file.exists() {
        std::fs::create_dir_all(&folder).unwrap();
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-save", "--no-audit", "--no-fund", "--prefix"]);
        let installed = npm.arg(&folder).arg("axe-core@4").output();
        if !installed.is_ok_and(|output| output.status.success()) {
            let is_required = std::env::var("STENO_BROWSER").is_ok_and(|text| text == "required");
            assert!(!is_required, "axe-core could not be installed by npm");
            eprintln!("skipped: axe-core could not be installed by npm");
            return None;
        }
    }
    std::fs::read_to_string(file).ok()
}

#[test]
fn no_view_has_a_serious_finding() {
    let (Some(browser), Some(script)) = (Browser::open(1280, 900), script()) else { return };
    let site = harbour();
    browser.go(&site.first("/"));
    let login = "/session/claude-code/harbour-login";
    let pages = [
        "/".to_owned(),
        login.to_owned(),
        format!("{login}/replay#e6"),
        "/search?q=cookie".to_owned(),
        "/cost".to_owned(),
        "/cost?by=block".to_owned(),
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
            // The page's policy blocks scripts; the browser's own protocol does not.
            browser.emulate("Runtime.evaluate", &json!({"expression": script}));
            browser.emulate(
                "Runtime.evaluate",
                &json!({"expression":
                "axe.run({resultTypes: ['violations']}).then((result) => { window.result = result; })"}),
            );
            browser.until("window.result");
            let found = browser.run(
                "return window.result.violations.filter((one) => ['serious', 'critical'].includes(one.impact))\
                 .map((one) => `${one.id}: ${one.nodes.slice(0, 3).map((node) => node.html).join(' ')}`)",
            );
            assert_eq!(found, json!([]), "{page} {scheme}");
        }
    }
}
