//! A search in the database of a team gives the hits of the local index: 200 queries on the same sessions.

use serde_json::{Value, json};
use steno_model::Clock;
use steno_store::StoreLocation;
use steno_store::index::{EntryFilter, SearchHit, SearchOrder, SearchQuery, SearchRequest};
use steno_team::PostgresRemote;

use crate::harness::{Dice, Home};
use crate::postgres_server::PostgresServer;

const QUERIES: usize = 200;

const SESSIONS: u64 = 12;

const TURNS: u64 = 70;

/// Common words first: the n-th is drawn about n times less often than the first.
const WORDS: [&str; 30] = [
    "the",
    "file",
    "error",
    "test",
    "could",
    "not",
    "open",
    "path",
    "parseLine",
    "snake_case",
    "HTTPServer",
    "src/main.rs",
    "Café",
    "naïve",
    "Überprüfung",
    "日本語",
    "言語版の設定",
    "Привет",
    "мир",
    "größe",
    "ΑΘΗΝΑ",
    "it's",
    "v1.2.3",
    "0xDEADBEEF",
    "getUserName",
    "🚀",
    "e\u{301}tude",
    "한국어",
    "don't",
    "zyzzyva",
];

/// The start of each session in months before and after those with a partition, and in the same month.
const STARTS: [&str; 4] = ["2019-03-05", "2026-01-05", "2026-01-20", "2031-07-01"];

fn word(dice: &mut Dice) -> &'static str {
    let most = dice.below(WORDS.len() as u64) + 1;
    WORDS[dice.below(most) as usize]
}

fn text(dice: &mut Dice) -> String {
    let count = 2 + dice.below(14);
    let words: Vec<&str> = (0..count).map(|_| word(dice)).collect();
    words.join([" ", " ", ", ", "\n"][dice.below(4) as usize])
}

fn session_id(n: u64) -> String {
    format!("{n:08x}-0000-4000-8000-000000000001")
}

/// A session of Claude Code: prompts, answers, and calls of a tool, of which some fail.
fn session(n: u64, dice: &mut Dice) -> String {
    let mut lines = String::new();
    let start = STARTS[n as usize % STARTS.len()];
    for turn in 0..TURNS {
        let uuid = |k: u64| format!("{n:08x}-0000-4000-8000-{:012}", turn * 10 + k);
        // No two entries have the same time, so the order of hits is certain.
        let at = |k: u64| {
            format!("{start}T{:02}:{:02}:{:02}.{:03}Z", turn / 60 + n, turn % 60, k, n * 10)
        };
        let mut push = |k: u64, role: &str, message: Value| {
            let record = json!({"type": role, "uuid": uuid(k), "parentUuid": null, "isSidechain": false,
                "cwd": format!("/home/ada/{}", ["shop", "bank"][n as usize % 2]),
                "sessionId": session_id(n), "version": "2.1.0", "timestamp": at(k), "message": message});
            lines.push_str(&format!("{record}\n"));
        };
        push(0, "user", json!({"role": "user", "content": text(dice)}));
        let model = ["claude-sonnet-4-5", "claude-opus-4-1"][dice.below(2) as usize];
        let call = format!("toolu_{n:04}{turn:08}");
        push(
            1,
            "assistant",
            json!({"id": format!("msg_{n:04}{turn:012}"), "type": "message",
            "role": "assistant", "model": model, "usage": {"input_tokens": 1, "output_tokens": 1},
            "content": [{"type": "text", "text": text(dice)},
                {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": text(dice)}}]}),
        );
        push(
            2,
            "user",
            json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": call,
            "is_error": dice.below(5) == 0, "content": text(dice)}]}),
        );
    }
    lines
}

/// A query such as people write, on words that may occur.
fn query(dice: &mut Dice) -> String {
    let (a, b) = (word(dice), word(dice));
    match dice.below(16) {
        0..=2 => a.to_owned(),
        3 => format!("{a} {b}"),
        4 => format!("\"{a} {b}\""),
        5 => format!("\"{a} {b} {}\"", word(dice)),
        6 => format!("\"{a} {b}\"*"),
        7 => a.chars().take(1 + dice.below(3) as usize).collect::<String>() + "*",
        8 => format!("{a} -{b}x -{b}"),
        9 => format!("{a} -\"{b} {}\"", word(dice)),
        10 => format!("{a} -{}*", b.chars().take(2).collect::<String>()),
        11 => format!("{a} OR {b}"),
        12 => format!("{a} OR \"{b} the\" {}", word(dice)),
        13 => {
            ["parse", "Line", "user name", "server", "snake", "日", "本語", "設定", "etude", "cafe"]
                [dice.below(10) as usize]
                .to_owned()
        }
        14 => a.to_uppercase(),
        _ => a.to_lowercase(),
    }
}

fn filter(dice: &mut Dice) -> EntryFilter {
    let moment = |text: &str| Some(text.parse().unwrap());
    let mut filter = EntryFilter::default();
    match dice.below(14) {
        0 => filter.role = Some("user".to_owned()),
        1 => filter.tool = Some("bash".to_owned()),
        2 => filter.model = Some("OPUS".to_owned()),
        3 => filter.only_errors = true,
        4 => filter.project = Some("shop".to_owned()),
        5 => filter.project = Some("/home/ada".to_owned()),
        6 => filter.agent = Some("codex".to_owned()),
        7 => filter.session = Some(session_id(dice.below(SESSIONS)).parse().unwrap()),
        8 => filter.since = moment("2026-01-05T05:30:00Z"),
        9 => {
            filter.since = moment("2019-03-05T00:00:00Z");
            filter.until = moment("2026-01-20T06:00:00Z");
        }
        _ => {}
    }
    filter
}

/// What must be equal of a hit.
fn facts(hits: &[SearchHit]) -> Vec<String> {
    let fact = |hit: &SearchHit| {
        let SearchHit { session, number, role, tool, copies, text, .. } = hit;
        let at = hit.time.map(|at| at.instant().as_millisecond());
        format!("{session}:{number} {at:?} {role} {tool:?} {copies} {} {text:?}", hit.source)
    };
    hits.iter().map(fact).collect()
}

#[test]
fn hits_are_those_of_the_local_index() {
    let Some(server) = PostgresServer::start() else { return };
    let home = Home::new();
    home.steno(&["remote", "add", "owner", &server.url("postgres")]).ok();
    home.steno(&["remote", "init", "owner"]).ok();
    server.add_member("ada", "shop");
    let mut dice = Dice(7);
    for n in 0..SESSIONS {
        let name = format!(".claude/projects/-home-ada/{}.jsonl", session_id(n));
        home.file(&name, session(n, &mut dice));
    }
    home.steno(&["sync"]).ok();
    home.steno(&["remote", "add", "team", &server.url("ada"), "--no-redact"]).ok();
    home.steno(&["push", "team"]).ok();

    let now = "2026-01-06T09:15:32.5Z".parse().unwrap();
    let local = StoreLocation::new(home.path().join("store"), Clock::fixed(now)).index();
    let local = local.open().unwrap();
    let mut remote = PostgresRemote::connect(&server.url("ada"), None, now).unwrap();
    let (mut with_hits, mut asked) = (0, 0);
    while asked < QUERIES {
        let words = query(&mut dice);
        let Ok(query) = SearchQuery::parse(&words) else { continue };
        asked += 1;
        let filter = filter(&mut dice);
        let limit = [3, 20, 10_000][dice.below(3) as usize];
        let order = SearchOrder::Time;
        let request = SearchRequest { query: &query, filter, order, limit, now };
        let (here, there) = (local.search(&request).unwrap(), remote.search(&request).unwrap());
        with_hits += usize::from(!here.is_empty());
        assert_eq!(facts(&there), facts(&here), "{words} {:?}, at most {limit}", request.filter);
    }
    assert!(with_hits > QUERIES / 2, "only {with_hits} queries have hits");
}

/// A text is read only if all pairs of words of the phrase may be in it. Entries of older versions have no pairs.
#[test]
fn a_phrase_is_looked_for_in_texts_with_its_pairs_of_words() {
    let Some(server) = PostgresServer::start() else { return };
    let home = Home::new();
    home.steno(&["remote", "add", "owner", &server.url("postgres")]).ok();
    home.steno(&["remote", "init", "owner"]).ok();
    server.add_member("ada", "shop");
    home.file(&format!(".claude/projects/-p/{}.jsonl", session_id(0)), session(0, &mut Dice(3)));
    home.steno(&["sync"]).ok();
    home.steno(&["remote", "add", "team", &server.url("ada")]).ok();
    home.steno(&["push", "team"]).ok();
    // The database states another text than the one that the pairs are of.
    let change =
        "UPDATE steno.entry SET folded = ' quince zyzzyva the ', words = 'quince zyzzyva the'
        WHERE number = (SELECT min(number) FROM steno.entry WHERE body IS NOT NULL)";
    server.sql("steno", change);
    let found = |query: &str| {
        let out = home.steno(&["search", query, "--from", "team", "--json", "-n", "100"]);
        out.stdout.lines().count()
    };
    assert_eq!(found("quince zyzzyva"), 1, "words alone need no pairs");
    assert_eq!(found("\"quince zyzzyva\""), 0);
    assert_eq!(found("\"quince zyzzyva\" OR quince"), 1);
    assert_eq!(
        found("quince -\"quince zyzzyva\""),
        0,
        "an excluded phrase is looked for in the text"
    );
    server.sql("steno", "UPDATE steno.entry SET pairs = NULL WHERE words @@ 'quince'");
    assert_eq!(found("\"quince zyzzyva\""), 1);
    assert_eq!(found("\"quince zyzz\"*"), 1);
}
