//! Plain text, with invisible characters made visible.

use std::borrow::Cow;

use maud::Render;

/// A text of a transcript, to be escaped and made visible.
#[derive(Clone, Copy)]
pub(crate) struct CleanText<'a>(&'a str);

/// Escapes a text for any place in a page.
pub(crate) fn clean_text(text: &str) -> CleanText<'_> {
    CleanText(text)
}

impl Render for CleanText<'_> {
    fn render_to(&self, page: &mut String) {
        escape_html(&visible_text(self.0), page);
    }
}

/// Escapes a text for HTML. It copies in slices, because most characters need no change.
pub(crate) fn escape_html(text: &str, page: &mut String) {
    let mut from = 0;
    for (at, byte) in text.bytes().enumerate() {
        let code = match byte {
            b'&' => "&amp;",
            b'<' => "&lt;",
            b'>' => "&gt;",
            b'"' => "&quot;",
            _ => continue,
        };
        page.push_str(&text[from..at]);
        page.push_str(code);
        from = at + 1;
    }
    page.push_str(&text[from..]);
}

/// Removes terminal escape sequences, and makes other control characters visible.
///
/// Bidirectional controls are made visible too: they can make a command look like another one.
pub(crate) fn visible_text(text: &str) -> Cow<'_, str> {
    // All characters to replace start with one of these bytes.
    let is_doubtful = |byte: u8| match byte {
        b'\n' | b'\t' => false,
        byte => byte < 0x20 || matches!(byte, 0x7f | 0xc2 | 0xe2),
    };
    let is_plain =
        |c: char| matches!(c, '\n' | '\t') || !(c.is_control() || is_direction_control(c));
    if !text.bytes().any(is_doubtful) || text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\r' if rest.peek() == Some(&'\n') => {}
            '\r' => out.push('\n'),
            '\u{1b}' if rest.peek() == Some(&'[') => {
                rest.next();
                while rest.next().is_some_and(|c| !('\u{40}'..='\u{7e}').contains(&c)) {}
            }
            c if is_plain(c) => out.push(c),
            // Unicode has a picture for each ASCII control character.
            c if (c as u32) < 0x20 => out.extend(char::from_u32(0x2400 + c as u32)),
            c => out.push_str(&format!("⟨U+{:04X}⟩", c as u32)),
        }
    }
    Cow::Owned(out)
}

fn is_direction_control(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The first non-empty line, cut after `most` characters.
pub(crate) fn first_line(text: &str, most: usize) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    // Only the start is processed: the line may be megabytes long.
    let end = line.char_indices().nth(most).map_or(line.len(), |(at, _)| at);
    let shown = visible_text(&line[..end]);
    if end < line.len() { format!("{shown}…") } else { shown.into_owned() }
}

/// The begin of a text on one line, cut after `most` characters.
pub(crate) fn preview_text(text: &str, most: usize) -> String {
    // Only the start is processed, with some more for what is folded.
    let end = text.char_indices().nth(2 * most).map_or(text.len(), |(at, _)| at);
    let shown = visible_text(&text[..end]);
    let line = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(most) {
        Some((cut, _)) => format!("{}…", line[..cut].trim_end()),
        None if end < text.len() => format!("{line}…"),
        None => line,
    }
}

/// The prefix of a text longer than `most` bytes, cut at the end of a line if possible.
pub(crate) fn text_prefix(text: &str, most: usize) -> Option<&str> {
    if text.len() <= most {
        return None;
    }
    let end = (0..=most).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    let end = text[..end].rfind('\n').filter(|line| *line > most / 2).unwrap_or(end);
    Some(&text[..end])
}

/// The size of a text: lines, kB or MB.
pub(crate) fn size_label(text: &str) -> String {
    match text.len() {
        bytes if bytes < 10_000 => {
            let lines = text.lines().count();
            format!("{lines} line{}", if lines == 1 { "" } else { "s" })
        }
        bytes if bytes < 1_000_000 => format!("{} kB", bytes / 1000),
        bytes => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preview_is_one_line() {
        assert_eq!(preview_text("a\n\n  b\tc\u{202e}", 20), "a b c⟨U+202E⟩");
        assert_eq!(preview_text("one two three", 7), "one two…");
        assert_eq!(preview_text(&"é ".repeat(30), 5), "é é é…");
        assert_eq!(preview_text(&format!("a{}b", " ".repeat(90)), 20), "a…");
    }

    #[test]
    fn control_characters_are_made_visible() {
        assert_eq!(visible_text("a\x1b[1;31mred\x1b[0m\x07b\r\nc\rd"), "ared␇b\nc\nd");
        assert_eq!(visible_text("x\u{202e}y\u{85}\u{7f}"), "x⟨U+202E⟩y⟨U+0085⟩⟨U+007F⟩");
        for text in ["plain\n\ttext é 日", "“quoted” ± ½ – …"] {
            assert!(matches!(visible_text(text), Cow::Borrowed(_)), "{text}");
        }
    }

    #[test]
    fn special_characters_are_escaped() {
        let page = clean_text("<a href=\"é\">&</a>\x1b[0m").render().0;
        assert_eq!(page, "&lt;a href=&quot;é&quot;&gt;&amp;&lt;/a&gt;");
    }

    #[test]
    fn prefixes_end_at_a_line() {
        assert_eq!(first_line("\n  one two\nthree", 5), "one t…");
        assert_eq!(first_line("one", 5), "one");
        assert_eq!(text_prefix("one\ntwo\nthree", 9), Some("one\ntwo"));
        assert_eq!(text_prefix("ééé", 3), Some("é"));
        assert_eq!(text_prefix("one", 3), None);
        assert_eq!(
            [size_label("a"), size_label("a\nb"), size_label(&"x".repeat(12_000))],
            ["1 line", "2 lines", "12 kB"]
        );
    }
}
