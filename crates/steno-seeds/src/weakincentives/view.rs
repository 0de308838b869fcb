//! Renders a transcript for people: a header with time and speaker, the content, an empty line.

use steno_model::entry::{Entry, PRIMARY_SOURCE, Role};

/// Renders entries. Times are in their own offsets, and content is unchanged.
pub fn format_transcript<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> String {
    let mut blocks =
        entries.into_iter().map(|entry| format!("{}\n{}\n", entry_header(entry), entry.content));
    let mut text = blocks.next().unwrap_or_default();
    for block in blocks {
        text.push('\n');
        text.push_str(&block);
    }
    text
}

fn entry_header(entry: &Entry) -> String {
    let source = match entry.source.as_str() {
        PRIMARY_SOURCE => String::new(),
        source => format!("[{source}] "),
    };
    let time = match entry.created_at {
        Some(time) => time.clock_text(),
        None => "--:--:--".to_owned(),
    };
    format!("{source}[{time}] {} {}", role_emblem(&entry.role), speaker_name(entry))
}

fn role_emblem(role: &Role) -> &'static str {
    match role {
        Role::System => "\u{2699}\u{fe0f}",
        Role::User => "\u{1f464}",
        Role::Assistant => "\u{1f916}",
        Role::Tool => "\u{1f527}",
        Role::Other(_) => "\u{2022}",
    }
}

fn speaker_name(entry: &Entry) -> String {
    let tool = entry.tool_name.as_ref().filter(|name| !name.is_empty());
    match (&entry.role, tool) {
        (Role::Tool, Some(name)) => name.clone(),
        (role, _) => role.as_str().to_uppercase(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use steno_model::entry::EntryKind;

    #[test]
    fn unknown_fields_have_a_placeholder() {
        let tool = Entry::new(Role::Tool, EntryKind::ToolResult, "out\n");
        let mut other = Entry::new(Role::from("critic"), EntryKind::Text, "no");
        other.created_at = Some("2026-01-05T17:15:38+08:00".parse().unwrap());
        other.source = "subagent:a".to_owned();
        assert_eq!(
            format_transcript([&tool, &other]),
            "[--:--:--] \u{1f527} TOOL\nout\n\n\n[subagent:a] [17:15:38] \u{2022} CRITIC\nno\n"
        );
    }
}
