//! Counts the words of a query one by one, to explain a search that finds nothing.

use super::{EntryFilter, Index, IndexError, SearchQuery};

/// How many entries with a word are counted at most.
pub const MAX_COUNTED_ENTRIES: usize = 1000;

/// How many words of a query are counted at most.
const MAX_COUNTED_WORDS: usize = 12;

/// A word and the number of entries that contain it, at most [`MAX_COUNTED_ENTRIES`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WordCount {
    /// The word as it was typed.
    pub word: String,
    /// The number of entries.
    pub entries: u64,
}

impl Index {
    /// How often each word of a query occurs by itself.
    pub fn count_words(
        &self,
        query: &str,
        filter: &EntryFilter,
    ) -> Result<Vec<WordCount>, IndexError> {
        let mut counts: Vec<WordCount> = Vec::new();
        let words = query.split(|c: char| !c.is_alphanumeric() && c != '_' && c != '-');
        for word in words.map(|word| word.trim_matches('-')).filter(|word| *word != "OR") {
            let Ok(parsed) = SearchQuery::parse(word) else { continue };
            let is_known = counts.iter().any(|known| known.word == word);
            if !is_known && counts.len() < MAX_COUNTED_WORDS {
                let entries = self.count_matches(&parsed, filter, MAX_COUNTED_ENTRIES)?;
                counts.push(WordCount { word: word.to_owned(), entries });
            }
        }
        Ok(counts)
    }
}
