//! Errors in the input: reported with their location, exit code 1, and nothing recorded is lost.

use crate::harness::{Home, Output};

/// Records `input` into a session that already has one entry, and checks that nothing else is lost.
fn record(home: &Home, input: &[u8]) -> Output {
    let args = ["record", "--agent", "test", "--session", "s", "--ack"];
    assert_eq!(home.steno_with(&args, b"{\"role\":\"user\",\"content\":\"before\"}\n").ok(), "0\n");
    let output = home.steno_with(&args, input);
    let shown = home.steno(&["show", "s", "--json"]).stdout;
    assert!(shown.starts_with("{\"role\":\"user\",\"content\":\"before\""), "{shown}");
    home.steno(&["verify"]).ok();
    output
}

/// Records a bad line between two good ones: the good ones are acknowledged, the bad one is reported.
#[track_caller]
fn between_good_lines(bad: &[u8], reason: &str) {
    let home = Home::new();
    let good = b"{\"role\":\"user\",\"content\":\"good\"}\n";
    let output = record(&home, &[good.as_slice(), bad, b"\n", good].concat());
    assert_eq!(output.stdout, "1\n2\n", "{output}");
    assert_eq!(output.stderr, format!("s\nwarning: <stdin>:2: {reason}\n"));
    assert_eq!(output.code, 1);
}

#[test]
fn not_json() {
    between_good_lines(b"hello", "not JSON: expected value (column 1)");
}

#[test]
fn a_torn_line() {
    between_good_lines(
        b"{\"role\":\"user\",\"con",
        "not JSON: EOF while parsing a string (column 19)",
    );
}

#[test]
fn not_utf8() {
    between_good_lines(
        b"{\"role\":\"user\",\"content\":\"\xff\xfe\"}",
        "not JSON: invalid unicode code point (column 27)",
    );
}

#[test]
fn nul_bytes() {
    between_good_lines(b"\0\0\0\0", "not JSON: expected value (column 1)");
}

#[test]
fn deep_nesting() {
    let deep = [
        "{\"role\":\"user\",\"content\":\"\",\"x\":",
        &"[".repeat(100_000),
        &"]".repeat(100_000),
        "}",
    ];
    between_good_lines(deep.concat().as_bytes(), "not JSON: recursion limit exceeded (column 159)");
}

#[test]
fn missing_fields() {
    between_good_lines(b"{\"role\":\"user\"}", "missing field: content");
}

#[test]
fn not_an_object() {
    between_good_lines(b"[1,2,3]", "not a JSON object");
}

#[test]
fn a_line_of_100_megabytes() {
    let home = Home::new();
    let good = b"{\"role\":\"user\",\"content\":\"good\"}\n".to_vec();
    let long = ["{\"role\":\"user\",\"content\":\"", &"x".repeat(100 << 20), "\"}\n"].concat();
    let output = record(&home, &[good.clone(), long.into_bytes(), good].concat());
    assert_eq!((output.stdout.as_str(), output.code), ("1\n2\n", 1), "{}", output.stderr);
    assert_eq!(output.stderr, "s\nwarning: <stdin>:2: line too long to be a record\n");
    assert_eq!(home.steno(&["show", "s", "--json"]).stdout.lines().count(), 3);
}

#[test]
fn a_store_that_cannot_be_written() {
    let home = Home::new();
    home.file("store", "a file where a folder should be");
    let output = home.steno_with(&["record"], b"{\"role\":\"user\",\"content\":\"x\"}\n");
    assert_eq!(output.code, 1);
    assert!(
        output.stderr.starts_with("error: could not create folder $HOME/store/vault"),
        "{output}"
    );
    assert!(output.stderr.contains("caused by: Not a directory"), "{output}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_read_only_store() {
    let home = Home::new();
    let mut command = home.command(&["record"]);
    // No user, not even root, can create a folder there.
    command.env("STENO_HOME", "/proc/steno");
    let output = home.finish(command, b"{\"role\":\"user\",\"content\":\"x\"}\n");
    assert_eq!((output.code, output.stdout.as_str()), (1, ""), "{output}");
    assert!(output.stderr.starts_with("error: could not create folder /proc/steno"), "{output}");
}

/// A shell limits the file size; a write beyond the limit fails as on a full disk.
#[cfg(unix)]
#[test]
fn a_disk_that_fills_up() {
    let home = Home::new();
    let steno = env!("CARGO_BIN_EXE_steno");
    let script =
        format!("trap '' XFSZ; ulimit -f 8; exec {steno} record --agent test --session s --ack");
    let command = home.program("sh", &["-c", &script]);
    let line = format!("{{\"role\":\"user\",\"content\":\"{}\"}}\n", "x".repeat(300));
    let output = home.finish(command, line.repeat(100).as_bytes());
    assert_eq!(output.code, 1, "{output}");
    assert!(output.stderr.contains("error: could not write $HOME/store/vault/test/s/"), "{output}");
    assert!(output.stderr.contains("caused by: File too large"), "{output}");
    let acknowledged = output.stdout.lines().count();
    let kept = home.steno(&["show", "s", "--json"]).ok().lines().count();
    assert!(kept >= acknowledged, "{acknowledged} acknowledged, {kept} kept");
    home.steno(&["verify"]).ok();
    let more = home.steno_with(&["record", "--session", "s", "--ack"], line.as_bytes());
    assert_eq!(more.ok(), format!("{kept}\n"));
}

#[test]
fn a_missing_path() {
    let home = Home::new();
    insta::assert_snapshot!(home.steno(&["import", "nowhere"]), @r"
    --- stderr
    error: could not open $HOME/nowhere
    caused by: No such file or directory (os error 2)
    hint: check that the path exists
    --- exit 1
    ");
    insta::assert_snapshot!(home.steno(&["show", "nowhere"]), @r"
    --- stderr
    error: no such session or file: nowhere
    hint: run `steno list` to list sessions, `steno sync` to copy new ones
    --- exit 1
    ");
}

#[test]
fn a_file_of_no_known_format() {
    let home = Home::new();
    home.file("notes.txt", "just notes\n");
    insta::assert_snapshot!(home.steno(&["convert", "notes.txt", "--to", "json"]), @r"
    --- stderr
    error: no known transcript format in $HOME/notes.txt
    hint: run `steno inspect PATH` on its parent folder to see what is recognized
    --- exit 1
    ");
}

#[test]
fn a_log_without_messages_is_no_unknown_format() {
    let home = Home::new();
    home.file("sessions/rollout-2026-01-01T00-00-00-a.jsonl", "");
    for command in ["inspect", "import"] {
        insta::allow_duplicates! {
            insta::assert_snapshot!(home.steno(&[command, "sessions"]), @r"
            --- stderr
            error: no messages in $HOME/sessions
            hint: give a file or folder in which an agent has written messages
            --- exit 1
            ");
        }
    }
}

#[test]
fn ids_that_would_leave_the_store() {
    let home = Home::new();
    for id in ["../x", "..", "", "a/b", ".hidden"] {
        let output = home.steno_with(&["record", "--session", id], b"");
        assert_eq!(output.code, 2, "{output}");
        assert!(output.stderr.contains("not a session id"), "{output}");
    }
    assert!(!home.path().join("store").exists());
}

/// A prompt as Claude Code writes it.
fn prompt(id: &str) -> String {
    let text = r#"{"type":"user","uuid":"ID","sessionId":"s","timestamp":"2026-01-01T00:00:00Z","cwd":"/w","version":"2.1.0","message":{"role":"user","content":"hi"}}"#;
    text.replace("ID", id) + "\n"
}

#[test]
fn a_bad_line_is_named_with_its_place() {
    let home = Home::new();
    home.file("s.jsonl", prompt("a") + "{\"type\":\n" + &prompt("b"));
    for command in ["inspect", "show", "import"] {
        let output = home.steno(&[command, "s.jsonl"]);
        let warning = "warning: $HOME/s.jsonl:2: not JSON: EOF while parsing a value (column 8)\n";
        assert!(output.stderr.contains(warning), "{output}");
        assert_eq!(output.code, 1, "{output}");
    }
}

#[test]
fn a_session_that_cannot_be_read_costs_no_other() {
    let home = Home::new();
    home.file("d/bad.json", r#"{"schema_version":"ATIF-v1.7","steps":["#);
    home.file("d/good.jsonl", prompt("a"));
    let output = home.steno(&["inspect", "d", "--json"]);
    assert!(output.stdout.contains(r#""agent":"claude-code""#), "{output}");
    assert!(output.stderr.starts_with("error: $HOME/d/bad.json: not JSON"), "{output}");
    assert_eq!(output.code, 1);
}

#[test]
fn a_line_of_100_megabytes_in_a_session() {
    let home = Home::new();
    let long = ["{\"type\":\"user\",\"x\":\"", &"x".repeat(100 << 20), "\"}\n"].concat();
    home.file("s.jsonl", prompt("a") + &long + &prompt("b"));
    let output = home.steno(&["inspect", "s.jsonl", "--json"]);
    assert_eq!(output.stderr, "warning: $HOME/s.jsonl:2: line too long to be a record\n");
    assert!(output.stdout.contains(r#""user_prompts":2"#), "{output}");
}

#[test]
fn noise_is_counted_and_its_beginning_is_shown() {
    let home = Home::new();
    home.file("s.jsonl", prompt("a") + &"x\n".repeat(3000));
    let output = home.steno(&["inspect", "s.jsonl", "--json"]);
    assert!(output.stdout.contains(r#""bad_lines":3000"#), "{output}");
    assert_eq!(output.stderr.lines().count(), 1001);
    assert!(output.stderr.ends_with("$HOME/s.jsonl: 2000 more problems, not listed\n"), "{output}");
}

#[test]
fn a_large_incomplete_document_is_recorded() {
    let home = Home::new();
    let start = r#"{"sessionId":"s","projectHash":"h","startTime":"2026-01-01T00:00:00.000Z","lastUpdated":"2026-01-01T00:00:00.000Z","messages":["#;
    let reason = "session-1.json: not JSON: cut off at byte 209715200";
    let output = home.steno(&["import", &large(&home, "d/session-1.json", start)]);
    assert!(output.stderr.contains(reason), "{output}");
    assert!(output.stderr.contains(": 0 entries, 210 MB new"), "{output}");
}

#[test]
fn a_context_too_large_to_parse_is_imported() {
    let home = Home::new();
    let start = r#"{"id":"6f0c9e2a-0000-4000-8000-000000000001","timestamp":1,"from":"u","to":"task","content":"hi","entry_type":"message"}"#;
    let path = large(&home, "task/context.jsonl", &format!("{start}\n"));
    insta::assert_snapshot!(home.steno(&["inspect", "task"]), @r"
    --- stderr
    error: could not read $HOME/task/context.jsonl
    caused by: the document is larger than 128 MiB
    --- exit 1
    ");
    let output = home.steno(&["import", "task"]);
    assert!(
        output.stderr.contains("context.jsonl: the document is larger than 128 MiB"),
        "{output}"
    );
    assert!(output.stderr.contains(": 0 entries, 210 MB new"), "{output}");
    std::fs::remove_file(&path).unwrap();
    home.steno(&["restore", output.stdout.trim(), "--to", "task"]).ok();
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 200 << 20);
}

/// Creates a file of 200 MiB with only its start filled.
fn large(home: &Home, name: &str, start: &str) -> String {
    let path = home.file(name, start);
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.set_len(200 << 20).unwrap();
    path.display().to_string()
}
