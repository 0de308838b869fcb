//! Splits a history into chats. Each chat begins with a line with its start time.

use std::collections::HashMap;
use std::ops::Range;

use super::CHAT_START_PREFIX;
use steno_model::durable::{FileError, OnPath};
use steno_model::lines::{LineEnd, LineReader};
use steno_vault::SessionFile;

/// How many characters of a chat's start time are part of its name.
const MAX_NAME_CHARS: usize = 40;

/// One chat of a history.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct AiderChat {
    /// The start time as a name: `2025-07-15T11-38-37`. A second chat in the same second has the suffix `-2`.
    pub(super) name: String,
    /// The byte range in the file. Text before the first chat is part of the first chat.
    pub(super) range: Range<u64>,
}

/// Lists the chats of a history, in order.
pub(super) fn list_chats(history: &SessionFile) -> Result<Vec<AiderChat>, FileError> {
    let mut chats: Vec<AiderChat> = Vec::new();
    let mut counts: HashMap<String, u32> = HashMap::new();
    let mut offset = 0;
    let mut lines = LineReader::new(history.open()?);
    while let Some(line) = lines.read_line().on("read", history.path())? {
        if let Some(time) = line.bytes.strip_prefix(CHAT_START_PREFIX.as_bytes())
            && !line.is_continuation
        {
            let name = chat_name(&String::from_utf8_lossy(time));
            let count = counts.entry(name.clone()).or_default();
            *count += 1;
            let name = if *count > 1 { format!("{name}-{count}") } else { name };
            let start = if chats.is_empty() { 0 } else { offset };
            if let Some(before) = chats.last_mut() {
                before.range.end = offset;
            }
            chats.push(AiderChat { name, range: start..start });
        }
        offset += line.bytes.len() as u64 + u64::from(line.end == LineEnd::Newline);
    }
    if let Some(last) = chats.last_mut() {
        last.range.end = offset;
    }
    Ok(chats)
}

fn chat_name(time: &str) -> String {
    let plain = |c: char| match c {
        ' ' => 'T',
        c if c.is_ascii_alphanumeric() => c,
        _ => '-',
    };
    time.trim().chars().take(MAX_NAME_CHARS).map(plain).collect()
}
