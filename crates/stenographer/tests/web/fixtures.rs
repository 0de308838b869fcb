//! Every view of real sessions of real agents, if `STENO_FIXTURES` is set.

use std::path::PathBuf;

use serde_json::Value;

use crate::driver::Browser;
use crate::site::Site;

#[test]
fn real_sessions_open_without_a_complaint() {
    let Some(fixtures) = std::env::var_os("STENO_FIXTURES").map(PathBuf::from) else { return };
    let Some(browser) = Browser::open(1280, 900) else { return };
    let mut site = Site::new();
    site.try_steno(&["import", fixtures.to_str().unwrap()]);
    site.serve();
    browser.go(&site.first("/"));
    let mut seen = 0;
    for line in site.steno(&["list", "--json"]).lines() {
        let session: Value = serde_json::from_str(line).unwrap();
        let name = |field: &str| session[field].as_str().unwrap().to_owned();
        let entries = session["entries"].as_u64().unwrap();
        let page = format!("/session/{}/{}", name("agent"), name("id"));
        browser.go(&site.at(&page));
        browser.until(&format!(
            "document.querySelectorAll('.entries > li[id]').length >= {}",
            entries.min(30)
        ));
        if seen % 10 == 0 {
            browser.press("EG");
            browser.go(&site.at(&format!("{page}/replay#e{}", entries.saturating_sub(1))));
            browser.until(&format!(
                "document.querySelectorAll('#stage > li[id]').length > 0 || {entries} === 0"
            ));
        }
        assert_eq!(browser.complaints(), Vec::<String>::new(), "{page}");
        seen += 1;
    }
    assert!(seen > 100, "{seen}");
    for page in [
        "/",
        "/search?q=error",
        "/cost",
        "/cost?by=model",
        "/cost?by=block",
        "/trends?q=error%0Atest&period=all",
        "/edits?period=all",
        "/activity?period=all",
        "/compare",
        "/threads",
    ] {
        browser.go(&site.at(page));
        browser.until("document.readyState === 'complete'");
        assert_eq!(browser.complaints(), Vec::<String>::new(), "{page}");
    }
}
