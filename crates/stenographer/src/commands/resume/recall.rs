//! What was said in a thread, for an agent that has forgotten it.
//!
//! Every session of the thread is told, the user's messages as the user wrote them, and all of it in whole messages. What does
//! not fit into the agent's context is left out from the beginning, unit by unit, and a notice says so.

use steno_core::entry::{Kind, PRIMARY};
use steno_core::format::leslie;
use steno_core::prompt::without_thread_blocks;
use steno_core::{Entry, Transcript};

/// The tag around it.
const CONVERSATION_TAG: &str = "thread_conversation";

/// Tokens of a context whose size no agent has told.
const DEFAULT_CONTEXT_TOKENS: u64 = 200_000;

/// Bytes that are about one token.
const BYTES_PER_TOKEN: u64 = 4;

/// The part of a context that may be told again; the rest is for the work.
const CONTEXT_DIVISOR: u64 = 2;

/// The conversation of a thread, with an empty line after it.
pub(super) fn recall_conversation(sessions: &[Transcript]) -> String {
    let limit = usize::try_from(context_tokens(sessions) * BYTES_PER_TOKEN / CONTEXT_DIVISOR)
        .unwrap_or(usize::MAX);
    let units: Vec<_> = sessions.iter().flat_map(split_units).collect();
    let mut told = Vec::new();
    let mut size = 0;
    for unit in units.iter().rev() {
        let text = unit.join("\n");
        size += text.len() + 1;
        if size > limit {
            break;
        }
        told.push(text);
    }
    if let (true, Some(last)) = (told.is_empty(), units.last()) {
        told.push(shorten_unit(last, limit));
    }
    if told.len() < units.len() {
        let left_out = units.len() - told.len();
        told.push(format!(
            "({left_out} earlier requests and their answers are left out: the context is too small)\n"
        ));
    }
    told.reverse();
    format!("<{CONVERSATION_TAG}>\n{}</{CONVERSATION_TAG}>\n\n", told.join("\n"))
}

/// Tokens of the agent's context, where it has told that.
fn context_tokens(sessions: &[Transcript]) -> u64 {
    let told = sessions.iter().rev().find_map(|transcript| {
        transcript.session.extra.get("acp")?.get("context")?.get("size")?.as_u64()
    });
    told.filter(|size| *size > 0).unwrap_or(DEFAULT_CONTEXT_TOKENS)
}

/// The messages of a session, by unit.
fn split_units(transcript: &Transcript) -> Vec<Vec<String>> {
    let mut units: Vec<Vec<String>> = Vec::new();
    let is_told = |entry: &&Entry| {
        entry.source == PRIMARY && !matches!(entry.kind, Kind::Notice | Kind::Other)
    };
    for entry in transcript.entries.iter().filter(is_told) {
        if leslie::asks(entry) || units.is_empty() {
            units.push(Vec::new());
        }
        units.last_mut().expect("one was just added").push(format_message(entry));
    }
    units
}

/// One message. A tag of ours in it would end the conversation, so it is written as text.
fn format_message(entry: &Entry) -> String {
    let input = entry.tool_input.as_ref().map(ToString::to_string).unwrap_or_default();
    let content = match &entry.content {
        content if leslie::asks(entry) => without_thread_blocks(content),
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

/// A unit that is too long by itself: the request, and the last messages that fit.
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
    use steno_core::{Role, Session};

    use super::*;

    fn session(window: u64, said: &[(Role, &str)]) -> Transcript {
        let mut session = Session::new("s".parse().unwrap(), "toy");
        session.extra.insert("acp".to_owned(), json!({ "context": { "size": window } }));
        let mut transcript = Transcript::new(session);
        for (role, text) in said {
            transcript.push(Entry::new(role.clone(), Kind::Text, *text));
        }
        transcript
    }

    #[test]
    fn every_session_is_told_as_the_user_wrote() {
        let long = "x".repeat(10_000);
        let context = "<thread_context thread=\"t\">\n\n</thread_context>\n\n";
        let told =
            recall_conversation(&[session(0, &[(Role::User, "One"), (Role::Assistant, &long)])]);
        let second = format!("{context}{told}Two");
        let sessions = [
            session(0, &[(Role::User, "One"), (Role::Assistant, &long)]),
            session(0, &[(Role::User, &second), (Role::Assistant, "</thread_conversation>")]),
        ];
        let told = recall_conversation(&sessions);
        let expected = format!(
            "<thread_conversation>\nuser:\nOne\n\nassistant:\n{long}\n\nuser:\nTwo\n\n\
             assistant:\n&lt;/thread_conversation>\n</thread_conversation>\n\n"
        );
        assert_eq!(told, expected);
        assert_eq!(without_thread_blocks(&format!("{context}{told}Three")), "Three");
    }

    #[test]
    fn what_does_not_fit_is_left_out_by_units() {
        let said: Vec<_> = (0..10).map(|at| format!("q{at} {}", "y".repeat(100))).collect();
        let said: Vec<_> = said.iter().map(|text| (Role::User, text.as_str())).collect();
        let told = recall_conversation(&[session(200, &said)]);
        assert!(told.len() < 600, "{told}");
        assert!(told.contains("(7 earlier requests and their answers are left out"), "{told}");
        assert!(told.contains("q7 ") && told.contains("q9 ") && !told.contains("q6 "), "{told}");
        let long = "z".repeat(300);
        let said = [(Role::User, "q"), (Role::Assistant, &*long), (Role::Assistant, "end")];
        let told = recall_conversation(&[session(100, &said)]);
        let expected = "user:\nq\n\n(1 messages are left out: the context is too small)\n\n\
                        assistant:\nend\n";
        assert!(told.contains(expected), "{told}");
    }
}
