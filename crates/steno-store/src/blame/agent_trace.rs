//! Writes origins as trace records of Agent Trace 0.1.0, and keeps such records in Git notes.
//!
//! A certain line has a contributor of type `ai`; a likely one has type `unknown`, with its conversation. Lines without
//! a session are left out.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::git_repository::GitRepository;
use super::line_origin::{LineOrigin, OriginCertainty, OriginEntry};
use super::{BlameError, BlamedFile};
use steno_model::timestamp::Timestamp;

/// The version of the specification.
const TRACE_VERSION: &str = "0.1.0";

/// The notes in which records are kept.
pub const NOTES_REF: &str = "refs/notes/steno";

/// Which line numbers a record has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LineNumbering {
    /// Those of the file in the checkout.
    Current,
    /// Those of the commit that wrote the lines.
    Original,
}

/// A record of the origins of a file's lines as they are in the checkout. It names a revision only if the file has no
/// changes that are not committed.
pub fn trace_record(file: &BlamedFile, origins: &[LineOrigin], now: Timestamp) -> Value {
    let lines: Vec<&LineOrigin> = origins.iter().collect();
    let mut record = new_record(now);
    let is_committed = file.repository.try_text(&["status", "--porcelain", "--", &file.path]);
    if is_committed.is_some_and(|changes| changes.trim().is_empty())
        && let Some(head) = file.repository.try_text(&["rev-parse", "HEAD"])
    {
        record["vcs"] = json!({"type": "git", "revision": head.trim()});
    }
    record["files"] = json!([file_record(&file.path, &lines, LineNumbering::Current)]);
    record
}

/// Writes a note with a record to each commit that wrote a line with a known session. Returns the commits. A note that
/// already has a record keeps its other files.
pub fn write_notes(
    repository: &GitRepository,
    origins: &[LineOrigin],
    now: Timestamp,
) -> Result<Vec<String>, BlameError> {
    let mut written: Vec<String> = Vec::new();
    let known = || origins.iter().filter(|origin| origin.entry.is_some());
    for commit in known().filter_map(|origin| origin.line.commit.as_ref()) {
        if written.contains(commit) {
            continue;
        }
        let own: Vec<&LineOrigin> =
            known().filter(|origin| origin.line.commit.as_ref() == Some(commit)).collect();
        let mut paths: Vec<&str> =
            own.iter().map(|origin| origin.line.original_path.as_str()).collect();
        paths.sort_unstable();
        paths.dedup();
        let mut record = new_record(now);
        record["vcs"] = json!({"type": "git", "revision": commit});
        let files: Vec<Value> = paths
            .iter()
            .map(|path| {
                let of_path = own.iter().filter(|origin| origin.line.original_path == *path);
                file_record(path, &of_path.copied().collect::<Vec<_>>(), LineNumbering::Original)
            })
            .collect();
        record["files"] = merge_files(noted_files(repository, commit), files);
        let text = record.to_string();
        let notes = format!("--ref={NOTES_REF}");
        repository.run(&["notes", &notes, "add", "-f", "-m", &text, commit])?;
        written.push(commit.clone());
    }
    Ok(written)
}

fn new_record(now: Timestamp) -> Value {
    json!({
        "version": TRACE_VERSION,
        "id": uuid::Uuid::new_v4().to_string(),
        "timestamp": now.instant().to_string(),
        "tool": {"name": "steno", "version": env!("CARGO_PKG_VERSION")},
        "files": [],
    })
}

fn noted_files(repository: &GitRepository, commit: &str) -> Vec<Value> {
    let notes = format!("--ref={NOTES_REF}");
    let note = repository.try_text(&["notes", &notes, "show", commit]).unwrap_or_default();
    let record: Value = serde_json::from_str(note.trim()).unwrap_or_default();
    record.get("files").and_then(Value::as_array).cloned().unwrap_or_default()
}

/// Replaces the files of an older record that the new one has too.
fn merge_files(older: Vec<Value>, newer: Vec<Value>) -> Value {
    let is_replaced = |file: &Value| newer.iter().any(|new| new["path"] == file["path"]);
    let mut files: Vec<Value> = older.into_iter().filter(|file| !is_replaced(file)).collect();
    files.extend(newer);
    Value::Array(files)
}

/// The lines of a file, by conversation.
fn file_record(path: &str, origins: &[&LineOrigin], numbering: LineNumbering) -> Value {
    let mut conversations: Vec<(String, Vec<&LineOrigin>)> = Vec::new();
    for origin in origins {
        let Some(entry) = &origin.entry else { continue };
        let key = format!("{}:{}", entry.session, origin.certainty.as_str());
        match conversations.iter_mut().find(|(known, _)| *known == key) {
            Some((_, lines)) => lines.push(origin),
            None => conversations.push((key, vec![origin])),
        }
    }
    let conversations: Vec<Value> =
        conversations.iter().map(|(_, lines)| conversation_record(lines, numbering)).collect();
    json!({"path": path, "conversations": conversations})
}

fn conversation_record(origins: &[&LineOrigin], numbering: LineNumbering) -> Value {
    let number = |origin: &LineOrigin| match numbering {
        LineNumbering::Current => origin.line.number,
        LineNumbering::Original => origin.line.original_number,
    };
    let mut origins = origins.to_vec();
    origins.sort_by_key(|origin| number(origin));
    let ranges = origins.chunk_by(|a, b| number(a) + 1 == number(b)).map(|lines| {
        let text: Vec<&str> = lines.iter().map(|origin| origin.line.text.as_str()).collect();
        let hash = Sha256::digest(text.join("\n").as_bytes());
        let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
        json!({
            "start_line": number(lines[0]),
            "end_line": number(lines[lines.len() - 1]),
            "content_hash": format!("sha256:{hex}"),
        })
    });
    let ranges: Vec<Value> = ranges.collect();
    let first = origins.first().and_then(|origin| origin.entry.as_ref());
    let mut record = json!({"contributor": contributor(&origins), "ranges": ranges});
    if let Some(entry) = first {
        record["url"] = json!(format!("steno:{}", entry.session));
    }
    record
}

fn contributor(origins: &[&LineOrigin]) -> Value {
    let is_certain = origins.iter().all(|origin| origin.certainty == OriginCertainty::Certain);
    let mut contributor = json!({"type": if is_certain { "ai" } else { "unknown" }});
    let model = origins.iter().find_map(|origin| origin.entry.as_ref().and_then(model_id));
    if let Some(model) = model {
        contributor["model_id"] = json!(model);
    }
    contributor
}

/// The model with its provider, as models.dev names it; `None` if the provider is not known.
fn model_id(entry: &OriginEntry) -> Option<String> {
    let model = entry.model.as_deref()?;
    if model.contains('/') {
        return Some(model.to_owned());
    }
    let providers = [
        ("claude", "anthropic"),
        ("gpt", "openai"),
        ("o1", "openai"),
        ("o3", "openai"),
        ("o4", "openai"),
        ("codex", "openai"),
        ("gemini", "google"),
        ("qwen", "alibaba"),
        ("kimi", "moonshotai"),
        ("deepseek", "deepseek"),
        ("grok", "xai"),
    ];
    let (_, provider) = providers.iter().find(|(name, _)| model.starts_with(name))?;
    Some(format!("{provider}/{model}"))
}
