//! Detects session files of this system by name or by their first lines.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use super::{TRANSCRIPT_FILE, debug_bundle, is_weakincentives_record, jsonl};
use steno_agents::reader::file_tree::FileTree;
use steno_model::durable::FileError;
use steno_model::lines::{InputLine, LineReader};
use steno_vault::SessionBundle;

/// Names of the transcript file, which differ between versions and platforms.
const TRANSCRIPT_FILES: [&str; 6] = [
    TRANSCRIPT_FILE,
    "weakincentives.transcript:TranscriptEntry.jsonl",
    "weakincentives.transcript_TranscriptEntry.jsonl",
    "weakincentives.runtime.transcript.TranscriptEntry.jsonl",
    "weakincentives.runtime.transcript:TranscriptEntry.jsonl",
    "weakincentives.runtime.transcript_TranscriptEntry.jsonl",
];

/// Number of lines to check before a file is rejected.
const MAX_PROBED_LINES: usize = 8;

/// Longest line that is checked, in bytes. Files of other programs may have huge lines.
const MAX_PROBED_LINE_BYTES: usize = 8 << 20;

/// Finds the sessions, one per file. Symlinks are not followed.
pub fn find_sessions(tree: &FileTree) -> Result<Vec<SessionBundle>, FileError> {
    // A snapshot is a single line in its own file.
    let files = files_with_suffix(tree, &["json", "jsonl"]);
    let bundles = files
        .filter(|file| is_weakincentives_file(file))
        .map(|file| SessionBundle::from_file(file));
    let is_archive = |file: &&PathBuf| file.extension().is_some_and(|end| end == "zip");
    let archives = files_with_suffix(tree, &["zip"])
        .filter(is_archive)
        .map(|file| SessionBundle::from_file(file));
    let archives = archives.filter(|bundle| debug_bundle::is_debug_bundle(&bundle.files[0]));
    Ok(bundles.chain(archives).collect())
}

/// Lists the file `path`, or all `.jsonl` files below the folder `path`, sorted.
pub(super) fn list_jsonl_files(path: &Path) -> Result<Vec<PathBuf>, FileError> {
    Ok(files_with_suffix(&FileTree::open(path)?, &["jsonl"]).cloned().collect())
}

fn files_with_suffix<'a>(
    tree: &'a FileTree,
    ends: &'a [&str],
) -> impl Iterator<Item = &'a PathBuf> {
    let known =
        |file: &Path| file.extension().is_some_and(|end| ends.iter().any(|known| end == *known));
    tree.files().iter().filter(move |file| *file == tree.root() || known(file))
}

fn is_weakincentives_file(path: &Path) -> bool {
    let Ok(file) = File::open(path) else {
        return false;
    };
    let name = path.file_name().and_then(|name| name.to_str());
    let named = name.is_some_and(|name| TRANSCRIPT_FILES.contains(&name));
    let mut lines = LineReader::with_limit(BufReader::new(file), MAX_PROBED_LINE_BYTES)
        .map_while(Result::ok)
        .filter(|line| !line.bytes.trim_ascii().is_empty());
    if named {
        lines.next().is_some()
    } else {
        lines.take(MAX_PROBED_LINES).filter(may_be_weakincentives).any(|line| {
            jsonl::parse_object_line(&line)
                .and_then(Result::ok)
                .is_some_and(|object| is_weakincentives_record(&object))
        })
    }
}

/// Whether a line contains a word that all of this system's lines have. Most long lines are rejected by this check
/// without parsing.
fn may_be_weakincentives(line: &InputLine) -> bool {
    let words: [&[u8]; 3] = [b"\"created_at\"", b"\"transcript.", b"\"slices\""];
    words.iter().any(|word| memchr::memmem::find(&line.bytes, word).is_some())
}
