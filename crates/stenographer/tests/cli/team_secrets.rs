//! Planted secrets are nowhere outside the machine: not in a table, an object, a server's log or an error.

use steno_secrets::planted::planted_secrets;
use steno_store::view::redaction::SecretRedactor;

use crate::postgres_server::PostgresServer;
use crate::team::{ID, OTHER, below, content, has, member};

/// Planted texts on lines of their own, and those of their secrets that the rules find wherever they are.
fn planted() -> (Vec<String>, Vec<String>) {
    let planted = planted_secrets(7);
    let texts: Vec<String> = planted.iter().map(|one| format!("\n{}\n", one.text)).collect();
    // No rule finds every secret.
    let redact = |text: &String| SecretRedactor::default().redact_text(text).into_owned();
    let missed: String = texts.iter().map(redact).collect();
    let secrets = planted.into_iter().map(|one| one.secret);
    let found: Vec<String> = secrets.filter(|secret| !missed.contains(secret)).collect();
    assert!(found.len() > 400, "{} of {}", found.len(), texts.len());
    (texts, found)
}

fn assert_without(bytes: &[u8], secrets: &[String], place: &str) {
    let found: Vec<&String> = secrets.iter().filter(|secret| has(bytes, secret)).collect();
    assert!(found.is_empty(), "{place}: {found:?}");
}

#[test]
fn planted_secrets_are_in_no_object() {
    let (texts, secrets) = planted();
    let shared = tempfile::tempdir().unwrap();
    let ada = member("ada", &format!("file://{}", shared.path().display()));
    ada.steno(&["remote", "init", "team"]).ok();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    ada.work(ID, &content(ID, &texts));
    let pushed = ada.steno(&["push"]);
    assert!(pushed.code == 0 && pushed.stderr.contains("secrets redacted"), "{pushed}");
    let objects = below(shared.path());
    assert!(has(&objects, "parseLine"));
    assert_without(&objects, &secrets, "objects");
}

#[test]
fn planted_secrets_are_in_no_table_log_or_error() {
    let Some(server) = PostgresServer::start() else { return };
    let (texts, secrets) = planted();
    member("postgres", &server.url("postgres")).steno(&["remote", "init", "team"]).ok();
    for role in ["ada", "bob"] {
        server.add_member(role, "shop");
    }
    // The server logs as much as it can.
    for setting in [
        "log_statement = 'all'",
        "log_min_duration_statement = 0",
        "log_parameter_max_length_on_error = -1",
        "log_error_verbosity = 'verbose'",
    ] {
        server.sql("postgres", &format!("ALTER SYSTEM SET {setting}"));
    }
    server.sql("postgres", "SELECT pg_reload_conf()");
    let (ada, bob) = (member("ada", &server.url("ada")), member("bob", &server.url("bob")));
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    ada.work(ID, &content(ID, &texts));
    ada.push();
    assert_without(&server.dump(), &secrets, "tables");
    bob.pull();
    let mirror = below(&bob.home.path().join("store/remotes"));
    assert!(has(&mirror, "parseLine"));
    assert_without(&mirror, &secrets, "frames");
    // A statement with the texts fails.
    server.sql("steno", "ALTER TABLE steno.entry ADD CHECK (body NOT LIKE '%walnut%')");
    ada.work(OTHER, &content(OTHER, &[&texts[..], &["walnut"]].concat()));
    let refused = ada.steno(&["push"]);
    assert!(refused.code == 1 && refused.stderr.contains("could not send entries"), "{refused}");
    let shown = format!("{}{}", refused.stdout, refused.stderr);
    assert!(!shown.contains("walnut"), "{refused}");
    assert_without(shown.as_bytes(), &secrets, "the error");
    let log = server.log();
    assert!(has(&log, "walnut"), "the log has the texts of the statement that failed");
    assert_without(&log, &secrets, "the server's log");
}
