//! Long lists: the order of the sessions, their projects, and the next part of a list or a search.

use serde_json::{Value, json};

use crate::driver::{Browser, SCRIPTS_RUN};
use crate::site::{Site, assistant, tool, user};

/// Keys of the WebDriver protocol.
const ENTER: &str = "\u{e007}";
const END_OF_LIST: &str = "document.querySelector('[data-more]')";

/// Writes sessions of one message, each in its folder, and serves them.
fn sessions_in(folders: &[String]) -> Site {
    let mut site = Site::new();
    let root = site.path().join("many");
    std::fs::create_dir_all(&root).unwrap();
    for (number, folder) in folders.iter().enumerate() {
        let record = json!({
            "type": "user", "uuid": format!("u{number}"), "sessionId": format!("many-{number:03}"), "version": "2.1.0",
            "timestamp": format!("2026-01-05T{:02}:{:02}:00.000Z", 9 + number / 60, number % 60),
            "cwd": folder, "message": {"role": "user", "content": format!("A lamp with number {number}")},
        });
        std::fs::write(root.join(format!("s{number}.jsonl")), format!("{record}\n")).unwrap();
    }
    site.steno(&["import", root.to_str().unwrap()]);
    site.serve();
    site
}

fn texts(browser: &Browser, selector: &str) -> Value {
    browser.run(&format!(
        "return [...document.querySelectorAll('{selector}')].map((one) => one.textContent.trim())"
    ))
}

#[test]
fn a_search_shows_more_sessions_and_keeps_them_in_its_address() {
    let Some(browser) = Browser::open(1280, 900) else { return };
    let site = sessions_in(&vec!["/home/me/code/harbor".to_owned(); 60]);
    browser.go(&site.first("/"));
    browser.go(&site.at("/search?q=lamp&sort=time"));
    let found = "document.querySelector('p.found').textContent";
    browser.until(&format!("{found} === '60 entries in 60 sessions; 25 of 60 sessions are shown'"));
    browser.until(SCRIPTS_RUN);
    let before = texts(&browser, ".hits .where > a");
    let first = before[0].as_str().unwrap().to_owned();
    assert!(first.contains("number 59"), "{first}");
    // The link is reached and used by keyboard. The first new session has the focus.
    browser.run("document.querySelector('[data-more]').focus()");
    browser.press(ENTER);
    browser.until("document.querySelectorAll('.hits > li').length === 50");
    assert_eq!(browser.run("return location.search"), json!("?q=lamp&sort=time&limit=50"));
    browser.until(&format!("{found}.includes('50 of 60')"));
    browser.until("document.activeElement.textContent.includes('number 34')");
    browser.run("document.querySelector('[data-more]').click()");
    browser.until("document.querySelectorAll('.hits > li').length === 60");
    browser.until(&format!("!{END_OF_LIST} && {found} === '60 entries in 60 sessions'"));
    let all = texts(&browser, ".hits .where > a");
    browser.run("location.reload()");
    browser.until("document.querySelectorAll('.hits > li').length === 60");
    assert_eq!(texts(&browser, ".hits .where > a"), all);
    assert_eq!(all.as_array().unwrap()[..25], before.as_array().unwrap()[..]);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn the_palette_names_all_sessions_and_all_results() {
    let Some(browser) = Browser::open(1280, 900) else { return };
    let site = sessions_in(&vec!["/home/me/code/harbor".to_owned(); 12]);
    browser.go(&site.first("/"));
    browser.until(SCRIPTS_RUN);
    browser.run("document.querySelector('#palette-open').click()");
    browser.press("lamp");
    let option = |text: &str| {
        format!(
            "[...document.querySelectorAll('#palette-list [role=option]')].find((one) => one.textContent.includes('{text}'))"
        )
    };
    browser.until(&option("Show all 12 sessions with “lamp”"));
    browser.until(&option("8 of 12 above"));
    let results = option("Show all results in all sessions for “lamp”");
    assert_eq!(browser.run(&format!("return {results}.dataset.href")), json!("/search?q=lamp"));
    browser.run(&format!("{}.click()", option("Show all 12 sessions")));
    browser.until(
        "location.search === '?filter=lamp' && document.querySelectorAll('a.row').length === 12",
    );
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn more_sessions_of_the_list_are_added_to_it() {
    let Some(browser) = Browser::open(1280, 900) else { return };
    let site = sessions_in(&vec!["/home/me/code/harbor".to_owned(); 104]);
    browser.go(&site.first("/"));
    browser.until(&format!("document.querySelectorAll('a.row').length === 100 && {SCRIPTS_RUN}"));
    browser.run("document.querySelector('#more-sessions').click()");
    browser.until("document.querySelectorAll('a.row').length === 104");
    browser.until(&format!("location.search === '?limit=200' && !{END_OF_LIST}"));
    browser.until("document.activeElement.matches('a.row') && document.activeElement.href.endsWith('many-003')");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

/// Three sessions whose orders by size, duration and time differ.
fn three_sessions() -> Site {
    let mut site = Site::new();
    site.keep("long", &vec![user("Wait for the ship"); 9]);
    site.keep("costly", &[user("Build a pier"), assistant("Done."), assistant("All of it.")]);
    site.keep("short", &[user("What time is it?")]);
    site.serve();
    site
}

#[test]
fn a_search_has_date_pickers_and_says_what_to_do_without_hits() {
    let Some(browser) = Browser::open(1440, 900) else { return };
    let site = three_sessions();
    browser.go(&site.first("/"));
    let kinds =
        "return ['since', 'until'].map((name) => document.querySelector(`[name=${name}]`).type)";
    browser.go(&site.at("/search?q=nothing-like-it&since=2026-01-05&agent=codex"));
    assert_eq!(browser.run(kinds), json!(["date", "date"]));
    browser.run("document.querySelector('.empty a').click()");
    browser
        .until("location.search === '?q=nothing-like-it' && !document.querySelector('.empty a')");
    browser.go(&site.at("/search?q=ship&since=2026-01-01"));
    browser.run("document.querySelector('.no-filters').click()");
    browser.until("location.search === '?q=ship' && !document.querySelector('.no-filters')");
    // An address may have a number of days, and a mistake is explained.
    browser.go(&site.at("/search?q=it&since=7d"));
    assert_eq!(browser.run(kinds), json!(["text", "date"]));
    browser.go(&site.at("/search?q=it&since=never"));
    browser.until("/2026-01-05|7d/.test(document.querySelector('.empty').textContent)");
    // Dates the wrong way round are said to be so, once.
    browser.go(&site.at("/search?q=it&since=2026-01-09&until=2026-01-05"));
    browser.until("document.querySelector('.stale a') && !document.querySelector('.empty')");
    for page in ["/cost", "/activity", "/edits"] {
        browser.go(&site.at(&format!("{page}?since=2026-01-09&until=2026-01-05")));
        browser.until("document.querySelector('.stale a') && !document.querySelector('.empty')");
    }
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn the_buttons_of_the_header_are_always_in_one_order() {
    let Some(browser) = Browser::open(1440, 900) else { return };
    let site = three_sessions();
    browser.go(&site.first("/"));
    for page in ["/", "/cost", "/session/claude-code/long", "/session/claude-code/long/replay"] {
        browser.go(&site.at(page));
        let order =
            "return [...document.querySelectorAll('.top button')].map((one) => one.id).slice(-3)";
        assert_eq!(browser.run(order), json!(["palette-open", "help", "theme"]), "{page}");
    }
}

#[test]
fn numbers_beside_titles_leave_room_for_them() {
    let Some(browser) = Browser::open(1440, 900) else { return };
    let mut site = Site::new();
    let mut said = vec![user(
        "A title that is long enough to need all of the room that it can get in its row",
    )];
    said.extend(tool("Bash", &json!({"command": "make"}), ("broken", true)));
    site.keep("broken", &said);
    site.serve();
    browser.go(&site.first("/"));
    browser.until("document.querySelector('.row .errors')");
    let width =
        browser.run("return document.querySelector('.row .errors').getBoundingClientRect().width");
    assert!(width.as_f64().unwrap() < 30.0, "{width}");
    // The words are there for those who cannot see the sign, and in the tooltip.
    assert_eq!(
        browser.run("const badge = document.querySelector('.row .errors'); return [badge.textContent, badge.title]"),
        json!(["✕1 error", "1 error"])
    );
}

#[test]
fn the_list_is_sorted_by_its_headings_and_by_keys() {
    let Some(browser) = Browser::open(1440, 900) else { return };
    let site = three_sessions();
    browser.go(&site.first("/"));
    browser.until(&format!("document.querySelectorAll('a.row').length === 3 && {SCRIPTS_RUN}"));
    let order = "[...document.querySelectorAll('a.row')].map((row) => row.pathname.split('/').pop()).join(' ')";
    let is_sorted = |search: &str, names: &str| {
        browser.until(&format!(
            "location.search === '{search}' && {order} === '{names}' && {SCRIPTS_RUN}"
        ));
    };
    is_sorted("", "long costly short");
    let heading = |name: &str| {
        browser.run(&format!(
            "[...document.querySelectorAll('.columns-head a')].find((one) => one.textContent.startsWith('{name}')).click()"
        ));
    };
    heading("Cost");
    is_sorted("?sort=cost", "costly long short");
    heading("Entries");
    is_sorted("?sort=entries", "long costly short");
    heading("Entries");
    is_sorted("?sort=-entries", "short costly long");
    let shown = "document.querySelector('.columns-head [aria-current]').textContent";
    browser.until(&format!("{shown} === 'Entries▲'"));
    // Keys: the next column, and the other way round. Sessions without a duration come last.
    browser.press("t");
    is_sorted("?sort=duration", "long costly short");
    browser.press("T");
    is_sorted("?sort=-duration", "costly long short");
    // The order belongs to the list that a session leads back to, and to its neighbours.
    browser.run("document.querySelector('a.row').click()");
    browser.until("document.querySelector('#list-place')?.textContent === '1 of 3'");
    assert_eq!(
        browser.run("return document.querySelector('#list-next').pathname"),
        json!("/session/claude-code/long")
    );
    browser.press("u");
    is_sorted("?sort=-duration", "costly long short");
    // A filter and an update keep the order.
    browser.run("document.querySelector('.facets a[href*=\"agent=\"]').click()");
    browser.until("location.search.includes('agent=claude-code') && location.search.includes('sort=-duration')");
    site.keep("newest", &[user("Light the lamp"), assistant("Lit.")]);
    browser.until(&format!("{order} === 'newest costly long short'"));
    browser.go(&site.at("/?sort=no-such-order"));
    browser.until(&format!("{order}.startsWith('long')"));
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn projects_of_one_name_are_told_apart() {
    let Some(browser) = Browser::open(1440, 900) else { return };
    let folders = ["/home/ada/shop/api", "/home/bob/shop/api", "/home/ada/site"].map(str::to_owned);
    let site = sessions_in(&folders);
    browser.go(&site.first("/"));
    browser.until("document.querySelectorAll('a.row').length === 3");
    let shown = texts(&browser, "a.row .project");
    assert_eq!(shown, json!(["site", "bob/shop/api", "ada/shop/api"]));
    let facets = texts(&browser, ".facets a[href*=\"project=\"] span");
    assert_eq!(facets, json!(["ada/shop/api", "ada/site", "bob/shop/api"]));
    browser.go(&site.at("/search?q=lamp"));
    let shown = texts(&browser, ".facets a[href*=\"project=\"] span");
    assert_eq!(shown.as_array().unwrap().len(), 3);
    assert!(shown.as_array().unwrap().contains(&json!("bob/shop/api")), "{shown}");
}

#[test]
fn the_totals_of_the_list_count_a_message_once() {
    let mut site = Site::new();
    let record = |session: &str, at: usize, message: &Value| {
        let record = json!({
            "type": message["role"], "uuid": format!("u{at}"), "sessionId": session, "version": "2.1.0",
            "timestamp": format!("2026-01-05T09:00:{at:02}.000Z"), "cwd": "/home/me/code/harbor", "message": message,
        });
        format!("{record}\n")
    };
    let messages =
        [user("Build a pier"), assistant("Done."), user("And a lamp"), assistant("It shines.")];
    for (session, count) in [("first", 2), ("resumed", 4)] {
        let lines = messages.iter().take(count).enumerate();
        let lines: String = lines.map(|(at, message)| record(session, at, message)).collect();
        let file = site.path().join(format!("{session}.jsonl"));
        std::fs::write(&file, lines).unwrap();
        site.steno(&["import", file.to_str().unwrap()]);
    }
    // An agent that knows no price writes that its tokens cost nothing.
    let unpriced = [
        json!({"type": "session", "version": 3, "id": "unpriced", "timestamp": "2026-01-05T10:00:00.000Z", "cwd": "/home/me/code/harbor"}),
        json!({"type": "message", "id": "m1", "parentId": null, "timestamp": "2026-01-05T10:00:01.000Z", "message": {
            "role": "assistant", "content": [{"type": "text", "text": "Hello"}], "provider": "x", "model": "no-price", "usage": {
                "input": 10, "output": 5, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 15,
                "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}}}}),
    ];
    let file = site.path().join("unpriced.jsonl");
    std::fs::write(&file, unpriced.map(|line| format!("{line}\n")).concat()).unwrap();
    site.steno(&["import", file.to_str().unwrap()]);
    site.serve();
    let Some(browser) = Browser::open(1440, 900) else { return };
    browser.go(&site.first("/"));
    browser.go(&site.at("/?sort=-cost"));
    browser.until("document.querySelectorAll('a.row').length === 3");
    let stats: Value = serde_json::from_str(&site.steno(&["stats", "--json"])).unwrap();
    assert_eq!((&stats["entries"], &stats["copied_entries"]), (&json!(5), &json!(2)));
    let totals = texts(&browser, ".totals > *");
    assert_eq!((&totals[0], &totals[2]), (&json!("3 sessions"), &json!("5 entries")), "{totals}");
    let explained = browser.run("return document.querySelectorAll('.totals > *')[2].title");
    assert!(explained.as_str().unwrap().contains("2 entries that"), "{explained}");
    // A cost that is not known is last, also if the cheapest come first.
    let costs = texts(&browser, ".row .cost");
    assert_eq!(costs[2], json!("?"), "{costs}");
    browser.go(&site.at("/quality?period=all"));
    browser.until(
        "document.body.innerText.includes('2 entries are copies in resumed and forked sessions')",
    );
    // One model has no price; none is called unknown.
    browser.go(&site.at("/cost?period=all"));
    browser.until("document.querySelector('.figures').innerText.includes('1 model has no price')");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}
