//! Every reader against damaged files: a bad record is reported with its location and costs only itself.
//!
//! The corpus that fuzzing left is read here too, so that what it once found stays found.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use steno_model::Problem;
use steno_store::format::{self, FormatReader, ReaderItem};
use steno_vault::{SessionBundle, SessionFile};

use super::exercise::{self, exercise, items};
use super::samples::SAMPLES;

/// Every input of the corpus with its reader.
pub(crate) fn corpus() -> Vec<(&'static FormatReader, PathBuf)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let files = |reader: &'static FormatReader| {
        let listing = fs::read_dir(root.join(reader.agent));
        let listing = listing.unwrap_or_else(|_| panic!("no corpus of {}", reader.agent));
        listing.map(move |item| (reader, item.unwrap().path()))
    };
    format::all_readers().flat_map(files).collect()
}

/// The texts and problems of a file, read by the reader that finds it.
fn read(name: &str, bytes: impl AsRef<[u8]>) -> (Vec<String>, Vec<Problem>) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(name);
    fs::write(&path, bytes).unwrap();
    let (mut texts, mut problems) = (Vec::new(), Vec::new());
    for found in format::find_sessions(&path).unwrap() {
        for item in items(found.reader, &found.bundle).0 {
            match item {
                ReaderItem::Entry(entry) => texts.push(entry.content),
                ReaderItem::Problem(problem) => problems.push(problem),
            }
        }
    }
    (texts, problems)
}

/// The lines of the samples with one record per line.
fn samples_of_lines() -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
    let of_lines = SAMPLES.into_iter().filter(|(name, _)| name.ends_with(".jsonl"));
    of_lines.map(|(name, text)| (name, text.lines().collect()))
}

#[test]
fn the_corpus_is_read() {
    let dir = tempfile::tempdir().unwrap();
    for (reader, path) in corpus() {
        exercise(reader, &fs::read(path).unwrap(), &dir.path().join("files"));
    }
}

fn is_sample(path: &Path) -> bool {
    path.file_name().unwrap().to_string_lossy().contains("sample")
}

/// An input in which no reader finds anything exercises nothing.
#[test]
fn every_reader_takes_its_samples() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("files");
    for (reader, path) in corpus().into_iter().filter(|(_, path)| is_sample(path)) {
        exercise::lay_out(&fs::read(&path).unwrap(), &folder);
        let found = reader.find_at(&folder).unwrap();
        let mut items = found.iter().flat_map(|bundle| items(reader, bundle).0);
        assert!(items.any(|item| matches!(item, ReaderItem::Entry(_))), "{}", path.display());
    }
}

/// Every byte of the first thousand; of a large file, such as a database, then every 61st.
#[test]
fn samples_cut_at_every_byte() {
    for (reader, path) in corpus().into_iter().filter(|(_, path)| is_sample(path)) {
        let bytes = fs::read(path).unwrap();
        let far = (1000..bytes.len()).step_by(61);
        for end in (0..bytes.len().min(1000)).chain(far) {
            let sources = exercise::files(&bytes[..end]).into_iter().map(|(name, bytes)| {
                SessionFile::in_memory(
                    name.to_string_lossy(),
                    Path::new("/x").join(&name),
                    bytes.into(),
                )
            });
            let _ = items(reader, &SessionBundle::new("/x", sources.collect()));
        }
    }
}

#[test]
fn a_bad_line_is_reported_with_its_number() {
    let deep = "[".repeat(100_000);
    for bad in ["{\"type\":", "\0\0\0\0", "\"\"", &deep] {
        for (name, mut lines) in samples_of_lines() {
            let (whole, _) = read(name, lines.join("\n"));
            lines.insert(lines.len() - 1, bad);
            let (texts, problems) = read(name, lines.join("\n"));
            assert_eq!(texts, whole, "{name}");
            let places: Vec<_> = problems.iter().map(|problem| problem.line).collect();
            assert_eq!(places, [Some(lines.len() as u64 - 1)], "{name} {problems:?}");
            assert!(problems[0].path.ends_with(name), "{name}");
        }
    }
}

/// Two records that lost the line end between them are read or reported, and cost no other.
#[test]
fn glued_records() {
    for (name, mut lines) in samples_of_lines() {
        let (before, _) = read(name, lines.join("\n"));
        let pair = [lines[0], lines[1]];
        let (apart, _) = read(name, [&lines[..], &pair].concat().join("\n"));
        let glued = pair.concat();
        lines.push(&glued);
        let (texts, problems) = read(name, lines.join("\n"));
        match problems.as_slice() {
            [] => assert_eq!(texts, apart, "{name}"),
            [problem] => {
                assert_eq!(problem.line, Some(lines.len() as u64), "{name}");
                assert_eq!(texts, before, "{name}");
            }
            more => panic!("{name}: {more:?}"),
        }
    }
}

/// The prompt of a sample with something put between its words, as it is read.
fn prompts_with(between: &str, read_as: &str) {
    for (name, text) in SAMPLES.into_iter().filter(|(_, text)| text.contains("Fix it")) {
        if name.ends_with(".md") && between.starts_with('\\') {
            continue;
        }
        let (texts, problems) = read(name, text.replace("Fix it", &format!("Fix{between}it")));
        let wanted = format!("Fix{read_as}it");
        assert!(texts.iter().any(|text| text.contains(&wanted)), "{name}: {texts:?}");
        assert_eq!(problems, [], "{name}");
    }
}

#[test]
fn line_separators_of_unicode_end_no_line() {
    prompts_with("\u{2028}", "\u{2028}");
    prompts_with("\u{2029}", "\u{2029}");
}

#[test]
fn lone_surrogates_are_replaced() {
    prompts_with("\\ud800", "\u{fffd}");
    prompts_with("\\udc00\\ud83d", "\u{fffd}\u{fffd}");
}

#[test]
fn files_of_nothing() {
    for (name, _) in SAMPLES {
        assert_eq!(read(name, "").1, []);
        let _ = read(name, vec![0; 5000]);
    }
}

/// The parent of each record is the record itself, or all form a ring.
#[test]
fn parents_in_a_ring() {
    for (name, lines) in samples_of_lines() {
        let (whole, _) = read(name, lines.join("\n"));
        for step in [0, 1] {
            let mut records: Vec<Map<String, Value>> =
                lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
            let ids: Vec<_> = records.iter().map(id).collect();
            for (at, record) in records.iter_mut().enumerate() {
                for key in ["parentUuid", "parentId", "logicalParentUuid"] {
                    record.insert(key.to_owned(), ids[(at + step) % ids.len()].clone());
                }
            }
            let text: Vec<_> =
                records.into_iter().map(|it| Value::Object(it).to_string()).collect();
            assert_eq!(read(name, text.join("\n")), (whole.clone(), Vec::new()), "{name}");
        }
    }
}

fn id(record: &Map<String, Value>) -> Value {
    record.get("uuid").or_else(|| record.get("id")).cloned().unwrap_or_default()
}
