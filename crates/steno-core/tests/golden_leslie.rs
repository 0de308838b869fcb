//! leslie's sample files, read and written again, where `STENO_GOLDEN` names the folder that holds them.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use steno_core::Clock;
use steno_core::format::leslie;

fn golden() -> Option<PathBuf> {
    let Some(folder) = std::env::var_os("STENO_GOLDEN") else {
        eprintln!("STENO_GOLDEN is not set: sample files are not compared");
        return None;
    };
    Some(Path::new(&folder).join("leslie"))
}

fn cases(path: &Path) -> Vec<Value> {
    let text = fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn slugs_and_limits() {
    let Some(golden) = golden() else { return };
    for case in cases(&golden.join("sanitize_cases.jsonl")) {
        let query = case["query"].as_str().unwrap();
        assert_eq!(leslie::slug(query), case["slug"].as_str().unwrap());
    }
    for case in cases(&golden.join("truncate_cases.jsonl")) {
        let limit = case["max"].as_u64().unwrap() as usize;
        let short = leslie::truncate(case["input"].as_str().unwrap(), limit);
        assert_eq!(short, case["output"].as_str().unwrap());
    }
}

#[test]
fn the_documented_file_and_its_resolved_form_give_the_same() {
    let Some(golden) = golden() else { return };
    let name = "20260208-1430-Implement-user-login-functionality.txt";
    let expected = fs::read(golden.join("resolved").join(name)).unwrap();
    for folder in ["seed", "resolved"] {
        let found = leslie::READER.find_at(&golden.join(folder)).unwrap();
        assert_eq!(found.len(), 1, "{folder}");
        let transcript = leslie::read(&found[0]).unwrap();
        assert!(transcript.problems.is_empty());
        assert_eq!(transcript.session.native_id.as_deref(), Some("chat-xyz789"));
        assert_eq!(transcript.entries.len(), 8);
        let dir = tempfile::tempdir().unwrap();
        let paths = leslie::write(&transcript, dir.path(), &Clock::system()).unwrap();
        assert_eq!(paths, [dir.path().join(name)], "{folder}");
        assert_eq!(fs::read(&paths[0]).unwrap(), expected, "{folder}");
        assert_eq!(leslie::render(&transcript).as_bytes(), expected, "{folder}");
    }
}
