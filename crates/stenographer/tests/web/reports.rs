//! Activity, cost with a period, and comparing sessions that were found by searching.

use serde_json::json;

use crate::driver::Browser;
use crate::guarded::{asked, site_headers};
use crate::site::{Site, assistant, tool, user};
use crate::views::harbour;

const ENTER: &str = "\u{e007}";

fn opened(page: &str) -> Option<(Site, Browser)> {
    let browser = Browser::open(1440, 900)?;
    let site = harbour();
    browser.go(&site.first("/"));
    browser.go(&site.at(page));
    Some((site, browser))
}

#[test]
fn activity_shows_days_hours_tools_models_and_waits() {
    let Some((site, browser)) = opened("/activity?since=2026-01-01&until=2026-01-31") else {
        return;
    };
    browser.until("document.querySelectorAll('.plot .column').length === 31");
    let figures =
        "return [...document.querySelectorAll('.figures li')].map((figure) => figure.textContent)";
    let expected =
        ["2sessions", "301prompts", "610entries", "3tool calls", "1errors", "0compactions"];
    let shown = browser.run(figures);
    assert_eq!(shown.as_array().unwrap()[..6], json!(expected).as_array().unwrap()[..]);
    assert!(shown[6].as_str().unwrap().starts_with("2sessions at once, 5 Jan"), "{shown}");
    let bash = "[...document.querySelectorAll('.sums tr')].find((row) => row.textContent.startsWith('Bash'))";
    assert!(
        browser
            .run(&format!("return {bash}.textContent"))
            .to_string()
            .contains("11 (100.0%)30 s30 s30 s")
    );
    browser.until("document.querySelectorAll('.week .plot rect').length === 168");
    browser.until("document.querySelector('.legend').textContent.startsWith('none1–')");
    browser.until(
        "document.querySelector('.chart-notes').textContent.includes('Busiest: Mondays 09:00')",
    );
    // The chart of days shows other amounts, too.
    let bar = "[...document.querySelectorAll('.plot .column')][4].textContent";
    for (metric, amount) in [("Sessions", "2"), ("At once", "2"), ("Entries", "610")] {
        browser.run(&format!("[...document.querySelectorAll('.tabs a')].find((one) => one.textContent === '{metric}').click()"));
        browser.until(&format!("{bar} === 'Monday, 5 January 2026: {amount}'"));
    }
    browser.until("document.body.innerText.includes('claude-sonnet-4-5')");
    browser.picture("activity");
    browser.run("document.querySelector('.plain-list a').click()");
    browser.until("document.querySelector('.entries > li.at')");
    browser.go(&site.at("/activity?since=2020-01-01&until=2020-01-02"));
    browser.until("document.body.innerText.includes('No activity in this period')");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn quality_is_counted_by_project_and_model_and_names_the_worst_sessions() {
    let Some(browser) = Browser::open(1440, 900) else { return };
    let mut site = Site::new();
    let make = |answer| tool("Bash", &json!({"command": "make"}), answer);
    let mut said = vec![user("Build it")];
    said.extend(make(("broken", true)));
    said.extend(make(("broken", true)));
    said.push(user("Try again"));
    said.extend(make(("done", false)));
    site.keep("rough", &said);
    site.keep("smooth", &[user("Hello"), assistant("Hello.")]);
    // A session without a message is no session without problems.
    let empty = site.path().join("empty.jsonl");
    let summary = json!({"type": "summary", "summary": "Nothing", "leafUuid": "u0"});
    std::fs::write(&empty, format!("{summary}\n")).unwrap();
    site.steno(&["import", empty.to_str().unwrap()]);
    site.serve_at("2026-01-20T12:00:00Z");
    browser.go(&site.first("/"));
    browser.run("[...document.querySelectorAll('.facets a')].find((one) => one.textContent === 'With errors1').click()");
    browser.until("document.querySelectorAll('a.row').length === 1");
    browser.until("document.querySelector('.chosen').textContent.includes('with errors')");
    browser.go(&site.at("/quality"));
    browser.until("!document.querySelector('[data-unfinished]')");
    let texts = |selector: &str| {
        browser.run(&format!(
            "return [...document.querySelectorAll('{selector}')].map((one) => one.textContent)"
        ))
    };
    let figures = texts(".figures li b");
    assert_eq!(figures, json!(["2", "3", "66.7%", "0", "0", "1", "0", "0", "21.0k"]));
    let tops = "return new Set([...document.querySelectorAll('.figures li')].map((one) => one.offsetTop)).size";
    assert_eq!(browser.run(tops), json!(1), "no tile is alone in its row");
    let first = texts("table.sums:not(.worst) tbody tr:first-child td");
    let project = ["harbor", "2", "3", "2 (66.7%)", "0", "0", "1", "0", "0", "21.0k"];
    let model = ["claude-sonnet-4-5", "2", "3", "2 (66.7%)", "0", "0", "1", "0", "0", "21.0k"];
    assert_eq!(first, json!([project, model].concat()));
    assert_eq!(
        browser.run("return document.querySelectorAll('td:not(:first-child):not([title])').length"),
        json!(0)
    );
    browser.until("[...document.querySelectorAll('.plot .column')].some((day) => day.textContent.endsWith('66.7%\\n2 of 3 calls in 1 session'))");
    browser.picture("quality");
    let phone = json!({"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": true});
    browser.emulate("Emulation.setDeviceMetricsOverride", &phone);
    // All numbers fit on a phone.
    let cut = "return [...document.querySelectorAll('.wide-table')].filter((one) => one.scrollWidth > one.clientWidth).length";
    assert_eq!(browser.run(cut), json!(0));
    let units = "return [...document.querySelectorAll('.worst td:not(.nothing)[data-name]')].map((one) => one.dataset.name)";
    let expected = ["tool calls", "failed", "retry", "tokens in the largest context"];
    assert_eq!(browser.run(units), json!(expected));
    browser.picture("narrow-quality");
    browser.run("document.querySelector('.worst a').click()");
    browser.until("location.pathname.endsWith('/rough') && document.querySelectorAll('#quality[open] details').length === 2");
    browser.go(&site.at("/quality?period=all"));
    browser.until(
        "document.body.innerText.includes('1 more session has no entries and is not counted.')",
    );
    browser.until(
        "document.querySelector('.legend').textContent.startsWith('No problems: 1 session (50%)')",
    );
    browser.go(&site.at("/quality?project=/elsewhere"));
    browser.until("document.body.innerText.includes('No sessions in this period')");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn costs_have_a_period_and_all_days_on_the_axis() {
    let Some(browser) = Browser::open(1440, 900) else { return };
    let mut site = Site::new();
    for day in [5, 9] {
        let file = site.path().join(format!("day{day}.jsonl"));
        let record = json!({
            "type": "assistant", "uuid": format!("u{day}"), "sessionId": format!("day-{day}"), "version": "2.1.0",
            "timestamp": format!("2026-01-{day:02}T09:00:00.000Z"), "cwd": "/home/me/code/harbor",
            "message": {"id": format!("msg_{day:020}"), "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
                "content": [{"type": "text", "text": "Yes"}], "usage": {"input_tokens": 1_000_000, "output_tokens": 0}},
        });
        std::fs::write(&file, format!("{record}\n")).unwrap();
        site.steno(&["import", file.to_str().unwrap()]);
    }
    site.serve();
    browser.go(&site.first("/"));
    browser.go(&site.at("/cost?period=all"));
    browser.until("document.querySelectorAll('.plot .column').length === 5");
    browser.go(&site.at("/cost"));
    browser.until("[...document.querySelectorAll('.period [aria-current]')].some((one) => one.textContent === '30 days')");
    browser.run("document.querySelector('.empty a').click()");
    browser.until(
        "location.search === '?period=all' && document.querySelectorAll('.plot .column').length === 5",
    );
    let empty = "document.querySelectorAll('.plot .column')[1].textContent";
    browser.until(&format!("{empty} === 'Tuesday, 6 January 2026: $0.00'"));
    // Bars are coloured by project or model, and lead to the sessions of their day.
    let legend =
        "[...document.querySelectorAll('.legend li')].map((one) => one.textContent).join()";
    browser.until(&format!("{legend} === 'harbor $6.00'"));
    browser.run("[...document.querySelectorAll('.tabs a')].find((one) => one.textContent === 'Colour by model').click()");
    browser.until(&format!("{legend} === 'claude-sonnet-4-5 $6.00'"));
    browser.until("document.querySelector('.plot .column').textContent === 'Monday, 5 January 2026: $3.00\\nclaude-sonnet-4-5 $3.00\\n1 session'");
    explain_by_pointer_and_touch(&browser);
    browser.run("document.querySelector('.plot .column').dispatchEvent(new MouseEvent('click', {bubbles: true}))");
    browser.until("new URLSearchParams(location.search).get('until') === '2026-01-05' && location.search.includes('by=session')");
    browser.go(&site.at("/cost?since=2026-01-06&until=2026-01-09"));
    browser.until("document.querySelectorAll('.plot .column').length === 4");
    browser.until("document.querySelector('.figures').textContent.startsWith('$3.00')");
    browser.until("document.querySelector('.change').textContent === 'as much as before'");
    browser.until("document.querySelector('.change').title === '$3.00 in the 4 days before'");
    browser.go(&site.at("/cost?since=2027-01-06"));
    browser.until("document.body.innerText.includes('No tokens were used in this period')");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

/// Points at the first column of a chart, then touches it. Both explain it; a touch offers the link instead of following it.
fn explain_by_pointer_and_touch(browser: &Browser) {
    let send = |event: &str, pointer: &str| {
        browser.run(&format!("document.querySelector('.plot .column').dispatchEvent(new PointerEvent('{event}', {{bubbles: true, pointerType: '{pointer}'}}))"));
    };
    let text = "document.querySelector('#tip')?.firstChild.data";
    let expected = "'Monday, 5 January 2026: $3.00\\nclaude-sonnet-4-5 $3.00\\n1 session'";
    send("pointerover", "mouse");
    browser.until(&format!("{text} === {expected} && !document.querySelector('#tip a')"));
    browser.picture("explained");
    browser.press("\u{e00c}");
    browser.until("!document.querySelector('#tip')");
    send("click", "touch");
    browser.until(&format!(
        "{text} === {expected} && document.querySelector('#tip a').href.includes('2026-01-05')"
    ));
    assert_eq!(browser.run("return location.pathname"), json!("/cost"));
    browser.run("document.querySelector('.figures li').dispatchEvent(new PointerEvent('click', {bubbles: true, pointerType: 'touch'}))");
    browser.until("document.querySelector('#tip').textContent.startsWith('US dollars')");
}

#[test]
fn budgets_count_all_sessions_whatever_is_filtered() {
    let Some(browser) = Browser::open(1440, 900) else { return };
    let mut site = Site::new();
    let attack = "<img src=x onerror=window.harm=1>";
    for (name, project) in [("first", "harbor"), ("second", "tide")] {
        let record = json!({
            "type": "assistant", "uuid": name, "sessionId": name, "version": "2.1.0", "timestamp": "2026-01-05T09:00:00Z",
            "cwd": format!("/code/{project}"),
            "message": {"id": format!("msg_{name}"), "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
                "content": [{"type": "text", "text": "Yes"}], "usage": {"input_tokens": 1_000_000, "output_tokens": 0}},
        });
        let file = site.path().join(format!("{name}.jsonl"));
        std::fs::write(&file, format!("{record}\n")).unwrap();
        site.steno(&["import", file.to_str().unwrap()]);
    }
    let config =
        format!("[budget]\nday = 5\nmonth = 60\nprojects = {{ tide = 4, \"{attack}\" = 9 }}\n");
    std::fs::write(site.path().join("store/config.toml"), config).unwrap();
    site.serve_at("2026-01-05T12:00:00Z");
    browser.go(&site.first("/"));
    let budgets = "return [...document.querySelectorAll('.budgets li')].map((budget) => budget.innerText.replace(/\\s+/g, ' '))";
    let expected = json!([
        "Today $6.00 of $5.00, crossed",
        "This month $6.00 of $60.00",
        "tide this month $3.00 of $4.00",
        format!("{attack} this month $0.00 of $9.00"),
    ]);
    for page in ["/cost", "/cost?by=month", "/cost?project=/code/tide", "/cost?until=2020-01-01"] {
        browser.go(&site.at(page));
        browser.until("document.querySelectorAll('.budgets li').length === 4");
        assert_eq!(browser.run(budgets), expected, "{page}");
        assert_eq!(
            browser.run("return document.querySelector('.budgets .crossed b').textContent"),
            json!("Today")
        );
        assert_eq!(browser.run("return window.harm ?? null"), json!(null), "{page}");
    }
    browser.go(&site.at("/cost"));
    browser.until("document.querySelector('.plot text.limit')?.textContent === 'Budget: $5.00'");
    // A change needs no restart, and a mistake is explained.
    std::fs::write(site.path().join("store/config.toml"), "[budget]\nday = 8\n").unwrap();
    browser.go(&site.at("/cost"));
    browser.until("document.querySelector('.plot text.limit')?.textContent === 'Budget: $8.00'");
    assert_eq!(browser.run(budgets), json!(["Today $6.00 of $8.00"]));
    std::fs::write(site.path().join("store/config.toml"), "[budget]\nday = \"much\"\n").unwrap();
    browser.go(&site.at("/cost"));
    browser.until("document.querySelector('.stale').textContent.startsWith('The budgets could not be read: ')");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn two_sessions_are_chosen_by_searching() {
    let Some((_site, browser)) = opened("/compare") else { return };
    for (field, words, name) in
        [("a", "login", "harbour-login"), ("b", "lighthouse", "harbour-long")]
    {
        browser.until(&format!("document.querySelector('[data-pick={field}]')"));
        browser.run(&format!("document.querySelector('[data-pick={field}]').click()"));
        browser.until("document.querySelector('#palette').open");
        browser.press(words);
        let first = "document.querySelector('#palette [aria-selected]')?.dataset.name";
        browser.until(&format!("{first} === 'claude-code/{name}' && document.querySelectorAll('#palette-list li:not([hidden])').length === 1"));
        browser.press(ENTER);
        browser.until(&format!(
            "new URLSearchParams(location.search).get('{field}') === 'claude-code/{name}'"
        ));
    }
    browser.until("document.querySelectorAll('.pair').length > 0");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn names_of_tools_models_and_projects_are_escaped() {
    let Some(browser) = Browser::open(1280, 900) else { return };
    let mut site = Site::new();
    let attack = "<img src=x onerror=window.harm=1>";
    let mut said = vec![user(attack)];
    said.extend(tool(attack, &json!({"command": attack}), (attack, true)));
    said.push(assistant(attack));
    site.keep("hostile", &said);
    site.serve();
    browser.go(&site.first("/"));
    for page in [
        "/activity?since=2026-01-01",
        "/quality?since=2026-01-01",
        "/cost?since=2026-01-01",
        "/trends?since=2026-01-01&q=%3Cimg%20src%3Dx%20onerror%3Dwindow.harm%3D1%3E",
        "/edits?since=2026-01-01&project=%3Cimg%20src=x%3E",
        "/compare?a=x/%3Cimg%20src=x%3E",
        "/?project=%3Cimg%20src=x%3E&since=2026-01-01",
    ] {
        browser.go(&site.at(page));
        browser.until("document.readyState === 'complete'");
        assert_eq!(
            browser.run("return document.querySelectorAll('main img').length"),
            json!(0),
            "{page}"
        );
        assert_eq!(browser.run("return window.harm ?? null"), json!(null), "{page}");
    }
    browser.go(&site.at("/session/claude-code/hostile"));
    browser.until("document.querySelectorAll('.entries > li[id]').length === 4");
    browser.run("document.querySelectorAll('details.section').forEach((section) => { section.open = true; })");
    browser.until("document.querySelectorAll('#quality details').length > 0");
    assert_eq!(browser.run("return document.querySelectorAll('main img').length"), json!(0));
    assert_eq!(browser.run("return window.harm ?? null"), json!(null));
}

#[test]
fn reports_need_the_token() {
    let mut site = Site::new();
    site.keep("one", &[user("Hello")]);
    site.serve();
    let [host, cookie] = site_headers(&site);
    for page in [
        "/activity",
        "/quality",
        "/session/claude-code/one/quality",
        "/session/claude-code/one/changes",
        "/session/claude-code/one/contents",
        "/session/claude-code/one/export?format=html",
        "/session/claude-code/one/export?format=json&keep_secrets=true",
        "/cost",
        "/cost.csv",
        "/trends?q=hello",
        "/edits",
        "/api/trends?q=hello",
        "/api/edits",
        "/search?q=hello",
    ] {
        let ask = |headers: &[String]| asked(&site, &format!("GET {page}"), headers).0;
        assert_eq!(ask(&[host.clone(), cookie.clone()]), 200, "{page}");
        assert_eq!(ask(std::slice::from_ref(&host)), 401, "{page}");
        let evil = "Origin: http://evil.example".to_owned();
        assert_eq!(ask(&[host.clone(), cookie.clone(), evil]), 403, "{page}");
    }
    // An unknown group would be a column of that name with the costs by block.
    let unknown = asked(&site, "GET /cost.csv?by=colour", &[host, cookie]);
    assert_eq!(unknown.0, 404);
}
