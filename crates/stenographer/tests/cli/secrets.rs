//! Secrets that are kept: in every format that leaves, in the report, and in the user's settings.

use std::fs;
use std::path::Path;

use memchr::memmem;
use serde_json::{Value, json};
use steno_secrets::made_up::MadeUpTexts;
use steno_secrets::planted::{PlantedSecret, harmless_texts, planted_secrets};

use crate::harness::Home;

/// Formats, and whether they are redacted without being asked.
const FORMATS: [(&str, bool); 9] = [
    ("md", true),
    ("html", true),
    ("atif", true),
    ("json", false),
    ("jsonl", false),
    ("leslie", false),
    ("devflow", false),
    ("weakincentives", false),
    ("chibi", false),
];

/// Records texts as prompts, and as arguments and output of a tool.
fn record(home: &Home, session: &str, texts: &[String]) {
    let mut lines = String::new();
    for (number, text) in texts.iter().enumerate() {
        let id = format!("t{number}");
        let prompt = json!({"role": "user", "content": text});
        let call = json!({"role": "assistant", "tool_name": "Bash", "tool_call_id": id, "tool_input": {"command": text}});
        let result = json!({"role": "tool", "tool_call_id": id, "content": text});
        lines.push_str(&format!("{prompt}\n{call}\n{result}\n"));
    }
    home.steno_with(&["record", "--agent", "demo", "--session", session], lines.as_bytes()).ok();
}

/// Everything in a file, or in all files of a folder.
fn read_all(path: &Path) -> String {
    if path.is_dir() {
        let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path());
        return entries.map(|path| read_all(&path)).collect();
    }
    String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned()
}

/// Whether a secret is in a text, as it is or escaped as in JSON or HTML.
fn holds(text: &str, secret: &str) -> bool {
    let json = json!(secret).to_string();
    let html = secret
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;");
    let mut spellings = vec![secret, json.trim_matches('"'), html.as_str()];
    spellings.sort_unstable();
    spellings.dedup();
    let is_in_text = |spelling: &&str| memmem::find(text.as_bytes(), spelling.as_bytes()).is_some();
    spellings.iter().any(is_in_text)
}

fn check_recall(what: &str, text: &str, planted: &[PlantedSecret]) {
    let left: Vec<_> = planted
        .iter()
        .filter(|planted| holds(text, &planted.secret))
        .map(|planted| &planted.text)
        .collect();
    assert!(
        left.len() * 20 <= planted.len(),
        "{what}: {} of {} left: {left:#?}",
        left.len(),
        planted.len()
    );
}

fn check_harmless(what: &str, text: &str, count: usize) {
    let markers = text.matches("[redacted ").count();
    // Each text is there up to five times, titles included.
    assert!(markers * 100 <= count * 3, "{what}: {markers} redacted of {count}");
}

#[test]
fn planted_secrets_leave_in_no_format_and_look_alikes_in_all() {
    let home = Home::new();
    let planted = planted_secrets(21);
    let texts: Vec<_> = planted.iter().map(|planted| planted.text.clone()).collect();
    record(&home, "planted", &texts);
    let harmless = harmless_texts(21);
    record(&home, "harmless", &harmless);
    for (format, is_shared) in FORMATS {
        for session in ["planted", "harmless"] {
            let out = format!("{format}-{session}");
            let mut args = vec!["export", session, "--format", format, "-o", out.as_str()];
            args.extend((!is_shared).then_some("--redact"));
            home.steno(&args).ok();
        }
        check_recall(format, &read_all(&home.path().join(format!("{format}-planted"))), &planted);
        check_harmless(
            format,
            &read_all(&home.path().join(format!("{format}-harmless"))),
            harmless.len(),
        );
    }
    home.steno(&["export", "planted", "--site", "site"]).ok();
    check_recall("site", &read_all(&home.path().join("site")), &planted);
}

#[test]
fn redacted_formats_can_be_read_again() {
    let home = Home::new();
    let texts: Vec<_> = planted_secrets(22).into_iter().map(|planted| planted.text).collect();
    record(&home, "planted", &texts);
    for (format, to) in [
        ("json", "jsonl"),
        ("jsonl", "devflow"),
        ("devflow", "json"),
        ("atif", "jsonl"),
        ("weakincentives", "json"),
    ] {
        // A file is recognised by its name too.
        let extension = if matches!(format, "jsonl" | "weakincentives") { "jsonl" } else { "json" };
        let (out, again) = (format!("out-{format}.{extension}"), format!("again-{format}"));
        home.steno(&["export", "planted", "--format", format, "-o", &out, "--redact"]).ok();
        let converted = home.steno(&["convert", &out, "--to", to, "-o", &again]);
        assert_eq!(converted.code, 0, "{format}: {converted}");
    }
    let text = fs::read_to_string(home.path().join("out-json.json")).unwrap();
    serde_json::from_str::<Value>(&text).unwrap();
}

#[test]
fn restored_files_are_redacted_only_into_another_folder() {
    let home = Home::new();
    let planted = planted_secrets(23);
    let lines = planted.iter().enumerate().map(|(number, planted)| {
        json!({"type": "user", "sessionId": "s1", "uuid": format!("u{number}"), "version": "2.1.0",
            "timestamp": "2026-01-02T00:00:00Z", "message": {"role": "user", "content": planted.text}})
    });
    let lines: String = lines.map(|line| format!("{line}\n")).collect();
    home.file(".claude/projects/p/s1.jsonl", &lines);
    home.steno(&["sync"]).ok();
    let exact = home.steno(&["restore", "s1", "--to", "exact"]);
    assert!(
        exact.stderr.contains(" secrets are not redacted (") && exact.stderr.contains("--redact"),
        "{exact}"
    );
    assert_eq!(read_all(&home.path().join("exact")), lines);
    assert_eq!(home.steno(&["restore", "s1", "--redact"]).code, 2);
    let redacted = home.steno(&["restore", "s1", "--redact", "--to", "shared"]);
    assert!(redacted.code == 0 && redacted.stderr.contains(" secrets redacted"), "{redacted}");
    let text = read_all(&home.path().join("shared"));
    check_recall("restore", &text, &planted);
    assert_eq!(text.lines().count(), planted.len());
    assert!(text.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()));
    let again = home.steno(&["restore", "s1", "--redact", "--to", "shared"]);
    assert!(again.code == 1 && again.stderr.contains("another file exists"), "{again}");
    home.steno(&["restore", "s1", "--redact", "--to", "shared", "--force"]).ok();
    let inspected = home.steno(&["inspect", "shared", "--json"]).ok();
    assert!(inspected.contains(&format!("\"user_prompts\":{}", planted.len())), "{inspected}");
}

#[test]
fn conversions_are_redacted_as_exports_are() {
    let home = Home::new();
    let key = MadeUpTexts::new(1).fill("ghp_{A36}");
    home.file("x.jsonl", format!("{}\n", json!({"role": "user", "content": format!("use {key}")})));
    let markdown = home.steno(&["convert", "x.jsonl", "--to", "md"]);
    assert!(!markdown.stdout.contains(&key) && markdown.stderr.contains("redacted"), "{markdown}");
    assert!(home.steno(&["convert", "x.jsonl", "--to", "md", "--no-redact"]).ok().contains(&key));
    let exact = home.steno(&["convert", "x.jsonl", "--to", "jsonl"]);
    assert!(exact.stdout.contains(&key) && exact.stderr.contains("not redacted"), "{exact}");
    let redacted = home.steno(&["convert", "x.jsonl", "--to", "jsonl", "--redact"]);
    assert!(!redacted.stdout.contains(&key), "{redacted}");
}

#[test]
fn the_report_names_each_secret_once_and_shows_none() {
    let home = Home::new();
    home.steno_with(
        &["record", "--agent", "demo", "--session", "clean"],
        b"{\"role\":\"user\",\"content\":\"hello\"}\n",
    )
    .ok();
    let clean = home.steno(&["secrets"]);
    assert_eq!(
        (clean.code, clean.stdout.as_str(), clean.stderr.as_str()),
        (0, "", "0 secrets in 1 session\n")
    );
    let key = MadeUpTexts::new(2).fill("ghp_{A36}");
    let line = json!({"type": "user", "sessionId": "s1", "uuid": "u1", "version": "2.1.0",
        "timestamp": "2026-01-02T00:00:00Z", "message": {"role": "user", "content": format!("use {key} and {key}")}});
    let live = home.file(".claude/projects/p/s1.jsonl", format!("{line}\n"));
    home.steno(&["sync"]).ok();
    let report = home.steno(&["secrets"]);
    assert!(report.code == 1 && !report.to_string().contains(&key), "{report}");
    assert!(report.stdout.contains("GitHub token") && report.stdout.contains("s1:0"), "{report}");
    assert_eq!(report.stderr, "1 secret in 2 sessions\n");
    let rows = home.steno(&["secrets", "--json", "--live-paths"]);
    let row: Value = serde_json::from_str(&rows.stdout).unwrap();
    assert_eq!((&row["rule"], &row["count"]), (&json!("GitHub token"), &json!(2)), "{row}");
    assert_eq!(row["masked"], "ghp_…(40)");
    let place = json!({"agent": "claude-code", "session": "s1", "entry": 0, "at": "2026-01-02T00:00:00Z", "count": 2});
    assert_eq!(row["places"], json!([place]));
    assert_eq!(row["live_paths"].as_array().unwrap().len(), 1, "{row}");
    let id = row["id"].as_str().unwrap();
    assert!(
        home.steno(&["secrets", "--live-paths"]).stdout.contains(&format!("{id} is still in "))
    );
    fs::remove_file(live).unwrap();
    let gone = home.steno(&["secrets", "--live-paths", "--json"]);
    let row: Value = serde_json::from_str(&gone.stdout).unwrap();
    assert_eq!((&row["live_paths"], row["id"].as_str()), (&json!([]), Some(id)));
}

#[test]
fn settings_add_words_names_and_patterns_and_disable_rules() {
    let home = Home::new();
    let key = MadeUpTexts::new(3).fill("ghp_{A36}");
    let text = format!("Project FALCON for jane.doe, ticket ACME-123456, {key}");
    record(&home, "s", &[text]);
    home.file(
        "store/config.toml",
        "[redact]\nwords = [\"project falcon\"]\nnames = [\"Jane Doe\"]\npatterns = ['ACME-[0-9]{6}']\ndisable = [\"github-token\"]\n",
    );
    let markdown = home.steno(&["export", "s", "--format", "md"]).ok();
    assert!(
        markdown.contains(&format!(
            "[redacted configured word] for [redacted configured name], ticket [redacted configured pattern], {key}"
        )),
        "{markdown}"
    );
    let rows = home.steno(&["secrets", "--json"]);
    assert_eq!(rows.stdout.lines().count(), 3, "{rows}");
    assert!(home.steno(&["secrets", "--rules"]).ok().contains("GitHub token\n"));
    assert!(
        home.steno(&["secrets", "--rules", "--json"])
            .ok()
            .contains("{\"rule\":\"GitHub token\"}\n")
    );
}

#[test]
fn wrong_settings_are_explained() {
    let home = Home::new();
    record(&home, "s", &["hello".to_owned()]);
    for (setting, reason) in [
        ("patterns = ['ok', '(']", "config.toml:2: not a regular expression: (: unclosed group"),
        ("patterns = ['x*']", "config.toml:2: the pattern matches an empty text: x*"),
        ("names = ['x']", "config.toml:2: too short to redact, at least 2 characters: \"x\""),
        ("disable = ['nothing']", "config.toml:2: no rule is named \"nothing\""),
        ("words = 3", "config.toml:2: words is not a list of strings"),
        (
            "word = ['x']",
            "config.toml:2: unknown setting word; one of: words, names, patterns, disable",
        ),
    ] {
        home.file("store/config.toml", format!("[redact]\n{setting}\n"));
        for args in [&["export", "s", "--format", "md"] as &[&str], &["secrets"]] {
            let output = home.steno(args);
            assert!(output.code == 1 && output.stderr.contains(reason), "{setting}: {output}");
        }
    }
}
