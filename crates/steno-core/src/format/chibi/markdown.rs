//! `transcript.md`, the readable archive: `[USER]: ...` and `[ASSISTANT]: ...`, with an empty line after each.

use crate::entry::{Entry, Kind, Role};

const MARKS: [(&str, Role, Kind); 3] = [
    ("[USER]: ", Role::User, Kind::Text),
    ("[ASSISTANT]: ", Role::Assistant, Kind::Text),
    ("[TOOL RESULT]: ", Role::Tool, Kind::ToolResult),
];

/// Renders the messages among `entries` as chibi appends them. Tool calls and system texts are omitted.
pub fn render<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> String {
    let mut text = String::new();
    for entry in entries {
        let mark =
            MARKS[..2].iter().find(|(_, role, kind)| *role == entry.role && *kind == entry.kind);
        if let Some((mark, ..)) = mark {
            text.push_str(&format!("{mark}{}\n\n", entry.content));
        }
    }
    text
}

/// Parses the messages. Text before the first mark becomes a notice.
pub(super) fn entries(text: &str) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut after_blank = true;
    for line in text.split_inclusive('\n') {
        let marked = MARKS
            .iter()
            .filter(|_| after_blank)
            .find_map(|(mark, role, kind)| Some((line.strip_prefix(mark)?, role, kind)));
        match (marked, entries.last_mut()) {
            (Some((rest, role, kind)), _) => entries.push(Entry::new(role.clone(), *kind, rest)),
            (None, Some(entry)) => entry.content.push_str(line),
            (None, None) => entries.push(Entry::new(Role::System, Kind::Notice, line)),
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
pub(super) fn recognises(text: &str) -> bool {
    MARKS[..2].iter().any(|(mark, ..)| text.starts_with(mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_back() {
        let given = [
            Entry::new(Role::User, Kind::Text, "one\n\ntwo\n"),
            Entry::new(Role::Assistant, Kind::ToolCall, "{}"),
            Entry::new(Role::System, Kind::Text, "hidden"),
            Entry::new(Role::Assistant, Kind::Text, ""),
            Entry::new(Role::User, Kind::Text, "[USER]: quoted"),
        ];
        let text = render(&given);
        assert_eq!(text, "[USER]: one\n\ntwo\n\n\n[ASSISTANT]: \n\n[USER]: [USER]: quoted\n\n");
        let told: Vec<_> =
            entries(&text).into_iter().map(|entry| (entry.role, entry.content)).collect();
        assert_eq!(
            told,
            [
                (Role::User, "one\n\ntwo\n".to_owned()),
                (Role::Assistant, String::new()),
                (Role::User, "[USER]: quoted".to_owned())
            ]
        );
        assert_eq!(entries("[TOOL RESULT]: x")[0].kind, Kind::ToolResult);
        assert_eq!(entries("notes\n")[0].content, "notes");
    }
}
