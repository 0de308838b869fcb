//! Subagents of a session: their overview, what they were asked and answered, and each alone.

use serde_json::{Value, json};

use crate::axe::{assert_no_findings, script};
use crate::driver::{Browser, SCRIPTS_RUN};
use crate::guarded::{asked, site_headers};
use crate::hostile::{ATTACKS, FOREIGN};
use crate::site::{Site, assistant, block, user};
use crate::views::{SCROLL, SHIFTS};

/// The call of a subagent.
fn task(id: &str, prompt: &str, description: &str) -> Value {
    let input = json!({"prompt": prompt, "description": description, "subagent_type": "Explore"});
    block(&json!({"type": "tool_use", "id": id, "name": "Task", "input": input}))
}

fn result(id: &str, text: &str, failed: bool) -> Value {
    json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": id, "content": text, "is_error": failed}]})
}

/// A session with a subagent that answers after many entries, and one that fails.
fn lighthouse() -> Site {
    let mut site = Site::new();
    let mut long = vec![user("Count the **steps**")];
    long.extend((0..20).map(|step| assistant(&format!("Step {step}."))));
    long.push(assistant("There are `199` steps."));
    let main = vec![
        user("Describe the lighthouse"),
        task("toolu_steps", "Count the **steps**", "Count steps"),
        result("toolu_steps", "There are 199 steps.", false),
        task("toolu_lamp", "Light the lamp", "Light it"),
        result("toolu_lamp", "The subagent was stopped", true),
        assistant("It has 199 steps and no light."),
    ];
    let lamp = vec![user("Light the lamp"), assistant("There is no oil.")];
    site.keep_files("lighthouse", &[(None, main), (Some("aa11"), long), (Some("bb22"), lamp)]);
    site.serve();
    site
}

fn opened(width: u32) -> Option<(Site, Browser)> {
    let browser = Browser::open(width, 900)?;
    let site = lighthouse();
    browser.go(&site.first("/session/claude-code/lighthouse"));
    browser.until(&format!(
        "document.querySelectorAll('button[data-run]').length === 2 && {SCRIPTS_RUN}"
    ));
    Some((site, browser))
}

/// A session with a number of subagents, each with two entries.
fn fleet(site: &Site, session: &str, count: usize) {
    let mut main = vec![user("Describe the fleet")];
    let mut files = Vec::new();
    let names: Vec<String> = (0..count).map(|at| format!("ship{at}")).collect();
    for name in &names {
        main.push(task(&format!("toolu_{name}"), name, name));
        main.push(result(&format!("toolu_{name}"), "It floats.", false));
        files.push((Some(name.as_str()), vec![user(name), assistant("It floats.")]));
    }
    main.push(assistant("All float."));
    files.push((None, main));
    site.keep_files(session, &files);
}

#[test]
fn many_subagents_are_folded_with_their_totals_in_the_heading() {
    for (width, height, is_phone) in [(1440, 900, false), (390, 844, true)] {
        let Some(browser) = Browser::open(width, height) else { return };
        let screen =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": is_phone});
        browser.emulate("Emulation.setDeviceMetricsOverride", &screen);
        let mut site = Site::new();
        fleet(&site, "small", 3);
        fleet(&site, "large", 13);
        site.serve();
        browser.go(&site.first("/session/claude-code/small"));
        for (session, is_open) in [("small", !is_phone), ("large", false)] {
            browser.go(&site.at(&format!("/session/claude-code/{session}")));
            browser.until(&format!("{SCRIPTS_RUN} && document.querySelector('#e0')"));
            let shown = browser.run("return document.querySelector('#subagents').open");
            assert_eq!(shown, json!(is_open), "{session}");
            let top =
                browser.run("return document.querySelector('#e0').getBoundingClientRect().top");
            assert!(top.as_f64().unwrap() < f64::from(height) - 40.0, "{session} {width}: {top}");
            browser.picture(&format!("subagents-{session}-{width}"));
        }
        let heading =
            browser.run("return document.querySelector('#subagents > summary').textContent");
        let heading = heading.as_str().unwrap();
        assert!(heading.contains("13") && heading.contains("26 entries"), "{heading}");
        assert!(heading.contains('$'), "{heading}");
    }
}

#[test]
fn the_overview_shows_who_ran_when_and_who_failed() {
    let Some((_site, browser)) = opened(1280) else { return };
    browser.until("document.querySelector('#subagents').open");
    let text = |selector: &str| {
        browser.run(&format!("return document.querySelector('{selector}').textContent")).to_string()
    };
    let heading = text("#subagents > summary");
    assert!(heading.contains("Subagents") && heading.contains("1 failed"), "{heading}");
    let summary = text("#subagents .hint");
    assert!(summary.contains("2 subagents, at most 2 at the same time"), "{summary}");
    assert!(summary.contains("22 s of work in 21 s"), "{summary}");
    let rows = browser.run("return [...document.querySelectorAll('.runs li:not(.axis)')].map((row) => row.textContent)");
    let (first, second) = (rows[0].as_str().unwrap(), rows[1].as_str().unwrap());
    for part in ["Count steps", "22 entries", "21 s", "tokens in", "$", "sonnet-4-5"] {
        assert!(first.contains(part), "{part}: {first}");
    }
    assert!(second.contains("Light it") && second.contains("failed"), "{second}");
    let label =
        browser.run("return document.querySelector('.runs svg').getAttribute('aria-label')");
    assert_eq!(label, json!("Ran from 09:00:00 to 09:00:21"));
    assert_eq!(browser.run("return document.querySelectorAll('.runs rect.fail').length"), json!(1));
    browser.picture("subagents");
    browser.run("document.querySelector('.runs .name a').click()");
    browser.until("document.querySelector('#e6.at')?.getClientRects().length");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn a_folded_subagent_shows_its_prompt_and_its_answer() {
    let Some((_site, browser)) = opened(1280) else { return };
    let brief = "document.querySelector('.lane-name .brief')";
    let text = browser.run(&format!("return {brief}.textContent"));
    assert_eq!(text, json!("Prompt Count the stepsAnswer There are 199 steps."));
    let is_visible = format!("{brief}.getClientRects().length > 0");
    browser.until(&format!(
        "document.querySelector('button[data-run=\"0\"]').ariaExpanded === 'false' && {is_visible}"
    ));
    // The keyboard unfolds it; then the entries themselves are visible.
    browser.run("document.querySelector('button[data-run=\"0\"]').focus()");
    browser.press("\u{e007}");
    browser.until(&format!(
        "!({is_visible}) && document.querySelector('#e6').getClientRects().length"
    ));
    let badges = browser.run("return [...document.querySelectorAll('.lane-name')].map((lane) => lane.querySelector('.failed')?.textContent ?? '')");
    assert_eq!(badges[0], json!(""));
    assert!(badges.as_array().unwrap().contains(&json!("failed")), "{badges}");
    let types = browser.run("return document.querySelector('.lane-name .agent').textContent");
    assert_eq!(types, json!("Explore"));
}

#[test]
fn a_subagent_is_shown_alone_and_leads_back_to_its_call() {
    let Some((site, browser)) = opened(1280) else { return };
    browser.run("[...document.querySelectorAll('.lane-name a')].find((one) => one.textContent === 'Open alone').click()");
    browser.until("location.search === '?subagent=aa11' && document.querySelectorAll('.entries > li[id]').length === 22");
    browser.until(SCRIPTS_RUN);
    assert_eq!(
        browser.run("return document.querySelector('h1').textContent"),
        json!("Count steps")
    );
    let links = browser.run("return document.querySelector('.lane-name').textContent");
    assert!(!links.to_string().contains("Open alone"), "{links}");
    // The title is not repeated below itself.
    assert!(!links.to_string().contains("Count steps"), "{links}");
    // All keys stay inside.
    browser.press("G");
    browser.until("document.querySelector('#e27.at')");
    browser.press("j");
    browser.press("gg");
    browser.until("document.querySelector('#e6.at')");
    browser.press("k");
    browser.press("/");
    browser.press("steps");
    browser.until("document.querySelector('#found').textContent === '1 of 2'");
    browser.press("\u{e00c}");
    browser.press("u");
    browser.until("location.search === '' && document.querySelector('#e1.at')");
    // A link to another entry leads to the whole session.
    browser.go(&site.at("/session/claude-code/lighthouse?subagent=aa11#e5"));
    browser.until("location.search === '' && document.querySelector('#e5.at')");
    assert_eq!(browser.complaints(), Vec::<String>::new());
    let [host, cookie] = site_headers(&site);
    let ask = |page: &str, headers: &[String]| asked(&site, &format!("GET {page}"), headers).0;
    let page = "/session/claude-code/lighthouse?subagent=";
    assert_eq!(ask(&format!("{page}nobody"), &[host.clone(), cookie.clone()]), 404);
    assert_eq!(ask(&format!("{page}aa11"), std::slice::from_ref(&host)), 401);
    assert_eq!(ask("/session/claude-code/lighthouse/subagents", &[host]), 401);
}

#[test]
fn nothing_moves_while_a_subagent_loads() {
    let Some((site, browser)) = opened(1280) else { return };
    for query in ["", "?subagent=aa11"] {
        browser.go("about:blank");
        browser.go(&site.at(&format!("/session/claude-code/lighthouse{query}")));
        browser.run(SHIFTS);
        browser.until(&format!("window.shifted !== undefined && {SCRIPTS_RUN}"));
        browser.run(SCROLL);
        browser.until("window.scrolled");
        let shifted = browser.run("return window.shifted").as_f64().unwrap();
        assert!(shifted < 0.02, "entries moved by {shifted}: {query}");
    }
}

#[test]
fn keys_go_from_subagent_to_subagent() {
    let Some((_site, browser)) = opened(1280) else { return };
    let focused = "document.activeElement.dataset.run";
    for (key, run) in [("s", 0), ("s", 1), ("s", 1), ("S", 0), ("S", 0)] {
        browser.press(key);
        browser.until(&format!("{focused} === '{run}'"));
    }
    // A heading that is reached stays folded.
    browser.until("document.activeElement.ariaExpanded === 'false'");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn the_way_up_from_an_entry_of_a_subagent_is_its_call() {
    let Some((_site, browser)) = opened(1280) else { return };
    browser.run("location.hash = '#e10'");
    browser.until("document.querySelector('#e10.at')?.matches('.lane')");
    browser.press("u");
    browser.until("document.querySelector('#e1.at') && location.pathname.endsWith('/lighthouse')");
    browser.press("u");
    browser.until("location.pathname === '/'");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn many_subagents_are_listed_at_once_and_sorted() {
    let Some(browser) = Browser::open(1440, 900) else { return };
    let mut site = Site::new();
    let mut main = vec![user("Look at everything")];
    let mut files = Vec::new();
    let names: Vec<String> = (0..13).map(|at| format!("a{at:02}")).collect();
    for (at, name) in names.iter().enumerate() {
        let (id, prompt) = (format!("toolu_{at}"), format!("Look at place {at}"));
        let description = format!(
            "Look at place number {at} of the coast, and say what is there and what is not"
        );
        main.push(task(&id, &prompt, &description));
        main.push(result(&id, "Seen.", false));
        let mut said = vec![user(&prompt)];
        said.extend((0..=(at * 5 % 13)).map(|step| assistant(&format!("Step {step}."))));
        files.push((Some(name.as_str()), said));
    }
    files.push((None, main));
    site.keep_files("coast", &files);
    site.serve();
    browser.go(&site.first("/session/claude-code/coast"));
    browser.until(SCRIPTS_RUN);
    let entries = "[...document.querySelectorAll('.runs li[data-sums] .totals-line')].map((one) => parseInt(one.textContent))";
    let open = "document.querySelector('#subagents').open = true";
    browser.run(open);
    browser.until(&format!("{entries}.length === 13"));
    // Whole tasks are read.
    let cut = "return [...document.querySelectorAll('.runs .name a')].filter((one) => one.scrollWidth > one.clientWidth || !one.textContent.endsWith('is not')).length";
    assert_eq!(browser.run(cut), json!(0));
    browser.picture("many-subagents");
    let choose = |value: &str| {
        browser.run(&format!("const choice = document.querySelector('.runs-order'); choice.value = [...choice.options].find((one) => one.text === '{value}').value; choice.dispatchEvent(new Event('change', {{bubbles: true}}))"));
    };
    let started = browser.run(&format!("return {entries}"));
    choose("entries");
    let mut sorted: Vec<u64> =
        started.as_array().unwrap().iter().map(|one| one.as_u64().unwrap()).collect();
    sorted.sort_unstable_by(|a, b| b.cmp(a));
    assert_eq!(browser.run(&format!("return {entries}")), json!(sorted));
    choose("start");
    assert_eq!(browser.run(&format!("return {entries}")), started);
    // A file has the overview, too.
    let file = site.path().join("coast.html");
    site.steno(&["export", "coast", "--format", "html", "-o", "coast.html"]);
    browser.go(&format!("file://{}", file.display()));
    browser.run(open);
    browser.until(&format!("{entries}.length === 13"));
    choose("entries");
    assert_eq!(browser.run(&format!("return {entries}")), json!(sorted));
    assert_eq!(
        browser.run("return [...document.querySelectorAll('#subagents a')].filter((one) => !one.getAttribute('href').startsWith('#e')).length"),
        json!(0)
    );
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn the_overview_follows_a_session_that_grows() {
    let Some((site, browser)) = opened(1280) else { return };
    browser.until("document.querySelector('#subagents').textContent.includes('2 entries')");
    let file = site.path().join("project/lighthouse/subagents/agent-bb22.jsonl");
    let mut lines = std::fs::read_to_string(&file).unwrap();
    let record = json!({
        "type": "assistant", "uuid": "later", "sessionId": "lighthouse", "version": "2.1.0", "isSidechain": true,
        "agentId": "bb22", "timestamp": "2026-01-05T09:01:30.000Z", "cwd": "/home/me/code/harbor",
        "message": assistant("I found some oil."),
    });
    lines.push_str(&format!("{record}\n"));
    std::fs::write(&file, lines).unwrap();
    site.steno(&["import", site.path().join("project").to_str().unwrap()]);
    browser.until("document.querySelector('#subagents').textContent.includes('3 entries')");
    browser.until("document.querySelector('#subagents').textContent.includes('1 min 30 s')");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn new_entries_of_a_subagent_are_announced() {
    let Some((site, browser)) = opened(1280) else { return };
    browser.go(&site.at("/session/claude-code/lighthouse?subagent=bb22"));
    browser.until(&format!(
        "document.querySelectorAll('.entries > li[id]').length === 2 && {SCRIPTS_RUN}"
    ));
    browser.until("document.querySelector('#fresh').hidden");
    let file = site.path().join("project/lighthouse/subagents/agent-bb22.jsonl");
    let mut lines = std::fs::read_to_string(&file).unwrap();
    let record = json!({
        "type": "assistant", "uuid": "later", "sessionId": "lighthouse", "version": "2.1.0", "isSidechain": true,
        "agentId": "bb22", "timestamp": "2026-01-05T09:00:30.000Z", "cwd": "/home/me/code/harbor",
        "message": assistant("I found some oil."),
    });
    lines.push_str(&format!("{record}\n"));
    std::fs::write(&file, lines).unwrap();
    site.steno(&["import", site.path().join("project").to_str().unwrap()]);
    browser.until("!document.querySelector('#fresh').hidden");
    browser.run("document.querySelector('#fresh').click()");
    browser.until("document.querySelectorAll('.entries > li[id]').length === 3");
}

#[test]
fn no_view_of_subagents_has_a_finding() {
    let Some(script) = script() else { return };
    let Some((site, browser)) = opened(1280) else { return };
    let pages =
        ["", "?subagent=aa11"].map(|query| format!("/session/claude-code/lighthouse{query}"));
    for scheme in ["light", "dark"] {
        let wish = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        browser.emulate("Emulation.setEmulatedMedia", &wish);
        for page in &pages {
            browser.go(&site.at(page));
            browser.until(SCRIPTS_RUN);
            assert_no_findings(&browser, &script, &format!("{page} {scheme}"));
        }
    }
}

#[test]
fn nothing_that_a_subagent_says_reaches_the_page_alive() {
    let Some(browser) = Browser::open(1280, 900) else { return };
    let mut site = Site::new();
    let mut files = vec![(None, vec![user("Go")])];
    let names: Vec<String> = (0..ATTACKS.len()).map(|number| format!("a{number}")).collect();
    for (number, attack) in ATTACKS.iter().enumerate() {
        let id = format!("toolu_{number}");
        let mut call = task(&id, attack, attack);
        call["content"][0]["input"]["subagent_type"] = json!(attack);
        // Each prompt is of its own, so that each call has its subagent.
        call["content"][0]["input"]["prompt"] = json!(format!("{number} {attack}"));
        files[0].1.push(call);
        let said = vec![user(&format!("{number} {attack}")), assistant(attack)];
        files.push((Some(names[number].as_str()), said));
    }
    site.keep_files("hostile-subagents", &files);
    site.serve();
    browser.go(&site.first("/session/claude-code/hostile-subagents"));
    browser.until("document.querySelectorAll('.lane-name .brief').length > 15");
    browser.run("document.querySelector('#subagents').open = true");
    browser.until("document.querySelectorAll('.runs li').length > 20");
    let is_clean = |page: &str| {
        assert_eq!(browser.run(FOREIGN), json!([]), "{page}");
        assert_eq!(browser.run("return window.harm ?? null"), json!(null), "{page}");
        assert_eq!(browser.complaints(), Vec::<String>::new(), "{page}");
    };
    is_clean("the session");
    for name in [&names[0], &names[30]] {
        browser.go(&site.at(&format!("/session/claude-code/hostile-subagents?subagent={name}")));
        browser.until(SCRIPTS_RUN);
        is_clean(name);
    }
}
