//! A session on paper and as a file: as good as on the page.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::driver::{Browser, SCRIPTS_RUN};
use crate::guarded::{asked, site_headers};
use crate::site::{Site, assistant, tool, user};
use crate::views::harbour;

/// Keys of the WebDriver protocol.
const ENTER: &str = "\u{e007}";
const ESCAPE: &str = "\u{e00c}";

/// A picture of one red pixel.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";

/// The texts that are cut off: elements that are narrower than what they contain.
const CUT_TEXTS: &str = "return [...document.querySelectorAll('main *')].filter((element) => \
    element.getClientRects().length && getComputedStyle(element).overflowX !== 'visible' \
    && element.scrollWidth > element.clientWidth + 1).map((element) => element.outerHTML.slice(0, 120))";

/// The visible elements that are useless on paper.
const SCREEN_ONLY: &str = "return ['.top', '.minimap', '.tools', '.skip', '.facets', '.filters', 'button', 'dialog'] \
    .filter((name) => [...document.querySelectorAll(name)].some((element) => element.getClientRects().length))";

fn opened(page: &str) -> Option<(Site, Browser)> {
    let browser = Browser::open(1280, 900)?;
    let site = harbour();
    browser.go(&site.first("/"));
    browser.go(&site.at(page));
    browser.until("document.readyState === 'complete'");
    Some((site, browser))
}

/// Shows the page as it is printed by somebody who reads it in the dark.
fn show_print(browser: &Browser) {
    let dark = json!([{"name": "prefers-color-scheme", "value": "dark"}]);
    browser.emulate("Emulation.setEmulatedMedia", &json!({"media": "print", "features": dark}));
}

#[test]
fn paper_is_white_and_nothing_is_cut() {
    let Some((site, browser)) = opened("/session/claude-code/harbour-login") else { return };
    let long = format!("cargo test {}", "--package harbour ".repeat(30));
    let mut said = vec![user("Run it"), assistant(&format!("```sh\n{long}\n```"))];
    said.extend(tool("Bash", &json!({"command": long}), (&long, false)));
    site.keep("wide", &said);
    browser.run("localStorage.setItem('theme', 'dark')");
    for page in [
        "/session/claude-code/harbour-login",
        "/session/claude-code/wide",
        "/",
        "/cost?period=all",
        "/activity?since=2026-01-01",
        "/search?q=cookie",
    ] {
        browser.go(&site.at(page));
        browser.until("document.readyState === 'complete'");
        show_print(&browser);
        assert_eq!(browser.run(CUT_TEXTS), json!([]), "{page}");
        assert_eq!(browser.run(SCREEN_ONLY), json!([]), "{page}");
        let colours = "const style = getComputedStyle(document.body); return [style.color, style.backgroundColor]";
        assert_eq!(browser.run(colours), json!(["rgb(0, 0, 0)", "rgb(255, 255, 255)"]), "{page}");
    }
    let pdf = browser.emulate("Page.printToPDF", &json!({}))["data"].as_str().map(str::to_owned);
    assert!(STANDARD.decode(pdf.unwrap()).unwrap().starts_with(b"%PDF"));
}

#[test]
fn all_entries_of_a_session_are_printed() {
    let Some((site, browser)) = opened("/session/claude-code/harbour-long") else { return };
    let shown = "document.querySelectorAll('.entries > li[id]').length";
    assert!(browser.run(&format!("return {shown}")).as_u64().unwrap() < 300);
    browser.until(SCRIPTS_RUN);
    browser.run(&format!("window.print = () => {{ window.printed = {shown}; }}"));
    browser.run("dispatchEvent(new KeyboardEvent('keydown', {key: 'p', ctrlKey: true}))");
    browser.until("window.printed === 600");
    browser.run("window.printed = 0; document.querySelector('#print').click()");
    browser.until("window.printed === 600");
    // A browser's own menu prints what is on the page, and the paper says so.
    browser.go(&site.at("/"));
    browser.go(&site.at("/session/claude-code/harbour-long"));
    browser.until("document.querySelectorAll('.chunk:empty').length > 0");
    show_print(&browser);
    let hint = "return getComputedStyle(document.querySelector('#entries'), '::after').content";
    assert!(browser.run(hint).to_string().contains("Only a part of this session"));
}

#[test]
fn a_part_of_a_very_long_session_is_printed_only_after_a_question() {
    let Some(browser) = Browser::open(1280, 900) else { return };
    let mut site = Site::new();
    let said: Vec<Value> = (0..5001).map(|number| user(&format!("Prompt {number}"))).collect();
    site.keep("endless", &said);
    site.serve();
    browser.go(&site.first("/session/claude-code/endless"));
    browser.until(SCRIPTS_RUN);
    browser.run("window.printed = 0; window.print = () => { window.printed += 1; }; document.querySelector('#print').click()");
    browser.until("document.querySelector('#print-part[open]')?.textContent.includes('of 5,001.')");
    assert_eq!(browser.run("return window.printed"), json!(0));
    browser.run("document.querySelector('#print-part [value=export]').click()");
    browser.until(
        "document.querySelector('#export[open]') && !document.querySelector('#print-part[open]')",
    );
    browser.run("document.querySelector('#export-cancel').click(); document.querySelector('#print').click()");
    browser.run("document.querySelector('#print-part [value=print]').click()");
    browser.until("window.printed === 1");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

/// How each entry looks: its class, colours, font and width.
const LOOKS: &str = "return [...document.querySelectorAll('.entries > li[id], .entries pre, .entries table, h1, .facts')].map((element) => { \
    const style = getComputedStyle(element); \
    return [element.id, element.className.replace(' at', ''), style.color, style.backgroundColor, style.font, element.offsetWidth]; })";

#[test]
fn an_exported_page_looks_like_the_page() {
    let Some((site, browser)) = opened("/session/claude-code/harbour-login") else { return };
    browser.until("document.querySelectorAll('.entries > li[id]').length === 10");
    let [host, cookie] = site_headers(&site);
    let export = "GET /session/claude-code/harbour-login/export?format=html";
    let (_, answer) = asked(&site, export, &[host, cookie]);
    let file = site.path().join("exported.html");
    let html = &answer[answer.find("<!DOCTYPE html>").unwrap()..];
    std::fs::write(&file, html).unwrap();
    for scheme in ["light", "dark"] {
        let wish = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        browser.emulate("Emulation.setEmulatedMedia", &wish);
        let on_page = browser.run(LOOKS);
        assert!(on_page.as_array().unwrap().len() > 12, "{on_page}");
        browser.go(&format!("file://{}", file.display()));
        browser.until("document.querySelectorAll('.entries > li[id]').length === 10");
        assert_eq!(browser.run(LOOKS), on_page, "{scheme}");
        browser.go(&site.at("/session/claude-code/harbour-login"));
        browser.until("document.querySelectorAll('.entries > li[id]').length === 10");
    }
    browser.go(&format!("file://{}#e8", file.display()));
    browser.until("document.querySelector('#e8.at details').open");
    let top = browser.run("return document.querySelector('#e8').getBoundingClientRect().top");
    assert!((0.0..900.0).contains(&top.as_f64().unwrap()), "{top}");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

/// The times of all entries in the viewer's zone, and how many of their tooltips have the date.
const TIMES: &str = "const times = [...document.querySelectorAll('.entries > li[id]')].map((entry) => entry.querySelector(':scope > a')); \
    return [times.map((time) => time?.textContent).join(' '), times.filter((time) => time?.title.startsWith('Monday, 5 January 2026, ')).length]";

#[test]
fn every_entry_has_its_time_on_the_page_and_in_a_file() {
    let Some((site, browser)) = opened("/session/claude-code/harbour-login") else { return };
    browser.until("document.querySelectorAll('.entries > li[id]').length === 10");
    let hours = browser.run("return new Date(Date.UTC(2026, 0, 5, 9)).getHours()");
    let minutes = ["00", "00", "01", "01", "02", "02", "03", "03", "04", "04"];
    let expected =
        minutes.map(|minute| format!("{:02}:{minute}", hours.as_u64().unwrap())).join(" ");
    assert_eq!(browser.run(TIMES), json!([expected, 10]));
    assert_eq!(
        browser.run("return document.querySelector('#e1 > a').title.slice(-5)"),
        json!("00:30")
    );
    site.steno(&["export", "harbour-login", "--format", "html", "-o", "times.html"]);
    browser.go(&format!("file://{}", site.path().join("times.html").display()));
    browser.until("document.querySelectorAll('.entries > li[id]').length === 10");
    assert_eq!(browser.run(TIMES), json!([expected, 10]));
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn pictures_are_shown_on_the_page_and_in_a_file() {
    let Some(browser) = Browser::open(1280, 900) else { return };
    let mut site = Site::new();
    let picture = |kind: &str| json!({"type": "image", "source": {"type": "base64", "media_type": kind, "data": PIXEL}});
    let said: [Value; 2] = [
        json!({"role": "user", "content": [{"type": "text", "text": "What is this?"}, picture("image/png")]}),
        assistant("A red pixel."),
    ];
    site.keep("seen", &said);
    site.serve();
    browser.go(&site.first("/session/claude-code/seen"));
    let loaded = "document.querySelector('.user img.picture')?.naturalWidth === 1";
    browser.until(loaded);
    enlarge_picture(&browser);
    site.steno(&["export", "seen", "--format", "html", "-o", "seen.html"]);
    browser.go(&format!("file://{}", site.path().join("seen.html").display()));
    browser.until(loaded);
    enlarge_picture(&browser);
    assert_eq!(browser.complaints(), Vec::<String>::new());
    let [host, cookie] = site_headers(&site);
    let ask = |headers: &[String]| {
        asked(&site, "GET /session/claude-code/seen/picture/nothing", headers).0
    };
    assert_eq!(ask(&[host.clone(), cookie]), 404);
    assert_eq!(ask(&[host]), 401);
}

/// A picture of 2000 by 1000 pixels.
const LARGE_GIF: &str = "R0lGODlh0AfoA4AAAP8AAAAAACwAAAAAAQABAAACAkQBADs=";

#[test]
fn a_large_picture_uses_the_whole_screen_and_has_its_real_size_on_a_click() {
    let Some(browser) = Browser::open(390, 844) else { return };
    let screen = json!({"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": true});
    browser.emulate("Emulation.setDeviceMetricsOverride", &screen);
    let mut site = Site::new();
    let picture = json!({"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": LARGE_GIF}});
    let words = json!({"type": "text", "text": "What is this?"});
    site.keep("large", &[json!({"role": "user", "content": [words, picture]})]);
    site.serve();
    browser.go(&site.first("/session/claude-code/large"));
    browser.until(&format!(
        "document.querySelector('img.picture')?.naturalWidth === 2000 && {SCRIPTS_RUN}"
    ));
    browser.run("document.querySelector('img.picture').click()");
    let width = "document.querySelector('.enlarged img')?.getBoundingClientRect().width";
    browser.until(&format!("{width} === 390"));
    // The buttons are beside the picture.
    let edges = "document.querySelector('.enlarged header').getBoundingClientRect().bottom <= document.querySelector('.enlarged img').getBoundingClientRect().top";
    assert_eq!(browser.run(&format!("return {edges}")), json!(true));
    browser.picture("phone-large-picture");
    browser.run("document.querySelector('.enlarged img').click()");
    browser.until(&format!("{width} === 2000"));
    let area = "document.querySelector('.enlarged div')";
    browser.run(&format!("{area}.scrollTo(5000, 0)"));
    browser.until(&format!("{area}.scrollLeft === 1610"));
    browser.run("document.querySelector('.enlarged img').click()");
    browser.until(&format!("{width} === 390"));
    browser.run("document.querySelector('.enlarged [aria-label=Close]').click()");
    browser.until("!document.querySelector('dialog.enlarged')");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn bytes_that_are_no_image_are_said_to_be_there() {
    let Some(browser) = Browser::open(1280, 900) else { return };
    let mut site = Site::new();
    let data = "mOm5DjH2rDYpcxYaPjfzC38bQEzr6MVT";
    let picture = json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": data}});
    let words = json!({"type": "text", "text": "What is this?"});
    site.keep("noise", &[json!({"role": "user", "content": [words, picture]})]);
    site.serve();
    browser.go(&site.first("/session/claude-code/noise"));
    browser.until("document.querySelector('.missing')?.textContent.includes('cannot be shown')");
    browser.run("window.bytes = null; fetch(document.querySelector('.missing a').href).then((response) => response.arrayBuffer()).then((data) => { window.bytes = btoa(String.fromCharCode(...new Uint8Array(data))); })");
    browser.until(&format!("window.bytes === '{data}'"));
}

/// Opens a picture by pointer and by key, and closes it.
fn enlarge_picture(browser: &Browser) {
    let is_large =
        "document.querySelector('dialog.enlarged[open] img')?.getBoundingClientRect().width >= 300";
    browser.until(SCRIPTS_RUN);
    browser.run("document.querySelector('img.picture').click()");
    browser.until(is_large);
    browser.press(ESCAPE);
    browser.until("!document.querySelector('dialog.enlarged')");
    browser.run("document.querySelector('img.picture').focus()");
    browser.press(ENTER);
    browser.until(is_large);
    // A click closes a small one, and the focus is where it was.
    browser.run("document.querySelector('dialog.enlarged img').click()");
    browser.until("!document.querySelector('dialog.enlarged') && document.activeElement.matches('img.picture')");
}

#[test]
fn the_bar_needs_one_line_on_every_desktop() {
    let Some((site, browser)) = opened("/") else { return };
    for page in [
        "/",
        "/session/claude-code/harbour-login",
        "/cost",
        "/session/claude-code/harbour-login/replay",
    ] {
        browser.go(&site.at(page));
        browser.until("document.readyState === 'complete'");
        for width in [1920, 1440, 1280, 1120, 1024] {
            let screen =
                json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false});
            browser.emulate("Emulation.setDeviceMetricsOverride", &screen);
            let height = browser.run("return document.querySelector('.top').offsetHeight");
            assert!(height.as_u64().unwrap() < 60, "{page} at {width}: {height}");
        }
    }
}
