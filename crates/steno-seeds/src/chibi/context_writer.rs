//! Writes a transcript as a context's folder, in the layout of chibi's documentation.
//!
//! Entries before the last compaction go to `transcript_archive.jsonl` and `transcript.md`, the rest to
//! `context.jsonl`. Debug files and the inbox are written only if the transcript was read with them.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::context::render_meta;
use super::context_files::{ARCHIVE_FILE, CONTEXT_FILE, MARKDOWN_FILE, META_FILE};
use super::context_line::ContextLine;
use super::context_name::ContextName;
use super::debug_file::{ChibiDebugFile, line_seconds};
use super::inbox::INBOX_FILE;
use super::line_conversion::{chibi_fields, line_from_entry, line_id, response_line};
use super::merge::ARCHIVED_KEY;
use super::{AGENT_NAME, READER, markdown, read_context};
use steno_model::durable::{FileError, create_private_dir, write_atomic};
use steno_model::entry::{Entry, EntryKind};
use steno_model::json::{JsonStyle, Object};
use steno_model::numbering::EntryNumbering;
use steno_model::session::Transcript;
use steno_vault::FormatError;

/// Writes `transcript` to `contexts/<name>` below `base`, and returns that folder.
///
/// If a context of that name has other content, it is unchanged, and a number is appended to the name.
pub fn write_context(transcript: &Transcript, base: &Path) -> Result<PathBuf, FormatError> {
    let name = ContextName::for_session(&transcript.session);
    let entries = identify_entries(transcript);
    let records = entries.iter().flat_map(record_keys).collect();
    let numbered = (2_u64..).map(|number| name.with_number(number));
    for name in [name.clone()].into_iter().chain(numbered) {
        let dir = base.join("contexts").join(name.as_str());
        if holds_only_known(&dir, &records)? {
            write_changed_files(&dir, &render_files(transcript, &entries, &name))?;
            return Ok(dir);
        }
    }
    unreachable!("numbers never end")
}

/// The entries, each with an id.
fn identify_entries(transcript: &Transcript) -> Vec<Entry> {
    let numbering = EntryNumbering::new(AGENT_NAME, transcript.session.id.as_str());
    let mut entries = transcript.entries.clone();
    entries.iter_mut().for_each(|entry| numbering.assign_id(entry));
    entries
}

fn holds_only_known(dir: &Path, known: &HashSet<String>) -> Result<bool, FormatError> {
    if !dir.exists() {
        return Ok(true);
    }
    for bundle in READER.find_at(dir)?.iter().filter(|bundle| bundle.root == dir) {
        let there = read_context(bundle)?;
        let mut records = there.entries.iter().flat_map(record_keys);
        if !there.problems.is_empty() || !records.all(|record| known.contains(&record)) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Keys of the records that an entry is written as: ids, or whole lines without an id.
fn record_keys(entry: &Entry) -> Vec<String> {
    let line = |line: &Object| JsonStyle::COMPACT.print(line);
    if let Some(side_entries) = side_file_line(entry) {
        return vec![line(side_entries)];
    }
    let mut records = vec![line_id(entry)];
    records.extend(response_line(entry).map(line));
    records
}

/// Names and contents of the files, in an order that is safe if a crash interrupts the writing.
fn render_files(
    transcript: &Transcript,
    entries: &[Entry],
    name: &ContextName,
) -> Vec<(&'static str, String)> {
    let (side_entries, conversation): (Vec<_>, Vec<_>) =
        entries.iter().partition(|entry| side_file_name(entry).is_some());
    let archived = &conversation[..find_window_start(&conversation)];
    let mut lines: Vec<String> =
        lines_from_entries(&conversation, name).iter().map(ContextLine::to_line).collect();
    let window = lines.split_off(archived.len());
    let mut files = Vec::new();
    if let Some(started) = transcript.session.started {
        files.push((META_FILE, render_meta(started.unix_seconds())));
    }
    if !archived.is_empty() {
        files.push((ARCHIVE_FILE, lines.concat()));
        files.push((MARKDOWN_FILE, markdown::render_markdown(archived.iter().copied())));
    }
    let responses = conversation.iter().filter_map(|entry| response_line(entry));
    for (file, attached) in [
        (INBOX_FILE, Vec::new()),
        (ChibiDebugFile::Requests.file_name(), Vec::new()),
        (ChibiDebugFile::Responses.file_name(), responses.collect()),
    ] {
        let text = render_side_file(file, &side_entries, attached);
        if !text.is_empty() {
            files.push((file, text));
        }
    }
    files.push((CONTEXT_FILE, window.concat()));
    files
}

/// Writes the files that differ from those on disk.
fn write_changed_files(dir: &Path, files: &[(&str, String)]) -> Result<(), FileError> {
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
fn find_window_start(conversation: &[&Entry]) -> usize {
    let archived = |entry: &&Entry| {
        chibi_fields(entry).is_some_and(|native| native.contains_key(ARCHIVED_KEY))
    };
    let after = conversation.iter().rposition(archived).map_or(0, |at| at + 1);
    let compaction = conversation.iter().rposition(|entry| entry.kind == EntryKind::Compaction);
    compaction.unwrap_or(0).max(after)
}

/// Converts the transcript's entries to lines, archived ones included.
pub fn lines_from_transcript(transcript: &Transcript) -> Vec<ContextLine> {
    let conversation: Vec<_> =
        transcript.entries.iter().filter(|entry| side_file_name(entry).is_none()).collect();
    lines_from_entries(&conversation, &ContextName::for_session(&transcript.session))
}

fn lines_from_entries(entries: &[&Entry], name: &ContextName) -> Vec<ContextLine> {
    let mut earlier = 0;
    let lines = entries.iter().map(|entry| {
        let line = line_from_entry(entry, name.as_str(), earlier);
        earlier = line.timestamp.to_timestamp().map_or(earlier, |at| at.unix_seconds());
        line
    });
    lines.collect()
}

/// The file that an entry came from, if it is not part of the conversation.
fn side_file_name(entry: &Entry) -> Option<&str> {
    chibi_fields(entry)?.get("file")?.as_str()
}

/// The line that such an entry came from.
fn side_file_line(entry: &Entry) -> Option<&Object> {
    chibi_fields(entry)?.get("line")?.as_object()
}

/// Renders a debug file or the inbox: lines attached to the model's entries, and those of other entries, sorted by
/// time.
fn render_side_file(file: &str, side_entries: &[&Entry], attached: Vec<&Object>) -> String {
    let of_file = side_entries.iter().filter(|entry| side_file_name(entry) == Some(file));
    let mut lines = attached;
    lines.extend(of_file.filter_map(|entry| side_file_line(entry)));
    lines.sort_by_key(|line| line_seconds(line));
    lines.into_iter().map(|line| JsonStyle::COMPACT.print(line) + "\n").collect()
}

#[cfg(test)]
mod tests;
