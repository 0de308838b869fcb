//! Help pages, manual pages and completions.

use std::collections::BTreeSet;

use crate::harness::Home;

/// Returns the names of the commands on the program's help page.
fn listed_commands(home: &Home) -> Vec<String> {
    let help = home.steno(&["--help"]).ok();
    let lines = help.lines().filter(|line| line.starts_with("  ") && !line.starts_with("  -"));
    let names = lines.filter_map(|line| line.split_whitespace().next().map(str::to_owned));
    names.filter(|name| name.chars().all(|c| c.is_ascii_lowercase())).collect()
}

#[test]
fn zsh_completes_at_once_when_it_loads_the_script() {
    let script = Home::new().steno(&["completions", "zsh"]).ok();
    assert!(script.starts_with("#compdef steno\n"), "{script}");
    let first = "[[ $funcstack[1] == _steno ]] && _clap_dynamic_completer_steno \"$@\"\n";
    assert!(script.ends_with(first), "{script}");
}

#[test]
fn commands_are_listed_in_groups() {
    let home = Home::new();
    let help = home.steno(&["--help"]).ok();
    let titles = help.lines().filter(|line| line.ends_with(':') && !line.starts_with(' '));
    let titles: Vec<&str> = titles.collect();
    assert_eq!(
        titles,
        ["Capture:", "Find and read:", "Share:", "Threads:", "The store:", "Options:"]
    );
    assert_eq!(home.steno(&["help"]).ok(), help);
    assert!(listed_commands(&home).len() > 40, "{help}");
}

#[test]
fn each_command_has_a_help_page_with_two_examples() {
    let home = Home::new();
    for name in listed_commands(&home) {
        let page = home.steno(&["help", &name]).ok();
        let (_, examples) = page.split_once("\nExamples:\n").expect(&page);
        assert_eq!(examples.lines().count(), 2, "{page}");
        for line in examples.lines() {
            assert!(line.starts_with(&format!("  steno {name}")), "{page}");
        }
        assert!(home.steno(&[&name, "-h"]).ok().contains("\nExamples:\n"), "{name}");
    }
}

#[test]
fn each_command_has_a_manual_page() {
    let home = Home::new();
    let paths = home.steno(&["man", "--dir", "man1"]).ok();
    let written: BTreeSet<&str> =
        paths.lines().filter_map(|path| path.strip_prefix("$HOME/man1/")).collect();
    assert_eq!(written.len(), paths.lines().count(), "{paths}");
    assert!(written.contains("steno-hooks-install.1") && written.contains("steno.1"), "{paths}");
    for name in listed_commands(&home) {
        let file = format!("steno-{name}.1");
        assert!(written.contains(file.as_str()), "{file}");
        let page = std::fs::read_to_string(home.path().join("man1").join(&file)).unwrap();
        for section in ["NAME", "SYNOPSIS", "DESCRIPTION", "OPTIONS", "EXAMPLES", "\"EXIT STATUS\""]
        {
            assert!(page.contains(&format!("\n.SH {section}\n")), "{section} in {page}");
        }
    }
    let program = std::fs::read_to_string(home.path().join("man1/steno.1")).unwrap();
    assert_eq!(home.steno(&["man"]).ok(), program);
    assert!(program.contains("\n.SH \"FIND AND READ\"\nsteno\\-list(1): List"), "{program}");
}

#[test]
fn manual_pages_that_cannot_be_written_are_an_error() {
    let home = Home::new();
    home.file("taken", "a file");
    let output = home.steno(&["man", "--dir", "taken"]);
    assert_eq!(output.code, 1);
    assert!(output.stderr.starts_with("error: could not create folder $HOME/taken"), "{output}");
}

/// Asks for the completions of the last word, as the script for bash does.
fn complete(home: &Home, words: &[&str]) -> Vec<String> {
    let mut args = vec!["--", "steno"];
    args.extend(words);
    let mut command = home.command(&args);
    command.env("STENO_COMPLETE", "bash").env("_CLAP_IFS", "\n");
    command.env("_CLAP_COMPLETE_INDEX", words.len().to_string());
    command.env("_CLAP_COMPLETE_COMP_TYPE", "9").env("_CLAP_COMPLETE_SPACE", "true");
    let output = home.finish(command, b"").ok();
    output.lines().map(str::to_owned).collect()
}

fn home_with_sessions() -> Home {
    let home = Home::new();
    let line = r#"{"type":"assistant","uuid":"u","sessionId":"ID","timestamp":"2026-01-01T00:00:00Z","cwd":"/srv/shop","gitBranch":"fix-login","version":"2.1.0","message":{"id":"m","role":"assistant","model":"claude-test-1","content":[{"type":"text","text":"hi"}]}}"#;
    for id in ["aaaa1111", "aaab2222", "bbbb3333"] {
        home.file(&format!("logs/{id}.jsonl"), line.replace("ID", id) + "\n");
    }
    home.steno(&["import", "logs"]).ok();
    home.steno(&["list"]).ok();
    home
}

#[test]
fn sessions_agents_projects_models_and_branches_are_completed() {
    let home = home_with_sessions();
    assert_eq!(complete(&home, &["show", "aaa"]), ["aaaa1111", "aaab2222"]);
    assert_eq!(complete(&home, &["diff", "latest", "b"]), ["bbbb3333"]);
    assert!(complete(&home, &["export", ""]).contains(&"latest".to_owned()));
    assert_eq!(complete(&home, &["list", "--agent", ""]), ["claude-code"]);
    assert_eq!(complete(&home, &["cost", "--project", "/s"]), ["/srv/shop"]);
    assert_eq!(complete(&home, &["search", "--model", "cl"]), ["claude-test-1"]);
    assert_eq!(complete(&home, &["run", "--agent", "reh"]), ["rehearsal"]);
    assert_eq!(complete(&home, &["annotat"]), ["annotate"]);
    home.file("shop.rs", "");
    assert_eq!(complete(&home, &["blame", "sho"]), ["shop.rs"]);
    assert_eq!(complete(&home, &["log", "sho"]), ["shop.rs"]);
}

#[test]
fn threads_are_completed() {
    let home = Home::new();
    home.steno(&["init", "--yes"]).ok();
    home.steno(&["objective", "create", "Ship it"]).ok();
    let id = home.steno(&["spawn", "Write the parser"]).ok();
    assert_eq!(complete(&home, &["status", "thr"]), [id.trim()]);
    assert_eq!(complete(&home, &["run", "--thread", "thr"]), [id.trim()]);
    assert_eq!(complete(&home, &["merge", "latest", "--into", "thr"]), [id.trim()]);
}

#[test]
fn completion_without_a_store_offers_nothing_and_creates_nothing() {
    let home = Home::new();
    assert_eq!(complete(&home, &["show", "a"]), Vec::<String>::new());
    assert!(!home.path().join("store").exists());
}

#[test]
fn completion_scripts_ask_the_program() {
    let home = Home::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = home.steno(&["completions", shell]).ok();
        assert!(script.contains("STENO_COMPLETE"), "{shell}: {script}");
    }
}

/// A real shell sources the script and completes a session id.
#[cfg(unix)]
#[test]
fn bash_completes_a_session_id() {
    let home = home_with_sessions();
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_steno")).parent().unwrap();
    let script = r#"PATH="$1:$PATH"; source <(steno completions bash)
        COMP_WORDS=(steno show bb); COMP_CWORD=2; COMP_TYPE=9
        _clap_complete_steno steno bb show; printf '%s\n' "${COMPREPLY[@]}""#;
    let command = home.program("bash", &["-c", script, "bash", program.to_str().unwrap()]);
    assert_eq!(home.finish(command, b"").ok(), "bbbb3333\n");
}
