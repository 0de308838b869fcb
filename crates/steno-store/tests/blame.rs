//! Which session wrote a line: real Git repositories, and sessions of several agents.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[path = "blame/stage.rs"]
mod stage;

use serde_json::json;
use steno_store::blame::OriginCertainty::{Certain, Likely, Unknown};
use steno_store::blame::agent_trace::{trace_record, write_notes};

use stage::{BlameStage, ScriptedSession};

const FUNCTION: &str =
    "fn total_price(items: &[Item]) -> u64 {\n    items.iter().map(|item| item.price).sum()\n}\n";

#[test]
fn a_written_function_is_certain_with_its_prompt_and_entry() {
    let stage = BlameStage::new();
    stage.write("src/lib.rs", "// A shop for small things, by a person.\n");
    stage.commit(10);
    let session =
        ScriptedSession::new("s1", 100).prompt("Add a total").write_file("src/notes.txt", "x");
    let old = "// A shop for small things, by a person.\n";
    let session =
        session.prompt("Now the price").edit("src/lib.rs", old, &format!("{old}\n{FUNCTION}"));
    stage.keep(&session);
    stage.write("src/lib.rs", &format!("{old}\n{FUNCTION}"));
    stage.commit(200);
    let lines = stage.blame("src/lib.rs");
    let found: Vec<_> = lines.iter().map(|line| line.certainty).collect();
    assert_eq!(found, [Unknown, Certain, Certain, Certain, Certain]);
    let entry = lines[2].entry.as_ref().unwrap();
    assert_eq!((entry.link().as_str(), entry.agent.as_str()), ("s1:4", "claude-code"));
    assert_eq!(entry.prompt.as_ref().unwrap().text, "Now the price");
    assert_eq!(entry.model.as_deref(), Some("claude-test-1"));
}

#[test]
fn a_single_line_with_several_words_is_certain() {
    let stage = BlameStage::new();
    stage.write("a.py", "first = 1\nsecond = 2\n");
    stage.commit(10);
    let line = "retries = settings.get('retries', 3)";
    stage.keep(&ScriptedSession::new("s1", 100).prompt("Retry").edit(
        "a.py",
        "second = 2",
        &format!("{line}\nsecond = 2"),
    ));
    stage.write("a.py", &format!("first = 1\n{line}\nsecond = 2\n"));
    stage.commit(200);
    assert_eq!(stage.levels("a.py"), [Unknown, Certain, Unknown]);
}

#[test]
fn a_short_line_alone_proves_nothing() {
    let stage = BlameStage::new();
    stage.keep(&ScriptedSession::new("s1", 100).prompt("Close it").edit("a.c", "x", "x\n}"));
    stage.write("a.c", "int main(void) {\n  return 0;\n}\n");
    stage.commit(200);
    assert!(stage.levels("a.c").iter().all(|level| *level == Unknown));
}

#[test]
fn a_blank_line_that_a_person_added_is_not_certain() {
    let stage = BlameStage::new();
    let tax = "fn tax_of(price: u64, percent: u64) -> u64 {\n    price * percent / 100\n}\n";
    let session = ScriptedSession::new("s1", 100).prompt("Add them");
    stage.keep(&session.write_file("a.rs", &format!("{FUNCTION}\n{tax}")));
    stage.write("a.rs", &format!("{FUNCTION}\n{tax}"));
    stage.commit(200);
    assert_eq!(stage.levels("a.rs"), [Certain; 7]);
    stage.write("a.rs", &format!("{FUNCTION}\n\n{tax}"));
    stage.commit(300);
    let levels = stage.levels("a.rs");
    assert_eq!([&levels[..3], &levels[5..]].concat(), [Certain; 6]);
    assert_eq!(levels[3..5].iter().filter(|level| **level == Certain).count(), 1, "{levels:?}");
}

#[test]
fn a_line_that_occurs_twice_is_not_certain_on_its_own() {
    let stage = BlameStage::new();
    let line = "    price_total = sum(item.price for item in items)";
    stage.keep(&ScriptedSession::new("s1", 100).prompt("Sum").edit("a.py", "    pass", line));
    stage.write("a.py", &format!("def one(items):\n{line}\ndef two(items):\n  {line}\n"));
    stage.commit(200);
    assert!(!stage.levels("a.py").contains(&Certain));
}

#[test]
fn the_same_text_of_two_sessions_is_not_certain() {
    let stage = BlameStage::new();
    for (name, at) in [("s1", 100), ("s2", 150)] {
        stage.keep(&ScriptedSession::new(name, at).prompt("Add it").write_file("a.rs", FUNCTION));
    }
    stage.write("a.rs", FUNCTION);
    stage.commit(200);
    assert_eq!(stage.levels("a.rs"), [Likely, Likely, Likely]);
}

#[test]
fn two_sessions_at_once_each_have_their_lines() {
    let stage = BlameStage::new();
    let other = "fn tax_of(price: u64, percent: u64) -> u64 {\n    price * percent / 100\n}\n";
    stage.keep(&ScriptedSession::new("s1", 100).prompt("Total").edit("a.rs", "", FUNCTION));
    stage.keep(&ScriptedSession::new("s2", 100).prompt("Tax").edit("a.rs", "", other));
    stage.write("a.rs", &format!("{FUNCTION}\n{other}"));
    stage.commit(200);
    let lines = stage.blame("a.rs");
    let names: Vec<_> = lines
        .iter()
        .map(|line| line.entry.as_ref().map(|entry| entry.session.to_string()))
        .collect();
    let name = |name: &str| Some(name.to_owned());
    assert_eq!(names[..3], [name("s1"), name("s1"), name("s1")]);
    assert_eq!(names[4..], [name("s2"), name("s2"), name("s2")]);
    assert!(
        lines.iter().enumerate().all(|(at, line)| at == 3 || line.certainty == Certain),
        "{lines:#?}"
    );
}

#[test]
fn a_session_that_writes_a_line_into_two_files_has_an_entry_for_each() {
    let stage = BlameStage::new();
    let session = ScriptedSession::new("s1", 100).prompt("One").write_file("a.rs", FUNCTION);
    stage.keep(&session.prompt("Two").write_file("b.rs", FUNCTION));
    stage.write("a.rs", FUNCTION);
    stage.write("b.rs", FUNCTION);
    stage.commit(200);
    for (file, prompt) in [("a.rs", "One"), ("b.rs", "Two")] {
        for line in stage.blame(file) {
            assert_eq!(line.certainty, Certain, "{line:#?}");
            assert_eq!(line.entry.unwrap().prompt.unwrap().text, prompt);
        }
    }
}

#[test]
fn what_a_formatter_changed_is_likely() {
    let stage = BlameStage::new();
    let written =
        "def total(items):\n  price_sum = sum(item.price for item in items)\n  return price_sum\n";
    stage.keep(&ScriptedSession::new("s1", 100).prompt("Add it").write_file("a.py", written));
    stage.write("a.py", written);
    stage.commit(200);
    stage.write("a.py", &written.replace("  ", "    "));
    stage.commit(300);
    let levels = stage.levels("a.py");
    assert_eq!((levels[0], levels[1]), (Certain, Likely));
    assert_ne!(levels[2], Certain);
}

#[test]
fn a_line_that_a_session_had_read_is_not_its_own() {
    let stage = BlameStage::new();
    let session = ScriptedSession::new("s1", 100).prompt("Tidy up");
    let session = session.call("Read", json!({"file_path": stage.path("a.rs")}), FUNCTION);
    stage.keep(&session.write_file("a.rs", &format!("// Prices.\n{FUNCTION}")));
    stage.write("a.rs", &format!("// Prices.\n{FUNCTION}"));
    stage.commit(200);
    assert!(!stage.levels("a.rs")[1..].contains(&Certain));
}

#[test]
fn new_lines_beside_lines_that_were_read_do_not_prove_those() {
    let stage = BlameStage::new();
    let tax = "fn tax_of(price: u64, percent: u64) -> u64 {\n    price * percent / 100\n}\n";
    let session = ScriptedSession::new("s1", 100).prompt("Add the tax");
    let session = session.call("Read", json!({"file_path": stage.path("a.rs")}), FUNCTION);
    stage.keep(&session.write_file("a.rs", &format!("{FUNCTION}\n{tax}")));
    stage.write("a.rs", &format!("{FUNCTION}\n{tax}"));
    stage.commit(200);
    let levels = stage.levels("a.rs");
    assert!(!levels[..4].contains(&Certain), "{levels:?}");
    assert_eq!(levels[4..], [Certain; 3]);
}

#[test]
fn a_line_that_git_takes_for_a_copy_is_not_certain() {
    let stage = BlameStage::new();
    stage.keep(&ScriptedSession::new("s1", 100).prompt("Add it").write_file("a.rs", FUNCTION));
    stage.write("a.rs", FUNCTION);
    stage.commit(200);
    stage.keep(&ScriptedSession::new("s2", 300).prompt("Add it").write_file("b.rs", FUNCTION));
    stage.write("b.rs", FUNCTION);
    stage.commit(400);
    assert_eq!(stage.levels("b.rs"), [Likely; 3]);
}

#[test]
fn short_lines_that_a_person_wrote_again_are_not_certain() {
    let stage = BlameStage::new();
    let count = |bird: &str| {
        format!(
            "def count_{bird}_at(places):\n    total = 0\n    for place in places:\n        total += place.{bird}_seen * 2\n    return total\n"
        )
    };
    stage.keep(
        &ScriptedSession::new("s1", 100).prompt("Herons").write_file("a.py", &count("heron")),
    );
    stage.write("a.py", &count("heron"));
    stage.commit(200);
    stage.write("a.py", &format!("{}\n{}", count("heron"), count("gull")));
    stage.commit(300);
    let levels = stage.levels("a.py");
    assert_eq!(levels[..5], [Certain; 5]);
    assert!(!levels[5..].contains(&Certain), "{levels:?}");
}

#[test]
fn a_line_that_a_person_pasted_is_not_the_sessions() {
    let stage = BlameStage::new();
    let session =
        ScriptedSession::new("s1", 100).prompt(&format!("Put this into a.rs:\n{FUNCTION}"));
    stage.keep(&session.write_file("a.rs", FUNCTION));
    stage.write("a.rs", FUNCTION);
    stage.commit(200);
    assert!(!stage.levels("a.rs").contains(&Certain));
}

#[test]
fn a_line_that_another_session_had_seen_before_is_not_certain() {
    let stage = BlameStage::new();
    let reader = ScriptedSession::new("s1", 50).prompt("Look");
    stage.keep(&reader.call("Read", json!({"file_path": stage.path("b.rs")}), FUNCTION));
    stage.keep(&ScriptedSession::new("s2", 100).prompt("Add it").write_file("a.rs", FUNCTION));
    stage.write("a.rs", FUNCTION);
    stage.commit(200);
    assert!(!stage.levels("a.rs")[..2].contains(&Certain));
}

#[test]
fn a_session_after_the_commit_did_not_write_it() {
    let stage = BlameStage::new();
    stage.write("a.rs", FUNCTION);
    stage.commit(100);
    stage.keep(&ScriptedSession::new("s1", 150).prompt("Add it").write_file("b.rs", FUNCTION));
    assert_eq!(stage.levels("a.rs"), [Unknown, Unknown, Unknown]);
}

#[test]
fn an_edit_between_commit_and_rebase_is_not_certain() {
    let stage = BlameStage::new();
    stage.write("a.rs", FUNCTION);
    stage.commit_at(100, 300);
    stage.keep(&ScriptedSession::new("s1", 150).prompt("Add it").write_file("a.rs", FUNCTION));
    assert_eq!(stage.levels("a.rs"), [Likely, Likely, Likely]);
}

#[test]
fn a_rebased_commit_keeps_its_session() {
    let stage = BlameStage::new();
    stage.keep(&ScriptedSession::new("s1", 100).prompt("Add it").write_file("a.rs", FUNCTION));
    stage.write("a.rs", FUNCTION);
    stage.commit_at(150, 900);
    assert_eq!(stage.levels("a.rs"), [Certain, Certain, Certain]);
}

#[test]
fn lines_that_are_not_committed_have_a_session() {
    let stage = BlameStage::new();
    stage.write("a.rs", "// Nothing yet.\n");
    stage.commit(10);
    stage.keep(&ScriptedSession::new("s1", 100).prompt("Add it").write_file("a.rs", FUNCTION));
    stage.write("a.rs", FUNCTION);
    assert_eq!(stage.levels("a.rs"), [Certain, Certain, Certain]);
}

#[test]
fn a_copied_or_renamed_file_leads_to_the_same_session() {
    let stage = BlameStage::new();
    stage.keep(&ScriptedSession::new("s1", 100).prompt("Add it").write_file("a.rs", FUNCTION));
    stage.write("a.rs", FUNCTION);
    stage.commit(200);
    stage.write("copied.rs", FUNCTION);
    stage.commit(300);
    assert_eq!(stage.levels("copied.rs"), [Certain, Certain, Certain]);
    stage.git(&["mv", "a.rs", "renamed.rs"]);
    stage.commit(400);
    assert_eq!(stage.levels("renamed.rs"), [Certain, Certain, Certain]);
}

#[test]
fn a_failed_edit_wrote_nothing() {
    let stage = BlameStage::new();
    let session = ScriptedSession::new("s1", 100).prompt("Add it");
    let input = json!({"file_path": stage.path("a.rs"), "content": FUNCTION});
    stage.keep(&session.failed_call("Write", input, "permission denied"));
    stage.write("a.rs", FUNCTION);
    stage.commit(200);
    assert_eq!(stage.levels("a.rs"), [Unknown, Unknown, Unknown]);
}

#[test]
fn a_session_in_a_worktree_or_subfolder_belongs_to_the_repository() {
    let stage = BlameStage::new();
    stage.write("web/a.rs", "// Nothing yet.\n");
    stage.commit(10);
    stage.git(&["worktree", "add", "-q", "../tree"]);
    let tree = stage.root().parent().unwrap().join("tree");
    stage.keep(
        &ScriptedSession::new("s1", 100)
            .in_folder(tree.join("web"))
            .prompt("Add it")
            .write_file("a.rs", FUNCTION),
    );
    stage.write("web/a.rs", FUNCTION);
    stage.commit(200);
    assert_eq!(stage.levels("web/a.rs"), [Certain, Certain, Certain]);
}

#[test]
fn a_session_of_another_repository_is_not_asked() {
    let stage = BlameStage::new();
    stage.keep(
        &ScriptedSession::new("s1", 100)
            .in_folder("/elsewhere".into())
            .prompt("Add it")
            .write_file("a.rs", FUNCTION),
    );
    stage.write("a.rs", FUNCTION);
    stage.commit(200);
    assert_eq!(stage.levels("a.rs"), [Unknown, Unknown, Unknown]);
}

#[test]
fn a_file_written_again_keeps_the_entry_that_brought_the_line() {
    let stage = BlameStage::new();
    let session = ScriptedSession::new("s1", 100).prompt("Add it").write_file("a.rs", FUNCTION);
    stage.keep(&session.prompt("More").write_file("a.rs", &format!("{FUNCTION}// The end.\n")));
    let dropped = ScriptedSession::new("s2", 100)
        .prompt("Add it")
        .write_file("b.py", "total_price = sum(item.price for item in items)\n");
    let dropped = dropped.prompt("Remove it").write_file("b.py", "# Nothing.\n");
    stage.keep(
        &dropped
            .prompt("Again")
            .write_file("b.py", "total_price = sum(item.price for item in items)\n"),
    );
    stage.write("a.rs", FUNCTION);
    stage.write("b.py", "total_price = sum(item.price for item in items)\n");
    stage.commit(200);
    let entry = |file: &str| stage.blame(file)[0].entry.clone().unwrap();
    assert_eq!(entry("a.rs").prompt.unwrap().text, "Add it");
    assert_eq!(entry("b.py").prompt.unwrap().text, "Again");
}

#[test]
fn a_resumed_session_repeats_the_history_of_the_first() {
    let stage = BlameStage::new();
    let first = ScriptedSession::new("s1", 100).prompt("Add it").write_file("a.rs", FUNCTION);
    stage.keep(&first);
    stage.keep(
        &first
            .copied_as("s2")
            .prompt("Go on")
            .write_file("b.rs", "// Another file, of no interest.\n"),
    );
    stage.write("a.rs", FUNCTION);
    stage.commit(300);
    let lines = stage.blame("a.rs");
    assert!(lines.iter().all(|line| line.certainty == Certain), "{lines:#?}");
    assert_eq!(lines[0].entry.as_ref().unwrap().session.as_str(), "s1");
}

#[test]
fn the_tools_of_all_agents_are_known() {
    let text = "def total_price(items):\n    return sum(item.price for item in items)\n\nprint(total_price(load_items()))\n";
    let added = text.lines().map(|line| format!("+{line}\n")).collect::<String>();
    let patch = format!("*** Begin Patch\n*** Add File: a.py\n{added}*** End Patch");
    let calls = [
        ("Write", json!({"file_path": "a.py", "content": text})),
        ("write_file", json!({"file_path": "a.py", "content": text})),
        ("write", json!({"filePath": "a.py", "content": text})),
        ("create_file", json!({"path": "a.py", "file_text": text})),
        (
            "MultiEdit",
            json!({"file_path": "a.py", "edits": [{"old_string": "", "new_string": text}]}),
        ),
        (
            "replace",
            json!({"file_path": "a.py", "instruction": "Add it", "old_string": "", "new_string": text}),
        ),
        ("edit", json!({"filePath": "a.py", "oldString": "", "newString": text})),
        ("str_replace_editor", json!({"command": "create", "path": "a.py", "file_text": text})),
        (
            "str_replace_based_edit_tool",
            json!({"command": "str_replace", "path": "a.py", "old_str": "x", "new_str": text}),
        ),
        ("apply_patch", json!({"input": patch})),
        (
            "shell",
            json!({"command": ["bash", "-lc", format!("apply_patch <<'EOF'\n{patch}\nEOF")]}),
        ),
        (
            "Bash",
            json!({"command": format!("cat > a.py <<'EOF'\n{text}EOF"), "description": "Write it"}),
        ),
        (
            "replace_in_file",
            json!({"path": "a.py", "diff": format!("<<<<<<< SEARCH\nx\n=======\n{text}>>>>>>> REPLACE")}),
        ),
    ];
    for (tool, input) in calls {
        let stage = BlameStage::new();
        stage.keep(&ScriptedSession::new("s1", 100).prompt("Add it").call(tool, input, "done"));
        stage.write("a.py", text);
        stage.commit(200);
        assert_eq!(stage.levels("a.py"), [Certain; 4], "{tool}");
    }
}

#[test]
fn a_cell_of_a_notebook_is_found() {
    let stage = BlameStage::new();
    let source = "import pandas as pd\nframe = pd.read_csv('prices.csv')\nframe.describe()";
    let input =
        json!({"notebook_path": stage.path("a.ipynb"), "cell_id": "c1", "new_source": source});
    stage.keep(&ScriptedSession::new("s1", 100).prompt("Load it").call(
        "NotebookEdit",
        input,
        "done",
    ));
    let lines: Vec<_> = source.split_inclusive('\n').collect();
    let notebook = serde_json::to_string_pretty(&json!({"cells": [{"source": lines}]})).unwrap();
    stage.write("a.ipynb", &notebook);
    stage.commit(200);
    let levels = stage.levels("a.ipynb");
    assert_eq!(levels[4..7], [Certain; 3], "{notebook}");
}

#[test]
fn a_text_that_looks_like_arguments_is_read_from_the_record() {
    let stage = BlameStage::new();
    let yaml = "path: /var/lib/shop\ncontent: all prices of today\ndescription: the small shop\n";
    stage.keep(&ScriptedSession::new("s1", 100).prompt("Configure").write_file("a.yaml", yaml));
    stage.write("a.yaml", yaml);
    stage.commit(200);
    assert_eq!(stage.levels("a.yaml"), [Certain, Certain, Certain]);
}

#[test]
fn a_note_of_git_ai_is_further_evidence() {
    let stage = BlameStage::new();
    stage.keep(&ScriptedSession::new("s1", 100).prompt("Add it").write_file("a.rs", FUNCTION));
    stage.keep(&ScriptedSession::new("s2", 100).prompt("Fix").edit("b.rs", "x", "y"));
    stage.write("a.rs", FUNCTION);
    stage.write("b.rs", "made_by_a_tool = True\n");
    stage.commit(200);
    // The first 14 digits of `printf claude:s1 | sha256sum`, and of `printf claude:s2 | sha256sum`.
    let keys = [stage::git_ai_key("s1"), stage::git_ai_key("s2")];
    let note = |a: &str, b: &str| {
        format!(
            "a.rs\n  {a}::t_00000000000001 1-3\nb.rs\n  {b}::t_00000000000002 1\n---\n{}",
            json!({"schema_version": "authorship/3.0.0", "base_commit_sha": "x", "prompts": {}})
        )
    };
    stage.git(&["notes", "--ref=ai", "add", "-m", &note(&keys[0], &keys[1])]);
    let lines = stage.blame("a.rs");
    assert!(lines.iter().all(|line| line.certainty == Certain));
    assert!(lines[0].evidence.contains(&"git-ai's note names this session".to_owned()));
    let line = &stage.blame("b.rs")[0];
    assert_eq!((line.certainty, line.entry.as_ref().unwrap().session.as_str()), (Likely, "s2"));
    stage.git(&["notes", "--ref=ai", "add", "-f", "-m", &note(&keys[1], &keys[0])]);
    assert_eq!(stage.levels("a.rs"), [Likely, Likely, Likely]);
}

#[test]
fn a_checkpoint_of_entire_is_further_evidence() {
    let stage = BlameStage::new();
    stage.keep(&ScriptedSession::new("s1", 100).prompt("Add it").write_file("a.rs", FUNCTION));
    stage.git(&["checkout", "-q", "--orphan", "entire/checkpoints/v1"]);
    stage.write("a1/b2c3d4e5f6/0/metadata.json", "{\n  \"session_id\": \"2026-01-05-s1\"\n}\n");
    stage.commit(120);
    stage.git(&["checkout", "-q", "--orphan", "main2"]);
    stage.git(&["rm", "-rfq", "."]);
    stage.write("a.rs", FUNCTION);
    stage.commit_with_message(200, "Add it\n\nEntire-Checkpoint: a1b2c3d4e5f6");
    let lines = stage.blame("a.rs");
    let reason = "the commit's Entire checkpoint names this session";
    assert!(lines[0].evidence.contains(&reason.to_owned()), "{lines:#?}");
}

#[test]
fn a_commit_shows_what_led_to_it() {
    let stage = BlameStage::new();
    stage.write("a.rs", "// By a person.\n");
    stage.commit(10);
    stage.keep(&ScriptedSession::new("s1", 100).prompt("Add it").edit("a.rs", "", FUNCTION));
    stage.write("a.rs", &format!("// By a person.\n{FUNCTION}"));
    stage.write("b.txt", "only a person writes such a text\n");
    stage.commit(200);
    let found = stage.blame_commit("HEAD");
    let paths: Vec<_> = found.iter().map(|(path, lines)| (path.as_str(), lines.len())).collect();
    assert_eq!(paths, [("a.rs", 3), ("b.txt", 1)]);
    assert!(found[0].1.iter().all(|line| line.certainty == Certain));
    assert_eq!(found[1].1[0].certainty, Unknown);
}

#[test]
fn the_sessions_of_a_file_are_listed() {
    let stage = BlameStage::new();
    stage.keep(
        &ScriptedSession::new("s1", 100)
            .prompt("Add it")
            .write_file("src/a.rs", FUNCTION)
            .edit("src/a.rs", "u64", "u32"),
    );
    stage.keep(&ScriptedSession::new("s2", 500).prompt("Fix").edit("src/a.rs", "x", "y"));
    stage.keep(&ScriptedSession::new("s3", 600).prompt("Other").edit("web/a.rs", "x", "y"));
    stage.write("src/a.rs", FUNCTION);
    stage.commit(700);
    let found = stage.file_sessions("src/a.rs");
    let found: Vec<_> = found.iter().map(|one| (one.session.as_str(), one.entries.len())).collect();
    assert_eq!(found, [("s2", 1), ("s1", 2)]);
}

#[test]
fn a_trace_record_has_the_lines_of_each_conversation() {
    let stage = BlameStage::new();
    stage.write("a.rs", "// By a person.\n");
    stage.commit(10);
    stage.keep(&ScriptedSession::new("s1", 100).prompt("Add it").edit("a.rs", "", FUNCTION));
    stage.write("a.rs", &format!("// By a person.\n{FUNCTION}"));
    stage.commit(200);
    let (file, origins) = stage.blame_file("a.rs");
    let record = trace_record(&file, &origins, stage.now());
    assert_eq!(record["version"], "0.1.0");
    assert_eq!(
        record["vcs"]["revision"].as_str().unwrap(),
        stage.git(&["rev-parse", "HEAD"]).trim()
    );
    let conversation = &record["files"][0]["conversations"][0];
    assert_eq!(conversation["url"], "steno:s1");
    assert_eq!(
        conversation["contributor"],
        json!({"type": "ai", "model_id": "anthropic/claude-test-1"})
    );
    assert_eq!(
        (&conversation["ranges"][0]["start_line"], &conversation["ranges"][0]["end_line"]),
        (&json!(2), &json!(4))
    );
    assert!(conversation["ranges"][0]["content_hash"].as_str().unwrap().starts_with("sha256:"));
}

#[test]
fn notes_are_written_to_the_commits_and_keep_other_files() {
    let stage = BlameStage::new();
    stage.keep(
        &ScriptedSession::new("s1", 100)
            .prompt("Add it")
            .write_file("a.rs", FUNCTION)
            .write_file("b.rs", &FUNCTION.replace("total", "whole")),
    );
    stage.write("a.rs", FUNCTION);
    stage.write("b.rs", &FUNCTION.replace("total", "whole"));
    stage.commit(200);
    for file in ["a.rs", "b.rs", "a.rs"] {
        let (_, origins) = stage.blame_file(file);
        assert_eq!(write_notes(&stage.repository(), &origins, stage.now()).unwrap().len(), 1);
    }
    let note = stage.git(&["notes", "--ref=steno", "show", "HEAD"]);
    let note: serde_json::Value = serde_json::from_str(&note).unwrap();
    let files: Vec<_> =
        note["files"].as_array().unwrap().iter().map(|file| file["path"].clone()).collect();
    assert_eq!(files, [json!("b.rs"), json!("a.rs")]);
    assert_eq!(note["files"][1]["conversations"][0]["ranges"][0]["end_line"], 3);
}
