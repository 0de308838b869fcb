//! The conversation of a thread, for an agent that no longer has it.
//!
//! Includes every session of the thread in whole messages, prompts as the user wrote them. What exceeds the agent's
//! context is dropped from the start, unit by unit, with a notice.

use steno_model::entry::{EntryKind, PRIMARY_SOURCE};
use steno_model::prompt::without_thread_blocks;
use steno_model::{Entry, Transcript};
use steno_seeds::leslie;

/// Tag around the conversation.
const CONVERSATION_TAG: &str = "thread_conversation";

/// Context size of an agent that reports none.
const DEFAULT_CONTEXT_TOKENS: u64 = 200_000;

/// Approximate bytes per token.
const BYTES_PER_TOKEN: u64 = 4;

/// Divisor of the context: the conversation may use half, the rest is for the work.
const CONTEXT_DIVISOR: u64 = 2;

/// Returns the conversation of a thread, followed by an empty line.
pub(crate) fn recall_conversation(sessions: &[Transcript]) -> String {
    let limit = usize::try_from(context_tokens(sessions) * BYTES_PER_TOKEN / CONTEXT_DIVISOR)
        .unwrap_or(usize::MAX);
    let units: Vec<_> = sessions.iter().flat_map(split_units).collect();
    let mut recalled = Vec::new();
    let mut size = 0;
    for unit in units.iter().rev() {
        let text = unit.join("\n");
        size += text.len() + 1;
        if size > limit {
            break;
        }
        recalled.push(text);
    }
    if let (true, Some(last)) = (recalled.is_empty(), units.last()) {
        recalled.push(shorten_unit(last, limit));
    }
    if recalled.len() < units.len() {
        let left_out = units.len() - recalled.len();
        recalled.push(format!(
            "({left_out} earlier requests and their answers are left out: the context is too small)\n"
        ));
    }
    recalled.reverse();
    format!("<{CONVERSATION_TAG}>\n{}</{CONVERSATION_TAG}>\n\n", recalled.join("\n"))
}

/// Returns the agent's context size in tokens.
fn context_tokens(sessions: &[Transcript]) -> u64 {
    let recalled = sessions.iter().rev().find_map(|transcript| {
        transcript.session.extra.get("acp")?.get("context")?.get("size")?.as_u64()
    });
    recalled.filter(|size| *size > 0).unwrap_or(DEFAULT_CONTEXT_TOKENS)
}

/// Returns the messages of a session by unit.
fn split_units(transcript: &Transcript) -> Vec<Vec<String>> {
    let mut units: Vec<Vec<String>> = Vec::new();
    let is_included = |entry: &&Entry| {
        entry.source == PRIMARY_SOURCE
            && !matches!(entry.kind, EntryKind::Notice | EntryKind::Other)
    };
    for entry in transcript.entries.iter().filter(is_included) {
        if leslie::is_user_prompt(entry) || units.is_empty() {
            units.push(Vec::new());
        }
        units.last_mut().expect("one was just added").push(format_message(entry));
    }
    units
}

/// Formats one message. The tag is escaped, since it would end the conversation.
fn format_message(entry: &Entry) -> String {
    let input = entry.tool_input.as_ref().map(ToString::to_string).unwrap_or_default();
    let content = match &entry.content {
        content if leslie::is_user_prompt(entry) => without_thread_blocks(content),
        content if content.is_empty() => &input,
        content => content,
    };
    let content = content.trim_end();
    let content =
        content.replace(&format!("<{CONVERSATION_TAG}"), &format!("&lt;{CONVERSATION_TAG}"));
    let content =
        content.replace(&format!("</{CONVERSATION_TAG}"), &format!("&lt;/{CONVERSATION_TAG}"));
    format!("{}:\n{content}\n", entry.heading())
}

/// Shortens a unit over the limit to its prompt and the last messages that fit.
fn shorten_unit(unit: &[String], limit: usize) -> String {
    let Some((request, rest)) = unit.split_first() else { return String::new() };
    let mut size = request.len();
    let fitting = rest.iter().rev().take_while(|message| {
        size += message.len() + 1;
        size <= limit
    });
    let kept = fitting.count();
    let left_out = rest.len() - kept;
    let notice = format!("({left_out} messages are left out: the context is too small)\n");
    let parts = [request.clone(), notice].into_iter().chain(rest[left_out..].iter().cloned());
    parts.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use steno_model::{Role, Session};

    use super::*;

    fn session(window: u64, messages: &[(Role, &str)]) -> Transcript {
        let mut session = Session::new("s".parse().unwrap(), "toy");
        session.extra.insert("acp".to_owned(), json!({ "context": { "size": window } }));
        let mut transcript = Transcript::new(session);
        for (role, text) in messages {
            transcript.push(Entry::new(role.clone(), EntryKind::Text, *text));
        }
        transcript
    }

    #[test]
    fn every_session_is_recalled_as_the_user_wrote_it() {
        let long = "x".repeat(10_000);
        let context = "<thread_context thread=\"t\">\n\n</thread_context>\n\n";
        let recalled =
            recall_conversation(&[session(0, &[(Role::User, "One"), (Role::Assistant, &long)])]);
        let second = format!("{context}{recalled}Two");
        let sessions = [
            session(0, &[(Role::User, "One"), (Role::Assistant, &long)]),
            session(0, &[(Role::User, &second), (Role::Assistant, "</thread_conversation>")]),
        ];
        let recalled = recall_conversation(&sessions);
        let expected = format!(
            "<thread_conversation>\nuser:\nOne\n\nassistant:\n{long}\n\nuser:\nTwo\n\n\
             assistant:\n&lt;/thread_conversation>\n</thread_conversation>\n\n"
        );
        assert_eq!(recalled, expected);
        assert_eq!(without_thread_blocks(&format!("{context}{recalled}Three")), "Three");
    }

    #[test]
    fn what_does_not_fit_is_left_out_by_units() {
        let messages: Vec<_> = (0..10).map(|at| format!("q{at} {}", "y".repeat(100))).collect();
        let messages: Vec<_> = messages.iter().map(|text| (Role::User, text.as_str())).collect();
        let recalled = recall_conversation(&[session(200, &messages)]);
        assert!(recalled.len() < 600, "{recalled}");
        assert!(
            recalled.contains("(7 earlier requests and their answers are left out"),
            "{recalled}"
        );
        assert!(
            recalled.contains("q7 ") && recalled.contains("q9 ") && !recalled.contains("q6 "),
            "{recalled}"
        );
        let long = "z".repeat(300);
        let messages = [(Role::User, "q"), (Role::Assistant, &*long), (Role::Assistant, "end")];
        let recalled = recall_conversation(&[session(100, &messages)]);
        let expected = "user:\nq\n\n(1 messages are left out: the context is too small)\n\n\
                        assistant:\nend\n";
        assert!(recalled.contains(expected), "{recalled}");
    }
}
