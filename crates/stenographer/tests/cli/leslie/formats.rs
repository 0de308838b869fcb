//! Tests of `--format`, help, and `steno as leslie`.

use super::*;

#[test]
fn help_is_shown_for_no_command_and_makes_nothing() {
    let project = Project::new();
    let calls: [&[&str]; 6] =
        [&[], &["help"], &["--help"], &["spawn", "--help"], &["-h"], &["--format", "yaml"]];
    for args in calls {
        let text = project.run(args, "").ok();
        assert!(text.contains("\n  objective create --title <title>\n"), "{args:?}: {text}");
        assert!(text.lines().all(|line| line.len() <= 80), "{args:?}");
    }
    assert!(!project.path(".leslie").exists());
}

#[test]
fn every_command_makes_the_stores_first() {
    let project = Project::new();
    assert_eq!(project.error(&["status", "--thread", "x"]).0, "T101");
    let relations = project.store("thread_relations");
    assert_eq!(fields(&relations), ["version", "metadata", "threads", "operations", "relations"]);
    assert_eq!(relations["version"], "1.0");
    assert_eq!(project.store("objectives")["metadata"]["objective_count"], 0);
    assert!(project.path(".leslie/threads").is_dir());
    assert!(!project.path("AGENTS.md").exists());
}

#[test]
fn json_is_the_format_unless_another_is_named() {
    let project = Project::new();
    let expected = "{\n  \"success\": true,\n  \"data\": []\n}\n";
    for args in [&["list"][..], &["--format", "json", "list"], &["list", "--format", "html"]] {
        assert_eq!(project.run(args, "").ok(), expected);
    }
}

#[test]
fn yaml_has_the_same_content() {
    let project = Project::new();
    let objective = project.objective("a: b");
    project.spawn(&objective, "first", &["--tags", "x"]);
    let text = project.run(&["list", "--format", "yaml"], "").ok();
    let expected = format!(
        "    title: first\n    objective: {objective}\n    status: active\n    parent_id: null\n"
    );
    assert!(
        text.starts_with("success: true\ndata:\n  - id: thread-") && text.contains(&expected),
        "{text}"
    );
    let missing = project.run(&["status", "--thread", "x", "--format", "yaml"], "");
    let expected = "success: false\nerror:\n  code: T101\n  message: Thread 'x' not found\n  details:\n    threadId: x\n\n";
    assert_eq!((missing.stdout.as_str(), missing.code), (expected, 1));
    let thread = project.spawn(&objective, "second: 42", &[]);
    let text = project.run(&["status", "--thread", &thread, "--format", "yaml"], "").ok();
    let context = format!(
        "  thread_context: >-\n    <thread_context thread=\"{thread}\" objective=\"{objective}\"\n    \
         relations_file=\".leslie/thread_relations.json\">\n      <asset type=\"transcript\" \
         path=\".leslie/threads/{thread}/.meta/transcripts\" />\n    </thread_context>\n"
    );
    assert!(text.contains("  title: \"second: 42\"\n") && text.contains(&context), "{text}");
}

#[test]
fn tables_have_columns() {
    let project = Project::new();
    let thread = project.spawn(&project.objective("o"), "first", &[]);
    let text = project.run(&["list", "--format", "table"], "").ok();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[..2], ["success  : true", ""]);
    assert!(
        lines[2].starts_with("id              | title | objective    | status | parent_id"),
        "{text}"
    );
    assert!(lines[4].starts_with(&format!("{thread} | first | obj-")), "{text}");
    let text = project.run(&["artifacts", "--thread", "x", "--format=table"], "").stdout;
    assert_eq!(text, "success  : false\ncode     : T101\nmessage  : Thread 'x' not found\n");
}

#[test]
fn steno_speaks_it_too() {
    let project = Project::new();
    let text = project.home.steno(&["as", "leslie", "--help"]).ok();
    assert!(text.starts_with("leslie's commands in Steno"), "{text}");
    project.home.file("more.env", "A=b\n");
    let made = project.home.steno(&[
        "as",
        "leslie",
        "objective",
        "create",
        "--title",
        "x",
        "-c",
        "more.env",
    ]);
    let made: Value = serde_json::from_str(&made.ok()).unwrap();
    assert_eq!(fields(&made["data"]), ["objectiveId", "title", "logDir"]);
    let log = project
        .text(&format!(".leslie/logs/{}/objective.log", string(&made["data"], "objectiveId")));
    assert!(log.contains(" time=2026-01-05T09:15:32.500Z title=x\n"), "{log}");
    let wrong = project.home.steno(&["as", "leslie", "hook"]);
    assert_eq!(wrong.code, 1, "{wrong}");
}

#[test]
fn the_variables_of_agents_have_a_file() {
    let project = Project::new();
    let made = project.data(&["config", "init"]);
    assert_eq!(made, json!({ "path": "$HOME/.leslie/env", "from_env": false }));
    assert!(project.text(".leslie/env").contains("# ANTHROPIC_MODEL=\n"));
    assert!(!project.path(".leslie/objectives.json").exists());
    let again = project.data(&["config", "init", "--from-env"]);
    let message = "File exists, use --force to overwrite";
    let expected = json!({ "path": "$HOME/.leslie/env", "from_env": true, "skipped": true, "message": message });
    assert_eq!(again, expected);
    let program = project.path("bin/leslie");
    let args = ["config", "init", "--from-env", "--force"];
    let mut command = project.home.program(program.to_str().unwrap(), &args);
    command.env("ANTHROPIC_MODEL", "a b").env("ANTHROPIC_BASE_URL", "http://x");
    project.home.finish(command, b"").ok();
    let text = project.text(".leslie/env");
    assert!(text.contains("\nANTHROPIC_BASE_URL=http://x\n"), "{text}");
    assert!(text.ends_with("\nANTHROPIC_MODEL=\"a b\"\n"), "{text}");
}
