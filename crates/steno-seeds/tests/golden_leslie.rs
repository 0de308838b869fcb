//! leslie's sample files, read and written again, where `STENO_GOLDEN` names the folder that holds them.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use steno_model::Clock;
use steno_model::json::JsonStyle;
use steno_seeds::leslie;
use steno_seeds::thread::guide::{ConfirmUpdate, LeslieGuide};
use steno_seeds::thread::{ObjectiveList, ThreadRelations};

use replay::Replay;

#[path = "golden_leslie/replay.rs"]
mod replay;

/// The placeholder for all times in the sample stores.
const NORMALISED: &str = "<TS>";
const NOW: &str = "2026-02-22T15:00:00.000Z";

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
        assert_eq!(leslie::slug_from_query(query), case["slug"].as_str().unwrap());
    }
    for case in cases(&golden.join("truncate_cases.jsonl")) {
        let limit = case["max"].as_u64().unwrap() as usize;
        let short = leslie::truncate_chars(case["input"].as_str().unwrap(), limit);
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
        let transcript = leslie::read_session(&found[0]).unwrap();
        assert!(transcript.problems.is_empty());
        assert_eq!(transcript.session.native_id.as_deref(), Some("chat-xyz789"));
        assert_eq!(transcript.entries.len(), 8);
        let dir = tempfile::tempdir().unwrap();
        let paths = leslie::write_units(&transcript, dir.path(), &Clock::system()).unwrap();
        assert_eq!(paths, [dir.path().join(name)], "{folder}");
        assert_eq!(fs::read(&paths[0]).unwrap(), expected, "{folder}");
        assert_eq!(leslie::render_units(&transcript).as_bytes(), expected, "{folder}");
    }
}

#[test]
fn stores_come_back_byte_for_byte() {
    let Some(golden) = golden() else { return };
    let text = |name: &str| fs::read_to_string(golden.join(name)).unwrap();
    let timed = |name: &str| serde_json::from_str(&text(name).replace(NORMALISED, NOW)).unwrap();
    let relations = ThreadRelations::from_value(timed("thread_relations.json")).unwrap();
    assert_eq!(relations.threads.len(), 5);
    assert_eq!(relations.to_json().replace(NOW, NORMALISED), text("thread_relations.json"));
    let objectives = ObjectiveList::from_value(timed("objectives.json")).unwrap();
    assert_eq!(objectives.to_json().replace(NOW, NORMALISED), text("objectives.json"));
}

#[test]
fn the_guide_is_put_as_leslie_puts_it() {
    let Some(golden) = golden() else { return };
    for case in cases(&golden.join("agents_guide_cases.jsonl")) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("AGENTS.md");
        if let Some(before) = case["before"].as_str() {
            fs::write(&path, before).unwrap();
        }
        let version = case["next_version"].as_str().unwrap();
        let block = format!(
            "<leslie_system_guide version=\"{version}\" description=\"x\">\nnew\n</leslie_system_guide>"
        );
        let mut answer = |_: &str, _: &str| case["confirm"].as_bool().unwrap();
        let confirm: Option<ConfirmUpdate<'_>> =
            case["confirm"].is_boolean().then_some(&mut answer);
        let outcome = LeslieGuide { block: &block, version }.put_into(&path, confirm).unwrap();
        let mut result = json!({ "status": outcome.status.as_str() });
        if let Some(previous) = outcome.previous_version {
            result["previousVersion"] = previous.into();
        }
        result["nextVersion"] = version.into();
        assert_eq!(result, case["result"], "{}", case["name"]);
        assert_eq!(fs::read_to_string(&path).unwrap(), case["after"], "{}", case["name"]);
    }
}

/// All files and folders below a folder, in the order of their names.
fn tree(root: &Path, dir: &Path, found: &mut Vec<String>) {
    let mut items: Vec<_> = fs::read_dir(dir).unwrap().map(|item| item.unwrap().path()).collect();
    items.sort();
    for path in items {
        let name = path.strip_prefix(root).unwrap().display().to_string();
        found.push(if path.is_dir() { format!("{name}/") } else { name });
        if path.is_dir() {
            tree(root, &path, found);
        }
    }
}

/// Gives the operations' and references' ids the numbers of their order.
fn number_operations(text: &str) -> Value {
    let mut value: Value = serde_json::from_str(text).unwrap();
    let mut references = 0;
    for (index, operation) in value["operations"].as_array_mut().unwrap().iter_mut().enumerate() {
        operation["id"] = format!("op-{:08x}", index + 1).into();
        if operation["params"].get("ref_id").is_some() {
            references += 1;
            operation["params"]["ref_id"] = format!("ref-{references:08x}").into();
        }
    }
    value
}

#[test]
fn the_recorded_session_leaves_the_same_stores_and_folders() {
    let Some(golden) = golden() else { return };
    let text = |path: &Path| fs::read_to_string(path).unwrap();
    let replay = Replay::run();
    let base = replay.dir.path().join(".leslie");

    let objectives = replay.numbered(&text(&base.join("objectives.json")));
    assert_eq!(objectives, text(&golden.join("objectives.json")));

    let mut expected: Value =
        serde_json::from_str(&text(&golden.join("thread_relations.json"))).unwrap();
    let operations = expected["operations"].as_array_mut().unwrap();
    operations.retain(|operation| operation["params"]["direction"] != "sideways");
    let expected = JsonStyle::PRETTY.print(&number_operations(&expected.to_string()));
    let relations = replay.numbered(&text(&base.join("thread_relations.json")));
    assert_eq!(JsonStyle::PRETTY.print(&number_operations(&relations)), expected);

    let mut found = Vec::new();
    tree(replay.dir.path(), replay.dir.path(), &mut found);
    // Differences: another backup, no thread out of nothing, no copies of inherited files.
    let found: Vec<_> = found.iter().map(|path| replay.numbered(path)).collect();
    let found = found.into_iter().filter(|path| path != ".leslie/thread_relations.json.bak");
    let nested = |path: &str| {
        let copy = path.split_once("/context/inherited/thread-00000001/");
        copy.is_some_and(|(_, own)| own.starts_with(".meta") || own.starts_with("context"))
    };
    let sample = text(&golden.join("tree.txt"));
    let sample = sample.lines().filter(|path| !path.contains("no-such-thread") && !nested(path));
    assert_eq!(found.collect::<Vec<_>>(), sample.collect::<Vec<_>>());
}
