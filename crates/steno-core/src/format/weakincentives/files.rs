//! Detects session files of this system by name or by their first lines.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use super::{FILE_NAME, debug_bundle, jsonl, recognises};
use crate::durable::FileError;
use crate::format::tree::Tree;
use crate::lines::{Line, Lines};
use steno_vault::Bundle;

/// Names of the transcript file, which differ between versions and platforms.
const NAMES: [&str; 6] = [
    FILE_NAME,
    "weakincentives.transcript:TranscriptEntry.jsonl",
    "weakincentives.transcript_TranscriptEntry.jsonl",
    "weakincentives.runtime.transcript.TranscriptEntry.jsonl",
    "weakincentives.runtime.transcript:TranscriptEntry.jsonl",
    "weakincentives.runtime.transcript_TranscriptEntry.jsonl",
];

/// Number of lines to check before a file is rejected.
const PROBED_LINES: usize = 8;

/// Longest line that is checked, in bytes. Files of other programs may have huge lines.
const PROBED_BYTES: usize = 8 << 20;

/// Finds the sessions, one per file. Symlinks are not followed.
pub fn find(tree: &Tree) -> Result<Vec<Bundle>, FileError> {
    // A snapshot is a single line in its own file.
    let files = files_ending(tree, &["json", "jsonl"]);
    let bundles = files.filter(|file| is_ours(file)).map(|file| Bundle::file(file));
    let is_archive = |file: &&PathBuf| file.extension().is_some_and(|end| end == "zip");
    let archives = files_ending(tree, &["zip"]).filter(is_archive).map(|file| Bundle::file(file));
    let archives = archives.filter(|bundle| debug_bundle::is_debug_bundle(&bundle.sources[0]));
    Ok(bundles.chain(archives).collect())
}

/// Lists the file `path`, or all `.jsonl` files below the folder `path`, sorted.
pub(super) fn jsonl_files(path: &Path) -> Result<Vec<PathBuf>, FileError> {
    Ok(files_ending(&Tree::at(path)?, &["jsonl"]).cloned().collect())
}

fn files_ending<'a>(tree: &'a Tree, ends: &'a [&str]) -> impl Iterator<Item = &'a PathBuf> {
    let known =
        |file: &Path| file.extension().is_some_and(|end| ends.iter().any(|known| end == *known));
    tree.files().iter().filter(move |file| *file == tree.root() || known(file))
}

fn is_ours(path: &Path) -> bool {
    let Ok(file) = File::open(path) else {
        return false;
    };
    let name = path.file_name().and_then(|name| name.to_str());
    let named = name.is_some_and(|name| NAMES.contains(&name));
    let mut lines = Lines::with_limit(BufReader::new(file), PROBED_BYTES)
        .map_while(Result::ok)
        .filter(|line| !line.bytes.trim_ascii().is_empty());
    if named {
        lines.next().is_some()
    } else {
        lines.take(PROBED_LINES).filter(may_be_ours).any(|line| {
            jsonl::object(&line).and_then(Result::ok).is_some_and(|object| recognises(&object))
        })
    }
}

/// Whether a line contains a word that all of this system's lines have. Most long lines are rejected by this check
/// without parsing.
fn may_be_ours(line: &Line) -> bool {
    let words: [&[u8]; 3] = [b"\"created_at\"", b"\"transcript.", b"\"slices\""];
    words.iter().any(|word| memchr::memmem::find(&line.bytes, word).is_some())
}
