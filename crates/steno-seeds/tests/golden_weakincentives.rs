//! Files that weakincentives itself wrote, read and reproduced byte for byte.
//!
//! They are looked for in the folder that `STENO_GOLDEN` names; without it the tests pass over
//! them.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;
use steno_model::json::{Object, Value};
use steno_model::{Clock, Entry, Role, Timestamp, Transcript};
use steno_seeds::weakincentives::slice::{
    SliceFactory, SliceFactoryConfig, SliceItem, SlicePolicy,
};
use steno_seeds::weakincentives::snapshot::SessionSnapshot;
use steno_seeds::weakincentives::{
    self as weakincentives, SliceSession, TRANSCRIPT_FILE, claude, format_transcript, line,
};
use steno_vault::SessionBundle;
use uuid::Uuid;

const ERAS: [&str; 2] = ["seed-era-216fce2d", "v0.27.0"];

fn golden() -> Option<PathBuf> {
    let folder = std::env::var_os("STENO_GOLDEN");
    if folder.is_none() {
        eprintln!("STENO_GOLDEN is not set: nothing to compare with");
    }
    Some(Path::new(&folder?).join("weakincentives"))
}

fn read(path: &Path) -> Transcript {
    let transcript = weakincentives::read_session(&SessionBundle::from_file(path))
        .expect("a golden file is readable");
    assert_eq!(transcript.problems, []);
    transcript
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).expect("a golden file is text")
}

fn transcript_file(golden: &Path, era: &str) -> PathBuf {
    golden.join(era).join("agent_transcripts").join(TRANSCRIPT_FILE)
}

#[test]
fn lines_come_back_as_they_were() {
    let Some(golden) = golden() else { return };
    for era in ERAS {
        let folder = golden.join(era);
        for file in [
            transcript_file(&golden, era),
            folder.join("edge_empty_optional.jsonl"),
            folder.join("edge_replace_empty.jsonl"),
        ] {
            let transcript = read(&file);
            assert_eq!(weakincentives::render_lines(&transcript, false), text(&file));
        }
    }
}

#[test]
fn the_type_can_be_put_into_every_line() {
    let Some(golden) = golden() else { return };
    let [typed, untyped] = ERAS.map(|era| transcript_file(&golden, era));
    assert_eq!(weakincentives::render_lines(&read(&untyped), true), text(&typed));
}

#[test]
fn folders_are_searched() {
    let Some(golden) = golden() else { return };
    for era in ERAS {
        let found = weakincentives::READER.find_at(&golden.join(era)).unwrap();
        let roots: Vec<_> = found.into_iter().map(|bundle| bundle.root).collect();
        let edge = golden.join(era).join("edge_empty_optional.jsonl");
        let snapshot = golden.join(era).join("snapshot_include_all.json");
        assert_eq!(read(&snapshot).entries, read(&transcript_file(&golden, era)).entries);
        assert_eq!(roots, [transcript_file(&golden, era), edge, snapshot]);
    }
}

#[test]
fn people_read_the_same() {
    let Some(golden) = golden() else { return };
    for era in ERAS {
        let folder = golden.join(era);
        let entries = read(&transcript_file(&golden, era)).entries;
        // The text was made before the last entry came.
        assert_eq!(format_transcript(&entries[..5]), text(&folder.join("format_transcript.txt")));
        assert_eq!(format_transcript([]), text(&folder.join("format_transcript_empty.txt")));
    }
    let mut entries = read(&transcript_file(&golden, ERAS[1])).entries;
    entries.truncate(5);
    entries[3].content = r#"{"path": "src/main.py"}"#.to_owned();
    entries[4].created_at = Some("2026-01-05T09:15:38+00:00".parse().unwrap());
    assert_eq!(format_transcript(&entries), text(&golden.join("seed_example_output.txt")));
}

#[test]
fn snapshots_are_the_same() {
    let Some(golden) = golden() else { return };
    for era in ERAS {
        let expected = text(&golden.join(era).join("snapshot_include_all.json"));
        let mut session = SliceSession::new(
            Uuid::parse_str("11111111-1111-4111-8111-111111111111").unwrap(),
            Clock::fixed("2026-01-05T09:16:00+00:00".parse().unwrap()),
            SliceFactoryConfig {
                state: SliceFactory::Memory,
                log: SliceFactory::Jsonl(golden.join(era).join("agent_transcripts")),
            },
        );
        session.set_policy::<Entry>(SlicePolicy::Log).unwrap();
        session.set_policy::<VisibilityOverrides>(SlicePolicy::State).unwrap();
        assert_eq!(session.query::<Entry>().read_all().unwrap().len(), 6);
        let snapshot = session.snapshot(true).unwrap();
        assert_eq!(snapshot.to_json() + "\n", expected);
        assert_eq!(SessionSnapshot::from_json(&expected).unwrap(), snapshot);
    }
}

#[test]
fn claude_lines_are_converted_alike() {
    let Some(golden) = golden() else { return };
    let now: Timestamp = "2000-01-01T00:00:00+00:00".parse().unwrap();
    let cases = text(&golden.join("claude_conversion_cases.jsonl"));
    for (index, case) in cases.lines().enumerate() {
        let case: Value = serde_json::from_str(case).unwrap();
        let raw = case["raw"].as_object().unwrap().clone();
        let mut entries = claude::entries_from_line(raw, Some(now));
        assert_eq!(entries.len(), 1);
        entries[0].sequence = index as u64;
        let mut line = line::object_from_entry(&entries[0], false, now);
        line.insert("entry_id".to_owned(), json!("<uuid4>"));
        assert_eq!(Value::Object(line).to_string(), case["entry"].to_string());
    }
    let untimed = claude::entries_from_line(Object::new(), Some(now));
    assert_eq!(untimed[0].created_at, Some(now));
    assert_eq!(untimed[0].role, Role::Assistant);
}

/// A type that upstream registers by itself.
#[derive(Clone)]
struct VisibilityOverrides(Object);

impl SliceItem for VisibilityOverrides {
    const TYPE_ID: &'static str =
        "weakincentives.runtime.session.visibility_overrides:VisibilityOverrides";

    fn to_json(&self) -> Object {
        self.0.clone()
    }

    fn from_json(object: Object) -> Result<Self, serde_json::Error> {
        Ok(Self(object))
    }
}
