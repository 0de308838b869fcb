//! Tests of `steno annotate`, and of the output of notes.

use serde_json::Value;

use crate::harness::Home;

/// A home with one session of two entries.
fn noted() -> Home {
    let home = Home::new();
    let lines = b"{\"role\":\"user\",\"content\":\"Fix it\"}\n{\"role\":\"assistant\",\"content\":\"Done\"}\n";
    home.steno_with(&["record", "--agent", "a", "--session", "s"], lines).ok();
    home
}

#[test]
fn notes_are_written_listed_and_taken_back() {
    let home = noted();
    let kept = std::fs::read(home.path().join("store/vault/a/s/record.jsonl.zst")).unwrap();
    let first = home.steno(&["annotate", "s", "worth", "a", "#look"]).ok();
    home.steno(&["annotate", "s:1", "is this #true?"]).ok();
    let printed = home.steno(&["annotate"]).ok();
    let rows: Vec<Vec<&str>> =
        printed.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["NOTE", "AT", "ABOUT", "TEXT"], "{printed}");
    assert_eq!(rows[1][0], &first.trim()[..8], "{printed}");
    assert_eq!((rows[1][3], rows[2][3]), ("s", "s:1"), "{printed}");
    let json = home.steno(&["annotate", "s", "--json", "--tag", "true"]).ok();
    let note: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&note["text"], &note["tags"][0]), (&"is this #true?".into(), &"true".into()));
    home.steno(&["annotate", "--remove", first.trim()]).ok();
    assert_eq!(home.steno(&["annotate"]).ok().lines().count(), 2);
    let again = home.steno(&["annotate", "--remove", first.trim()]);
    assert!(again.code == 1 && again.stderr.contains("no such note"), "{again}");
    let now = std::fs::read(home.path().join("store/vault/a/s/record.jsonl.zst")).unwrap();
    assert_eq!(now, kept);
    home.steno(&["verify"]).ok();
}

#[test]
fn notes_show_wherever_the_session_does() {
    let home = noted();
    let secret = ["ghp_", "abcdefghijklmnopqrstuvwxyz0123456789"].concat();
    home.steno(&["annotate", "s", "about all"]).ok();
    home.steno(&["annotate", "s:1", "about", "one:", &secret]).ok();
    let shown = home.steno(&["show", "s"]).ok();
    let at = |text: &str| shown.find(text).unwrap_or_else(|| panic!("{text}: {shown}"));
    assert!(at(": about all") < at("user\nFix it") && at("Done") < at(": about one:"), "{shown}");
    let last = home.steno(&["show", "s", "--last", "1", "--json"]).ok();
    let entry: Value = serde_json::from_str(&last).unwrap();
    assert_eq!(entry["notes"][0]["text"], format!("about one: {secret}"));
    for (format, redacted) in [("html", true), ("md", true), ("json", false)] {
        let text = home.steno(&["export", "s", "--format", format]).ok();
        assert!(text.contains("about all") && text.contains("about one:"), "{format}: {text}");
        assert_eq!(!text.contains(&secret), redacted, "{format}: {text}");
    }
}

#[test]
fn a_missing_entry_is_reported() {
    let home = noted();
    let output = home.steno(&["annotate", "s:2", "x"]);
    assert!(output.code == 1 && output.stderr.contains("the last entry is 1"), "{output}");
    let output = home.steno(&["annotate", "other", "x"]);
    assert!(output.code == 1 && output.stderr.contains("no such session"), "{output}");
}
