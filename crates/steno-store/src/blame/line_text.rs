//! What a line of text proves: how many words it has, and how it compares with another line.

/// How many words of a line are looked up. A longer phrase finds no fewer wrong texts.
const MAX_PHRASE_WORDS: usize = 12;

/// Shortest run of base64 characters that may be missing from the full-text index.
const UNINDEXED_RUN: usize = 60;

/// The least that a line must have so that it is looked up on its own.
const MIN_SEARCHED_WORDS: usize = 3;

/// The least that a line must have so that nobody else is expected to write the same.
const MIN_TELLING_WORDS: usize = 4;
const MIN_TELLING_CHARS: usize = 20;

/// The words of a line: runs of letters and digits.
pub(super) fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty())
}

/// The phrase to look a line up by, or `None` if it has too few words.
pub(super) fn search_phrase(line: &str) -> Option<String> {
    let is_encoded = |part: &str| {
        part.len() >= UNINDEXED_RUN
            && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"+/=".contains(&b))
    };
    if line.split_whitespace().any(is_encoded) {
        return None;
    }
    let words: Vec<&str> = words(line).take(MAX_PHRASE_WORDS).collect();
    (words.len() >= MIN_SEARCHED_WORDS).then(|| words.join(" "))
}

/// Whether a line is unlikely to be written twice by chance.
pub(super) fn is_telling(line: &str) -> bool {
    words(line).count() >= MIN_TELLING_WORDS && line.trim().chars().count() >= MIN_TELLING_CHARS
}

/// Whether lines are together unlikely to be written twice by chance: at least three with text, one of them with
/// several words.
pub(super) fn is_telling_block<'a>(lines: impl Iterator<Item = &'a str> + Clone) -> bool {
    let with_text = lines.clone().filter(|line| line.chars().any(|c| !c.is_whitespace()));
    let words_count: usize = lines.map(|line| words(line).count()).sum();
    with_text.count() >= 3 && words_count >= 6
}

/// A line without its end and without all white space, to compare what a formatter has changed.
pub(super) fn without_spaces(line: &str) -> String {
    line.chars().filter(|c| !c.is_whitespace()).collect()
}

/// A line without its line end.
pub(super) fn without_line_end(line: &str) -> &str {
    line.strip_suffix('\r').unwrap_or(line)
}

/// The text of a line of a notebook's cell. A notebook is JSON with one string for each line.
pub(super) fn notebook_cell_line(line: &str) -> Option<String> {
    let string = line.trim().trim_end_matches(',');
    let text: String = serde_json::from_str(string).ok()?;
    Some(text.strip_suffix('\n').map(str::to_owned).unwrap_or(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_lines_prove_nothing() {
        assert!(!is_telling("}") && !is_telling("    return None;") && !is_telling("use std::fs;"));
        assert!(is_telling("    let total = items.len();"));
        assert!(search_phrase("} else {").is_none());
        assert_eq!(search_phrase("let x = a_b(1);").as_deref(), Some("let x a b 1"));
        assert!(search_phrase(&format!("let key = {}", "aB3".repeat(30))).is_none());
    }

    #[test]
    fn a_block_needs_three_lines_with_words() {
        assert!(!is_telling_block(["}", "", "}", "}"].into_iter()));
        assert!(is_telling_block(["fn total(a: u32) -> u32 {", "    a + 1", "}"].into_iter()));
        assert!(!is_telling_block(["let total = items.len();", "", ""].into_iter()));
    }

    #[test]
    fn a_notebook_has_a_string_for_each_line() {
        assert_eq!(notebook_cell_line(r#"    "print(\"a\")\n","#).as_deref(), Some("print(\"a\")"));
        assert_eq!(notebook_cell_line("  \"cells\": ["), None);
    }
}
