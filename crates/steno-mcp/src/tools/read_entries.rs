//! `read_session_entries`: reads the entries around a hit, or a session from its start.

use steno_model::Entry;
use steno_store::index::entry_text::searchable_text;

use super::{BYTES_ARGUMENT, answer_bytes};
use crate::agent_history::AgentHistory;
use crate::history_tool::HistoryTool;
use crate::quoted_answer::QuotedAnswer;
use crate::quoted_text::{char_boundary_before, make_quotable, make_quotable_line};
use crate::tool_arguments::{ToolArgument, ToolArguments};
use crate::tool_error::ToolError;

/// How many entries before and after the hit are read unless the call asks for another number.
const DEFAULT_BEFORE: usize = 2;
const DEFAULT_AFTER: usize = 4;

/// The tool.
pub(super) const READ_TOOL: HistoryTool = HistoryTool {
    name: "read_session_entries",
    description: "Read a past session around a hit, entry by entry.",
    arguments: &[
        ToolArgument::text("at", "SESSION:ENTRY, or SESSION for its start").also(&[
            "id",
            "session",
            "session_id",
            "hit",
            "entry_id",
            "ref",
        ]),
        ToolArgument::number("entry", "number, if at is only SESSION").also(&["number", "index"]),
        ToolArgument::number("before", "entries before, default 2").also(&["context_before"]),
        ToolArgument::number("after", "entries after, default 4").also(&["context_after", "limit"]),
        ToolArgument::text("continue", "token of the last answer").also(&[
            "continuation",
            "cursor",
            "token",
            "page_token",
            "next",
        ]),
        BYTES_ARGUMENT,
    ],
    example: r#"{"at": "SESSION:ENTRY", "after": 10}"#,
    answer: read_entries,
};

/// What to read: entries, from a byte of the first one on.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ReadRange {
    session: String,
    /// The entry that was asked for.
    target: usize,
    /// How many bytes of it were read before.
    offset: usize,
    /// How many entries before it to read.
    before: usize,
    /// The last entry.
    last: usize,
}

impl ReadRange {
    fn from_arguments(arguments: &ToolArguments) -> Result<Self, ToolError> {
        if let Some(token) = arguments.text("continue")? {
            return Self::from_token(&token).ok_or_else(|| {
                ToolError::arguments(format!("continue is not a token of an answer: {token}"))
            });
        }
        let at = arguments.text("at")?.ok_or_else(|| {
            ToolError::arguments("at is missing: SESSION:ENTRY of a hit, or SESSION")
        })?;
        let numbered = at.rsplit_once(':').and_then(|(session, number)| {
            Some((session.to_owned(), number.trim_start_matches('#').parse().ok()?))
        });
        let entry = arguments.number("entry")?;
        let (session, entry) = match numbered {
            Some((session, number)) => (session, Some(number)),
            None => (at, entry),
        };
        let after = arguments.number("after")?;
        // A session without an entry is read from its start to its end.
        let after = after.or(entry.map(|_| DEFAULT_AFTER)).unwrap_or(usize::MAX);
        let target = entry.unwrap_or(0);
        let before = arguments.number("before")?.unwrap_or(DEFAULT_BEFORE);
        Ok(Self { session, target, offset: 0, before, last: target.saturating_add(after) })
    }

    /// Parses `SESSION:ENTRY@BYTE-LAST`.
    fn from_token(token: &str) -> Option<Self> {
        let (at, range) = token.rsplit_once('@')?;
        let (session, target) = at.rsplit_once(':')?;
        let (offset, last) = range.split_once('-')?;
        Some(Self {
            session: session.to_owned(),
            target: target.parse().ok()?,
            offset: offset.parse().ok()?,
            before: 0,
            last: last.parse().ok()?,
        })
    }
}

fn read_entries(history: &AgentHistory, arguments: &ToolArguments) -> Result<String, ToolError> {
    let range = ReadRange::from_arguments(arguments)?;
    let session = history.find_session(&range.session)?;
    let transcript = history.read_transcript(&session)?;
    let entries = &transcript.entries;
    if range.target >= entries.len() {
        let message = match entries.len() {
            0 => format!("session {} has no entries", session.id),
            count => format!("session {} has the entries 0 to {}", session.id, count - 1),
        };
        return Err(ToolError::arguments(message));
    }
    let started = history.date(session.started);
    let max_bytes = answer_bytes(arguments)?;
    let summary = format!(
        "Session {} of {}{}, recorded {started}, {} entries:",
        session.id,
        session.agent,
        history.owner_words(&session.agent, session.id.as_str()),
        entries.len()
    );
    let mut answer = QuotedAnswer::new(summary, max_bytes);
    push_entries_before(history, entries, &range, &mut answer);
    let last = range.last.min(entries.len() - 1);
    match push_entries(history, &entries[..=last], &range, &mut answer) {
        Some((number, offset)) => {
            let token = format!("{}:{number}@{offset}-{last}", session.id);
            answer
                .add_footer(format!("More: read_session_entries({{\"continue\": \"{token}\"}})."));
        }
        None if last + 1 < entries.len() => {
            let next = format!("{}:{}", session.id, last + 1);
            answer.add_footer(format!("Next entry: {next}. The last is {}.", entries.len() - 1));
        }
        None => answer.add_footer("This is the end of the session."),
    }
    Ok(answer.into_text())
}

/// Adds the entries before the target, each cut so that together they take at most a quarter of the answer.
fn push_entries_before(
    history: &AgentHistory,
    entries: &[Entry],
    range: &ReadRange,
    answer: &mut QuotedAnswer,
) {
    let first = range.target.saturating_sub(range.before);
    let share = answer.room() / 4 / range.before.max(1);
    for (number, entry) in entries.iter().enumerate().take(range.target).skip(first) {
        let text = entry_text(entry);
        let heading = entry_heading(history, entry, number);
        let shown = answer.push_part(&heading, &text, share);
        if let Some(shown) = shown.filter(|shown| *shown < text.len()) {
            answer.push_whole(
                &format!("  ({} bytes of entry {number} left out)", text.len() - shown),
                "",
            );
        }
    }
}

/// Adds the entries from the target on. Returns the entry and the byte of it that did not fit.
fn push_entries(
    history: &AgentHistory,
    entries: &[Entry],
    range: &ReadRange,
    answer: &mut QuotedAnswer,
) -> Option<(usize, usize)> {
    for (number, entry) in entries.iter().enumerate().skip(range.target) {
        let text = entry_text(entry);
        let offset = if number == range.target { range.offset } else { 0 };
        let offset = char_boundary_before(&text, offset);
        let mut heading = entry_heading(history, entry, number);
        if offset > 0 {
            heading.push_str("  (continued)");
        }
        let shown = answer.push_part(&heading, &text[offset..], usize::MAX).unwrap_or(0);
        if offset + shown < text.len() || answer.room() == 0 {
            let is_read = offset + shown == text.len();
            let next = if is_read { (number + 1, 0) } else { (number, offset + shown) };
            return (next.0 < entries.len()).then_some(next);
        }
    }
    None
}

fn entry_text(entry: &Entry) -> String {
    make_quotable(searchable_text(entry).trim_end())
}

fn entry_heading(history: &AgentHistory, entry: &Entry, number: usize) -> String {
    let date = history.date(entry.created_at);
    format!("entry {number}  {date}  {}", make_quotable_line(&entry.heading(), 80))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_says_where_to_go_on() {
        let range = ReadRange::from_token("a-b:7@1200-11").unwrap();
        let expected =
            ReadRange { session: "a-b".to_owned(), target: 7, offset: 1200, before: 0, last: 11 };
        assert_eq!(range, expected);
        for wrong in ["", "a-b:7", "a-b@1-2", "a:b@1-2", "a:1@2", "a:1@-2"] {
            assert_eq!(ReadRange::from_token(wrong), None, "{wrong}");
        }
    }
}
