//! Text of a transcript never runs, loads anything or imitates the page.

use serde_json::{Value, json};

use crate::driver::{Browser, SCRIPTS_RUN};
use crate::guarded::{asked, site_headers};
use crate::site::{Site, assistant, thought, tool, user};

/// Attacks on a page, old and new.
pub(crate) const ATTACKS: &[&str] = &[
    "<script>window.harm=1</script>",
    "<img src=x onerror=\"window.harm=1\">",
    "<img src=\"http://127.0.0.1:1/leak.png\">",
    "![x](http://127.0.0.1:1/leak.png)",
    "![x](javascript:window.harm=1)",
    "[click](javascript:window.harm=1)",
    "[click](JaVaScRiPt:window.harm=1)",
    "[click](java&#115;cript:window.harm=1)",
    "[click](\tjavascript:window.harm=1)",
    "[click](data:text/html;base64,PHNjcmlwdD53aW5kb3cuaGFybT0xPC9zY3JpcHQ+)",
    "[click](vbscript:window.harm=1)",
    "[a](https://x.y/\"onmouseover=\"window.harm=1)",
    "[a](<https://x.y/\" onmouseover=\"window.harm=1> 'title\" onfocus=\"window.harm=1')",
    "<svg onload=window.harm=1><animate onbegin=window.harm=1 attributeName=x></svg>",
    "<svg><script>window.harm=1</script></svg>",
    "<iframe srcdoc=\"<script>parent.harm=1</script>\"></iframe>",
    "<object data=\"javascript:window.harm=1\"></object>",
    "<embed src=\"javascript:window.harm=1\">",
    "<form action=\"javascript:window.harm=1\"><button>Go</button></form>",
    "<details open ontoggle=window.harm=1>x</details>",
    "<style>body{display:none}</style>",
    "<link rel=stylesheet href=http://127.0.0.1:1/x.css>",
    "<base href=\"http://127.0.0.1:1/\">",
    "<meta http-equiv=refresh content=\"0;url=http://127.0.0.1:1/\">",
    "<div style=\"position:fixed;inset:0\">cover</div>",
    "<math><mtext></mtext><mglyph><style><img src=x onerror=window.harm=1></style></mglyph></math>",
    "</article></main><script>window.harm=1</script>",
    "</pre></details><script>window.harm=1</script>",
    "</script><script>window.harm=1</script>",
    "--><script>window.harm=1</script><!--",
    "```\"><script>window.harm=1</script>\ncode\n```",
    "```js\" onmouseover=\"window.harm=1\ncode\n```",
    "<a href=\"https://x.y\" onclick=window.harm=1>x</a>",
    "<https://x.y/\"onclick=window.harm=1>",
    "<javascript:window.harm=1>",
    "| a |\n|---|\n| <img src=x onerror=window.harm=1> |",
    "# <img src=x onerror=window.harm=1>",
    "[x]: javascript:window.harm=1\n\n[x]",
    "<input autofocus onfocus=window.harm=1>",
    "<video><source onerror=window.harm=1></video>",
    "<template><script>window.harm=1</script></template>",
    "<x-element onclick=window.harm=1 tabindex=0>x</x-element>",
    "\u{202e}<script>window.harm=1</script>",
    "<scr\u{0}ipt>window.harm=1</scr\u{0}ipt>",
];

fn hostile() -> Site {
    let mut site = Site::new();
    let mut said = Vec::new();
    for attack in ATTACKS {
        said.push(user(attack));
        said.push(assistant(attack));
        said.push(thought(attack));
        said.extend(tool(
            attack,
            &json!({"command": attack, attack.to_string(): attack}),
            (attack, true),
        ));
        let edit =
            json!({"file_path": attack, "old_string": attack, "new_string": format!("{attack} ")});
        said.extend(tool("Edit", &edit, (&format!("{attack}\n{attack}"), false)));
    }
    site.keep("hostile", &said);
    for (number, attack) in ATTACKS.iter().enumerate().filter(|(_, attack)| !attack.contains('\0'))
    {
        site.steno(&["annotate", &format!("hostile:{number}"), "--", attack]);
        site.steno(&["annotate", "hostile", "--", attack]);
    }
    site.serve();
    site
}

/// Finds elements that can only come from a transcript.
pub(crate) const FOREIGN: &str = "return [...document.querySelectorAll('main *')].filter((element) => \
    element.matches('script:not([type=\"application/json\"]), style, iframe, object, embed, link, base, meta, form[action^=javascript], \
        video, math, template, x-element, [style]:not(.chunk), img:not(.picture), a[href^=\"javascript\" i], a[href^=\"data\" i]') \
    || [...element.attributes].some((attribute) => attribute.name.startsWith('on'))).map((element) => element.outerHTML.slice(0, 200))";

#[test]
fn nothing_in_a_transcript_reaches_the_page_alive() {
    let Some(browser) = Browser::open(1280, 900) else { return };
    let site = hostile();
    browser.go(&site.first("/"));
    site.steno(&["export", "hostile", "--format", "html", "--no-redact", "-o", "hostile.html"]);
    let name = "/session/claude-code/hostile";
    let file = format!("file://{}", site.path().join("hostile.html").display());
    let pages = [
        site.at("/"),
        site.at(name),
        site.at(&format!("{name}/replay#e150")),
        site.at("/search?q=harm"),
        site.at("/cost?by=session"),
        site.at("/compare?a=claude-code/hostile&b=claude-code/hostile"),
        site.at("/activity?since=2026-01-01"),
        site.at("/cost?since=2026-01-01"),
        site.at("/trends?since=2026-01-01&q=harm%0A%3Cimg%20src%3Dx%20onerror%3Dwindow.harm%3D1%3E%0A%22%3E%3Cscript%3E"),
        site.at("/edits?since=2026-01-01"),
        site.at("/edits?since=2026-01-01&q=%22%3E%3Cimg%20src%3Dx%20onerror%3Dwindow.harm%3D1%3E"),
        site.at("/?filter=window.harm"),
        file,
    ];
    for page in pages {
        browser.go(&page);
        browser.until("document.readyState === 'complete'");
        if page.ends_with(name) {
            browser.press("E");
            browser.until("document.querySelectorAll('.entries > li[id]').length > 50");
        }
        browser.run("for (const element of document.querySelectorAll('main a, main summary, main .entries > li')) { \
            element.dispatchEvent(new MouseEvent('mouseover', {bubbles: true})); element.focus?.(); }");
        assert_eq!(browser.run(FOREIGN), json!([]), "{page}");
        assert_eq!(browser.run("return window.harm ?? null"), json!(null), "{page}");
        assert_eq!(browser.complaints(), Vec::<String>::new(), "{page}");
    }
}

#[test]
fn nothing_in_a_transcript_reaches_the_palette_or_an_export_alive() {
    let Some(browser) = Browser::open(1280, 900) else { return };
    let site = hostile();
    browser.go(&site.first("/session/claude-code/hostile"));
    browser.until("document.querySelectorAll('.entries > li[id]').length > 50");
    browser.until(SCRIPTS_RUN);
    browser.run("document.querySelectorAll('details.section').forEach((section) => { section.open = true; })");
    browser.until("[...document.querySelectorAll('details.section')].every((section) => section.querySelector('div'))");
    assert_eq!(browser.run(FOREIGN), json!([]));
    for typed in ["harm", "<img", "onmouseover="] {
        browser.run("document.querySelector('#palette-open').click()");
        browser.until("document.querySelector('#palette').open");
        browser.press(typed);
        browser.until(
            "document.querySelector('#palette-list').textContent.includes('all sessions for')",
        );
        assert_eq!(browser.run(&FOREIGN.replace("main *", "#palette *")), json!([]), "{typed}");
        browser.run("document.querySelector('#palette').close()");
    }
    let [host, cookie] = site_headers(&site);
    let ask = |query: &str| {
        asked(
            &site,
            &format!("GET /session/claude-code/hostile/export?{query}"),
            &[host.clone(), cookie.clone()],
        )
    };
    let (_, answer) = ask("format=html&keep_secrets=true");
    let head = answer.split("\r\n\r\n").next().unwrap().to_lowercase();
    // A browser saves the file instead of showing it with the rights of the page.
    assert!(head.contains("content-disposition: attachment; filename=\"hostile.html\""), "{head}");
    assert!(head.contains("content-type: application/octet-stream"), "{head}");
    let file = site.path().join("saved.html");
    std::fs::write(&file, &answer[answer.find("<!DOCTYPE html>").unwrap()..]).unwrap();
    browser.go(&format!("file://{}", file.display()));
    browser.until("document.querySelectorAll('.entries > li[id]').length > 50");
    assert_eq!(browser.run(FOREIGN), json!([]));
    assert_eq!(browser.run("return window.harm ?? null"), json!(null));
    for query in ["format=html%0d%0aX:%20y", "format=", "", "format=html&keep_secrets=perhaps"] {
        assert_eq!(ask(query).0, 400, "{query}");
    }
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn no_name_of_a_session_reaches_a_list_or_a_facet_alive() {
    let Some(browser) = Browser::open(1440, 900) else { return };
    let mut site = Site::new();
    for (number, attack) in ATTACKS.iter().enumerate() {
        let id = format!("named-{number}");
        let record = |kind: &str, message: Value| {
            let record = json!({
                "type": kind, "uuid": format!("{id}-{kind}"), "sessionId": id, "version": "2.1.0",
                "timestamp": "2026-01-05T09:00:00.000Z", "cwd": format!("/home/{attack}"),
                "gitBranch": attack, "message": message,
            });
            format!("{record}\n")
        };
        let call =
            json!({"type": "tool_use", "id": id, "name": attack, "input": {"command": attack}});
        let answer = json!({
            "id": id, "type": "message", "role": "assistant", "model": attack, "content": [call],
            "usage": {"input_tokens": 40, "output_tokens": 2},
        });
        let result =
            json!({"type": "tool_result", "tool_use_id": id, "content": attack, "is_error": true});
        let lines = [
            record("user", json!({"role": "user", "content": attack})),
            record("assistant", answer),
            record("user", json!({"role": "user", "content": [result]})),
        ];
        std::fs::write(site.path().join(format!("{id}.jsonl")), lines.concat()).unwrap();
    }
    site.try_steno(&["import", site.path().to_str().unwrap()]);
    site.serve_at("2026-01-05T09:01:00Z");
    browser.go(&site.first("/"));
    for page in [
        "/",
        "/?filter=harm",
        "/?sort=cost",
        "/search?q=harm",
        "/quality?since=2026-01-01",
        "/cost?since=2026-01-01&by=project",
        "/activity?since=2026-01-01",
        "/cost?since=2026-01-01",
        "/trends?since=2026-01-01&q=harm",
        "/edits?since=2026-01-01",
        "/compare?a=claude-code/named-1&b=claude-code/named-2",
        "/session/claude-code/named-1#quality",
    ] {
        browser.go(&site.at(page));
        browser.until(&format!("{SCRIPTS_RUN} && !document.querySelector('[data-unfinished]')"));
        assert!(browser.run("return document.body.innerText").to_string().len() > 300, "{page}");
        assert_eq!(browser.run(FOREIGN), json!([]), "{page}");
        assert_eq!(browser.run("return window.harm ?? null"), json!(null), "{page}");
        assert_eq!(browser.complaints(), Vec::<String>::new(), "{page}");
    }
}
