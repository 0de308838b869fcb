//! Tests of `steno diff`.

use serde_json::Value;

use crate::harness::Home;

const FIRST: &str = r#"{"role":"user","content":"Fix the login bug"}
{"role":"assistant","content":"Looking at the code of the login form.\nIt is long.","model":"m-1"}
{"role":"tool","tool_name":"Read","content":"fn login() {\n\tone();\n\ttwo();\n\tthree();\n\tfour();\n\tfive();\n\tsix();\n}"}
{"role":"assistant","content":"Nothing like what comes next."}
{"role":"assistant","content":"Done."}
"#;

/// A home with two sessions that differ in a few things.
pub(crate) fn two_sessions() -> Home {
    let home = Home::new();
    let second = FIRST
        .replace("login form", "logout form")
        .replace("four", "quatre")
        .replace("Nothing like what comes next.", "日本語, and \\u001b[31mred");
    for (name, lines) in [("first", FIRST), ("second", &second)] {
        let args = ["record", "--agent", "mine", "--session", name, "--project", "/p"];
        home.steno_with(&args, lines.as_bytes()).ok();
    }
    home
}

#[test]
fn sessions_are_printed_side_by_side() {
    let output = two_sessions().steno(&["diff", "first", "second"]).to_string();
    insta::assert_snapshot!(output.replace('\x1b', "(escape)"), @"
    session  first                              | second
    agent    mine                                 mine
    title    Fix the login bug                    Fix the login bug
    project  /p                                   /p
    models   m-1                                  m-1
    started  2026-01-05 09:15:32                  2026-01-05 09:15:32
    ended    2026-01-05 09:15:32                  2026-01-05 09:15:32
    status   completed                            completed
    entries  5                                    5

    = 1 equal entry

    1 assistant                            | 1 assistant
    Looking at the code of the login form. | Looking at the code of the logout
                                           | form.
    It is long.                              It is long.

    2 tool result Read                     | 2 tool result Read
    … 2 equal lines
        two();                                   two();
        three();                                 three();
        four();                            |     quatre();
        five();                                  five();
        six();                                   six();
    … 1 equal line

    3 assistant                            <
    Nothing like what comes next.          <

                                           > 3 assistant
                                           > 日本語, and (escape)[31mred

    = 1 equal entry
    --- exit 1
    ");
}

#[test]
fn equal_sessions_exit_with_zero() {
    let home = two_sessions();
    home.file("copy.jsonl", FIRST);
    let output = home.steno(&["diff", "first", "copy.jsonl"]);
    assert_eq!(output.code, 0, "{output}");
    assert!(output.stdout.ends_with("\n= 5 equal entries\n"), "{output}");
}

#[test]
fn an_error_exits_differently_from_a_difference() {
    let home = two_sessions();
    insta::assert_snapshot!(home.steno(&["diff", "first", "third"]), @"
    --- stderr
    error: no such session or file: third
    hint: run `steno list` to list sessions, `steno sync` to copy new ones
    --- exit 2
    ");
    home.file("torn.jsonl", format!("{FIRST}{{\"role\":"));
    let output = home.steno(&["diff", "first", "torn.jsonl"]);
    assert_eq!(output.code, 2, "{output}");
    assert!(output.stderr.contains("torn.jsonl:6"), "{output}");
}

#[test]
fn programs_get_what_differs() {
    let output = two_sessions().steno(&["diff", "first", "second", "--json"]);
    assert_eq!(output.code, 1);
    let rows: Vec<Value> =
        output.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let entries: Vec<&Value> = rows.iter().filter(|row| row.get("entry").is_some()).collect();
    let changes: Vec<&str> = entries.iter().map(|row| row["entry"].as_str().unwrap()).collect();
    assert_eq!(changes, ["same", "changed", "changed", "removed", "added", "same"]);
    assert_eq!(entries[2]["lines"], serde_json::json!([{"a": "\tfour();", "b": "\tquatre();"}]));
    assert_eq!((&entries[4]["a"], &entries[4]["b"]), (&Value::Null, &Value::from(3)));
    let facts: Vec<&Value> = rows.iter().filter(|row| row["fact"] == "started").collect();
    assert_eq!(facts[0]["a"], "2026-01-05T09:15:32.5Z");
}

#[test]
fn devflow_compares_as_its_own_command_does() {
    let home = two_sessions();
    let ours = home.steno(&["diff", "first", "second", "--style", "devflow"]);
    assert_eq!(ours.code, 1, "{ours}");
    for name in ["first", "second"] {
        home.steno(&["export", name, "--format", "devflow", "-o", ".devflow"]).ok();
    }
    let ids = ["2026-01-05-mine-first", "2026-01-05-mine-second"];
    let theirs = home.steno(&["as", "devflow", "transcript", "diff", ids[0], ids[1]]);
    assert_eq!(ours.stdout, theirs.stdout);
    assert!(theirs.stdout.contains("Turn Comparison:"));
}

#[cfg(unix)]
#[test]
fn on_a_terminal_changes_have_colours_and_texts_no_power() {
    let home = two_sessions();
    let steno = env!("CARGO_BIN_EXE_steno");
    for (variables, red) in [(vec![], true), (vec![("NO_COLOR", "1")], false)] {
        let args = ["diff", "first", "second"];
        let mut terminal = crate::terminal::Terminal::run(&home, steno, &args, &variables);
        assert_eq!(terminal.ends(), Some(1));
        let screen = terminal.screen();
        assert!(screen.contains(r"> 日本語, and \u{1b}[31mred"), "{screen}");
        let row = screen.lines().position(|row| row.contains("quatre")).unwrap() as u16;
        let colour = terminal.look(|screen| screen.cell(row, 4).unwrap().fgcolor());
        assert_eq!(colour == vt100::Color::Idx(1), red, "{screen}");
    }
}
