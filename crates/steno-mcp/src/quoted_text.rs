//! Prepares text of transcripts for a quote: without secrets, and without characters that a reader cannot see.

use steno_store::view::redaction::SecretRedactor;

/// The prefix of each quoted line. No line of a quote can be taken for a heading of ours.
const QUOTE_PREFIX: &str = "| ";

/// Redacts secrets, and escapes characters that are invisible or that change how others are shown.
pub(crate) fn make_quotable(text: &str) -> String {
    show_invisible(&SecretRedactor::default().redact_text(text))
}

fn show_invisible(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => clean.push(c),
            c if is_invisible(c) => clean.extend(c.escape_unicode()),
            c => clean.push(c),
        }
    }
    clean
}

/// As [`make_quotable`], in one line of at most `max_chars` characters.
pub(crate) fn make_quotable_line(text: &str, max_chars: usize) -> String {
    shorten_line(&make_quotable(text), max_chars)
}

/// As [`make_quotable_line`], for the title of a session.
pub(crate) fn make_quotable_title(title: &str, max_chars: usize) -> String {
    let redacted = SecretRedactor::default().redact_title(title);
    shorten_line(&show_invisible(&redacted), max_chars)
}

fn shorten_line(clean: &str, max_chars: usize) -> String {
    let mut line = clean.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = line.char_indices().nth(max_chars) {
        line.truncate(end);
        line.push('…');
    }
    line
}

/// Part of a text, quoted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct QuotedPart {
    /// The lines, each with the prefix of a quote and a newline.
    pub(crate) lines: String,
    /// How many bytes of the text they are.
    pub(crate) consumed: usize,
}

/// Quotes as much of a quotable text as fits into `max_bytes`.
pub(crate) fn quote_part(text: &str, max_bytes: usize) -> QuotedPart {
    let (mut lines, mut consumed) = (String::new(), 0);
    for line in text.split_inclusive('\n') {
        let content = line.strip_suffix('\n').unwrap_or(line);
        let overhead = QUOTE_PREFIX.len() + 1;
        let Some(room) = max_bytes.checked_sub(lines.len() + overhead) else { break };
        let end = char_boundary_before(content, room);
        let is_whole = end == content.len();
        if end == 0 && !is_whole {
            break;
        }
        lines.extend([QUOTE_PREFIX, &content[..end], "\n"]);
        consumed += if is_whole { line.len() } else { end };
        if !is_whole {
            break;
        }
    }
    QuotedPart { lines, consumed }
}

/// The last character boundary of a text that is not after `at`.
pub(crate) fn char_boundary_before(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

/// Whether a character is invisible, or changes the order of others: control characters, line separators, zero-width
/// and bidirectional characters, and tags, which can hide a text from people but not from a model.
fn is_invisible(c: char) -> bool {
    let is_format = matches!(
        c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200c}' | '\u{200e}' | '\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            | '\u{e0000}'..='\u{e0fff}'
    );
    c.is_control() || is_format
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invisible_characters_are_shown() {
        let hidden = "a\u{e0049}\u{202e}b\r\u{2028}c\u{1b}[0m\u{200b}\n\td";
        let shown = r"a\u{e0049}\u{202e}b\u{d}\u{2028}c\u{1b}[0m\u{200b}";
        assert_eq!(make_quotable(hidden), format!("{shown}\n\td"));
        assert_eq!(make_quotable_line("one\n two  three", 7), "one two…");
    }

    #[test]
    fn a_title_has_no_part_of_a_secret() {
        let title = "deploy to the staging server; the password is Tr0ub4do…";
        assert_eq!(
            make_quotable_title(title, 99),
            "deploy to the staging server; the password is …"
        );
    }

    #[test]
    fn planted_secrets_are_not_quoted_and_look_alikes_are() {
        let planted = steno_secrets::planted::planted_secrets(31);
        let is_left = |planted: &&steno_secrets::planted::PlantedSecret| {
            make_quotable(&planted.text).contains(&planted.secret)
        };
        let left: Vec<_> = planted.iter().filter(is_left).map(|planted| &planted.text).collect();
        assert!(left.len() * 20 <= planted.len(), "{left:#?}");
        let harmless = steno_secrets::planted::harmless_texts(31);
        let is_changed = |text: &&String| make_quotable(text).contains("[redacted ");
        let changed: Vec<_> = harmless.iter().filter(is_changed).collect();
        assert!(changed.len() * 100 <= harmless.len(), "{changed:#?}");
    }

    #[test]
    fn a_text_is_quoted_in_parts_that_join_to_the_whole() {
        let text = "first\n\nthe third line is longer\nné\u{1f980}";
        for max_bytes in 8..60 {
            let (mut at, mut read) = (0, String::new());
            while at < text.len() {
                let part = quote_part(&text[at..], max_bytes);
                assert!(part.lines.len() <= max_bytes && part.consumed > 0, "{part:?}");
                assert!(part.lines.lines().all(|line| line.starts_with(QUOTE_PREFIX)));
                read.push_str(&text[at..at + part.consumed]);
                at += part.consumed;
            }
            assert_eq!(read, text);
        }
        assert_eq!(quote_part("abc", 3).consumed, 0);
    }
}
