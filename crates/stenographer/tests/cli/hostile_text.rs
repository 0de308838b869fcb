//! Transcript text with terminal control sequences, in the output of each family of commands.

use std::fs;

use serde_json::Value;

use crate::harness::Home;

/// Clears the screen in two ways, reorders text, and deletes.
const HOSTILE: &str = "evil\u{1b}[2J\u{9b}2J\u{202e}\u{2066}\u{61c}\u{7f}\u{8}end";
const ID: &str = "1b4e28ba-2fa1-41d2-883f-0016d3cca427";

/// A home with a synced session with hostile texts and names.
fn synced() -> Home {
    let home = Home::new();
    let record = serde_json::json!({
        "type": "user", "uuid": "u1", "parentUuid": null, "isSidechain": false, "cwd": format!("/p/{HOSTILE}"),
        "sessionId": ID, "version": "2.1.0", "timestamp": "2026-01-05T09:15:31.000Z",
        "message": { "role": "user", "content": HOSTILE },
    });
    home.file(&format!(".claude/projects/-p-{HOSTILE}/{ID}.jsonl"), format!("{record}\n"));
    home.steno(&["sync"]).ok();
    home.steno(&["annotate", ID, HOSTILE]).ok();
    home
}

fn is_hostile(c: char) -> bool {
    c != '\n' && c != '\t' && HOSTILE.contains(c) && !c.is_ascii_graphic()
}

fn holds(value: &Value, text: &str) -> bool {
    match value {
        Value::String(held) => held.contains(text),
        Value::Array(items) => items.iter().any(|item| holds(item, text)),
        Value::Object(fields) => fields.values().any(|field| holds(field, text)),
        _ => false,
    }
}

#[test]
fn json_of_every_command_is_escaped_and_means_the_same() {
    let home = synced();
    let file = format!(".claude/projects/-p-{HOSTILE}");
    let commands: [&[&str]; 8] = [
        &["list", "--json"],
        &["show", ID, "--json"],
        &["search", "evil", "--json"],
        &["annotate", ID, "--json"],
        &["inspect", &file, "--json"],
        &["import", &file, "--json"],
        &["cost", "--by", "project", "--json"],
        &["diff", ID, ID, "--json"],
    ];
    for command in commands {
        let printed = home.steno(command).stdout;
        assert!(!printed.contains(is_hostile), "{command:?}: {printed:?}");
        let objects: Vec<Value> =
            printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let is_empty_of_names = ["cost", "diff"].contains(&command[0]);
        let is_there = objects.iter().any(|object| holds(object, HOSTILE));
        assert!(is_there || is_empty_of_names, "{command:?}: {printed}");
    }
}

#[test]
fn tables_are_escaped_in_pipes_too() {
    let home = synced();
    let file = format!(".claude/projects/-p-{HOSTILE}");
    let commands: [&[&str]; 5] =
        [&["list"], &["search", "evil"], &["annotate"], &["inspect", &file], &["stats"]];
    for command in commands {
        let printed = home.steno(command).stdout;
        assert!(!printed.contains(is_hostile), "{command:?}: {printed:?}");
        let is_named = printed.contains(r"evil\u{1b}[2J\u{9b}2J\u{202e}");
        assert!(is_named || command == ["stats"], "{command:?}: {printed}");
    }
}

#[test]
fn what_is_exported_into_a_pipe_is_not_changed() {
    let home = synced();
    let markdown = home.steno(&["export", ID, "--format", "md"]).ok();
    assert!(markdown.contains(HOSTILE), "{markdown:?}");
    let lines = home.steno(&["export", ID, "--format", "jsonl"]).ok();
    home.steno(&["export", ID, "--format", "jsonl", "-o", "out.jsonl"]).ok();
    assert_eq!(fs::read_to_string(home.path().join("out.jsonl")).unwrap(), lines);
    assert!(lines.contains('\u{7f}'), "{lines:?}");
}

#[cfg(unix)]
#[test]
fn a_terminal_gets_no_escape_from_paths_or_exports() {
    let home = synced();
    let project = home.path().join(format!(".claude/projects/-p-{HOSTILE}"));
    let file = project.join(format!("{ID}.jsonl"));
    let before = fs::read(&file).unwrap();
    fs::remove_dir_all(project).unwrap();
    let commands: [(&[&str], &str); 4] = [
        (&["restore", ID], r"-p-evil\u{1b}[2J\u{9b}2J\u{202e}"),
        (&["export", ID, "--format", "md"], r"evil\u{1b}[2J\u{9b}2J\u{202e}"),
        (&["export", ID, "--format", "jsonl"], r"evil\u001b[2J\u009b2J\u202e"),
        (&["show", ID], r"evil\u{1b}[2J\u{9b}2J\u{202e}"),
    ];
    for (command, expected) in commands {
        let steno = env!("CARGO_BIN_EXE_steno");
        let mut terminal = crate::terminal::Terminal::run(&home, steno, command, &[]);
        assert_eq!(terminal.ends(), Some(0), "{command:?}: {}", terminal.screen());
        let screen = terminal.screen().replace('\n', "");
        assert!(screen.contains(expected), "{command:?}: {screen}");
    }
    assert_eq!(fs::read(file).unwrap(), before);
}
