//! Words over time, recent edits, and the most expensive sessions.

use serde_json::{Value, json};

use crate::driver::{Browser, SCRIPTS_RUN};
use crate::guarded::{asked, site_headers};
use crate::site::Site;

const ENTER: &str = "\u{e007}";

/// A path that must not become an element.
const ATTACK: &str = "<img src=x onerror=window.harm=1>";

fn record(session: &str, at: &str, message: &Value) -> String {
    let record = json!({
        "type": message["role"], "uuid": format!("{session}-{at}"), "sessionId": session, "version": "2.1.0",
        "timestamp": at, "cwd": "/home/me/code/harbor", "message": message,
    });
    format!("{record}\n")
}

fn said(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

/// A call with its tokens: input, read from the cache, written to it, and output.
fn called(id: &str, name: &str, input: &Value, [new, read, write, output]: [u64; 4]) -> Value {
    json!({
        "id": format!("msg_{id:0>20}"), "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
        "content": [{"type": "tool_use", "id": id, "name": name, "input": input}],
        "usage": {"input_tokens": new, "cache_read_input_tokens": read, "cache_creation_input_tokens": write, "output_tokens": output},
    })
}

fn returned(id: &str) -> Value {
    json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": "done"}]})
}

/// Two sessions that edit files, in two weeks of January.
fn edited() -> Site {
    let mut site = Site::new();
    let edit = |path: &str| json!({"file_path": path, "old_string": "one", "new_string": "1\n2"});
    let million = 1_000_000;
    let sessions = [
        (
            "keeper",
            vec![
                ("2026-01-05T09:00:00Z", said("The lighthouse keeper")),
                (
                    "2026-01-05T09:01:00Z",
                    called(
                        "t1",
                        "Edit",
                        &edit("/home/me/code/harbor/src/lamp.rs"),
                        [million, 2 * million, million, 0],
                    ),
                ),
                ("2026-01-05T09:03:05Z", returned("t1")),
            ],
        ),
        (
            "storm",
            vec![
                ("2026-01-14T09:00:00Z", said("The storm broke the lighthouse")),
                (
                    "2026-01-14T09:01:00Z",
                    called(
                        "t2",
                        "Write",
                        &json!({"file_path": ATTACK, "content": "x\ny\nz\n"}),
                        [0, 0, 0, 100],
                    ),
                ),
                ("2026-01-14T09:01:05Z", returned("t2")),
                (
                    "2026-01-14T09:02:00Z",
                    called(
                        "t3",
                        "Edit",
                        &edit("/home/me/code/harbor/src/lamp.rs"),
                        [0, million, 0, 0],
                    ),
                ),
                ("2026-01-14T09:02:30Z", returned("t3")),
            ],
        ),
    ];
    for (session, messages) in sessions {
        let lines: String =
            messages.iter().map(|(at, message)| record(session, at, message)).collect();
        let file = site.path().join(format!("{session}.jsonl"));
        std::fs::write(&file, lines).unwrap();
        site.steno(&["import", file.to_str().unwrap()]);
    }
    site.serve_at("2026-01-20T12:00:00Z");
    site
}

fn texts(browser: &Browser, selector: &str) -> Value {
    browser.run(&format!(
        "return [...document.querySelectorAll('{selector}')].map((one) => one.textContent.trim())"
    ))
}

#[test]
fn words_are_counted_over_time_and_bars_lead_to_the_search() {
    let Some(browser) = Browser::open(1440, 900) else { return };
    let site = edited();
    browser.go(&site.first("/"));
    browser.go(&site.at("/trends"));
    browser.until("document.body.innerText.includes('These are examples')");
    browser.run(
        "document.querySelector('#words').value = ''; document.querySelector('#words').focus()",
    );
    browser.press(&format!("lighthouse{ENTER}storm{ENTER}\"open"));
    browser.run("document.querySelector('.word-form .main').click()");
    browser.until("new URLSearchParams(location.search).get('q')?.startsWith('lighthouse') && document.querySelector('.plot')");
    let rows = texts(&browser, ".words ~ h2 + .wide-table tbody tr td:nth-child(-n+3)");
    let error = "a phrase without its closing quotation mark: open";
    let rows = rows.as_array().unwrap();
    assert_eq!(
        rows[..6],
        json!(["lighthouse", "2", "2", "storm", "1", "1"]).as_array().unwrap()[..]
    );
    assert!(rows[7].as_str().unwrap().starts_with(&error[..20]), "{rows:?}");
    // The period is divided by weeks: three words, each with a bar a week.
    let columns = "[...document.querySelectorAll('.plot .column')].map((one) => one.textContent)";
    browser.until(&format!("{columns}.includes('lighthouse\\nWeek of 5 January 2026: 1')"));
    browser.picture("trends");
    // Ninety days of three words are lines. A day of them leads to its bars.
    browser.run("[...document.querySelectorAll('.tabs a')].find((one) => one.textContent === 'Day').click()");
    browser.until(&format!(
        "document.querySelectorAll('.curve').length === 3 && {columns}.includes('Wednesday, 14 January 2026\\nlighthouse 1\\nstorm 1')"
    ));
    browser.picture("trends-lines");
    browser.run("[...document.querySelectorAll('.plot .column')].find((one) => one.textContent.includes('storm')).dispatchEvent(new MouseEvent('click', {bubbles: true}))");
    browser.until(&format!("{columns}.includes('storm\\nWednesday, 14 January 2026: 1')"));
    browser.run("[...document.querySelectorAll('.tabs a')].find((one) => one.textContent === 'Per 1,000 entries').click()");
    browser.until(&format!(
        "{columns}.includes('storm\\nWednesday, 14 January 2026: 200.0\\n1 entry')"
    ));
    // All numbers are reached by keyboard, with the same links as the bars.
    browser.run("document.querySelector('.step-table summary').focus()");
    browser.press(ENTER);
    browser.until("document.querySelector('.step-table').open");
    browser.run("document.querySelector('.step-table tbody a').click()");
    browser.until(
        "location.pathname === '/search' && document.querySelectorAll('.hits li').length === 1",
    );
    let query = "new URLSearchParams(location.search)";
    browser.until(&format!(
        "{query}.get('since') === '2026-01-14' && {query}.get('until') === '2026-01-14'"
    ));
    // Another search keeps the period, and the results name it.
    let found = "document.querySelector('p.found').textContent";
    browser.until(&format!("{found} === '1 entry in 1 session, from 2026-01-14 to 2026-01-14'"));
    browser.run("document.querySelector('#query').value = 'lighthouse'; document.querySelector('form[role=search] button').click()");
    browser.until(&format!(
        "{query}.get('q') === 'lighthouse' && {query}.get('until') === '2026-01-14' && {found}.startsWith('1 entry in 1 session,')"
    ));
    browser.go(&site.at("/search?q=storm&since=2026-01-20&until=2026-01-10"));
    browser.run("document.querySelector('.stale a').click()");
    browser
        .until(&format!("{query}.get('since') === '2026-01-10' && {found}.startsWith('1 entry')"));
    browser.go(&site.at("/trends?q=zeppelin"));
    browser
        .until("document.body.innerText.includes('No entry of this period contains these words')");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn recent_edits_name_files_lines_and_entries() {
    let Some(browser) = Browser::open(1440, 900) else { return };
    let site = edited();
    browser.go(&site.first("/"));
    browser.go(&site.at("/edits"));
    browser.until("document.querySelectorAll('.edited-files > li').length === 2");
    let summaries = "return [...document.querySelectorAll('.edited-files summary')].map((one) => [...one.children].map((part) => part.textContent))";
    let expected = json!([
        [
            "src/lamp.rs",
            "The storm broke the lighthouse",
            "harbor",
            "2 edits in 2 sessions",
            "+4 −2"
        ],
        [ATTACK, "The storm broke the lighthouse", "harbor", "1 edit", "+3"],
    ]);
    assert_eq!(browser.run(summaries), expected);
    assert_eq!(texts(&browser, ".figures li b"), json!(["2", "3", "7", "2", "2"]));
    assert_eq!(texts(&browser, ".edit-day"), json!(["Wednesday, 14 January 2026"]));
    browser.run("document.querySelector('.edited-files summary').focus()");
    browser.press(ENTER);
    browser.until("document.querySelector('.edited-files details').open");
    browser.picture("edits");
    let edits = texts(&browser, ".edited-files > li:first-child .file-edits .when");
    assert_eq!(edits, json!(["14 Jan, 09:02", "5 Jan, 09:01"]));
    browser.run("document.querySelector('.file-edits li:last-child a').click()");
    browser.until("location.pathname.endsWith('/keeper') && location.hash === '#e1' && document.querySelector('.entries > li.at')");
    for (query, files) in
        [("q=lamp", 1), ("q=src%2Fla", 1), ("project=/elsewhere", 0), ("since=2026-01-06", 2)]
    {
        browser.go(&site.at(&format!("/edits?{query}")));
        browser.until(&format!(
            "{SCRIPTS_RUN} && document.querySelectorAll('.edited-files > li').length === {files}"
        ));
        assert_eq!(
            browser.run("return document.querySelectorAll('.empty').length"),
            json!(u8::from(files == 0))
        );
    }
    assert_eq!(browser.run("return window.harm ?? null"), json!(null));
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn the_most_expensive_sessions_and_the_kinds_of_tokens_are_on_the_cost_page() {
    let Some(browser) = Browser::open(1440, 900) else { return };
    let site = edited();
    browser.go(&site.first("/"));
    browser.go(&site.at("/cost"));
    let rows = "return [...document.querySelectorAll('.session-costs tbody tr')].map((row) => [...row.children].map((cell) => cell.textContent))";
    let expected = json!([
        [
            "The lighthouse keeper",
            "harbor",
            "claude-code",
            "5 Jan 2026",
            "1.00M",
            "2.00M",
            "1.00M",
            "0",
            "$7.35",
            "96%"
        ],
        [
            "The storm broke the lighthouse",
            "harbor",
            "claude-code",
            "14 Jan 2026",
            "0",
            "1.00M",
            "0",
            "100",
            "$0.30",
            "4%"
        ],
    ]);
    browser.until("document.querySelector('.session-costs')");
    assert_eq!(browser.run(rows), expected);
    let kinds = "return [...document.querySelectorAll('.breakdowns section')].find((one) => one.innerText.startsWith('Kinds')).innerText.replace(/\\s+/g, ' ')";
    let shown = browser.run(kinds);
    for part in [
        "Input, not cached 1.00M $3.00",
        "Cache reads 3.00M $0.90",
        "Cache writes 1.00M $3.75",
        "Output 100",
    ] {
        assert!(shown.as_str().unwrap().contains(part), "{part}: {shown}");
    }
    assert!(shown.as_str().unwrap().contains("The cache saved $7.35 of"), "{shown}");
    let figures = texts(&browser, ".figures small");
    assert!(
        figures.to_string().contains("cache reads, in tokens, 60% of what was read"),
        "{figures}"
    );
    // Every number is explained.
    assert_eq!(
        browser.run("return [...document.querySelectorAll('.sums td:not(:first-child, .share)')].filter((cell) => cell.textContent && !cell.title && !cell.querySelector('[title]')).map((cell) => cell.outerHTML)"),
        json!([])
    );
    browser.picture("cost-sessions");
    browser.run("[...document.querySelectorAll('.tabs a')].find((one) => one.textContent === 'Colour by agent').click()");
    browser.until("document.querySelector('.legend').textContent.startsWith('claude-code $')");
    // A long period is shown by week unless days are chosen.
    browser.go(&site.at("/cost?since=2025-02-01"));
    browser.until("document.querySelectorAll('.plot .column').length > 0");
    browser.run("document.querySelector('.session-costs a').click()");
    browser.until("location.pathname.endsWith('/keeper')");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn the_longest_calls_of_tools_are_listed() {
    let Some(browser) = Browser::open(1440, 900) else { return };
    let site = edited();
    browser.go(&site.first("/"));
    browser.go(&site.at("/activity"));
    browser.until("document.querySelectorAll('.plain-list').length > 1");
    let calls = "return [...document.querySelectorAll('#longest-calls li')].map((one) => [...one.children].map((part) => part.textContent))";
    let expected = json!([
        ["2 min 05 s", "Edit", "The lighthouse keeper"],
        ["30 s", "Edit", "The storm broke the lighthouse"],
        ["5 s", "Write", "The storm broke the lighthouse"],
    ]);
    assert_eq!(browser.run(calls), expected);
    browser.run("document.querySelector('#longest-calls a').click()");
    browser.until("location.hash === '#e2' && document.querySelector('.entries > li.at')");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn the_totals_of_edits_are_those_of_the_period() {
    let mut site = Site::new();
    let mut lines = record("writer", "2026-01-05T09:00:00Z", &said("Write the chapters"));
    for at in 0..210 {
        let time = format!("2026-01-05T{:02}:{:02}:00Z", 10 + at / 60, at % 60);
        let (id, path) = (format!("t{at}"), format!("/home/me/code/harbor/{at}.md"));
        let input = json!({"file_path": path, "content": "x\n"});
        lines += &record("writer", &time, &called(&id, "Write", &input, [0; 4]));
        lines += &record("writer", &time.replace(":00Z", ":30Z"), &returned(&id));
    }
    let patch = "*** Begin Patch\n*** Delete File: 0.md\n*** End Patch";
    let time = "2026-01-05T20:00:00Z";
    lines +=
        &record("writer", time, &called("gone", "apply_patch", &json!({ "input": patch }), [0; 4]));
    lines += &record("writer", "2026-01-05T20:00:30Z", &returned("gone"));
    let file = site.path().join("writer.jsonl");
    std::fs::write(&file, lines).unwrap();
    site.steno(&["import", file.to_str().unwrap()]);
    site.serve_at("2026-01-20T12:00:00Z");
    let headers = site_headers(&site);
    for (page, files) in [("/edits?period=all", 60), ("/edits?period=all&skip=180", 30)] {
        let (status, shown) = asked(&site, &format!("GET {page}"), &headers);
        assert_eq!(status, 200);
        assert_eq!(shown.matches("<details><summary><code").count(), files, "{page}");
        for figure in
            ["<b>210</b><small>files", "<b>211</b><small>edits", "<b>210</b><small>lines added"]
        {
            assert!(shown.contains(figure), "{page}: {figure}");
        }
        // The file that was deleted last has both of its edits, and says so.
        let deleted = r#"2 edits</span><span class="lines-changed" title="1 line added, 0 lines removed; the file was deleted"><span class="plus">+1</span> <span class="minus">deleted"#;
        assert_eq!(shown.contains(deleted), files == 60, "{page}");
    }
    assert!(
        asked(&site, "GET /api/edits?q=0.md&limit=1", &headers).1.contains(r#""is_deletion":true"#)
    );
}

#[test]
fn the_api_has_words_and_edits() {
    let site = edited();
    let headers = site_headers(&site);
    let ask = |request: &str| -> Value {
        let (status, answer) = asked(&site, &format!("GET {request}"), &headers);
        assert_eq!(status, 200, "{request}: {answer}");
        serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap()
    };
    let words = ask("/api/trends?q=lighthouse%0Astorm&by=week");
    let steps =
        json!([{"start": "2026-01-05", "entries": 1}, {"start": "2026-01-12", "entries": 1}]);
    assert_eq!(
        words[0],
        json!({"word": "lighthouse", "entries": 2, "sessions": 2, "by": "week", "steps": steps})
    );
    assert_eq!(words[1]["entries"], json!(1));
    let edits = ask("/api/edits?q=lamp");
    assert_eq!(edits[0]["file"], json!("/home/me/code/harbor/src/lamp.rs"));
    assert_eq!((&edits[0]["lines_added"], &edits[0]["lines_removed"]), (&json!(4), &json!(2)));
    assert_eq!(edits[0]["edits"][1]["session"], json!("keeper"));
    assert_eq!(ask("/api/edits?limit=1")[0]["edits"].as_array().unwrap().len(), 1);
    assert_eq!(asked(&site, "GET /api/trends?q=%22open", &headers).0, 400);
    for (request, status, error) in [
        ("/api/cost?by=foo", 400, "unknown by foo; one of: day, week, month"),
        ("/api/search?q=lamp&sort=size", 400, "unknown sort size; one of: relevance, time"),
        ("/api/search?q=lamp&role=boss", 400, "unknown role boss; one of: assistant, system"),
        ("/api/trends?q=lamp&role=boss", 400, "unknown role boss; one of: assistant, system"),
        ("/api/sessions?agnt=x", 400, "unknown parameter agnt; one of: agent, limit"),
        ("/api/nothing", 404, "not found: /api/nothing"),
    ] {
        let (answered, answer) = asked(&site, &format!("GET {request}"), &headers);
        assert_eq!(answered, status, "{request}: {answer}");
        let body: Value = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
        assert!(body["error"].as_str().unwrap().starts_with(error), "{request}: {body}");
    }
}
