//! Charts show the whole period and name what they show.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::driver::Browser;
use crate::site::Site;

/// How many sessions there are, one every eight days, each with a failed call and a cost of $3.
const SESSIONS: i64 = 70;

/// A machine with sessions of a year and a half, in 14 projects.
fn long_site() -> Site {
    let mut site = Site::new();
    let folder = site.path().join("sessions");
    std::fs::create_dir(&folder).unwrap();
    for at in 0..SESSIONS {
        let project = at % 14;
        let day = jiff::civil::date(2024, 7, 1).saturating_add(jiff::Span::new().days(8 * at));
        let record = |kind: &str, second: i64, message: &Value| {
            let record = json!({
                "type": kind, "uuid": format!("u{at}-{second}"), "sessionId": format!("session-{at:02}"), "version": "2.1.0",
                "timestamp": format!("{day}T09:00:{second:02}.000Z"), "cwd": format!("/code/project-{project}"), "message": message,
            });
            format!("{record}\n")
        };
        let call = json!({
            "id": format!("msg_{at:020}"), "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
            "content": [{"type": "tool_use", "id": format!("toolu_{at}"), "name": "Bash", "input": {"command": "make"}}],
            "usage": {"input_tokens": 1_000_000, "output_tokens": 0},
        });
        let result = json!({"type": "tool_result", "tool_use_id": format!("toolu_{at}"), "content": "broken", "is_error": true});
        let lines = record("assistant", 1, &call)
            + &record("user", 2, &json!({"role": "user", "content": [result]}));
        std::fs::write(folder.join(format!("session-{at:02}.jsonl")), lines).unwrap();
    }
    site.steno(&["import", folder.to_str().unwrap()]);
    site.serve_at("2026-01-20T12:00:00Z");
    site
}

/// The sum of the amounts of all bars: the first number of each explanation after a pattern.
fn sum_of_bars(browser: &Browser, before: &str) -> f64 {
    let script = format!(
        "return [...document.querySelectorAll('.plot .column')].reduce((sum, one) => sum + Number(/{before}([\\d.]+)/.exec(one.textContent)?.[1] ?? 0), 0)"
    );
    browser.run(&script).as_f64().unwrap()
}

#[test]
fn a_chart_of_all_days_has_every_dollar_and_says_how_it_is_divided() {
    let Some(browser) = Browser::open(1440, 900) else { return };
    let site = long_site();
    browser.go(&site.first("/"));
    let caption = "return document.querySelector('.chart figcaption').textContent";
    let dollars = 3.0 * SESSIONS as f64;
    for (by, divided) in [
        ("", "US dollars a week, 1 Jul 2024 to 4 Jan 2026"),
        (
            "day",
            "US dollars a week, 1 Jul 2024 to 4 Jan 2026 (by week: 553 days are too many bars)",
        ),
        ("week", "US dollars a week, 1 Jul 2024 to 4 Jan 2026"),
        ("month", "US dollars a month, 1 Jul 2024 to 4 Jan 2026"),
        (
            "block",
            "US dollars in 70 blocks of five hours, by the week in which they began, 1 Jul 2024 to 4 Jan 2026",
        ),
    ] {
        browser.go(&site.at(&format!("/cost?period=all&by={by}")));
        assert_eq!(browser.run(caption), json!(divided), "{by}");
        assert_eq!(sum_of_bars(&browser, ": \\$"), dollars, "{by}");
    }
    browser.go(&site.at("/cost?period=all"));
    let labels =
        "return [...document.querySelectorAll('.plot text')].map((one) => one.textContent)";
    let shown = browser.run(labels);
    assert!(shown.as_array().unwrap().contains(&json!("Dec 2025")), "{shown}");
    assert!(shown.as_array().unwrap().contains(&json!("$3.00")), "{shown}");
    browser.until("/^project-\\d+ \\$15\\.00/.test(document.querySelector('.legend').textContent)");
    // All sessions count in the chart of failures, and all calls in the chart of activity.
    browser.go(&site.at("/quality?period=all"));
    browser.until("!document.querySelector('[data-unfinished]')");
    assert_eq!(sum_of_bars(&browser, "in "), SESSIONS as f64);
    browser.until("document.querySelector('.chart').previousElementSibling.textContent === 'Failed tool calls by week'");
    browser.go(&site.at("/activity?period=all"));
    assert_eq!(sum_of_bars(&browser, ": "), 2.0 * SESSIONS as f64);
    browser.go(&site.at("/trends?period=all&by=day&q=broken"));
    assert_eq!(sum_of_bars(&browser, ": "), SESSIONS as f64);
    browser.until("document.querySelector('.chart figcaption').textContent.endsWith('(by week: 553 days are too many bars)')");
    // The ends of the axis stay on a phone.
    let phone = json!({"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": true});
    browser.emulate("Emulation.setDeviceMetricsOverride", &phone);
    browser.go(&site.at("/cost?period=all"));
    let overlaps = "const boxes = [...document.querySelectorAll('.plot text:not(.highest)')].filter((one) => one.getClientRects().length).map((one) => one.getBoundingClientRect()).sort((a, b) => a.left - b.left);
        return [boxes.length > 2, boxes.some((box, at) => at && box.left < boxes[at - 1].right), boxes.some((box) => box.right > screen.width)]";
    assert_eq!(browser.run(overlaps), json!([true, false, false]));
    browser.picture("narrow-cost-of-all-days");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn messages_without_a_time_are_in_no_bar_and_said_to_be() {
    let Some(browser) = Browser::open(1440, 900) else { return };
    let mut site = Site::new();
    for (name, time) in [("dated", json!("2026-01-05T09:00:00.000Z")), ("undated", Value::Null)] {
        let mut record = json!({
            "type": "assistant", "uuid": name, "sessionId": name, "version": "2.1.0", "cwd": "/code/harbor",
            "message": {"id": format!("msg_{name}"), "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
                "content": [{"type": "text", "text": "Yes"}], "usage": {"input_tokens": 1_000_000, "output_tokens": 0}},
        });
        if !time.is_null() {
            record["timestamp"] = time;
        }
        let file = site.path().join(format!("{name}.jsonl"));
        std::fs::write(&file, format!("{record}\n")).unwrap();
        site.steno(&["import", file.to_str().unwrap()]);
    }
    site.serve();
    browser.go(&site.first("/"));
    browser.go(&site.at("/cost?period=all&by=month"));
    browser.until(
        "document.querySelector('.plot .column').textContent.startsWith('January 2026: $3.00')",
    );
    assert_eq!(browser.run("return document.querySelectorAll('.plot .column').length"), json!(1));
    browser.until("document.querySelector('main').innerText.includes('$3.00 of messages without a time are in no bar.')");
    browser.until("document.querySelector('.figures').textContent.startsWith('$6.00')");
}

#[test]
fn the_table_of_costs_is_saved_with_all_rows_and_exact_numbers() {
    let Some(browser) = Browser::open(1440, 900) else { return };
    let site = long_site();
    browser.go(&site.first("/"));
    for (by, rows) in [("", 70), ("project", 14), ("session", 70), ("block", 70)] {
        browser.go(&site.at(&format!("/cost?period=all&by={by}")));
        browser.run("window.csv = null; fetch(document.querySelector('a[download]').href).then((response) => response.text()).then((text) => { window.csv = text; })");
        browser.until("window.csv");
        let text = browser.run("return window.csv");
        let mut lines = text.as_str().unwrap().lines();
        let columns = "sessions,input_tokens,cache_read_tokens,cache_write_tokens,output_tokens,cost_usd,unpriced_models";
        let name = match by {
            "" => "week",
            "session" => "session_id,agent,project,started,title",
            by => by,
        };
        assert_eq!(lines.next().unwrap(), format!("{name},{columns}"));
        let cells: Vec<Vec<&str>> = lines.map(|line| line.rsplit(',').collect()).collect();
        assert_eq!(cells.len(), rows, "{by}");
        let sum = |at: usize| cells.iter().map(|row| row[at].parse::<f64>().unwrap()).sum::<f64>();
        assert_eq!((sum(1), sum(5)), (3.0 * SESSIONS as f64, 1e6 * SESSIONS as f64), "{by}");
        if by == "session" {
            let ids: BTreeSet<&str> = cells.iter().map(|row| row[11]).collect();
            assert_eq!(ids.len(), rows, "each row names its session");
            for row in &cells {
                assert_eq!(row[10], "\"claude-code\"");
                assert!(row[9].starts_with("\"/code/project-"), "{row:?}");
                assert!(row[8].starts_with("\"20") && row[8].ends_with("Z\""), "{row:?}");
            }
        }
    }
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn a_chart_of_names_has_each_name_and_the_others_together() {
    let Some(browser) = Browser::open(1440, 900) else { return };
    let site = long_site();
    browser.go(&site.first("/"));
    let rows = "return [...document.querySelectorAll('.amounts li')].map((row) => [...row.children].filter((one) => one.matches('span, b')).map((one) => one.textContent))";
    for by in ["project", "session"] {
        browser.go(&site.at(&format!("/cost?period=all&by={by}")));
        let shown = browser.run(rows);
        let shown = shown.as_array().unwrap();
        assert_eq!(shown.iter().filter(|row| row[0] == "").count(), 0, "{shown:?}");
        let dollars = |row: &Value| row[1].as_str().unwrap()[1..].parse::<f64>().unwrap();
        assert_eq!(shown.iter().map(dollars).sum::<f64>(), 3.0 * SESSIONS as f64, "{by}");
        let others = if by == "session" { "58 others" } else { "2 others" };
        assert_eq!(shown.last().unwrap()[0], json!(others));
    }
    // The names are links, and none is cut on a phone.
    let phone = json!({"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": true});
    browser.emulate("Emulation.setDeviceMetricsOverride", &phone);
    browser.go(&site.at("/cost?period=all&by=project"));
    let cut = "return [...document.querySelectorAll('.amounts a')].filter((one) => one.scrollWidth > one.clientWidth).length";
    assert_eq!(browser.run(cut), json!(0));
    browser.picture("narrow-cost-by-project");
    browser.run("document.querySelector('.amounts a').click()");
    browser
        .until("new URLSearchParams(location.search).get('project')?.startsWith('/code/project-')");
    // One row has nothing to be compared with.
    browser.go(&site.at("/cost?period=all&by=model"));
    browser.until("document.querySelectorAll('table.sums tbody tr').length === 1");
    assert_eq!(browser.run("return document.querySelectorAll('.chart').length"), json!(0));
    assert_eq!(browser.complaints(), Vec::<String>::new());
}
