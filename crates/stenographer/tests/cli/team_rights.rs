//! Who sees what in the database of a team: three roles in two teams, against every table and function.

use serde_json::json;

use crate::harness::Home;
use crate::postgres_server::PostgresServer;

/// The roles: ada and bob are in one team, eve in another, mallory in none.
const ROLES: [&str; 4] = ["ada", "bob", "eve", "mallory"];

/// What each role may read of each table: the words of the sessions that it finds there. `-` is a refusal.
///
/// ada has pushed a private session (`apricot`), one for the team (`banana`) and one for everyone (`cherry`).
const TABLES: [(&str, [&str; 4]); 7] = [
    ("meta", ["1", "1", "1", "-"]),
    ("member", ["2", "2", "1", "-"]),
    ("session", ["3", "2", "1", "-"]),
    ("frame", ["3", "2", "1", "-"]),
    ("entry", ["-", "-", "-", "-"]),
    ("usage", ["0", "0", "0", "-"]),
    ("forgotten", ["1", "1", "0", "-"]),
];

/// Calls of each function, and how many rows each role gets. `-` is a refusal.
const FUNCTIONS: [(&str, [&str; 4]); 10] = [
    ("own_team()", ["1", "1", "1", "-"]),
    ("may_see('ada', 'shop', 'private', 'shop')", ["1", "1", "1", "-"]),
    ("is_forgotten('claude-code', 'x')", ["1", "1", "1", "-"]),
    ("is_own(1)", ["1", "1", "1", "-"]),
    ("clear_rows(0)", ["-", "-", "-", "-"]),
    ("clear_session('none', 'none')", ["1", "1", "1", "-"]),
    ("forget('none', 'none', '{}')", ["1", "1", "1", "-"]),
    ("search('fruit'::tsquery, '[]', '{}', null, 100)", ["3", "2", "1", "-"]),
    ("charges()", ["0", "0", "0", "-"]),
    ("add_member('mallory', 'shop')", ["-", "-", "-", "-"]),
];

fn line(id: &str, text: &str) -> String {
    let record = json!({"type": "user", "uuid": "00000000-0000-4000-8000-000000000001",
        "parentUuid": null, "isSidechain": false, "cwd": "/p", "sessionId": id, "version": "2.1.0",
        "timestamp": "2026-01-05T09:15:00.000Z", "message": {"role": "user", "content": text}});
    format!("{record}\n")
}

/// Pushes one session as a role.
fn push_as(server: &PostgresServer, role: &str, word: &str, visibility: &str) {
    let home = Home::new();
    let id = format!("{word}-0000-4000-8000-000000000001");
    home.file(&format!(".claude/projects/-p/{id}.jsonl"), line(&id, &format!("a {word} fruit")));
    home.steno(&["sync"]).ok();
    let url = server.url(role);
    home.steno(&["remote", "add", "team", &url, "--visibility", visibility]).ok();
    home.steno(&["push"]).ok();
}

fn prepared() -> Option<PostgresServer> {
    let server = PostgresServer::start()?;
    let home = Home::new();
    home.steno(&["remote", "add", "team", &server.url("postgres")]).ok();
    home.steno(&["remote", "init", "team"]).ok();
    for (role, team) in [("ada", "shop"), ("bob", "shop"), ("eve", "bank")] {
        server.add_member(role, team);
    }
    server.sql("steno", "CREATE ROLE mallory LOGIN");
    push_as(&server, "ada", "apricot", "private");
    push_as(&server, "ada", "banana", "team");
    push_as(&server, "ada", "cherry", "everyone");
    server.sql(
        "steno",
        "INSERT INTO steno.forgotten VALUES ('shop', 'ada', 'claude-code', 'x', '{}')",
    );
    Some(server)
}

/// The number of rows that a role gets, or `-`.
fn count(server: &PostgresServer, role: &str, from: &str) -> String {
    let output = server.psql(role, "steno", &format!("SELECT count(*) FROM {from}"));
    match output.status.success() {
        true => String::from_utf8(output.stdout).unwrap().trim().to_owned(),
        false => "-".to_owned(),
    }
}

#[test]
fn each_role_sees_only_what_it_may() {
    let Some(server) = prepared() else { return };
    let all = "SELECT relname FROM pg_class WHERE relnamespace = 'steno'::regnamespace
        AND relkind IN ('r', 'p', 'v', 'm') AND relname !~ '^entry_' ORDER BY 1";
    let mut known: Vec<&str> = TABLES.iter().map(|(name, _)| *name).collect();
    known.sort_unstable();
    assert_eq!(server.sql("steno", all).lines().collect::<Vec<_>>(), known, "every table");
    let without = "SELECT relname FROM pg_class WHERE relnamespace = 'steno'::regnamespace
        AND relkind IN ('r', 'p') AND NOT relrowsecurity";
    assert_eq!(server.sql("steno", without), "", "row level security everywhere");
    let functions = "SELECT DISTINCT proname FROM pg_proc
        WHERE pronamespace = 'steno'::regnamespace ORDER BY 1";
    let mut known: Vec<&str> =
        FUNCTIONS.iter().map(|(call, _)| call.split('(').next().unwrap()).collect();
    known.sort_unstable();
    assert_eq!(server.sql("steno", functions).lines().collect::<Vec<_>>(), known, "every function");
    let open = "SELECT proname FROM pg_proc WHERE pronamespace = 'steno'::regnamespace
        AND NOT coalesce(proconfig::text LIKE '%search_path=%', false)";
    assert_eq!(server.sql("steno", open), "", "every function has a fixed search_path");
    for (table, expected) in TABLES {
        let found = ROLES.map(|role| count(&server, role, &format!("steno.{table}")));
        assert_eq!(found, expected.map(str::to_owned), "{table}");
    }
    for (call, expected) in FUNCTIONS {
        let found = ROLES.map(|role| count(&server, role, &format!("steno.{call}")));
        assert_eq!(found, expected.map(str::to_owned), "{call}");
    }
    for partition in ["entry_2026_01", "entry_other"] {
        for role in ROLES {
            assert_eq!(count(&server, role, &format!("steno.{partition}")), "-", "{partition}");
        }
    }
}

#[test]
fn nobody_writes_for_others() {
    let Some(server) = prepared() else { return };
    let attempts = [
        "INSERT INTO steno.session (team, owner, agent, id, visibility) VALUES ('shop', 'ada', 'a', 'b', 'team')",
        "INSERT INTO steno.session (team, owner, agent, id, visibility) VALUES ('bank', 'bob', 'a', 'b', 'team')",
        "INSERT INTO steno.frame VALUES ((SELECT min(key) FROM steno.session), 'x', 'y')",
        "INSERT INTO steno.entry (session, number, at, role, kind, source, failed)
            VALUES ((SELECT min(key) FROM steno.session), 99, 0, 'user', 'text', 'primary', false)",
        "SELECT steno.clear_rows((SELECT min(key) FROM steno.session))",
        "UPDATE steno.session SET owner = 'bob'",
        "DELETE FROM steno.session",
        "DELETE FROM steno.forgotten",
        "INSERT INTO steno.member VALUES ('bob', 'bank')",
        "UPDATE steno.meta SET value = 2",
        "TRUNCATE steno.entry",
        "CREATE TABLE steno.mine ()",
    ];
    for role in ["bob", "eve", "mallory"] {
        for attempt in attempts {
            let done = server.psql(role, "steno", attempt);
            assert!(!done.status.success(), "{role}: {attempt}");
        }
        // These concern no row of the role's own, so they change nothing.
        for attempt in [
            "UPDATE steno.session SET visibility = 'everyone'",
            "SELECT steno.clear_session('claude-code', id) FROM steno.session",
            "SELECT steno.forget('claude-code', id, '{}') FROM steno.session",
        ] {
            server.psql(role, "steno", attempt);
        }
    }
    let kept = server.sql("steno", "SELECT id, visibility FROM steno.session ORDER BY 1");
    let kept: Vec<&str> = kept.lines().map(|line| line.split('|').nth(1).unwrap()).collect();
    assert_eq!(kept, ["private", "team", "everyone"]);
    // A role that pretends to be in another team by a setting or another user gains nothing.
    let tricks =
        "SET steno.org = 'shop'; SET ROLE steno_member; SELECT count(*) FROM steno.session";
    assert_eq!(String::from_utf8(server.psql("eve", "steno", tricks).stdout).unwrap().trim(), "1");
}

#[test]
fn commands_show_nothing_of_others() {
    let Some(server) = prepared() else { return };
    for (role, words) in [("bob", vec!["banana", "cherry"]), ("eve", vec!["cherry"])] {
        let home = Home::new();
        home.steno(&["remote", "add", "team", &server.url(role)]).ok();
        let outputs = [
            home.steno(&["list", "--from", "team", "--json"]).ok(),
            home.steno(&["search", "fruit", "--from", "team", "--json"]).ok(),
            home.steno(&["cost", "--by", "session", "--from", "team", "--json"]).stdout,
        ];
        for output in &outputs[..2] {
            for word in ["apricot", "banana", "cherry"] {
                assert_eq!(output.contains(word), words.contains(&word), "{role} {word}: {output}");
            }
        }
        assert!(!outputs[2].contains("apricot"));
        let shown = home.steno(&["show", "apricot-0000-4000-8000-000000000001", "--from", "team"]);
        assert_eq!(shown.code, 1, "{shown}");
    }
}
