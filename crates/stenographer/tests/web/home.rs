//! The start page: a dense list, facets, the calendar, keys and the palette.

use serde_json::json;

use crate::driver::{Browser, SCRIPTS_RUN};
use crate::guarded::{asked, site_headers};
use crate::site::{Site, assistant, user};
use crate::views::harbour;

/// Keys of the WebDriver protocol.
const ENTER: &str = "\u{e007}";
const ESCAPE: &str = "\u{e00c}";

/// A store with many sessions of several projects.
fn many_sessions() -> Site {
    let mut site = Site::new();
    for number in 0..30 {
        let project = ["harbor", "lighthouse"][number % 2];
        let file = site.path().join(format!("many/s{number}.jsonl"));
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        let record = json!({
            "type": "user", "uuid": format!("u{number}"), "sessionId": format!("many-{number:02}"), "version": "2.1.0",
            "timestamp": format!("2026-01-{:02}T09:{number:02}:00.000Z", 5 + number / 10),
            "cwd": format!("/home/me/code/{project}"), "gitBranch": if number < 3 { "feature" } else { "main" },
            "message": {"role": "user", "content": format!("Task number {number} for the {project}")},
        });
        std::fs::write(file, format!("{record}\n")).unwrap();
    }
    let folder = site.path().join("many");
    site.steno(&["import", folder.to_str().unwrap()]);
    site.serve();
    site
}

fn opened(width: u32, height: u32) -> Option<(Site, Browser)> {
    let browser = Browser::open(width, height)?;
    let site = many_sessions();
    browser.go(&site.first("/"));
    browser.until("document.querySelectorAll('a.row').length === 30");
    Some((site, browser))
}

#[test]
fn fifteen_sessions_fit_on_a_screen() {
    let Some((_site, browser)) = opened(1440, 900) else { return };
    let screen = json!({"width": 1440, "height": 900, "deviceScaleFactor": 1, "mobile": false});
    browser.emulate("Emulation.setDeviceMetricsOverride", &screen);
    let visible = browser.run(
        "return [...document.querySelectorAll('a.row')].filter((row) => row.getBoundingClientRect().bottom <= innerHeight).length",
    );
    assert!(visible.as_u64().unwrap() >= 15, "{visible} sessions are visible");
    assert_eq!(browser.run("return document.querySelectorAll('li.new-day').length"), json!(3));
    // Three days are too few for a calendar. Once it is opened, it stays so.
    assert_eq!(browser.run("return document.querySelector('#overview').open"), json!(false));
    for (state, is_open) in [("open", true), ("folded", false)] {
        browser.run("document.querySelector('#overview > summary').click()");
        browser.until(&format!("localStorage.getItem('overview') === '{state}'"));
        browser.run("location.reload()");
        browser.until(&format!("document.querySelector('#overview')?.open === {is_open}"));
        browser.until(SCRIPTS_RUN);
    }
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn twenty_days_with_one_session_each_fit_on_a_screen() {
    let Some(browser) = Browser::open(1440, 900) else { return };
    let mut site = Site::new();
    let folder = site.path().join("days");
    std::fs::create_dir_all(&folder).unwrap();
    for day in 1..=28 {
        // Each begins on the day before, and belongs to the day of its last activity.
        let record = |number: usize, day: usize| {
            let record = json!({
                "type": "user", "uuid": format!("u{day}-{number}"), "sessionId": format!("day-{number:02}"), "version": "2.1.0",
                "timestamp": format!("2026-01-{day:02}T09:00:00.000Z"), "cwd": "/home/me/code/harbor",
                "message": {"role": "user", "content": format!("Task of day {number}")},
            });
            format!("{record}\n")
        };
        let text = record(day, day) + &record(day, day + 1);
        std::fs::write(folder.join(format!("day{day}.jsonl")), text).unwrap();
    }
    site.steno(&["import", folder.to_str().unwrap()]);
    site.serve_at("2026-01-30T12:00:00Z");
    browser.go(&site.first("/"));
    let screen = json!({"width": 1440, "height": 900, "deviceScaleFactor": 1, "mobile": false});
    browser.emulate("Emulation.setDeviceMetricsOverride", &screen);
    browser.until("document.querySelectorAll('a.row').length === 28");
    browser.until("document.querySelector('#overview').open");
    let visible = browser.run(
        "return [...document.querySelectorAll('a.row')].filter((row) => row.getBoundingClientRect().bottom <= innerHeight).length",
    );
    assert!(visible.as_u64().unwrap() >= 20, "{visible} sessions are visible");
    browser.picture("one-a-day");
    let first = "document.querySelector('a.row .day-name').textContent";
    browser.until(&format!("{first} === 'Thu 29 Jan'"));
    // The calendar and the filter count the same day.
    let counts = "document.querySelector('#calendar').dataset.counts.split(',').map(Number)";
    assert_eq!(browser.run(&format!("return {counts}.at(-2)")), json!(1));
    browser.go(&site.at("/?since=2026-01-10&until=2026-01-10"));
    browser.until("document.querySelectorAll('a.row').length === 1");
    browser.until("document.querySelector('a.row .title').textContent.includes('Task of day 9')");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn the_list_is_reached_by_keyboard() {
    let Some((_site, browser)) = opened(1280, 860) else { return };
    browser.run("document.querySelector('a.skip').click()");
    browser.press("\u{e004}");
    // The next stop is the overview of the list, not the filter.
    browser.until("document.activeElement.closest('#list')");
}

#[test]
fn facets_narrow_the_list_down_and_show_counts() {
    let Some((site, browser)) = opened(1440, 900) else { return };
    let facet = |name: &str| {
        format!(
            "[...document.querySelectorAll('.facets a')].find((one) => one.textContent.startsWith('{name}'))"
        )
    };
    assert_eq!(
        browser.run(&format!("return {}.textContent", facet("code/harbor"))),
        json!("code/harbor15")
    );
    browser.run(&format!("{}.click()", facet("code/harbor")));
    browser.until("document.querySelectorAll('a.row').length === 15");
    // The other projects keep the number of sessions that they would show.
    assert_eq!(
        browser.run(&format!("return {}.textContent", facet("code/lighthouse"))),
        json!("code/lighthouse15")
    );
    browser.run(&format!("{}.click()", facet("feature")));
    browser.until("document.querySelectorAll('a.row').length === 2");
    browser.until("document.querySelector('.totals').textContent.startsWith('2 sessions')");
    browser.go(&site.at("/?since=2026-01-06&until=2026-01-06"));
    browser.until("document.querySelectorAll('a.row').length === 10");
    browser.run("document.querySelector('.chosen a').click()");
    browser.until("document.querySelectorAll('a.row').length > 10");
    browser.go(&site.at("/?agent=nobody"));
    browser.until("document.body.innerText.includes('No session matches these filters')");
    browser.go(&site.at("/?since=someday"));
    browser.until("document.body.innerText.includes('someday')");
    assert_eq!(browser.complaints().len(), 1, "a bad date is a bad request");
}

#[test]
fn keys_move_through_the_list_and_open_a_session() {
    let Some((site, browser)) = opened(1280, 860) else { return };
    let at = "document.querySelector('a.row.at')?.getAttribute('href')";
    for (keys, number) in [("j", 29), ("jj", 27), ("k", 28), ("G", 0), ("gg", 29), ("j", 28)] {
        browser.press(keys);
        browser.until(&format!("{at} === '/session/claude-code/many-{number:02}'"));
    }
    browser.press(ENTER);
    browser.until("location.pathname === '/session/claude-code/many-28'");
    assert_eq!(browser.complaints(), Vec::<String>::new());
    drop(site);
}

#[test]
fn keys_move_between_the_sessions_of_the_filtered_list() {
    let Some((site, browser)) = opened(1280, 860) else { return };
    browser.go(&site.at("/?project=/home/me/code/harbor"));
    browser.until("document.querySelectorAll('a.row').length === 15");
    browser.press("/");
    browser.press("task");
    browser.run("document.activeElement.blur(); document.querySelectorAll('a.row')[11].scrollIntoView(); document.querySelectorAll('a.row')[11].click()");
    browser.until("location.pathname === '/session/claude-code/many-06'");
    let place = |text: &str| {
        browser.until(&format!("document.querySelector('#list-place')?.textContent === '{text}'"));
    };
    place("12 of 15");
    browser.press("]");
    browser.until("location.pathname === '/session/claude-code/many-04'");
    place("13 of 15");
    browser.press("[");
    browser.until("location.pathname === '/session/claude-code/many-06'");
    place("12 of 15");
    let title = "document.querySelector('#list-next').title";
    browser.until(&format!("{title} === 'Next session (]): Task number 4 for the harbor'"));
    browser.press("]");
    browser.until("location.pathname === '/session/claude-code/many-04'");
    place("13 of 15");
    browser.press("u");
    let at = "document.querySelector('a.row.at')?.getAttribute('href')";
    browser.until(&format!("{at} === '/session/claude-code/many-04'"));
    let query = "new URLSearchParams(location.search)";
    browser.until(&format!("{query}.get('filter') === 'task' && {query}.get('project')"));
    // The keys of the list go on from there.
    browser.press("j");
    browser.until(&format!("{at} === '/session/claude-code/many-02'"));
    browser.press(ENTER);
    browser.until("location.pathname === '/session/claude-code/many-02'");
    place("14 of 15");
    // A session that the filters leave out has its place in the whole list.
    browser.go(&site.at("/session/claude-code/many-29"));
    place("1 of 30");
    let first = "document.querySelector('#list-previous')";
    browser.until(&format!("!{first}.href && {first}.title.includes('no previous session')"));
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn enter_takes_what_is_typed_and_not_what_was_listed_before() {
    let Some((site, browser)) = opened(1280, 860) else { return };
    for (typed, page) in [("quality", "/quality"), ("cost", "/cost"), ("compar", "/compare")] {
        browser.go(&site.at("/"));
        browser.until(SCRIPTS_RUN);
        browser.run("document.querySelector('#palette-open').click()");
        browser.until("document.querySelectorAll('#palette [role=option]').length > 3");
        browser.press(&format!("{typed}\u{e007}"));
        browser.until(&format!("location.pathname === '{page}'"));
    }
}

#[test]
fn the_palette_finds_sessions_texts_and_commands() {
    let Some((site, browser)) = opened(1280, 860) else { return };
    site.keep(
        "deep",
        &[user("Look"), assistant("The zanzibar cable is loose <img src=x onerror=window.harm=1>")],
    );
    let open = "dispatchEvent(new KeyboardEvent('keydown', {key: 'k', ctrlKey: true}))";
    let first = "document.querySelector('#palette [aria-selected]')?.textContent ?? ''";
    browser.run(open);
    browser.until("document.querySelector('#palette').open");
    browser.press("number 17");
    browser.until(&format!("({first}).includes('Task number 17')"));
    browser.picture("palette");
    browser.press(ENTER);
    browser.until("location.pathname === '/session/claude-code/many-17'");
    browser.run(open);
    browser.until("document.querySelector('#palette').open");
    browser.press("zanzib");
    browser.until(&format!("({first}).startsWith('Found')"));
    assert_eq!(browser.run("return window.harm ?? null"), json!(null));
    assert_eq!(browser.run("return document.querySelector('#palette img')"), json!(null));
    browser.press(ENTER);
    browser.until("location.pathname === '/session/claude-code/deep' && location.hash === '#e1'");
    browser.run(open);
    browser.press("cost");
    browser
        .until("document.querySelectorAll('#palette [data-command]:not([hidden])').length === 1");
    browser.until("document.querySelector('#palette [role=option]:not([data-command])')");
    browser.until(&format!("({first}) === 'Go toCost'"));
    browser.press(ESCAPE);
    browser.until("!document.querySelector('#palette').open");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn a_day_of_the_calendar_opens() {
    let Some((_site, browser)) = opened(1440, 900) else { return };
    browser.run("document.querySelector('#overview').open = true");
    let counts = "document.querySelector('#calendar').dataset.counts.split(',').map(Number)";
    // The sessions lie in the last year only for a while; the calendar itself always covers a year.
    let days = browser.run(&format!("return {counts}.length")).as_u64().unwrap();
    assert!((365..=371).contains(&days), "{days}");
    let click = "const calendar = document.querySelector('#calendar'); const box = calendar.getBoundingClientRect(); \
        const scale = box.width / calendar.viewBox.baseVal.width; calendar.dispatchEvent(new MouseEvent('click', \
        {bubbles: true, clientX: box.left + 36 * scale, clientY: box.top + 22 * scale}))";
    let first = browser.run("return document.querySelector('#calendar').dataset.first");
    browser.run(click);
    browser.until(&format!("new URLSearchParams(location.search).get('since') === {first}"));
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn times_follow_the_zone_of_the_viewer() {
    let Some((site, browser)) = opened(1280, 860) else { return };
    browser.emulate("Emulation.setTimezoneOverride", &json!({"timezoneId": "Asia/Tokyo"}));
    browser.go(&site.at("/"));
    browser.until("document.documentElement.dataset.zone === 'Asia/Tokyo'");
    let time = "document.querySelector('a.row .when').textContent";
    browser.until(&format!("{time} === '18:29'"));
    browser.go(&site.at("/session/claude-code/many-29"));
    browser.until("document.querySelector('.entries > li > a')?.textContent === '18:29'");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

/// Makes the second connection of a page fail, as a server that is down does.
const FAILING_CONNECTION: &str = "const Real = EventSource; let opened = 0; window.EventSource = class extends Real { \
    constructor(address) { super(++opened === 2 ? '/no-such-page' : address); window.connection = this; } }";

#[test]
fn new_entries_are_counted_and_a_lost_connection_recovers() {
    let Some((site, browser)) = opened(1280, 860) else { return };
    let script = json!({"source": FAILING_CONNECTION});
    browser.emulate("Page.addScriptToEvaluateOnNewDocument", &script);
    let mut recording = site.record("live");
    recording.say("user", "Is anybody there?");
    browser.go(&site.at("/"));
    let title = "document.querySelector('a.row .title')?.textContent ?? ''";
    browser.until(&format!("({title}).includes('Is anybody there?')"));
    browser.until("window.connection.readyState === 1");
    recording.say("assistant", "I am listening.");
    browser.until("document.querySelector('.fresh-count')?.textContent === '+1 new'");
    browser.run("connection.close(); connection.dispatchEvent(new Event('error'))");
    recording.say("assistant", "Still here.");
    browser.until("document.querySelector('#connection')");
    browser.until("!document.querySelector('#connection')");
    browser.until("document.querySelector('.fresh-count')?.textContent === '+2 new'");
}

#[test]
fn a_page_of_a_server_that_was_restarted_says_so() {
    let Some((site, browser)) = opened(1280, 860) else { return };
    let script = json!({"source": FAILING_CONNECTION});
    browser.emulate("Page.addScriptToEvaluateOnNewDocument", &script);
    browser.go(&site.at("/"));
    browser.until("window.connection.readyState === 1");
    browser.emulate("Network.clearBrowserCookies", &json!({}));
    browser.run("connection.close(); connection.dispatchEvent(new Event('error'))");
    browser.until("document.querySelector('#connection')?.textContent.includes('steno serve')");
}

#[test]
fn a_session_with_a_recent_entry_is_running() {
    let Some(browser) = Browser::open(1440, 900) else { return };
    let mut site = Site::new();
    site.keep("busy", &[user("Build the pier"), assistant("I start.")]);
    let badge = "document.querySelector('.agent.running')?.textContent === 'running'";
    site.serve_at("2026-01-05T09:04:00Z");
    browser.go(&site.first("/"));
    browser.until(badge);
    let facet =
        "[...document.querySelectorAll('.facets a')].some((one) => one.textContent === 'running1')";
    browser.until(facet);
    browser.go(&site.at("/session/claude-code/busy"));
    browser.until(badge);
    site.interrupt();
    site.serve_at("2026-01-05T09:06:00Z");
    browser.go(&site.first("/"));
    browser.until("document.querySelector('a.row') && !document.querySelector('.running')");
    browser.go(&site.at("/session/claude-code/busy"));
    browser.until("document.querySelector('.facts') && !document.querySelector('.running')");
}

#[test]
fn the_palette_and_the_list_need_the_token() {
    let site = many_sessions();
    let [host, cookie] = site_headers(&site);
    for page in [
        "/palette?q=task",
        "/sessions?agent=x",
        "/session/claude-code/many-01/state",
        "/session/claude-code/many-01/neighbours",
    ] {
        let ask = |headers: &[String]| asked(&site, &format!("GET {page}"), headers).0;
        assert_eq!(ask(&[host.clone(), cookie.clone()]), 200, "{page}");
        assert_eq!(ask(std::slice::from_ref(&host)), 401, "{page}");
        let evil = "Origin: http://evil.example".to_owned();
        assert_eq!(ask(&[host.clone(), cookie.clone(), evil]), 403, "{page}");
    }
}

#[test]
fn the_help_begins_with_the_present_page() {
    let Some(browser) = Browser::open(1440, 900) else { return };
    let site = harbour();
    browser.go(&site.first("/"));
    let groups = "[...document.querySelectorAll('#keys h3')].map((one) => one.textContent)";
    for (page, first) in [
        ("/", "List of sessions"),
        ("/cost", "Cost"),
        ("/search", "Search"),
        ("/session/claude-code/harbour-login", "Session"),
        ("/session/claude-code/harbour-login/replay", "Replay"),
    ] {
        browser.go(&site.at(page));
        browser.until(SCRIPTS_RUN);
        browser.run("document.querySelector('#help').click()");
        browser.until("document.querySelector('#keys').open");
        let shown = browser.run(&format!("return {groups}"));
        assert_eq!(shown[0], json!(first), "{page}");
        assert!(shown.as_array().unwrap().contains(&json!("Everywhere")), "{shown}");
        // The whole help is seen without scrolling.
        let fits = "const dialog = document.querySelector('#keys'); return dialog.scrollHeight <= dialog.clientHeight";
        assert_eq!(browser.run(fits), json!(true), "{page}");
        browser.picture(&format!("help-{first}"));
        browser.press("\u{e00c}");
        browser.until("!document.querySelector('#keys').open");
    }
    // The numbers open the pages of the bar.
    browser.press("6");
    browser.until("location.pathname === '/cost'");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}
