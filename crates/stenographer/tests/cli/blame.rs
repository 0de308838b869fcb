//! Tests of `steno blame`, `steno log` and `steno show --commit`, with a real Git repository.

use serde_json::{Value, json};

use crate::harness::{Home, Output};

const WRITTEN: &str = "\n/// The price of all items.\nfn total_price(items: &[Item]) -> u64 {\n    items.iter().map(|item| item.price).sum()\n}\n";
const BY_HAND: &str = "//! A shop for small things.\n";

/// A repository `shop` with a file that a person began and a session continued.
fn home_with_repository() -> Home {
    home_after_prompt(&json!("Add the total price.\nKeep it short."))
}

/// The same, with the content of the prompt.
fn home_after_prompt(prompt: &Value) -> Home {
    let home = Home::new();
    git(&home, &["init", "-q", "-b", "main", "."], "");
    home.file("shop/src/lib.rs", BY_HAND);
    git(&home, &["add", "-A"], "");
    git(&home, &["commit", "-q", "-m", "begin"], "2026-01-02T08:00:00Z");
    let edit = json!({"file_path": home.path().join("shop/src/lib.rs"), "old_string": BY_HAND, "new_string": format!("{BY_HAND}{WRITTEN}")});
    let records = [
        ("user", prompt.clone(), "2026-01-03T10:00:00Z"),
        (
            "assistant",
            json!([{"type": "tool_use", "id": "t1", "name": "Edit", "input": edit}]),
            "2026-01-03T10:00:05Z",
        ),
        (
            "user",
            json!([{"type": "tool_result", "tool_use_id": "t1", "content": "done"}]),
            "2026-01-03T10:00:06Z",
        ),
    ];
    let mut lines = String::new();
    for (number, (role, content, time)) in records.iter().enumerate() {
        let record = json!({
            "type": role, "uuid": format!("u{number}"), "sessionId": "5f0c1d2e-0001", "version": "2.1.0",
            "timestamp": time, "cwd": home.path().canonicalize().unwrap().join("shop"),
            "message": {"id": format!("m{number}"), "role": role, "model": "claude-test-1", "content": content},
        });
        lines.push_str(&format!("{record}\n"));
    }
    home.file("logs/5f0c1d2e-0001.jsonl", lines);
    home.steno(&["import", "logs"]).ok();
    home.file("shop/src/lib.rs", format!("{BY_HAND}{WRITTEN}"));
    git(&home, &["commit", "-q", "-am", "continue"], "2026-01-04T12:00:00Z");
    home
}

fn git(home: &Home, args: &[&str], date: &str) -> String {
    let folder = home.path().join("shop");
    std::fs::create_dir_all(&folder).unwrap();
    let mut command = home.program("git", args);
    command.current_dir(folder).env("GIT_AUTHOR_DATE", date).env("GIT_COMMITTER_DATE", date);
    for role in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{role}_NAME"), "Ada").env(format!("GIT_{role}_EMAIL"), "a@b.org");
    }
    home.finish(command, b"").ok()
}

/// Runs `steno` in the repository.
fn in_shop(home: &Home, args: &[&str]) -> Output {
    let mut command = home.command(args);
    command.current_dir(home.path().join("shop")).env("STENO_NOW", "2026-01-05T09:15:32.5Z");
    command.env("GIT_COMMITTER_NAME", "Ada").env("GIT_COMMITTER_EMAIL", "a@b.org");
    command.env("GIT_AUTHOR_NAME", "Ada").env("GIT_AUTHOR_EMAIL", "a@b.org");
    home.finish(command, b"")
}

fn rows(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

#[test]
fn a_line_has_its_session_prompt_and_reason() {
    let home = home_with_repository();
    insta::assert_snapshot!(in_shop(&home, &["blame", "src/lib.rs:1-4"]), @"
    src/lib.rs:1: unknown
      commit  24d119503f

    src/lib.rs:2-4: certain
      by      claude-code, 2026-01-03 10:00:05, claude-test-1
      prompt  Add the total price.
      show    steno show 5f0c1d2e:1
      commit  abbf2e0765
      because only this session wrote this block of 5 lines
    --- exit 0
    ");
}

#[test]
fn the_words_of_a_prompt_count_and_not_its_picture() {
    let source = json!({"type": "base64", "media_type": "image/png", "data": "AAAA"});
    let picture = json!({"type": "image", "source": source});
    let words = json!({"type": "text", "text": "Add the total price."});
    for (content, expected) in [
        (json!([words, picture]), "  prompt  Add the total price.\n"),
        (json!([picture, words]), "  prompt  Add the total price.\n"),
        (json!([picture]), "  prompt  [image/png, 3 bytes"),
    ] {
        let output = in_shop(&home_after_prompt(&content), &["blame", "src/lib.rs:3"]);
        assert!(output.stdout.contains(expected), "{content}: {output}");
    }
}

#[test]
fn a_whole_file_has_a_margin_of_80_columns() {
    let home = home_with_repository();
    let output = in_shop(&home, &["blame", "src/lib.rs"]);
    assert!(output.stdout.lines().all(|line| line.chars().count() <= 80), "{output}");
    insta::assert_snapshot!(output, @"
                 1 //! A shop for small things.
    * 5f0c1d2e:1 2
    * 5f0c1d2e:1 3 /// The price of all items.
    * 5f0c1d2e:1 4 fn total_price(items: &[Item]) -> u64 {
    * 5f0c1d2e:1 5     items.iter().map(|item| item.price).sum()
    * 5f0c1d2e:1 6 }

    ENTRY       AGENT        TIME              PROMPT
    5f0c1d2e:1  claude-code  2026-01-03 10:00  Add the total price.
    --- stderr
    6 lines: 5 certain (*), 0 likely (?), 1 unknown
    --- exit 0
    ");
}

#[test]
fn every_line_is_a_json_object() {
    let home = home_with_repository();
    let rows = rows(&in_shop(&home, &["blame", "src/lib.rs", "--json"]).ok());
    let found: Vec<_> = rows.iter().map(|row| row["certainty"].as_str().unwrap()).collect();
    assert_eq!(found, ["unknown", "certain", "certain", "certain", "certain", "certain"]);
    assert_eq!((&rows[0]["session"], &rows[0]["line"]), (&Value::Null, &json!(1)));
    let link = rows[3]["link"].as_str().unwrap();
    assert_eq!(link, "5f0c1d2e-0001:1");
    assert_eq!(rows[3]["prompt"], "Add the total price.\nKeep it short.");
    assert!(home.steno(&["show", link, "-C", "0"]).ok().contains("tool call Edit"));
}

#[test]
fn an_agent_trace_is_printed_and_notes_are_written_on_request() {
    let home = home_with_repository();
    let trace = rows(&in_shop(&home, &["blame", "src/lib.rs", "--format", "agent-trace"]).ok());
    assert_eq!(
        (&trace[0]["version"], &trace[0]["files"][0]["path"]),
        (&json!("0.1.0"), &json!("src/lib.rs"))
    );
    assert_eq!(git(&home, &["for-each-ref", "refs/notes"], ""), "");
    let output = in_shop(&home, &["blame", "src/lib.rs:4", "--write-notes", "--json"]);
    assert_eq!(output.stderr, "notes of 1 commit written to refs/notes/steno\n");
    let note = rows(git(&home, &["notes", "--ref=steno", "show", "HEAD"], "").trim()).remove(0);
    assert_eq!(note["files"][0]["conversations"][0]["ranges"][0]["start_line"], 4);
}

#[test]
fn a_line_of_no_session_exits_with_one() {
    let home = home_with_repository();
    let output = in_shop(&home, &["blame", "src/lib.rs:1"]);
    assert_eq!(output.code, 1);
    assert!(output.stdout.starts_with("src/lib.rs:1: unknown\n"), "{output}");
}

#[test]
fn the_log_of_a_file_lists_its_sessions() {
    let home = home_with_repository();
    insta::assert_snapshot!(in_shop(&home, &["log", "src/lib.rs"]), @"
    LAST EDIT         AGENT        ENTRY       EDITS  TITLE
    2026-01-03 10:00  claude-code  5f0c1d2e:1  1      Add the total price.
    --- exit 0
    ");
    let rows = rows(&in_shop(&home, &["log", "src/lib.rs", "--json"]).ok());
    assert_eq!((&rows[0]["session"], &rows[0]["entries"]), (&json!("5f0c1d2e-0001"), &json!([1])));
    let output = in_shop(&home, &["log", "src/other.rs"]);
    let missing = "no such file, and no session has edited one: src/other.rs\n";
    assert_eq!((output.stderr.as_str(), output.code), (missing, 1));
    home.file("shop/src/other.rs", "");
    let output = in_shop(&home, &["log", "src/other.rs"]);
    assert_eq!((output.stderr.as_str(), output.code), ("no session has edited src/other.rs\n", 1));
}

#[test]
fn a_commit_has_the_prompts_that_led_to_it() {
    let home = home_with_repository();
    insta::assert_snapshot!(in_shop(&home, &["show", "--commit", "HEAD"]), @"
    CERTAIN  LIKELY  AGENT        ENTRY       PROMPT
    5        0       claude-code  5f0c1d2e:1  Add the total price.
    --- exit 0
    ");
    let rows = rows(&in_shop(&home, &["show", "--commit", "HEAD", "--json"]).ok());
    assert_eq!((&rows[0]["certain_lines"], &rows[0]["files"]), (&json!(5), &json!(["src/lib.rs"])));
    let output = in_shop(&home, &["show", "--commit", "HEAD~1"]);
    assert_eq!(output.code, 1);
    assert!(output.stderr.contains("no session is known"), "{output}");
}

#[test]
fn wrong_files_lines_and_commits_are_explained() {
    let home = home_with_repository();
    for (line, wrong, fix) in [
        ("blame src/none.rs:1", "could not read", "give an existing file"),
        (
            "blame src/lib.rs:99",
            "git blame: file src/lib.rs has only 6 lines",
            "give a line that the file has",
        ),
        ("blame src", "is a folder", "give a file, such as src/main.rs:12"),
        (
            "blame ../logs/5f0c1d2e-0001.jsonl",
            "not in a Git repository",
            "run it on a file in a Git repository",
        ),
        ("blame new.rs", "git blame", "add the file to Git first"),
        ("log ../x.rs", "not in a Git repository: $HOME", "run it on a file in a Git repository"),
        ("show --commit nope", "no such commit: nope", "give a commit, such as HEAD"),
    ] {
        home.file("shop/new.rs", "a\n");
        let output = in_shop(&home, &line.split(' ').collect::<Vec<_>>());
        assert_eq!(output.code, 1, "{line}: {output}");
        assert!(output.stderr.contains(wrong) && output.stderr.contains(fix), "{line}: {output}");
    }
}
