//! The words of a text, as the database needs them.

use steno_store::index::text_folding::fold_text;
use steno_store::index::word_tokens::WordTokenizer;

use super::word_pairs::WordPairs;
use crate::team_error::TeamError;

/// A longer text is only searched up to here.
const MAX_SEARCHED_BYTES: usize = 4 << 20;

/// The limit for the different words of one text. PostgreSQL stores no `tsvector` over 1 MB.
const MAX_VECTOR_BYTES: usize = 900 << 10;

/// After so many words, those that occur twice are removed.
const MAX_UNSORTED_WORDS: usize = 1 << 16;

/// A longer word is cut: PostgreSQL limits the length of a key.
const MAX_WORD_LENGTH: usize = 500;

/// The folded words of a text.
pub(super) struct FoldedWords {
    /// The words of the text in order, with a space around each.
    pub(super) folded: String,
    /// The parts of its words, likewise.
    pub(super) parts: String,
    /// Each word once, as a `tsvector`.
    pub(super) vector: String,
    /// Which words follow each other in the text and in the parts.
    pub(super) pairs: Vec<u8>,
}

impl FoldedWords {
    pub(super) fn new(text: &str, tokenizer: &mut WordTokenizer) -> Result<Self, TeamError> {
        let indexable = fold_text(searched_part(text));
        let folded = join_words(&indexable.text, tokenizer)?;
        let parts = join_words(&indexable.parts, tokenizer)?;
        drop(indexable);
        let words = distinct_words(folded.split(' ').chain(parts.split(' ')));
        let mut vector = String::with_capacity(words.iter().map(|word| word.len() + 3).sum());
        let mut bytes = 0;
        for word in words {
            bytes += word.len();
            if bytes > MAX_VECTOR_BYTES {
                break;
            }
            vector.push('\'');
            vector.push_str(word);
            vector.push_str("' ");
        }
        let mut pairs = WordPairs::default();
        pairs.add_text(&folded);
        pairs.add_text(&parts);
        Ok(Self { folded, parts, vector, pairs: pairs.into_filter() })
    }
}

/// Each word once, sorted. Of a long text, not all words are held at once.
fn distinct_words<'a>(all: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let (mut words, mut most) = (Vec::new(), MAX_UNSORTED_WORDS);
    for word in all.filter(|word| !word.is_empty()) {
        words.push(word);
        if words.len() == most {
            words.sort_unstable();
            words.dedup();
            most = MAX_UNSORTED_WORDS.max(2 * words.len());
        }
    }
    words.sort_unstable();
    words.dedup();
    words
}

fn join_words(text: &str, tokenizer: &mut WordTokenizer) -> Result<String, TeamError> {
    let mut joined = String::with_capacity(text.len() + 2);
    joined.push(' ');
    tokenizer.for_each_word(text, &mut |word| {
        joined.push_str(cut_word(word));
        joined.push(' ');
    })?;
    Ok(joined)
}

/// The part of a text that is searched.
pub(crate) fn searched_part(text: &str) -> &str {
    beginning(text, MAX_SEARCHED_BYTES)
}

/// The beginning of a very long word.
pub(super) fn cut_word(word: &str) -> &str {
    beginning(word, MAX_WORD_LENGTH)
}

/// As many whole characters as fit.
fn beginning(text: &str, most: usize) -> &str {
    let end = (0..=most.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or(0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_long_texts_are_found_once() {
        let text: String = (0..300_000_u64).map(|n| format!("w{} ", n * n % 99_991)).collect();
        let expected: std::collections::BTreeSet<&str> = text.split_ascii_whitespace().collect();
        assert!(expected.len() > MAX_UNSORTED_WORDS / 2);
        assert!(distinct_words(text.split(' ')).into_iter().eq(expected));
    }
}
