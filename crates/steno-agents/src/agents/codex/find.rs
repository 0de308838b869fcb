//! Finds rollouts by their first records, and opens them, compressed or not.

use std::collections::HashMap;
use std::io::BufRead;
use std::path::{Path, PathBuf};

use super::record::CodexRolloutLine;
use super::{history, thread_title};
use crate::reader::file_tree::FileTree;
use steno_model::durable::{FileError, OnPath};
use steno_model::lines::LineReader;
use steno_vault;
use steno_vault::{SessionBundle, SessionFile};

/// How many lines of a file are parsed to recognize it.
const PROBED_LINES: usize = 5;

/// How many bytes of each of these lines are read.
const PROBED_BYTES: usize = 8 << 20;

/// Finds the sessions in `tree`, one per rollout.
///
/// If a rollout has several copies, compressed or archived, the uncompressed and active one is chosen.
pub(super) fn find_sessions(tree: &FileTree) -> Result<Vec<SessionBundle>, FileError> {
    let mut chosen: HashMap<PathBuf, PathBuf> = HashMap::new();
    let (mut rollouts, mut purged) = (Vec::new(), Vec::new());
    for file in tree.files() {
        if !recognises(&SessionBundle::from_file(file).files[0]) {
            purged.extend(history::find_purged_sessions(file)?);
            continue;
        }
        match chosen.get_mut(&rollout_identity(file)) {
            Some(other) if rank_copy(file) < rank_copy(other) => *other = file.clone(),
            Some(_) => {}
            None => {
                rollouts.push(rollout_identity(file));
                chosen.insert(rollout_identity(file), file.clone());
            }
        }
    }
    Ok(rollouts.iter().map(|rollout| bundle_rollout(&chosen[rollout])).chain(purged).collect())
}

/// Bundles a rollout with its lines of the thread index.
fn bundle_rollout(rollout: &Path) -> SessionBundle {
    let mut bundle = SessionBundle::from_file(rollout);
    let home = rollout.ancestors().find(|folder| is_rollout_folder(folder)).and_then(Path::parent);
    bundle.excerpts.extend(home.and_then(|home| thread_title::index_excerpt(home, rollout)));
    bundle
}

/// Opens a rollout for reading, decompressed.
pub(super) fn open_rollout(source: &SessionFile) -> Result<Box<dyn BufRead>, FileError> {
    steno_vault::decompress_if_zstd(source.open()?).on("read", source.path())
}

/// Whether a file is a rollout, judged by its first records.
pub fn recognises(source: &SessionFile) -> bool {
    let Ok(mut input) = open_rollout(source) else {
        return false;
    };
    if !input.fill_buf().is_ok_and(|start| start.trim_ascii_start().starts_with(b"{")) {
        return false;
    }
    let lines = LineReader::with_limit(input, PROBED_BYTES).map_while(Result::ok);
    let mut filled = lines.filter(|line| !line.bytes.trim_ascii().is_empty()).take(PROBED_LINES);
    filled.any(|line| CodexRolloutLine::is_codex_line(&line.bytes))
}

/// The path that all copies of a rollout share: Codex's home folder and the name without `.zst`.
fn rollout_identity(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.strip_suffix(".zst").unwrap_or(&name);
    let store = path.ancestors().find(|folder| is_rollout_folder(folder));
    match store.and_then(Path::parent) {
        Some(home) => home.join(name),
        None => path.with_file_name(name),
    }
}

fn is_rollout_folder(folder: &Path) -> bool {
    folder.ends_with("sessions") || folder.ends_with("archived_sessions")
}

/// Orders copies of a rollout: uncompressed before compressed, then active before archived.
fn rank_copy(path: &Path) -> (bool, bool) {
    let is_archived = path.ancestors().any(|folder| folder.ends_with("archived_sessions"));
    (path.extension().is_some_and(|end| end == "zst"), is_archived)
}
