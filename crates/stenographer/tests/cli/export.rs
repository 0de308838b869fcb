//! Sessions exported for sharing: pages, sites, trajectories, and redaction.

use crate::harness::Home;

const KEY: [&str; 2] = ["ghp_", "abcdefghijklmnopqrstuvwxyz0123456789"];

/// A home with a session that contains a secret.
fn home() -> Home {
    let home = Home::new();
    let chat = format!(
        "{}\n{}\n{}\n",
        r#"{"role":"user","content":"Fix the **login** bug with KEY <script>alert(1)</script>"}"#,
        r#"{"role":"assistant","content":"Looking.","model":"gpt-4o"}"#,
        r#"{"role":"assistant","tool_name":"Edit","tool_call_id":"t1","tool_input":{"file_path":"a.rs","old_string":"one","new_string":"two"}}"#,
    );
    let chat = chat.replace("KEY", &KEY.concat());
    home.steno_with(&["record", "--agent", "demo", "--session", "first"], chat.as_bytes()).ok();
    home
}

#[test]
fn a_page_is_one_file_without_secrets() {
    let home = home();
    let output = home.steno(&["export", "first", "--format", "html", "-o", "first.html"]);
    // The title repeats the prompt.
    assert_eq!((output.code, output.stderr.as_str()), (0, "2 secrets redacted\n"), "{output}");
    let page = std::fs::read_to_string(home.path().join("first.html")).unwrap();
    assert!(page.contains("<strong>login</strong>") && page.contains("[redacted GitHub token]"));
    assert!(!page.contains(&KEY.concat()) && !page.contains("<script>alert"));
    assert!(page.contains("<del>one") && page.contains("<ins>two"));
    assert!(page.contains("default-src 'none'; script-src 'sha256-"));
    for load in ["src=\"http", "href=\"http", "url(", "@import"] {
        assert!(!page.contains(load), "{load}");
    }
}

#[test]
fn secrets_stay_where_that_is_asked_or_nothing_is_shared() {
    let home = home();
    for args in [["--format", "html", "--no-redact"], ["--format", "md", "--no-redact"]] {
        let output = home.steno(&[&["export", "first"], args.as_slice()].concat());
        assert_eq!((output.code, output.stderr.as_str()), (0, ""), "{output}");
        assert!(output.stdout.contains(&KEY.concat()), "{output}");
    }
    let markdown = home.steno(&["export", "first", "--format", "md"]).ok();
    assert!(!markdown.contains(&KEY.concat()) && markdown.contains("[redacted GitHub token]"));
    for format in ["json", "jsonl"] {
        let output = home.steno(&["export", "first", "--format", format]);
        assert!(output.stdout.contains(&KEY.concat()), "{format}");
        let warning =
            "warning: 2 secrets are not redacted (GitHub token); use --redact to remove secrets\n";
        assert_eq!((output.code, output.stderr.as_str()), (0, warning), "{format}");
        let output = home.steno(&["export", "first", "--format", format, "--redact"]);
        assert_eq!((output.code, output.stderr.as_str()), (0, "2 secrets redacted\n"), "{format}");
        assert!(!output.stdout.contains(&KEY.concat()), "{format}");
    }
    let trajectory = home.steno(&["export", "first", "--format", "atif"]).ok();
    assert!(!trajectory.contains(&KEY.concat()) && trajectory.contains("[redacted GitHub token]"));
    let whole = home.steno(&["export", "first", "--format", "atif", "--no-redact"]).ok();
    assert!(whole.contains(&KEY.concat()));
    assert_eq!(
        home.steno(&["export", "first", "--format", "md", "--redact", "--no-redact"]).code,
        2
    );
}

#[test]
fn documents_are_not_written_end_to_end() {
    let home = home();
    for format in ["json", "html", "atif"] {
        let refused = home.steno(&["export", "first", "first", "--format", format]);
        assert_eq!((refused.code, refused.stdout.as_str()), (2, ""), "{refused}");
        assert!(refused.stderr.contains("hint: write them to a folder with -o DIR"), "{refused}");
    }
    let lines = home.steno(&["export", "first", "first", "--format", "jsonl"]).ok();
    for line in lines.lines() {
        serde_json::from_str::<serde_json::Value>(line).unwrap();
    }
    home.steno(&["export", "first", "first", "--format", "json", "-o", "both"]).ok();
    assert!(home.path().join("both/first.json").exists());
}

#[test]
fn an_output_that_cannot_be_written_is_explained() {
    let home = home();
    std::fs::create_dir(home.path().join("pages")).unwrap();
    let refused = home.steno(&["export", "first", "--format", "md", "-o", "pages"]);
    let message = "error: is a folder: pages\nhint: name a file: -o pages/first.md\n";
    assert_eq!((refused.code, refused.stderr.as_str()), (1, message), "{refused}");
    let missing = home.steno(&["export", "first", "--format", "md", "-o", "no/a.md"]);
    assert_eq!(missing.code, 1);
    assert!(!missing.stderr.contains(".steno-"), "{missing}");
    assert!(missing.stderr.contains("could not write no/a.md"), "{missing}");
}

/// The output tokens of all sessions.
fn output_tokens(home: &Home) -> u64 {
    let total = home.steno(&["cost", "--json"]).ok();
    let total: serde_json::Value = serde_json::from_str(total.lines().last().unwrap()).unwrap();
    total["tokens"]["output"].as_u64().unwrap()
}

#[test]
fn an_imported_trajectory_costs_nothing_again() {
    let home = Home::new();
    let id = crate::team::ID;
    home.file(&crate::team::place(id), crate::team::content(id, &["apricot", "walnut"]));
    home.steno(&["sync"]).ok();
    let before = output_tokens(&home);
    assert_eq!(before, 11 + 12);
    std::fs::create_dir_all(home.path().join("out")).unwrap();
    home.steno(&["export", id, "--format", "atif", "-o", "out/trajectory.json"]).ok();
    home.steno(&["import", "out"]).ok();
    assert_eq!(home.steno(&["list", "--json"]).ok().lines().count(), 2);
    assert_eq!(output_tokens(&home), before);
}

#[test]
fn a_trajectory_can_be_imported() {
    let home = home();
    home.steno(&["export", "first", "--format", "atif", "-o", "trajectory.json"]).ok();
    let again = home.steno(&["show", "trajectory.json", "--json"]).ok();
    assert!(again.contains(r#""content":"Looking.""#), "{again}");
    assert!(again.contains(r#""tool_name":"Edit""#), "{again}");
}

#[test]
fn several_sessions_become_files_or_a_site() {
    let home = home();
    let line = br#"{"role":"user","content":"Another"}"#;
    home.steno_with(&["record", "--agent", "demo", "--session", "second"], line).ok();
    home.steno(&["export", "first", "second", "--format", "html", "-o", "pages"]).ok();
    assert!(home.path().join("pages/second.html").is_file());
    let index = home.steno(&["export", "--site", "site"]);
    assert_eq!(index.stderr, "2 secrets redacted\n", "{index}");
    assert_eq!(index.stdout, "$HOME/site/index.html\n", "{index}");
    let index = std::fs::read_to_string(home.path().join("site/index.html")).unwrap();
    assert!(index.contains("href=\"demo/first.html\"") && index.contains("Another"), "{index}");
    let page = std::fs::read_to_string(home.path().join("site/demo/first.html")).unwrap();
    assert!(page.contains("href=\"../index.html\"") && !page.contains(&KEY.concat()));
    let output = home.steno(&["export", "first", "--format", "md", "--site", "site"]);
    assert_eq!(output.code, 2, "{output}");
}

#[test]
fn pictures_are_embedded_in_the_page() {
    let home = Home::new();
    let png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
    let line = format!(
        r#"{{"type":"user","uuid":"u","sessionId":"s1","version":"2.1.0","timestamp":"2026-01-02T00:00:00Z","message":{{"role":"user","content":[{{"type":"text","text":"See"}},{{"type":"image","source":{{"type":"base64","media_type":"image/png","data":"{png}"}}}}]}}}}"#
    );
    home.file("s1.jsonl", line + "\n");
    let page = home.steno(&["export", "s1.jsonl", "--format", "html"]).ok();
    assert!(page.contains(&format!("src=\"data:image/png;base64,{png}\"")), "{page}");
}

#[test]
fn the_extension_of_the_file_names_the_format() {
    let home = home();
    for (file, begin) in [("a.md", "# Fix"), ("a.html", "<!doctype html>"), ("a.jsonl", "{")] {
        home.steno(&["export", "first", "-o", file]).ok();
        let text = std::fs::read_to_string(home.path().join(file)).unwrap();
        assert!(text.to_lowercase().starts_with(&begin.to_lowercase()), "{file}: {text}");
    }
}

#[test]
fn a_hand_off_note_has_no_secrets() {
    let home = home();
    let note = home.steno(&["handoff", "first"]).ok();
    assert!(note.contains("[redacted GitHub token]") && !note.contains(&KEY.concat()), "{note}");
    assert!(home.steno(&["handoff", "first", "--no-redact"]).ok().contains(&KEY.concat()));
    let brief = ["resume", "first", "--in", "codex", "--brief", "--print", "--project", "."];
    let command = home.steno(&brief).ok();
    assert!(command.contains("login") && !command.contains(&KEY.concat()), "{command}");
}

#[test]
fn tables_need_a_folder_and_a_build_that_can_write_them() {
    let home = home();
    let output = home.steno(&["export", "--format", "parquet"]);
    let hint = if cfg!(feature = "parquet") { "use -o DIR" } else { "--features parquet" };
    assert!(output.code > 0 && output.stderr.contains(hint), "{output}");
    let output = home.steno(&["export", "--format", "parquet", "-o", "tables"]);
    assert_eq!(output.code, i32::from(!cfg!(feature = "parquet")), "{output}");
    assert_eq!(home.path().join("tables/usage.parquet").exists(), cfg!(feature = "parquet"));
}
