//! Every reader against bytes that nobody meant to write: arbitrary ones, and files of every format
//! cut and changed. A reader may find nothing and may complain, but it never panics, and the same
//! bytes always give the same entries.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[path = "readers/exercise.rs"]
mod exercise;
#[path = "readers/hostile.rs"]
mod hostile;
#[path = "readers/samples.rs"]
mod samples;

use std::fs;
use std::path::{Path, PathBuf};

use exercise::items;
use proptest::prelude::*;
use samples::SAMPLES;
use steno_store::format::{self, FormatReader};
use steno_vault::SessionBundle;

/// Names that some reader asks for.
const NAMES: [&str; 12] = [
    "a.json",
    "a.jsonl",
    "a.md",
    "a.txt",
    "a.traj",
    "a.eval",
    "a.db",
    "state.vscdb",
    "store.db",
    "ui_messages.json",
    "api_conversation_history.json",
    "events.jsonl",
];

/// Hands the file to all readers, also to those that do not know it.
fn try_all(path: &Path) {
    for reader in format::all_readers() {
        let found = reader.find_at(path).unwrap_or_default();
        for bundle in found.iter().chain([&SessionBundle::from_file(path)]) {
            assert!(items(reader, bundle) == items(reader, bundle), "{}: differs", reader.agent);
        }
    }
}

fn try_bytes(name: &str, bytes: &[u8]) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(name);
    fs::write(&path, bytes).unwrap();
    try_all(&path);
}

/// A change to a file: where in it, in thousandths, and what.
#[derive(Clone, Debug)]
enum Change {
    Cut(usize),
    Flip(usize, u8),
    Remove(usize, usize),
    Repeat(usize, usize),
    Insert(usize, &'static str),
}

impl Change {
    fn apply(&self, bytes: &mut Vec<u8>) {
        let place = |thousandths: usize| bytes.len() * thousandths / 1000;
        match *self {
            Change::Cut(at) => bytes.truncate(place(at)),
            Change::Flip(at, bits) => {
                let at = place(at);
                bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= bits);
            }
            Change::Remove(at, count) => {
                let at = place(at);
                let end = (at + count).min(bytes.len());
                bytes.drain(at..end);
            }
            Change::Repeat(at, count) => {
                let at = place(at);
                let end = (at + count).min(bytes.len());
                let piece = bytes[at..end].to_vec();
                bytes.splice(at..at, piece);
            }
            Change::Insert(at, text) => {
                let at = place(at);
                bytes.splice(at..at, text.bytes());
            }
        }
    }
}

/// Texts at which readers of JSON and of lines stumble.
const TRAPS: [&str; 12] = [
    "\\ud800",
    "\u{0}",
    "null",
    "[[[[[[[[",
    "{}",
    "\n",
    "\r\n",
    "-1e999",
    "18446744073709551616",
    "\u{2028}",
    "\"",
    "\\",
];

fn change() -> impl Strategy<Value = Change> {
    let at = 0..1000_usize;
    prop_oneof![
        at.clone().prop_map(Change::Cut),
        (at.clone(), 1..=255_u8).prop_map(|(at, bits)| Change::Flip(at, bits)),
        (at.clone(), 1..40_usize).prop_map(|(at, count)| Change::Remove(at, count)),
        (at.clone(), 1..200_usize).prop_map(|(at, count)| Change::Repeat(at, count)),
        (at, proptest::sample::select(&TRAPS[..])).prop_map(|(at, text)| Change::Insert(at, text)),
    ]
}

#[test]
fn samples_cut_at_line_and_half_line() {
    for (name, text) in SAMPLES {
        let mut end = 0;
        for line in text.split_inclusive('\n') {
            try_bytes(name, &text.as_bytes()[..end + line.len() / 2]);
            end += line.len();
            try_bytes(name, &text.as_bytes()[..end]);
        }
    }
}

/// Ours takes lines of any shape that it knows, and is asked last.
#[test]
fn no_sample_has_two_readers() {
    for (name, text) in SAMPLES {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(name);
        fs::write(&path, text).unwrap();
        let takes = |reader: &&FormatReader| !reader.find_at(&path).unwrap().is_empty();
        let others =
            format::all_readers().filter(|reader| reader.agent != format::native::AGENT_NAME);
        let takers: Vec<_> = others.filter(takes).map(|reader| reader.agent).collect();
        assert!(takers.len() <= 1, "{name}: {takers:?}");
    }
}

#[test]
fn no_bytes_at_all() {
    NAMES.iter().for_each(|name| try_bytes(name, b""));
}

#[test]
fn nesting_without_an_end() {
    for (open, name) in [("[", "a.json"), ("{\"a\":", "a.jsonl"), ("[{\"content\":", "a.json")] {
        try_bytes(name, open.repeat(20_000).as_bytes());
    }
}

/// Real files, where they are at hand: the small ones, cut and with a byte changed.
#[test]
fn real_files_changed() {
    let Some(fixtures) = std::env::var_os("STENO_FIXTURES") else { return };
    let mut files = Vec::new();
    collect(&PathBuf::from(fixtures), &mut files);
    for (index, file) in files.iter().enumerate() {
        let bytes = fs::read(file).unwrap();
        let name = file.file_name().unwrap().to_string_lossy();
        let mut changed = bytes.clone();
        Change::Flip(index * 37 % 1000, 0x20).apply(&mut changed);
        try_bytes(&name, &changed);
        Change::Cut(index * 61 % 1000).apply(&mut changed);
        try_bytes(&name, &changed);
    }
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    for item in fs::read_dir(folder).unwrap().flatten() {
        let path = item.path();
        if path.is_dir() {
            collect(&path, files);
        } else if item.metadata().is_ok_and(|file| (1..40_000).contains(&file.len())) {
            files.push(path);
        }
    }
}

/// `PROPTEST_CASES=100000` makes a fuzzer of these tests; without it they take a few seconds.
fn config() -> ProptestConfig {
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::default() };
    let is_asked = std::env::var_os("PROPTEST_CASES").is_some();
    ProptestConfig { cases: if is_asked { config.cases } else { 48 }, ..config }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn arbitrary_bytes(
        name in proptest::sample::select(&NAMES[..]),
        bytes in proptest::collection::vec(any::<u8>(), 0..400),
    ) {
        try_bytes(name, &bytes);
    }

    #[test]
    fn changed_samples(
        (name, text) in proptest::sample::select(&SAMPLES[..]),
        changes in proptest::collection::vec(change(), 1..5),
    ) {
        let mut bytes = text.as_bytes().to_vec();
        changes.iter().for_each(|change| change.apply(&mut bytes));
        try_bytes(name, &bytes);
    }

    /// What a fuzzer does, where there is none; `STENO_READER` chooses one reader.
    #[test]
    fn changed_corpus(
        pick in any::<proptest::sample::Index>(),
        changes in proptest::collection::vec(change(), 1..5),
    ) {
        let wanted = std::env::var("STENO_READER").ok();
        let mut inputs = hostile::corpus();
        inputs.retain(|(reader, _)| wanted.as_deref().is_none_or(|name| name == reader.agent));
        let (reader, path) = pick.get(&inputs);
        let mut bytes = fs::read(path).unwrap();
        changes.iter().for_each(|change| change.apply(&mut bytes));
        let dir = tempfile::tempdir().unwrap();
        exercise::exercise(reader, &bytes, &dir.path().join("files"));
    }

    #[test]
    fn records_of_mixed_samples(
        picks in proptest::collection::vec((0..SAMPLES.len(), 0..8_usize), 1..12),
    ) {
        let lines: Vec<_> = picks
            .iter()
            .filter_map(|(sample, line)| SAMPLES[*sample].1.lines().nth(*line))
            .collect();
        try_bytes("a.jsonl", lines.join("\n").as_bytes());
    }
}
