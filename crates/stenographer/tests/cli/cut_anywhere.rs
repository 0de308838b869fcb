//! A file cut at any byte is imported completely, and so is each growth: `sync`, `restore`, `show` and the index
//! agree at every step. Runs on the samples of all readers, and on real sessions if there are any.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::harness::Home;

/// Number of steps in which a file grows.
const STEPS: usize = 3;
/// Larger real files take too long.
const MAX_SIZE: u64 = 200_000;

/// Deterministic pseudo-random numbers.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) as usize % limit.max(1)
    }
}

/// Splits a sample into files at lines `@@ NAME`; without such a line it is one file.
fn files_of(sample: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let bytes = fs::read(sample).unwrap();
    let Some(rest) = bytes.strip_prefix(b"@@ ") else { return Vec::new() };
    let mut files = Vec::new();
    let mut rest = Some(rest);
    while let Some(file) = rest {
        let end = memchr::memchr(b'\n', file).unwrap_or(file.len());
        let name = String::from_utf8_lossy(&file[..end]).into_owned();
        let content = file.get(end + 1..).unwrap_or_default();
        let next = memchr::memmem::find(content, b"\n@@ ");
        files.push((PathBuf::from(name), content[..next.unwrap_or(content.len())].to_vec()));
        rest = next.map(|at| &content[at + 4..]);
    }
    files
}

fn is_database(bytes: &[u8]) -> bool {
    bytes.starts_with(b"SQLite format 3")
}

/// Returns the contents of all files below a folder.
fn contents(folder: &Path) -> BTreeSet<Vec<u8>> {
    let mut found = BTreeSet::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for item in fs::read_dir(&folder).into_iter().flatten() {
            let path = item.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.insert(fs::read(&path).unwrap());
            }
        }
    }
    found
}

fn rows(text: &str) -> Vec<serde_json::Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Grows one file of a session step by step.
fn grow(name: &str, files: &[(PathBuf, Vec<u8>)], target: usize, random: &mut Random) {
    let home = Home::new();
    let whole = &files[target].1;
    let mut ends: Vec<usize> = (1..STEPS).map(|_| random.below(whole.len() + 1)).collect();
    ends.push(whole.len());
    ends.sort_unstable();
    for end in ends {
        for (at, (path, content)) in files.iter().enumerate() {
            let content = if at == target { &content[..end] } else { content.as_slice() };
            home.file(&format!("agent/{}", path.display()), content);
        }
        check_step(&format!("{name}, {} cut at {end}", files[target].0.display()), &home);
    }
}

/// Syncs, compares the output of the commands, then purges and restores the files.
fn check_step(what: &str, home: &Home) {
    let before = contents(&home.path().join("agent"));
    let synced = home.steno(&["sync", "agent", "--json"]);
    assert!(synced.code == 0, "{what}: {synced}");
    let listed = rows(&home.steno(&["list", "--json"]).stdout);
    let kept = home.vault().list_sessions().unwrap();
    let (mut shown, mut restored) = (0, BTreeSet::new());
    for id in kept.iter().map(|dir| dir.id().as_str()) {
        let row = listed.iter().find(|row| row["id"] == id);
        let indexed = row.map_or(0, |row| row["entries"].as_u64().unwrap());
        let entries = home.steno(&["show", id, "--json"]).stdout.lines().count() as u64;
        assert_eq!(indexed, entries, "{what}: {id} listed and shown");
        shown += entries;
        home.steno(&["restore", id, "--to", &format!("back/{id}")]);
        restored.extend(contents(&home.path().join("back").join(id)));
    }
    let synced = rows(&synced.stdout);
    let printed: u64 = synced.iter().map(|row| row["entries"].as_u64().unwrap()).sum();
    let sessions: u64 = synced.iter().map(|row| row["sessions"].as_u64().unwrap()).sum();
    if sessions == kept.len() as u64 {
        assert_eq!(printed, shown, "{what}: printed and shown");
    }
    // Files without a reader are not imported.
    for source in kept.iter().flat_map(|dir| dir.kept_bundle().unwrap().files) {
        if let Ok(now) = fs::read(source.path()) {
            assert!(is_database(&now) || restored.contains(&now), "{what}: {}", source.name());
        }
    }
    assert!(sessions == 0 || before.iter().any(|content| restored.contains(content)), "{what}");
    let _ = fs::remove_dir_all(home.path().join("back"));
    home.steno(&["verify"]).ok();
}

#[test]
fn samples_of_all_readers_come_back_whole_wherever_they_end() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let mut random = Random(16);
    let mut readers = 0;
    let mut folders: Vec<_> = fs::read_dir(corpus).unwrap().map(|item| item.unwrap()).collect();
    folders.sort_by_key(std::fs::DirEntry::file_name);
    for reader in folders {
        let reader_name = reader.file_name().to_string_lossy().into_owned();
        let mut samples: Vec<_> = fs::read_dir(reader.path()).unwrap().flatten().collect();
        samples.retain(|item| item.file_name().to_string_lossy().starts_with("sample-"));
        samples.sort_by_key(std::fs::DirEntry::file_name);
        for sample in samples {
            let files = files_of(&sample.path());
            let plain: Vec<usize> =
                (0..files.len()).filter(|at| !is_database(&files[*at].1)).collect();
            if plain.is_empty() {
                continue;
            }
            let target = plain[random.below(plain.len())];
            let name = format!("{reader_name}/{}", sample.file_name().to_string_lossy());
            grow(&name, &files, target, &mut random);
            readers += 1;
        }
    }
    assert!(readers > 25, "{readers} samples");
}

#[test]
fn real_sessions_come_back_whole_wherever_they_end() {
    let Some(root) = std::env::var_os("STENO_FIXTURES") else {
        eprintln!("STENO_FIXTURES is not set: no real sessions");
        return;
    };
    let mut random = Random(61);
    let mut folders = vec![PathBuf::from(root)];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        for item in fs::read_dir(&folder).unwrap().flatten() {
            let (path, size) = (item.path(), item.metadata().unwrap().len());
            if path.is_dir() {
                folders.push(path);
            } else if size < MAX_SIZE && path.extension().is_some_and(|end| end == "jsonl") {
                files.push(path);
            }
        }
    }
    files.sort();
    for path in files.iter().step_by(2) {
        let name = PathBuf::from(path.file_name().unwrap());
        let files = [(name, fs::read(path).unwrap())];
        grow(&path.display().to_string(), &files, 0, &mut random);
    }
}
