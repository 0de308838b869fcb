//! Tests of `steno as chibi` on folders of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use crate::harness;

struct Home(harness::Home);

impl Home {
    fn new() -> Self {
        let home = Self(harness::Home::new());
        home.put("contexts/default/context.jsonl", &conversation("alice", "default"));
        home
    }

    fn base(&self) -> PathBuf {
        self.0.path().join(".chibi")
    }

    fn put(&self, name: &str, text: &str) {
        let path = self.base().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn chibi(&self, args: &[&str]) -> Output {
        let args = [&["as", "chibi"], args].concat();
        self.0.command(&args).env("STENO_NOW", "2026-01-05T09:15:32Z").output().unwrap()
    }

    /// Runs a command that must succeed, and returns its output.
    fn shows(&self, args: &[&str]) -> String {
        let output = self.chibi(args);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// Runs a command that must fail, and returns its exit code and messages.
    fn fails(&self, args: &[&str]) -> (Option<i32>, String) {
        let output = self.chibi(args);
        assert_eq!(output.stdout, b"");
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    }
}

fn conversation(user: &str, context: &str) -> String {
    [
        (user, context, "Hi", "message"),
        (context, "ls", r#"{\"path\":\"ääääääääääääääääääääääääää\"}"#, "tool_call"),
        ("ls", context, "a\\nb", "tool_result"),
        ("system", context, "", "compaction"),
        (context, "user", "Hello", "message"),
    ]
    .iter()
    .enumerate()
    .map(|(at, (from, to, content, entry_type))| {
        format!(
            "{{\"id\":\"{at}\",\"timestamp\":{at},\"from\":\"{from}\",\"to\":\"{to}\",\
             \"content\":\"{content}\",\"entry_type\":\"{entry_type}\"}}\n"
        )
    })
    .collect()
}

#[test]
fn the_count_chooses_from_either_end() {
    let home = Home::new();
    assert_eq!(home.shows(&["-g", "1"]), "[DEFAULT]: Hello\n\n");
    assert_eq!(home.shows(&["-g", "-1"]), "[ALICE]: Hi\n\n");
    let preview = format!("[TOOL: ls] {{\"path\":\"{}...\n", "ä".repeat(25));
    let all = format!("[ALICE]: Hi\n\n{preview}  → 3b\n[DEFAULT]: Hello\n\n");
    assert_eq!(home.shows(&["-g", "0"]), all);
    assert_eq!(home.shows(&["-g", "99"]), all);
    let verbose = home.shows(&["-v", "-g", "-4"]);
    assert!(verbose.ends_with("[TOOL RESULT: ls]\na\nb\n\n[COMPACTION]: \n\n"), "{verbose}");
}

#[test]
fn the_current_context_is_where_chibi_notes_it() {
    let home = Home::new();
    home.put("contexts/research/context.jsonl", &conversation("bob", "research"));
    home.put("state.json", r#"{"contexts":["research"],"current_context":"research"}"#);
    assert_eq!(home.shows(&["-g", "-1"]), "[BOB]: Hi\n\n");
    home.put("session.json", r#"{"implied_context":"default","previous_context":"research"}"#);
    assert_eq!(home.shows(&["-g", "-1"]), "[ALICE]: Hi\n\n");
    assert_eq!(home.shows(&["-G", "research", "-1"]), "[BOB]: Hi\n\n");
    let base = home.base();
    let other = Home::new();
    let dir = base.to_str().unwrap();
    assert_eq!(other.shows(&["--dir", dir, "-G", "research", "1"]), "[RESEARCH]: Hello\n\n");
}

#[test]
fn wrong_numbers_and_names_are_reported() {
    let home = Home::new();
    assert_eq!(home.fails(&["-g", "abc"]), (Some(2), "error: Invalid number: abc\n".to_owned()));
    let expected = (Some(2), "error: Invalid number: x\n".to_owned());
    assert_eq!(home.fails(&["-G", "default", "x"]), expected);
    let (code, message) = home.fails(&["-G", "nobody", "1"]);
    assert_eq!(code, Some(1));
    assert_eq!(message, "error: no such context: nobody\nhint: the contexts are default\n");
    let (code, message) = home.fails(&["-G", "../default", "1"]);
    assert_eq!(code, Some(1));
    assert!(message.starts_with("error: not a context name"), "{message}");
    let (code, message) = home.fails(&["--dir", "/nonexistent", "-g", "1"]);
    assert_eq!(code, Some(1));
    assert!(message.contains("hint: no contexts in /nonexistent"), "{message}");
    assert_eq!(home.fails(&[]).0, Some(2));
    assert_eq!(home.fails(&["-g", "1", "-G", "default", "1"]).0, Some(2));
}

#[test]
fn bad_lines_are_warned_of_and_skipped() {
    let home = Home::new();
    home.put(
        "contexts/default/context.jsonl",
        &format!("{}torn", conversation("alice", "default")),
    );
    let output = home.chibi(&["-g", "1"]);
    assert_eq!(output.stdout, b"[DEFAULT]: Hello\n\n");
    let warning = String::from_utf8(output.stderr).unwrap();
    assert!(
        warning.starts_with("warning: ") && warning.contains("context.jsonl:6: not JSON"),
        "{warning}"
    );
    fs::remove_file(home.base().join("contexts/default/context.jsonl")).unwrap();
    assert_eq!(home.shows(&["-g", "1"]), "");
}

#[test]
fn the_sample_context_prints_as_chibi_prints_it() {
    let Some(golden) = std::env::var_os("STENO_GOLDEN") else {
        eprintln!("STENO_GOLDEN is not set: sample files are not compared");
        return;
    };
    let base = Path::new(&golden).join("chibi/seed");
    for (name, args) in [
        ("chibi_-g_0.txt", vec!["-g", "0"]),
        ("chibi_-g_1.txt", vec!["-g", "1"]),
        ("chibi_-g_-1.txt", vec!["-g", "-1"]),
        ("chibi_-v_-g_0.txt", vec!["-v", "-g", "0"]),
    ] {
        let expected = fs::read_to_string(base.join("contexts/default/cli").join(name)).unwrap();
        let args = [vec!["--dir", base.to_str().unwrap()], args].concat();
        assert_eq!(Home::new().shows(&args), expected, "{name}");
    }
}

#[test]
fn later_releases_print_names_on_lines_of_their_own() {
    let home = Home::new();
    let shown = home.shows(&["-g", "0", "--style", "v0.10.10"]);
    assert!(shown.starts_with("[ALICE]\nHi\n\n[TOOL: ls] "), "{shown}");
    assert!(shown.ends_with("  -> 3b\n[DEFAULT]\nHello\n\n"), "{shown}");
}

#[test]
fn contexts_are_listed_and_described() {
    let home = Home::new();
    home.put("contexts/research/context.jsonl", &conversation("bob", "research"));
    home.put("contexts/research/summary.md", "About Rust\nand more\n");
    home.put("contexts/research/.lock", "1767604520");
    home.put("contexts/default/.lock", "5");
    assert_eq!(home.shows(&["-L"]), "* default [stale]\n  research [active]\n");
    assert_eq!(home.shows(&["-l"]), "Context: default [stale]\nMessages: 2\n");
    home.put("session.json", "{\"implied_context\":\"research\"}");
    let info = "Context: research [active]\nMessages: 2\nSummary: About Rust\n";
    assert_eq!(home.shows(&["-l"]), info);
    let later = home.shows(&["-l", "--style", "v0.10.10"]);
    assert_eq!(later, "Context: research [active]\nPrompts: 1\nSummary: About Rust\n");
}

#[test]
fn files_of_a_context_are_inspected() {
    let home = Home::new();
    home.put("prompts/chibi.md", "You are chibi");
    home.put("contexts/other/goals.md", "win\n");
    assert_eq!(home.shows(&["-n", "system_prompt"]), "You are chibi\n");
    assert_eq!(home.shows(&["-n", "todos"]), "(no todos)\n");
    assert_eq!(home.shows(&["-N", "other", "goals"]), "win\n");
    let list = "Inspectable items:\n  system_prompt\n  reflection\n  todos\n  goals\n  list\n";
    assert_eq!(home.shows(&["-n", "list"]), list);
    let (code, error) = home.fails(&["-n", "mood"]);
    assert_eq!(code, Some(2));
    assert!(error.starts_with("error: nothing to inspect: mood\n"), "{error}");
}

#[test]
fn messages_are_sent_and_taken_in_as_a_prompt() {
    let home = Home::new();
    let send = |input: &str| home.chibi(&["-P", "send_message", input]);
    let sent = send("{\"to\":\"research\",\"content\":\"look it up\"}");
    assert_eq!(sent.stdout, b"Message delivered to 'research' via local inbox\n");
    let refused = String::from_utf8(send("{\"to\":\"x\"}").stderr).unwrap();
    assert_eq!(refused, "error: Error: 'content' field is required\n");
    let inbox = home.base().join("contexts/research/inbox.jsonl");
    assert!(fs::read_to_string(&inbox).unwrap().contains("\"from\":\"default\""));
    let prompt = home.shows(&["-B", "research"]);
    assert!(
        prompt.starts_with(
            "--- INBOX MESSAGES ---\n[From: default] look it up\n--- END INBOX ---\n\n[System: "
        ),
        "{prompt}"
    );
    assert_eq!(fs::read_to_string(&inbox).unwrap(), "");
    assert!(home.shows(&["-G", "research", "0"]).starts_with("[USER]: --- INBOX"));
    assert_eq!(home.shows(&["-b"]), "");
    let verbose = home.chibi(&["-v", "-b"]);
    assert_eq!(String::from_utf8(verbose.stderr).unwrap(), "[No messages in any inbox.]\n");
}

#[test]
fn contexts_are_compacted_and_archived() {
    let home = Home::new();
    let context = home.base().join("contexts/default/context.jsonl");
    let before = fs::read_to_string(&context).unwrap();
    let few = home.chibi(&["-z"]);
    assert_eq!(few.stderr, b"Context is already compact (2 or fewer messages)\n");
    assert_eq!(fs::read_to_string(&context).unwrap(), before);
    fs::write(&context, before.repeat(2)).unwrap();
    let compacted = home.shows(&["-Z", "default", "--summary", "Greetings", "--keep", "1"]);
    assert_eq!(compacted, "Context 'default' compacted\n");
    let verbose = home.shows(&["-v", "-g", "0"]);
    assert_eq!(verbose, "[COMPACTION]: \n\n[DEFAULT]: Hello\n\n");
    assert!(fs::read_to_string(&context).unwrap().contains("\"summary\":\"Greetings\""));
    let archive = home.base().join("contexts/default/transcript_archive.jsonl");
    assert_eq!(fs::read_to_string(&archive).unwrap().lines().count(), 9);
    let archived = "Context 'default' archived (history saved to transcript)\n";
    assert_eq!(home.shows(&["-a"]), archived);
    assert_eq!(fs::read_to_string(&context).unwrap(), "");
}

#[test]
fn commands_that_only_read_write_nothing() {
    let home = Home::new();
    let names = || {
        let listed = fs::read_dir(home.base().join("contexts/default")).unwrap();
        listed.map(|item| item.unwrap().file_name()).collect::<Vec<_>>()
    };
    let before = names();
    for args in [&["-g", "0"][..], &["-l"], &["-L"], &["-n", "goals"]] {
        home.shows(args);
    }
    assert_eq!(names(), before);
}
