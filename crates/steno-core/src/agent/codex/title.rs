//! Titles of threads, which Codex keeps in an index beside all rollouts and not in them.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use serde::Deserialize;

use crate::agent::json_lines::JsonLines;

const INDEX: &str = "session_index.jsonl";

/// How many folders above a rollout the index may stand: `sessions/YYYY/MM/DD/` lies between.
const LEVELS: usize = 5;

#[derive(Deserialize)]
struct Line {
    id: String,
    #[serde(default)]
    thread_name: Option<String>,
}

/// The last title that the index gives to thread `id`, where an index stands above `rollout`.
pub(super) fn of(rollout: &Path, id: &str) -> Option<String> {
    let folders = rollout.ancestors().skip(1).take(LEVELS);
    let index = folders.map(|folder| folder.join(INDEX)).find(|index| index.is_file())?;
    let input = Box::new(BufReader::new(File::open(&index).ok()?));
    let lines = JsonLines::new(index, input).filter_map(Result::ok);
    let named = lines.filter_map(|line| serde_json::from_slice::<Line>(&line.bytes).ok());
    named.filter(|line| line.id == id).last()?.thread_name.filter(|name| !name.is_empty())
}
