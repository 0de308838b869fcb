//! User actions: open, filter, read, fold, search, follow a link, replay, view costs.

use serde_json::{Value, json};

use crate::driver::{Browser, SCRIPTS_RUN};
use crate::guarded::{asked, site_headers};
use crate::site::{Site, assistant, thought, tool, user};

/// A typical session, and its page.
pub(crate) fn harbour() -> Site {
    let mut site = Site::new();
    let mut said = vec![
        user("The login page forgets me after **five minutes**.\n\nCan you find out why?"),
        thought("The session cookie may have a short lifetime.\nLook at `session.rs` first."),
        assistant(
            "I'll look at how sessions are kept.\n\n1. Where the cookie is made\n2. How long it lasts\n\n```rust\nfn lifetime() -> Duration {\n    Duration::from_secs(300) // five minutes\n}\n```\n\n| place | value |\n|---|---|\n| cookie | 300 s |\n",
        ),
    ];
    said.extend(tool(
        "Read",
        &json!({"file_path": "/home/me/code/harbor/src/session.rs"}),
        (&"fn lifetime() {}\n".repeat(30), false),
    ));
    let edit = json!({"file_path": "/home/me/code/harbor/src/session.rs",
        "old_string": "    Duration::from_secs(300)\n", "new_string": "    Duration::from_secs(30 * 24 * 3600)\n"});
    said.extend(tool("Edit", &edit, ("The file was updated.", false)));
    said.extend(tool(
        "Bash",
        &json!({"command": "cargo test --quiet", "description": "Run the tests"}),
        ("error[E0308]: mismatched types\n  --> src/session.rs:4:5", true),
    ));
    said.push(assistant("The cookie lasted **five minutes**; it lasts thirty days now."));
    site.keep("harbour-login", &said);
    let mut long = Vec::new();
    for turn in 0..300 {
        long.push(user(&format!("Question number {turn}: what does the lighthouse say?")));
        long.push(assistant(&format!(
            "Answer number {turn}.\n\n{}",
            "It turns and shines. ".repeat(20)
        )));
    }
    site.keep("harbour-long", &long);
    site.serve();
    site
}

/// Adds up the layout shifts since the page was opened.
pub(crate) const SHIFTS: &str = "window.shifted = 0; new PerformanceObserver((list) => list.getEntries().forEach((one) => \
    window.shifted += one.hadRecentInput ? 0 : one.value)).observe({type: 'layout-shift', buffered: true})";

/// Scrolls down by a third of a screen each frame.
pub(crate) const SCROLL: &str = "let left = 90; requestAnimationFrame(function step() { \
    scrollBy(0, innerHeight / 3); \
    left -= 1; if (left) requestAnimationFrame(step); else window.scrolled = true; })";

fn opened(width: u32, height: u32) -> Option<(Site, Browser)> {
    let browser = Browser::open(width, height)?;
    let site = harbour();
    browser.go(&site.first("/"));
    Some((site, browser))
}

#[test]
fn sessions_are_listed_and_filtered_as_one_types() {
    let Some((site, browser)) = opened(1280, 860) else { return };
    browser.until("document.querySelectorAll('.row').length === 2");
    // The token is not left in the address.
    assert_eq!(browser.run("return location.href"), site.at("/"));
    browser.picture("home");
    browser.press("/");
    browser.press("lighthouse");
    browser.until("document.querySelectorAll('.row').length === 1");
    assert!(
        browser
            .run("return document.querySelector('.row').innerText")
            .to_string()
            .contains("Question number 0")
    );
    // A reload and the way back keep the text.
    browser.until("location.search === '?filter=lighthouse'");
    browser.run("location.reload()");
    browser.until("document.querySelector('#filter')?.value === 'lighthouse' && document.querySelectorAll('.row').length === 1");
    browser.until("document.querySelector('.chosen').textContent.includes('text: lighthouse')");
    browser.run("document.querySelector('.row').click()");
    browser.until("location.pathname === '/session/claude-code/harbour-long'");
    browser.run("history.back()");
    browser.until("document.querySelector('#filter')?.value === 'lighthouse' && document.querySelectorAll('.row').length === 1");
    browser.run("document.querySelector('.chosen a').click()");
    browser.until("location.search === '' && document.querySelectorAll('.row').length === 2");
    // Where nothing is found, nothing is added up.
    browser.go(&site.at("/?filter=nowhere"));
    browser.until("document.querySelector('.empty') && !document.querySelector('#overview')");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn a_session_is_read_folded_and_found_in() {
    let Some((site, browser)) = opened(1280, 900) else { return };
    browser.go(&site.at("/session/claude-code/harbour-login"));
    browser.until("document.querySelectorAll('.entries > li[id]').length === 10");
    let count = |selector: &str| {
        browser.run(&format!("return document.querySelectorAll('{selector}').length"))
    };
    assert_eq!(count(".user strong"), json!(1));
    assert_eq!(count(".thought details:not([open])"), json!(1));
    assert_eq!(count(".call details[open] ins"), json!(1));
    assert_eq!(count(".result.bad"), json!(1));
    assert_eq!(count(".md table td"), json!(2));
    browser.until("document.querySelector('pre code .tok-k')");
    browser.picture("session");
    browser.press("E");
    assert_eq!(count("li > details:not([open])"), json!(0));
    browser.press("C");
    assert_eq!(count("li > details[open]"), json!(0));
    browser.press("jj");
    assert_eq!(browser.run("return document.querySelector('li.at').id"), json!("e1"));
    browser.press("o");
    assert_eq!(browser.run("return document.querySelector('#e1 details').open"), json!(true));
    browser.press("/");
    browser.press("mismatched");
    browser.until("document.querySelector('#found').textContent === '1 of 1'");
    browser.until("document.querySelector('#e8.at details')?.open");
    browser.press("\u{e00c}?");
    browser.until("document.querySelector('#keys').open");
    browser.until("document.querySelector('.help section').textContent.startsWith('Session')");
    browser.picture("keys");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn a_long_session_is_only_partly_on_the_page_and_links_lead_anywhere() {
    let Some((site, browser)) = opened(1280, 900) else { return };
    browser.go(&site.at("/session/claude-code/harbour-long#e431"));
    browser.until("document.querySelector('#e431.at')");
    // An entry that does not exist is said not to.
    browser.run("location.hash = '#e99999'");
    browser.until("document.querySelector('#no-entry[role=status]').textContent === 'There is no entry 99,999: this session has 600 entries, from 0 on.'");
    browser.run("location.hash = '#e431'");
    browser.until("!document.querySelector('#no-entry')");
    browser.until(
        "Math.abs(document.querySelector('#e431').getBoundingClientRect().top) < innerHeight",
    );
    assert_eq!(
        browser.run("return document.querySelectorAll('.entries > li[id]').length < 400"),
        json!(true)
    );
    browser.picture("long");
    browser.go(&site.at("/session/claude-code/harbour-long"));
    browser.press("G");
    browser.until("document.querySelector('#e599.at')");
    browser.press("gg");
    browser.until("document.querySelector('#e0.at') && scrollY < 500");
    browser.run("location.hash = '#e300'");
    browser.until("document.querySelector('#e300.at')");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn a_session_does_not_move_while_it_loads() {
    let Some(browser) = Browser::open(1280, 900) else { return };
    let mut site = Site::new();
    let mut said = Vec::new();
    for turn in 0..300 {
        said.push(user(&format!("Question number {turn}")));
        // Lists are much higher than their number of letters suggests.
        said.push(assistant(&"- One\n".repeat(turn % 40 + 1)));
    }
    site.keep("uneven", &said);
    site.serve();
    browser.go(&site.first("/"));
    for (place, entry, chunks) in [("#e421", "#e421.at", 2), ("", "#e0", 1)] {
        browser.go("about:blank");
        browser.go(&site.at(&format!("/session/claude-code/uneven{place}")));
        browser.run(SHIFTS);
        browser
            .until(&format!("window.shifted !== undefined && document.querySelector('{entry}')"));
        let loaded = "document.querySelectorAll('.chunk:not(:empty)').length";
        browser.until(&format!("{loaded} >= {chunks}"));
        browser.run(SCROLL);
        browser.until("window.scrolled");
        let shifted = browser.run("return window.shifted").as_f64().unwrap();
        assert!(shifted < 0.02, "entries moved by {shifted} after {entry} was opened");
    }
}

#[test]
fn keys_reach_entries_that_are_not_on_the_page() {
    let Some(browser) = Browser::open(1280, 900) else { return };
    let mut site = Site::new();
    let mut said = vec![user("First")];
    said.extend((0..150).map(|number| assistant(&format!("Answer {number}"))));
    said.push(user("Second"));
    said.extend((0..150).map(|number| assistant(&format!("Needle {number}"))));
    said.extend(tool("Bash", &json!({"command": "x"}), ("it broke", true)));
    site.keep("sparse", &said);
    site.serve();
    browser.go(&site.first("/session/claude-code/sparse"));
    let at = |number: usize| browser.until(&format!("document.querySelector('#e{number}.at')"));
    let steps = [
        ("gg", 0),
        ("n", 151),
        ("j", 152),
        ("k", 151),
        ("p", 0),
        ("x", 303),
        ("k", 302),
        ("G", 303),
    ];
    for (keys, number) in steps {
        browser.press(keys);
        at(number);
    }
    assert_eq!(browser.run("return location.hash"), json!("#e303"));
    browser.press("gg");
    at(0);
    // Quick steps are not lost while a request is pending.
    browser.press(&"j".repeat(70));
    at(70);
    browser.press("/");
    browser.press("needle 149");
    browser.until("document.querySelector('#found').textContent === '1 of 1'");
    at(301);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn notes_are_written_shown_and_removed() {
    let Some((site, browser)) = opened(1280, 900) else { return };
    browser.go(&site.at("/session/claude-code/harbour-login"));
    browser.until("document.querySelectorAll('.entries > li[id]').length === 10");
    browser.press("jja");
    browser.until("document.querySelector('#note').open");
    browser.press("A **telling** thought #cookie");
    browser.run("document.querySelector('#note button[value=save]').click()");
    browser.until("document.querySelector('#e1 > .note strong')?.textContent === 'telling'");
    browser.run("document.querySelector('#annotate').click()");
    browser.press("About all of it");
    browser.run("document.querySelector('#note button[value=save]').click()");
    browser.until("document.querySelector('#notes .note')?.innerText.includes('About all of it')");
    browser.picture("notes");
    site.steno(&["annotate", "harbour-login:9", "from elsewhere"]);
    browser.until("document.querySelector('#e9 > .note')?.innerText.includes('from elsewhere')");
    let hover = "document.querySelector('#e1 > .note').dispatchEvent(new Event('pointerover', {bubbles: true}))";
    browser.run(&format!("{hover}; document.querySelector('#e1 > .note .beside').click()"));
    browser.until("!document.querySelector('#e1 > .note')");
    assert_eq!(site.steno(&["annotate", "--json"]).lines().count(), 2);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn subagents_are_shown_below_the_calls_that_started_them() {
    let Some(browser) = Browser::open(1280, 900) else { return };
    let mut site = Site::new();
    site.keep_nested("nested");
    site.serve();
    browser.go(&site.first("/session/claude-code/nested"));
    browser.until("document.querySelectorAll('.entries > li[id]').length === 9");
    let order = "return [...document.querySelectorAll('.entries > li[id]')].map((entry) => \
        `${entry.id} ${/ d\\d/.exec(entry.className)?.[0] ?? ''}`.trim())";
    let expected = ["e0", "e1", "e4  d1", "e5  d1", "e7  d2", "e8  d2", "e6  d1", "e2", "e3"];
    assert_eq!(browser.run(order), json!(expected));
    browser.picture("nested");
    browser.go(&site.at("/session/claude-code/nested#e7"));
    browser.until("document.querySelector('#e7.at')");
    browser.press("j");
    browser.until("document.querySelector('#e8.at')");
    browser.press("j");
    browser.until("document.querySelector('#e6.at')");
    site.steno(&["export", "nested", "--format", "html", "-o", "nested.html"]);
    browser.go(&format!("file://{}#e8", site.path().join("nested.html").display()));
    browser.until("document.querySelector('#e8.at')");
    assert_eq!(browser.run(order), json!(expected));
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn a_search_leads_to_the_entry() {
    let Some((site, browser)) = opened(1280, 860) else { return };
    browser.go(&site.at("/search?q=mismatched"));
    browser.until("document.querySelectorAll('.hits > li').length === 1");
    assert_eq!(
        browser.run("return document.querySelector('.hits mark').textContent"),
        json!("mismatched")
    );
    browser.picture("search");
    browser.run("document.querySelector('.hits a').click()");
    browser.until("location.hash === '#e8' && document.querySelector('#e8 details').open");
    browser.go(&site.at("/search?q=lighthouse&role=user"));
    browser.until("document.querySelector('.facets a[aria-current]')");
    browser.go(&site.at("/search?q=%22open"));
    browser.until("document.body.innerText.includes('closing quotation mark')");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn a_search_counts_entries_and_groups_them_by_session() {
    let Some((site, browser)) = opened(1280, 860) else { return };
    site.keep("other", &[user("The lighthouse again"), assistant("The lighthouse stands.")]);
    browser.go(&site.at("/search?q=lighthouse"));
    let found = "document.querySelector('p.found').textContent";
    browser.until(&format!("{found} === '302 entries in 2 sessions'"));
    assert_eq!(browser.run("return document.querySelectorAll('.hits > li').length"), json!(2));
    let user = "[...document.querySelectorAll('.facets a')].find((one) => one.textContent.startsWith('user')).textContent";
    assert_eq!(browser.run(&format!("return {user}")), json!("user301"));
    let more = browser.run("return document.querySelector('.more-hits').textContent");
    assert_eq!(more, json!("297 more in this session"));
    browser.picture("search-groups");
    browser.run("document.querySelector('.more-hits').click()");
    browser.until("document.querySelector('#found')?.textContent === '1 of 300'");
    browser.until("CSS.highlights.get('found')?.size > 10");
    browser.go(&site.at("/search?q=lighthouse&role=assistant"));
    browser.until(&format!("{found} === '1 entry in 1 session'"));
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn results_of_codex_are_shown_without_their_envelope() {
    let Some((site, browser)) = opened(1280, 860) else { return };
    let item = |payload: Value| json!({"timestamp": "2026-01-05T09:00:00.000Z", "type": "response_item", "payload": payload});
    let output = json!({"output": "error: zanzibar broke\n  at line 2\n", "metadata": {"exit_code": 3, "duration_seconds": 0.2}});
    let lines = [
        json!({"timestamp": "2026-01-05T09:00:00.000Z", "type": "session_meta", "payload":
            {"id": "019b8478-0000-7000-8000-000000000001", "timestamp": "2026-01-05T09:00:00.000Z", "cwd": "/home/me/code/harbor", "originator": "codex_cli_rs", "cli_version": "0.60.0", "source": "cli"}}),
        item(
            json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Build it"}]}),
        ),
        item(
            json!({"type": "function_call", "name": "shell", "call_id": "call_1", "arguments": "{\"command\":[\"bash\",\"-lc\",\"make all\"]}"}),
        ),
        item(
            json!({"type": "function_call_output", "call_id": "call_1", "output": output.to_string()}),
        ),
    ];
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let folder = site.path().join(".codex/sessions/2026/01/05");
    std::fs::create_dir_all(&folder).unwrap();
    let file =
        folder.join("rollout-2026-01-05T09-00-00-019b8478-0000-7000-8000-000000000001.jsonl");
    std::fs::write(&file, text).unwrap();
    site.steno(&["import", file.to_str().unwrap()]);
    browser.go(&site.at("/session/codex/019b8478-0000-7000-8000-000000000001"));
    browser.until("document.querySelector('.call summary code')?.textContent === 'make all'");
    let shown = "document.querySelector('.result.bad pre').textContent";
    browser.until(&format!("{shown} === 'error: zanzibar broke\\n  at line 2'"));
    browser.until("document.querySelector('.result.bad summary small').textContent === 'exit 3'");
    browser.go(&site.at("/search?q=zanzibar"));
    browser.until(
        "document.querySelector('.hits pre')?.textContent.trim() === 'error: zanzibar broke'",
    );
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn a_session_is_replayed() {
    let Some((site, browser)) = opened(1280, 860) else { return };
    browser.go(&site.at("/session/claude-code/harbour-login/replay"));
    browser.until("document.querySelectorAll('#stage > li[id]').length === 1");
    let scrub = "const scrub = document.querySelector('#scrub'); scrub.value = 6; scrub.dispatchEvent(new Event('input'))";
    browser.run(scrub);
    browser.until("document.querySelectorAll('#stage > li[id]').length === 7");
    browser.until("document.querySelector('#files h2').textContent === '1 file changed'");
    browser.until("document.querySelector('#files ins')");
    browser.picture("replay");
    browser.run(
        "document.querySelector('#speed').value = '100'; document.querySelector('#play').click()",
    );
    browser.until("document.querySelectorAll('#stage > li[id]').length === 10");
    browser.until("document.querySelector('#play').textContent === 'Play'");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn the_minimap_marks_the_entry_that_was_found() {
    let Some((site, browser)) = opened(1440, 900) else { return };
    browser.go(&site.at("/session/claude-code/harbour-long"));
    browser.until(SCRIPTS_RUN);
    // The first height that is looked at lies between two entries.
    browser.run("const find = document.elementFromPoint.bind(document); document.elementFromPoint = (x, y) => y < 150 ? document.body : find(x, y)");
    let here = "parseFloat(document.querySelector('.minimap .here').style.top)";
    for (find, entry) in [("number 150", 300), ("number 290", 580)] {
        browser.run(&format!("const box = document.querySelector('#find'); box.value = '{find}'; box.dispatchEvent(new Event('input'))"));
        browser.until(&format!("location.hash === '#e{entry}'"));
        // The topmost entry in view is a few above the one that was found.
        let percent = entry * 100 / 600;
        browser.until(&format!("{here} <= {percent} + 1 && {here} > {percent} - 3"));
    }
}

#[test]
fn keys_move_through_a_replay() {
    let Some((site, browser)) = opened(1280, 860) else { return };
    browser.go(&site.at("/session/claude-code/harbour-login/replay"));
    browser.until("document.querySelectorAll('#stage > li[id]').length === 1");
    // The only error is the result of the last call, and the only prompt the first entry.
    for (key, place) in [
        ("x", 9),
        ("X", 9),
        ("p", 1),
        ("n", 1),
        ("\u{e010}", 10),
        ("\u{e011}", 1),
        ("G", 10),
        ("gg", 1),
        ("j", 2),
        ("k", 1),
        ("\u{e014}", 2),
        ("\u{e012}", 1),
    ] {
        browser.press(key);
        let moment = "document.querySelector('#moment').textContent";
        browser.until(&format!("{moment}.startsWith('Entry {place} of 10')"));
        browser.until(&format!("document.querySelectorAll('#stage > li[id]').length === {place}"));
    }
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn costs_are_drawn_and_sessions_compared() {
    let Some((site, browser)) = opened(1280, 860) else { return };
    browser.go(&site.at("/cost?period=all"));
    browser.until("document.querySelectorAll('.chart .column').length === 1");
    browser.picture("cost");
    for by in ["week", "month", "model", "project", "agent", "session", "thread", "block"] {
        browser.go(&site.at(&format!("/cost?by={by}&period=all")));
        browser.until("document.querySelectorAll('.sums tbody tr').length > 0");
    }
    browser.go(&site.at("/compare?a=claude-code/harbour-login&b=claude-code/harbour-long"));
    browser.until("document.querySelectorAll('.pair').length > 0");
    browser.until("[...document.querySelectorAll('tr.differs th')].some((one) => one.textContent === 'Title')");
    browser.picture("compare");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn a_page_that_was_left_holds_no_connection() {
    let Some((site, browser)) = opened(1280, 860) else { return };
    for _ in 0..8 {
        for page in ["/", "/session/claude-code/harbour-login"] {
            browser.go(&site.at(page));
            browser.until("document.querySelector('.row, .entries > li')");
        }
    }
    // If each of them kept a connection, this would wait for a minute.
    browser.run("window.answered = false; fetch('/sessions').then(() => window.answered = true)");
    browser.until("window.answered");
}

#[test]
fn threads_show_their_tree_and_assets() {
    let Some((site, browser)) = opened(1280, 860) else { return };
    site.record("worked-on").say("user", "Begin");
    site.steno(&["init"]);
    let objective = site.steno(&["objective", "create", "Ship <b>the</b> page"]);
    let parent = site.steno(&["spawn", "Draw the page", "--objective", objective.trim()]);
    let child =
        site.steno(&["spawn", "Test the page", "--parent", parent.trim(), "--ref", parent.trim()]);
    let folder = site.path().join(".leslie/threads").join(child.trim());
    std::fs::write(folder.join("plan.md"), "# Plan\n\nOpen **every** view.\n").unwrap();
    browser.go(&site.at("/threads"));
    browser.until("document.querySelectorAll('.tree ul ul a').length === 1");
    browser.picture("threads");
    browser.run("document.querySelector('.tree ul ul a').click()");
    browser.until("document.querySelector('.card .md strong')?.textContent === 'every'");
    browser.until("document.body.innerText.includes('References: Draw the page')");
    browser.picture("thread");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn what_is_recorded_shows_while_it_is_recorded() {
    let Some((site, browser)) = opened(1280, 860) else { return };
    let mut recording = site.record("live");
    recording.say("user", "Is anybody there?");
    browser.until("document.body.innerText.includes('Is anybody there?')");
    browser.go(&site.at("/session/demo/live"));
    browser.until("document.querySelectorAll('.entries > li[id]').length === 1");
    recording.say("assistant", "I am listening.");
    browser.until("document.querySelector('#e1')?.innerText.includes('I am listening.')");
    for number in 2..70 {
        recording.say("user", &format!("And again, {number}"));
    }
    browser.until("document.querySelector('#e69')");
    // What sums up the session grows with it.
    browser.until("document.querySelector('.facts').textContent.includes('70 entries')");
    browser.until("document.querySelector('#contents > summary').textContent === 'Prompts69'");
    browser.until("document.querySelector('.minimap').dataset.span === '70'");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

/// The controls that a finger misses: lower or narrower than 44 pixels, or than 24 in tables, lists and entries.
const SMALL_TARGETS: &str = "return [...document.querySelectorAll('a[href], button, select, summary, label:has([type=checkbox]), input:not([type=hidden], [type=checkbox])')].filter((one) => { \
    const { width, height, right } = one.getBoundingClientRect(); \
    const isSeen = width > 1 && right > 0 && getComputedStyle(one).visibility === 'visible'; \
    const least = one.closest('td, .plain-list, .entries, .hit, .name, .pair, p') ? 24 : 44; \
    return isSeen && !one.matches('.skip') && (height < least || width < 24); \
}).map((one) => `${one.outerHTML.slice(0, 80)} ${one.getBoundingClientRect().width} x ${one.getBoundingClientRect().height}`)";

#[test]
fn a_finger_hits_what_it_is_for() {
    let Some((site, browser)) = opened(1280, 860) else { return };
    let phone = json!({"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": true});
    browser.emulate("Emulation.setDeviceMetricsOverride", &phone);
    let login = "/session/claude-code/harbour-login";
    let replay = format!("{login}/replay#e6");
    let pages = [
        "/",
        "/search?q=cookie",
        "/activity?period=all",
        "/quality?period=all",
        "/cost?period=all",
        "/compare",
    ];
    for page in pages.into_iter().chain([login, &replay]) {
        browser.go(&site.at(page));
        browser.until(SCRIPTS_RUN);
        assert_eq!(browser.run(SMALL_TARGETS), json!([]), "{page}");
    }
    // What is gone to is not below the bar.
    browser.go(&site.at("/session/claude-code/harbour-long#e300"));
    browser.until("document.querySelector('#e300.at')");
    let bar = "document.querySelector('.top').getBoundingClientRect().bottom";
    browser.until(&format!("document.querySelector('#e300').getBoundingClientRect().top > {bar}"));
    browser.run("document.querySelector('#e300').scrollIntoView()");
    browser
        .until(&format!("document.querySelector('#e300').getBoundingClientRect().top > {bar} - 1"));
}

#[test]
fn a_narrow_screen_needs_no_scrolling_to_the_side() {
    let Some((site, browser)) = opened(400, 850) else { return };
    let phone = json!({"width": 390, "height": 844, "deviceScaleFactor": 2, "mobile": true});
    browser.emulate("Emulation.setDeviceMetricsOverride", &phone);
    let login = "/session/claude-code/harbour-login";
    for (name, page) in [
        ("home", "/"),
        ("session", login),
        ("cost", "/cost?period=all"),
        ("search", "/search?q=cookie"),
    ] {
        browser.go(&site.at(page));
        browser.until("document.readyState === 'complete'");
        let wide = browser.run("return document.documentElement.scrollWidth - screen.width");
        assert!(wide.as_i64().unwrap() <= 0, "{page} is {wide} pixels too wide");
        browser.picture(&format!("narrow-{name}"));
    }
    browser.go(&site.at("/"));
    browser.until("document.querySelector('a.row .project').getClientRects().length > 0");
    browser.go(&site.at(login));
    browser.until(SCRIPTS_RUN);
    for button in ["annotate", "export-open"] {
        browser.run(&format!("document.getElementById('{button}').click()"));
        let fits = "(() => { const dialog = document.querySelector('dialog[open]'); const box = dialog?.getBoundingClientRect(); \
            return box && box.left >= 0 && box.right <= screen.width && dialog.scrollWidth <= dialog.clientWidth; })()";
        browser.until(fits);
        browser.picture(&format!("narrow-{button}"));
        browser.run("document.querySelector('dialog[open]').close()");
    }
    // Paths are relative to the project.
    let read = "[...document.querySelectorAll('.call summary')].find((one) => one.textContent.startsWith('Read'))";
    browser.until(&format!("{read}.querySelector('code').textContent === 'src/session.rs'"));
    browser.run("document.querySelector('#changes-open').click()");
    let changed = "document.querySelector('#changes .diff summary code')?.textContent";
    browser.until(&format!("{changed} === 'src/session.rs'"));
}

#[test]
fn it_is_dark_where_that_is_wished() {
    let Some((site, browser)) = opened(1280, 900) else { return };
    let colour = "return getComputedStyle(document.body).backgroundColor";
    let light = browser.run(colour);
    let dark = json!({"features": [{"name": "prefers-color-scheme", "value": "dark"}]});
    browser.emulate("Emulation.setEmulatedMedia", &dark);
    browser.go(&site.at("/session/claude-code/harbour-login"));
    browser.until("document.querySelectorAll('.entries > li[id]').length === 10");
    assert_ne!(browser.run(colour), light);
    browser.picture("dark-session");
    browser.until(SCRIPTS_RUN);
    browser.run("document.querySelector('#theme').click()");
    assert_eq!(browser.run(colour), light);
    browser.go(&site.at("/"));
    assert_eq!(browser.run(colour), light);
    let none: Value = json!({"features": []});
    browser.emulate("Emulation.setEmulatedMedia", &none);
}

#[test]
fn an_exported_page_works_without_a_server() {
    let Some((site, browser)) = opened(1280, 900) else { return };
    site.steno(&["export", "harbour-login", "--format", "html", "-o", "login.html"]);
    browser.go(&format!("file://{}#e8", site.path().join("login.html").display()));
    browser.until("document.querySelectorAll('.entries > li[id]').length === 10");
    browser.until("document.querySelector('#e8 details').open");
    browser.until("document.querySelector('pre code .tok-k')");
    browser.press("/");
    browser.press("thirty");
    browser.until("document.querySelector('#e9.at')");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn pages_about_all_sessions_name_damaged_ones() {
    let mut site = Site::new();
    site.keep("damaged", &[user("needle one")]);
    site.keep("damaged", &[user("needle one"), user("needle two")]);
    let sealed = site.path().join("store/vault/claude-code/damaged/damaged.jsonl.zst");
    let mut bytes = std::fs::read(&sealed).unwrap();
    let magic = [0x28, 0xb5, 0x2f, 0xfd];
    let frame = bytes.windows(4).rposition(|window| window == magic).unwrap();
    bytes[frame + 20] ^= 4;
    std::fs::write(&sealed, bytes).unwrap();
    site.try_steno(&["reindex"]);
    site.serve();
    let headers = site_headers(&site);
    for page in ["/", "/search?q=needle", "/cost"] {
        let (status, answer) = asked(&site, &format!("GET {page}"), &headers);
        assert_eq!(status, 200, "{page}");
        assert!(answer.contains("Some sessions are incomplete"), "{page}: {answer}");
        assert!(answer.contains("damaged frame"), "{page}: {answer}");
    }
    for path in ["/api/sessions", "/api/search?q=needle", "/api/cost"] {
        let (_, answer) = asked(&site, &format!("GET {path}"), &headers);
        assert!(answer.contains("x-steno-problems: damaged: "), "{path}: {answer}");
    }
}
