//! Reads thread titles, which Codex keeps in one index for all rollouts.
//!
//! The index lines of a rollout are kept with it, in case the index is deleted.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor};
use std::path::Path;

use serde::Deserialize;

use crate::decoding::json_lines::JsonLines;
use steno_vault::{SessionBundle, SessionFile};

const INDEX_FILE: &str = "session_index.jsonl";

/// How many folders above a rollout are searched for the index. `sessions/YYYY/MM/DD/` is in between.
const MAX_LEVELS_ABOVE: usize = 5;

/// The length of the id at the end of a rollout's name.
const ID_LENGTH: usize = 36;

#[derive(Deserialize)]
struct CodexIndexLine {
    id: String,
    #[serde(default)]
    thread_name: Option<String>,
}

/// The last title of thread `id`, from the index above `rollout`, or else from the kept index lines.
pub(super) fn find_title(bundle: &SessionBundle, rollout: &Path, id: &str) -> Option<String> {
    let mut folders =
        rollout.ancestors().skip(1).take(MAX_LEVELS_ABOVE).map(|folder| folder.join(INDEX_FILE));
    let index = folders.find(|index| index.is_file());
    let lines = index.and_then(|index| read_lines_about(&index, id).ok()).unwrap_or_default();
    let kept = || bundle.excerpts.last().and_then(|excerpt| excerpt.read_bytes().ok());
    last_title(lines, id).or_else(|| last_title(kept()?, id))
}

fn last_title(lines: Vec<u8>, id: &str) -> Option<String> {
    let lines = JsonLines::new(INDEX_FILE, Box::new(Cursor::new(lines))).filter_map(Result::ok);
    let lines = lines.filter_map(|line| serde_json::from_slice::<CodexIndexLine>(&line.bytes).ok());
    lines.filter(|line| line.id == id).last()?.thread_name.filter(|name| !name.is_empty())
}

/// The index lines in `home` that name the thread of `rollout`. The index is opened only when they are read.
pub(super) fn index_excerpt(home: &Path, rollout: &Path) -> Option<SessionFile> {
    let name = rollout.file_name()?.to_str()?.split(".jsonl").next()?;
    let id = name.get(name.len().checked_sub(ID_LENGTH)?..)?.to_owned();
    let index = home.join(INDEX_FILE);
    let path = index.clone();
    Some(SessionFile::new(INDEX_FILE, path, move || {
        Ok(Box::new(Cursor::new(read_lines_about(&index, &id)?)))
    }))
}

/// Reads the index lines that contain the id. None if there is no index.
fn read_lines_about(index: &Path, id: &str) -> io::Result<Vec<u8>> {
    let mut input = match File::open(index) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        input => BufReader::new(input?),
    };
    let (mut lines, mut line) = (Vec::new(), Vec::new());
    while input.read_until(b'\n', &mut line)? > 0 {
        if line.ends_with(b"\n") && memchr::memmem::find(&line, id.as_bytes()).is_some() {
            lines.append(&mut line);
        }
        line.clear();
    }
    Ok(lines)
}
