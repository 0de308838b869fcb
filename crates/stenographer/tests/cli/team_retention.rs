//! How long the database of a team keeps sessions, and how its schema is migrated.

use serde_json::{Value, json};

use crate::harness::Home;
use crate::postgres_server::PostgresServer;

/// A session of one prompt on one day.
fn session(id: &str, day: &str) -> String {
    let record = json!({"type": "user", "uuid": "00000000-0000-4000-8000-000000000001",
        "parentUuid": null, "isSidechain": false, "cwd": "/p", "sessionId": id, "version": "2.1.0",
        "timestamp": format!("{day}T09:15:00.000Z"), "message": {"role": "user", "content": "fruit"}});
    format!("{record}\n")
}

/// Runs a command that must succeed, in January 2026. Returns its row.
fn row(home: &Home, args: &[&str]) -> Value {
    let mut command = home.command(args);
    command.env("STENO_NOW", "2026-01-06T09:15:32.5Z");
    serde_json::from_str(&home.finish(command, b"").ok()).unwrap()
}

#[test]
fn old_sessions_are_removed_and_not_pushed_again() {
    let Some(server) = PostgresServer::start() else { return };
    let owner = Home::new();
    owner.steno(&["remote", "add", "team", &server.url("postgres")]).ok();
    owner.steno(&["remote", "init", "team"]).ok();
    server.add_member("ada", "shop");
    let ada = Home::new();
    let days = ["2019-03-05", "2025-02-03", "2025-02-20", "2025-11-20", "2026-01-05"];
    for (n, day) in days.iter().enumerate() {
        let id = format!("{n:08x}-0000-4000-8000-000000000001");
        ada.file(&format!(".claude/projects/-p/{id}.jsonl"), session(&id, day));
    }
    // It began before the limit, and ended after it.
    let id = "0000000a-0000-4000-8000-000000000001";
    let text = session(id, "2025-11-21") + &session(id, "2026-01-04").replace("0001\"", "0002\"");
    ada.file(&format!(".claude/projects/-p/{id}.jsonl"), text);
    ada.steno(&["sync"]).ok();
    ada.steno(&["remote", "add", "team", &server.url("ada")]).ok();
    assert_eq!(row(&ada, &["push", "--json"])["sessions"], 6);

    let unlimited = owner.steno(&["remote", "prune", "team"]);
    assert!(unlimited.code == 1 && unlimited.stderr.contains("keep = \"365d\""), "{unlimited}");
    let config = owner.path().join("store/config.toml");
    let settings = std::fs::read_to_string(&config).unwrap() + "keep = \"30d\"\n";
    std::fs::write(&config, settings).unwrap();
    let expected = json!({"sessions": 4, "months": 1});
    assert_eq!(row(&owner, &["remote", "prune", "team", "--dry-run", "--json"]), expected);
    assert_eq!(server.sql("steno", "SELECT count(*) FROM steno.session").trim(), "6");
    assert_eq!(row(&owner, &["remote", "prune", "team", "--json"]), expected);
    let left = "SELECT (SELECT count(*) FROM steno.session), (SELECT count(*) FROM steno.entry),
        (SELECT count(*) FROM steno.frame), to_regclass('steno.entry_2025_02') IS NULL,
        to_regclass('steno.entry_2025_11') IS NULL, (SELECT count(*) FROM steno.forgotten)";
    assert_eq!(server.sql("steno", left).trim(), "2|3|2|t|f|0");

    let again = row(&ada, &["push", "--json"]);
    assert_eq!((&again["sessions"], &again["expired"]), (&json!(0), &json!(4)), "{again}");
    let found = ada.steno(&["search", "fruit", "--from", "team", "--json", "-n", "50"]).ok();
    assert_eq!(found.lines().count(), 1, "{found}");
    assert_eq!(ada.steno(&["list", "--json"]).ok().lines().count(), 6, "ada keeps her own");
    let refused = ada.path().join("store/config.toml");
    let settings = std::fs::read_to_string(&refused).unwrap() + "keep = \"1d\"\n";
    std::fs::write(&refused, settings).unwrap();
    let refused = ada.steno(&["remote", "prune", "team"]);
    assert!(refused.code == 1 && refused.stderr.contains("permission denied"), "{refused}");
    owner.steno(&["remote", "init", "team"]).ok();
}

#[test]
fn a_database_of_version_1_is_migrated() {
    let Some(server) = PostgresServer::start() else { return };
    let owner = Home::new();
    owner.steno(&["remote", "add", "team", &server.url("postgres")]).ok();
    let schema =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../steno-team/src/postgres_remote/schema.sql");
    server.sql("steno", &std::fs::read_to_string(schema).unwrap());
    server.sql("steno", "INSERT INTO steno.meta VALUES ('version', 1)");
    server.sql(
        "steno",
        "CREATE TABLE steno.entry_2026_01 PARTITION OF steno.entry
        FOR VALUES FROM (1767225600000) TO (1769904000000)",
    );
    server.add_member("ada", "shop");
    server.sql(
        "steno",
        "INSERT INTO steno.session (team, owner, agent, id, visibility)
        VALUES ('shop', 'ada', 'codex', 'old', 'team')",
    );
    server.sql("steno", "INSERT INTO steno.entry (session, number, at, role, kind, source, failed, body, folded, words)
        VALUES (1, 0, 1767225600001, 'user', 'text', 'primary', false, 'an apricot', ' an apricot ', 'an apricot')");
    let ada = Home::new();
    ada.steno(&["remote", "add", "team", &server.url("ada")]).ok();
    let early = ada.steno(&["push"]);
    assert!(
        early.code == 1 && early.stderr.contains("has schema 1, but this version needs 4"),
        "{early}"
    );
    assert!(early.stderr.contains("steno remote init team"), "{early}");
    for _ in 0..2 {
        owner.steno(&["remote", "init", "team"]).ok();
        assert_eq!(
            server.sql("steno", "SELECT value FROM steno.meta WHERE name = 'version'").trim(),
            "4"
        );
    }
    let found = ada.steno(&["search", "apricot", "--from", "team", "--json"]).ok();
    assert!(found.contains("an apricot"), "{found}");
    server.sql("steno", "UPDATE steno.meta SET value = 99");
    let newer = owner.steno(&["remote", "init", "team"]);
    assert!(newer.code == 1 && newer.stderr.contains("knows only 4"), "{newer}");
}
