//! `transcript.md`, the readable archive: `[USER]: ...` and `[ASSISTANT]: ...`, with an empty line after each.

use steno_model::entry::{Entry, EntryKind, Role};

const SPEAKER_MARKS: [(&str, Role, EntryKind); 3] = [
    ("[USER]: ", Role::User, EntryKind::Text),
    ("[ASSISTANT]: ", Role::Assistant, EntryKind::Text),
    ("[TOOL RESULT]: ", Role::Tool, EntryKind::ToolResult),
];

/// Renders the messages among `entries` as chibi appends them. Tool calls and system texts are omitted.
pub fn render_markdown<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> String {
    let mut text = String::new();
    for entry in entries {
        let mark = SPEAKER_MARKS[..2]
            .iter()
            .find(|(_, role, kind)| *role == entry.role && *kind == entry.kind);
        if let Some((mark, ..)) = mark {
            text.push_str(&format!("{mark}{}\n\n", entry.content));
        }
    }
    text
}

/// Parses the messages. Text before the first mark becomes a notice.
pub(super) fn parse_markdown(text: &str) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut after_blank = true;
    for line in text.split_inclusive('\n') {
        let marked = SPEAKER_MARKS
            .iter()
            .filter(|_| after_blank)
            .find_map(|(mark, role, kind)| Some((line.strip_prefix(mark)?, role, kind)));
        match (marked, entries.last_mut()) {
            (Some((rest, role, kind)), _) => entries.push(Entry::new(role.clone(), *kind, rest)),
            (None, Some(entry)) => entry.content.push_str(line),
            (None, None) => entries.push(Entry::new(Role::System, EntryKind::Notice, line)),
        }
        after_blank = line == "\n";
    }
    for entry in &mut entries {
        let text = entry.content.strip_suffix('\n').unwrap_or(&entry.content);
        entry.content = text.strip_suffix('\n').unwrap_or(text).to_owned();
    }
    entries
}

/// Whether a text starts as chibi's archives do.
pub(super) fn is_markdown_archive(text: &str) -> bool {
    SPEAKER_MARKS[..2].iter().any(|(mark, ..)| text.starts_with(mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_back() {
        let given = [
            Entry::new(Role::User, EntryKind::Text, "one\n\ntwo\n"),
            Entry::new(Role::Assistant, EntryKind::ToolCall, "{}"),
            Entry::new(Role::System, EntryKind::Text, "hidden"),
            Entry::new(Role::Assistant, EntryKind::Text, ""),
            Entry::new(Role::User, EntryKind::Text, "[USER]: quoted"),
        ];
        let text = render_markdown(&given);
        assert_eq!(text, "[USER]: one\n\ntwo\n\n\n[ASSISTANT]: \n\n[USER]: [USER]: quoted\n\n");
        let actual: Vec<_> =
            parse_markdown(&text).into_iter().map(|entry| (entry.role, entry.content)).collect();
        assert_eq!(
            actual,
            [
                (Role::User, "one\n\ntwo\n".to_owned()),
                (Role::Assistant, String::new()),
                (Role::User, "[USER]: quoted".to_owned())
            ]
        );
        assert_eq!(parse_markdown("[TOOL RESULT]: x")[0].kind, EntryKind::ToolResult);
        assert_eq!(parse_markdown("notes\n")[0].content, "notes");
    }
}
