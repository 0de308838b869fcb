//! A phone: a low header with a menu, rows that can be read, and targets as large as a finger.

use serde_json::{Value, json};

use crate::driver::{Browser, SCRIPTS_RUN};
use crate::site::{Site, assistant, thought, tool, user};
use crate::views::harbour;

/// The highest header, in pixels.
const MAX_HEADER: i64 = 64;

fn phone() -> Option<(Site, Browser)> {
    let browser = Browser::open(390, 844)?;
    let screen = json!({"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": true});
    browser.emulate("Emulation.setDeviceMetricsOverride", &screen);
    let site = harbour();
    browser.go(&site.first("/"));
    Some((site, browser))
}

/// Buttons, links and inputs that are lower or narrower than a number of pixels. Links inside of text are left out.
const SMALL_TARGETS: &str = "[...document.querySelectorAll('a[href], button, input, select, summary')].filter((one) => { \
    const box = (one.closest('label') ?? one).getBoundingClientRect(); \
    return box.width && box.left >= 0 && !one.closest('p, .md, .facts, pre') && (box.height < 24 || box.width < 24); \
}).map((one) => one.outerHTML.slice(0, 120))";

#[test]
fn the_header_is_low_and_targets_are_large() {
    let Some((site, browser)) = phone() else { return };
    site.keep_nested("nested");
    for page in [
        "/",
        "/?sort=duration",
        "/session/claude-code/nested",
        "/session/claude-code/nested?subagent=a1",
        "/session/claude-code/harbour-login",
        "/session/claude-code/harbour-login/replay",
        "/search?q=cookie",
        "/compare",
        "/threads",
    ] {
        browser.go(&site.at(page));
        browser.until(SCRIPTS_RUN);
        let height = browser.run("return document.querySelector('.top').offsetHeight");
        assert!(height.as_i64().unwrap() <= MAX_HEADER, "{page}: {height}");
        let wide = browser.run("return document.documentElement.scrollWidth - screen.width");
        assert!(wide.as_i64().unwrap() <= 0, "{page} is {wide} pixels too wide");
        let small = browser.run(&format!("return {SMALL_TARGETS}"));
        assert_eq!(small, json!([]), "{page}");
    }
}

#[test]
fn the_menu_opens_by_keyboard_and_leads_to_the_pages() {
    let Some((_site, browser)) = phone() else { return };
    browser.until(SCRIPTS_RUN);
    let is_visible = "document.querySelector('#pages').getClientRects().length > 0";
    browser.until(&format!("!({is_visible})"));
    browser.run("document.querySelector('#menu').focus()");
    browser.press("\u{e007}");
    browser
        .until(&format!("{is_visible} && document.querySelector('#menu').ariaExpanded === 'true'"));
    browser.picture("phone-menu");
    // The next element is the link to the start page, then come the pages.
    browser.press("\u{e004}\u{e004}\u{e004}");
    browser.until("document.activeElement.textContent === 'Search'");
    browser.press("\u{e007}");
    browser.until("location.pathname === '/search'");
}

#[test]
fn a_table_that_is_too_wide_shows_that_there_is_more() {
    let Some(browser) = Browser::open(390, 844) else { return };
    let screen = json!({"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": true});
    browser.emulate("Emulation.setDeviceMetricsOverride", &screen);
    let mut site = Site::new();
    let cells = "| a_rather_long_heading ".repeat(8);
    let line = "|---".repeat(8);
    site.keep("wide", &[user("A table"), assistant(&format!("{cells}|\n{line}|\n{cells}|\n"))]);
    site.serve();
    browser.go(&site.first("/session/claude-code/wide"));
    browser.until("document.querySelector('.md table')");
    let table = "document.querySelector('.md table')";
    browser.until(&format!("{table}.scrollWidth > {table}.clientWidth"));
    // Two layers scroll with the content and cover the shades at its ends.
    let layers = browser.run(&format!("return getComputedStyle({table}).backgroundAttachment"));
    assert_eq!(layers, json!("local, local, scroll, scroll"));
    let wide = browser.run("return document.documentElement.scrollWidth - screen.width");
    assert!(wide.as_i64().unwrap() <= 0, "the page is {wide} pixels too wide");
    browser.picture("phone-table");
}

/// The name of a model without a place where a line would break by itself.
const LONG_MODEL: &str =
    "accounts_harbour_routers_lighthouse_5p2_fast_preview_of_november_20261101";

#[test]
fn the_filters_and_tabs_of_a_report_take_little_of_the_first_screen() {
    let Some((site, browser)) = phone() else { return };
    for page in [
        "/cost?period=all",
        "/activity?period=all",
        "/quality?period=all",
        "/edits?period=all",
        "/trends?period=all",
    ] {
        browser.go(&site.at(page));
        browser.until(SCRIPTS_RUN);
        let is_folded = "document.querySelector('.dates').getClientRects().length === 0";
        assert_eq!(browser.run(&format!("return {is_folded}")), json!(true), "{page}");
        let height = browser.run("return document.querySelector('.period').offsetHeight");
        assert!(height.as_i64().unwrap() < 130, "{page}: {height}");
        let lines = "return [...document.querySelectorAll('.tabs')].filter((one) => one.getClientRects().length && one.offsetHeight > 60).length";
        assert_eq!(browser.run(lines), json!(0), "{page}");
        browser.run("document.querySelector('.fold-filters').click()");
        browser.until(&format!(
            "!({is_folded}) && document.querySelector('.fold-filters').ariaExpanded === 'true'"
        ));
    }
    // The chosen tab is in view.
    browser.go(&site.at("/cost?period=all&by=block"));
    browser.until("(() => { const box = document.querySelector('.tabs [aria-current=true]:not(.period *)').getBoundingClientRect(); return box.left >= 0 && box.right <= screen.width; })()");
    browser.picture("phone-tabs");
    browser.go(&site.at("/search?q=cookie"));
    browser.until("document.querySelector('.hits')");
    let form = browser.run("return document.querySelector('form.filters').offsetHeight");
    assert!(form.as_i64().unwrap() < 130, "{form}");
    let wide = "return [...document.querySelectorAll('main p')].filter((one) => one.getBoundingClientRect().right > screen.width).length";
    assert_eq!(browser.run(wide), json!(0));
    browser.run("document.querySelector('.fold-filters').click()");
    browser.until("document.querySelector('input[name=since]').getClientRects().length > 0");
}

#[test]
fn the_most_expensive_sessions_show_their_cost() {
    let Some(browser) = Browser::open(390, 844) else { return };
    let screen = json!({"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": true});
    browser.emulate("Emulation.setDeviceMetricsOverride", &screen);
    let mut site = Site::new();
    let title = "Repair https://example.org/lighthouse/northern-pier/lamps/repairs/november/1234";
    site.keep("lamp", &[user(title), assistant("It shines.")]);
    let mut answer = assistant("It glows.");
    answer["id"] = json!("msg_glow");
    answer["model"] = json!(LONG_MODEL);
    site.keep("glow", &[user("Glow"), answer]);
    site.serve();
    browser.go(&site.first("/"));
    browser.go(&site.at("/cost?period=all"));
    browser.until("document.querySelector('.session-costs td.paid')");
    let edges = "[...document.querySelectorAll('.session-costs tbody td')].map((cell) => cell.getBoundingClientRect()).filter((box) => box.width)";
    let seen = browser.run(&format!("return {edges}.length > 2 && {edges}.every((box) => box.left >= 0 && box.right <= screen.width)"));
    assert_eq!(seen, json!(true));
    let cost = browser.run("return document.querySelector('.session-costs td.paid').innerText");
    assert!(cost.as_str().unwrap().contains("$0.01"), "{cost}");
    browser.picture("phone-costs");
    browser.go(&site.at("/cost?period=all&by=model"));
    browser.until("document.querySelector('table.sums tbody')");
}

/// A name of 110 characters, without a place where a line would break by itself.
fn long_name(word: &str) -> String {
    format!("{word}{}", "_of_the_lighthouse".repeat(6))
}

/// A session in which the title, the model, the tool, the files, the project and all texts have long names.
fn keep_long_names(site: &Site, session: &str) {
    let address = format!("https://example.org/{}", long_name("pier"));
    let path = format!("/home/me/code/{}/{}.rs", long_name("folder"), long_name("file"));
    let edit =
        json!({"file_path": path, "old_string": long_name("old"), "new_string": long_name("new")});
    let mut messages =
        vec![user(&format!("Repair cookie {address}")), thought(&long_name("thought"))];
    messages.extend(tool(
        "Write",
        &json!({"file_path": path, "content": long_name("x")}),
        ("ok", false),
    ));
    messages.extend(tool("Edit", &edit, (&long_name("updated"), false)));
    let error = format!("error: {}", long_name("failure"));
    messages.extend(tool(&long_name("mcp"), &json!({"command": address}), (&error, true)));
    let table = format!("| a | b |\n|---|---|\n| {0} | {0} |", long_name("cell"));
    messages.push(assistant(&format!(
        "## {address}\n\n- cookie `{address}`\n\n{table}\n\n**{address}**"
    )));
    messages.push(user(&long_name("again")));
    let mut answer = assistant(&long_name("answer"));
    answer["id"] = json!(format!("msg_{session}"));
    answer["model"] = json!(LONG_MODEL);
    messages.push(answer);
    let project = format!("/home/me/code/{}", long_name("project"));
    let record = |(at, message): (usize, &Value)| {
        let record = json!({
            "type": message["role"], "uuid": format!("{session}{at}"), "sessionId": session, "version": "2.1.0",
            "timestamp": format!("2026-01-05T09:00:{at:02}.000Z"), "cwd": project,
            "gitBranch": long_name("branch"), "message": message,
        });
        format!("{record}\n")
    };
    let file = site.path().join(format!("{session}.jsonl"));
    std::fs::write(&file, messages.iter().enumerate().map(record).collect::<String>()).unwrap();
    site.steno(&["import", file.to_str().unwrap()]);
}

/// The elements that end beyond the screen and are not in a scroller, for messages.
const TOO_WIDE: &str = "return [...document.querySelectorAll('body *')].filter((one) => one.getBoundingClientRect().right > screen.width + 1 && one.getClientRects().length).slice(0, 8).map((one) => one.outerHTML.slice(0, 140))";

#[test]
fn long_names_make_no_page_wider_than_the_screen() {
    let Some(browser) = Browser::open(390, 844) else { return };
    let screen = json!({"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": true});
    browser.emulate("Emulation.setDeviceMetricsOverride", &screen);
    let mut site = Site::new();
    keep_long_names(&site, "one");
    keep_long_names(&site, "two");
    site.keep_nested("nested");
    site.serve();
    browser.go(&site.first("/"));
    let session = "/session/claude-code/one";
    let mut pages: Vec<String> =
        ["/", "/search?q=cookie", "/search?q=nothing_to_find", "/compare", "/threads"]
            .map(str::to_owned)
            .to_vec();
    pages.extend([session.to_owned(), format!("{session}/replay#e9")]);
    pages.push("/session/claude-code/nested?subagent=a1".to_owned());
    pages.push("/compare?a=claude-code/one&b=claude-code/two".to_owned());
    for view in ["activity", "quality", "edits"] {
        pages.push(format!("/{view}?period=all"));
    }
    pages.push(format!("/trends?period=all&q=cookie%0A{}", long_name("word")));
    for by in ["day", "week", "month", "model", "project", "agent", "session", "thread", "block"] {
        pages.push(format!("/cost?period=all&by={by}"));
    }
    let project = long_name("project");
    pages.push(format!("/cost?period=all&project=/home/me/code/{project}"));
    pages.push(format!("/?project=/home/me/code/{project}"));
    let mut too_wide = Vec::new();
    for page in pages {
        browser.go(&site.at(&page));
        browser.until(SCRIPTS_RUN);
        // Everything that opens is open.
        browser.run("for (const fold of document.querySelectorAll('details')) fold.open = true; for (const button of document.querySelectorAll('.fold-filters, #facets-open')) button.click()");
        browser.until("[...document.querySelectorAll('details[data-load][open]')].every((one) => one.querySelector(':scope > div'))");
        let wide = browser.run("return document.documentElement.scrollWidth - screen.width");
        if wide.as_i64().unwrap() > 0 {
            too_wide.push(format!("{page} by {wide} pixels: {}", browser.run(TOO_WIDE)));
        }
    }
    assert!(too_wide.is_empty(), "pages are too wide: {too_wide:#?}");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

/// A session with all that a heading shows: several models, a subagent, edits, failed calls and prompts.
fn keep_busy(site: &Site) {
    let mut said = vec![user(&"Is every item of the container a whole number? ".repeat(3))];
    for (at, model) in
        ["claude-sonnet-4-5-20250929", "claude-opus-4-5-20251101", "claude-haiku-4-5-20251001"]
            .iter()
            .enumerate()
    {
        let usage = json!({"input_tokens": 100, "output_tokens": 20});
        said.push(json!({"role": "assistant", "id": format!("msg_{at:020}"), "type": "message", "model": model,
            "content": [{"type": "text", "text": "Yes, all of them."}], "usage": usage}));
    }
    let edit =
        json!({"file_path": "/home/me/code/harbor/a.rs", "old_string": "a\n", "new_string": "b\n"});
    said.extend(tool("Edit", &edit, ("The file was updated.", false)));
    said.extend(tool("Bash", &json!({"command": "cargo test"}), ("error: failed", true)));
    said.extend(tool("Task", &json!({"prompt": "Look around"}), ("All is well.", false)));
    said.push(user("And the tests?"));
    let side = vec![user("Look around"), assistant("It is calm.")];
    site.keep_files("busy", &[(None, said), (Some("a1"), side)]);
}

#[test]
fn the_first_prompt_is_on_the_first_screen() {
    let Some((site, browser)) = phone() else { return };
    keep_busy(&site);
    browser.go(&site.at("/session/claude-code/busy"));
    browser.until(&format!("document.querySelector('#e0') && {SCRIPTS_RUN}"));
    let top = browser.run("return document.querySelector('#e0').getBoundingClientRect().top");
    assert!(top.as_f64().unwrap() < 660.0, "{top}");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}
