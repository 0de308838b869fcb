//! `steno record`.

use steno_core::Status;

use crate::harness::Home;

const TWO: &[u8] =
    b"{\"role\":\"user\",\"content\":\"hello\"}\n{\"role\":\"assistant\",\"content\":\"hi\"}\n";

#[test]
fn without_ack_the_session_id_is_all_of_stdout() {
    let home = Home::new();
    let output = home.steno_with(&["record"], TWO);
    assert_eq!((output.code, output.stderr.as_str()), (0, ""));
    let id = output.stdout.strip_suffix('\n').unwrap();
    assert_eq!(id.len(), 36);
    assert_eq!(home.steno(&["show", id, "--json"]).ok().lines().count(), 2);
}

#[test]
fn with_ack_stdout_has_the_numbers() {
    let home = Home::new();
    let output = home.steno_with(&["record", "--ack", "--session", "s"], TWO);
    insta::assert_snapshot!(output, @r"
    0
    1
    --- stderr
    s
    --- exit 0
    ");
    let output = home.steno_with(&["record", "--ack", "--session", "s"], TWO);
    assert_eq!(output.stdout, "2\n3\n", "the session is continued");
}

#[test]
fn sources_are_numbered_apart() {
    let home = Home::new();
    let lines = b"{\"role\":\"user\",\"content\":\"a\"}\n\
        {\"role\":\"user\",\"content\":\"b\",\"source\":\"subagent:x\"}\n\
        {\"role\":\"user\",\"content\":\"c\"}\n";
    assert_eq!(home.steno_with(&["record", "--ack"], lines).stdout, "0\n0\n1\n");
}

#[test]
fn agent_and_project_are_kept() {
    let home = Home::new();
    home.steno_with(&["record", "--agent", "mine", "--session", "s", "--project", "work"], TWO)
        .ok();
    let dir = home.vault().session(&"mine".parse().unwrap(), &"s".parse().unwrap());
    let session = dir.read().unwrap().session;
    assert_eq!(session.agent, "mine");
    assert_eq!(session.project, Some(home.path().join("work").to_string_lossy().into_owned()));
    assert_eq!(session.status, Status::Completed);
    let other = home.steno_with(&["record", "--agent", "other", "--session", "s"], TWO);
    insta::assert_snapshot!(other, @r"
    --- stderr
    error: session s belongs to agent mine, not other
    hint: leave --agent out to go on with it
    --- exit 1
    ");
}

#[test]
fn unknown_shapes_and_fields_are_kept() {
    let home = Home::new();
    let lines = "{\"strange\":{\"deep\":[1.50]}}\n{\"role\":\"user\",\"content\":\"x\",\"mood\":\"good\"}\n";
    home.steno_with(&["record", "--session", "s"], lines.as_bytes()).ok();
    let shown = home.steno(&["show", "s", "--json"]).ok();
    assert!(shown.contains("\"metadata\":{\"strange\":{\"deep\":[1.50]}}"), "{shown}");
    assert!(shown.contains("\"mood\":\"good\""), "{shown}");
}

#[test]
fn an_empty_input_is_an_empty_session() {
    let home = Home::new();
    home.steno_with(&["record", "--session", "s"], b"").ok();
    assert_eq!(home.steno(&["show", "s", "--json"]).ok(), "");
}
