//! Writes a transcript as a context's folder, in the layout of chibi's documentation.
//!
//! Entries before the last compaction go to `transcript_archive.jsonl` and `transcript.md`, the rest to
//! `context.jsonl`. Debug files and the inbox are written only if the transcript was read with them.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::context::meta;
use super::convert::{id_of, line_of, native, response_of};
use super::debug::{DebugFile, second};
use super::find::{ARCHIVE, CONTEXT, MARKDOWN, META};
use super::inbox::INBOX;
use super::line::Line;
use super::merge::ARCHIVED;
use super::name::ContextName;
use super::{AGENT, READER, markdown, read};
use crate::durable::{FileError, create_private_dir, write_atomic};
use crate::entry::{Entry, Kind, Numbering};
use crate::json::{Object, Style};
use crate::session::Transcript;
use steno_vault::FormatError;

/// Writes `transcript` to `contexts/<name>` below `base`, and returns that folder.
///
/// If a context of that name has other content, it is unchanged, and a number is appended to the name.
pub fn write(transcript: &Transcript, base: &Path) -> Result<PathBuf, FormatError> {
    let name = ContextName::for_session(&transcript.session);
    let entries = identified(transcript);
    let records = entries.iter().flat_map(records).collect();
    let numbered = (2_u64..).map(|number| name.numbered(number));
    for name in [name.clone()].into_iter().chain(numbered) {
        let dir = base.join("contexts").join(name.as_str());
        if holds_nothing_else(&dir, &records)? {
            write_files(&dir, &files(transcript, &entries, &name))?;
            return Ok(dir);
        }
    }
    unreachable!("numbers never end")
}

/// The entries, each with an id.
fn identified(transcript: &Transcript) -> Vec<Entry> {
    let numbering = Numbering::new(AGENT, transcript.session.id.as_str());
    let mut entries = transcript.entries.clone();
    entries.iter_mut().for_each(|entry| numbering.identify(entry));
    entries
}

fn holds_nothing_else(dir: &Path, known: &HashSet<String>) -> Result<bool, FormatError> {
    if !dir.exists() {
        return Ok(true);
    }
    for bundle in READER.find_at(dir)?.iter().filter(|bundle| bundle.root == dir) {
        let there = read(bundle)?;
        let mut records = there.entries.iter().flat_map(records);
        if !there.problems.is_empty() || !records.all(|record| known.contains(&record)) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Keys of the records that an entry is written as: ids, or whole lines without an id.
fn records(entry: &Entry) -> Vec<String> {
    let line = |line: &Object| Style::COMPACT.print(line);
    if let Some(side_entries) = beside_line(entry) {
        return vec![line(side_entries)];
    }
    let mut records = vec![id_of(entry)];
    records.extend(response_of(entry).map(line));
    records
}

/// Names and contents of the files, in an order that is safe if a crash interrupts the writing.
fn files(
    transcript: &Transcript,
    entries: &[Entry],
    name: &ContextName,
) -> Vec<(&'static str, String)> {
    let (side_entries, conversation): (Vec<_>, Vec<_>) =
        entries.iter().partition(|entry| file_of(entry).is_some());
    let archived = &conversation[..window_start(&conversation)];
    let mut lines: Vec<String> =
        context_lines(&conversation, name).iter().map(Line::print).collect();
    let window = lines.split_off(archived.len());
    let mut files = Vec::new();
    if let Some(started) = transcript.session.started {
        files.push((META, meta(started.unix_seconds())));
    }
    if !archived.is_empty() {
        files.push((ARCHIVE, lines.concat()));
        files.push((MARKDOWN, markdown::render(archived.iter().copied())));
    }
    let responses = conversation.iter().filter_map(|entry| response_of(entry));
    for (file, attached) in [
        (INBOX, Vec::new()),
        (DebugFile::Requests.name(), Vec::new()),
        (DebugFile::Responses.name(), responses.collect()),
    ] {
        let text = lines_of(file, &side_entries, attached);
        if !text.is_empty() {
            files.push((file, text));
        }
    }
    files.push((CONTEXT, window.concat()));
    files
}

/// Writes the files that differ from those on disk.
fn write_files(dir: &Path, files: &[(&str, String)]) -> Result<(), FileError> {
    create_private_dir(dir)?;
    for (name, text) in files {
        let path = dir.join(name);
        if !fs::read(&path).is_ok_and(|there| there == text.as_bytes()) {
            write_atomic(&path, text.as_bytes())?;
        }
    }
    Ok(())
}

/// The index at which the active conversation starts: at the last compaction, or after entries that were archived
/// without one.
fn window_start(conversation: &[&Entry]) -> usize {
    let archived =
        |entry: &&Entry| native(entry).is_some_and(|native| native.contains_key(ARCHIVED));
    let after = conversation.iter().rposition(archived).map_or(0, |at| at + 1);
    let compaction = conversation.iter().rposition(|entry| entry.kind == Kind::Compaction);
    compaction.unwrap_or(0).max(after)
}

/// Converts the transcript's entries to lines, archived ones included.
pub fn lines_of_transcript(transcript: &Transcript) -> Vec<Line> {
    let conversation: Vec<_> =
        transcript.entries.iter().filter(|entry| file_of(entry).is_none()).collect();
    context_lines(&conversation, &ContextName::for_session(&transcript.session))
}

fn context_lines(entries: &[&Entry], name: &ContextName) -> Vec<Line> {
    let mut earlier = 0;
    let lines = entries.iter().map(|entry| {
        let line = line_of(entry, name.as_str(), earlier);
        earlier = line.timestamp.moment().map_or(earlier, |at| at.unix_seconds());
        line
    });
    lines.collect()
}

/// The file that an entry came from, if it is not part of the conversation.
fn file_of(entry: &Entry) -> Option<&str> {
    native(entry)?.get("file")?.as_str()
}

/// The line that such an entry came from.
fn beside_line(entry: &Entry) -> Option<&Object> {
    native(entry)?.get("line")?.as_object()
}

/// Renders a debug file or the inbox: lines attached to the model's entries, and those of other entries, sorted by
/// time.
fn lines_of(file: &str, side_entries: &[&Entry], attached: Vec<&Object>) -> String {
    let of_file = side_entries.iter().filter(|entry| file_of(entry) == Some(file));
    let mut lines = attached;
    lines.extend(of_file.filter_map(|entry| beside_line(entry)));
    lines.sort_by_key(|line| second(line));
    lines.into_iter().map(|line| Style::COMPACT.print(line) + "\n").collect()
}

#[cfg(test)]
mod tests;
