//! chibi's sample files, read and written again, where `STENO_GOLDEN` names the folder that holds them.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use steno_model::{Clock, Entry, EntryKind, Role, Timestamp};
use steno_seeds::chibi::{self, ChibiContext, ChibiDebugFile, ContextError};

fn golden() -> Option<PathBuf> {
    let Some(folder) = std::env::var_os("STENO_GOLDEN") else {
        eprintln!("STENO_GOLDEN is not set: sample files are not compared");
        return None;
    };
    Some(Path::new(&folder).join("chibi/seed/contexts/default"))
}

fn at(second: i64) -> Clock {
    Clock::fixed(Timestamp::from_unix(second).unwrap())
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

/// Reads the context in `folder`, writes it, and compares the files named.
fn assert_comes_back(folder: &Path, names: &[&str]) {
    let found = chibi::READER.find_at(folder).unwrap();
    let bundle = found.iter().find(|bundle| bundle.root == folder).unwrap();
    let transcript = chibi::read_context(bundle).unwrap();
    assert_eq!(transcript.problems, []);
    let base = tempfile::tempdir().unwrap();
    let dir = chibi::write_context(&transcript, base.path()).unwrap();
    for name in names {
        assert_eq!(text(&dir.join(name)), text(&folder.join(name)), "{name}");
    }
    assert_eq!(chibi::write_context(&transcript, base.path()).unwrap(), dir);
}

#[test]
fn contexts_come_back_byte_for_byte() {
    let Some(golden) = golden() else { return };
    let files = ["context.jsonl", "context_meta.json", "requests.jsonl", "response_meta.jsonl"];
    assert_comes_back(&golden, &files);
    let files = ["context.jsonl", "transcript_archive.jsonl", "transcript.md"];
    assert_comes_back(&golden.join("doc-compaction"), &files);
}

#[test]
fn usage_reaches_the_answer() {
    let Some(golden) = golden() else { return };
    let bundle = &chibi::READER.find_at(&golden).unwrap()[0];
    let transcript = chibi::read_context(bundle).unwrap();
    let answer = transcript.entries.iter().find(|entry| entry.usage.is_some()).unwrap();
    assert!(answer.content.starts_with("Rust is a systems"));
    assert_eq!(answer.model.as_deref(), Some("anthropic/claude-sonnet-4"));
    assert_eq!(transcript.session.totals.usage.prompt_tokens(), 1234);
}

#[test]
fn a_live_context_leaves_the_same_files() {
    let Some(golden) = golden() else { return };
    let base = tempfile::tempdir().unwrap();
    let dir = base.path().join("contexts/default");
    let open = |second| ChibiContext::open(&dir, at(second)).unwrap();
    open(1705123400);
    assert_eq!(text(&dir.join("context_meta.json")), text(&golden.join("context_meta.json")));

    fs::copy(golden.join("inbox.jsonl.before-prompt"), dir.join("inbox.jsonl")).unwrap();
    let (lines, _) = chibi::read_context_lines(&golden.join("context.jsonl")).unwrap();
    for (index, line) in lines.into_iter().enumerate() {
        let mut entry = chibi::entry_from_line(line);
        if index == 0 {
            entry.content = "What is Rust?".to_owned();
            open(1705123456).append_prompt(entry).unwrap();
        } else {
            open(1705123460).append(entry).unwrap();
        }
    }
    for name in ["context.jsonl", "inbox.jsonl"] {
        assert_eq!(text(&dir.join(name)), text(&golden.join(name)), "{name}");
    }

    for (file, field) in
        [(ChibiDebugFile::Requests, "request"), (ChibiDebugFile::Responses, "response")]
    {
        let line = text(&golden.join(file.file_name()));
        let value: Value = serde_json::from_str(&line).unwrap();
        let second = value["timestamp"].as_i64().unwrap();
        open(second).log_debug(file, &value[field]).unwrap();
        assert_eq!(text(&dir.join(file.file_name())), line);
    }

    open(1705123500).archive_all().unwrap();
    for name in ["context.jsonl", "transcript.md"] {
        let expected = golden.join(format!("{name}.after-archive"));
        assert_eq!(text(&dir.join(name)), text(&expected), "{name}");
    }
}

#[test]
fn a_lock_is_written_as_chibi_writes_it_and_respected_until_its_heart_stops() {
    let Some(golden) = golden() else { return };
    let held = text(&golden.join(".lock.while-running"));
    let since: i64 = held.parse().unwrap();
    let base = tempfile::tempdir().unwrap();
    let dir = base.path().join("default");
    let lock = dir.join(".lock");
    let append = |clock| {
        let context = ChibiContext::open(&dir, clock).unwrap();
        context.append(Entry::new(Role::User, EntryKind::Text, "hi"))
    };

    // A clock that looks at the lock each time it is asked.
    let (seen, path) = (Arc::new(Mutex::new(Vec::new())), lock.clone());
    let list = Arc::clone(&seen);
    let looking = Clock::new(move || {
        list.lock().unwrap().extend(fs::read_to_string(&path));
        Timestamp::from_unix(since).unwrap()
    });
    append(looking).unwrap();
    assert!(!lock.exists());
    let seen = seen.lock().unwrap();
    assert!(!seen.is_empty() && seen.iter().all(|stamp| *stamp == held), "{seen:?}");

    fs::write(&lock, &held).unwrap();
    for second in [since, since + 45] {
        let refused = append(at(second)).unwrap_err();
        assert!(matches!(refused, ContextError::Locked(path) if path == lock), "{second}");
        assert_eq!(text(&lock), held, "{second}");
    }
    append(at(since + 46)).unwrap();
    assert!(!lock.exists());
    let (lines, _) = ChibiContext::open(&dir, at(since)).unwrap().read_lines().unwrap();
    assert_eq!(lines.len(), 2);
}

#[test]
fn compaction_is_the_documented_one() {
    let Some(golden) = golden() else { return };
    let model = golden.join("doc-compaction");
    let base = tempfile::tempdir().unwrap();
    let dir = base.path().join("default");
    let context = ChibiContext::open(&dir, at(1705123500)).unwrap();
    fs::copy(golden.join("context.jsonl"), dir.join("context.jsonl")).unwrap();
    let (marker, _) = chibi::read_context_lines(&model.join("context.jsonl")).unwrap();
    let summary = marker[0].metadata.as_ref().unwrap()["summary"].as_str().unwrap();
    assert_eq!(context.compact_entries(summary, 0).unwrap(), 4);
    for name in ["transcript_archive.jsonl", "transcript.md"] {
        assert_eq!(text(&dir.join(name)), text(&model.join(name)), "{name}");
    }
    let (written, _) = context.read_lines().unwrap();
    let written = text(&dir.join("context.jsonl")).replace(&written[0].id, &marker[0].id);
    assert_eq!(written, text(&model.join("context.jsonl")));
}

#[test]
fn the_log_is_printed_as_chibi_prints_it() {
    let Some(golden) = golden() else { return };
    let (lines, problems) = chibi::read_context_lines(&golden.join("context.jsonl")).unwrap();
    assert_eq!(problems, []);
    for (name, count, verbose) in [
        ("chibi_-g_0.txt", 0, false),
        ("chibi_-g_1.txt", 1, false),
        ("chibi_-g_-1.txt", -1, false),
        ("chibi_-v_-g_0.txt", 0, true),
    ] {
        let style = chibi::ChibiLogStyle::Documented;
        let shown = chibi::render_log(chibi::select_lines(&lines, count), style, verbose);
        assert_eq!(shown, text(&golden.join("cli").join(name)), "{name}");
    }
}
