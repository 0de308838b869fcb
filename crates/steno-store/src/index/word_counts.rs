//! Counts the words of a query one by one, to explain a search that finds nothing.

use rusqlite::params_from_iter;

use super::{EntryFilter, Index, IndexError, SearchQuery};

/// How many of the newest entries with a word are examined. To count all would take longer than the search.
pub const MAX_EXAMINED_ENTRIES: usize = 500;

/// How many words of a query are counted at most.
const MAX_COUNTED_WORDS: usize = 12;

/// A word and the number of entries that contain it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WordCount {
    /// The word as it was typed.
    pub word: String,
    /// How many of the examined entries match the filter.
    pub entries: u64,
    /// Whether all entries with the word were examined.
    pub is_exact: bool,
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
                let count = self.count_word(&parsed, filter);
                let (entries, is_exact) = self.wrap_error(count)?;
                counts.push(WordCount { word: word.to_owned(), entries, is_exact });
            }
        }
        Ok(counts)
    }

    /// How many of the newest entries match, and whether these are all.
    fn count_word(
        &self,
        query: &SearchQuery,
        filter: &EntryFilter,
    ) -> rusqlite::Result<(u64, bool)> {
        let (conditions, mut values) = filter.sql_conditions();
        let sql = format!(
            "SELECT coalesce(sum(is_match), 0), count(*) FROM (
                SELECT (1{conditions}) AS is_match
                FROM words CROSS JOIN entry INDEXED BY entry_text ON entry.text = words.rowid
                WHERE words MATCH ?1 ORDER BY words.rowid DESC LIMIT {MAX_EXAMINED_ENTRIES})"
        );
        values.insert(0, query.match_expression.clone().into());
        let mut count = self.connection.prepare_cached(&sql)?;
        count.query_row(params_from_iter(values), |row| {
            let (entries, examined): (i64, i64) = (row.get(0)?, row.get(1)?);
            Ok((entries.unsigned_abs(), examined < MAX_EXAMINED_ENTRIES as i64))
        })
    }
}
