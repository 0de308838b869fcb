//! Tests of `steno cost`, `steno stats`, `steno statusline`, and of prices in the settings.

use std::fs;

use serde_json::Value;

use crate::harness::{Home, Output};

/// A message: its time, id, model, and millions of output tokens.
type Message = (&'static str, &'static str, &'static str, u64);

const FIRST: &str = "11111111-2fa1-41d2-883f-0016d3cca427";
const SECOND: &str = "22222222-2fa1-41d2-883f-0016d3cca427";

/// Writes a session of Claude Code.
fn claude(home: &Home, id: &str, project: &str, messages: &[Message]) {
    let line = |(time, message, model, millions): &Message| {
        format!(
            "{{\"type\":\"assistant\",\"uuid\":\"{message}-{id}\",\"parentUuid\":null,\
             \"isSidechain\":false,\"cwd\":\"{project}\",\"sessionId\":\"{id}\",\"version\":\"2.1.0\",\
             \"timestamp\":\"{time}\",\"requestId\":\"r-{message}\",\"message\":{{\
             \"id\":\"msg_0123456789_{message}\",\"role\":\"assistant\",\"model\":\"{model}\",\
             \"content\":[{{\"type\":\"text\",\"text\":\"said {message}\"}}],\
             \"usage\":{{\"input_tokens\":3,\"output_tokens\":{}}}}}}}\n",
            millions * 1_000_000
        )
    };
    let name = project.replace('/', "-");
    let text: String = messages.iter().map(line).collect();
    home.file(&format!(".claude/projects/{name}/{id}.jsonl"), text);
}

/// Writes a session of Pi, which reports the cost of each message.
fn pi(home: &Home, model: &str, cost: f64) {
    let text = format!(
        "{{\"type\":\"session\",\"version\":3,\"id\":\"pi-one\",\"timestamp\":\"2026-01-04T08:00:00.000Z\",\
         \"cwd\":\"/code/pi\"}}\n{{\"type\":\"message\",\"id\":\"a\",\"parentId\":null,\
         \"timestamp\":\"2026-01-04T08:00:02.000Z\",\"message\":{{\"role\":\"assistant\",\
         \"content\":[{{\"type\":\"text\",\"text\":\"yes\"}}],\"model\":\"{model}\",\
         \"usage\":{{\"input\":0,\"output\":1000000,\"cost\":{{\"total\":{cost}}}}}}}}}\n"
    );
    home.file(".pi/agent/sessions/--code-pi--/one.jsonl", text);
}

const OPUS: &str = "claude-opus-4-5-20251101";
const HAIKU: &str = "claude-haiku-4-5-20251001";

/// Two sessions; the second starts with a copy of a message of the first.
fn home() -> Home {
    let home = Home::new();
    let shared: Message = ("2026-01-02T23:30:00.000Z", "a", OPUS, 2);
    claude(&home, FIRST, "/code/one", &[shared, ("2026-01-05T08:30:00.000Z", "b", HAIKU, 4)]);
    claude(&home, SECOND, "/code/two", &[shared, ("2026-01-05T09:10:00.000Z", "c", "secret", 1)]);
    home
}

fn synced() -> Home {
    let home = home();
    home.steno(&["sync"]).ok();
    home
}

/// Rows as `key: millions of output tokens, cost, sessions`.
fn rows(output: Output, key: &str) -> Vec<String> {
    let rows = output.ok();
    let rows = rows.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let text = |row: Value| {
        let key = if row["total"] == true { "total".to_owned() } else { row[key].to_string() };
        let millions = row["tokens"]["output"].as_u64().unwrap() / 1_000_000;
        format!("{key}: {millions}, {}, {}", row["cost"], row["sessions"])
    };
    rows.map(text).collect()
}

fn by(home: &Home, group: &str, more: &[&str]) -> Vec<String> {
    rows(home.steno(&[&["cost", "--json", "--by", group], more].concat()), group)
}

#[test]
fn each_message_is_billed_once_and_what_has_no_price_is_named() {
    let home = synced();
    insta::assert_snapshot!(home.steno(&["cost"]), @"
    DAY         INPUT  CACHE WRITE  CACHE READ  OUTPUT      COST
    2026-01-02      3            0           0   2.00M    $50.00
    2026-01-05      6            0           0   5.00M  $20.00+?
    total           9            0           0   7.00M  $70.00+?
    --- stderr
    no price for secret; set one in config.toml
    --- exit 0
    ");
    insta::assert_snapshot!(home.steno(&["cost", "--json", "--since", "2026-01-05"]), @r#"
    {"day":"2026-01-05","tokens":{"input":6,"cache_read":0,"cache_write":0,"cache_write_5m":0,"cache_write_1h":0,"output":5000000,"reasoning":0},"cost":20.000003,"unpriced":["secret"],"sessions":2}
    {"total":true,"tokens":{"input":6,"cache_read":0,"cache_write":0,"cache_write_5m":0,"cache_write_1h":0,"output":5000000,"reasoning":0},"cost":20.000003,"unpriced":["secret"],"sessions":2}
    --- exit 0
    "#);
    insta::assert_snapshot!(home.steno(&["cost", "--by", "session"]), @"
    SESSION                               INPUT  CACHE WRITE  CACHE READ  OUTPUT      COST
    11111111-2fa1-41d2-883f-0016d3cca427      6            0           0   6.00M    $70.00
    22222222-2fa1-41d2-883f-0016d3cca427      3            0           0   1.00M         ?
    total                                     9            0           0   7.00M  $70.00+?
    --- stderr
    no price for secret; set one in config.toml
    --- exit 0
    ");
}

#[test]
fn sums_are_made_by_day_and_by_whatever_is_asked() {
    let home = synced();
    let total = "total: 7, 70.000018, 2";
    assert_eq!(
        by(&home, "week", &[]),
        ["\"2025-12-29\": 2, 50.000015, 1", "\"2026-01-05\": 5, 20.000003, 2", total]
    );
    assert_eq!(by(&home, "month", &[]), ["\"2026-01\": 7, 70.000018, 2", total]);
    assert_eq!(by(&home, "agent", &[]), ["\"claude-code\": 7, 70.000018, 2", total]);
    assert_eq!(by(&home, "thread", &[]), ["null: 7, 70.000018, 2", total]);
    let projects = ["\"/code/one\": 6, 70.000018, 1", "\"/code/two\": 1, null, 1", total];
    assert_eq!(by(&home, "project", &[]), projects);
    let opus = format!("\"{OPUS}\": 2, 50.000015, 1");
    let haiku = format!("\"{HAIKU}\": 4, 20.000003, 1");
    assert_eq!(by(&home, "model", &[]), [&opus, &haiku, "\"secret\": 1, null, 1", total]);
}

#[test]
fn filters_choose_what_is_added_up() {
    let home = synced();
    let total = |more: &[&str]| by(&home, "day", more).pop().unwrap();
    assert_eq!(total(&["--model", "haiku"]), "total: 4, 20.000003, 1");
    assert_eq!(total(&["--project", "two"]), "total: 1, null, 1");
    assert_eq!(total(&["--session", "1111"]), "total: 6, 70.000018, 1");
    assert_eq!(total(&["1111"]), "total: 6, 70.000018, 1");
    assert_eq!(total(&["--agent", "codex"]), "total: 0, 0.0, 0");
    assert_eq!(total(&["--thread", "x"]), "total: 0, 0.0, 0");
    assert_eq!(total(&["--until", "2026-01-02"]), "total: 2, 50.000015, 1");
    // Not a multiple of a quarter of an hour: counted message by message.
    assert_eq!(total(&["--since", "2026-01-05T08:31"]), "total: 1, null, 1");
    let minutes = ["--since", "2026-01-02T23:29", "--until", "2026-01-05T08:31"];
    assert_eq!(total(&minutes), "total: 6, 70.000018, 1");
    assert_eq!(total(&["--until", "2026-01-05T09:09"]), "total: 6, 70.000018, 1");
}

#[test]
fn days_are_those_of_the_zone() {
    let home = synced();
    let days = by(&home, "day", &["--timezone", "Asia/Tokyo", "--until", "2026-01-03"]);
    assert_eq!(days, ["\"2026-01-03\": 2, 50.000015, 1", "total: 2, 50.000015, 1"]);
    insta::assert_snapshot!(home.steno(&["cost", "--timezone", "Mars"]), @"
    --- stderr
    error: unknown time zone: Mars
    hint: use a name such as UTC or Europe/Berlin
    --- exit 1
    ");
}

#[test]
fn files_give_the_same_costs_without_a_store() {
    let (home, bare) = (synced(), home());
    for group in ["day", "model", "agent", "block"] {
        assert_eq!(by(&home, group, &[]), by(&bare, group, &["--no-index"]), "{group}");
    }
    assert!(!bare.path().join("store").exists());
    let one = [".claude/projects/-code-one", "--session", "1111"];
    let named = by(&bare, "day", &[&["--no-index"], &one[..]].concat());
    assert_eq!(named.last().unwrap(), "total: 6, 70.000018, 1");
    let latest = by(&bare, "model", &["--no-index", "--session", "latest"]);
    assert_eq!(latest, ["\"secret\": 1, null, 1", "total: 1, null, 1"]);
    insta::assert_snapshot!(bare.steno(&["cost", "--no-index", "--session", "x"]), @"
    --- stderr
    error: no such session: x
    --- exit 1
    ");
    insta::assert_snapshot!(bare.steno(&["cost", "--no-index", "nowhere"]), @"
    --- stderr
    error: could not open $HOME/nowhere
    caused by: No such file or directory (os error 2)
    hint: check that the path exists
    no charges
    --- exit 1
    ");
    assert_eq!(bare.steno(&["cost", ".claude"]).code, 2);
    assert_eq!(bare.steno(&["cost", "somewhere"]).code, 1);
}

/// The files are not in the repository: `STENO_FIXTURES` is their folder.
#[test]
fn files_of_all_agents_give_the_same_costs_without_a_store() {
    let Some(fixtures) = std::env::var_os("STENO_FIXTURES") else {
        eprintln!("STENO_FIXTURES is not set: nothing is compared");
        return;
    };
    let fixtures = fixtures.into_string().unwrap();
    let home = Home::new();
    home.steno(&["sync", &fixtures]);
    for group in ["model", "block"] {
        let kept = home.steno(&["cost", "--json", "--by", group]).stdout;
        assert!(kept.lines().count() > 10, "{kept}");
        let read = home.steno(&["cost", "--json", "--by", group, "--no-index", &fixtures]).stdout;
        assert_eq!(kept, read, "{group}");
    }
}

#[test]
fn a_copy_of_a_session_is_billed_once() {
    let home = Home::new();
    let id = "0190a000-0000-7000-8000-000000000001";
    let line = |second: usize, kind: &str, payload: &str| {
        format!(
            "{{\"timestamp\":\"2026-01-05T09:00:{second:02}.000Z\",\"type\":\"{kind}\",\"payload\":{payload}}}\n"
        )
    };
    let usage = "{\"input_tokens\":100,\"cached_input_tokens\":40,\"output_tokens\":7,\
                 \"reasoning_output_tokens\":0,\"total_tokens\":107}";
    let text = [
        line(0, "session_meta", &format!("{{\"id\":\"{id}\",\"timestamp\":\"2026-01-05T09:00:00.000Z\",\"cwd\":\"/p\",\"originator\":\"codex_cli_rs\",\"cli_version\":\"0.99.0\"}}")),
        line(1, "turn_context", "{\"cwd\":\"/p\",\"model\":\"gpt-5\"}"),
        line(2, "response_item", "{\"type\":\"message\",\"role\":\"assistant\",\"content\":[{\"type\":\"output_text\",\"text\":\"Done\"}]}"),
        line(3, "event_msg", &format!("{{\"type\":\"token_count\",\"info\":{{\"total_token_usage\":{usage},\"last_token_usage\":{usage}}}}}")),
    ]
    .concat();
    for folder in ["sessions/2026/01/05", "archived_sessions"] {
        home.file(&format!(".codex/{folder}/rollout-2026-01-05T09-00-00-{id}.jsonl"), &text);
    }
    let read = home.steno(&["cost", "--json", "--by", "agent", "--no-index"]).ok();
    home.steno(&["sync"]).ok();
    assert_eq!(home.steno(&["cost", "--json", "--by", "agent"]).ok(), read);
    assert!(read.contains("\"input\":60,\"cache_read\":40"), "{read}");
}

#[test]
fn show_and_diff_explain_a_cost_that_the_ledger_counts_elsewhere() {
    let home = Home::new();
    let (shared, own) =
        (("2026-01-02T23:30:00.000Z", "a", OPUS, 2), ("2026-01-05T08:30:00.000Z", "b", HAIKU, 4));
    claude(&home, FIRST, "/code/one", &[shared]);
    claude(&home, SECOND, "/code/two", &[shared, own]);
    home.steno(&["sync"]).ok();
    let shown = |session: &str| {
        let text = home.steno(&["show", session]).ok();
        text.lines().nth(2).unwrap().to_owned()
    };
    assert!(shown(FIRST).contains("$50.00"), "{}", shown(FIRST));
    assert!(shown(SECOND).contains("$70.00"), "{}", shown(SECOND));
    // The message that both have counts in the first.
    let explained = format!(
        "{SECOND} cost $70.00; $20.00 of it is counted here, the rest in sessions with the same messages\n"
    );
    assert_eq!(home.steno(&["show", SECOND]).stderr, explained);
    assert_eq!(home.steno(&["show", FIRST]).stderr, "");
    let compared = home.steno(&["diff", FIRST, SECOND]);
    assert!(compared.stdout.contains("$50.00") && compared.stdout.contains("$70.00"), "{compared}");
    assert_eq!(compared.stderr, explained);
    // Without a store, there is nothing to explain.
    let fresh = Home::new();
    claude(&fresh, SECOND, "/code/two", &[shared, own]);
    let path = fresh.path().join(format!(".claude/projects/-code-two/{SECOND}.jsonl"));
    let shown = fresh.steno(&["show", path.to_str().unwrap()]);
    assert!(shown.stdout.contains("$70.00") && shown.stderr.is_empty(), "{shown}");
}

#[test]
fn what_an_agent_states_can_be_taken() {
    let home = Home::new();
    pi(&home, OPUS, 7.5);
    home.steno(&["sync"]).ok();
    let cost = |mode| by(&home, "agent", &["--mode", mode]).pop().unwrap();
    assert_eq!(cost("auto"), "total: 1, 7.5, 1");
    assert_eq!(cost("calculate"), "total: 1, 25.0, 1");
    assert_eq!(cost("stated"), "total: 1, 7.5, 1");
    let silent = synced();
    assert_eq!(by(&silent, "agent", &["--mode", "stated"]).pop().unwrap(), "total: 7, null, 2");
}

#[test]
fn blocks_take_five_hours_and_the_open_one_is_projected() {
    let home = synced();
    insta::assert_snapshot!(home.steno(&["cost", "--by", "block", "--model", "claude"]), @"
    BLOCK               INPUT  CACHE WRITE  CACHE READ  OUTPUT    COST
    2026-01-02 23:00        3            0           0   2.00M  $50.00
    2026-01-05 08:00 *      3            0           0   4.00M  $20.00
    total                   6            0           0   6.00M  $70.00
    * ends in 3h 44m
    --- exit 0
    ");
    let json = home.steno(&["cost", "--by", "block", "--since", "2026-01-05", "--json"]);
    insta::assert_snapshot!(json, @r#"
    {"block":"2026-01-05T08:00:00Z","end":"2026-01-05T13:00:00Z","gap":false,"active":true,"first":"2026-01-05T08:30:00Z","last":"2026-01-05T09:10:00Z","burn":{"tokens_per_minute":125000.15,"cost_per_hour":30.0000045},"projection":{"minutes_left":224,"tokens":33057331,"cost":132.229186501},"tokens":{"input":6,"cache_read":0,"cache_write":0,"cache_write_5m":0,"cache_write_1h":0,"output":5000000,"reasoning":0},"cost":20.000003,"unpriced":["secret"],"sessions":2}
    {"total":true,"tokens":{"input":6,"cache_read":0,"cache_write":0,"cache_write_5m":0,"cache_write_1h":0,"output":5000000,"reasoning":0},"cost":20.000003,"unpriced":["secret"],"sessions":2}
    --- exit 0
    "#);
}

#[test]
fn a_drawing_has_a_bar_for_each_day() {
    let home = synced();
    home.steno(&["cost", "--svg", "cost.svg"]).ok();
    let text = fs::read_to_string(home.path().join("cost.svg")).unwrap();
    let titles: Vec<&str> =
        text.split("<title>").skip(1).map(|rest| rest.split('<').next().unwrap()).collect();
    assert_eq!(titles, ["2026-01-02: $50.00", "2026-01-05: $20.00"]);
    insta::assert_snapshot!(home.steno(&["cost", "--svg", "no/where.svg"]), @"
    --- stderr
    error: could not write $HOME/no/where.svg: No such file or directory (os error 2)
    hint: give a file in an existing folder that can be written
    --- exit 1
    ");
}

#[test]
fn prices_can_be_set() {
    let home = synced();
    let config = "[prices.secret]\ninput = 0\noutput = 1.5\n\n[aliases]\n\"claude-haiku-4-5-20251001\" = \"secret\"\n";
    home.file("store/config.toml", config);
    assert_eq!(by(&home, "month", &[]).pop().unwrap(), "total: 7, 57.500015, 2");
}

#[test]
fn an_unknown_section_of_the_settings_is_an_error() {
    let home = synced();
    home.file("store/config.toml", "# mine\n\n[sycn]\nautomatic = true\n");
    let output = home.steno(&["cost"]);
    let message = "error: $HOME/store/config.toml:3: unknown setting: sycn\n\
        hint: the sections are: agents, aliases, budget, encryption, gateway, keep, prices, private, proxy, redact, remote, run, serve, sync, upstreams";
    assert!(output.stderr.starts_with(message), "{output}");
    assert_eq!(output.code, 1);
}

#[test]
fn a_budget_of_a_project_without_sessions_is_reported() {
    let home = synced();
    home.file("store/config.toml", "[budget]\nprojects = { ome = 60, two = 50 }\n");
    let warning = "[budget] projects: no session has the project ome; the nearest is /code/one\n";
    let output = home.steno(&["cost", "--check"]);
    assert_eq!(output.code, 0, "{output}");
    assert_eq!(output.stderr, format!("warning: {warning}"));
    let output = home.steno(&["doctor"]);
    assert!(output.code == 1 && output.stdout.contains(&format!("problem: {warning}")), "{output}");
    home.file("store/config.toml", "[budget]\nprojects = { one = 60, two = 50 }\n");
    assert!(!home.steno(&["doctor"]).stdout.contains("[budget]"));
}

#[test]
fn budgets_are_checked_and_crossed_ones_reported() {
    let home = synced();
    let check = |config: &str, args: &[&str]| {
        home.file("store/config.toml", config);
        home.steno(args)
    };
    let output = check("[budget]\nday = 25\nmonth = 100.5\n", &["cost", "--check"]);
    assert_eq!(
        (output.code, output.stdout.as_str()),
        (0, "today: $20.00 of $25.00\nthis month: $70.00 of $100.50\n")
    );
    let crossed = "[budget]\nday = 25\nprojects = { one = 60, two = 5 }\n";
    let output = check(crossed, &["cost", "--check"]);
    assert_eq!(output.code, 1, "{output}");
    let lines = "today: $20.00 of $25.00\none this month: $70.00 of $60.00 (crossed)\ntwo this month: $0.00 of $5.00\n";
    assert_eq!(output.stdout, lines);
    let output = check(crossed, &["cost", "--check", "--json"]);
    assert!(
        output.stdout.contains("{\"budget\":\"one this month\",\"limit\":60.0,\"spent\":70.0"),
        "{output}"
    );
    let output = check(crossed, &["cost"]);
    assert_eq!(output.code, 0, "{output}");
    assert!(output.stderr.contains("over budget: one this month: $70.00 of $60.00"), "{output}");
    assert!(status(&home, "").contains("over budget one this month: $60.00"));
    let output = check("", &["cost", "--check"]);
    // Only a crossed budget is 1.
    assert!(output.code == 2 && output.stderr.contains("config.toml has no budgets"), "{output}");
    let broken = check("[budget\n", &["cost", "--check"]);
    assert!(broken.code == 2 && !broken.stderr.contains("prices"), "{broken}");
    let wrong = check("[budget]\nday = 'x'\n", &["cost", "--check"]);
    assert!(wrong.code == 2 && wrong.stderr.contains("budgets are dollars"), "{wrong}");
    let selected = check(crossed, &["cost", "--check", "--project", "two"]);
    assert_eq!((selected.code, selected.stdout.as_str()), (2, ""), "{selected}");
    // The example in the hint can be pasted.
    let (_, hint) = output.stderr.split_once("budgets are dollars:\n").unwrap();
    let output = check(hint, &["cost", "--check"]);
    assert!(output.stdout.starts_with("today: "), "{output}");
}

#[test]
fn errors_in_the_settings_are_reported_with_their_line() {
    let home = synced();
    let payload = |text: &str| {
        home.file("store/config.toml", text);
        let output = home.steno(&["cost"]);
        assert_eq!(output.code, 1, "{output}");
        output.stderr.lines().next().unwrap().to_owned()
    };
    let wrong = [
        "prices = 3",
        "\n[prices.x]\ninput = 1",
        "[prices.x]\ninput = 1\noutput = \"much\"",
        "[prices.x]\ninput = 1\noutput = 2\ncache = 3",
        "[aliases]\nx = 1",
        "[budget]\nday = \"much\"",
        "[budget]\nyear = 3",
        "\n\n[prices",
    ];
    insta::assert_snapshot!(wrong.map(payload).join("\n"), @"
    error: $HOME/store/config.toml:1: prices is not a table
    error: $HOME/store/config.toml:2: x needs both input and output
    error: $HOME/store/config.toml:3: output is not a price in dollars
    error: $HOME/store/config.toml:4: unknown price cache; one of: input, output, cache_read, cache_write_5m, cache_write_1h
    error: $HOME/store/config.toml:2: the alias x is not a model's name
    error: $HOME/store/config.toml:2: day is not an amount in dollars
    error: $HOME/store/config.toml:2: unknown budget year; one of: day, month, projects
    error: $HOME/store/config.toml:3: unclosed table, expected `]`
    ");
}

#[test]
fn stats_show_all_on_one_page() {
    let home = synced();
    insta::assert_snapshot!(home.steno(&["stats"]), @"
    2 sessions, 3 entries (and 1 copied from other sessions), 0 prompts
    tokens: 9 in, 0 cache written, 0 cache read, 7.00M out
    cost: $70.00+?
    2 active days from 2026-01-02 to 2026-01-05, current streak 1, longest 1
    busiest day: 2026-01-05 (2 entries)
    busiest hour: 08:00

    MODEL
    claude-opus-4-5-20251101                            $50.00
    claude-haiku-4-5-20251001                           $20.00
    secret                                                   ?

    PROJECT
    /code/one                                                1
    /code/two                                                1

    AGENT
    claude-code                                              2
    --- exit 0
    ");
    insta::assert_snapshot!(home.steno(&["stats", "--json", "--session", "2222", "-n", "1"]), @r#"
    {"sessions":1,"sessions_without_entries":0,"entries":2,"copied_entries":0,"prompts":0,"tokens":{"input":3,"cache_read":0,"cache_write":0,"cache_write_5m":0,"cache_write_1h":0,"output":1000000,"reasoning":0},"cost":null,"unpriced":["secret"],"first_day":"2026-01-02","last_day":"2026-01-05","days":2,"streak":1,"longest_streak":1,"busiest_day":{"day":"2026-01-02","entries":1},"hours":[0,0,0,0,0,0,0,0,0,1,0,0,0,0,0,0,0,0,0,0,0,0,0,1],"agents":[{"agent":"claude-code","sessions":1}],"projects":[{"project":"/code/two","sessions":1}],"models":[{"model":"secret","tokens":{"input":3,"cache_read":0,"cache_write":0,"cache_write_5m":0,"cache_write_1h":0,"output":1000000,"reasoning":0},"cost":null}],"tools":[]}
    --- exit 0
    "#);
    let unknown = Home::new().steno(&["stats", "--agent", "nope"]);
    assert!(unknown.stderr.contains("no sessions of agent nope"), "{unknown}");
    assert_eq!(unknown.code, 1);
    insta::assert_snapshot!(Home::new().steno(&["stats"]), @"
    --- stderr
    no sessions yet; run `steno sync`
    --- exit 0
    ");
}

#[test]
fn absurd_counts_are_no_reason_to_fail() {
    let home = Home::new();
    let absurd = u64::MAX / 1_000_000;
    let messages = [
        ("2026-01-05T08:00:00.000Z", "a", OPUS, absurd),
        ("2026-01-05T08:01:00.000Z", "b", OPUS, absurd),
    ];
    claude(&home, FIRST, "/code/one", &messages);
    claude(&home, SECOND, "/code/two", &[("2026-01-05T08:02:00.000Z", "c", HAIKU, absurd)]);
    home.steno(&["sync"]).ok();
    for more in [
        &["--by", "day"][..],
        &["--by", "block"],
        &["--no-index"],
        &["--since", "2026-01-05T00:01"],
    ] {
        let rows = home.steno(&[&["cost", "--json"], more].concat()).ok();
        assert!(rows.contains("\"output\":9223372036854775807"), "{rows}");
    }
    home.steno(&["stats"]).ok();
    status(&home, "");
}

/// JSON that Claude Code passes to its status line.
fn payload(session: &str, cost: f64, minutes: u64, more: &str) -> String {
    format!(
        "{{\"hook_event_name\":\"Status\",\"session_id\":\"{session}\",\"cwd\":\"/code/one\",\
         \"model\":{{\"id\":\"{OPUS}\",\"display_name\":\"Opus 4.5\"}},\"version\":\"2.1.0\",\
         \"cost\":{{\"total_cost_usd\":{cost},\"total_duration_ms\":{}}}{more}}}",
        minutes * 60_000
    )
}

/// Returns the status line, which must always be printed.
fn status(home: &Home, input: &str) -> String {
    let output = home.steno_with(&["statusline"], input.as_bytes());
    assert_eq!((output.stderr.as_str(), output.stdout.lines().count()), ("", 1), "{output}");
    output.ok().trim_end().to_owned()
}

#[test]
fn the_status_line_combines_the_index_and_the_payload() {
    let home = synced();
    let window = ",\"context_window\":{\"context_window_size\":200000,\"used_percentage\":22}";
    let limits =
        ",\"rate_limits\":{\"five_hour\":{\"used_percentage\":41.7,\"resets_at\":1767609000}}";
    let lines = [
        // All but half a dollar of the session is in the index.
        status(&home, &payload(FIRST, 70.500_018, 10, window)),
        status(&home, &payload(FIRST, 70.500_018, 10, limits)),
        // A session that is not in the index counts from its start.
        status(&home, &payload("new", 3.0, 10, "")),
        status(&home, &payload("new", 3.0, 60, "")),
        status(&home, &payload("new", 3.0, 60 * 24, "")),
        status(&home, ""),
        status(&home, "{\"model\":\"o\\u001b[2Jx\",\"cost\":[]}"),
    ];
    insta::assert_snapshot!(lines.join("\n"), @"
    Opus 4.5 · $70.50 session · $20.50 today · $20.50 block, 3h 44m left · $30.00/h · 22% of 200k context
    Opus 4.5 · $70.50 session · $20.50 today · $20.50 block, 1h 14m left · $30.00/h · 42% of limit
    Opus 4.5 · $3.00 session · $23.00 today · $23.00 block, 3h 44m left · $30.00/h
    Opus 4.5 · $3.00 session · $23.00 today · $23.00 block, 3h 44m left · $30.00/h
    Opus 4.5 · $3.00 session · $20.00 today · $20.00 block, 3h 44m left · $30.00/h
    $20.00 today · $20.00 block, 3h 44m left · $30.00/h
    o[2Jx · $20.00 today · $20.00 block, 3h 44m left · $30.00/h
    ");
}

#[test]
fn the_status_line_comes_without_a_store_and_with_broken_settings() {
    let home = Home::new();
    assert_eq!(status(&home, &payload("new", 3.0, 10, "")), "Opus 4.5 · $3.00 session");
    assert_eq!(status(&home, ""), "no sessions yet");
    assert!(!home.path().join("store").exists());
    let home = synced();
    home.file("store/config.toml", "[prices");
    assert_eq!(status(&home, ""), "$20.00 today · $20.00 block, 3h 44m left · $30.00/h");
    fs::remove_file(home.path().join("store/index.db-wal")).unwrap();
    home.file("store/index.db", "no database at all");
    assert_eq!(status(&home, ""), "no sessions yet");
}

#[test]
fn the_status_line_reads_the_context_at_the_end_of_the_transcript() {
    let home = Home::new();
    let answer = |read: u64, side: bool| {
        format!(
            "{{\"type\":\"assistant\",\"isSidechain\":{side},\"message\":{{\"usage\":\
             {{\"input_tokens\":1000,\"cache_read_input_tokens\":{read},\"output_tokens\":9}}}}}}\n"
        )
    };
    let text = [answer(9_000, false), answer(49_000, false), answer(99_000, true)].concat();
    let path = home.file("transcript.jsonl", format!("{text}{{\"type\":\"user\"}}\n{{\"torn"));
    let path = format!(",\"transcript_path\":{:?}", path.to_str().unwrap());
    let line = status(&home, &payload(FIRST, 1.0, 10, &path));
    assert_eq!(line, "Opus 4.5 · $1.00 session · 25% of 200k context");
}

#[test]
fn sessions_without_a_row_are_explained() {
    let home = Home::new();
    let line = |session: &str, role: &str, message: &str| {
        format!(
            r#"{{"type":"{role}","uuid":"{session}-{role}","sessionId":"{session}","timestamp":"2026-01-05T09:00:00Z","cwd":"/w","version":"2.1.0","requestId":"r1","message":{message}}}"#
        ) + "\n"
    };
    let prompt = r#"{"role":"user","content":"Hi"}"#;
    let answer = r#"{"id":"m1","role":"assistant","model":"claude-opus-4-5","content":[{"type":"text","text":"Ho"}],"usage":{"input_tokens":5,"output_tokens":7}}"#;
    for session in ["aaaa1111", "bbbb2222"] {
        let text = line(session, "user", prompt) + &line(session, "assistant", answer);
        home.file(&format!("logs/{session}.jsonl"), text);
    }
    home.file("logs/cccc3333.jsonl", line("cccc3333", "user", prompt));
    home.steno(&["import", "logs"]).ok();
    let cost = home.steno(&["cost", "--by", "session"]);
    assert_eq!(cost.stdout.lines().count(), 3, "{cost}");
    assert_eq!(
        cost.stderr,
        "1 of 3 sessions state no usage and have no row\n\
         1 of 3 sessions have no row because their messages are counted in others\n"
    );
}
