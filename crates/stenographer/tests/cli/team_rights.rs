//! Who sees what in the database of a team: three roles in two teams, and two in none, against every table and function.

use serde_json::json;

use crate::harness::Home;
use crate::postgres_server::PostgresServer;

/// The roles: ada and bob are in one team, eve in another. nemo may use the schema, but is in no team; mallory is nobody.
const ROLES: [&str; 5] = ["ada", "bob", "eve", "nemo", "mallory"];

/// What each role may read of each table: the words of the sessions that it finds there. `-` is a refusal.
///
/// ada has pushed a private session (`apricot`), one for the team (`banana`) and one for everyone (`cherry`).
const TABLES: [(&str, [&str; 5]); 7] = [
    ("meta", ["1", "1", "1", "1", "-"]),
    ("member", ["2", "2", "1", "0", "-"]),
    ("session", ["3", "2", "1", "0", "-"]),
    ("frame", ["3", "2", "1", "0", "-"]),
    ("entry", ["-", "-", "-", "-", "-"]),
    ("usage", ["0", "0", "0", "0", "-"]),
    ("forgotten", ["1", "1", "0", "0", "-"]),
];

/// Calls of each function, and how many rows each role gets. `-` is a refusal.
const FUNCTIONS: [(&str, [&str; 5]); 17] = [
    ("own_team()", ["1", "1", "1", "1", "-"]),
    ("may_see('ada', 'shop', 'private', 'shop')", ["1", "1", "1", "1", "-"]),
    ("is_forgotten('claude-code', 'x')", ["1", "1", "1", "1", "-"]),
    ("is_own(1)", ["1", "1", "1", "1", "-"]),
    ("clear_rows(0)", ["-", "-", "-", "-", "-"]),
    ("remove_old_usage(0, 1::smallint)", ["-", "-", "-", "-", "-"]),
    ("clear_session('none', 'none')", ["1", "1", "1", "-", "-"]),
    ("forget('none', 'none', '{}')", ["1", "1", "1", "-", "-"]),
    ("search('fruit'::tsquery, '[]', '{}', null, 100)", ["3", "2", "1", "0", "-"]),
    ("charges()", ["0", "0", "0", "0", "-"]),
    ("add_member('mallory', 'shop')", ["-", "-", "-", "-", "-"]),
    ("entry_ranges(0, 1)", ["-", "-", "-", "-", "-"]),
    ("pair_checks('[]')", ["-", "-", "-", "-", "-"]),
    ("phrase_checks('[]')", ["-", "-", "-", "-", "-"]),
    ("session_checks('{}')", ["-", "-", "-", "-", "-"]),
    ("entry_checks('{}')", ["-", "-", "-", "-", "-"]),
    ("prune(9e15::bigint, false)", ["-", "-", "-", "-", "-"]),
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
    server.sql("steno", "CREATE ROLE nemo LOGIN IN ROLE steno_member");
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
    let functions = "SELECT proname FROM pg_proc
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

/// All rights on tables, columns and functions of anybody but the owner. `PUBLIC` has none.
const RIGHTS: &str = "\
add_member:
charges: steno_member EXECUTE
clear_rows: steno_member EXECUTE
clear_session: steno_member EXECUTE
entry: steno_member INSERT
entry_checks:
entry_ranges:
forget: steno_member EXECUTE
forgotten: steno_member SELECT
frame: steno_member INSERT, steno_member SELECT
is_forgotten: steno_member EXECUTE
is_own: steno_member EXECUTE
may_see: steno_member EXECUTE
member: steno_member SELECT
meta: steno_member SELECT
own_team: steno_member EXECUTE
pair_checks:
phrase_checks:
prune:
remove_old_usage: steno_member EXECUTE
search: steno_member EXECUTE
session: steno_member INSERT of agent id owner team usage_key_version visibility, steno_member SELECT, \
steno_member UPDATE of branch cost digest ended entries manifest models project revision started taken thread \
title tokens visibility
session_checks:
usage: steno_member INSERT, steno_member SELECT, steno_member UPDATE
";

#[test]
fn nobody_has_another_right() {
    let Some(server) = prepared() else { return };
    let sql = "
        WITH owned AS (
            SELECT regexp_replace(relname, '^entry_(other|[0-9_]+)$', 'partition') AS name,
                coalesce(relacl, acldefault('r', relowner)) AS acl, relowner AS owner, NULL::name AS part
            FROM pg_class WHERE relnamespace = 'steno'::regnamespace AND relkind IN ('r', 'p', 'v', 'm')
            UNION ALL
            SELECT relname, attacl, relowner, attname FROM pg_attribute JOIN pg_class c ON c.oid = attrelid
            WHERE relnamespace = 'steno'::regnamespace AND attacl IS NOT NULL
            UNION ALL
            SELECT proname, coalesce(proacl, acldefault('f', proowner)), proowner, NULL
            FROM pg_proc WHERE pronamespace = 'steno'::regnamespace
        ), granted AS (
            SELECT name, owned.owner, part, grantee, privilege_type FROM owned, aclexplode(acl)
        ), rights AS (
            SELECT name, concat(CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END, ' ',
                privilege_type, ' of ' || string_agg(part, ' ' ORDER BY part)) AS allowed
            FROM granted WHERE grantee <> owner GROUP BY name, grantee, privilege_type)
        SELECT trim(format('%s: %s', name, (SELECT string_agg(allowed, ', ' ORDER BY allowed) FROM rights
            WHERE rights.name = owned.name)))
        FROM owned WHERE name <> 'partition' OR name IN (SELECT name FROM rights) GROUP BY name ORDER BY name COLLATE \"C\"";
    assert_eq!(server.sql("steno", sql), RIGHTS);
    // Functions with the rights of their owner are those that check who asks.
    let sql = "SELECT string_agg(proname, ' ' ORDER BY proname COLLATE \"C\") FROM pg_proc
        WHERE pronamespace = 'steno'::regnamespace AND prosecdef";
    let expected = "charges clear_rows clear_session forget is_forgotten is_own own_team remove_old_usage search";
    assert_eq!(server.sql("steno", sql).trim(), expected);
}

#[test]
fn no_text_is_run_as_sql() {
    let Some(server) = prepared() else { return };
    let hostile = [
        "x' OR true OR 'a' = 'a",
        "x'') OR true --",
        "\\'); DROP TABLE steno.session CASCADE; --",
        "%L %s %I %1$s",
        "$1 $2",
        "'::text) UNION SELECT * FROM steno.session --",
    ];
    let fields =
        ["agent", "session", "thread", "owner", "project", "role", "tool", "model", "errors"];
    let state = "SELECT (SELECT count(*) FROM steno.session), (SELECT count(*) FROM steno.entry),
        (SELECT count(*) FROM steno.member)";
    let before = server.sql("steno", state);
    let search = |conditions: &serde_json::Value, filter: &serde_json::Value| {
        let call = format!("steno.search('fruit', $_${conditions}$_$, $_${filter}$_$, NULL, 100)");
        count(&server, "bob", &call)
    };
    assert_eq!(search(&json!([]), &json!({})), "2");
    for text in hostile {
        for field in fields {
            // Only `errors` has other values than texts; all but `true` select everything.
            let expected = if field == "errors" { "2" } else { "0" };
            assert_eq!(search(&json!([]), &json!({ field: text })), expected, "{field}: {text}");
        }
        for field in ["since", "until"] {
            assert_eq!(search(&json!([]), &json!({ field: text })), "-", "{field}: {text}");
        }
        for place in ["folded", "parts", text] {
            let conditions = json!([{ "any": [{ "in": place, "text": text }] }]);
            assert_eq!(search(&conditions, &json!({})), "0", "{place}: {text}");
            let excluded = json!([{ "any": [{ "in": place, "text": text }], "not": "true" }]);
            assert_eq!(search(&excluded, &json!({})), "2", "not {place}: {text}");
        }
        let query = json!([{ "any": [{ "in": "words", "query": text }] }]);
        assert!(["0", "-"].contains(&search(&query, &json!({})).as_str()), "words: {text}");
        let pairs = json!([{ "any": [{ "in": "folded", "text": " fruit ", "pairs": [text] }] }]);
        assert_eq!(search(&pairs, &json!({})), "-", "pairs: {text}");
        for call in ["is_forgotten", "clear_session"] {
            count(&server, "bob", &format!("steno.{call}($_${text}$_$, $_${text}$_$)"));
        }
    }
    assert_eq!(server.sql("steno", state), before);
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
        "SELECT steno.remove_old_usage((SELECT min(key) FROM steno.session), 9::smallint)",
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
    // No filter of a member's own entry can make the searches of others fail.
    let add = |filter: &str| {
        let entry = format!(
            "INSERT INTO steno.entry (session, number, at, role, kind, source, failed, words, pairs)
            VALUES ((SELECT key FROM steno.session WHERE owner = 'eve'), 99, 0, 'user', 'text', 'primary', false,
                'fruit', {filter})"
        );
        server.psql("eve", "steno", &entry).status.success()
    };
    let own = "INSERT INTO steno.session (team, owner, agent, id, visibility) VALUES ('bank', 'eve', 'a', 'b', 'team')";
    assert!(server.psql("eve", "steno", own).status.success());
    assert!(!add("''") && !add("repeat('x', 1025)::bytea") && add("'12345678'"));
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
