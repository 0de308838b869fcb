//! Separates a user's prompt from the context that Cursor adds to it.

use crate::decoding::agent_message::AgentMessage;
use steno_model::entry::{EntryKind, Role};

const QUERY_OPEN_TAG: &str = "<user_query>";
const QUERY_CLOSE_TAG: &str = "</user_query>";

/// Prefixes of context blocks that Cursor adds before the first prompt.
const CONTEXT_TAGS: [&str; 4] =
    ["<user_info>", "<system_reminder>", "<open_and_recently_viewed_files>", "<attached_files>"];

/// Adds a text of any role.
pub(super) fn add_text(message: &mut AgentMessage, role: &Role, text: &str) {
    match role {
        Role::User => add_user_text(message, text),
        role => message.add_text(role.clone(), EntryKind::Text, text),
    }
}

/// Adds the text of a user message. The query becomes a prompt and the text around it becomes notices.
pub(super) fn add_user_text(message: &mut AgentMessage, text: &str) {
    let Some((before, rest)) = text.split_once(QUERY_OPEN_TAG) else {
        let is_context = CONTEXT_TAGS.iter().any(|tag| text.trim_start().starts_with(tag));
        let kind = if is_context { EntryKind::Notice } else { EntryKind::Text };
        return message.add_text(Role::User, kind, text);
    };
    let (query, after) = rest.rsplit_once(QUERY_CLOSE_TAG).unwrap_or((rest, ""));
    add_notice(message, before);
    message.add_text(Role::User, EntryKind::Text, query.trim());
    add_notice(message, after);
}

fn add_notice(message: &mut AgentMessage, text: &str) {
    if !text.trim().is_empty() {
        message.add_text(Role::User, EntryKind::Notice, text.trim());
    }
}
