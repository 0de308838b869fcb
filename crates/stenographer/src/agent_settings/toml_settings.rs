//! Settings in TOML.

use toml_edit::DocumentMut;

use super::SettingsRefusal;

/// Parses settings.
pub(crate) fn parse_toml_settings(text: &str) -> Result<DocumentMut, SettingsRefusal> {
    text.parse().map_err(|error: toml_edit::TomlError| {
        let start = error.span().map_or(0, |span| span.start);
        let line = 1 + text.as_bytes().iter().take(start).filter(|byte| **byte == b'\n').count();
        SettingsRefusal { line, reason: error.message().to_lowercase() }
    })
}

/// Restores each line's original line end, which the parser drops; new lines get that of the first.
pub(crate) fn restore_line_ends(before: &str, after: &str) -> String {
    let old: Vec<(&str, &str)> = before.split_inclusive('\n').map(split_line_end).collect();
    let usual = old.first().map_or("\n", |(_, end)| *end);
    let usual = if usual.is_empty() { "\n" } else { usual };
    let mut next = 0;
    let mut text = String::new();
    let mut lines = after.split_inclusive('\n').map(split_line_end).peekable();
    while let Some((line, end)) = lines.next() {
        let same = old[next..].iter().position(|(old, _)| *old == line);
        next += same.map_or(0, |at| at + 1);
        let end = same.map_or(if end.is_empty() { end } else { usual }, |_| old[next - 1].1);
        // Only the last line may have no line end.
        let end = if end.is_empty() && lines.peek().is_some() { usual } else { end };
        text.extend([line, end]);
    }
    text
}

/// Splits a line and its line end.
fn split_line_end(line: &str) -> (&str, &str) {
    line.split_at(line.trim_end_matches(['\r', '\n']).len())
}
