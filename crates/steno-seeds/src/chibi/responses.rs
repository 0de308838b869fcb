//! Matches debug lines with entries: the model and tokens of a response belong to the entry that was written right
//! after it.

use std::collections::BTreeSet;

use super::debug_file::{self, ChibiDebugFile, line_seconds};
use super::line_conversion::chibi_fields_mut;
use steno_model::entry::{Entry, EntryKind, Role};
use steno_model::json::{Object, Value};

/// Maximum delay in seconds between a response and its entry.
const MAX_DELAY_SECONDS: i64 = 2;

/// Attaches each response to the entry that directly follows it. All other lines become notices at their time.
///
/// Returns the cost that the responses state.
pub(super) fn attach_debug_lines(entries: &mut Vec<Entry>, lines: Vec<Object>) -> Option<f64> {
    let cost = lines.iter().filter_map(debug_file::response_cost).reduce(|sum, cost| sum + cost);
    let mut unmatched = index_answers(entries);
    let mut notices = Vec::new();
    for line in lines {
        let answer = match (ChibiDebugFile::detect(&line), line_seconds(&line)) {
            (Some(ChibiDebugFile::Responses), Some(at)) => {
                let near = (at, 0)..=(at.saturating_add(MAX_DELAY_SECONDS), usize::MAX);
                unmatched.range(near).next().copied()
            }
            _ => None,
        };
        if let Some((second, at)) = answer {
            unmatched.remove(&(second, at));
            debug_file::attach_response(&mut entries[at], &line);
            chibi_fields_mut(&mut entries[at]).insert("response".to_owned(), Value::Object(line));
        } else if let Ok(notice) = debug_file::entry_from_debug_line(line) {
            notices.push(notice);
        }
    }
    insert_notices(entries, notices);
    cost
}

/// The model's entries, by second and index.
fn index_answers(entries: &[Entry]) -> BTreeSet<(i64, usize)> {
    let answers = entries.iter().enumerate().filter(|(_, entry)| {
        let is_output =
            matches!(entry.kind, EntryKind::Text | EntryKind::Thinking | EntryKind::ToolCall);
        let open = entry.usage.is_none() && entry.model.is_none() && entry.message_id.is_none();
        entry.role == Role::Assistant && is_output && open
    });
    let placed = answers.filter_map(|(at, entry)| Some((entry.created_at?.unix_seconds(), at)));
    placed.collect()
}

/// Inserts each notice before the first later entry.
fn insert_notices(entries: &mut Vec<Entry>, notices: Vec<Entry>) {
    let mut latest = i64::MIN;
    let seconds: Vec<_> = entries
        .iter()
        .map(|entry| {
            latest = latest.max(entry.created_at.map_or(latest, |at| at.unix_seconds()));
            latest
        })
        .collect();
    let insertion_index = |notice: &Entry| match notice.created_at {
        Some(at) => seconds.partition_point(|second| *second <= at.unix_seconds()),
        None => seconds.len(),
    };
    let mut placed: Vec<_> =
        notices.into_iter().map(|notice| (insertion_index(&notice), 0, notice)).collect();
    placed.extend(entries.drain(..).enumerate().map(|(at, entry)| (at, 1, entry)));
    placed.sort_by_key(|(index, rank, _)| (*index, *rank));
    entries.extend(placed.into_iter().map(|(_, _, entry)| entry));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use steno_model::timestamp::Timestamp;

    fn new_entry(role: Role, second: i64) -> Entry {
        let mut entry = Entry::new(role, EntryKind::Text, second.to_string());
        entry.created_at = Timestamp::from_unix(second);
        entry
    }

    fn response(second: i64, model: &str) -> Object {
        let usage = json!({"prompt_tokens": 1, "completion_tokens": 1, "cost": 0.25});
        let line = json!({"response": {"model": model, "usage": usage}, "timestamp": second});
        line.as_object().unwrap().clone()
    }

    #[test]
    fn responses_go_to_the_answers_that_followed_at_once() {
        let mut entries = vec![
            new_entry(Role::User, 10),
            new_entry(Role::Assistant, 12),
            new_entry(Role::Assistant, 12),
            new_entry(Role::User, 20),
        ];
        let request =
            json!({"timestamp": 10, "request": {"model": "q"}}).as_object().unwrap().clone();
        let lines = vec![request, response(12, "a"), response(11, "b"), response(15, "late")];
        assert_eq!(attach_debug_lines(&mut entries, lines), Some(0.75));
        let models: Vec<_> = entries.iter().map(|entry| entry.model.as_deref()).collect();
        assert_eq!(models, [None, Some("q"), Some("a"), Some("b"), Some("late"), None]);
        let kinds: Vec<_> = entries.iter().map(|entry| entry.kind).collect();
        assert_eq!((kinds[1], kinds[4]), (EntryKind::Notice, EntryKind::Notice));
        assert!(entries[4].usage.is_some());
    }
}
