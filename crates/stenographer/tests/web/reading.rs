//! Reading a session: pairs, copies, links, marks, folds, sections, forks and exports.

use serde_json::{Value, json};

use crate::driver::{Browser, SCRIPTS_RUN};
use crate::guarded::{asked, site_headers};
use crate::site::{Site, assistant, tool, user};

/// Records what a page copies.
const CLIPBOARD: &str = "navigator.clipboard.writeText = async (text) => { window.copied = text; }";

/// A message of the model with several tool calls.
fn calls(all: &[(&str, Value)]) -> Value {
    let blocks: Vec<Value> = all
        .iter()
        .map(|(id, input)| json!({"type": "tool_use", "id": id, "name": "Bash", "input": input}))
        .collect();
    json!({
        "id": "msg_parallel0000000000", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
        "content": blocks, "usage": {"input_tokens": 40, "cache_read_input_tokens": 21_000, "output_tokens": 350},
    })
}

fn result(id: &str, text: &str) -> Value {
    json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": text}]})
}

/// A session with parallel calls, edits that are undone, a retry and a secret.
fn workshop() -> Site {
    let mut site = Site::new();
    let edit = |old: &str, new: &str| json!({"file_path": "/w/a.rs", "old_string": old, "new_string": new});
    let mut said = vec![
        user("Measure twice, then build the lighthouse"),
        calls(&[
            ("toolu_p1", json!({"command": "make one"})),
            ("toolu_p2", json!({"command": "make two"})),
        ]),
        result("toolu_p2", "two is made"),
        result("toolu_p1", "one is made"),
        user("Now edit"),
    ];
    said.extend(tool("Edit", &edit("first line", "second line"), ("ok", false)));
    said.extend(tool("Edit", &edit("second line", "third line!"), ("ok", false)));
    said.extend(tool("Bash", &json!({"command": "cargo test"}), ("it broke\nin two lines", true)));
    said.extend(tool(
        "Bash",
        &json!({"command": "cargo test"}),
        (&"long output\n".repeat(3000), false),
    ));
    said.push(user("Use ghp_abcdefghijklmnopqrstuvwxyz0123456789 for it"));
    said.push(assistant("Done:\n\n```sh\necho lighthouse\n```\n"));
    site.keep("workshop", &said);
    site.serve();
    site
}

fn opened() -> Option<(Site, Browser)> {
    let browser = Browser::open(1440, 900)?;
    let site = workshop();
    browser.go(&site.first("/session/claude-code/workshop"));
    browser.until("document.querySelectorAll('.entries > li[id]').length === 16");
    browser.run(CLIPBOARD);
    Some((site, browser))
}

#[test]
fn times_of_prompts_are_on_one_line_and_code_reads_from_left_to_right() {
    let Some(browser) = Browser::open(1440, 900) else { return };
    let mut site = Site::new();
    let prompt = "a prompt of many words that fills its line and more ".repeat(3);
    let mut said: Vec<Value> = (0..20).map(|_| user(&prompt)).collect();
    said.push(assistant("השתמש ב `parse_config()` ואז הרץ"));
    site.keep("times", &said);
    site.serve();
    browser.go(&site.first("/session/claude-code/times"));
    browser.until("document.querySelectorAll('.contents-list small').length === 20");
    let highest = "return Math.max(...[...document.querySelectorAll('.contents-list small')].map((one) => one.offsetHeight))";
    assert!(browser.run(highest).as_f64().unwrap() < 24.0);
    let code = "const style = getComputedStyle(document.querySelector('.md p code')); return [style.direction, style.unicodeBidi]";
    assert_eq!(browser.run(code), json!(["ltr", "isolate"]));
}

#[test]
fn parallel_calls_stand_above_their_own_results() {
    let Some((_site, browser)) = opened() else { return };
    let order = "return [...document.querySelectorAll('.entries > li[id]')].slice(0, 6).map((entry) => entry.id)";
    assert_eq!(browser.run(order), json!(["e0", "e1", "e4", "e2", "e3", "e5"]));
    assert!(
        browser
            .run("return document.querySelector('#e4').textContent")
            .to_string()
            .contains("one is made")
    );
    // Short results and errors are shown whole.
    browser.until("document.querySelector('.result.bad details').open");
    let turns = browser
        .run("return [...document.querySelectorAll('.turn')].map((turn) => turn.textContent)");
    let first = turns[0].as_str().unwrap();
    assert!(
        first.contains("2 tool calls") && first.contains("21.0k tokens in") && first.contains('$'),
        "{first}"
    );
    browser.until("document.querySelector('.facts').textContent.includes('$')");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn entries_and_code_are_copied_and_linked() {
    let Some((site, browser)) = opened() else { return };
    let hover = |selector: &str| {
        browser.run(&format!("document.querySelector('{selector}').dispatchEvent(new Event('pointerover', {{bubbles: true}}))"));
    };
    hover("#e0");
    browser.run("document.querySelector('#e0 .entry-tools button').click()");
    browser.until("window.copied === 'Measure twice, then build the lighthouse'");
    hover("#e15 pre");
    browser.run("document.querySelector('#e15 pre .copy-block').click()");
    browser.until("window.copied === 'echo lighthouse\\n'");
    browser.press("gg");
    browser.until("document.querySelector('#e0.at')");
    browser.press("Y");
    let link = site.at("/session/claude-code/workshop#e0");
    browser.until(&format!("window.copied === '{link}'"));
    browser.press("jy");
    browser.until("window.copied.includes('make one')");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn the_focus_is_never_hidden() {
    let Some((_site, browser)) = opened() else { return };
    browser.run("document.querySelector('#quality-open').focus()");
    browser.press("\u{e004}");
    let seen = "document.activeElement === document.querySelector('#e0 > a') && getComputedStyle(document.activeElement).visibility === 'visible'";
    browser.until(seen);
    browser.until("document.querySelector('#e0 > .entry-tools')");
    for _ in 0..12 {
        browser.press("\u{e004}");
        let focused = browser.run("return document.activeElement !== document.body && getComputedStyle(document.activeElement).visibility === 'visible'");
        assert_eq!(focused, json!(true));
    }
}

#[test]
fn matches_are_marked_in_the_text() {
    let Some((site, browser)) = opened() else { return };
    let marks =
        "[...CSS.highlights.get('found') ?? []].map((range) => range.toString().toLowerCase())";
    browser.press("/");
    browser.press("lighthouse");
    browser
        .until(&format!("{marks}.length >= 2 && {marks}.every((text) => text === 'lighthouse')"));
    browser.go(&site.at("/search?q=measure%20%22the%20lighthouse%22%20-never"));
    browser.until("document.querySelector('.hits a')");
    browser.run("document.querySelector('.hits a').click()");
    browser.until("location.pathname.endsWith('/workshop')");
    browser.until(&format!("{marks}.includes('measure') && {marks}.includes('the lighthouse')"));
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn sections_show_prompts_files_and_quality() {
    let Some((_site, browser)) = opened() else { return };
    // There is room for the prompts beside the session.
    browser.until("document.querySelectorAll('.contents-list a').length === 3");
    let headings = "return [...document.querySelectorAll('.section > summary')].map((one) => [...one.children].map((part) => part.textContent).join(' '))";
    let expected = json!(["Prompts 3", "Files changed 1 +1 −1", "Quality 1 failed call, 1 retry"]);
    assert_eq!(browser.run(headings), expected);
    browser.run("document.querySelectorAll('.contents-list a')[1].click()");
    browser.until("document.querySelector('#e5.at')");
    browser.run("document.querySelector('#changes-open').click()");
    browser
        .until("document.querySelector('#changes .diff summary')?.textContent.includes('2 edits')");
    browser.run("document.querySelector('#changes .diff').open = true");
    let lines = "return [...document.querySelectorAll('#changes .lines > *')].map((line) => line.textContent.trim())";
    // The number of the entry that wrote the line follows, as a link.
    assert_eq!(browser.run(lines), json!(["first line", "third line!8"]));
    browser.run("document.querySelector('#changes a.writer').click()");
    browser.until("document.querySelector('#e8.at')");
    browser.run("document.querySelector('#changes-open').click()");
    // The heading names the problems, and leads to them.
    browser.run("document.querySelector('.facts a[href=\"#quality\"]').click()");
    browser.until("document.querySelectorAll('#quality details').length === 2");
    let line = "document.querySelector('.quality-line').textContent";
    browser.until(&format!(
        "{line}.startsWith('1 failed call0 other errors1 retry0 undone edits0 compactions')"
    ));
    let found = browser.run("return document.querySelector('#quality').textContent").to_string();
    assert!(found.contains("1Errors and failed") && found.contains("1Retries"), "{found}");
    assert!(found.contains("21.0k tokens"), "{found}");
    // A short list is unfolded, and names the call, the error and what repaired it.
    browser.until("document.querySelectorAll('#quality details.quality[open]').length === 2");
    let outcome = "document.querySelector('#quality .outcome').textContent";
    browser.until(&format!("{outcome} === 'repaired'"));
    browser.until("document.querySelector('#quality .hint a[href^=\"#e\"]')");
    browser.run("document.querySelector('#quality li a').click()");
    browser.until("document.querySelector('.bad.at')");
    browser.picture("sections");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

/// A picture of one pixel.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

#[test]
fn the_prompt_that_is_read_is_marked_in_the_list_of_prompts() {
    let Some(browser) = Browser::open(1440, 900) else { return };
    let mut site = Site::new();
    let source = json!({"type": "base64", "media_type": "image/png", "data": PIXEL});
    let mut said = vec![
        user("Prompt number 0"),
        json!({"role": "user", "content": [{"type": "image", "source": source}]}),
    ];
    for number in 1..80 {
        said.push(assistant(&format!("Answer.\n\n{}", "It turns. ".repeat(60))));
        said.push(user(&format!("Prompt number {number}")));
    }
    site.keep("prompts", &said);
    site.serve();
    browser.go(&site.first("/session/claude-code/prompts"));
    browser.until("document.querySelectorAll('.contents-list a').length === 80");
    let marked = |number: usize| {
        let text = "document.querySelector('.contents-list [aria-current] span')?.textContent";
        browser.until(&format!("{text} === 'Prompt number {number}'"));
    };
    marked(0);
    // A picture that belongs to a prompt is no prompt.
    for number in 1..4 {
        browser.press("n");
        marked(number);
    }
    browser.press("G");
    marked(79);
    let is_visible = "(() => { const list = document.querySelector('#contents').getBoundingClientRect(); \
        const link = document.querySelector('.contents-list [aria-current]').getBoundingClientRect(); \
        return link.top >= list.top - 1 && link.bottom <= list.bottom + 1; })()";
    browser.until(is_visible);
    browser.press("p");
    marked(78);
    browser.run("document.querySelector('li.at').classList.remove('at'); scrollTo(0, 0)");
    marked(0);
    browser.until(is_visible);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn prompts_are_marked_by_their_place_and_not_by_their_number() {
    let Some(browser) = Browser::open(1440, 900) else { return };
    let mut site = Site::new();
    let call = |id: &str| {
        json!({"role": "assistant", "id": id, "type": "message", "model": "claude-sonnet-4-5",
        "content": [{"type": "tool_use", "id": id, "name": "Task", "input": {"prompt": "Look"}}]})
    };
    let record = |name: &str, at: usize, agent: Option<&str>, message: &Value| {
        let record = json!({
            "type": message["role"], "uuid": format!("{name}{at}"), "sessionId": "lanes", "version": "2.1.0",
            "isSidechain": agent.is_some(), "agentId": agent, "timestamp": format!("2026-01-05T09:{at:02}:00.000Z"),
            "cwd": "/home/me/code/harbor", "message": message,
        });
        format!("{record}\n")
    };
    let main = [
        user("First"),
        call("toolu_a"),
        result("toolu_a", "Done"),
        user("Second"),
        assistant("Yes."),
        user("Third"),
    ];
    let sub = [user("Look"), assistant("Seen.")];
    let lines = |name: &str, agent: Option<&str>, all: &[Value]| -> String {
        all.iter().enumerate().map(|(at, one)| record(name, at, agent, one)).collect()
    };
    let root = site.path().join("project");
    std::fs::create_dir_all(root.join("lanes/subagents")).unwrap();
    std::fs::write(root.join("lanes.jsonl"), lines("m", None, &main)).unwrap();
    let file = root.join("lanes/subagents/agent-a1.jsonl");
    std::fs::write(file, lines("s", Some("a1"), &sub)).unwrap();
    site.steno(&["import", root.to_str().unwrap()]);
    site.serve();
    browser.go(&site.first("/session/claude-code/lanes"));
    browser.until("document.querySelectorAll('.contents-list a').length === 3");
    // The subagent's entries have the highest numbers, but stand below the first prompt.
    browser.run("location.hash = '#e7'");
    browser.until("document.querySelector('#e7.at')");
    let marked = "document.querySelector('.contents-list [aria-current] span')?.textContent";
    browser.until(&format!("{marked} === 'First'"));
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn a_long_output_loads_in_place() {
    let Some((_site, browser)) = opened() else { return };
    let shown = "document.querySelector('#e13 pre')?.textContent.length";
    assert!(browser.run(&format!("return {shown}")).as_u64().unwrap() < 21_000);
    browser.run("document.querySelector('#e13 a.more').click()");
    browser.until(&format!("{shown} > 35000"));
    assert_eq!(browser.run("return document.querySelectorAll('#e13 pre').length"), json!(1));
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn a_session_is_exported_without_secrets() {
    let Some((site, browser)) = opened() else { return };
    browser.run("document.querySelector('#export-open').click()");
    browser.until("document.querySelector('#export').open");
    browser.picture("export");
    let checked = "return document.querySelector('#export [name=keep_secrets]').checked";
    assert_eq!(browser.run(checked), json!(false));
    let [host, cookie] = site_headers(&site);
    let secret = "ghp_abcdefghijklmnopqrstuvwxyz0123456789";
    for (format, sign) in
        [("html", "<!DOCTYPE html>"), ("md", "Measure twice"), ("json", "\"content\"")]
    {
        let ask = |query: &str, headers: &[String]| {
            asked(
                &site,
                &format!("GET /session/claude-code/workshop/export?format={format}{query}"),
                headers,
            )
        };
        let headers = [host.clone(), cookie.clone()];
        let (status, file) = ask("", &headers);
        assert!(status == 200 && file.contains(sign), "{format}: {file}");
        assert!(file.contains(&format!("filename=\"workshop.{format}\"")), "{format}");
        assert!(file.contains("[redacted") && !file.contains(secret), "{format}");
        assert!(ask("&keep_secrets=true", &headers).1.contains(secret), "{format}");
        assert_eq!(ask("", std::slice::from_ref(&host)).0, 401);
        let evil = [host.clone(), cookie.clone(), "Origin: http://evil.example".to_owned()];
        assert_eq!(ask("", &evil).0, 403);
    }
    assert_eq!(
        asked(&site, "GET /session/claude-code/workshop/export?format=exe", &[host, cookie]).0,
        400
    );
}

#[test]
fn subagents_are_folded_and_have_totals() {
    let Some(browser) = Browser::open(1280, 900) else { return };
    let mut site = Site::new();
    site.keep_nested("nested");
    site.serve();
    browser.go(&site.first("/session/claude-code/nested"));
    browser.until("document.querySelectorAll('button[data-run]').length === 2");
    let heading =
        browser.run("return document.querySelector('.lane-name').textContent").to_string();
    assert!(heading.contains("5 entries") && heading.contains("1 tool call"), "{heading}");
    let visible = "[...document.querySelectorAll('.entries > li[id]')].filter((entry) => entry.getClientRects().length).length";
    browser.run("document.querySelector('button[data-run=\"1\"]').click()");
    browser.until(&format!("{visible} === 7"));
    browser.run("document.querySelector('button[data-run=\"0\"]').click()");
    browser.until(&format!("{visible} === 4"));
    let expanded = "document.querySelector('button[data-run=\"0\"]').getAttribute('aria-expanded')";
    browser.until(&format!("{expanded} === 'false'"));
    // Keys skip what is folded; a link unfolds it.
    browser.press("ggj");
    browser.until("document.querySelector('#e1.at')");
    browser.press("j");
    browser.until("document.querySelector('#e2.at')");
    browser.run("location.hash = '#e8'");
    browser.until(&format!("document.querySelector('#e8.at') && {visible} === 9"));
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn a_match_far_down_in_coloured_code_is_visible() {
    let Some(browser) = Browser::open(1280, 900) else { return };
    let mut site = Site::new();
    let mut code = "let count = 1; // a line\n".repeat(80);
    code.push_str("let keeper = periwinkle(7);\n");
    site.keep("code", &[user("Show it"), assistant(&format!("Here:\n\n```rust\n{code}```\n"))]);
    site.serve();
    browser.go(&site.first("/"));
    browser.go(&site.at("/session/claude-code/code?marks=periwinkle#e1"));
    browser.until("document.querySelector('#e1 pre .tok-k')");
    browser.until(
        "[...CSS.highlights.get('found') ?? []].some((range) => range.toString() === 'periwinkle')",
    );
    browser.until(
        "(() => { const box = document.querySelector('#e1 pre').getBoundingClientRect(); const mark = [...CSS.highlights.get('found')][0].getBoundingClientRect(); return mark.height > 0 && mark.top >= box.top && mark.bottom <= box.bottom; })()",
    );
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn an_exported_page_has_the_same_reading_aids() {
    let Some((site, browser)) = opened() else { return };
    site.steno(&["export", "workshop", "--format", "html", "-o", "workshop.html"]);
    browser.go(&format!("file://{}#e13", site.path().join("workshop.html").display()));
    browser.until("document.querySelector('#e13.at details').open");
    browser.until("document.querySelectorAll('.turn').length === 2");
    // The last turn is a prompt and one answer, which shows what it cost.
    browser.until("document.querySelector('#e15 > i').textContent.includes('$')");
    browser.until("document.querySelectorAll('.contents-list a').length === 3");
    browser.until(
        "document.querySelector('#changes .diff') && document.querySelector('#quality details')",
    );
    browser.run(CLIPBOARD);
    browser.press("ggy");
    browser.until("window.copied === 'Measure twice, then build the lighthouse'");
    browser.press("/");
    browser.press("lighthouse");
    browser.until("CSS.highlights.get('found')?.size >= 2");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn a_fork_names_its_parent() {
    let Some(browser) = Browser::open(1280, 900) else { return };
    let mut site = Site::new();
    site.keep("parent", &[user("Start here"), assistant("Begun."), user("Go left")]);
    let record = |at: usize, message: &Value| {
        json!({"type": message["role"], "uuid": format!("f{at}"), "sessionId": "child", "version": "2.1.0",
            "timestamp": format!("2026-01-06T09:00:{at:02}.000Z"), "cwd": "/home/me/code/harbor", "message": message,
            "forkedFrom": {"sessionId": "parent", "messageUuid": "u1"}})
    };
    let said = [user("Start here"), assistant("Begun."), user("Go right")];
    let lines: String =
        said.iter().enumerate().map(|(at, one)| format!("{}\n", record(at, one))).collect();
    let file = site.path().join("child.jsonl");
    std::fs::write(&file, lines).unwrap();
    site.steno(&["import", file.to_str().unwrap()]);
    site.serve();
    browser.go(&site.first("/session/claude-code/child"));
    browser.until("document.querySelector('.facts').textContent.includes('forked from Start here after entry 1')");
    let next = "document.querySelector('.fork').nextElementSibling.id";
    browser.until(&format!("{next} === 'e2'"));
    browser.run("document.querySelector('.fork a').click()");
    browser.until("location.pathname.endsWith('/parent') && document.querySelector('#e1.at')");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn a_prompt_that_goes_back_says_what_it_left() {
    let Some(browser) = Browser::open(1440, 900) else { return };
    let mut site = Site::new();
    let said = [
        (user("Start here"), None),
        (assistant("Left or right?"), Some("0")),
        (user("Go left"), Some("1")),
        (assistant("There is a wall."), Some("2")),
        (user("Go right instead"), Some("1")),
        (assistant("There is a door."), Some("4")),
    ];
    let uuid = |at: &str| format!("00000000-0000-4000-8000-00000000000{at}");
    let record = |at: usize, message: &Value, parent: Option<&str>| {
        json!({"type": message["role"], "uuid": uuid(&at.to_string()), "parentUuid": parent.map(uuid), "sessionId": "crossing",
            "version": "2.1.0", "timestamp": format!("2026-01-06T09:00:{at:02}.000Z"), "cwd": "/home/me/code/harbor", "message": message})
    };
    let records =
        said.iter().enumerate().map(|(at, (message, parent))| record(at, message, *parent));
    let lines: String = records.map(|one| format!("{one}\n")).collect();
    let file = site.path().join("crossing.jsonl");
    std::fs::write(&file, lines).unwrap();
    site.steno(&["import", file.to_str().unwrap()]);
    site.serve();
    browser.go(&site.first("/session/claude-code/crossing"));
    let next = "document.querySelector('.fork').nextElementSibling.id";
    browser.until(&format!("{next} === 'e4'"));
    let mark = browser.run("return document.querySelector('.fork').textContent");
    let expected =
        "Went back to “Left or right?” (entry 1). What follows “Go left” (entry 2) was left.";
    assert_eq!(mark, json!(expected));
    browser.until("document.querySelectorAll('.contents-list a')[2]?.textContent.startsWith('↶ Go right instead')");
    browser.run("document.querySelector('.fork a').click()");
    browser.until("document.querySelector('#e1.at')");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn folding_all_keeps_the_place() {
    let Some(browser) = Browser::open(1280, 900) else { return };
    let mut site = Site::new();
    let lines = "a line of the log\n".repeat(9);
    let call =
        |at: usize| tool("Bash", &json!({"command": format!("ls {at:0>at$}")}), (&lines, false));
    let work = (0..60).flat_map(call);
    site.keep("folds", &[user("Look")].into_iter().chain(work).collect::<Vec<_>>());
    site.serve();
    browser.go(&site.first("/session/claude-code/folds"));
    browser.go(&site.at("/session/claude-code/folds#e80"));
    browser.until(&format!("document.querySelector('#e80.at') && scrollY > 0 && {SCRIPTS_RUN}"));
    let top = || {
        browser
            .run("return Math.round(document.querySelector('#e80').getBoundingClientRect().top)")
            .as_i64()
            .unwrap()
    };
    for key in ["E", "C", "E"] {
        let before = top().max(120);
        browser.press(key);
        browser.run("return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))");
        assert!((top() - before).abs() <= 2, "{key}: {before}, {}", top());
    }
    assert_eq!(browser.complaints(), Vec::<String>::new());
}
