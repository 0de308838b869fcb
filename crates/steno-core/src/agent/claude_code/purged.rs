//! Sessions whose files are gone, as far as the history of prompts beside the projects tells of them.
//!
//! Where a session's file is there, its lines of the history are left alone: they would only repeat it.

use std::collections::{BTreeMap, HashSet};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Cursor, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;

use serde::Deserialize;

use super::loose::Plain;
use crate::durable::{FileError, OnPath};
use crate::lines::LINE_LIMIT;
use crate::source::{Bundle, Source};

/// The history's name, beside the folder of all projects.
const HISTORY: &str = "history.jsonl";

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Named<'a> {
    #[serde(borrow)]
    session_id: Plain<'a>,
}

/// The sessions that only the history tells of, and one of all lines that name none; nothing where the file stands
/// elsewhere than in Claude Code's own folder.
pub(super) fn sessions(history: &Path) -> Result<Option<Vec<Bundle>>, FileError> {
    let projects = history.with_file_name("projects");
    if !history.ends_with(HISTORY) || !projects.is_dir() {
        return Ok(None);
    }
    let there = sessions_in(&projects);
    let mut told = lines_by_session(history).on("read", history)?;
    told.retain(|session, _| session.as_ref().is_none_or(|session| !there.contains(session)));
    Ok(Some(told.into_iter().map(|(key, lines)| bundle(history, key, lines)).collect()))
}

fn bundle(history: &Path, key: Option<String>, lines: Vec<Range<u64>>) -> Bundle {
    let mut bundle = Bundle::new(history, Vec::new());
    bundle.key = key;
    let path = history.to_owned();
    let open =
        move || -> io::Result<Box<dyn BufRead>> { Ok(Box::new(Cursor::new(only(&path, &lines)?))) };
    bundle.excerpts.push(Source::new(HISTORY, history, open));
    bundle
}

/// The names of all files in project folders; none is opened.
fn sessions_in(projects: &Path) -> HashSet<String> {
    let items = |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten();
    let files = items(projects).flat_map(|project| items(&project.path()));
    let names = files.filter_map(|file| file.file_name().into_string().ok());
    names.filter_map(|name| Some(name.strip_suffix(".jsonl")?.to_owned())).collect()
}

/// Where the lines of each session stand. A last line without its end waits.
fn lines_by_session(history: &Path) -> io::Result<BTreeMap<Option<String>, Vec<Range<u64>>>> {
    let mut input = BufReader::new(File::open(history)?);
    let mut told: BTreeMap<_, Vec<Range<u64>>> = BTreeMap::new();
    let (mut line, mut at) = (Vec::new(), 0);
    loop {
        line.clear();
        let length = input.by_ref().take(LINE_LIMIT as u64).read_until(b'\n', &mut line)? as u64;
        if length == 0 {
            return Ok(told);
        }
        if line.ends_with(b"\n") {
            let named: Named<'_> = serde_json::from_slice(&line).unwrap_or_default();
            let lines = told.entry(named.session_id.owned()).or_default();
            match lines.last_mut().filter(|last| last.end == at) {
                Some(last) => last.end += length,
                None => lines.push(at..at + length),
            }
        }
        at += length;
    }
}

/// Only these lines of a file.
fn only(history: &Path, lines: &[Range<u64>]) -> io::Result<Vec<u8>> {
    let mut file = File::open(history)?;
    let mut bytes = Vec::new();
    for Range { start, end } in lines {
        file.seek(SeekFrom::Start(*start))?;
        file.by_ref().take(end - start).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}
