//! What a database's refusals look like: each names what is wrong, and what to do.

use crate::postgres_server::PostgresServer;
use crate::team::{ID, content, member};

/// Runs a command against a URL, and checks its error.
fn check(url: &str, command: &[&str], error: &str, hint: &str) {
    let ada = member("ada", url);
    ada.work(ID, &content(ID, &["apricot"]));
    let refused = ada.steno(command);
    assert_eq!(refused.code, 1, "{command:?}: {refused}");
    assert!(refused.stderr.contains(error), "{command:?}, not {error:?}: {refused}");
    assert!(refused.stderr.contains(hint), "{command:?}, not {hint:?}: {refused}");
    assert!(!refused.stderr.contains("apricot"), "{refused}");
}

#[test]
fn a_database_that_is_not_ready_is_explained() {
    let Some(server) = PostgresServer::start() else { return };
    let owner = server.url("postgres");
    for command in [&["push"][..], &["list", "--from", "team"], &["search", "x", "--from", "team"]]
    {
        check(&owner, command, "the remote is not initialised", "`steno remote init team`");
    }
    let other = owner.replace("/steno", "/other");
    check(&other, &["push"], "database \"other\" does not exist", "check `url` in [remote.team]");
    let nobody = server.url("nobody");
    check(&nobody, &["push"], "role \"nobody\" does not exist", "check `url` in [remote.team]");
    member("postgres", &owner).steno(&["remote", "init", "team"]).ok();
    for (version, hint) in [(2, "`steno remote init team` as the owner"), (99, "a newer version")] {
        server.sql("steno", &format!("UPDATE steno.meta SET value = {version}"));
        for command in [&["push"][..], &["pull"]] {
            check(&owner, command, &format!("has schema {version}, but"), hint);
        }
    }
}

#[test]
fn a_role_without_a_team_is_told_so() {
    let Some(server) = PostgresServer::start() else { return };
    let owner = server.url("postgres");
    member("postgres", &owner).steno(&["remote", "init", "team"]).ok();
    server.sql("steno", "CREATE ROLE nemo LOGIN IN ROLE steno_member");
    server.sql("steno", "CREATE ROLE mallory LOGIN");
    for role in ["nemo", "mallory"] {
        for command in [&["push"][..], &["list", "--from", "team"], &["cost", "--from", "team"]] {
            let error = format!("{role} is not a member of a team");
            check(&server.url(role), command, &error, "SELECT steno.add_member(");
        }
    }
    let search = &["search", "x", "--from", "team"];
    check(&server.url("nemo"), search, "nemo is not a member of a team", "steno.add_member(");
    // The owner reads without being a member, and pushes as one.
    check(&owner, &["push"], "postgres is not a member of a team", "steno.add_member(");
    let listed = member("postgres", &owner).steno(&["list", "--from", "team"]);
    assert!(listed.code == 0 && listed.stderr.contains("no sessions on the remote"), "{listed}");
}

#[test]
fn a_server_that_cannot_be_reached_is_explained() {
    let nowhere = "postgres://ada@127.0.0.1:1/steno";
    check(nowhere, &["push"], "Connection refused", "check `url` in [remote.team]");
    let wrong = "postgres://ada@127.0.0.1:1/steno?sslmode=never";
    check(wrong, &["push"], "unknown sslmode: never", "check `url` in [remote.team]");
}
