//! Which files are rollouts, told by their first records; and how to open them, compressed or not.

use std::collections::HashMap;
use std::io::BufRead;
use std::path::{Path, PathBuf};

use super::record::Record;
use super::{history, title};
use crate::durable::{FileError, OnPath};
use crate::format::tree::Tree;
use crate::lines::Lines;
use steno_vault::{self, Bundle, Source};

/// How many lines are looked at before a file is taken for something else.
const PROBED_LINES: usize = 5;

/// The longest line that is looked at for that.
const PROBED_BYTES: usize = 8 << 20;

/// The sessions at or below `path`, one per file.
///
/// A rollout may stand there twice, compressed or archived: then the plain and active one is taken.
pub(super) fn find(tree: &Tree) -> Result<Vec<Bundle>, FileError> {
    let mut chosen: HashMap<PathBuf, PathBuf> = HashMap::new();
    let (mut rollouts, mut gone) = (Vec::new(), Vec::new());
    for file in tree.files() {
        if !recognises(&Bundle::file(file).sources[0]) {
            gone.extend(history::sessions(file)?);
            continue;
        }
        match chosen.get_mut(&identity(file)) {
            Some(other) if rank(file) < rank(other) => *other = file.clone(),
            Some(_) => {}
            None => {
                rollouts.push(identity(file));
                chosen.insert(identity(file), file.clone());
            }
        }
    }
    Ok(rollouts.iter().map(|rollout| bundle(&chosen[rollout])).chain(gone).collect())
}

/// A rollout, with what the index of its home folder says of it.
fn bundle(rollout: &Path) -> Bundle {
    let mut bundle = Bundle::file(rollout);
    let home = rollout.ancestors().find(|folder| is_store(folder)).and_then(Path::parent);
    bundle.excerpts.extend(home.and_then(|home| title::excerpt(home, rollout)));
    bundle
}

/// A reader of the plain bytes.
pub(super) fn open(source: &Source) -> Result<Box<dyn BufRead>, FileError> {
    steno_vault::unpacked(source.open()?).on("read", source.path())
}

/// Whether a file is a rollout, told by its first records.
pub(crate) fn recognises(source: &Source) -> bool {
    let Ok(mut input) = open(source) else {
        return false;
    };
    if !input.fill_buf().is_ok_and(|start| start.trim_ascii_start().starts_with(b"{")) {
        return false;
    }
    let lines = Lines::with_limit(input, PROBED_BYTES).map_while(Result::ok);
    let mut filled = lines.filter(|line| !line.bytes.trim_ascii().is_empty()).take(PROBED_LINES);
    filled.any(|line| Record::is_codex(&line.bytes))
}

/// What an archived or compressed copy shares with its original: the home folder and the name.
fn identity(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.strip_suffix(".zst").unwrap_or(&name);
    let store = path.ancestors().find(|folder| is_store(folder));
    match store.and_then(Path::parent) {
        Some(home) => home.join(name),
        None => path.with_file_name(name),
    }
}

fn is_store(folder: &Path) -> bool {
    folder.ends_with("sessions") || folder.ends_with("archived_sessions")
}

/// Lower is better.
fn rank(path: &Path) -> (bool, bool) {
    let archived = path.ancestors().any(|folder| folder.ends_with("archived_sessions"));
    (path.extension().is_some_and(|end| end == "zst"), archived)
}
