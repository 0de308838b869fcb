//! Separates a user's prompt from the context that Cursor adds to it.

use crate::agent::message::Message;
use crate::entry::{Kind, Role};

const OPEN: &str = "<user_query>";
const CLOSE: &str = "</user_query>";

/// Prefixes of context blocks that Cursor adds before the first prompt.
const CONTEXT: [&str; 4] =
    ["<user_info>", "<system_reminder>", "<open_and_recently_viewed_files>", "<attached_files>"];

/// Adds a text of any role.
pub(super) fn say(message: &mut Message, role: &Role, text: &str) {
    match role {
        Role::User => add(message, text),
        role => message.say(role.clone(), Kind::Text, text),
    }
}

/// Adds the text of a user message. The query becomes a prompt and the text around it becomes notices.
pub(super) fn add(message: &mut Message, text: &str) {
    let Some((before, rest)) = text.split_once(OPEN) else {
        let is_context = CONTEXT.iter().any(|tag| text.trim_start().starts_with(tag));
        let kind = if is_context { Kind::Notice } else { Kind::Text };
        return message.say(Role::User, kind, text);
    };
    let (query, after) = rest.rsplit_once(CLOSE).unwrap_or((rest, ""));
    notice(message, before);
    message.say(Role::User, Kind::Text, query.trim());
    notice(message, after);
}

fn notice(message: &mut Message, text: &str) {
    if !text.trim().is_empty() {
        message.say(Role::User, Kind::Notice, text.trim());
    }
}
